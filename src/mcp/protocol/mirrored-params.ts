import { isPlainObject } from "../../core/json/json-value.ts";
import { decodeBase64 } from "../../core/wire/base64.ts";

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const ENCODED = /^=\?base64\?(.*)\?=$/;
/** Visible ASCII, with spaces and tabs between. */
const PLAIN = /^[!-~](?:[\t -~]*[!-~])?$/;
const DEPTH = 32;

/** A member of the arguments of a tool that a header repeats over HTTP, since 2026-07-28. */
export interface MirroredParam {
  readonly path: readonly string[];
  readonly header: string;
}

const known = new WeakMap<object, readonly MirroredParam[]>();

/** Finds the members of an input schema that have an `x-mcp-header`; they are looked for once for each schema. */
export function mirroredParams(inputSchema: object): readonly MirroredParam[] {
  let found = known.get(inputSchema);
  if (found === undefined) {
    found = find(inputSchema, [], []);
    known.set(inputSchema, found);
  }
  return found;
}

function find(schema: unknown, path: readonly string[], found: MirroredParam[]): readonly MirroredParam[] {
  if (!isPlainObject(schema) || path.length > DEPTH) return found;
  const name = schema["x-mcp-header"];
  if (path.length > 0 && typeof name === "string" && TOKEN.test(name)) {
    found.push({ path, header: `Mcp-Param-${name}` });
  }
  const { properties } = schema;
  if (!isPlainObject(properties)) return found;
  for (const key of Object.keys(properties)) find(properties[key], [...path, key], found);
  return found;
}

/** The argument that a header repeats; nothing where there is none that a header can hold. */
export function mirroredValue(args: unknown, path: readonly string[]): string | number | boolean | undefined {
  let value = args;
  for (const key of path) {
    if (!isPlainObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? value
    : undefined;
}

/** Tells whether a number is too large to be written in a header so that everybody reads the same one. */
export function isInexact(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
}

/** Writes a text so that a header can hold it: in base64 where it is more than visible ASCII. */
export function encodeHeader(text: string): string {
  if (PLAIN.test(text) && !ENCODED.test(text)) return text;
  return `=?base64?${Buffer.from(text, "utf8").toString("base64")}?=`;
}

/** Reads a header whose text may be written in base64; nothing where that is broken. */
export function decodeHeader(text: string): string | undefined {
  const encoded = ENCODED.exec(text)?.[1];
  if (encoded === undefined) return text;
  const bytes = decodeBase64(encoded);
  if (bytes === undefined) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
