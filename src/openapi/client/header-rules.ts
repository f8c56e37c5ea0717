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
