/** The map as Cytoscape draws it. */
import cytoscape, { type Core, type ElementDefinition, type EventObject, type NodeSingular, type StylesheetJson } from "cytoscape";
import type { CarrierFragments, CarrierLook, MoveLook, NodeLook, StreamLook, WayLook } from "../api";
import { bytes, percent, plural, rate, seconds } from "../format";
import { layout, type Box } from "./layout";

export interface Shown {
  streams: StreamLook[];
  nodes: NodeLook[];
  carriers: CarrierLook[];
  ways: WayLook[];
  moves: MoveLook[];
  inside: CarrierFragments[];
  past?: boolean; // of which no load and no rate is known
}

export interface Chosen {
  kind: "node" | "carrier" | "fragment" | "stream";
  id: string;
}

interface Handlers {
  choose: (chosen: Chosen | null) => void;
  drop: (fragment: number, node: string) => void;
}

const DASH_MS = 60;
const NARROW = 520; // pixels: below, streams are above the nodes and not beside them

export class Chart {
  private readonly cy: Core;
  private shown: Shown | null = null;
  private homes = new Map<string, { x: number; y: number }>();
  private shape = "";
  private dashes = 0;
  private readonly timer: number;
  private readonly still = matchMedia("(prefers-reduced-motion: reduce)");
  private readonly dark = matchMedia("(prefers-color-scheme: dark)");

  constructor(
    private readonly place: HTMLElement,
    private readonly handlers: Handlers,
    private readonly mayMove: boolean,
  ) {
    this.cy = cytoscape({
      container: place,
      style: style(),
      minZoom: 0.15,
      maxZoom: 2.5,
      boxSelectionEnabled: false,
      selectionType: "single",
    });
    this.cy.on("tap", (event) => this.tapped(event));
    this.cy.on("grab", "node.fragment", () => this.place.classList.add("dragging"));
    this.cy.on("drag", "node.fragment", (event) => this.dragged(event.target));
    this.cy.on("free", "node.fragment", (event) => this.freed(event.target));
    this.dark.addEventListener("change", this.recolour);
    this.timer = window.setInterval(() => this.animate(), DASH_MS);
  }

  close(): void {
    clearInterval(this.timer);
    this.dark.removeEventListener("change", this.recolour);
    this.cy.destroy();
  }

  /** Draws what there is now; what has not changed stays where it is. */
  draw(shown: Shown): void {
    this.shown = shown;
    const wanted = new Map(elements(shown, this.place.clientWidth < NARROW, this.mayMove).map((element) => [element.data.id!, element]));
    const before = this.shape;
    this.cy.batch(() => {
      this.cy.elements().forEach((element) => {
        if (!wanted.has(element.id())) element.remove();
      });
      for (const [id, element] of wanted) {
        if (element.position) this.homes.set(id, element.position);
        const known = this.cy.getElementById(id);
        if (known.empty()) this.cy.add(element);
        else {
          known.data(element.data);
          const selected = known.hasClass("chosen") ? " chosen" : "";
          known.classes(`${element.classes}${selected}`);
          if (element.position && known.isNode() && !known.grabbed()) known.position(element.position);
        }
      }
    });
    this.shape = [...wanted.values()].filter((e) => e.data.id!.startsWith("node ")).map((e) => `${e.data.id} ${e.data.w} ${e.data.h}`).join();
    if (this.shape !== before) this.fit();
  }

  fit(): void {
    this.cy.resize();
    this.cy.fit(this.cy.nodes(), 24);
    if (this.cy.zoom() > 1.2) {
      this.cy.zoom(1.2);
      this.cy.center(this.cy.nodes());
    }
  }

  zoom(by: number): void {
    this.cy.zoom({ level: this.cy.zoom() * by, renderedPosition: { x: this.place.clientWidth / 2, y: this.place.clientHeight / 2 } });
  }

  choose(chosen: Chosen | null): void {
    this.cy.elements(".chosen").removeClass("chosen");
    if (chosen) this.cy.getElementById(`${chosen.kind} ${chosen.id}`).addClass("chosen");
  }

  /** Where something is on the screen, within the map. */
  where(id: string): { x: number; y: number } | null {
    const found = this.cy.getElementById(id);
    return found.empty() ? null : (found as NodeSingular).renderedPosition();
  }

  private tapped(event: EventObject): void {
    if (event.target === this.cy) return this.handlers.choose(null);
    const [kind, ...id] = (event.target.id() as string).split(" ");
    if (event.target.isNode()) this.handlers.choose({ kind, id: id.join(" ") } as Chosen);
  }

  private dragged(fragment: NodeSingular): void {
    const over = this.nodeUnder(fragment);
    this.cy.batch(() => {
      this.cy.elements(".target").removeClass("target");
      if (over) this.cy.getElementById(`node ${over}`).addClass("target");
    });
  }

  private freed(fragment: NodeSingular): void {
    const over = this.nodeUnder(fragment);
    this.place.classList.remove("dragging");
    this.cy.elements(".target").removeClass("target");
    const home = this.homes.get(fragment.id());
    if (home) {
      if (this.still.matches) fragment.position(home);
      else fragment.animate({ position: home, duration: 260, easing: "ease-out-cubic" });
    }
    if (over) this.handlers.drop(Number(fragment.data("number")), over);
  }

