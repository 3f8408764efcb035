/** What the service is asked and answers. The types are those of its description, /openapi.json. */

export interface Mistake {
  where: string;
  message: string;
  hint: string;
  excerpt: string;
}

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly problems: Mistake[] = [],
  ) {
    super(message);
  }
}

let loggedOut: () => void = () => {};

/** What is done when the service does not know who asks any more. */
export function onLoggedOut(does: () => void): void {
  loggedOut = does;
}

export async function ask<T>(path: string, body?: unknown, method = body === undefined ? "GET" : "POST"): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      credentials: "same-origin",
    });
  } catch {
    throw new ApiError(0, "The service does not answer. It may be starting again.");
  }
  if (response.status === 204) return undefined as T;
  const answer = await response.json().catch(() => ({ message: `an answer that is no JSON (${response.status})` }));
  if (response.ok) return answer as T;
  if (response.status === 401 && path !== "console/session") loggedOut(); // a wrong token is no reason to log out
  throw new ApiError(response.status, answer.title ?? answer.message, answer.problems ?? []);
}

export function query(values: Record<string, string | number | boolean | undefined>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== "" && value !== false);
  return new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
}

export interface Session {
  role: "operator" | "reader" | null; // null: nobody is logged in
  job: string;
  lasts_s: number;
}

export interface QueryRow {
  name: string;
  state: string;
  sql: string;
  nodes: string[];
  carriers: string[];
  kinds: string[];
  shared_with: number;
  rate: number | null;
  delay_s: number | null;
  pr: number | null;
  cost: number | null; // the part of the time that it takes, about
}

export interface QueryPage {
  total: number;
  of: number;
  offset: number;
  rows: QueryRow[];
  states: Record<string, number>;
}

export interface QueryDetails extends QueryRow {
  fragments: number[];
  seats: string[];
  from_us: number | null;
  failed: string | null;
}

export interface Figures {
  queries: number;
  results: number;
  results_per_s: number;
  rows_per_s: number;
  trigger_s: number | null;
  slowest_s: number | null;
  event_us: number | null;
  restarts: number;
  late: number;
  rejected: number;
  troubles: string[];
  aside: number;
}

export interface NodeLook {
  name: string;
  type: string;
  state: string;
  cores: number | null;
  load: number | null;
  carriers: number;
  fragments: number;
  rows_per_s: number;
}

export interface CarrierLook {
  id: string;
  node: string;
  kind: string;
  carriers: string;
  streams: string[];
  queries: number;
  fragments: number;
  runs: boolean;
  rows_per_s: number;
  trigger_s: number | null;
  load: number | null;
  delay_s: number | null;
  pr: number | null;
  late: number;
  event_us: number | null;
}

export interface StreamLook {
  name: string;
  rate: number;
  node: string | null;
  columns: Record<string, string>;
  time: string;
}

export interface WayLook {
  source: string;
  target: string;
  latency_s: number;
  known: string;
  bytes_per_s: number;
  streams: number;
  delay_s: number | null;
}

export interface MoveLook {
  number: number;
  fragment: number;
  used_by: string;
  source: string;
  target: string;
  carriers: string[];
  step: string;
  fence_us: number | null;
  fences: number;
  reason: string;
}

export interface CarrierFragments {
  carrier: string;
  count: number;
  drawn: { number: number; queries: string[]; users: number; rate: number }[];
}

export interface HistoryEntry {
  number: number;
  at_us: number;
  kind: string;
  text: string;
  query: string | null;
  fragment: number | null;
  nodes: string[];
}

export interface Underlined {
  message: string;
  hint: string;
  line: number | null;
  column: number | null;
  length: number | null;
}

export interface Checked {
  problems: Underlined[];
  columns: Record<string, string>;
}

export interface Operator {
  operator: string;
  detail: string;
  rate: number;
  fragment: number | null;
  inputs: Operator[];
}

export interface Explained {
  translation: string;
  note: string;
  plan: Operator;
  pieces: {
    derived: string | null;
    start: string;
    template: Record<string, string[]>;
    parameters: Record<string, string[]>;
    seats: { node: string; carrier: string; kind: string; sharing: string; equal: string[] }[];
  }[];
}

export interface Results {
  columns: string[];
  numbers: boolean[];
  rows: (string | number | boolean | null)[][];
  more: boolean;
}

export interface PlannerLook {
  name: string;
  help: string;
  objective: string | null;
  missing: string; // what it needs to run here; empty: nothing
}

export interface MetricLook {
  name: string;
  unit: string;
  better: "lower" | "higher";
  meaning: string;
}

export interface Planners {
  planners: PlannerLook[];
  metrics: MetricLook[];
  limit_s: number;
  most_moves: number;
}

export type MetricValue = number | "unbounded" | null;

export interface PlannedMove {
  fragment: string;
  query: string;
  source: string;
  target: string;
}

export interface Plan {
  planner: string;
  measured_us: number;
  fragments: number;
  moves: number;
  first: PlannedMove[]; // as many of the moves as are begun together
  metrics: Record<string, { now: MetricValue; then: MetricValue }>;
  too_full: string[];
  seconds: number;
}

export interface Applied {
  begun: number;
  staying: { fragment: string; reason: string }[];
}

export interface Spot {
  fragment: number;
  carrier: string;
}

/** An entry of the history, with what it changed of where things are. */
export interface Step extends HistoryEntry {
  came: Spot[];
  went: Spot[];
  queries: string[]; // of a fragment that moves, those that went with it
  taken: { carrier: string; source: string; target: string } | null;
}

export interface ReplayPage {
  steps: Step[]; // the oldest first
  older: boolean;
}

export interface PastCarrier {
  id: string;
  node: string;
  kind: string;
  carriers: string;
  streams: string[];
}

/** What there was when the newest entry was written. */
export interface Standing {
  newest: number;
  carriers: PastCarrier[];
  fragments: [fragment: number, carrier: string, query: string][];
}
