import type { MCPContentBlock } from "../core/envelope/content-block.ts";
import { isPlainObject, parseJsonTextOrNone, setOwn, toJsonTextOrNone } from "../core/json/json-value.ts";
import {
  type CallToolResult,
  type FormatName,
  RESULT_META_KEY,
  type ToolResult,
  textOf,
} from "../core/result/tool-result.ts";
import type { ReadOptions } from "./codec.ts";
import { FormatError } from "./format-error.ts";
import { ENVELOPE_LIMITS } from "./tool-envelope/envelope-block.ts";

/** A tool result taken apart: what every format that rides in one starts from. */
export interface Carrier {
  /** As it came; blocks are not checked. */
  readonly content: readonly unknown[];
  readonly hasContent: boolean;
  readonly hasStructured: boolean;
  readonly structured: unknown;
  /** What `isError` says: nothing when it is absent or `null`; what is no boolean is read as an error. */
  readonly flag: boolean | undefined;
  /** `_meta` without our residual. */
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  readonly residual: unknown;
  /** Fields MCP does not define, or that are not what it says they are. */
  readonly rest: Readonly<Record<string, unknown>>;
}

const NOTHING: Readonly<Record<string, unknown>> = Object.freeze({});
const NO_CONTENT: readonly unknown[] = Object.freeze([]);

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Takes a tool result apart; what is none is a `not_a_tool_result` error. */
export function readCarrier(value: unknown): Carrier {
  if (!isPlainObject(value)) throw notAToolResult();
  const carrier: Writable<Carrier> = {
    content: NO_CONTENT,
    hasContent: false,
    hasStructured: false,
    structured: undefined,
    flag: undefined,
    meta: undefined,
    residual: undefined,
    rest: NOTHING,
  };
  for (const key of Object.keys(value)) readPart(carrier, key, value[key]);
  if (!carrier.hasContent && !carrier.hasStructured) throw notAToolResult();
  return carrier;
}

function readPart(carrier: Writable<Carrier>, key: string, part: unknown): void {
  if (key === "content" && Array.isArray(part)) {
    carrier.content = part;
    carrier.hasContent = true;
  } else if (key === "structuredContent" && part !== undefined) {
    carrier.structured = part;
    carrier.hasStructured = true;
  } else if (key === "isError" && typeof part === "boolean") carrier.flag = part;
  else if (key === "isError" && isOddFlag(part)) carrier.flag = true;
  else if (key === "_meta" && isPlainObject(part)) Object.assign(carrier, takeResidual(part));
  else if (part !== undefined) {
    carrier.rest = carrier.rest === NOTHING ? {} : carrier.rest;
    setOwn(carrier.rest, key, part);
  }
}

/** Tells whether an `isError` is neither absent nor a boolean: its author meant to say something. */
export function isOddFlag(flag: unknown): boolean {
  return flag !== undefined && flag !== null && typeof flag !== "boolean";
}

function notAToolResult(): FormatError {
  return new FormatError(
    "not_a_tool_result",
    'This is not a tool result: it is no object with a "content" array or "structuredContent".',
  );
}

/** Tells the residual from the rest of `_meta`, and puts back what had to make room for it. */
export function takeResidual(given: Readonly<Record<string, unknown>>): {
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  readonly residual: unknown;
} {
  const ours = Object.hasOwn(given, RESULT_META_KEY) ? given[RESULT_META_KEY] : undefined;
  if (!isPlainObject(ours) || !Object.hasOwn(ours, "residual")) return { meta: given, residual: undefined };
  const { residual, ...others } = ours;
  const meta: Record<string, unknown> = { ...given };
  delete meta[RESULT_META_KEY];
  const kept = keptUnderOurKey(residual, others);
  if (kept !== undefined) meta[RESULT_META_KEY] = kept;
  return { meta: isEmpty(meta) && !hadMeta(residual) ? undefined : meta, residual };
}

function keptUnderOurKey(residual: unknown, others: Record<string, unknown>): unknown {
  // An object would not have had to make room, and could hold a residual of its own.
  const replaced = isPlainObject(residual) ? residual["replaced"] : undefined;
  if (replaced !== undefined && !isPlainObject(replaced)) return replaced;
  return isEmpty(others) && !(isPlainObject(residual) && residual["shared"] === true) ? undefined : others;
}

/** An empty `_meta` that was there before the residual came is told from one that came with it. */
function hadMeta(residual: unknown): boolean {
  return isPlainObject(residual) && residual["emptyMeta"] === true;
}

