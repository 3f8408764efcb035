/** Where everything on the map is: computed, and the same each time, so that nothing jumps when something changes. */
import type { CarrierFragments, CarrierLook, NodeLook, StreamLook } from "../api";

export interface Box {
  x: number; // of its middle
  y: number;
  w: number;
  h: number;
}

export interface Layout {
  streams: Map<string, Box>;
  nodes: Map<string, Box>;
  carriers: Map<string, Box>;
  fragments: Map<number, Box>;
}

const STREAM = { w: 132, h: 44, gap: 26 };
const CARRIER = { w: 190, head: 50, foot: 16, gap: 16 };
const NODE = { head: 58, pad: 18, gap: 44, least: 190 };
const DOT = { pitch: 19, size: 13, row: 9 };
const BESIDE = 120; // between the streams and the nodes, for their edges

export function layout(
  streams: StreamLook[],
  nodes: NodeLook[],
  carriers: CarrierLook[],
  inside: Map<string, CarrierFragments>,
  narrow: boolean,
): Layout {
  const found: Layout = { streams: new Map(), nodes: new Map(), carriers: new Map(), fragments: new Map() };
  const shown = nodes.map((node) => carriers.filter((carrier) => carrier.node === node.name));
  const sizes = shown.map((here) => nodeSize(here, inside));
  const columns = narrow ? 1 : nodes.length <= 3 ? 1 : nodes.length <= 8 ? 2 : Math.ceil(Math.sqrt(nodes.length));
  const widths = Array.from({ length: columns }, (_, c) => Math.max(0, ...sizes.filter((_, n) => n % columns === c).map((s) => s.w)));
  const left = narrow ? 0 : STREAM.w / 2 + BESIDE;
  let top = narrow ? STREAM.h + BESIDE / 2 : 0;
  for (let row = 0; row * columns < nodes.length; row++) {
    const here = nodes.slice(row * columns, (row + 1) * columns);
    const height = Math.max(...here.map((_, c) => sizes[row * columns + c]!.h));
    let x = left;
    here.forEach((node, c) => {
      const width = widths[c]!;
      const box = { x: x + width / 2, y: top + height / 2, w: width, h: height };
      found.nodes.set(node.name, box);
      fill(box, shown[row * columns + c]!, inside, found);
      x += width + NODE.gap;
    });
    top += height + NODE.gap;
  }
  place(streams, found, narrow, top - NODE.gap, left + widths.reduce((sum, w) => sum + w, 0) + NODE.gap * (columns - 1));
  return found;
}

function place(streams: StreamLook[], found: Layout, narrow: boolean, height: number, width: number): void {
  streams.forEach((stream, n) => {
    const middle = n - (streams.length - 1) / 2;
    const x = narrow ? width / 2 + middle * (STREAM.w + STREAM.gap / 2) : 0;
    const y = narrow ? 0 : height / 2 + middle * (STREAM.h + STREAM.gap);
    found.streams.set(stream.name, { x, y, w: STREAM.w, h: STREAM.h });
  });
}

function carrierHeight(carrier: CarrierLook, inside: Map<string, CarrierFragments>): number {
  const dots = inside.get(carrier.id)?.drawn.length ?? 0;
  return CARRIER.head + Math.max(1, Math.ceil(dots / DOT.row)) * DOT.pitch + CARRIER.foot;
}

function perRow(carriers: number): number {
  return carriers <= 6 ? Math.min(2, Math.max(1, carriers)) : Math.ceil(Math.sqrt(carriers));
}

function rows<T>(items: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size));
}

function nodeSize(carriers: CarrierLook[], inside: Map<string, CarrierFragments>): { w: number; h: number } {
  const columns = perRow(carriers.length);
  const heights = rows(carriers, columns).map((row) => Math.max(...row.map((carrier) => carrierHeight(carrier, inside))));
  const h = heights.reduce((sum, one) => sum + one + CARRIER.gap, -CARRIER.gap);
  return {
    w: Math.max(NODE.least + 2 * NODE.pad, columns * (CARRIER.w + CARRIER.gap) - CARRIER.gap + 2 * NODE.pad),
    h: NODE.head + Math.max(h, CARRIER.head) + NODE.pad,
  };
}

function fill(box: Box, carriers: CarrierLook[], inside: Map<string, CarrierFragments>, found: Layout): void {
  let y = box.y - box.h / 2 + NODE.head;
  for (const row of rows(carriers, perRow(carriers.length))) {
    const h = Math.max(...row.map((carrier) => carrierHeight(carrier, inside)));
    row.forEach((carrier, n) => {
      const x = box.x - box.w / 2 + NODE.pad + CARRIER.w / 2 + n * (CARRIER.w + CARRIER.gap);
      const own = { x, y: y + h / 2, w: CARRIER.w, h };
      found.carriers.set(carrier.id, own);
      const left = x - ((DOT.row - 1) * DOT.pitch) / 2;
      inside.get(carrier.id)?.drawn.forEach((fragment, k) => {
        found.fragments.set(fragment.number, {
          x: left + (k % DOT.row) * DOT.pitch,
          y: y + CARRIER.head + (Math.floor(k / DOT.row) + 0.35) * DOT.pitch,
          w: DOT.size,
          h: DOT.size,
        });
      });
    });
    y += h + CARRIER.gap;
  }
}
