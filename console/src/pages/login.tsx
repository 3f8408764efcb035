import { useEffect, useState } from "preact/hooks";
import { ask, type Session } from "../api";
import { Icon } from "../parts/icon";

const LINK = "token="; // `towpath console` gives a link with the token behind the #, which no server is ever sent

export function Login({ entered }: { entered: (session: Session) => void }) {
  const [token, setToken] = useState("");
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  const enter = (given: string) => {
    setBusy(true);
    setWrong("");
    ask<Session>("console/session", { token: given })
      .then(entered, (error) => setWrong(error.message))
      .finally(() => setBusy(false));
  };
  useEffect(() => {
    const given = location.hash.slice(1);
    if (!given.startsWith(LINK)) return;
    history.replaceState(null, "", location.pathname); // it is not to stay in the address, nor in the history
    enter(decodeURIComponent(given.slice(LINK.length)));
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    if (token.trim()) enter(token.trim());
    else setWrong("Give the token of the service.");
  };
  return (
    <main class="login">
      <form onSubmit={submit} aria-labelledby="login-title">
        <img src="./favicon.svg" alt="" width="44" height="44" />
        <h1 id="login-title">towpath</h1>
        <p>
          This console commands a running job. Its token shows that you may: <code>towpath console JOB</code> prints a
          link with it.
        </p>
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={token}
          aria-invalid={wrong ? "true" : undefined}
          aria-describedby={wrong ? "wrong" : undefined}
          onInput={(event) => setToken(event.currentTarget.value)}
          autofocus
        />
        {wrong && (
          <p id="wrong" class="wrong" role="alert">
            <Icon name="warning" size={18} /> {wrong}
          </p>
        )}
        <button type="submit" class="main" disabled={busy}>
          {busy ? "Logging in…" : "Log in"}
        </button>
      </form>
    </main>
  );
}
