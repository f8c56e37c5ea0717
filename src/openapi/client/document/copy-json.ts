import { isPlainObject, setOwn } from "../../../core/json/json-value.ts";

/** Stands for what cannot be copied. */
export const NOT_JSON = Symbol("not JSON");

/** What is left to copy of one value. */
interface Budget {
  left: number;
  /** Keeps members named `__proto__`, which the upgrade of documents cannot carry. */
  readonly proto: boolean;
}

/** Copies the value of a keyword; `NOT_JSON` where it is no JSON, or is too deep or too large to be worth keeping. */
export function copyJson(value: unknown): unknown {
  return copy(value, 64, { left: 20_000, proto: false });
}

/** Copies what Waybill wrote into a document, which may be large; nothing where it is not an object of JSON. */
export function copyExtension(value: unknown): Record<string, unknown> | undefined {
  if (!isPlainObject(value)) return undefined;
  const copied = copy(value, 512, { left: 1_000_000, proto: true });
  return copied === NOT_JSON ? undefined : (copied as Record<string, unknown>);
}

function copy(value: unknown, depth: number, budget: Budget): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : NOT_JSON;
  if (typeof value !== "object" || depth === 0 || --budget.left < 0) return NOT_JSON;
  if (Array.isArray(value)) return copyItems(value, depth, budget);
  if (!isPlainObject(value)) return NOT_JSON;
  const result: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    if (value[key] === undefined) continue;
    if (key === "__proto__" && !budget.proto) return NOT_JSON;
    const member = copy(value[key], depth - 1, budget);
    if (member === NOT_JSON) return NOT_JSON;
    setOwn(result, key, member);
  }
  return result;
}

function copyItems(items: readonly unknown[], depth: number, budget: Budget): unknown {
  const result: unknown[] = [];
  for (const item of items) {
    const copied = copy(item, depth - 1, budget);
    if (copied === NOT_JSON) return NOT_JSON;
    result.push(copied);
  }
  return result;
}
