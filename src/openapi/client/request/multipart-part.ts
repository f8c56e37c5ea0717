import { mediaKindOf, parseSendableType } from "../../media-types.ts";
import { isFileInput, readFileInput } from "./bytes-input.ts";
import { checkWellFormed } from "./escape.ts";
import { refuseBlob } from "./invalid-input.ts";
import { jsonTextOf } from "./json-input.ts";
import { scalarText } from "./parameter-value.ts";
import type { PartRule } from "./part-rules.ts";

/** One part of a multipart body. */
export interface Part {
  /** Header lines, each with its end. */
  readonly head: string;
  readonly content: Uint8Array;
}

/** A value that becomes one part. */
export interface PartValue {
  readonly value: unknown;
  /** Parts of a form have one. */
  readonly name: string | undefined;
  /** The input that it is of, and where in it. */
  readonly key: string;
  readonly pointer: string;
  readonly rule: PartRule;
}

const OCTETS = "application/octet-stream";

/** Writes a part: a file, JSON for what has members, or text. */
export function writePart(part: PartValue): Part {
  const { name, key, rule } = part;
  const { content, filename, contentType } = readPart(part);
  const disposition =
    name === undefined ? fileDisposition(filename, key) : formDisposition(name, filename, key);
  const typeLine = contentType === undefined ? "" : `Content-Type: ${contentType}\r\n`;
  return { head: `${disposition}${typeLine}${rule.headers}`, content };
}

interface PartContent {
  readonly content: Uint8Array;
  readonly filename?: string | undefined;
  readonly contentType: string | undefined;
}

function readPart({ value, key, pointer, rule }: PartValue): PartContent {
  const { declared, isBinary, isEncoded } = rule;
  refuseBlob(value, key, pointer);
  if (isFileInput(value) || (isBinary && typeof value === "string")) {
    const { bytes, filename = "file", contentType } = readFileInput(value, key, pointer);
    return { content: bytes, filename, contentType: contentType ?? declared ?? OCTETS };
  }
  const isJson = declared !== undefined && mediaKindOf(parseSendableType(declared)?.essence ?? "") === "json";
  const text = isJson ? undefined : scalarText(value, key);
  if (text === undefined) {
    return { content: encode(jsonTextOf(value, key)), contentType: declared ?? "application/json" };
  }
  const contentType = declared ?? (isEncoded ? OCTETS : undefined);
  return { content: encode(checkWellFormed(text, key)), contentType };
}

function formDisposition(name: string, filename: string | undefined, key: string): string {
  const file = filename === undefined ? "" : `; filename="${escapeName(filename, key)}"`;
  return `Content-Disposition: form-data; name="${escapeName(name, key)}"${file}\r\n`;
}

function fileDisposition(filename: string | undefined, key: string): string {
  if (filename === undefined || filename === "file") return "";
  return `Content-Disposition: attachment; filename="${escapeName(filename, key)}"\r\n`;
}

/** As browsers do it; nothing else ends a quoted name. */
function escapeName(name: string, key: string): string {
  return checkWellFormed(name, key).replace(/["\r\n]/g, (character) =>
    character === '"' ? "%22" : character === "\r" ? "%0D" : "%0A",
  );
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
