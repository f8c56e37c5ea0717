import { randomBytes } from "node:crypto";
import { joinPointer } from "../../../core/json/json-pointer.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import { isObject, isSchema, type JsonSchema } from "../../../core/schema/json-schema.ts";
import { followReferences } from "../../../core/schema/schema-view.ts";
import { decodeBase64 } from "../../../core/wire/base64.ts";
import {
  mediaKindOf,
  parseSendableType,
  readDeclaredType,
  type SendableType,
  writeMediaType,
} from "../../media-types.ts";
import type { BodyPlan, EncodingPlan, MediaPlan, OperationPlan } from "../plan.ts";
import {
  checkWellFormed,
  invalidInput,
  isFramingHeader,
  isHeaderValue,
  isToken,
  jsonTextOf,
  notCallable,
  refuseBlob,
} from "./input-text.ts";
import {
  checkSeparable,
  createFormWriter,
  isAbsent,
  isEmptyShape,
  joinShape,
  memberText,
  scalarText,
  separatorOf,
  shapeOf,
} from "./parameters.ts";
import { isBinary } from "./plan-input.ts";

/** A body as it is sent. */
interface WrittenBody {
  readonly body: string | Uint8Array;
  readonly contentType: string;
}

/** Writes the body of one call. */
type BodyWriter = (value: unknown) => WrittenBody;

const OCTETS = "application/octet-stream";

/** Makes what writes bodies of an operation, in the first media type that it takes. */
export function createBodyWriter(body: BodyPlan, definitions: OperationPlan["definitions"]): BodyWriter {
  const { key } = body;
  const [media] = body.content;
  const contentType = media?.mediaType.trim() ?? OCTETS;
  const type = readDeclaredType(contentType);
  if (!isHeaderValue(contentType)) {
    return () => {
      throw notCallable("The body cannot be sent: its media type is none.");
    };
  }
  switch (mediaKindOf(type.essence)) {
    case "json":
      return (value) => ({ body: jsonTextOf(value, key), contentType });
    case "lines":
      return (value) => ({ body: linesOf(value, key), contentType });
    case "records":
      return (value) => ({ body: linesOf(value, key, "\u001e"), contentType });
    case "form": {
      const write = createFormWriter(key, media?.encoding);
      return (value) => ({ body: write(value), contentType });
    }
    case "multipart":
      return createMultipartWriter(key, type, { media, definitions });
    case "xml":
      return (value) => ({ body: textOf(value, key, "xml"), contentType });
    case "text":
    case "events":
      return (value) => ({ body: textOf(value, key, "text"), contentType: textType(contentType) });
    case "bytes":
      return (value) => ({ body: bytesOf(value, key), contentType });
    case "range":
      return (value) => writeInRange(value, key, type.essence);
  }
}

/** A range of types is not one: text means plain text. */
function textType(contentType: string): string {
  return contentType.startsWith("text/*") ? "text/plain; charset=utf-8" : contentType;
}

function textOf(value: unknown, key: string, kind: "text" | "xml"): string | Uint8Array {
  if (isFileInput(value)) return readFileInput(value, key).bytes;
  if (kind === "xml" && typeof value !== "string") throw invalidInput(key, "must be XML, as text");
  return value === null ? "null" : checkWellFormed(memberText(value, key), key);
}

function bytesOf(value: unknown, key: string): Uint8Array {
  return readFileInput(value, key).bytes;
}

/** One JSON text a line, each behind a mark; text is taken to be lines already. */
function linesOf(value: unknown, key: string, mark = ""): string | Uint8Array {
  if (typeof value === "string" || isFileInput(value)) return textOf(value, key, "text");
  if (!Array.isArray(value)) throw invalidInput(key, "must be a list, each item a line");
  return value.map((item) => `${mark}${jsonTextOf(item, key)}\n`).join("");
}

/** Bytes go as what they say they are; other data is JSON where the range allows it. */
function writeInRange(value: unknown, key: string, range: string): WrittenBody {
  const takesJson = range === "*/*" || range === "application/*";
  if (takesJson && typeof value !== "string" && !isFileInput(value) && !(value instanceof Blob)) {
    return { body: jsonTextOf(value, key), contentType: "application/json" };
  }
  const { bytes, contentType = OCTETS } = readFileInput(value, key);
  return { body: bytes, contentType };
}

/** Bytes of an input, and what it says about them. */
interface GivenFile {
  readonly bytes: Uint8Array;
  readonly filename?: string | undefined;
  /** A media type, checked. */
  readonly contentType?: string | undefined;
}