/** Puts a residual under our key, next to whatever else is there. */
export function putResidual(
  meta: Readonly<Record<string, unknown>> | undefined,
  residual: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const known =
    meta !== undefined && Object.hasOwn(meta, RESULT_META_KEY) ? meta[RESULT_META_KEY] : undefined;
  const written = {
    ...residual,
    ...(meta !== undefined && isEmpty(meta) && { emptyMeta: true }),
    ...(isPlainObject(known)
      ? isEmpty(known) && { shared: true }
      : known !== undefined && { replaced: known }),
  };
  return { ...meta, [RESULT_META_KEY]: { ...(isPlainObject(known) && known), residual: written } };
}

/** What one format writes into a tool result. */
export interface Written {
  readonly content: readonly MCPContentBlock[];
  readonly structured?: { readonly value: unknown };
  /** What the format itself puts into `isError`; nothing to leave it out. */
  readonly flag: boolean | undefined;
}

/** Puts a tool result together, unusual fields of this format included. */
export function writeCarrier(format: FormatName, result: ToolResult, written: Written): CallToolResult {
  const extra = result.extra?.[format] ?? {};
  // Whatever anybody says about its layout: an error is written as one.
  const flag = !result.isError && Object.hasOwn(extra, "isError") ? extra["isError"] : written.flag;
  const known = {
    ...(extra["noContent"] !== true && { content: written.content }),
    ...(written.structured !== undefined && { structuredContent: written.structured.value }),
    ...(typeof flag === "boolean" && { isError: flag }),
    ...(result._meta !== undefined && { _meta: result._meta }),
  };
  return withUnknown(known, foreignParts(extra["result"])) as CallToolResult;
}

/** What is left of fields once those are gone that would be read as content, data or outcome. */
function foreignParts(fields: unknown): Record<string, unknown> | undefined {
  if (!isPlainObject(fields)) return undefined;
  const { structuredContent: _, ...parts } = fields;
  if (Array.isArray(parts["content"])) delete parts["content"];
  if (typeof parts["isError"] === "boolean") delete parts["isError"];
  return parts;
}

/** Adds fields a format does not define after those it does, which they never replace. */
export function withUnknown<T extends object>(known: T, unknown: unknown): T {
  if (unknown === undefined || !isPlainObject(unknown)) return known;
  let result = known;
  for (const key of Object.keys(unknown)) {
    if (Object.hasOwn(known, key)) continue;
    if (result === known) result = { ...known };
    setOwn(result as Record<string, unknown>, key, unknown[key]);
  }
  return result;
}

/** Tells whether there is anything that `writeCarrier` would not write by itself. */
export function isUnusual(carrier: Carrier, flag: boolean | undefined): boolean {
  return (carrier.flag !== flag && flag !== true) || !carrier.hasContent || carrier.rest !== NOTHING;
}

/** What `writeCarrier` would not write by itself, to be kept under `extra`; `flag` is what the format would write. */
export function unusualParts(carrier: Carrier, flag: boolean | undefined): Record<string, unknown> {
  return {
    ...(carrier.flag !== flag && flag !== true && { isError: carrier.flag ?? null }),
    ...(!carrier.hasContent && { noContent: true }),
    ...(!isEmpty(carrier.rest) && { result: carrier.rest }),
  };
}

/** Tells whether an object has no property of its own. */
export function isEmpty(value: object): boolean {
  for (const _ in value) return false;
  return true;
}

/** A value that may be an envelope, and where it stood. */
export interface Contract {
  readonly value: unknown;
  readonly obtained: "structured-content" | "contract-json";
}

/** Finds where an envelope may stand: the structured content or, without any, the JSON of the first text block. */
export function findContract(carrier: Carrier, options: ReadOptions): Contract | undefined {
  if (carrier.hasStructured) return { value: carrier.structured, obtained: "structured-content" };
  const text = textOf(carrier.content[0]);
  const { maxBytes = ENVELOPE_LIMITS.bytes } = options;
  if (text === undefined || !text.startsWith("{") || text.length > maxBytes) return undefined;
  const value = parseJsonTextOrNone(text);
  return value === undefined ? undefined : { value, obtained: "contract-json" };
}

/** Tells whether a block is exactly the compact JSON of a value. */
export function isJsonOf(block: unknown, value: unknown): block is MCPContentBlock {
  const text = textOf(block);
  // A block with annotations is more than the JSON.
  return text !== undefined && Object.keys(block as object).length === 2 && text === toJsonTextOrNone(value);
}
