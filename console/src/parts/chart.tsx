/** A small chart of a query's newest results: one of its columns of numbers, in the order in which rows came. */
import { useState } from "preact/hooks";
import type { Results } from "../api";
import { count, figure } from "../format";

const [WIDTH, HEIGHT, TOP, BOTTOM] = [480, 120, 8, 8];
const MOST_LINES = 5; // values of a column of texts, to have a line each

export function ResultChart({ results }: { results: Results }) {
  const numbers = results.columns.flatMap((name, n) => (results.numbers[n] ? [{ name, n }] : []));
  const texts = results.columns.flatMap((name, n) => (results.numbers[n] ? [] : [{ name, n }]));
  const [picked, setPicked] = useState("");
  const column = numbers.find(({ name }) => name === picked) ?? numbers.at(-1);
  const rows = [...results.rows].reverse();
  const values = column ? rows.map((row) => Number(row[column.n] ?? NaN)).filter(Number.isFinite) : [];
  if (!column || values.length < 2) return null;
  const by = texts.find(({ n }) => lines(rows, n).length <= MOST_LINES);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const y = (value: number) => HEIGHT - BOTTOM - ((value - low) / (high - low || 1)) * (HEIGHT - TOP - BOTTOM);
  const x = (n: number) => (n / Math.max(1, rows.length - 1)) * WIDTH;
  const drawn = (by ? lines(rows, by.n) : [null]).map((name) => ({
    name,
    points: rows.flatMap((row, n) => {
      const value = Number(row[column.n] ?? NaN);
      const own = !by || row[by.n] === name;
      return own && Number.isFinite(value) ? [[x(n), y(value)] as const] : [];
    }),
  }));
  const said = `${column.name} of the newest ${count(rows.length)} rows: lowest ${figure(low)}, highest ${figure(high)}, newest ${figure(values.at(-1)!)}`;
  return (
    <figure class="chart">
      <figcaption>
        {numbers.length > 1 ? (
          <select aria-label="Column of the chart" value={column.name} onChange={(event) => setPicked(event.currentTarget.value)}>
            {numbers.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        ) : (
          <b>{column.name}</b>
        )}
        {by && (
          <ul aria-label={by.name}>
            {drawn.map(({ name }, n) => (
              <li key={String(name)} class={`line-${n}`}>
                {name === null ? "NULL" : String(name)}
              </li>
            ))}
          </ul>
        )}
        <small>
          {figure(low)} to {figure(high)}
        </small>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={said}>
        {drawn.map(({ name, points }, n) => (
          <polyline key={String(name)} class={`line-${n}`} points={points.map((point) => point.map((at) => at.toFixed(1)).join()).join(" ")} />
        ))}
      </svg>
    </figure>
  );
}

function lines(rows: Results["rows"], column: number): Results["rows"][number] {
  return [...new Set(rows.map((row) => row[column] ?? null))].sort();
}
