/** What was done, or why not, for a few seconds in a corner. */
import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icon";

interface Notice {
  number: number;
  text: string;
  bad: boolean;
}

const LASTS_MS = 6000;
let numbers = 0;
let show: (notice: Notice) => void = () => {};

export function notify(text: string, bad = false): void {
  show({ number: numbers++, text, bad });
}

export function notifyOf(error: unknown): void {
  notify(error instanceof Error ? error.message : String(error), true);
}

export function Notices() {
  const [shown, setShown] = useState<Notice[]>([]);
  useEffect(() => {
    show = (notice) => {
      setShown((before) => [...before.slice(-2), notice]);
      setTimeout(() => setShown((now) => now.filter(({ number }) => number !== notice.number)), LASTS_MS);
    };
    return () => {
      show = () => {};
    };
  }, []);
  return (
    <div class="notices" role="status" aria-live="polite">
      {shown.map(({ number, text, bad }) => (
        <p key={number} class={bad ? "notice bad" : "notice"}>
          <Icon name={bad ? "warning" : "check"} size={18} />
          <span>{text}</span>
        </p>
      ))}
    </div>
  );
}
