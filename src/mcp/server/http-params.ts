import { isPlainObject } from "../../core/json/json-value.ts";
import { decodeBase64 } from "../../core/wire/base64.ts";
import { ProtocolError, RPC_CODES } from "../protocol/messages.ts";
import type { PeerRequest } from "./peer-request.ts";

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const ENCODED = /^=\?base64\?(.*)\?=$/;
const DECIMAL = /^-?\d{1,20}(\.\d{1,20})?$/;
const DEPTH = 32;

/** A member of the arguments that a header repeats. */
interface Mirrored {
  readonly path: readonly string[];
  readonly header: string;
}

const mirroredOf = new WeakMap<object, readonly Mirrored[]>();

/**
 * Checks that the `Mcp-Param-*` headers of a 2026-07-28 call over HTTP repeat what the arguments say, wherever the tool's input
 * schema has an `x-mcp-header`: what routed the request must be what runs. Anything else is a protocol error.
 */
export function checkParamHeaders(
  request: Pick<PeerRequest, "peer" | "hasHeaders" | "header">,
  inputSchema: object,
  args: unknown,
): void {
  if (!request.hasHeaders || request.peer.era !== "modern") return;
  let mirrored = mirroredOf.get(inputSchema);
  if (mirrored === undefined) {
    mirrored = findMirrored(inputSchema, [], []);
    mirroredOf.set(inputSchema, mirrored);
  }
  const wrong = mirrored.find((each) => !agrees(each, args, request));
  if (wrong === undefined) return;
  const message = `The header ${wrong.header} does not repeat the argument ${wrong.path.join(".")}.`;
  throw new ProtocolError(RPC_CODES.headerMismatch, message, { mismatch: { header: wrong.header } });
}

function findMirrored(schema: unknown, path: readonly string[], found: Mirrored[]): readonly Mirrored[] {
  if (!isPlainObject(schema) || path.length > DEPTH) return found;
  const name = schema["x-mcp-header"];
  if (path.length > 0 && typeof name === "string" && TOKEN.test(name)) {
    found.push({ path, header: `Mcp-Param-${name}` });
  }
  const { properties } = schema;
  if (!isPlainObject(properties)) return found;
  for (const key of Object.keys(properties)) findMirrored(properties[key], [...path, key], found);
  return found;
}

/** A header is only needed for a value that can be written in one; without such a value, there is nothing it could repeat. */
function agrees({ path, header }: Mirrored, args: unknown, request: Pick<PeerRequest, "header">): boolean {
  const value = valueAt(args, path);
  const given = request.header(header.toLowerCase());
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean")
    return given === undefined;
  if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) return true;
  const text = given === undefined ? undefined : decodeHeader(given);
  if (text === undefined) return false;
  if (typeof value === "number" && DECIMAL.test(text)) return Number(text) === value;
  return text === String(value);
}

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args;
  for (const key of path) {
    if (!isPlainObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
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
