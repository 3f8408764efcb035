/** One query: what it is, where it runs, what it answers. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, ask, query, type HistoryEntry, type MoveLook, type QueryDetails, type Results } from "../api";
import { cost, count, eventTime, figure, NOTHING, plural, rate, seconds, time } from "../format";
import { useLive } from "../live";
import { ask as confirm } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { notify, notifyOf } from "../parts/notices";
import { Empty, Fact, Facts, Sparkline, State } from "../parts/small";
import { MoveSteps } from "../parts/moves";
import { ResultChart } from "../parts/chart";
import { ResultTable } from "../parts/results";
import { Sql } from "../parts/sql";
import { go, link } from "../route";
import { useOperator } from "../session";

const RESULTS_EVERY_MS = 2000;

export function QueryPanel({ name }: { name: string }) {
  const { version } = useLive("queries");
  const [found, setFound] = useState<QueryDetails | null>(null);
  const [wrong, setWrong] = useState("");
  const [rates, setRates] = useState<number[]>([]);
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    let gone = false;
    ask<QueryDetails>(`console/query?${query({ name })}`).then(
      (details) => {
        if (gone) return;
        setFound(details);
        setWrong("");
        if (details.rate !== null) setRates((before) => [...before, details.rate!].slice(-90));
      },
      (error: ApiError) => !gone && error.status !== 0 && setWrong(error.message),
    );
    return () => {
      gone = true;
    };
  }, [name, version]);
  useEffect(() => title.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => event.key === "Escape" && !document.querySelector("dialog[open]") && go("queries");
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  return (
    <aside class="card panel" aria-labelledby="panel-title">
      <header>
        <a class="button quiet only-narrow" href={link("queries")} aria-label="Back to the list">
          <Icon name="back" />
        </a>
        <h2 id="panel-title" ref={title} tabIndex={-1}>
          {name}
        </h2>
        {found && <State state={found.state} />}
        <a class="button quiet only-wide" href={link("queries")} aria-label="Close">
          <Icon name="close" />
        </a>
      </header>
      {wrong ? (
        <Empty title="This query is not running">
          {wrong}. <a href={link("history", name)}>Its history</a> says why.
        </Empty>
      ) : (
        found && <Details found={found} rates={rates} />
      )}
    </aside>
  );
}

function Details({ found, rates }: { found: QueryDetails; rates: number[] }) {
  const operator = useOperator();
  const moves = useLive("moves").filter((move) => found.fragments.includes(move.fragment));
  return (
    <div class="panel-body">
      {found.failed && (
        <div class="banner bad">
          <Icon name="warning" />
          <p>{found.failed}</p>
        </div>
      )}
      {operator && <Commands found={found} />}
      {moves.map((move) => (
        <MoveSteps key={move.number} move={move} />
      ))}
      <section aria-label="Figures">
        <Facts>
          <Fact name="Puts out">
            {rate(found.rate)}
            {found.rate !== null && <small> rows/s</small>}
            <Sparkline values={rates} label="Rows per second of late" />
          </Fact>
          <Fact name="Delay">{seconds(found.delay_s)}</Fact>
          <Fact name="Performance ratio">
            {figure(found.pr)} <small>delay over processing time</small>
          </Fact>
          <Fact name="Cost">
            {cost(found.cost)} <small>estimated</small>
          </Fact>
          <Fact name="Node">{found.nodes.join(", ") || NOTHING}</Fact>
          <Fact name="Carrier">
            {found.carriers.join(", ")} <small>{found.kinds.join(", ")}</small>
          </Fact>
          <Fact name={found.fragments.length === 1 ? "Fragment" : "Fragments"}>{found.fragments.join(", ")}</Fact>
          <Fact name="Shared">{found.shared_with ? `with ${plural(found.shared_with, "other query", "other queries")}` : "with none"}</Fact>
          <Fact name="Answers from">{found.from_us === null ? "the beginning" : eventTime(found.from_us)}</Fact>
        </Facts>
      </section>
      <section aria-labelledby="sql-title">
        <h3 id="sql-title">SQL</h3>
        <Sql text={found.sql} />
      </section>
      <LiveResults name={found.name} />
      <Past name={found.name} />
    </div>
  );
}

function Commands({ found }: { found: QueryDetails }) {
  const nodes = useLive("nodes").filter((node) => node.state === "open");
  const others = nodes.filter((node) => !found.nodes.includes(node.name) || found.nodes.length > 1);
  const move = async (to: string) => {
    try {
      const moves = await ask<MoveLook[]>("moves", { subject: found.name, to });
      notify(`${found.name} sets out for ${to}: ${plural(moves.length, "fragment")}`);
    } catch (error) {
      notifyOf(error);
    }
  };
  const withdraw = async () => {
    const sure = await confirm({
      title: `Withdraw ${found.name}?`,
      text: "It stops answering. Its results stay. A query of the job file comes back with the next start unless it is removed there as well.",
      yes: "Withdraw",
      bad: true,
    });
    if (!sure) return;
    try {
      await ask<string[]>("withdraw", { names: [found.name] });
      notify(`${found.name} was withdrawn`);
      go("queries");
    } catch (error) {
      notifyOf(error);
    }
  };
  return (
    <div class="commands">
      <label class="move-to">
        <Icon name="move" />
        <span class="unseen">Move to</span>
        <select
          value=""
          disabled={!others.length || found.failed !== null}
          onChange={(event) => {
            const to = event.currentTarget.value;
            event.currentTarget.value = "";
            if (to) void move(to);
          }}
        >
          <option value="">{others.length ? "Move…" : "No other node"}</option>
          {others.map((node) => (
            <option key={node.name}>{node.name}</option>
          ))}
        </select>
      </label>
      <a class="button" href={link("new", found.name)}>
        Change
      </a>
      <button type="button" class="bad" disabled={found.failed !== null} onClick={withdraw}>
        Withdraw
      </button>
    </div>
  );
}

function LiveResults({ name }: { name: string }) {
  const [found, setFound] = useState<Results | null>(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    let timer: number | undefined;
    let gone = false;
    const look = async () => {
      if (!document.hidden) {
        try {
          const results = await ask<Results>(`console/results?${query({ name, limit: 100 })}`);
          if (!gone) setFound(results);
          setWrong("");
        } catch (error) {
          if (error instanceof ApiError && error.status !== 0) setWrong(error.message);
        }
      }
      if (!gone) timer = window.setTimeout(look, RESULTS_EVERY_MS);
    };
    void look();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [name]);
  return (
    <section aria-labelledby="results-title">
      <h3 id="results-title">
        Results <small>{found?.rows.length ? `the newest ${count(found.rows.length)}` : ""}</small>
      </h3>
      {wrong ? (
        <p class="muted">{wrong}</p>
      ) : (
        found && (
          <>
            <ResultChart results={found} />
            <ResultTable results={found} />
          </>
        )
      )}
    </section>
  );
}

function Past({ name }: { name: string }) {
  const { newest } = useLive("history");
  const [entries, setEntries] = useState<HistoryEntry[]>([]);
  useEffect(() => {
    ask<HistoryEntry[]>(`history?${query({ query: name, limit: 8 })}`).then(setEntries, () => {});
  }, [name, newest]);
  return (
    <section aria-labelledby="past-title">
      <h3 id="past-title">
        History <a href={link("history", name)}>all of it</a>
      </h3>
      <ol class="past">
        {[...entries].reverse().map((entry) => (
          <li key={entry.number}>
            <time>{time(entry.at_us)}</time>
            <span>
              <b>{entry.kind}</b> {entry.text}
            </span>
          </li>
        ))}
      </ol>
    </section>
  );
}
