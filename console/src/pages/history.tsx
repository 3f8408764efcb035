/** Every decision with its reason, the newest first. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { ask, query, type HistoryEntry } from "../api";
import { date, time } from "../format";
import { useLive } from "../live";
import { Icon } from "../parts/icon";
import { Empty } from "../parts/small";
import { go, link } from "../route";

const AT_FIRST = 100;

export function HistoryPage({ name }: { name: string }) {
  const { newest } = useLive("history");
  const nodes = useLive("nodes");
  const [node, setNode] = useState("");
  const [words, setWords] = useState("");
  const [limit, setLimit] = useState(AT_FIRST);
  const [entries, setEntries] = useState<HistoryEntry[] | null>(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    let gone = false;
    ask<HistoryEntry[]>(`history?${query({ query: name || undefined, node: node || undefined, limit })}`).then(
      (found) => {
        if (gone) return;
        setEntries(found);
        setWrong("");
      },
      (error) => !gone && error.status !== 0 && setWrong(error.message),
    );
    return () => {
      gone = true;
    };
  }, [name, node, limit, newest]);
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
        {entries?.length === limit && (
          <button type="button" class="more" onClick={() => setLimit(limit * 4)}>
            Show older entries
          </button>
        )}
      </div>
    </section>
  );
}

function Entry({ entry }: { entry: HistoryEntry }) {
  return (
    <li class={`entry ${grade(entry.kind)}`}>
      <time dateTime={new Date(entry.at_us / 1000).toISOString()}>{time(entry.at_us)}</time>
      <span class="kind">{entry.kind}</span>
      <p>
        <Said entry={entry} />
      </p>
    </li>
  );
}

/** The text, with the name of the query it is about as a link. */
function Said({ entry: { text, query } }: { entry: HistoryEntry }) {
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

function grade(kind: string): string {
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
