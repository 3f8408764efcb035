/** A migration while it runs, step by step. */
import type { MoveLook } from "../api";
import { eventTime } from "../format";

const STEPS = [
  { step: "warming", title: "Warming", text: "a copy runs on the other node and catches up" },
  { step: "fenced", title: "Fenced", text: "a moment ahead of both is written down" },
  { step: "draining", title: "Draining", text: "the copy answers; the first finishes what it began" },
];

export function MoveSteps({ move }: { move: MoveLook }) {
  const at = STEPS.findIndex(({ step }) => step === move.step);
  return (
    <div class="move" role="group" aria-label={`Fragment ${move.fragment} moves from ${move.source} to ${move.target}`}>
      <p>
        <b>{move.used_by}</b> {move.source === move.target ? `changes its carrier on ${move.source}` : `${move.source} → ${move.target}`}
        <small>{move.reason}</small>
      </p>
      <ol>
        {STEPS.map(({ step, title, text }, n) => (
          <li key={step} class={n < at ? "done" : n === at ? "now" : ""} aria-current={n === at ? "step" : undefined}>
            <b>{title}</b>
            <small>{step === "fenced" && move.fence_us !== null ? `fence at ${eventTime(move.fence_us)}` : text}</small>
          </li>
        ))}
      </ol>
    </div>
  );
}
