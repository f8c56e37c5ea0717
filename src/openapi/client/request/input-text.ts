import { CallError } from "../../../core/errors/errors.ts";
import type { FailureCause } from "../../../core/errors/failure.ts";
import { joinPointer } from "../../../core/json/json-pointer.ts";
import { JsonTextError, toJsonText } from "../../../core/json/json-value.ts";
import { escapeUnits } from "../../../core/text/clean-text.ts";
import { shortText } from "../../../core/text/truncate-text.ts";

/** Text that means the same escaped and unescaped. */
const UNRESERVED = /^[\w.~-]*$/;

/** Half of a surrogate pair: no bytes stand for it. */
const LONE_SURROGATE = /\p{Surrogate}/u;
const LONE_SURROGATES = /\p{Surrogate}/gu;

/** What `encodeURIComponent` leaves as it is and RFC 3986 reserves. */
const LEFT_OVER = /[!'()*]/g;

/** Where escaped text goes; each place has characters of its own that separate. */
type EscapedPlace = "path" | "query";

/** What `allowReserved` lets through: all that RFC 3986 reserves but what separates or ends the place. */
const ALLOWED = { path: /%(?:3A|40|24|26|2B|2C|3B|3D)/g, query: /%(?:3A|2F|3F|40|24|2C|3B|3D)/g } as const;

/** An escape that was escaped. */
const TWICE = /%25([0-9A-Fa-f]{2})/g;

/** Writes text so that every character outside of the unreserved ones of RFC 3986 is escaped; `key` is the input it is of. */
export function escapeText(text: string, key: string): string {
  const escaped = tryEscape(text);
  if (escaped === undefined) throw halved(key);
  return escaped;
}

/** The same for text of whatever origin; nothing where it has no UTF-8. */
export function tryEscape(text: string): string | undefined {
  if (UNRESERVED.test(text)) return text;
  if (LONE_SURROGATE.test(text)) return undefined;
  return encodeURIComponent(text).replace(LEFT_OVER, escapeCharacter);
}

/** Writes what stands between the parts of a value: a comma as it is, anything else escaped. */
export function escapeSeparator(separator: string): string {
  return separator === "," ? separator : escapeName(separator);
}

/** The same with reserved characters and escapes left as they are, the ones that separate in its place excepted. */
export function escapeReserved(text: string, key: string, place: EscapedPlace): string {
  if (UNRESERVED.test(text)) return text;
  if (place === "path" && text.includes("/")) throw invalidInput(key, 'holds "/", which would add a segment');
  // The quote is escaped in queries, as every URL parser does.
  const encoded = encode(text, key);
  const quoted = place === "query" ? encoded.replaceAll("'", "%27") : encoded;
  return quoted.replace(ALLOWED[place], decodeURIComponent).replace(TWICE, "%$1");
}

/** Escapes a name that a document gives; half of a surrogate pair becomes the replacement character. */
export function escapeName(name: string): string {
  return escapeText(name.replace(LONE_SURROGATES, "\uFFFD"), name);
}

/** Escapes fixed text of a document, where escapes are taken for what they are. */
export function escapeLiteral(text: string): string {
  const whole = text.replace(LONE_SURROGATES, "\uFFFD");
  const encoded = encodeURI(whole).replace(TWICE, "%$1");
  return encoded.replace(/[?#]/g, escapeCharacter);
}

/** Refuses text that has no UTF-8. */
export function checkWellFormed(text: string, key: string): string {
  if (LONE_SURROGATE.test(text)) throw halved(key);
  return text;
}

function encode(text: string, key: string): string {
  try {
    return encodeURIComponent(text);
  } catch {
    throw halved(key);
  }
}

function halved(key: string) {
  return invalidInput(key, "holds half of a surrogate pair, which cannot be sent");
}

function escapeCharacter(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

/** Longest name or pointer that a message shows: both are somebody else's text. */
const SHOWN = 80;

/** Says what is wrong with one input; `pointer` leads to the place inside of it. */
export function invalidInput(key: string, why: string, pointer = ""): CallError {
  const place = pointer === "" ? "" : ` at ${shown(pointer)}`;
  return new CallError("VALIDATION_ERROR", `The input ${shown(key)}${place} ${why}.`, {
    details: { pointer: `${joinPointer("", key)}${pointer}`.slice(0, 4 * SHOWN) },
    stack: false,
  });
}

/** Refuses what holds bytes that cannot be read at once; as JSON it would be an empty object. */
export function refuseBlob(value: unknown, key: string, pointer = ""): void {
  if (!(value instanceof Blob)) return;
  const forms = 'a Uint8Array, text, or { base64: "…" }';
  throw invalidInput(key, `is a Blob, which cannot be read at once; give its bytes: ${forms}`, pointer);
}

/** Says why an operation cannot be called as its document describes it. */
export function notCallable(message: string, failure?: FailureCause): CallError {
  return new CallError("NOT_IMPLEMENTED", message, { failure, stack: false });
}

/** A name between quotes, cut where it is long. */
export function shown(name: string): string {
  return JSON.stringify(shortText(name, SHOWN));
}

/** How deep the search for what JSON cannot hold goes. */
const SEARCHED_DEPTH = 200;

/** Writes an input as JSON; what JSON cannot hold is refused by its pointer. */
export function jsonTextOf(value: unknown, key: string): string {
  try {
    return toJsonText(value);
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error;
    const found = findForeign(value, "", []);
    throw invalidInput(key, found?.why ?? "cannot be written as JSON", found?.pointer);
  }
}

/** The same in ASCII alone, for places that take no other characters. */
export function asciiJsonOf(value: unknown, key: string): string {
  return jsonTextOf(value, key).replace(/[^ -~]/g, escapeUnits);
}

interface Foreign {
  readonly pointer: string;
  readonly why: string;
}

/** Looks for the first thing that JSON cannot hold; only once it is known that there is one. */
function findForeign(value: unknown, pointer: string, around: readonly object[]): Foreign | undefined {
  if (typeof value !== "object" || value === null) {
    const why = whyNoScalar(value);
    return why === undefined ? undefined : { pointer, why };
  }
  if (around.includes(value)) return { pointer, why: "refers to itself" };
  if (around.length > SEARCHED_DEPTH) return { pointer: "", why: "is nested too deeply" };
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return { pointer, why: "is bytes, which JSON cannot hold; give them as base64 text" };
  }
  if (value instanceof Blob) return { pointer, why: "is a Blob, which JSON cannot hold; give base64 text" };
  if (value instanceof Error || value instanceof Map || value instanceof Set) {
    return { pointer, why: "is an instance that JSON cannot hold" };
  }
  return findInside(value, pointer, [...around, value]);
}

function findInside(value: object, pointer: string, around: readonly object[]): Foreign | undefined {
  const isList = Array.isArray(value);
  for (const [key, member] of Object.entries(value)) {
    if (!isList && member === undefined) continue;
    const found = findForeign(member, joinPointer(pointer, key), around);
    if (found !== undefined) return found;
  }
  return undefined;
}

function whyNoScalar(value: unknown): string | undefined {
  if (typeof value === "bigint") return "is a bigint, which JSON cannot hold; give a number or text";
  if (typeof value === "number" && !Number.isFinite(value)) return `is ${value}, which JSON cannot hold`;
  if (value === undefined) return "is undefined, which JSON cannot hold";
  return typeof value === "function" || typeof value === "symbol"
    ? `is a ${typeof value}, which JSON cannot hold`
    : undefined;
}

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
      const found =
        typeof value === "string" ? "" : `; it is ${value === undefined ? "" : "of type "}${typeof value}`;
      throw new TypeError(
        `headers: the value of "${name}" must be text of visible ASCII characters${found}.`,
      );
    }
    checked[name] = value;
  }
  return checked;
}
