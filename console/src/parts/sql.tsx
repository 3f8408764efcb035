/** SQL with its words in colours, and an editor that underlines what is wrong. */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { Underlined } from "../api";

const KEYWORDS = new Set(
  ("select from where and or not in is null as on join inner left group by having union all between like case when then " +
    "else end cast range slide seconds second minutes minute hours hour milliseconds days day with distinct exists true " +
    "false interval over order limit").split(" "),
);
const TOKEN = /('(?:[^']|'')*'?)|(--[^\n]*)|(\b\d+(?:\.\d+)?\b)|([A-Za-z_][A-Za-z0-9_]*)(\s*\()?/g;

interface Span {
  start: number;
  end: number;
  kind: string;
}

function spans(text: string): Span[] {
  return [...text.matchAll(TOKEN)].flatMap((match): Span[] => {
    const start = match.index;
    const word = match[4];
    if (match[1]) return [{ start, end: start + match[1].length, kind: "text" }];
    if (match[2]) return [{ start, end: start + match[2].length, kind: "comment" }];
    if (match[3]) return [{ start, end: start + match[3].length, kind: "digits" }];
    if (word && KEYWORDS.has(word.toLowerCase())) return [{ start, end: start + word.length, kind: "keyword" }];
    return word && match[5] ? [{ start, end: start + word.length, kind: "function" }] : [];
  });
}

/** Where a mistake is, as offsets into the text. */
export function placeOf(text: string, { line, column, length }: Underlined): { start: number; end: number } | null {
  if (line === null || column === null) return null;
  const before = text.split("\n").slice(0, line - 1);
  const start = before.reduce((sum, one) => sum + one.length + 1, 0) + characters(text.split("\n")[line - 1] ?? "", column - 1);
  const end = start + Math.max(1, characters(text.slice(start), length ?? 1));
  return { start, end };
}

/** The service counts characters, JavaScript halves of some. */
function characters(text: string, n: number): number {
  return [...text].slice(0, n).join("").length;
}

function coloured(text: string, wrong: { start: number; end: number }[]): ComponentChildren[] {
  const tokens = spans(text);
  const edges = new Set([0, text.length]);
  for (const { start, end } of [...tokens, ...wrong]) edges.add(start).add(Math.min(end, text.length));
  const sorted = [...edges].sort((a, b) => a - b);
  let token = 0;
  return sorted.slice(0, -1).map((start, n) => {
    while (token < tokens.length && tokens[token]!.end <= start) token++;
    const here = tokens[token];
    const kind = here && here.start <= start ? here.kind : "";
    const bad = wrong.some((place) => place.start <= start && start < place.end);
    const piece = text.slice(start, sorted[n + 1]);
    return kind || bad ? <span key={start} class={`${kind}${bad ? " wrong" : ""}`}>{piece}</span> : piece;
  });
}

export function Sql({ text }: { text: string }) {
  return (
    <pre class="sql" tabIndex={0}>
      <code>{coloured(text.trim(), [])}</code>
    </pre>
  );
}

interface EditorShown {
  id: string;
  value: string;
  problems: Underlined[];
  change: (value: string) => void;
  submit: () => void;
  label: string;
}

/** A plain text area, with the same text in colours behind it. */
export function SqlEditor({ id, value, problems, change, submit, label }: EditorShown) {
  const behind = useRef<HTMLPreElement>(null);
  const wrong = problems.map((problem) => placeOf(value, problem)).filter((place) => place !== null);
  return (
    <div class={wrong.length ? "editor wrong" : "editor"}>
      <pre ref={behind} class="sql" aria-hidden="true">
        <code>
          {coloured(value, wrong)}
          {wrong.some(({ start }) => start >= value.length) && <span class="wrong"> </span>}
          {"\n"}
        </code>
      </pre>
      <textarea
        id={id}
        aria-label={label}
        aria-invalid={wrong.length > 0}
        aria-describedby="problems"
        placeholder="SELECT … FROM … WHERE …"
        spellcheck={false}
        autocapitalize="off"
        autocomplete="off"
        value={value}
        onInput={(event) => change(event.currentTarget.value)}
        onScroll={(event) => {
          if (behind.current) {
            behind.current.scrollTop = event.currentTarget.scrollTop;
            behind.current.scrollLeft = event.currentTarget.scrollLeft;
          }
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
        }}
      />
    </div>
  );
}
