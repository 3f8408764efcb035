/** Values as people read them. */

const whole = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long", year: "numeric" });

export const NOTHING = "–";

export function count(value: number): string {
  return whole.format(Math.round(value));
}

export function rate(value: number | null): string {
  if (value === null) return NOTHING;
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(1)}k`;
  if (value >= 10 || value === 0) return count(value);
  return value >= 0.095 ? value.toFixed(1) : value.toFixed(2);
}

export function seconds(value: number | null): string {
  if (value === null) return NOTHING;
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 100) return `${value.toFixed(1)} s`;
  if (value < 5400) return `${Math.round(value / 60)} min`;
  return `${(value / 3600).toFixed(1)} h`;
}

export function percent(value: number | null): string {
  return value === null ? NOTHING : `${Math.round(value * 100)}%`;
}

/** A part of the time, as it is taken of each second. */
export function cost(share: number | null): string {
  if (share === null) return NOTHING;
  if (share >= 0.9995) return `${share.toFixed(2)} s/s`;
  const ms = share * 1000;
  return `${ms >= 10 ? Math.round(ms) : ms >= 0.095 ? ms.toFixed(1) : ms.toFixed(2)} ms/s`;
}

/** A ratio, a load, a rate: whatever planners are compared by. */
export function figure(value: number | "unbounded" | null): string {
  if (value === null) return NOTHING;
  if (value === "unbounded") return "∞";
  const size = Math.abs(value);
  if (size >= 1e6 || (size > 0 && size < 1e-3)) return value.toExponential(1).replace("e+", "e");
  return size >= 1000 || Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(3)));
}

export function bytes(value: number): string {
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} MB`;
  return value >= 1e3 ? `${(value / 1e3).toFixed(1)} kB` : `${Math.round(value)} B`;
}

export function time(us: number): string {
  return clock.format(us / 1000);
}

export function date(us: number): string {
  return day.format(us / 1000);
}

export function eventTime(us: number | null): string {
  return us === null ? NOTHING : new Date(us / 1000).toISOString().replace("T", " ").slice(0, 19);
}

export function plural(n: number, one: string, several = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : several}`;
}
