import { isPlainObject, setOwn, toJsonTextOrNone } from "../core/json/json-value.ts";
import type { FormatName, ResultError, ToolResult } from "../core/result/tool-result.ts";
import { isEqual } from "../core/schema/compare-values.ts";
import type { Oddity } from "./codec.ts";
import { isField, isNestedField } from "./result-fields.ts";
import { toTieredCode } from "./retry-advice.ts";
import { ENVELOPE_CAPABILITY } from "./tiered-envelope/tiered-envelope.ts";

/** What a format had no place for, and what it had to make up: it travels beside the result and restores it. */
export interface Residual {
  /** The format the result is written in, so that data which looks like another one is not taken for it. */
  readonly format: FormatName;
  /** Values by JSON pointer into the canonical result. */
  readonly set?: Readonly<Record<string, unknown>>;
  /** Pointers to what the format had to make up. */
  readonly unset?: readonly string[];
}

/** Fields looked into one level deeper, so that one lost detail does not drag the others along. */
const NESTED = new Set(["error", "extra"]);

/** Lists, as JSON pointers, where two results differ. */
export function differences(a: ToolResult, b: ToolResult): string[] {
  const found: string[] = [];
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof ToolResult>;
  for (const key of keys) {
    if (isEqual(a[key], b[key])) continue;
    const inner = NESTED.has(key) ? nestedDifferences(key, a[key], b[key]) : undefined;
    found.push(...(inner ?? [`/${key}`]));
  }
  return found.sort();
}

function nestedDifferences(key: string, a: unknown, b: unknown): string[] | undefined {
  if (!isPlainObject(a) || !isPlainObject(b)) return undefined;
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return names.filter((name) => !isEqual(a[name], b[name])).map((name) => `/${key}/${name}`);
}

/** Notes the values behind some pointers, those that are not there included. */
export function toResidual(format: FormatName, result: ToolResult, pointers: readonly string[]): Residual {
  const set: Record<string, unknown> = {};
  const unset: string[] = [];
  for (const pointer of pointers) {
    const value = valueAt(result as unknown as Read, pointer);
    if (value === undefined) unset.push(pointer);
    else set[pointer] = value;
  }
  const hasSet = Object.keys(set).length > 0;
  return { format, ...(hasSet && { set }), ...(unset.length > 0 && { unset }) };
}

/** Restores what a residual holds; what it may not say, or says wrongly, is reported and left alone. */
export function applyResidual(
  result: ToolResult,
  residual: unknown,
): { readonly result: ToolResult; readonly odd: readonly Oddity[] } {
  if (!isPlainObject(residual)) return { result, odd: [refusal("")] };
  const odd: Oddity[] = [];
  const read: Readonly<Record<string, unknown>> = { ...result };
  const restored: Record<string, unknown> = { ...result };
  const { set: given = {}, unset = [] } = residual;
  // Each once: a rule may look through the data, and a repeated pointer must not make it do so each time.
  for (const pointer of new Set<unknown>(Array.isArray(unset) ? unset : [unset])) {
    if (mayUnset(read, pointer)) remove(restored, pointer);
    else odd.push(refusal(typeof pointer === "string" ? pointer : ""));
  }
  const set = isPlainObject(given) ? given : { "": given };
  for (const pointer of Object.keys(set)) {
    if (maySet(read, set, pointer)) put(restored, pointer, set[pointer]);
    else odd.push(refusal(pointer));
  }
  odd.push(...surprises(restored, set, odd.length === 0));
  return { result: restored as unknown as ToolResult, odd };
}

/** What is legitimate where a format has no place for something, and yet worth a word. */
function surprises(
  { status, isError }: Readonly<Record<string, unknown>>,
  set: Readonly<Record<string, unknown>>,
  isClean: boolean,
): readonly Oddity[] {
  const odd: Oddity[] = [];
  if (isClean && Object.hasOwn(set, "/content")) odd.push(CONTENT_REPLACED);
  if (Object.hasOwn(set, "/status") && status !== undefined && (status === "error") !== isError) {
    odd.push({ code: "flag_mismatch", message: "The residual's status does not go with isError." });
  }
  const layout = set["/extra/response-envelope"] ?? set["/extra"];
  if (JSON.stringify(layout)?.includes('"structured"')) {
    odd.push({ code: "structured_claimed", message: "The residual holds structured content of its own." });
  }
  return odd;
}

/** Legitimate where a format has no place for a block, and worth a word: what is shown and what is passed on differ. */
const CONTENT_REPLACED: Oddity = {
  code: "content_replaced",
  message: "The residual holds other content than the result shows.",
};

function refusal(pointer: string): Oddity {
  const what = pointer === "" ? "The residual" : `The residual of "${pointer.slice(0, 80)}"`;
  return { code: "residual_refused", message: `${what} is malformed, or says what a residual may not say.` };
}

