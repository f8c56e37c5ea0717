import { toJsonTextOrNone } from "../core/json/json-text.ts";
import { isPlainObject } from "../core/json/json-value.ts";
import type { ResultError } from "../core/result/tool-result.ts";
import { isEqual } from "../core/schema/compare-values.ts";
import { toTieredCode } from "./error-code.ts";
import { isField, isNestedField } from "./result-fields.ts";
import { ENVELOPE_CAPABILITY } from "./tiered-envelope/tiered-envelope.ts";

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
export function mayUnset(read: Read, pointer: unknown): pointer is string {
  if (typeof pointer !== "string") return false;
  if (isLayout(pointer)) return true;
  const rule = Object.hasOwn(MADE_UP, pointer) ? MADE_UP[pointer] : undefined;
  return rule?.(valueAt(read, pointer), read) === true;
}

/**
 * Tells whether a residual may say what a pointer leads to. It fills in what is missing and undoes what a format had to change; it
 * never says whether a result failed, and data only where a failure left no place for it.
 */
export function maySet(read: Read, set: Read, pointer: string): boolean {
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
