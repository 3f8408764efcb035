/** Which page is shown: the part of the address behind the #. */
import { useEffect, useState } from "preact/hooks";

export interface Place {
  page: string;
  name: string; // of what is shown on the page
}

function here(): Place {
  const [page = "", ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return { page: page || "queries", name: decodeURIComponent(rest.join("/")) };
}

export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const moved = () => setPlace(here());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return place;
}

export function link(page: string, name = ""): string {
  return `#/${page}${name ? `/${encodeURIComponent(name)}` : ""}`;
}

export function go(page: string, name = ""): void {
  location.hash = link(page, name);
}
