/** Where fragments were: from what stands now back through the history, entry by entry. */
import type { CarrierLook, MoveLook, NodeLook, PastCarrier, Spot, Standing, Step, StreamLook } from "../api";
import type { Shown } from "./chart";

const MOST_DRAWN = 40; // fragments of a carrier, as many as on the map of now
const MOST_NAMES = 3; // queries of a fragment

interface Past {
  fragments: Map<number, { carrier: string; queries: Set<string> }>;
  seats: Map<string, Set<number>>; // by query, its fragments
  homes: Map<string, string>; // by carrier, its node
}

/** After the first `n` of some entries, of which the last one is the newest that there was. */
export function past(standing: Standing, steps: Step[], n: number): Past {
  const found: Past = { fragments: new Map(), seats: new Map(), homes: new Map(standing.carriers.map(({ id, node }) => [id, node])) };
  for (const [fragment, carrier, query] of standing.fragments) enter(found, query, { fragment, carrier });
  for (let k = steps.length - 1; k >= n; k--) undo(found, steps[k]!);
  return found;
}

function enter({ fragments, seats }: Past, query: string, { fragment, carrier }: Spot): void {
  const known = fragments.get(fragment) ?? { carrier, queries: new Set() };
  fragments.set(fragment, known);
  known.queries.add(query);
  const own = seats.get(query) ?? new Set();
  seats.set(query, own.add(fragment));
}

function leave({ fragments, seats }: Past, query: string, fragment: number): void {
  const known = fragments.get(fragment);
  known?.queries.delete(query);
  if (known?.queries.size === 0) fragments.delete(fragment);
  seats.get(query)?.delete(fragment);
}

function undo(found: Past, { kind, query, came, went, queries, taken, nodes }: Step): void {
  if (taken) found.homes.set(taken.carrier, taken.source);
  if (kind === "submitted" && query !== null && came.length) {
    for (const fragment of [...(found.seats.get(query) ?? [])]) leave(found, query, fragment);
  } else if (kind === "withdrawn" && query !== null) {
    for (const spot of went) enter(found, query, spot);
  } else if (came.length === 1 && went.length === 1) {
    const [to, from] = [came[0]!, went[0]!];
    const there = found.fragments.get(to.fragment)?.queries ?? new Set<string>();
    const moved = queries.length ? queries.filter((name) => there.has(name)) : [...there];
    for (const name of moved) {
      leave(found, name, to.fragment);
      enter(found, name, from);
    }
    // A carrier that is no more is known by its entries only.
    if (!found.homes.has(from.carrier) && nodes[0]) found.homes.set(from.carrier, nodes[0]);
  }
}

/** What the map draws of it. */
export function drawn(past: Past, standing: Standing, steps: Step[], n: number, streams: StreamLook[], nodes: NodeLook[]): Shown {
  const known = new Map(standing.carriers.map((carrier) => [carrier.id, carrier]));
  const inside = new Map<string, number[]>();
  for (const [fragment, { carrier }] of past.fragments) inside.set(carrier, [...(inside.get(carrier) ?? []), fragment]);
  const told = new Set(steps.flatMap(({ came, went }) => [...came, ...went].map(({ fragment }) => fragment)));
  const carriers = [...inside].map(([id, fragments]) => carrierOf(id, fragments.length, past, known.get(id)));
  const names = [...new Set([...nodes.map(({ name }) => name), ...carriers.map(({ node }) => node)])];
  return {
    past: true,
    streams,
    nodes: names.map((name) => nodeOf(name, carriers.filter(({ node }) => node === name))),
    carriers: carriers.sort((one, other) => one.id.length - other.id.length || (one.id < other.id ? -1 : 1)),
    ways: [],
    moves: underWay(steps.slice(0, n)),
    inside: [...inside].map(([carrier, fragments]) => ({
      carrier,
      count: fragments.length,
      // Those that something happens to are drawn before all others.
      drawn: fragments
        .sort((one, other) => Number(told.has(other)) - Number(told.has(one)) || one - other)
        .slice(0, MOST_DRAWN)
        .sort((one, other) => one - other)
        .map((number) => {
          const queries = [...past.fragments.get(number)!.queries];
          return { number, queries: queries.slice(0, MOST_NAMES), users: queries.length, rate: 0 };
        }),
    })),
  };
}

function carrierOf(id: string, fragments: number, { homes }: Past, known?: PastCarrier): CarrierLook {
  return {
    id,
    node: homes.get(id) ?? "",
    kind: known?.kind ?? "",
    carriers: known?.carriers ?? "",
    streams: known?.streams ?? [],
    queries: 0,
    fragments,
    runs: true,
    rows_per_s: 0,
    trigger_s: null,
    load: null,
    delay_s: null,
    pr: null,
    late: 0,
    event_us: null,
  };
}

function nodeOf(name: string, carriers: CarrierLook[]): NodeLook {
  const fragments = carriers.reduce((sum, carrier) => sum + carrier.fragments, 0);
  return { name, type: "", state: "open", cores: null, load: null, carriers: carriers.length, fragments, rows_per_s: 0 };
}

const STEPS: Record<string, string> = { "move begun": "warming", "move fenced": "fenced", "move missed": "fenced", "move passed": "draining" };

/** The moves that had begun and were not over. */
function underWay(steps: Step[]): MoveLook[] {
  const found = new Map<number, MoveLook>();
  for (const { kind, fragment, nodes, text, number, came } of steps) {
    if (fragment === null) continue;
    const step = STEPS[kind];
    if (kind === "move drained" || kind === "move abandoned") found.delete(fragment);
    else if (kind === "move begun") {
      const used_by = /^fragment \d+ \((.*?)\) sets out/.exec(text)?.[1] ?? `fragment ${fragment}`;
      const [source = "", target = ""] = nodes;
      found.set(fragment, { number, fragment, used_by, source, target, carriers: ["", ""], step: "warming", fence_us: null, fences: 0, reason: "" });
    } else if (step && found.has(fragment)) {
      const move = found.get(fragment)!;
      found.set(fragment, { ...move, step, carriers: [move.carriers[0]!, came[0]?.carrier ?? ""] });
    }
  }
  return [...found.values()];
}
