/** What planners have answered: kept while the page is open, also when another one is looked at. */
import { useEffect, useState } from "preact/hooks";
import { ApiError, ask, type Applied, type Plan } from "./api";

export interface Outcome {
  state: "waiting" | "planning" | "planned" | "failed";
  plan?: Plan;
  failure?: string;
  applied?: Applied;
}

export type Outcomes = Record<string, Outcome>; // by planner

let outcomes: Outcomes = {};
let turn = 0; // of those that are asked one after the other
const listeners = new Set<() => void>();

function set(planner: string, outcome: Outcome): void {
  outcomes = { ...outcomes, [planner]: outcome };
  listeners.forEach((listener) => listener());
}

export function useOutcomes(): Outcomes {
  const [shown, setShown] = useState(outcomes);
  useEffect(() => {
    const listener = () => setShown(outcomes);
    listeners.add(listener);
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return shown;
}

/** Asks planners one after the other; whoever was to be asked before and was not is left out. */
export async function compare(planners: string[]): Promise<void> {
  stop();
  const mine = turn;
  for (const planner of planners) set(planner, { ...outcomes[planner], state: "waiting" });
  for (const planner of planners) {
    if (mine !== turn) return;
    set(planner, { ...outcomes[planner], state: "planning" });
    try {
      set(planner, { state: "planned", plan: await ask<Plan>("console/plan", { planner }) });
    } catch (error) {
      set(planner, { state: "failed", failure: inWords(error) });
    }
  }
}

/** No further planner is asked. */
export function stop(): void {
  turn++;
  const left = Object.entries(outcomes).filter(([, { state, plan }]) => state !== "waiting" || plan);
  outcomes = Object.fromEntries(left.map(([name, one]) => [name, one.state === "waiting" ? { ...one, state: "planned" } : one]));
  listeners.forEach((listener) => listener());
}

/** Begins the moves of a plan. */
export async function apply({ planner, first }: Plan): Promise<Applied> {
  const moves = first.map(({ fragment, source, target }) => ({ fragment, source, target }));
  const applied = await ask<Applied>("console/apply", { planner, moves });
  set(planner, { ...outcomes[planner]!, applied });
  return applied;
}

function inWords(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  const more = error.problems.map(({ message, hint }) => (hint ? `${message}; ${hint}` : message));
  return [error.message, ...more].join(": ").replace(/\s*\n\s*->\s*/g, "; ");
}
