import { invalidInput } from "./invalid-input.ts";

const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;

/** Visible ASCII, with spaces and tabs inside of it. */
const VALUE = /^(?:[!-~](?:[\t -~]*[!-~])?)?$/;

/** Names that say where a message ends or who it is for: the transport writes them. `__proto__` is no name for an object. */
const FRAMING = new Set([
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "te",
  "trailer",
  "upgrade",
  "keep-alive",
  "expect",
  "http2-settings",
  "__proto__",
]);

/** Tells whether a text may name a header or a method. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Tells whether a header, named in lower case, is the transport's own. */
export function isFramingHeader(name: string): boolean {
  return FRAMING.has(name) || name.startsWith("proxy-");
}

/** Tells whether a text can be the value of a header, all of it. */
export function isHeaderValue(value: string): boolean {
  return VALUE.test(value);
}

/** Says what keeps an input from being the value of a header. */
export function checkHeaderInput(value: string, key: string): string {
  if (isHeaderValue(value)) return value;
  if (/^[\t -~]*$/.test(value)) {
    throw invalidInput(key, "begins or ends with a space, which a header cannot hold");
  }
  throw invalidInput(key, "holds characters that a header cannot hold: only visible ASCII, spaces and tabs");
}

/** Copies the headers of the options, names in lower case; a `TypeError` names what cannot be sent. */
export function checkOptionHeaders(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  const checked: Record<string, string> = {};
  for (const [given, value] of Object.entries(headers)) {
    const name = given.toLowerCase();
    if (!isToken(given))
      throw new TypeError(`headers: ${JSON.stringify(given)} is not the name of a header.`);
    if (isFramingHeader(name) || name === "content-type") {
      throw new TypeError(`headers: "${name}" is written for each request and cannot be set.`);
    }
    if (typeof value !== "string" || !isHeaderValue(value)) {
      throw new TypeError(`headers: the value of "${name}" must be text of visible ASCII characters.`);
    }
    checked[name] = value;
  }
  return checked;
}
