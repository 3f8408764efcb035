/** The map: streams, nodes, their carriers and fragments; beside it the same in words, for whoever cannot see or drag. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { ask, type CarrierFragments, type CarrierLook, type MoveLook, type NodeLook } from "../api";
import { count, figure, NOTHING, plural, rate, seconds } from "../format";
import { useLive } from "../live";
import { Canvas } from "../map/canvas";
import type { Chosen } from "../map/chart";
import { ask as confirm } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { MoveSteps } from "../parts/moves";
import { notify, notifyOf } from "../parts/notices";
import { Empty, Fact, Facts, Load, Sparkline, State } from "../parts/small";
import { link } from "../route";
import { useOperator } from "../session";

export function MapPage() {
  const inside = useInside();
  const moves = useLive("moves");
  const [chosen, setChosen] = useState<Chosen | null>(null);
  return (
    <div class="map-page">
      <LiveCanvas inside={inside} chosen={chosen} choose={setChosen} />
      <div class="map-beside">
        {moves.length > 0 && (
          <section class="card moves" aria-labelledby="moves-title">
            <h2 id="moves-title">{plural(moves.length, "move")} under way</h2>
            {moves.slice(0, 5).map((move) => (
              <MoveSteps key={move.number} move={move} />
            ))}
            {moves.length > 5 && <p class="muted">and {count(moves.length - 5)} more</p>}
          </section>
        )}
        {chosen && <Details chosen={chosen} inside={inside} choose={setChosen} />}
        <NodeList chosen={chosen} choose={setChosen} />
      </div>
    </div>
  );
}

/** Which fragments are in which carriers; asked for again when the queries have changed. */
function useInside(): CarrierFragments[] {
  const { version } = useLive("queries");
  const [inside, setInside] = useState<CarrierFragments[]>([]);
  useEffect(() => {
    ask<CarrierFragments[]>("console/fragments").then(setInside, () => {});
  }, [version]);
  return inside;
}

interface Choice {
  chosen: Chosen | null;
  choose: (chosen: Chosen | null) => void;
}

function LiveCanvas({ inside, chosen, choose }: Choice & { inside: CarrierFragments[] }) {
  const operator = useOperator();
  const streams = useLive("streams");
  const nodes = useLive("nodes");
  const carriers = useLive("carriers");
  const ways = useLive("ways");
  const moves = useLive("moves");
  const shown = useMemo(
    () => (nodes.length ? { streams, nodes, carriers, ways, moves, inside } : null),
    [streams, nodes, carriers, ways, moves, inside],
  );
  return (
    <Canvas
      shown={shown}
      chosen={chosen}
      choose={choose}
      drop={operator ? (fragment, node) => void move(fragment, node, inside) : undefined}
      label="A drawing of streams, nodes, carriers and fragments; the list beside it says the same"
    >
      <li class="low">load below 60%</li>
      <li class="middle">to 90%</li>
      <li class="high">above</li>
      <li class="none">not measured</li>
      {operator && nodes.length > 1 && <li class="hint">Drag a dot to another node to move its query</li>}
    </Canvas>
  );
}

async function move(fragment: number, node: string, inside: CarrierFragments[]): Promise<void> {
  const found = inside.flatMap((carrier) => carrier.drawn).find(({ number }) => number === fragment);
  const name = found?.queries[0] ?? `fragment ${fragment}`;
  const others = (found?.users ?? 1) - 1;
  const sure = await confirm({
    title: `Move ${name} to ${node}?`,
    text: others
      ? `Its fragment answers ${plural(others, "other query", "other queries")} too, which move with it. No row is lost or comes twice, and no query pauses.`
      : "No row is lost or comes twice, and the query does not pause.",
    yes: "Move",
  });
  if (!sure) return;
  try {
    await ask<MoveLook[]>("moves", { subject: String(fragment), to: node });
    notify(`${name} sets out for ${node}`);
  } catch (error) {
    notifyOf(error);
  }
}

