/** The plan room: what planners would do with the job as it was measured, side by side; one of their plans can be carried out. */
import { useEffect, useState } from "preact/hooks";
import { ask, type MetricLook, type MetricValue, type Plan, type PlannerLook, type Planners } from "../api";
import { count, figure, plural, seconds, time } from "../format";
import { useLive } from "../live";
import { ask as confirm } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { MoveSteps } from "../parts/moves";
import { notify, notifyOf } from "../parts/notices";
import { Empty } from "../parts/small";
import { apply, compare, type Outcome, stop, useOutcomes } from "../planning";
import { link } from "../route";
import { useOperator } from "../session";

const MAIN = ["load.highest", "load.deviation", "zhou.pr_max", "sbon.network_usage", "sbon.delay"];
const MOST_SHOWN = 60; // moves in the list

export function PlanPage() {
  const [known, setKnown] = useState<Planners | null>(null);
  const [wrong, setWrong] = useState("");
  const [chosen, setChosen] = useState("");
  const outcomes = useOutcomes();
  const moves = useLive("moves");
  useEffect(() => {
    ask<Planners>("console/planners").then(setKnown, (error) => setWrong(error.message));
  }, []);
  if (wrong) return <Empty title="The planners cannot be listed">{wrong}</Empty>;
  if (!known) {
    return (
      <section class="card" aria-busy="true">
        <Empty title="Looking for planners">The first time this takes a moment.</Empty>
      </section>
    );
  }
  const plan = outcomes[chosen]?.plan;
  return (
    <div class={plan ? "plan-room with-plan" : "plan-room"}>
      <Comparison known={known} chosen={chosen} choose={setChosen} />
      {plan && <Details key={chosen} plan={plan} outcome={outcomes[chosen]!} known={known} />}
      {moves.length > 0 && (
        <section class="card moves" aria-labelledby="moves-title">
          <h2 id="moves-title">
            {plural(moves.length, "move")} under way <a href={link("map")}>on the map</a>
          </h2>
          {moves.slice(0, 3).map((move) => (
            <MoveSteps key={move.number} move={move} />
          ))}
          {moves.length > 3 && <p class="muted">and {count(moves.length - 3)} more</p>}
        </section>
      )}
    </div>
  );
}

interface Choice {
  known: Planners;
  chosen: string;
  choose: (planner: string) => void;
}

