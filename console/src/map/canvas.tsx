/** The drawing with its legend and its buttons, for whoever has something to show on it. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Chart, Chosen, Shown } from "./chart";

interface Wanted {
  shown: Shown | null;
  chosen: Chosen | null;
  choose: (chosen: Chosen | null) => void;
  drop?: (fragment: number, node: string) => void; // without it nothing can be dragged
  label: string;
  children: ComponentChildren; // of the legend
}

export function Canvas({ shown, chosen, choose, drop, label, children }: Wanted) {
  const place = useRef<HTMLDivElement>(null);
  const dropped = useRef(drop);
  const [chart, setChart] = useState<Chart | null>(null);
  const mayMove = drop !== undefined;
  dropped.current = drop;

  useEffect(() => {
    let made: Chart | null = null;
    let gone = false;
    // Cytoscape is loaded when a map is first shown.
    import("./chart").then(({ Chart }) => {
      if (gone || !place.current) return;
      made = new Chart(place.current, { choose, drop: (fragment, node) => dropped.current?.(fragment, node) }, mayMove);
      setChart(made);
    });
    return () => {
      gone = true;
      made?.close();
    };
  }, [mayMove]);
  useEffect(() => {
    if (chart && shown) chart.draw(shown);
  }, [chart, shown]);
  useEffect(() => chart?.choose(chosen), [chart, chosen, shown]);
  useEffect(() => {
    if (!chart || !place.current) return;
    const observer = new ResizeObserver(() => chart.fit());
    observer.observe(place.current);
    (window as unknown as { towpathMap?: Chart }).towpathMap = chart; // for tests, which cannot see a canvas
    return () => observer.disconnect();
  }, [chart]);
  return (
    <section class="card canvas" aria-label="Map">
      <div ref={place} class="drawing" role="img" aria-label={label} />
      <div class="canvas-foot">
        <ul class="legend" aria-label="Colours">
          {children}
        </ul>
        <div class="zoom">
          <button type="button" aria-label="Larger" onClick={() => chart?.zoom(1.25)}>
            +
          </button>
          <button type="button" aria-label="Smaller" onClick={() => chart?.zoom(0.8)}>
            −
          </button>
          <button type="button" onClick={() => chart?.fit()}>
            Fit
          </button>
        </div>
      </div>
    </section>
  );
}
