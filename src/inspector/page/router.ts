import { useEffect, useState } from "preact/hooks";

/** The views, in the order of the tabs. */
export const VIEWS = ["operations", "calls", "sources", "decode"] as const;

/** One of the views. */
export type ViewName = (typeof VIEWS)[number];

/** What the address after `#` asks for: `#/operations/<id>`, `#/calls/<seq>`, and so on. */
export interface Route {
  readonly view: ViewName;
  /** What is chosen in the view: an operation's id, a call's number. */
  readonly chosen: string | undefined;
}

/** Reads the address after `#`; what nobody knows is the first view. */
export function parseRoute(hash: string): Route {
  const [, name = "", ...rest] = hash.replace(/^#/, "").split("/");
  const view = VIEWS.find((known) => known === name) ?? VIEWS[0];
  const chosen = decode(rest.join("/"));
  return { view, chosen: chosen === "" || view !== name ? undefined : chosen };
}

/** The address of a view and of what is chosen in it. */
export function toHash(view: ViewName, chosen?: string | number): string {
  return chosen === undefined ? `#/${view}` : `#/${view}/${encodeURIComponent(chosen)}`;
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
export function useRoute(): Route {
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
