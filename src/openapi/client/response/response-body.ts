import { isUtf8 } from "node:buffer";
import { joinPointer } from "../../../core/json/json-pointer.ts";
import { countOpenings, parseJsonText } from "../../../core/json/json-value.ts";
import type { SchemaIssue } from "../../../core/schema/schema-issue.ts";
import { safeLine } from "../../../core/text/clean-text.ts";
import { shortText } from "../../../core/text/truncate-text.ts";
import type { ResponseHead } from "../http-message.ts";

/** A body that is not what its media type says. */
class BodyFault extends Error {
  override readonly name = "BodyFault";
}

const REPLACEMENT = "\uFFFD";
const BYTE_ORDER_MARK = 0xfeff;

/** JSON that was read. */
export interface DecodedJson {
  readonly value: unknown;
  readonly text: string;
}

/** Reads a body as JSON; anything else, or anything nested too deeply, is an error. */
export function decodeJson(body: Uint8Array, charset: string | undefined): DecodedJson {
  const isPlain = isUtf8Name(charset) && wideCharset(body) === undefined;
  const text = isPlain ? decodeUtf8(body) : decodeBody(body, charset);
  if (!isPlain) return { value: parseJsonText(text), text };
  if (text.includes(REPLACEMENT) && !isUtf8(body)) throw new BodyFault("The JSON is not UTF-8.");
  return { value: parseJsonText(text, countOpenings(body)), text };
}

/** Reads a body as text, in the character set it says it is in; UTF-8 where nobody knows the name of that. */
export function decodeBody(body: Uint8Array, charset: string | undefined): string {
  const name = wideCharset(body) ?? charset;
  if (isUtf8Name(name)) return decodeUtf8(body);
  try {
    return new TextDecoder(name).decode(body);
  } catch {
    return decodeUtf8(body);
  }
}

function decodeUtf8(body: Uint8Array): string {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const text = bytes.toString("utf8");
  return text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text;
}

function isUtf8Name(charset: string | undefined): boolean {
  return charset === undefined || charset === "utf-8" || charset === "utf8" || charset === "us-ascii";
}

/** What a body begins with says more than its header. */
function wideCharset(body: Uint8Array): string | undefined {
  if (body[0] === 0xff && body[1] === 0xfe) return "utf-16le";
  return body[0] === 0xfe && body[1] === 0xff ? "utf-16be" : undefined;
}

const SPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Gives the first character of text that is not blank, as a code; nothing where there is none. */
export function firstByte(body: Uint8Array): number | undefined {
  let at = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0;
  while (at < body.length && SPACE.has(body[at] as number)) at++;
  return body[at];
}

const OPENINGS: ReadonlySet<number | undefined> = new Set([0x7b, 0x5b]);

/** Tells whether a body begins as an object or a list does. */
export function beginsAsStructure(body: Uint8Array): boolean {
  return OPENINGS.has(firstByte(body));
}

const MOST_FOUND = 20;
const LONGEST_SHOWN = 100;
/** Integers that are changed have sixteen digits at least, and what becomes endless a large exponent. */
const SUSPECT = /[0-9]{16}|[0-9][eE]\+?[0-9]{3}/;

/** A list or an object that is being read, and where. */
interface Level {
  readonly isList: boolean;
  /** How many items of a list came before. */
  index: number;
  /** The last name in an object, as it is written there. */
  name: string;
}

/** What an issue expects where a number is too large, or too long, for a JavaScript number. */
export const EXACT_NUMBER = "a number that can be kept exactly";

/** Finds the numbers of valid JSON text that no JavaScript number can be: integers past 2^53 and what is past any. In linear time. */
export function findInexactNumbers(text: string): readonly SchemaIssue[] {
  return SUSPECT.test(text) ? scan(text) : [];
}