  /** The node that a fragment was dragged to, if it is another one and takes something new. */
  private nodeUnder(fragment: NodeSingular): string | null {
    const { x, y } = fragment.position();
    for (const node of this.shown?.nodes ?? []) {
      const box = this.cy.getElementById(`node ${node.name}`).boundingBox();
      if (x < box.x1 || x > box.x2 || y < box.y1 || y > box.y2) continue;
      return node.name === fragment.data("node") || node.state !== "open" ? null : node.name;
    }
    return null;
  }

  private animate(): void {
    if (this.still.matches || document.hidden) return;
    const moving = this.cy.edges(".moving");
    if (moving.nonempty()) moving.style("line-dash-offset", -(this.dashes = (this.dashes + 1.5) % 24));
  }

  private readonly recolour = () => {
    this.cy.style(style());
    if (this.shown) this.draw(this.shown);
  };
}

function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Green, amber, red; grey for what was not measured. */
function heat(load: number | null): string {
  if (load === null) return css("--line-strong");
  return load < 0.6 ? css("--good") : load < 0.9 ? css("--odd") : css("--bad");
}

function thickness(rowsPerS: number): number {
  return Math.min(9, 1.2 + Math.log10(1 + Math.max(0, rowsPerS)) * 1.5);
}

function elements({ streams, nodes, carriers, ways, moves, inside, past }: Shown, narrow: boolean, mayMove: boolean): ElementDefinition[] {
  const shown = carriers.filter((carrier) => carrier.runs || carrier.fragments > 0);
  const within = new Map(inside.map((one) => [one.carrier, one]));
  const at = layout(streams, nodes, shown, within, narrow);
  const moving = new Set(moves.map((move) => move.fragment));
  const found: ElementDefinition[] = [];
  const add = (id: string, box: Box, classes: string, data: object, grabbable = false) =>
    found.push({ data: { id, ...box, ...data }, position: { x: box.x, y: box.y }, classes, grabbable, selectable: false });
  for (const stream of streams) {
    add(`stream ${stream.name}`, at.streams.get(stream.name)!, "stream", { label: `${stream.name}\n${rate(stream.rate)} rows/s` });
  }
  for (const node of nodes) {
    const load = node.load === null ? "no load yet" : `load ${percent(node.load)}`;
    const said = past ? plural(node.fragments, "fragment") : node.state === "open" ? load : node.state;
    add(`node ${node.name}`, at.nodes.get(node.name)!, `node ${node.state}`, { label: `${node.name}  ·  ${said}`, colour: heat(node.load) });
  }
  for (const carrier of shown) {
    const box = at.carriers.get(carrier.id);
    if (!box) continue; // of a node that is not listed any more
    const more = carrier.fragments - (within.get(carrier.id)?.drawn.length ?? 0);
    add(`carrier ${carrier.id}`, box, carrier.runs ? "carrier" : "carrier resting", {
      label: `${carrier.id} · ${carrier.kind}\n${past ? plural(carrier.fragments, "fragment") : `${rate(carrier.rows_per_s)} rows/s · ${seconds(carrier.trigger_s)}`}`,
      colour: heat(carrier.load),
    });
    if (more > 0 && within.has(carrier.id)) {
      const foot = { x: box.x, y: box.y + box.h / 2 - 10, w: box.w, h: 12 };
      add(`more ${carrier.id}`, foot, "more", { label: `and ${plural(more, "fragment")} more` });
    }
    for (const stream of carrier.runs ? carrier.streams : []) {
      found.push({
        data: {
          id: `read ${stream} ${carrier.id}`,
          source: `stream ${stream}`,
          target: `carrier ${carrier.id}`,
          width: thickness(carrier.rows_per_s / carrier.streams.length),
        },
        classes: narrow ? "read down" : "read",
      });
    }
    for (const fragment of within.get(carrier.id)?.drawn ?? []) {
      add(
        `fragment ${fragment.number}`,
        { ...at.fragments.get(fragment.number)!, ...size(fragment.rate) },
        moving.has(fragment.number) ? "fragment leaving" : "fragment",
        { number: fragment.number, node: carrier.node, colour: past ? css("--water") : heat(carrier.load) },
        mayMove && nodes.length > 1,
      );
    }
  }
  for (const way of ways) {
    if (!at.nodes.has(way.source) || !at.nodes.has(way.target)) continue;
    found.push({
      data: {
        id: `way ${way.source} ${way.target}`,
        source: `node ${way.source}`,
        target: `node ${way.target}`,
        width: thickness(way.bytes_per_s / 20),
        label: `${plural(way.streams, "stream")} · ${bytes(way.bytes_per_s)}/s`,
      },
      classes: "way",
    });
  }
  const known = new Set(found.map((element) => element.data.id));
  for (const move of moves) {
    const source = [`fragment ${move.fragment}`, `carrier ${first(move.carriers[0])}`, `node ${move.source}`].find((id) => known.has(id));
    const target = [`carrier ${first(move.carriers[1])}`, `node ${move.target}`].find((id) => known.has(id));
    if (source && target) {
      found.push({ data: { id: `move ${move.number}`, source, target, label: `${move.used_by}: ${move.step}` }, classes: `moving ${move.step}` });
    }
  }
  return found;
}

