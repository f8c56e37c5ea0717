import { invalidInput } from "./invalid-input.ts";

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
