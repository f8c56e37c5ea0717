import { isPlainObject, setOwn } from "../core/json/json-value.ts";
import type { FormatName, ToolResult } from "../core/result/tool-result.ts";
import { isEqual } from "../core/schema/compare-values.ts";
import type { Oddity } from "./codec.ts";
import { isField, isNestedField } from "./result-fields.ts";

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
    const value = valueAt(result, pointer);
    if (value === undefined) unset.push(pointer);
    else set[pointer] = value;
  }
  const hasSet = Object.keys(set).length > 0;
  return { format, ...(hasSet && { set }), ...(unset.length > 0 && { unset }) };
}

function valueAt(result: ToolResult, pointer: string): unknown {
  const [, field = "", inner] = pointer.split("/");
  const value = (result as unknown as Record<string, unknown>)[field];
  if (inner === undefined) return value;
  return isPlainObject(value) && Object.hasOwn(value, inner) ? value[inner] : undefined;
}

/** Restores what a residual holds; what it may not say, or says wrongly, is reported and left alone. */
export function applyResidual(
  result: ToolResult,
  residual: unknown,
): { readonly result: ToolResult; readonly odd: readonly Oddity[] } {
  const odd: Oddity[] = [];
  const refused = (pointer: string) => odd.push(refusal(pointer));
  if (!isPlainObject(residual)) return { result, odd: [refusal("")] };
  const restored: Record<string, unknown> = { ...result };
  const { set = {}, unset = [] } = residual;
  const read: Readonly<Record<string, unknown>> = { ...result };
  for (const pointer of Array.isArray(unset) ? unset : [unset]) {
    if (mayUnset(read, pointer)) remove(restored, pointer);
    else refused(typeof pointer === "string" ? pointer : "");
  }
  for (const [pointer, value] of Object.entries(isPlainObject(set) ? set : { "": set })) {
    if (!maySet(read, pointer, value)) {
      refused(pointer);
      continue;
    }
    put(restored, pointer, value);
    if (pointer === "/content" && read["content"] !== undefined) odd.push(CONTENT_REPLACED);
  }
  return { result: restored as unknown as ToolResult, odd };
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

/** What a format makes up where the result says nothing. */
const MADE_UP: Readonly<Record<string, (value: unknown) => boolean>> = {
  "/data": (data) => data === null || (isPlainObject(data) && Object.keys(data).join() === "errorCode"),
  "/tier": (tier) => tier === "community",
};

function mayUnset(read: Readonly<Record<string, unknown>>, pointer: unknown): pointer is string {
  if (typeof pointer !== "string" || valueFieldOf(pointer) === undefined) return false;
  const isMadeUp = Object.hasOwn(MADE_UP, pointer) ? MADE_UP[pointer] : undefined;
  return isMadeUp === undefined || isMadeUp(read[pointer.slice(1)]);
}

/** What a result itself says of these is never replaced. */
const KEPT: readonly string[] = ["/data", "/tier", "/tool", "/requestId"];

/** A residual refines: it never says whether a result failed, and fills in what is missing. */
function maySet(read: Readonly<Record<string, unknown>>, pointer: string, value: unknown): boolean {
  if (KEPT.includes(pointer) && read[pointer.slice(1)] !== undefined) return false;
  return valueFieldOf(pointer)?.(value) === true;
}

/** The check of the field a pointer names, if a residual may speak of it at all. */
function valueFieldOf(pointer: string): ((value: unknown) => boolean) | undefined {
  const [start, field = "", inner, ...more] = pointer.split("/");
  if (start !== "" || more.length > 0 || field === "isError") return undefined;
  return inner === undefined ? isField(field) : NESTED.has(field) ? isNestedField(field, inner) : undefined;
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