function first(words: string | undefined): string {
  return words?.split(" ")[0] ?? "";
}

function size(rowsPerS: number): { w: number; h: number } {
  const across = Math.min(17, 10 + Math.log10(1 + rowsPerS) * 3);
  return { w: across, h: across };
}

function style(): StylesheetJson {
  const font = css("--font");
  const text = { "font-family": font, "text-wrap": "wrap" as const, color: css("--text") };
  return [
    { selector: "node", style: { ...text, width: "data(w)", height: "data(h)", "z-index-compare": "manual", "overlay-opacity": 0 } },
    {
      selector: "node.node",
      style: {
        shape: "round-rectangle",
        "corner-radius": "14",
        "background-color": css("--surface"),
        "border-width": 1.5,
        "border-color": css("--line-strong"),
        label: "data(label)",
        "font-size": 16,
        "font-weight": 600,
        "text-valign": "top",
        "text-halign": "center",
        "text-margin-y": 38,
        "z-index": 0,
        events: "yes",
      },
    },
    { selector: "node.draining, node.drained", style: { "border-style": "dashed", "background-color": css("--sunken") } },
    { selector: "node.lost", style: { "border-color": css("--bad"), "border-width": 3, "background-color": css("--bad-soft") } },
    { selector: "node.target", style: { "border-color": css("--accent"), "border-width": 4, "background-color": css("--accent-soft") } },
    {
      selector: "node.carrier",
      style: {
        shape: "round-rectangle",
        "corner-radius": "9",
        "background-color": css("--sunken"),
        "border-width": 2.5,
        "border-color": "data(colour)",
        label: "data(label)",
        "font-size": 11.5,
        "line-height": 1.45,
        "text-valign": "top",
        "text-margin-y": 43,
        "text-max-width": "180",
        "z-index": 10,
      },
    },
    { selector: "node.resting", style: { "border-style": "dashed", opacity: 0.6 } },
    { selector: "node.fragment", style: { shape: "ellipse", "background-color": "data(colour)", "border-width": 1, "border-color": css("--surface"), "z-index": 20 } },
    { selector: "node.fragment:grabbed", style: { width: 24, height: 24, "border-width": 3, "border-color": css("--accent"), "z-index": 90 } },
    { selector: "node.leaving", style: { "border-width": 3, "border-color": css("--accent") } },
    { selector: "node.more", style: { label: "data(label)", "font-size": 10, color: css("--muted"), "text-valign": "center", "background-opacity": 0, "z-index": 15, events: "no" } },
    {
      selector: "node.stream",
      style: {
        shape: "round-rectangle",
        "corner-radius": "22",
        "background-color": css("--water-soft"),
        "border-width": 1.5,
        "border-color": css("--water"),
        label: "data(label)",
        "font-size": 12.5,
        "line-height": 1.35,
        "text-valign": "center",
        "z-index": 10,
      },
    },
    { selector: "node.chosen", style: { "outline-width": 3, "outline-color": css("--accent"), "outline-offset": 2 } },
    { selector: "edge", style: { "z-index-compare": "manual", "z-index": 5, events: "no" } },
    {
      selector: "edge.read",
      style: {
        "curve-style": "unbundled-bezier",
        "control-point-distances": "0 0",
        "edge-distances": "endpoints",
        "source-endpoint": "90deg",
        "target-endpoint": "270deg",
        "line-color": css("--water"),
        opacity: 0.42,
        width: "data(width)",
      },
    },
    { selector: "edge.down", style: { "source-endpoint": "180deg", "target-endpoint": "0deg" } },
    {
      selector: "edge.way",
      style: {
        "curve-style": "bezier",
        width: "data(width)",
        "line-color": css("--odd"),
        "target-arrow-color": css("--odd"),
        "target-arrow-shape": "triangle",
        label: "data(label)",
        "font-family": font,
        "font-size": 11,
        color: css("--text"),
        "text-background-color": css("--ground"),
        "text-background-opacity": 0.9,
        "text-background-padding": "3",
        "text-background-shape": "roundrectangle",
      },
    },
    {
      selector: "edge.moving",
      style: {
        "curve-style": "bezier",
        width: 3.5,
        "line-style": "dashed",
        "line-dash-pattern": [8, 4],
        "line-color": css("--accent"),
        "target-arrow-color": css("--accent"),
        "target-arrow-shape": "triangle",
        label: "data(label)",
        "font-family": font,
        "font-size": 12,
        "font-weight": 600,
        color: css("--accent-text"),
        "text-background-color": css("--accent"),
        "text-background-opacity": 1,
        "text-background-padding": "5",
        "text-background-shape": "roundrectangle",
        "z-index": 60,
      },
    },
  ] as StylesheetJson;
}
