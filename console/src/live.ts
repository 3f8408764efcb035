/** What the service says as it changes: one stream of events, and whoever shows a part of it. */
import { useEffect, useState } from "preact/hooks";
import { ask, type CarrierLook, type Figures, type MoveLook, type NodeLook, type Session, type StreamLook, type WayLook } from "./api";

export interface Live {
  figures: Figures | null;
  nodes: NodeLook[];
  carriers: CarrierLook[];
  streams: StreamLook[];
  ways: WayLook[];
  moves: MoveLook[];
  history: { newest: number };
  queries: { version: number; count: number };
  connection: "connecting" | "live" | "lost";
  series: Series;
}

/** The last two minutes, a value a second. */
export interface Series {
  rows: number[];
  results: number[];
  trigger: number[];
  loads: Record<string, number[]>; // by node
  carriers: Record<string, { loads: number[]; delays: number[] }>;
}

const KEPT = 120;
const AGAIN_MS = [1000, 2000, 4000, 8000];

const live: Live = {
  figures: null,
  nodes: [],
  carriers: [],
  streams: [],
  ways: [],
  moves: [],
  history: { newest: 0 },
  queries: { version: 0, count: 0 },
  connection: "connecting",
  series: { rows: [], results: [], trigger: [], loads: {}, carriers: {} },
};
const listeners = new Map<keyof Live, Set<() => void>>();
let source: EventSource | null = null;
let last = "";
let failures = 0;
let timer: number | undefined;

function set<K extends keyof Live>(key: K, value: Live[K]): void {
  live[key] = value;
  listeners.get(key)?.forEach((listener) => listener());
}

/** A part of what is known; the component is drawn again when it changes. */
export function useLive<K extends keyof Live>(key: K): Live[K] {
  const [value, setValue] = useState(live[key]);
  useEffect(() => {
    const listener = () => setValue(live[key]);
    const known = listeners.get(key) ?? new Set();
    listeners.set(key, known.add(listener));
    listener();
    return () => void known.delete(listener);
  }, [key]);
  return value;
}

export function connect(whenLoggedOut: () => void): void {
  disconnect();
  const opened = new EventSource(`console/events${last ? `?after=${encodeURIComponent(last)}` : ""}`);
  source = opened;
  opened.addEventListener("change", (event) => {
    failures = 0;
    last = event.lastEventId;
    take(JSON.parse(event.data));
    if (live.connection !== "live") set("connection", "live");
  });
  opened.addEventListener("error", () => {
    set("connection", "lost");
    // The browser itself tries again after a break, but not after a refusal.
    if (opened.readyState !== EventSource.CLOSED) return;
    const wait = AGAIN_MS[Math.min(failures++, AGAIN_MS.length - 1)];
    timer = window.setTimeout(() => {
      ask<Session>("console/session").then(
        ({ role }) => (role === null ? whenLoggedOut() : connect(whenLoggedOut)),
        () => connect(whenLoggedOut),
      );
    }, wait);
  });
}

export function disconnect(): void {
  window.clearTimeout(timer);
  source?.close();
  source = null;
}

function take(sections: Partial<Live>): void {
  for (const [key, value] of Object.entries(sections)) set(key as keyof Live, value as never);
  if (sections.figures) {
    const { rows, results, trigger, loads, carriers } = live.series;
    const grown = (values: number[] | undefined, value: number | null) => [...(values ?? []), value ?? 0].slice(-KEPT);
    set("series", {
      rows: grown(rows, sections.figures.rows_per_s),
      results: grown(results, sections.figures.results_per_s),
      trigger: grown(trigger, sections.figures.trigger_s),
      loads: Object.fromEntries(live.nodes.map(({ name, load }) => [name, grown(loads[name], load)])),
      carriers: Object.fromEntries(
        live.carriers
          .filter(({ runs }) => runs)
          .map(({ id, load, delay_s }) => [id, { loads: grown(carriers[id]?.loads, load), delays: grown(carriers[id]?.delays, delay_s) }]),
      ),
    });
  }
}
