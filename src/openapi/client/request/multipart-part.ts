import { isObject, type JsonSchema } from "../../../core/schema/json-schema.ts";
import { mediaKindOf, parseSendableType } from "../../media-types.ts";
import { isFramingHeader, isHeaderValue, isToken } from "../header-rules.ts";
import type { EncodingPlan, MediaPlan, OperationPlan } from "../plan.ts";
import { binaryProperties } from "./binary-schema.ts";
import { isFileInput, readFileInput } from "./bytes-input.ts";
import { checkWellFormed } from "./escape.ts";
import { jsonTextOf } from "./json-input.ts";
import { scalarText } from "./parameter-value.ts";

/** One part of a multipart body. */
export interface Part {
  /** Header lines, each with its end. */
  readonly head: string;
  readonly content: Uint8Array;
}

/** Writes a value as one part. */
export type PartWriter = (name: string, value: unknown, pointer: string) => Part;

/** What is known of the parts of a body. */
export interface PartsPlan {
  readonly media: MediaPlan | undefined;
  readonly definitions: OperationPlan["definitions"];
  /** Parts have names, as those of `multipart/form-data` do. */
  readonly isForm: boolean;
}

/** Headers of a part that are written from the value. */
const OWN_HEADERS = new Set(["content-type", "content-disposition", "content-transfer-encoding"]);

/** Makes what writes single parts: files, JSON for what has members, and text. */
export function createPartWriter(key: string, plan: PartsPlan): PartWriter {
  const { media, isForm } = plan;
  const binary = binaryProperties(media?.schema, plan.definitions);
  const encodings = new Map(Object.entries(media?.encoding ?? {}));
  const fixed = new Map([...encodings].map(([name, encoding]) => [name, fixedHeaders(encoding)]));
  return (name, value, pointer) => {
    const declared = concreteType(encodings.get(name)?.contentType);
    const { content, filename, contentType } = readPart(value, {
      key,
      pointer,
      declared,
      isBinary: binary.has(name),
    });
    const disposition = isForm ? formDisposition(name, filename, key) : fileDisposition(filename, key);
    const typeLine = contentType === undefined ? "" : `Content-Type: ${contentType}\r\n`;
    return { head: `${disposition}${typeLine}${fixed.get(name) ?? ""}`, content };
  };
}

interface PartContent {
  readonly content: Uint8Array;
  readonly filename?: string | undefined;
  readonly contentType: string | undefined;
}

interface PartPlace {
  readonly key: string;
  readonly pointer: string;
  readonly declared: string | undefined;
  readonly isBinary: boolean;
}

function readPart(value: unknown, { key, pointer, declared, isBinary }: PartPlace): PartContent {
  if (isFileInput(value) || (isBinary && typeof value === "string")) {
    const { bytes, filename = "file", contentType } = readFileInput(value, key, pointer);
    return { content: bytes, filename, contentType: contentType ?? declared ?? "application/octet-stream" };
  }
  const isJson = declared !== undefined && mediaKindOf(parseSendableType(declared)?.essence ?? "") === "json";
  const text = isJson ? undefined : scalarText(value, key);
  if (text !== undefined) return { content: encode(checkWellFormed(text, key)), contentType: declared };
  return { content: encode(jsonTextOf(value, key)), contentType: declared ?? "application/json" };
}

/** The first type of a list that is no range. */
function concreteType(contentType: string | undefined): string | undefined {
  const types = contentType?.split(",").map((each) => each.trim()) ?? [];
  return types.find((each) => parseSendableType(each) !== undefined && !each.includes("*"));
}

/** Headers that the document gives one value for; there is no other place to take them from. */
function fixedHeaders({ headers = {} }: EncodingPlan): string {
  let lines = "";
  for (const [name, schema] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    const value = onlyValueOf(schema);
    if (!isToken(name) || OWN_HEADERS.has(lower) || isFramingHeader(lower)) continue;
    if (value !== undefined && isHeaderValue(value)) lines += `${name}: ${value}\r\n`;
  }
  return lines;
}

function onlyValueOf(schema: JsonSchema): string | undefined {
  if (!isObject(schema)) return undefined;
  const { const: only, default: otherwise, enum: several } = schema;
  const value =
    only ?? otherwise ?? (Array.isArray(several) && several.length === 1 ? several[0] : undefined);
  return ["string", "number", "boolean"].includes(typeof value) ? String(value) : undefined;
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
