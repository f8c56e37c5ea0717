import { isObject } from "../../../core/schema/json-schema.ts";
import { findReference } from "../../../core/schema/schema-view.ts";
import { type FormObject, isSameJson } from "./form-json.ts";

/** A schema with its references followed and what must hold all together put together. */
export interface FlatSchema {
  /** Keywords of all parts; the first part that says something is believed, where both cannot hold. */
  readonly keywords: FormObject;
  /** Alternatives: of each list, one holds. */
  readonly choices: readonly (readonly unknown[])[];
}

/** Parts of one schema that are looked at: schemas refer to themselves, and some are made to be endless. */
const MOST_PARTS = 400;

/** Puts together what a schema says itself, by reference and by `allOf`; nothing when it allows no value at all. */
export const flattenSchema: (schema: unknown, root: unknown) => FlatSchema | undefined = remember(flatten);

function flatten(schema: unknown, root: unknown): FlatSchema | undefined {
  const keywords = new Map<string, unknown>();
  const choices: (readonly unknown[])[] = [];
  const seen = new Set<unknown>();
  const waiting: unknown[] = [schema];
  while (waiting.length > 0 && seen.size < MOST_PARTS) {
    const part = waiting.pop();
    if (part === false) return undefined;
    if (!isObject(part) || seen.has(part)) continue;
    seen.add(part);
    for (const [keyword, value] of Object.entries(part)) {
      if (/^([$]|definitions$|allOf$)/.test(keyword)) continue;
      if (/^(one|any)Of$/.test(keyword) && Array.isArray(value)) choices.push(value);
      else keywords.set(keyword, narrower(keyword, keywords.get(keyword), value));
    }
    const { allOf, $ref } = part;
    if (Array.isArray(allOf)) waiting.push(...allOf.slice(0, MOST_PARTS).reverse());
    if (typeof $ref === "string") waiting.push(findReference($ref, root));
  }
  return { keywords: Object.fromEntries(keywords), choices };
}

/** What two values of a keyword mean together. */
function narrower(keyword: string, one: unknown, other: unknown): unknown {
  if (one === undefined) return other;
  if (typeof one === "number" && typeof other === "number") {
    if (/^(m|exclusiveM)in/.test(keyword)) return Math.max(one, other);
    if (/^(m|exclusiveM)ax/.test(keyword)) return Math.min(one, other);
  }
  if (Array.isArray(one) && Array.isArray(other)) {
    if (keyword === "required") return [...new Set([...one, ...other])];
    if (keyword === "enum") {
      const common = one.filter((value) =>
        other.slice(0, MOST_PARTS).some((each) => isSameJson(value, each)),
      );
      return common.length > 0 ? common : one;
    }
  }
  if (keyword === "type") return commonTypes([one].flat(), [other].flat());
  if (keyword === "properties" && isObject(one) && isObject(other)) {
    const all = new Map(Object.entries(one));
    for (const [name, schema] of Object.entries(other)) all.set(name, both(all.get(name) ?? true, schema));
    return Object.fromEntries(all);
  }
  return keyword === "items" || keyword === "additionalProperties" ? both(one, other) : one;
}

function commonTypes(one: readonly unknown[], other: readonly unknown[]): unknown {
  const common = one.filter(
    (type) => other.includes(type) || (type === "integer" && other.includes("number")),
  );
  if (one.includes("number") && other.includes("integer")) common.push("integer");
  return common.length > 0 ? common : one;
}

function both(one: unknown, other: unknown): unknown {
  if (one === false || other === false) return false;
  return isObject(one) ? (isObject(other) ? { allOf: [one, other] } : one) : other;
}

/** Makes a function of a schema and its document that is asked once for each schema: they are looked at on every key, and stay in one document. */
export function remember<T>(
  make: (schema: unknown, root: unknown) => T,
): (schema: unknown, root: unknown) => T {
  const known = new WeakMap<object, { readonly made: T }>();
  return (schema, root) => {
    if (!isObject(schema)) return make(schema, root);
    const found = known.get(schema) ?? { made: make(schema, root) };
    known.set(schema, found);
    return found.made;
  };
}
