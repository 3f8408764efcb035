/** Small parts that several pages show. */
import type { ComponentChildren } from "preact";
import { NOTHING, percent } from "../format";

export function State({ state }: { state: string }) {
  const kind = state.split(" ")[0] ?? "";
  return (
    <span class={`state ${kind}`}>
      <i aria-hidden="true" />
      {state}
    </span>
  );
}

/** A load, from green over amber to red; above 1 micro-batches wait for each other. */
export function Load({ value, label }: { value: number | null; label: string }) {
  const grade = value === null ? "none" : value < 0.6 ? "low" : value < 0.9 ? "middle" : "high";
  return (
    <span class={`load ${grade}`}>
      <meter min={0} max={1} value={Math.min(1, value ?? 0)} aria-label={label} />
      <b>{value === null ? NOTHING : percent(value)}</b>
    </span>
  );
}

/** A line without axes: how a figure went in the last minutes. */
export function Sparkline({ values, label }: { values: number[]; label: string }) {
  const [width, height] = [120, 32];
  const top = Math.max(...values, 1e-9);
  const step = width / Math.max(values.length - 1, 1);
  const points = values.map((value, n) => `${(n * step).toFixed(1)},${(height - 2 - (value / top) * (height - 5)).toFixed(1)}`);
  return (
    <svg class="spark" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {values.length > 1 && (
        <>
          <polygon points={`0,${height} ${points.join(" ")} ${width},${height}`} />
          <polyline points={points.join(" ")} />
        </>
      )}
    </svg>
  );
}

export function Facts({ children }: { children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>;
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <strong>{title}</strong>
      {children && <p>{children}</p>}
    </div>
  );
}