function remove(result: Record<string, unknown>, pointer: string): void {
  const [, field = "", inner] = pointer.split("/");
  const value = result[field];
  if (inner === undefined) delete result[field];
  else if (isPlainObject(value)) {
    const { [inner]: _, ...others } = value;
    result[field] = others;
  }
}

function put(result: Record<string, unknown>, pointer: string, value: unknown): void {
  const [, field = "", inner] = pointer.split("/");
  if (inner === undefined) {
    result[field] = value;
    return;
  }
  const copy = isPlainObject(result[field]) ? { ...result[field] } : {};
  setOwn(copy, inner, value);
  result[field] = copy;
}

/** A result as it was read, before anything is restored. */
type Read = Readonly<Record<string, unknown>>;
type Rule = (value: unknown, read: Read) => boolean;

const always: Rule = () => true;
const errorOf = (read: Read): Partial<ResultError> => (isPlainObject(read["error"]) ? read["error"] : {});

/** When a value that is there may be what a format made up, so that a residual may take it away. */
const MADE_UP: Readonly<Record<string, Rule>> = {
  "/data": (data) => data === null || (isPlainObject(data) && Object.keys(data).join() === "errorCode"),
  "/tier": (tier) => tier === "community",
  "/tool": (tool) => tool === "unknown",
  "/toolVersion": (version) => version === "0.0.0",
  "/requestId": (id) => typeof id === "string" && /^[0-9a-f]{32}$/.test(id),
  "/durationMs": (duration) => duration === 0,
  "/timestamp": (time) => typeof time === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(time),
  "/capabilities": (list) => isEqual(list, [ENVELOPE_CAPABILITY]),
  "/upgradeHints": (hints) => isEqual(hints, []),
  "/status": (status, { isError }) => status === (isError === true ? "error" : "ok"),
  "/summary": always,
  "/nextSteps": always,
  "/content": always,
  "/error": (_, read) => ["TOOL_ERROR", "internal_error"].includes(String(errorOf(read).code)),
  "/error/code": (code) => code === "TOOL_ERROR" || code === "internal_error",
  "/error/category": always,
  "/error/recoverable": always,
  "/error/details": (details) => typeof details === "string",
};

/** When a value that is there is what a format makes of another one, so that a residual may bring that one back. */
const MADE_OF: Readonly<Record<string, (value: unknown, there: unknown, set: Read) => boolean>> = {
  "/content": () => true,
  "/toolVersion": (_, there) => there === "0.0.0",
  "/capabilities": (value, there) => Array.isArray(value) && isEqual(there, [ENVELOPE_CAPABILITY, ...value]),
  "/error/code": (value, there, set) =>
    toTieredCode(String(value), textOrNone(set["/error/category"])) === there,
  "/error/details": (value, there) => there === toJsonTextOrNone(value) || isEqual(there, { details: value }),
};

/** Tells whether a residual may take away what a pointer leads to. */
function mayUnset(read: Read, pointer: unknown): pointer is string {
  if (typeof pointer !== "string") return false;
  if (isLayout(pointer)) return true;
  const rule = Object.hasOwn(MADE_UP, pointer) ? MADE_UP[pointer] : undefined;
  return rule?.(valueAt(read, pointer), read) === true;
}

/**
 * Tells whether a residual may say what a pointer leads to. It fills in what is missing and undoes what a format had to change; it
 * never says whether a result failed, and data only where a failure left no place for it.
 */
function maySet(read: Read, set: Read, pointer: string): boolean {
  const value = set[pointer];
  if (checkOf(pointer)?.(value) !== true) return false;
  if (isLayout(pointer)) return true;
  const there = valueAt(read, pointer);
  if (there === undefined) return pointer !== "/data" || read["isError"] === true;
  const rule = Object.hasOwn(MADE_OF, pointer) ? MADE_OF[pointer] : undefined;
  return rule?.(value, there, set) === true;
}

/** Unknown fields and unusual layout, which the writers of each format guard themselves. */
function isLayout(pointer: string): boolean {
  return (pointer === "/extra" || pointer.startsWith("/extra/")) && checkOf(pointer) !== undefined;
}

/** The check of the field a pointer names, if a residual may speak of it at all. */
function checkOf(pointer: string): ((value: unknown) => boolean) | undefined {
  const [start, field = "", inner, ...more] = pointer.split("/");
  if (start !== "" || more.length > 0 || field === "isError" || field === "_meta") return undefined;
  if (inner === undefined) return isField(field);
  return field === "error" || field === "extra" ? isNestedField(field, inner) : undefined;
}

function valueAt(read: Read, pointer: string): unknown {
  const [, field = "", inner] = pointer.split("/");
  const value = read[field];
  if (inner === undefined) return value;
  return isPlainObject(value) && Object.hasOwn(value, inner) ? value[inner] : undefined;
}

function textOrNone(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
