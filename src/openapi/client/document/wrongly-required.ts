import { isObject, type JsonSchema } from "../../../core/schema/json-schema.ts";
import type { RequiringSite } from "./schema-piece.ts";
import type { Direction } from "./schema-variant.ts";

/** What looking for them needs. */
export interface RequiredSearch {
  readonly direction: Direction;
  /** The schema behind a reference. */
  rootOf(reference: unknown): JsonSchema | undefined;
  /** Schemas and properties that may still be looked at, over a whole document. */
  readonly budget: { left: number };
}

type Fields = Record<string, unknown>;

const COMBINING = ["allOf", "anyOf", "oneOf"];

/** Finds properties that an object requires although they do not travel this way, wherever they are described. */
export function wronglyRequired(
  { holder, scope }: RequiringSite,
  search: RequiredSearch,
): ReadonlySet<string> {
  const wrong = new Set<string>();
  const required = holder["required"] as readonly string[];
  for (const schema of described([holder, scope], search)) {
    const { properties } = schema;
    if (!isObject(properties)) continue;
    for (const name of required) {
      if (--search.budget.left < 0) return wrong;
      if (!wrong.has(name) && Object.hasOwn(properties, name) && isFlagged(properties[name], search)) {
        wrong.add(name);
      }
    }
  }
  return wrong;
}

function isFlagged(property: unknown, search: RequiredSearch): boolean {
  if (!isObject(property)) return false;
  const flag = search.direction === "input" ? "readOnly" : "writeOnly";
  for (const schema of described([property], search)) if (schema[flag] === true) return true;
  return false;
}

/** Every schema that describes the same value as the first ones do, each once. */
function* described(start: readonly Fields[], { rootOf, budget }: RequiredSearch): Generator<Fields> {
  const seen = new Set<Fields>(start);
  for (const schema of seen) {
    if (--budget.left < 0) return;
    yield schema;
    const behind = schema["$ref"] === undefined ? undefined : rootOf(schema["$ref"]);
    if (isObject(behind)) seen.add(behind);
    for (const keyword of COMBINING) {
      const list = schema[keyword];
      if (Array.isArray(list)) for (const item of list) if (isObject(item)) seen.add(item);
    }
  }
}