function NodeList({ chosen, choose }: Choice) {
  const nodes = useLive("nodes");
  const carriers = useLive("carriers");
  const { loads } = useLive("series");
  return (
    <section class="card node-list" aria-labelledby="nodes-title">
      <h2 id="nodes-title">Nodes</h2>
      <ul>
        {nodes.map((node) => (
          <li key={node.name}>
            <button type="button" class="node" aria-pressed={chosen?.kind === "node" && chosen.id === node.name} onClick={() => choose({ kind: "node", id: node.name })}>
              <span class="name">{node.name}</span>
              {node.state === "open" ? <Load value={node.load} label={`Load of ${node.name}`} /> : <State state={node.state} />}
              <small>
                {plural(node.carriers, "carrier")} · {plural(node.fragments, "fragment")} · {rate(node.rows_per_s)} rows/s
              </small>
              <Sparkline values={loads[node.name] ?? []} label={`Load of ${node.name} in the last two minutes`} />
            </button>
            <ul class="carriers">
              {carriers
                .filter((carrier) => carrier.node === node.name && carrier.runs)
                .map((carrier) => (
                  <li key={carrier.id}>
                    <button type="button" class="quiet" aria-pressed={chosen?.kind === "carrier" && chosen.id === carrier.id} onClick={() => choose({ kind: "carrier", id: carrier.id })}>
                      {carrier.id} <small>{carrier.kind}</small>
                      <Load value={carrier.load} label={`Load of carrier ${carrier.id}`} />
                    </button>
                  </li>
                ))}
            </ul>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Details({ chosen, inside, choose }: { chosen: Chosen; inside: CarrierFragments[]; choose: (chosen: Chosen | null) => void }) {
  const nodes = useLive("nodes");
  const carriers = useLive("carriers");
  const streams = useLive("streams");
  const title = { node: "Node", carrier: "Carrier", fragment: "Fragment", stream: "Stream" }[chosen.kind];
  const node = nodes.find(({ name }) => chosen.kind === "node" && name === chosen.id);
  const carrier = carriers.find(({ id }) => chosen.kind === "carrier" && id === chosen.id);
  const stream = streams.find(({ name }) => chosen.kind === "stream" && name === chosen.id);
  return (
    <section class="card chosen" aria-labelledby="chosen-title" aria-live="polite">
      <header>
        <h2 id="chosen-title">
          {title} {chosen.id}
        </h2>
        <button type="button" class="quiet" aria-label="Close" onClick={() => choose(null)}>
          <Icon name="close" size={18} />
        </button>
      </header>
      {node && <OfNode node={node} />}
      {carrier && <OfCarrier carrier={carrier} inside={inside.find((one) => one.carrier === carrier.id)} choose={choose} />}
      {stream && (
        <Facts>
          <Fact name="Declared">{rate(stream.rate)} rows/s</Fact>
          <Fact name="Enters at">{stream.node ?? "every node by itself"}</Fact>
          <Fact name="Columns">{Object.keys(stream.columns).join(", ")}</Fact>
          <Fact name="Event time">{stream.time}</Fact>
        </Facts>
      )}
      {chosen.kind === "fragment" && <OfFragment number={Number(chosen.id)} inside={inside} />}
    </section>
  );
}

function OfNode({ node }: { node: NodeLook }) {
  const operator = useOperator();
  const closed = node.state === "draining" || node.state === "drained";
  const drain = async () => {
    if (!closed) {
      const sure = await confirm({
        title: `Drain ${node.name}?`,
        text: "Everything on it moves to the other nodes, and nothing new is put there until you take that back.",
        yes: "Drain",
      });
      if (!sure) return;
    }
    ask("drain", { node: node.name, undo: closed }).then(() => notify(closed ? `${node.name} takes queries again` : `${node.name} is being drained`), notifyOf);
  };
  return (
    <>
      <Facts>
        <Fact name="State">
          <State state={node.state} />
        </Fact>
        <Fact name="Load">
          <Load value={node.load} label="Load" />
        </Fact>
        <Fact name="Kind">{node.type}</Fact>
        <Fact name="Cores">{node.cores ?? NOTHING}</Fact>
      </Facts>
      {operator && (
        <div class="commands">
          <button type="button" onClick={drain} disabled={node.state === "lost"}>
            {closed ? "Open again" : "Drain"}
          </button>
        </div>
      )}
    </>
  );
}

function OfCarrier({ carrier, inside, choose }: { carrier: CarrierLook; inside?: CarrierFragments; choose: (chosen: Chosen) => void }) {
  const series = useLive("series").carriers[carrier.id];
  return (
    <>
      <Facts>
        <Fact name="Kind">{carrier.kind}</Fact>
        <Fact name="Node">{carrier.node}</Fact>
        <Fact name="Load">
          <Load value={carrier.load} label="Load" />
          <Sparkline values={series?.loads ?? []} label="Load in the last two minutes" />
        </Fact>
        <Fact name="Delay">
          {seconds(carrier.delay_s)}
          {carrier.pr !== null && <small> · PR {figure(carrier.pr)}</small>}
          <Sparkline values={series?.delays ?? []} label="Delay in the last two minutes" />
        </Fact>
        <Fact name="Micro-batch">{seconds(carrier.trigger_s)}</Fact>
        <Fact name="Reads">{carrier.streams.join(", ") || "derived streams"}</Fact>
      </Facts>
      <h3>{plural(carrier.fragments, "fragment")}</h3>
      <ul class="fragments">
        {inside?.drawn.slice(0, 12).map((fragment) => (
          <li key={fragment.number}>
            <button type="button" class="quiet" onClick={() => choose({ kind: "fragment", id: String(fragment.number) })}>
              {fragment.queries[0]} {fragment.users > 1 && <small>and {count(fragment.users - 1)} more</small>}
              <small class="number">{rate(fragment.rate)} rows/s</small>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function OfFragment({ number, inside }: { number: number; inside: CarrierFragments[] }) {
  const operator = useOperator();
  const carriers = useLive("carriers");
  const nodes = useLive("nodes");
  const home = inside.find((carrier) => carrier.drawn.some((fragment) => fragment.number === number));
  const fragment = home?.drawn.find((one) => one.number === number);
  const carrier = carriers.find(({ id }) => id === home?.carrier);
  if (!fragment || !carrier) return <Empty title="It is gone">A fragment that has moved goes on under another number.</Empty>;
  const others = nodes.filter((node) => node.state === "open" && node.name !== carrier.node);
  return (
    <>
      <Facts>
        <Fact name={fragment.users === 1 ? "Query" : "Queries"}>
          {fragment.queries.map((name) => (
            <a key={name} class="row-link" href={link("queries", name)}>
              {name}
            </a>
          ))}
          {fragment.users > fragment.queries.length && <small>and {count(fragment.users - fragment.queries.length)} more</small>}
        </Fact>
        <Fact name="Puts out">{rate(fragment.rate)} rows/s</Fact>
        <Fact name="Carrier">
          {carrier.id} on {carrier.node}
        </Fact>
      </Facts>
      {operator && others.length > 0 && (
        <div class="commands">
          {others.slice(0, 4).map((node) => (
            <button key={node.name} type="button" onClick={() => void move(number, node.name, inside)}>
              <Icon name="move" /> Move to {node.name}
            </button>
          ))}
        </div>
      )}
    </>
  );
}
