/** Asks before something is done that is not undone easily. */
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface Question {
  title: string;
  text: string;
  yes: string;
  bad?: boolean;
}

export function ask(question: Question): Promise<boolean> {
  const place = document.createElement("div");
  document.body.append(place);
  return new Promise((resolve) => {
    const answer = (yes: boolean) => {
      render(null, place);
      place.remove();
      resolve(yes);
    };
    render(<Dialog {...question} answer={answer} />, place);
  });
}

function Dialog({ title, text, yes, bad, answer }: Question & { answer: (yes: boolean) => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const said = useRef(false);
  useEffect(() => dialog.current?.showModal(), []);
  const close = (value: boolean) => {
    if (said.current) return;
    said.current = true;
    dialog.current?.close();
    answer(value);
  };
  return (
    <dialog ref={dialog} aria-labelledby="ask-title" onClose={() => close(false)}>
      <h2 id="ask-title">{title}</h2>
      <p>{text}</p>
      <div class="commands">
        <button type="button" onClick={() => close(false)}>
          Cancel
        </button>
        <button type="button" class={bad ? "main bad" : "main"} onClick={() => close(true)}>
          {yes}
        </button>
      </div>
    </dialog>
  );
}
