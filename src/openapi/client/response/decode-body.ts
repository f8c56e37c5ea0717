import { isUtf8 } from "node:buffer";
import { countOpenings } from "../../../core/json/json-depth.ts";
import { parseJsonText } from "../../../core/json/json-text.ts";

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
  const text = isPlain ? decodeUtf8(body) : decodeText(body, charset);
  if (!isPlain) return { value: parseJsonText(text), text };
  if (text.includes(REPLACEMENT) && !isUtf8(body)) throw new BodyFault("The JSON is not UTF-8.");
  return { value: parseJsonText(text, countOpenings(body)), text };
}

/** Reads a body as text, in the character set it says it is in; UTF-8 where nobody knows the name of that. */
export function decodeText(body: Uint8Array, charset: string | undefined): string {
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
