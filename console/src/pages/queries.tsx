/** The list of queries, of which there may be tens of thousands: only the rows in sight exist, and only they are asked for. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, query, type QueryPage, type QueryRow } from "../api";
import { cost, count, figure, plural, rate, seconds } from "../format";
import { useLive } from "../live";
import { Icon } from "../parts/icon";
import { Empty, State } from "../parts/small";
import { go, link } from "../route";
import { useOperator } from "../session";
import { QueryPanel } from "./query";

const ROW = 54; // pixels, as in style.css
const HEAD = 36;
const PAGE = 100; // rows that are asked for at a time
const BEYOND = 6; // rows above and below those in sight
const NEAR = 80; // rows that are asked for before they are in sight
const TYPING_MS = 120;

interface Filter {
  search: string;
  state: string;
  node: string;
  order: string;
  descending: boolean;
}

const EVERYTHING: Filter = { search: "", state: "", node: "", order: "name", descending: false };

export function QueriesPage({ name }: { name: string }) {
  const [filter, setFilter] = useState(EVERYTHING);
  const operator = useOperator();
  return (
    <div class={name ? "queries with-panel" : "queries"}>
      <section class="card list" aria-label="Queries">
        <Toolbar filter={filter} change={setFilter} operator={operator} />
        <List filter={filter} change={setFilter} selected={name} />
      </section>
      {name && <QueryPanel key={name} name={name} />}
    </div>
  );
}

interface Changes {
  filter: Filter;
  change: (filter: Filter) => void;
}

function Toolbar({ filter, change, operator }: Changes & { operator: boolean }) {
  const nodes = useLive("nodes");
  const [typed, setTyped] = useState(filter.search);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const timer = setTimeout(() => typed !== filter.search && change({ ...filter, search: typed }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed, filter, change]);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const typing = (event.target as HTMLElement).closest("input, textarea, select");
      if (event.key !== "/" || typing) return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  return (
    <div class="toolbar">
      <div class="search">
        <Icon name="search" />
        <input
          ref={input}
          type="search"
          placeholder="Search names and SQL"
          aria-label="Search names and SQL"
          aria-keyshortcuts="/"
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <kbd aria-hidden="true">/</kbd>
      </div>
      <select
        aria-label="State"
        value={filter.state}
        onChange={(event) => change({ ...filter, state: event.currentTarget.value })}
      >
        <option value="">Any state</option>
        {["standing", "starting", "catching up", "set aside"].map((state) => (
          <option key={state}>{state}</option>
        ))}
      </select>
      <select
        aria-label="Node"
        value={filter.node}
        onChange={(event) => change({ ...filter, node: event.currentTarget.value })}
      >
        <option value="">Any node</option>
        {nodes.map((node) => (
          <option key={node.name}>{node.name}</option>
        ))}
      </select>
      {operator && (
        <a class="button main" href={link("new")}>
          <Icon name="plus" />
          <span>
            New <span class="only-roomy">query</span>
          </span>
        </a>
      )}
    </div>
  );
}

const COLUMNS: { title: string; order: string; kind: string; said?: string }[] = [
  { title: "Query", order: "name", kind: "wide" },
  { title: "State", order: "state", kind: "mark" },
  { title: "Rows/s", order: "rate", kind: "number" },
  { title: "Delay", order: "delay", kind: "number" },
  { title: "PR", order: "pr", kind: "number roomy", said: "Performance ratio: delay over processing time" },
  { title: "Cost", order: "cost", kind: "number roomy", said: "The part of each second that it takes, estimated" },
  { title: "Kind", order: "kind", kind: "roomy", said: "The kind of its carrier" },
  { title: "Node", order: "node", kind: "place" },
  { title: "Carrier", order: "carrier", kind: "place" },
];

const FALLING = ["rate", "delay", "pr", "cost"]; // whoever sorts by them wants the highest first

function List({ filter, change, selected }: Changes & { selected: string }) {
  const { version } = useLive("queries");
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const { total, of, row, wrong, loaded } = useRows(filter, version, view);
  const first = Math.max(0, Math.floor(view.top / ROW) - BEYOND);
  const last = Math.min(total, Math.ceil((view.top + view.height) / ROW) + BEYOND);
  const [at, setAt] = useState(0);

  const scrolled = useCallback(() => {
    const element = box.current;
    if (element) setView({ top: element.scrollTop, height: element.clientHeight });
  }, []);
  useEffect(() => {
    const observer = new ResizeObserver(scrolled);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, [scrolled]);
  useEffect(() => {
    box.current?.scrollTo({ top: 0 });
    setAt(0);
  }, [filter]);

  const pressed = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -total, End: total };
    const chosen = row(at);
    if ((event.target as HTMLElement).closest("button")) return; // of the heading: it sorts
    if (event.key === "Enter" && chosen) return go("queries", chosen.name);
    const step = steps[event.key];
    const element = box.current;
    if (step === undefined || !element) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(total - 1, at + step));
    setAt(next);
    if (next * ROW < element.scrollTop) element.scrollTop = next * ROW;
    const bottom = HEAD + (next + 1) * ROW;
    if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
  };

  const sort = (order: string) =>
    change({ ...filter, order, descending: filter.order === order ? !filter.descending : FALLING.includes(order) });

  const numbers = Array.from({ length: Math.max(0, last - first) }, (_, n) => first + n);
  return (
    <>
      <div
        ref={box}
        class="grid"
        role="grid"
        tabIndex={0}
        aria-label="Queries: arrow keys move, Enter opens"
        aria-rowcount={total + 1}
        aria-activedescendant={row(at) && first <= at && at < last ? `row-${at}` : undefined}
        onScroll={scrolled}
        onKeyDown={pressed}
      >
        <div class="grid-head" role="row" aria-rowindex={1}>
          {COLUMNS.map(({ title, order, kind, said }) => (
            <div key={order} role="columnheader" class={kind} aria-sort={sorting(filter, order)}>
              <button type="button" title={said} onClick={() => sort(order)}>
                {title}
                <i aria-hidden="true">{filter.order === order ? (filter.descending ? "↓" : "↑") : ""}</i>
              </button>
            </div>
          ))}
        </div>
        {total > 0 && !wrong && (
          <div class="grid-space" role="rowgroup" style={{ height: `${total * ROW}px` }}>
            {numbers.map((n) => (
              <Row key={n} n={n} row={row(n)} active={n === at} open={row(n)?.name === selected} choose={() => setAt(n)} />
            ))}
          </div>
        )}
      </div>
      {wrong ? <Empty title="The list cannot be shown">{wrong}</Empty> : total === 0 && loaded && <NoQueries none={of === 0} />}
      <p class="list-foot" role="status">
        {total === of ? plural(of, "query", "queries") : `${count(total)} of ${plural(of, "query", "queries")}`}
      </p>
    </>
  );
}

function NoQueries({ none }: { none: boolean }) {
  if (!none) return <Empty title="No query matches">Search for less, or for any state and node.</Empty>;
  return <Empty title="No queries yet">Submit one, or put a .sql file into the folder of queries that the job names.</Empty>;
}

function sorting(filter: Filter, order: string): "ascending" | "descending" | "none" {
  return filter.order !== order ? "none" : filter.descending ? "descending" : "ascending";
}

interface RowShown {
  n: number;
  row: QueryRow | undefined;
  active: boolean;
  open: boolean;
  choose: () => void;
}

function Row({ n, row, active, open, choose }: RowShown) {
  const style = { transform: `translateY(${n * ROW}px)` };
  const kind = `grid-row${active ? " active" : ""}${open ? " open" : ""}`;
  if (!row) return <div class={`${kind} coming`} role="row" id={`row-${n}`} aria-rowindex={n + 2} aria-busy="true" style={style} />;
  const opened = () => {
    choose();
    go("queries", row.name);
  };
  return (
    <div class={kind} role="row" id={`row-${n}`} aria-rowindex={n + 2} aria-selected={open} style={style} onClick={opened}>
      <div role="gridcell" class="wide">
        <a href={link("queries", row.name)} tabIndex={-1}>
          {row.name}
        </a>
        <code>{row.sql}</code>
      </div>
      <div role="gridcell" class="mark">
        <State state={row.state} />
      </div>
      <div role="gridcell" class="number">{rate(row.rate)}</div>
      <div role="gridcell" class="number">{seconds(row.delay_s)}</div>
      <div role="gridcell" class="number roomy">{figure(row.pr)}</div>
      <div role="gridcell" class="number roomy">{cost(row.cost)}</div>
      <div role="gridcell" class="roomy">{row.kinds.join(", ")}</div>
      <div role="gridcell" class="place">{row.nodes.join(", ")}</div>
      <div role="gridcell" class="place">
        {row.carriers.join(", ")}
        {row.shared_with > 0 && <small>shared with {count(row.shared_with)}</small>}
      </div>
    </div>
  );
}

/** The rows in sight, asked for in pages; what is known stays on the screen until its newer version is there. */
function useRows(filter: Filter, version: number, view: { top: number; height: number }) {
  const [known, setKnown] = useState<{ pages: Map<number, QueryRow[]>; total: number; of: number; loaded: boolean }>({
    pages: new Map(),
    total: 0,
    of: 0,
    loaded: false,
  });
  const [wrong, setWrong] = useState("");
  const fresh = useRef({ key: "", pages: new Set<number>() });
  const turn = useRef(0);
  const key = JSON.stringify([filter, version]);
  // What is a moment away is asked for too, so that it is there when somebody scrolls to it.
  const first = Math.max(0, Math.floor((view.top / ROW - NEAR) / PAGE));
  const last = Math.floor(((view.top + view.height) / ROW + NEAR) / PAGE);

  useEffect(() => {
    const changed = fresh.current.key !== key;
    const other = changed && !fresh.current.key.startsWith(JSON.stringify([filter]).slice(0, -1));
    if (changed) fresh.current = { key, pages: new Set() };
    if (other) turn.current++;
    const mine = turn.current;
    for (let page = first; page <= last; page++) {
      if (fresh.current.pages.has(page) || (page > 0 && page * PAGE >= known.total && known.loaded && !other)) continue;
      fresh.current.pages.add(page);
      ask<QueryPage>(`console/queries?${query({ ...filter, offset: page * PAGE, limit: PAGE })}`).then(
        (found) => {
          if (mine !== turn.current) return;
          setWrong("");
          setKnown((before) => {
            // Far from what is in sight nothing is kept.
            const near = [...before.pages].filter(([n]) => !other && Math.abs(n - page) < 8);
            return { pages: new Map([...near, [page, found.rows]]), total: found.total, of: found.of, loaded: true };
          });
        },
        (error) => {
          fresh.current.pages.delete(page);
          if (mine === turn.current && error.status !== 0) setWrong(error.message);
        },
      );
    }
  }, [key, first, last, known.total]);

  const row = (n: number) => known.pages.get(Math.floor(n / PAGE))?.[n % PAGE];
  return { total: known.total, of: known.of, row, wrong, loaded: known.loaded };
}
