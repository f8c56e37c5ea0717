import { joinPointer } from "../../../core/json/json-pointer.ts";
import { JsonTextError, toJsonText } from "../../../core/json/json-text.ts";
import { invalidInput } from "./invalid-input.ts";

/** How deep the search for what JSON cannot hold goes. */
const SEARCHED_DEPTH = 200;

/** Writes an input as JSON; what JSON cannot hold is refused by its pointer. */
export function jsonTextOf(value: unknown, key: string): string {
  try {
    return toJsonText(value);
  } catch (error) {
    if (!(error instanceof JsonTextError)) throw error;
    const found = findForeign(value, "", []);
    throw invalidInput(key, found?.why ?? "cannot be written as JSON", found?.pointer);
  }
}

/** The same in ASCII alone, for places that take no other characters. */
export function asciiJsonOf(value: unknown, key: string): string {
  return jsonTextOf(value, key).replace(/[^ -~]/g, escapeUnit);
}

function escapeUnit(unit: string): string {
  let escaped = "";
  for (let i = 0; i < unit.length; i++) escaped += `\\u${unit.charCodeAt(i).toString(16).padStart(4, "0")}`;
  return escaped;
}

interface Foreign {
  readonly pointer: string;
  readonly why: string;
}

/** Looks for the first thing that JSON cannot hold; only once it is known that there is one. */
function findForeign(value: unknown, pointer: string, around: readonly object[]): Foreign | undefined {
  if (typeof value !== "object" || value === null) {
    const why = whyNoScalar(value);
    return why === undefined ? undefined : { pointer, why };
  }
  if (around.includes(value)) return { pointer, why: "refers to itself" };
  if (around.length > SEARCHED_DEPTH) return { pointer: "", why: "is nested too deeply" };
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return { pointer, why: "is bytes, which JSON cannot hold; give them as base64 text" };
  }
  if (value instanceof Blob) return { pointer, why: "is a Blob, which JSON cannot hold; give base64 text" };
  if (value instanceof Error || value instanceof Map || value instanceof Set) {
    return { pointer, why: "is an instance that JSON cannot hold" };
  }
  return findInside(value, pointer, [...around, value]);
}

function findInside(value: object, pointer: string, around: readonly object[]): Foreign | undefined {
  const isList = Array.isArray(value);
  for (const [key, member] of Object.entries(value)) {
    if (!isList && member === undefined) continue;
    const found = findForeign(member, joinPointer(pointer, key), around);
    if (found !== undefined) return found;
  }
  return undefined;
}

function whyNoScalar(value: unknown): string | undefined {
  if (typeof value === "bigint") return "is a bigint, which JSON cannot hold; give a number or text";
  if (typeof value === "number" && !Number.isFinite(value)) return `is ${value}, which JSON cannot hold`;
  if (value === undefined) return "is undefined, which JSON cannot hold";
  return typeof value === "function" || typeof value === "symbol"
    ? `is a ${typeof value}, which JSON cannot hold`
    : undefined;
}
