import { decode } from "../router.ts";

const KEY = "waybill.token";

/** The token this tab was given; it is forgotten with the tab. */
export function readToken(): string | undefined {
  try {
    return sessionStorage.getItem(KEY) ?? undefined;
  } catch {
    return held;
  }
}

/** Keeps a token for this tab. */
export function keepToken(token: string | undefined): void {
  held = token;
  try {
    if (token === undefined) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, token);
  } catch {
    // Kept in memory alone.
  }
}

/** Takes over a token from `#token=…`, and out of the address, so that it is neither seen nor shared. */
export function takeTokenFromAddress(): void {
  const [, token] = /^#token=([^&]+)/.exec(location.hash) ?? [];
  if (token === undefined) return;
  keepToken(decode(token));
  history.replaceState(null, "", location.pathname + location.search);
}

let held: string | undefined;