function Comparison({ known, chosen, choose }: Choice) {
  const outcomes = useOutcomes();
  const [papers, setPapers] = useState("");
  const groups = [...new Set(known.metrics.map(({ name }) => group(name)))];
  const metrics = known.metrics.filter(({ name }) => (papers ? group(name) === papers : MAIN.includes(name)));
  const able = known.planners.filter(({ missing }) => !missing);
  const busy = Object.values(outcomes).some(({ state }) => state === "waiting" || state === "planning");
  const answered = Object.values(outcomes).find(({ plan }) => plan)?.plan;
  return (
    <section class="card comparison" aria-labelledby="planners-title">
      <header>
        <div>
          <h2 id="planners-title">What planners would do now</h2>
          <p class="muted">
            {answered
              ? `With ${plural(answered.fragments, "fragment")}, measured at ${time(answered.measured_us)}. Nothing moves by asking.`
              : `Each is given what the control loop has measured, and ${count(known.limit_s)} s at most. Nothing moves by asking.`}
          </p>
        </div>
        <div class="commands">
          <select aria-label="Metrics" value={papers} onChange={(event) => setPapers(event.currentTarget.value)}>
            <option value="">Main metrics</option>
            {groups.map((one) => (
              <option key={one} value={one}>
                Metrics of {one}
              </option>
            ))}
          </select>
          {busy ? (
            <button type="button" onClick={stop}>
              Stop
            </button>
          ) : (
            <button type="button" class="main" onClick={() => void compare(able.map(({ name }) => name))}>
              Compare all
            </button>
          )}
        </div>
      </header>
      <div class="figures-table" tabIndex={0} role="region" aria-label="Planners and metrics">
        <table>
          <thead>
            <tr>
              <th scope="col">Planner</th>
              <th scope="col" class="number">
                Moves
              </th>
              {metrics.map((metric) => (
                <th key={metric.name} scope="col" class="number" title={`${metric.meaning}; ${metric.better} is better`}>
                  {group(metric.name)}.
                  <wbr />
                  {metric.name.slice(group(metric.name).length + 1)}
                  {metric.unit && <small> {metric.unit}</small>}
                </th>
              ))}
              <th scope="col" class="number">
                Took
              </th>
            </tr>
          </thead>
          <tbody>
            {answered && (
              <tr class="now">
                <th scope="row">As it is now</th>
                <td class="number">0</td>
                {metrics.map(({ name }) => (
                  <td key={name} class="number">
                    {figure(answered.metrics[name]?.now ?? null)}
                  </td>
                ))}
                <td />
              </tr>
            )}
            {known.planners.map((planner) => (
              <Row key={planner.name} planner={planner} outcome={outcomes[planner.name]} metrics={metrics} chosen={chosen === planner.name} choose={choose} busy={busy} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function group(metric: string): string {
  return metric.split(".")[0] ?? "";
}

interface RowShown {
  planner: PlannerLook;
  outcome: Outcome | undefined;
  metrics: MetricLook[];
  chosen: boolean;
  choose: (planner: string) => void;
  busy: boolean;
}

function Row({ planner, outcome, metrics, chosen, choose, busy }: RowShown) {
  const { name, help, missing } = planner;
  const plan = outcome?.plan;
  return (
    <tr class={chosen ? "picked-row" : undefined}>
      <th scope="row">
        {plan ? (
          <button type="button" class="quiet" aria-pressed={chosen} onClick={() => choose(chosen ? "" : name)}>
            {name}
          </button>
        ) : (
          name
        )}
        <small title={help}>{help}</small>
      </th>
      {plan ? (
        <>
          <td class="number">{count(plan.moves)}</td>
          {metrics.map((metric) => (
            <Then key={metric.name} metric={metric} {...plan.metrics[metric.name]!} />
          ))}
          <td class="number">{outcome.state === "planned" ? seconds(plan.seconds) : "again…"}</td>
        </>
      ) : (
        <td colSpan={metrics.length + 2} class={outcome?.failure ? "failure" : "muted"}>
          {missing ? missing.replace(/\s*->\s*/, "; ") : outcome ? (outcome.failure ?? (outcome.state === "waiting" ? "waits for its turn" : "is planning…")) : ""}
          {!missing && !busy && (
            <button type="button" class="quiet ask" onClick={() => void compare([name])} aria-label={`Ask ${name}`}>
              {outcome ? "Ask again" : "Ask"}
            </button>
          )}
        </td>
      )}
    </tr>
  );
}

/** A metric as it would be; better and worse are said in words too, since colours alone do not. */
function Then({ metric, now, then }: { metric: MetricLook; now: MetricValue; then: MetricValue }) {
  const change = compared(metric, now, then);
  return (
    <td class={`number ${change}`}>
      {figure(then)}
      {change !== "same" && (
        <>
          <i aria-hidden="true">{size(then)! < size(now)! ? "↓" : "↑"}</i>
          <span class="unseen">, {change} than now</span>
        </>
      )}
    </td>
  );
}

function compared({ better }: MetricLook, now: MetricValue, then: MetricValue): "better" | "worse" | "same" {
  const [one, other] = [size(now), size(then)];
  if (one === null || other === null || one === other || Math.abs(other - one) <= 1e-9 * Math.abs(one)) return "same";
  return other < one === (better === "lower") ? "better" : "worse";
}

function size(value: MetricValue): number | null {
  return value === "unbounded" ? Infinity : value;
}

function Details({ plan, outcome, known }: { plan: Plan; outcome: Outcome; known: Planners }) {
  const operator = useOperator();
  const [busy, setBusy] = useState(false);
  const some = plan.first.length;
  const all = some === plan.moves;
  const carryOut = async () => {
    const rest = all ? "" : ` The other ${count(plan.moves - some)} of the plan stay for now: ask again when these are done.`;
    const sure = await confirm({
      title: `Move ${plural(some, "fragment")} as ${plan.planner} places them?`,
      text: `${all ? "" : `${count(some)} of ${count(plan.moves)} moves begin. `}Each moves by a fence: no row is lost or comes twice, and no query pauses.${rest}`,
      yes: some === 1 ? "Move 1 fragment" : `Move ${count(some)} fragments`,
    });
    if (!sure) return;
    setBusy(true);
    try {
      const { begun, staying } = await apply(plan);
      notify(`${plural(begun, "fragment")} set out${staying.length ? `, ${count(staying.length)} stay` : ""}`, begun === 0);
    } catch (error) {
      notifyOf(error);
    }
    setBusy(false);
  };
  return (
    <section class="card chosen-plan" aria-labelledby="plan-title" aria-live="polite">
      <header>
        <div>
          <h2 id="plan-title">{plan.planner}</h2>
          <p class="muted">{plan.moves ? `would move ${count(plan.moves)} of ${plural(plan.fragments, "fragment")}` : "would move nothing"}</p>
        </div>
        <div class="commands">
          <button type="button" onClick={() => void compare([plan.planner])}>
            Ask again
          </button>
          {operator && some > 0 && !outcome.applied && (
            <button type="button" class="main" disabled={busy} onClick={() => void carryOut()}>
              <Icon name="move" /> Apply
            </button>
          )}
        </div>
      </header>
      {outcome.applied && <Result outcome={outcome} />}
      {plan.too_full.length > 0 && (
        <div class="banner odd">
          <Icon name="warning" />
          <ul>
            {plan.too_full.slice(0, 5).map((text) => (
              <li key={text}>{text}</li>
            ))}
            {plan.too_full.length > 5 && <li>and {count(plan.too_full.length - 5)} more</li>}
          </ul>
        </div>
      )}
      {some > 0 && (
        <>
          <h3>Moves</h3>
          <ul class="planned" tabIndex={0} aria-label="Moves of this plan">
            {plan.first.slice(0, MOST_SHOWN).map(({ fragment, query, source, target }) => (
              <li key={`${fragment} ${source}`}>
                <a href={link("queries", query)}>{query}</a>
                <small>
                  {fragment}: {source} → {target}
                </small>
              </li>
            ))}
          </ul>
          {plan.moves > MOST_SHOWN && <p class="muted">and {count(plan.moves - MOST_SHOWN)} more</p>}
        </>
      )}
      <h3>All metrics</h3>
      <div class="figures-table all" tabIndex={0} role="region" aria-label={`All metrics of ${plan.planner}`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Metric</th>
              <th scope="col" class="number">
                Now
              </th>
              <th scope="col" class="number">
                Then
              </th>
            </tr>
          </thead>
          <tbody>
            {known.metrics.map((metric) => (
              <tr key={metric.name}>
                <th scope="row">
                  {metric.name} {metric.unit && <span class="muted">{metric.unit}</span>}
                  <small>{metric.meaning}</small>
                </th>
                <td class="number">{figure(plan.metrics[metric.name]!.now)}</td>
                <Then metric={metric} {...plan.metrics[metric.name]!} />
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Result({ outcome }: { outcome: Outcome }) {
  const { begun, staying } = outcome.applied!;
  return (
    <div class={staying.length ? "banner odd" : "banner good"} role="status">
      <Icon name={staying.length ? "warning" : "check"} />
      <div>
        <p>
          {plural(begun, "fragment")} set out. What is measured from now on is another situation: <a href={link("map")}>see the moves</a>, then ask again.
        </p>
        {staying.length > 0 && (
          <ul>
            {staying.slice(0, 8).map(({ fragment, reason }) => (
              <li key={fragment}>
                {fragment} stays: {reason}
              </li>
            ))}
            {staying.length > 8 && <li>and {count(staying.length - 8)} more stay</li>}
          </ul>
        )}
      </div>
    </div>
  );
}