const FILE_KEYS = new Set(["base64", "filename", "contentType"]);

/** Tells whether a value can only be meant as bytes: bytes, or base64 with what belongs to it and nothing else. */
function isFileInput(value: unknown): boolean {
  if (value instanceof ArrayBuffer || ArrayBuffer.isView(value)) return true;
  if (!isPlainObject(value) || typeof value["base64"] !== "string") return false;
  return Object.keys(value).every((name) => FILE_KEYS.has(name));
}

/** Reads bytes from an input: bytes, text for its UTF-8, or `{ base64, filename?, contentType? }`. */
function readFileInput(value: unknown, key: string, pointer = ""): GivenFile {
  if (typeof value === "string") return { bytes: new TextEncoder().encode(checkWellFormed(value, key)) };
  if (value instanceof ArrayBuffer) return { bytes: new Uint8Array(value) };
  if (ArrayBuffer.isView(value)) {
    return { bytes: new Uint8Array(value.buffer, value.byteOffset, value.byteLength) };
  }
  if (!isFileInput(value)) {
    refuseBlob(value, key, pointer);
    throw invalidInput(key, 'must be bytes: a Uint8Array, text, or { base64: "…" }', pointer);
  }
  const { base64, filename, contentType } = value as Record<string, unknown>;
  const bytes = decodeBase64(base64 as string);
  if (bytes === undefined) throw invalidInput(key, "is not valid base64", `${pointer}/base64`);
  if (filename !== undefined && typeof filename !== "string") {
    throw invalidInput(key, "must be text", `${pointer}/filename`);
  }
  return { bytes, filename, contentType: readContentType(contentType, key, `${pointer}/contentType`) };
}

function readContentType(contentType: unknown, key: string, pointer: string): string | undefined {
  if (contentType === undefined) return undefined;
  const type = typeof contentType === "string" ? parseSendableType(contentType) : undefined;
  if (type === undefined || type.essence.includes("*")) {
    throw invalidInput(key, 'must be a media type, such as "image/png"', pointer);
  }
  return (contentType as string).trim();
}

/** Makes what writes objects, or lists where parts have no names, as one of the multipart types. */
function createMultipartWriter(
  key: string,
  type: SendableType,
  about: { readonly media: MediaPlan | undefined; readonly definitions: OperationPlan["definitions"] },
): BodyWriter {
  const isForm = type.essence === "multipart/form-data";
  const rules = createPartRules(about.media, about.definitions);
  const contentType = writeMediaType(type, ["boundary"]);
  return (value) => {
    const isList = !isForm && Array.isArray(value);
    if (!isList && !isPlainObject(value)) throw invalidInput(key, "must be an object, each property a part");
    const values = isList ? placedParts(value, key, rules) : namedParts(value, { key, isForm, rules });
    const parts = Array.from(values, writePart);
    const boundary = newBoundary(parts);
    return { body: assemble(parts, boundary), contentType: `${contentType}; boundary=${boundary}` };
  };
}

/** Parts without names: each item is one, what has no value is none. */
function* placedParts(list: readonly unknown[], key: string, rules: PartRules): Generator<PartValue> {
  for (const [index, value] of list.entries()) {
    if (isAbsent(value)) continue;
    yield { value, name: undefined, key, pointer: `/${index}`, rule: rules(index) };
  }
}

/** Parts by name: lists are repeated, or joined where the document says so. */
function* namedParts(
  object: object,
  { key, isForm, rules }: { readonly key: string; readonly isForm: boolean; readonly rules: PartRules },
): Generator<PartValue> {
  for (const [property, member] of Object.entries(object)) {
    const pointer = joinPointer("", property);
    const rule = rules(property);
    const part = { name: isForm ? property : undefined, key, pointer, rule };
    if (!Array.isArray(member)) {
      if (!isAbsent(member)) yield { ...part, value: member };
    } else if (rule.separator !== undefined) {
      const value = joinList(member, key, rule.separator);
      if (value !== undefined) yield { ...part, value };
    } else {
      for (const [index, value] of member.entries()) {
        if (!isAbsent(value)) yield { ...part, value, pointer: `${pointer}/${index}` };
      }
    }
  }
}

function joinList(list: readonly unknown[], key: string, separator: string): string | undefined {
  const shape = shapeOf(list, key);
  if (isEmptyShape(shape)) return undefined;
  checkSeparable(shape, separator, key);
  return joinShape(shape, { separator, pairs: false, encode: (text) => text });
}

