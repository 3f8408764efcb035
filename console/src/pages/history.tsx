/** Every decision with its reason, the newest first. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApiError, ask, query, type HistoryEntry } from "../api";
import { date, time } from "../format";
import { useLive } from "../live";
import { Icon } from "../parts/icon";
import { Empty } from "../parts/small";
import { go, link } from "../route";

const PAGE = 100; // entries

interface Read {
  of: string; // what was asked for
  entries: HistoryEntry[]; // the oldest first
  older: boolean;
}

export function HistoryPage({ name }: { name: string }) {
  const { newest } = useLive("history");
  const nodes = useLive("nodes");
  const [node, setNode] = useState("");
  const [words, setWords] = useState("");
  const [read, setRead] = useState<Read | null>(null);
  const [wrong, setWrong] = useState("");
  const of = JSON.stringify({ query: name || undefined, node: node || undefined });
  const wanted = useRef(of);
  wanted.current = of;
  const known = read?.of === of ? read.entries : [];
  const look = async (more: { after?: number; before?: number }) => {
    try {
      const found = await ask<HistoryEntry[]>(`history?${query({ ...JSON.parse(of), limit: PAGE, ...more })}`);
      if (wanted.current !== of) return;
      setRead((now) => joined(now, of, found, more));
      setWrong("");
    } catch (error) {
      if (error instanceof ApiError && error.status !== 0) setWrong(error.message);
    }
  };
  // Only what is new is asked for; what is older, when somebody wants to see it.
  useEffect(() => void look({ after: known.at(-1)?.number, before: undefined }), [of, newest]);
  const entries = read?.of === of ? read.entries : null;
  const days = useMemo(() => byDay(matching(entries ?? [], words)), [entries, words]);
  return (
    <section class="card history" aria-label="History">
      <div class="toolbar">
        <div class="search">
          <Icon name="search" />
          <input
            type="search"
            placeholder="Search in what is shown"
            aria-label="Search in what is shown"
            value={words}
            onInput={(event) => setWords(event.currentTarget.value)}
          />
        </div>
        <select aria-label="Node" value={node} onChange={(event) => setNode(event.currentTarget.value)}>
          <option value="">Any node</option>
          {nodes.map((one) => (
            <option key={one.name}>{one.name}</option>
          ))}
        </select>
        <a class="button" href={link("replay")}>
          <Icon name="play" size={18} />
          <span>Replay on the map</span>
        </a>
        {name && (
          <button type="button" class="chip" onClick={() => go("history")} aria-label={`Not only of ${name}`}>
            {name} <Icon name="close" size={16} />
          </button>
        )}
      </div>
      {wrong && <Empty title="The history cannot be shown">{wrong}</Empty>}
      {entries && !days.length && !wrong && <Empty title="Nothing here">Nothing matches, or nothing has happened yet.</Empty>}
      <div class="days">
        {days.map(([day, found]) => (
          <section key={day} aria-label={day}>
            <h2>{day}</h2>
            <ol>
              {found.map((entry) => (
                <Entry key={entry.number} entry={entry} />
              ))}
            </ol>
          </section>
        ))}
        {read?.of === of && read.older && (
          <button type="button" class="more" onClick={() => void look({ before: known[0]?.number })}>
            Show older entries
          </button>
        )}
      </div>
    </section>
  );
}

/** A page of entries with those that are known. When more are new than a page has, it begins again with that page. */
function joined(now: Read | null, of: string, found: HistoryEntry[], { after, before }: { after?: number; before?: number }): Read {
  const known = now?.of === of ? now.entries : [];
  const full = found.length === PAGE;
  if (before !== undefined) return { of, entries: [...found, ...known.filter(({ number }) => number >= before)], older: full };
  if (after === undefined || full) return { of, entries: found, older: full };
  return { of, entries: [...known, ...found.filter(({ number }) => number > (known.at(-1)?.number ?? 0))], older: now?.older ?? false };
}

function Entry({ entry }: { entry: HistoryEntry }) {
  return (
    <li class={`entry ${grade(entry.kind)}`}>
      <a class="when" href={link("replay", String(entry.number))} title="Show this moment on the map">
        <time dateTime={new Date(entry.at_us / 1000).toISOString()}>{time(entry.at_us)}</time>
      </a>
      <span class="kind">{entry.kind}</span>
      <p>
        <Said entry={entry} />
      </p>
    </li>
  );
}

/** The text, with the name of the query it is about as a link. */
export function Said({ entry: { text, query } }: { entry: HistoryEntry }) {
  const at = query === null ? -1 : text.indexOf(query);
  if (query === null || at < 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, at)}
      <a href={link("queries", query)}>{query}</a>
      {text.slice(at + query.length)}
    </>
  );
}

export function grade(kind: string): string {
  if (/refused|abandoned|failed|lost|fault|aside|full/.test(kind)) return "bad";
  if (/slow|restarted|missed|paused|clock|advice/.test(kind)) return "odd";
  return /^move|drain/.test(kind) ? "moving" : "";
}

function matching(entries: HistoryEntry[], words: string): HistoryEntry[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return entries.filter(({ kind, text, query }) => {
    const said = `${kind} ${text} ${query ?? ""}`.toLowerCase();
    return wanted.every((word) => said.includes(word));
  });
}

function byDay(entries: HistoryEntry[]): [string, HistoryEntry[]][] {
  const days = new Map<string, HistoryEntry[]>();
  for (const entry of [...entries].reverse()) {
    const day = date(entry.at_us);
    days.set(day, [...(days.get(day) ?? []), entry]);
  }
  return [...days];
}
