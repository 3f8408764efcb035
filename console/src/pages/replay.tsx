/** The history on the map: a slider goes through the decisions, and the map shows where fragments were. */
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, query, type ReplayPage as Page, type Standing, type Step } from "../api";
import { count, date, plural, time } from "../format";
import { useLive } from "../live";
import { Canvas } from "../map/canvas";
import type { Chosen } from "../map/chart";
import { drawn, past } from "../map/past";
import { Icon } from "../parts/icon";
import { notifyOf } from "../parts/notices";
import { Empty } from "../parts/small";
import { link } from "../route";
import { grade, Said } from "./history";

const AT_FIRST = 200; // entries
const MORE = 500;
const FURTHEST = 20; // pages that are read to find one entry
const BESIDE = 40; // entries that are listed before the one that is shown, and behind it
const STEP_MS = 700;

interface Told {
  standing: Standing;
  steps: Step[];
  older: boolean;
}

/** `from`: the number of the entry that is shown first, if somebody came from one. */
export function ReplayPage({ from }: { from: string }) {
  const [told, setTold] = useState<Told | null>(null);
  const [at, setAt] = useState(0); // so many of the entries have happened
  const [wrong, setWrong] = useState("");
  const load = useCallback(async () => {
    try {
      const found = await begin(Number(from) || 0);
      setTold(found);
      const shown = found.steps.findIndex(({ number }) => number === Number(from));
      setAt(shown < 0 ? found.steps.length : shown + 1);
      setWrong("");
    } catch (error) {
      setWrong(error instanceof Error ? error.message : String(error));
    }
  }, [from]);
  useEffect(() => void load(), [load]);
  if (wrong) return <Empty title="The history cannot be shown">{wrong}</Empty>;
  if (!told) return <div class="replay" aria-busy="true" />;
  if (!told.steps.length) return <Empty title="Nothing here">Nothing has happened yet.</Empty>;
  const earlier = async () => {
    try {
      const page = await ask<Page>(`console/replay?${query({ before: told.steps[0]!.number, limit: MORE })}`);
      setTold({ ...told, steps: [...page.steps, ...told.steps], older: page.older });
      setAt((before) => before + page.steps.length);
    } catch (error) {
      notifyOf(error);
    }
  };
  return <Replay told={told} at={at} setAt={setAt} earlier={earlier} load={load} />;
}

async function begin(number: number): Promise<Told> {
  const standing = await ask<Standing>("console/standing");
  let before = standing.newest + 1;
  let steps: Step[] = [];
  let older = true;
  for (let pages = 0; older && pages < FURTHEST && (pages === 0 || (number > 0 && before > number)); pages++) {
    const page = await ask<Page>(`console/replay?${query({ before, limit: pages ? MORE : AT_FIRST })}`);
    steps = [...page.steps, ...steps];
    older = page.older;
    before = page.steps[0]?.number ?? 0;
  }
  return { standing, steps, older };
}

interface Shown {
  told: Told;
  at: number;
  setAt: (at: number | ((before: number) => number)) => void;
  earlier: () => void;
  load: () => void;
}

