import { useEffect, useState } from "preact/hooks";

/** The views, in the order of the tabs. */
export const VIEWS = ["home", "operations", "resources", "calls", "sources", "approvals", "decode"] as const;

/** One of the views. */
export type ViewName = (typeof VIEWS)[number];

/** What the address after `#` asks for: `#/operations/<id>`, `#/calls/<seq>`, and so on. */
export interface PageRoute {
  readonly view: ViewName;
  /** What is chosen in the view: an operation's id, a call's number. */
  readonly chosen: string | undefined;
  /** The value of `?input=` as it is: JSON, if it is any. */
  readonly input: string | undefined;
}

/** Reads the address after `#`; what nobody knows is the first view. */
export function parseRoute(hash: string): PageRoute {
  const [place = "", query = ""] = hash.replace(/^#/, "").split("?", 2);
  const [, name = "", ...rest] = place.split("/");
  const view = VIEWS.find((known) => known === name) ?? VIEWS[0];
  const chosen = decode(rest.join("/"));
  const [, input] = /^input=(.*)$/s.exec(query) ?? [];
  const isThere = chosen !== "" && view === name;
  return {
    view,
    chosen: isThere ? chosen : undefined,
    input: isThere && input !== undefined ? decode(input) : undefined,
  };
}

/** The address of a view and of what is chosen in it, with an input as JSON to be filled in. */
export function toHash(view: ViewName, chosen?: string | number, input?: string): string {
  if (chosen === undefined) return `#/${view}`;
  return `#/${view}/${encodeURIComponent(chosen)}${input === undefined ? "" : `?input=${encodeURIComponent(input)}`}`;
}

/** Goes there; the way back leads here, unless this place is replaced. */
export function navigate(hash: string, { replace = false } = {}): void {
  if (hash === location.hash) return;
  if (!replace) {
    location.hash = hash;
    return;
  }
  history.replaceState(null, "", hash);
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

/** The present route, followed. */
export function useRoute(): PageRoute {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const follow = (): void => setRoute(parseRoute(location.hash));
    window.addEventListener("hashchange", follow);
    // It may have changed between the first drawing and now.
    follow();
    return () => window.removeEventListener("hashchange", follow);
  }, []);
  return route;
}

/** Reads an escaped part of an address; what is escaped in no way is left as it is. */
export function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
