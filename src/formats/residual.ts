import { isPlainObject, setOwn } from "../core/json/json-value.ts";
import type { FormatName, ToolResult } from "../core/result/tool-result.ts";
import { isEqual } from "../core/schema/compare-values.ts";
import type { Oddity } from "./codec.ts";
import { maySet, mayUnset } from "./residual-policy.ts";

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
  if (!isPlainObject(residual)) return { result, odd: [refusal("")] };
  const odd: Oddity[] = [];
  const read: Readonly<Record<string, unknown>> = { ...result };
  const restored: Record<string, unknown> = { ...result };
  const { set: given = {}, unset = [] } = residual;
  // Each once: a rule may look through the data, and whoever repeats a pointer must not have it do so each time.
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