const TOKEN = /["{}[\],:]|-?[0-9][-+.0-9eE]*/g;

function scan(text: string): readonly SchemaIssue[] {
  const found: SchemaIssue[] = [];
  const levels: Level[] = [];
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match !== null && found.length < MOST_FOUND; match = TOKEN.exec(text)) {
    const [token] = match;
    const level = levels.at(-1);
    switch (token) {
      case '"': {
        const end = stringEnd(text, match.index);
        if (level !== undefined) level.name = text.slice(match.index, end);
        TOKEN.lastIndex = end;
        break;
      }
      case "{":
      case "[":
        levels.push({ isList: token === "[", index: 0, name: '""' });
        break;
      case "}":
      case "]":
        levels.pop();
        break;
      case ",":
        if (level !== undefined) level.index += 1;
        break;
      case ":":
        break;
      default:
        if (isInexact(token)) found.push(toIssue(token, levels));
    }
  }
  return found;
}

/** Where a string that begins at a quote is over. */
function stringEnd(text: string, start: number): number {
  let at = start;
  for (;;) {
    at = text.indexOf('"', at + 1);
    if (at === -1) return text.length;
    let before = at;
    while (text[before - 1] === "\\") before -= 1;
    if ((at - before) % 2 === 0) return at + 1;
  }
}

/** Fractions are never exact, and nobody expects it of them. */
function isInexact(token: string): boolean {
  const value = Number(token);
  if (!Number.isFinite(value)) return true;
  return token.length >= 16 && /^-?[0-9]+$/.test(token) && BigInt(value) !== BigInt(token);
}

function toIssue(token: string, levels: readonly Level[]): SchemaIssue {
  const pointer = levels.reduce(
    (above, { isList, index, name }) => joinPointer(above, isList ? index : shownName(name)),
    "",
  );
  const found = shortText(token, LONGEST_SHOWN);
  return { pointer, expected: EXACT_NUMBER, found };
}

/** A name may be as long as the body, and be needed for every number in it. */
function shownName(written: string): string {
  if (written.length <= LONGEST_SHOWN) return String(JSON.parse(written));
  return `${written.slice(1, LONGEST_SHOWN)}…`;
}

type HeaderFields = ResponseHead["headers"];

/** Gives the first value of a header. */
export function headerOf(fields: HeaderFields, name: string): string | undefined {
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  return typeof value === "string" ? value : value?.[0];
}

const TOLD =
  /^(?:retry-after|(?:x-)?rate-?limit(?:-[a-z0-9-]{1,60})?|www-authenticate|x-request-id|request-id|x-correlation-id|location|allow)$/;
const MOST_TOLD = 32;
const LONGEST_TOLD = 1_024;

/** Picks the headers that matter to the caller who is told of an error. */
export function toldHeaders(fields: HeaderFields): Readonly<Record<string, string>> | undefined {
  const told: [string, string][] = [];
  for (const name of Object.keys(fields)) {
    if (told.length === MOST_TOLD || !TOLD.test(name)) continue;
    const value = fields[name] as string | readonly string[];
    told.push([name, safeLine(typeof value === "string" ? value : value.join(", "), LONGEST_TOLD)]);
  }
  return told.length === 0 ? undefined : Object.fromEntries(told);
}

const LONGEST_WAIT_MS = 365 * 24 * 60 * 60 * 1_000;

/** Reads `retry-after`, in seconds or as a date; milliseconds from `now`. */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  if (value === undefined || value.length > 64) return undefined;
  const text = value.trim();
  const isSeconds = /^[0-9]{1,12}(?:\.[0-9]{1,6})?$/.test(text);
  const waited = isSeconds ? Math.ceil(Number(text) * 1_000) : dateOf(text) - now;
  return Number.isFinite(waited) ? Math.min(Math.max(waited, 0), LONGEST_WAIT_MS) : undefined;
}

/** Dates of HTTP alone: the parser would take nearly anything for one. */
function dateOf(text: string): number {
  return /^[A-Za-z]{3,9},? .*[0-9]{2}:[0-9]{2}:[0-9]{2}/.test(text) ? Date.parse(text) : Number.NaN;
}
