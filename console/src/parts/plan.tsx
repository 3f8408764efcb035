/** How a query would run: its plan as a tree, where it would be, what it would share. */
import type { Explained, Operator } from "../api";
import { rate } from "../format";

export function Plan({ found, old }: { found: Explained; old: boolean }) {
  return (
    <section class={old ? "card plan old" : "card plan"} aria-labelledby="plan-title">
      <h2 id="plan-title">
        Plan {old && <small>of the text before</small>}
      </h2>
      {found.note && <p class="muted">{found.note}</p>}
      {found.pieces.map((piece, n) => (
        <div key={n} class="piece">
          {piece.derived && <h3>Derived stream {piece.derived}</h3>}
          {piece.seats.map((seat) => (
            <p key={`${seat.node} ${seat.carrier}`} class="seat">
              <span>
                <b>{seat.node}</b> · carrier {seat.carrier} · {seat.kind}
              </span>
              <small>{seat.sharing}</small>
            </p>
          ))}
          <p class="muted">Answers from {piece.start}</p>
        </div>
      ))}
      <ul class="tree" role="tree" aria-label="Operators, the last one first">
        <Branch operator={found.plan} />
      </ul>
    </section>
  );
}

function Branch({ operator }: { operator: Operator }) {
  return (
    <li role="treeitem" aria-expanded={operator.inputs.length ? true : undefined}>
      <div class="operator">
        <b>{operator.operator}</b>
        <span class="rate" title="Estimated rows per second">
          {rate(operator.rate)}/s
        </span>
        {operator.detail && <code>{operator.detail}</code>}
      </div>
      {operator.inputs.length > 0 && (
        <ul role="group">
          {operator.inputs.map((input, n) => (
            <Branch key={n} operator={input} />
          ))}
        </ul>
      )}
    </li>
  );
}