function Replay({ told, at, setAt, earlier, load }: Shown) {
  const { standing, steps } = told;
  const streams = useLive("streams");
  const nodes = useLive("nodes");
  const { newest } = useLive("history");
  const [chosen, choose] = useState<Chosen | null>(null);
  const then = useMemo(() => past(standing, steps, at), [standing, steps, at]);
  const known = nodes.map(({ name }) => name).join();
  const shown = useMemo(() => drawn(then, standing, steps, at, streams, nodes), [then, streams, known]);
  const step = at > 0 ? steps[at - 1]! : null;
  useEffect(() => {
    const spot = step?.came[0] ?? step?.went[0];
    const fragment = spot?.fragment ?? step?.fragment;
    choose(fragment ? { kind: "fragment", id: String(fragment) } : null);
  }, [step]);
  const picked = chosen?.kind === "fragment" ? then.fragments.get(Number(chosen.id)) : undefined;
  return (
    <div class="replay">
      <Canvas shown={shown} chosen={chosen} choose={choose} label="Where fragments were at this moment; the entries beside it say what happened">
        <li class="then">fragment</li>
        <li class="hint">Lines are what carriers read; a dashed one is a move under way</li>
      </Canvas>
      <section class="card timeline" aria-label="Moment">
        <p class="moment" role="status">
          {step ? (
            <>
              <time dateTime={new Date(step.at_us / 1000).toISOString()}>
                {date(step.at_us)}, {time(step.at_us)}
              </time>
              <b>{step.kind}</b>
            </>
          ) : (
            <b>Before the first of these entries</b>
          )}
        </p>
        <Slider steps={steps} at={at} setAt={setAt} />
        <div class="commands">
          {told.older && (
            <button type="button" onClick={earlier}>
              Earlier entries
            </button>
          )}
          <Player at={at} last={steps.length} setAt={setAt} />
          {newest > standing.newest && (
            <button type="button" onClick={load}>
              {plural(newest - standing.newest, "newer entry", "newer entries")}
            </button>
          )}
          <a class="button quiet" href={link("history")}>
            As a list
          </a>
        </div>
      </section>
      <Log steps={steps} at={at} setAt={setAt} />
      {picked && (
        <p class="card picked" role="status">
          Fragment {chosen!.id} in carrier {picked.carrier} on {then.homes.get(picked.carrier)}: {[...picked.queries].slice(0, 3).join(", ")}
          {picked.queries.size > 3 && ` and ${count(picked.queries.size - 3)} more`}
        </p>
      )}
    </div>
  );
}

interface Moment {
  steps: Step[];
  at: number;
  setAt: Shown["setAt"];
}

function Slider({ steps, at, setAt }: Moment) {
  const step = at > 0 ? steps[at - 1]! : null;
  return (
    <input
      type="range"
      min={0}
      max={steps.length}
      step={1}
      value={at}
      aria-label="Moment of the history"
      aria-valuetext={step ? `${time(step.at_us)}, ${step.kind}: ${step.text}` : "before the first of these entries"}
      onInput={(event) => setAt(Number(event.currentTarget.value))}
    />
  );
}

function Player({ at, last, setAt }: { at: number; last: number; setAt: Shown["setAt"] }) {
  const [plays, setPlays] = useState(false);
  useEffect(() => {
    if (!plays) return;
    if (at >= last) return setPlays(false);
    const timer = setTimeout(() => setAt(at + 1), STEP_MS);
    return () => clearTimeout(timer);
  }, [plays, at, last]);
  const play = () => {
    if (!plays && at >= last) setAt(0);
    setPlays(!plays);
  };
  return (
    <>
      <button type="button" aria-label="One entry back" disabled={at === 0} onClick={() => setAt(at - 1)}>
        <Icon name="back" size={18} />
      </button>
      <button type="button" onClick={play}>
        <Icon name={plays ? "pause" : "play"} size={18} /> {plays ? "Stop" : "Play"}
      </button>
      <button type="button" aria-label="One entry on" disabled={at >= last} onClick={() => setAt(at + 1)}>
        <Icon name="move" size={18} />
      </button>
    </>
  );
}

/** The entries around the one that is shown, however many were read. */
function Log({ steps, at, setAt }: Moment) {
  const box = useRef<HTMLOListElement>(null);
  const first = Math.max(0, at - 1 - BESIDE);
  useEffect(() => {
    const shown = box.current?.querySelector<HTMLElement>("[aria-current]");
    if (box.current && shown) box.current.scrollTop = shown.offsetTop - box.current.clientHeight / 2 + shown.clientHeight / 2;
  }, [at, steps]);
  return (
    <section class="card log" aria-label="Entries">
      <ol ref={box} tabIndex={0} aria-label="Entries around this moment">
        {steps.slice(first, at + BESIDE).map((step, k) => (
          <li key={step.number} class={`entry ${grade(step.kind)}${first + k >= at ? " later" : ""}`} aria-current={first + k === at - 1 ? "step" : undefined}>
            <button type="button" class="quiet" onClick={() => setAt(first + k + 1)} aria-label={`Show the moment of entry ${step.number}`}>
              <time>{time(step.at_us)}</time>
            </button>
            <span class="kind">{step.kind}</span>
            <p>
              <Said entry={step} />
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}
