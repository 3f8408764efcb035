/** What the job does as a whole, on top of every page. */
import { count, plural, rate, seconds } from "../format";
import { useLive } from "../live";
import { Sparkline } from "./small";

export function Figures() {
  const figures = useLive("figures");
  const series = useLive("series");
  const moves = useLive("moves");
  if (!figures) return <div class="figures waiting" aria-busy="true" />;
  const notes = [
    figures.aside ? `${plural(figures.aside, "query", "queries")} set aside` : "",
    moves.length ? `${plural(moves.length, "move")} under way` : "",
  ].filter(Boolean);
  return (
    <section class="figures" aria-label="The job in figures">
      <Figure name="Queries" value={count(figures.queries)} note={notes.join(", ") || "none set aside"} />
      <Figure name="Rows in" value={rate(figures.rows_per_s)} unit="/s" values={series.rows} />
      <Figure name="Results" value={rate(figures.results_per_s)} unit="/s" values={series.results} />
      <Figure
        name="Micro-batch"
        value={seconds(figures.trigger_s)}
        values={series.trigger}
        note={figures.slowest_s === null ? undefined : `95% within ${seconds(figures.slowest_s)}`}
      />
      <Figure
        name="Late rows"
        value={count(figures.late)}
        bad={figures.late > 0}
        note={figures.rejected ? `${count(figures.rejected)} rejected` : "none rejected"}
      />
    </section>
  );
}

interface Shown {
  name: string;
  value: string;
  unit?: string;
  note?: string;
  values?: number[];
  bad?: boolean;
}

function Figure({ name, value, unit, note, values, bad }: Shown) {
  return (
    <div class={bad ? "figure bad" : "figure"}>
      <span class="name">{name}</span>
      <span class="value">
        {value}
        {unit && <small>{unit}</small>}
      </span>
      {note && <span class="note">{note}</span>}
      {values && <Sparkline values={values} label={`${name} in the last two minutes`} />}
    </div>
  );
}
