import { isPlainObject, type JsonValue, setOwn } from "../json/json-value.ts";

/** Bounds on the `details` of an error; what lies beyond them is replaced by a short marker. */
export const DETAIL_LIMITS = {
  /** Nested objects and arrays. */
  depth: 16,
  /** Values in all, objects and arrays included. */
  values: 2_000,
  /** Characters of one string. */
  string: 8_192,
  /** Characters of all strings and keys. */
  text: 65_536,
} as const;

const MORE = "[more]";
const UNREADABLE = "[unreadable]";

interface Budget {
  readonly open: object[];
  values: number;
  text: number;
}

/** Copies anything into bounded JSON that shares nothing with its source; never throws. */
export function toErrorDetails(value: unknown): JsonValue | undefined {
  if (value === undefined) return undefined;
  return copy(value, { open: [], values: DETAIL_LIMITS.values, text: DETAIL_LIMITS.text });
}

function copy(value: unknown, budget: Budget): JsonValue {
  budget.values -= 1;
  switch (typeof value) {
    case "string":
      return copyText(value, budget);
    case "number":
      return Number.isFinite(value) ? value + 0 : `[${value}]`;
    case "boolean":
      return value;
    case "undefined":
      return null;
    case "bigint":
      return BigInt.asIntN(64, value) === value ? String(value) : "[bigint]";
    case "object":
      return value === null ? null : copyObject(value, budget);
    case "function":
    case "symbol":
      return `[${typeof value}]`;
  }
}

function copyText(text: string, budget: Budget): string {
  if (text.length > DETAIL_LIMITS.string) return `[string of ${text.length} characters]`;
  if (text.length > budget.text) return MORE;
  budget.text -= text.length;
  return text;
}

function copyObject(value: object, budget: Budget): JsonValue {
  if (budget.open.includes(value)) return "[circular]";
  if (budget.open.length >= DETAIL_LIMITS.depth) return "[too deep]";
  budget.open.push(value);
  try {
    return readObject(value, budget);
  } catch {
    return UNREADABLE;
  } finally {
    budget.open.pop();
  }
}

function readObject(value: object, budget: Budget): JsonValue {
  if (Array.isArray(value)) return copyItems(value, budget);
  if (Object.getPrototypeOf(value) !== Object.prototype) {
    // Before `toJSON`: that of many libraries writes the stack or the request out.
    if (value instanceof Error) return "[error]";
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
  }
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === "function") return copy(toJSON.call(value, ""), budget);
  return copyMembers(value as Record<string, unknown>, budget);
}

function copyItems(items: readonly unknown[], budget: Budget): JsonValue {
  const result: JsonValue[] = [];
  for (let i = 0; i < items.length; i++) {
    if (budget.values <= 0) {
      result.push(MORE);
      break;
    }
    result.push(copy(readMember(items, i), budget));
  }
  return result;
}

function copyMembers(source: Record<string, unknown>, budget: Budget): JsonValue {
  const keys = Object.keys(source);
  // A map, a promise or private state would otherwise look like an empty object.
  if (keys.length === 0 && !isPlainObject(source)) return "[object]";
  const result: Record<string, JsonValue> = {};
  for (const key of keys) {
    if (budget.values <= 0 || key.length > budget.text) {
      setOwn(result, "…", MORE);
      break;
    }
    const member = readMember(source, key);
    if (member === undefined) continue;
    budget.text -= key.length;
    setOwn(result, key, copy(member, budget));
  }
  return result;
}

function readMember(source: object, key: string | number): unknown {
  try {
    return (source as Record<string | number, unknown>)[key];
  } catch {
    return UNREADABLE;
  }
}
