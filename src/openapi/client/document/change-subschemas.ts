import { setOwn } from "../../../core/json/json-value.ts";
import { isObject } from "../../../core/schema/json-schema.ts";

/** Keywords of today's dialect whose value is one schema, of those that documents use. */
export const ONE_SCHEMA: readonly string[] = [
  "additionalProperties",
  "contains",
  "else",
  "if",
  "items",
  "not",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
];

/** Keywords whose value is a list of schemas. */
export const SCHEMA_LISTS: readonly string[] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/** Keywords whose value maps names to schemas. */
export const SCHEMA_MAPS: readonly string[] = ["dependentSchemas", "patternProperties", "properties"];

/** Puts something else in the place of each direct subschema. */
export function changeSubschemas(
  schema: Record<string, unknown>,
  change: (schema: unknown) => unknown,
): void {
  for (const keyword of ONE_SCHEMA) {
    if (isObject(schema[keyword])) schema[keyword] = change(schema[keyword]);
  }
  for (const keyword of SCHEMA_LISTS) {
    const list = schema[keyword];
    if (Array.isArray(list)) schema[keyword] = list.map((item) => change(item));
  }
  for (const keyword of SCHEMA_MAPS) {
    const map = schema[keyword];
    if (!isObject(map)) continue;
    const changed: Record<string, unknown> = {};
    for (const key of Object.keys(map)) setOwn(changed, key, change(map[key]));
    schema[keyword] = changed;
  }
}
