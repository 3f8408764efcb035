/** A new query, or a new version of one: checked as one types, explained before it is submitted. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, ask, query, type Checked, type Explained, type Mistake, type QueryDetails, type Underlined } from "../api";
import { rate } from "../format";
import { useLive } from "../live";
import { Icon } from "../parts/icon";
import { notify } from "../parts/notices";
import { Plan } from "../parts/plan";
import { SqlEditor } from "../parts/sql";
import { go, link } from "../route";
import { useOperator } from "../session";

const TYPING_MS = 250;
const NOTHING_CHECKED: Checked = { problems: [], columns: {} };

export function SubmitPage({ from }: { from: string }) {
  const operator = useOperator();
  const [name, setName] = useState(from);
  const [sql, setSql] = useState("");
  const [node, setNode] = useState("");
  const [start, setStart] = useState("now");
  const [checked, setChecked] = useState<{ text: string; found: Checked }>({ text: "", found: NOTHING_CHECKED });
  const [explained, setExplained] = useState<{ sql: string; found: Explained } | null>(null);
  const [refused, setRefused] = useState<Mistake[]>([]);
  const [busy, setBusy] = useState("");
  const turn = useRef(0);
  const nodes = useLive("nodes").filter((one) => one.state === "open");

  useEffect(() => {
    if (from) ask<QueryDetails>(`console/query?${query({ name: from })}`).then((known) => setSql(known.sql.trim()), () => {});
  }, [from]);
  useEffect(() => {
    setRefused([]);
    const mine = ++turn.current;
    if (!sql.trim()) {
      setChecked({ text: sql, found: NOTHING_CHECKED });
      return;
    }
    const timer = setTimeout(() => {
      ask<Checked>("console/check", { sql, name }).then(
        (found) => mine === turn.current && setChecked({ text: sql, found }),
        () => {},
      );
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [sql, name]);

  // What was found in an older text is underlined no more, as soon as something else is written.
  const problems = checked.text === sql ? checked.found.problems : [];
  const good = checked.text === sql && sql.trim() !== "" && problems.length === 0;
  const columns = Object.entries(checked.found.columns);

  const failed = (error: unknown) => {
    const known = error instanceof ApiError ? error : new ApiError(0, String(error));
    setRefused(known.problems.length ? known.problems : [{ where: "", message: known.message, hint: "", excerpt: "" }]);
  };
  const explain = async () => {
    setBusy("explain");
    try {
      setExplained({ sql, found: await ask<Explained>("console/explain", { sql }) });
    } catch (error) {
      failed(error);
    }
    setBusy("");
  };
  const submit = async () => {
    if (!name.trim()) {
      document.getElementById("query-name")?.focus();
      setRefused([{ where: "", message: "Give the query a name.", hint: "", excerpt: "" }]);
      return;
    }
    setBusy("submit");
    try {
      const said = { sql, from: start, ...(node ? { node } : {}) };
      await ask("queries", { queries: { [name.trim()]: said }, folder: "/" });
      notify(`${name.trim()} was submitted`);
      go("queries", name.trim());
    } catch (error) {
      failed(error);
    }
    setBusy("");
  };
  return (
    <div class="submit">
      <section class="card editor-card" aria-labelledby="new-title">
        <header>
          <a class="button quiet" href={link("queries", from)} aria-label="Back to the queries">
            <Icon name="back" />
          </a>
          <h2 id="new-title">{from ? `Change ${from}` : "New query"}</h2>
        </header>
        {!operator && <p class="muted">You are logged in as a reader: you can check and explain a query, but not submit it.</p>}
        <div class="fields">
          <label>
            Name
            <input
              id="query-name"
              value={name}
              placeholder="high-bids"
              spellcheck={false}
              autocomplete="off"
              onInput={(event) => setName(event.currentTarget.value)}
            />
          </label>
          <label>
            Begins on
            <select value={node} onChange={(event) => setNode(event.currentTarget.value)}>
              <option value="">any node</option>
              {nodes.map((one) => (
                <option key={one.name}>{one.name}</option>
              ))}
            </select>
          </label>
          <label>
            Answers from
            <select value={start} onChange={(event) => setStart(event.currentTarget.value)}>
              <option value="now">now</option>
              <option value="beginning">the beginning</option>
            </select>
          </label>
        </div>
        <SqlEditor id="query-sql" label="SQL" value={sql} problems={problems} change={setSql} submit={() => void submit()} />
        <div id="problems" aria-live="polite">
          <Problems problems={problems} />
          {refused.map((mistake) => (
            <p key={mistake.message} class="problem">
              <Icon name="warning" size={18} />
              <span>
                {mistake.where && <b>{mistake.where} </b>}
                {mistake.message}
                {mistake.hint && <small>{mistake.hint}</small>}
              </span>
            </p>
          ))}
          {good && (
            <p class="fine">
              <Icon name="check" size={18} />
              <span>
                Puts out{" "}
                {columns.map(([column, type]) => (
                  <code key={column}>
                    {column} <i>{type}</i>
                  </code>
                ))}
              </span>
            </p>
          )}
        </div>
        <div class="commands">
          <button type="button" disabled={!good || busy !== ""} onClick={explain}>
            <Icon name="tree" /> {busy === "explain" ? "Planning…" : "Explain"}
          </button>
          {operator && (
            <button type="button" class="main" disabled={!good || busy !== ""} aria-keyshortcuts="Control+Enter" onClick={submit}>
              <Icon name="play" /> {busy === "submit" ? "Submitting…" : "Submit"}
            </button>
          )}
        </div>
      </section>
      <div class="beside">
        {explained && <Plan found={explained.found} old={explained.sql !== sql} />}
        <Streams insert={(word) => setSql((before) => (before && !/\s$/.test(before) ? `${before} ${word}` : before + word))} />
      </div>
    </div>
  );
}

function Problems({ problems }: { problems: Underlined[] }) {
  return (
    <>
      {problems.map((problem) => (
        <p key={`${problem.line} ${problem.column} ${problem.message}`} class="problem">
          <Icon name="warning" size={18} />
          <span>
            {problem.line !== null && <b>Line {problem.line} </b>}
            {problem.message}
            {problem.hint && <small>{problem.hint}</small>}
          </span>
        </p>
      ))}
    </>
  );
}

function Streams({ insert }: { insert: (word: string) => void }) {
  const streams = useLive("streams");
  return (
    <section class="card streams" aria-labelledby="streams-title">
      <h2 id="streams-title">Streams</h2>
      {streams.map((stream) => (
        <details key={stream.name} open={streams.length <= 3}>
          <summary>
            <b>{stream.name}</b> <small>{rate(stream.rate)} rows/s declared</small>
          </summary>
          <ul>
            {Object.entries(stream.columns).map(([column, type]) => (
              <li key={column}>
                <button type="button" class="quiet" onClick={() => insert(column)} title={`Put ${column} into the query`}>
                  {column} <small>{column === stream.time ? "event time" : type}</small>
                </button>
              </li>
            ))}
          </ul>
        </details>
      ))}
    </section>
  );
}
