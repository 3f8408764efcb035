import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "./api";

export const SessionContext = createContext<Session>({ role: "reader", job: "", lasts_s: 0 });

/** Whether whoever looks may change something. */
export function useOperator(): boolean {
  return useContext(SessionContext).role === "operator";
}
