import { encodeBase64 } from "../../../core/wire/base64.ts";
import type { RequestDraft } from "../http-message.ts";
import type { SecuritySchemePlan } from "../plan.ts";
import type { BasicCredential } from "./credentials.ts";

/** What a credential adds to a request: a header in lower case, or an escaped pair of the query or of the cookies. */
export interface Addition {
  readonly place: "header" | "query" | "cookie";
  readonly name: string;
  readonly value: string;
}

type ApiKeyScheme = Extract<SecuritySchemePlan, { readonly type: "apiKey" }>;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Headers that frame a message, name its sender's connection or describe its body: no document may have them set to a key. */
const NOT_FOR_KEYS =
  /^(?:host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|expect|cookie|content-.*|proxy-.*|__proto__)$/;

/** Tells whether a key can be sent under the name that a document gives. */
export function canHoldKey(scheme: ApiKeyScheme): boolean {
  if (scheme.name === "") return false;
  switch (scheme.in) {
    case "header":
      return TOKEN.test(scheme.name) && !NOT_FOR_KEYS.test(scheme.name.toLowerCase());
    case "cookie":
      return TOKEN.test(scheme.name);
    case "query":
      return escapePart(scheme.name) !== undefined;
  }
}

/** Says what is wrong with a key for the place it goes to; nothing for a good one. */
export function keyMisfit(scheme: ApiKeyScheme, key: string): string | undefined {
  if (key === "") return "must not be empty";
  if (scheme.in === "header") {
    return /^[!-~](?:[\t -~]*[!-~])?$/.test(key)
      ? undefined
      : "must be a text that a header can hold: visible ASCII, no line breaks, no space at its ends";
  }
  return escapePart(key) === undefined ? "must be well-formed Unicode" : undefined;
}

/** Writes a key, already checked, for its place. */
export function addKey(scheme: ApiKeyScheme, key: string): Addition {
  switch (scheme.in) {
    case "header":
      return { place: "header", name: scheme.name.toLowerCase(), value: key };
    case "query":
      return { place: "query", name: escapePart(scheme.name) ?? "", value: escapePart(key) ?? "" };
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
export function isToken(value: string): boolean {
  return /^[!-~]+$/.test(value);
}

/** Puts credentials into a request, in place of what has their names. */
export function addTo(draft: RequestDraft, additions: readonly Addition[]): void {
  for (const { place, name, value } of additions) {
    if (place === "header") draft.headers[name] = value;
    else replacePair(place === "query" ? draft.query : draft.cookies, name, value);
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

function replacePair(pairs: string[], name: string, value: string): void {
  const start = `${name}=`;
  for (let index = pairs.length - 1; index >= 0; index--) {
    if (pairs[index]?.startsWith(start) === true) pairs.splice(index, 1);
  }
  pairs.push(start + value);
}

function escapePart(text: string): string | undefined {
  try {
    return encodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Leaves what a cookie can hold (RFC 6265) as it is, `=` and `%` included: keys are often base64, and servers seldom unescape them. */
function escapeCookie(text: string): string {
  return text.replace(/[^!#-+\--:<-[\]-~]+/g, encodeURIComponent);
}
