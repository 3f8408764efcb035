import type { Results } from "../api";
import { Empty } from "./small";

const NULL = <em class="null">NULL</em>;

export function ResultTable({ results }: { results: Results }) {
  if (!results.rows.length) return <Empty title="Nothing yet">Rows appear here as the query answers.</Empty>;
  const numeric = (n: number) => (results.numbers[n] ? "number" : undefined);
  return (
    <div class="results" tabIndex={0} role="region" aria-label="The newest results">
      <table>
        <thead>
          <tr>
            {results.columns.map((column, n) => (
              <th key={`${n} ${column}`} scope="col" class={numeric(n)}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {results.rows.map((row, n) => (
            <tr key={n}>
              {row.map((value, column) => (
                <td key={column} class={numeric(column)}>
                  {value === null ? NULL : typeof value === "number" ? shown(value) : String(value)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Numbers as they are: a price of 12.5 and an auction 1280 are no amounts to be grouped. */
function shown(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(10)));
}
