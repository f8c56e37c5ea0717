import { percentDecoded } from "../../../core/text/parse-url.ts";
import { encodeBase64 } from "../../../core/wire/base64.ts";
import type { RequestDraft } from "../http-message.ts";
import type { SecuritySchemePlan } from "../plan.ts";
import { isFramingHeader, isHeaderValue, isToken, tryEscape } from "../request/input-text.ts";
import type { BasicCredential } from "./credentials.ts";

/** What a credential adds to a request: a header in lower case, or an escaped pair of the query or of the cookies. */
export interface Addition {
  readonly place: "header" | "query" | "cookie";
  readonly name: string;
  readonly value: string;
}

type ApiKeyScheme = Extract<SecuritySchemePlan, { readonly type: "apiKey" }>;

/** Tells whether a key can be sent under the name that a document gives. */
export function canHoldKey(scheme: ApiKeyScheme): boolean {
  if (scheme.name === "") return false;
  switch (scheme.in) {
    case "header":
      return isToken(scheme.name) && mayHoldKey(scheme.name.toLowerCase());
    case "cookie":
      return isToken(scheme.name);
    case "query":
      return tryEscape(scheme.name) !== undefined;
  }
}

/** Headers that frame a message or describe its body, and the one of all cookies: no document may have them set to a key. */
function mayHoldKey(header: string): boolean {
  return !isFramingHeader(header) && !header.startsWith("content-") && header !== "cookie";
}

/** Says what is wrong with a key for the place it goes to; nothing for a good one. */
export function keyMisfit(scheme: ApiKeyScheme, key: string): string | undefined {
  if (key === "") return "must not be empty";
  if (scheme.in === "header") {
    return isHeaderValue(key)
      ? undefined
      : "must be a text that a header can hold: visible ASCII, no line breaks, no space at its ends";
  }
  return tryEscape(key) === undefined ? "must be well-formed Unicode" : undefined;
}

/** Writes a key, already checked, for its place. */
export function addKey(scheme: ApiKeyScheme, key: string): Addition {
  switch (scheme.in) {
    case "header":
      return { place: "header", name: scheme.name.toLowerCase(), value: key };
    case "query":
      return { place: "query", name: tryEscape(scheme.name) ?? "", value: tryEscape(key) ?? "" };
    case "cookie":
      return { place: "cookie", name: scheme.name, value: escapeCookie(key) };
  }
}

/** Writes a name and a password, already checked (RFC 7617, in UTF-8). */
export function addBasic({ username, password }: BasicCredential): Addition {
  const pair = new TextEncoder().encode(`${username}:${password}`);
  return { place: "header", name: "authorization", value: `Basic ${encodeBase64(pair)}` };
}

/** Writes a token, already checked (RFC 6750). */
export function addBearer(token: string): Addition {
  return { place: "header", name: "authorization", value: `Bearer ${token}` };
}

/** Tells whether a token can go into a header without becoming something else. */
export function isTokenText(value: string): boolean {
  return /^[!-~]+$/.test(value);
}

/** Puts credentials into a request, in place of what has their names. */
export function addTo(draft: RequestDraft, additions: readonly Addition[]): void {
  for (const { place, name, value } of additions) {
    if (place === "header") draft.headers[name] = value;
    else if (place === "cookie")
      replacePair(draft.cookies, `${name}=${value}`, (text) => keptCookie(text, name));
    else replacePair(draft.query, `${name}=${value}`, (text) => keptQuery(text, percentDecoded(name)));
  }
}

/** Tells whether two additions would write different things into one place. */
export function clash(additions: readonly Addition[]): boolean {
  return additions.some((one, index) =>
    additions
      .slice(0, index)
      .some((other) => other.place === one.place && other.name === one.name && other.value !== one.value),
  );
}

/** Adds a pair in place of others; `keep` gives what is left of each. */
function replacePair(pairs: string[], added: string, keep: (text: string) => string | undefined): void {
  let end = 0;
  for (const text of pairs) {
    const kept = keep(text);
    if (kept !== undefined) pairs[end++] = kept;
  }
  pairs.length = end;
  pairs.push(added);
}

/** Names of parameters are escaped in cookies, and those of keys are not. */
function keptCookie(text: string, name: string): string | undefined {
  const [found = ""] = text.split("=", 1);
  return found === name || percentDecoded(found) === name ? undefined : text;
}

/** One text of a query may hold several pairs. */
function keptQuery(text: string, name: string): string | undefined {
  const all = text.split("&");
  const kept = all.filter((pair) => percentDecoded(pair.split("=", 1)[0] ?? "") !== name);
  return kept.length === 0 ? undefined : kept.join("&");
}

/** Leaves what a cookie can hold (RFC 6265) as it is, `=` and `%` included: keys are often base64, and servers seldom unescape them. */
function escapeCookie(text: string): string {
  return text.replace(/[^!#-+\--:<-[\]-~]+/g, encodeURIComponent);
}