/** 128 random bits that no part contains. */
function newBoundary(parts: readonly Part[]): string {
  for (;;) {
    const boundary = `waybill-${randomBytes(16).toString("hex")}`;
    if (!parts.some(({ head, content }) => head.includes(boundary) || includesText(content, boundary)))
      return boundary;
  }
}

function includesText(bytes: Uint8Array, text: string): boolean {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(text, 0, "latin1");
}

function assemble(parts: readonly Part[], boundary: string): Uint8Array {
  const chunks: Uint8Array[] = [];
  for (const { head, content } of parts) {
    chunks.push(Buffer.from(`--${boundary}\r\n${head}\r\n`), content, Buffer.from("\r\n"));
  }
  chunks.push(Buffer.from(`--${boundary}--\r\n`));
  return Buffer.concat(chunks);
}

/** How one part of a multipart body is written. */
interface PartRule {
  /** The type that the document gives it. */
  readonly declared?: string | undefined;
  /** Text is its bytes. */
  readonly isBinary: boolean;
  /** Text stands for bytes, such as base64. */
  readonly isEncoded: boolean;
  /** Header lines, each with its end. */
  readonly headers: string;
  /** Joins a list into one part; without it, each item is a part. */
  readonly separator?: string | undefined;
}

/** Gives the rule of a part: by its name, or by its place where parts have none. */
type PartRules = (part: string | number) => PartRule;

/** Headers of a part that are written from the value. */
const OWN_HEADERS = new Set(["content-type", "content-disposition", "content-transfer-encoding"]);

const NO_RULE: PartRule = { isBinary: false, isEncoded: false, headers: "" };

/** Reads what is known of the parts of a body, once. */
function createPartRules(media: MediaPlan | undefined, definitions: OperationPlan["definitions"]): PartRules {
  const follow = (schema: unknown) =>
    isSchema(schema) ? followReferences(schema, { $defs: definitions }) : undefined;
  const whole = follow(media?.schema);
  const {
    properties,
    prefixItems,
    items = media?.itemSchema,
  } = isObject(whole) ? whole : { properties: undefined, prefixItems: undefined };
  const schemas = isObject(properties) ? properties : {};
  const { encoding = {}, prefixEncoding = [], itemEncoding } = media ?? {};
  const named = new Map<string, PartRule>();
  for (const name of new Set([...Object.keys(schemas), ...Object.keys(encoding)])) {
    const schema = follow(Object.hasOwn(schemas, name) ? schemas[name] : undefined);
    const each = isObject(schema) && schema["type"] === "array" ? follow(schema["items"]) : schema;
    named.set(name, toRule(Object.hasOwn(encoding, name) ? encoding[name] : undefined, each));
  }
  const first: readonly unknown[] = Array.isArray(prefixItems) ? prefixItems : [];
  const rest = toRule(itemEncoding, follow(items));
  const placed = Array.from({ length: Math.max(first.length, prefixEncoding.length) }, (_, index) =>
    toRule(prefixEncoding[index] ?? itemEncoding, follow(first[index] ?? items)),
  );
  return (part) => (typeof part === "string" ? (named.get(part) ?? NO_RULE) : (placed[part] ?? rest));
}

function toRule(encoding: EncodingPlan = {}, schema: JsonSchema | undefined): PartRule {
  return {
    declared: concreteType(encoding.contentType),
    isBinary: isObject(schema) && isBinary(schema),
    isEncoded: isObject(schema) && typeof schema["contentEncoding"] === "string",
    headers: fixedHeaders(encoding),
    separator: partSeparator(encoding),
  };
}

/** Lists are repeated unless something is said about how they are written. */
function partSeparator({ style, explode, separator }: EncodingPlan): string | undefined {
  if (separator === undefined && style === undefined && explode === undefined) return undefined;
  const way = style ?? "form";
  return separatorOf({ style: way, explode: explode ?? way === "form", separator });
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

/** One part of a multipart body. */
interface Part {
  /** Header lines, each with its end. */
  readonly head: string;
  readonly content: Uint8Array;
}

/** A value that becomes one part. */
interface PartValue {
  readonly value: unknown;
  /** Parts of a form have one. */
  readonly name: string | undefined;
  /** The input that it is of, and where in it. */
  readonly key: string;
  readonly pointer: string;
  readonly rule: PartRule;
}

/** Writes a part: a file, JSON for what has members, or text. */
function writePart(part: PartValue): Part {
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
