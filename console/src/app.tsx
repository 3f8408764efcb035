import { useEffect, useState } from "preact/hooks";
import { ask, onLoggedOut, type Session } from "./api";
import { Figures } from "./parts/figures";
import { Icon, type IconName } from "./parts/icon";
import { Notices } from "./parts/notices";
import { connect, disconnect, useLive } from "./live";
import { link, usePlace } from "./route";
import { SessionContext } from "./session";
import { HistoryPage } from "./pages/history";
import { Login } from "./pages/login";
import { MapPage } from "./pages/map";
import { PlanPage } from "./pages/plan";
import { QueriesPage } from "./pages/queries";
import { ReplayPage } from "./pages/replay";
import { SubmitPage } from "./pages/submit";

const PAGES: { page: string; title: string; icon: IconName }[] = [
  { page: "queries", title: "Queries", icon: "list" },
  { page: "map", title: "Map", icon: "map" },
  { page: "plan", title: "Plan", icon: "scales" },
  { page: "history", title: "History", icon: "clock" },
];

/** Pages that are reached from another one. */
const BELOW: Record<string, string> = { new: "queries", replay: "history" };

export function App() {
  const [session, setSession] = useState<Session | null | "unknown">("unknown"); // null: nobody is logged in
  useEffect(() => {
    onLoggedOut(() => setSession(null));
    ask<Session>("console/session").then((found) => setSession(found.role && found), () => setSession(null));
  }, []);
  const known = session !== "unknown" && session !== null;
  useEffect(() => {
    if (!known) return;
    connect(() => setSession(null));
    return disconnect;
  }, [known]);
  if (session === "unknown") return null;
  if (session === null) return <Login entered={setSession} />;
  return (
    <SessionContext.Provider value={session}>
      <Shell
        session={session}
        leave={() => void ask("console/session", undefined, "DELETE").finally(() => setSession(null))}
      />
    </SessionContext.Provider>
  );
}

function Shell({ session, leave }: { session: Session; leave: () => void }) {
  const place = usePlace();
  const shown = BELOW[place.page] ?? place.page;
  const title = PAGES.find(({ page }) => page === shown)?.title ?? "Queries";
  useEffect(() => {
    document.title = `${(place.page !== "replay" && place.name) || title} · ${session.job} · towpath`;
  }, [place.name, title, session.job]);
  return (
    <div class="shell">
      <a class="skip" href="#content" onClick={skip}>
        Skip to the content
      </a>
      <nav class="rail" aria-label="Pages">
        <div class="brand">
          <img src="./favicon.svg" alt="" width="28" height="28" />
          <div>
            <strong>towpath</strong>
            <span title="The job">{session.job}</span>
          </div>
        </div>
        <ul>
          {PAGES.map(({ page, title, icon }) => (
            <li key={page}>
              <a href={link(page)} aria-current={page === shown ? "page" : undefined}>
                <Icon name={icon} />
                <span>{title}</span>
              </a>
            </li>
          ))}
        </ul>
        <div class="rail-foot">
          <Connection />
          <button type="button" class="quiet" onClick={leave}>
            <Icon name="leave" />
            <span>Log out{session.role === "reader" ? " (reader)" : ""}</span>
          </button>
        </div>
      </nav>
      <main id="content" tabIndex={-1}>
        <h1 class="unseen">{title}</h1>
        <Away />
        <Troubles />
        <Figures />
        {place.page === "map" ? (
          <MapPage />
        ) : place.page === "plan" ? (
          <PlanPage />
        ) : place.page === "replay" ? (
          <ReplayPage key={place.name} from={place.name} />
        ) : place.page === "history" ? (
          <HistoryPage name={place.name} />
        ) : place.page === "new" ? (
          <SubmitPage from={place.name} />
        ) : (
          <QueriesPage name={place.name} />
        )}
      </main>
      <Notices />
    </div>
  );
}

/** The part of the address behind the # is the page, so the link itself must not be followed. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Connection() {
  const connection = useLive("connection");
  const words = { connecting: "Connecting…", live: "Live", lost: "Reconnecting…" }[connection];
  return (
    <p class={`connection ${connection}`} role="status">
      <i aria-hidden="true" /> {words}
    </p>
  );
}

const AWAY_MS = 3000; // a break that is over by then is nobody's concern

function Away() {
  const connection = useLive("connection");
  const [away, setAway] = useState(false);
  useEffect(() => {
    setAway(false);
    if (connection !== "lost") return;
    const timer = setTimeout(() => setAway(true), AWAY_MS);
    return () => clearTimeout(timer);
  }, [connection]);
  if (!away) return null;
  return (
    <div class="banner odd" role="alert">
      <Icon name="warning" />
      <p>The service does not answer. What is shown is from before; this page goes on by itself when the service is back.</p>
    </div>
  );
}

function Troubles() {
  const troubles = useLive("figures")?.troubles ?? [];
  if (!troubles.length) return null;
  return (
    <div class="banner bad" role="alert">
      <Icon name="warning" />
      <ul>
        {troubles.map((trouble) => (
          <li key={trouble}>{trouble}</li>
        ))}
      </ul>
    </div>
  );
}
