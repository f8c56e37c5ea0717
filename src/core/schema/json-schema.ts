/** A JSON Schema document as plain data: draft-07, 2019-09 or 2020-12. */
export type JsonSchema = boolean | JsonSchemaObject;

/** A JSON Schema that is an object of keywords. */
export interface JsonSchemaObject {
  readonly [keyword: string]: unknown;
}

/** The rules a schema resource is read by. */
export interface Dialect {
  /** Before 2019-09, `$ref` hides its siblings and `$id` may be an anchor. */
  readonly legacy: boolean;
  /** False when the metaschema leaves the validation vocabulary out. */
  readonly validation: boolean;
}

/** Today's rules, taken when a schema does not say. */
export const MODERN: Dialect = { legacy: false, validation: true };

/** The rules of draft-07 and before. */
export const LEGACY: Dialect = { legacy: true, validation: true };

/** Keywords whose value is one schema. */
const SCHEMA_KEYWORDS = new Set([
  "additionalItems",
  "additionalProperties",
  "contains",
  "contentSchema",
  "else",
  "if",
  "items",
  "not",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
]);

/** Keywords whose value is a list of schemas. */
const SCHEMA_LIST_KEYWORDS = new Set(["allOf", "anyOf", "items", "oneOf", "prefixItems"]);

/** Keywords whose value maps names to schemas. */
const SCHEMA_MAP_KEYWORDS = new Set([
  "$defs",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

/** Tells whether a value can stand where a schema is expected. */
export function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "boolean" || isObject(value);
}

/** Tells whether a value is an object that is neither null nor an array. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** How a keyword holds schemas: one, a list, or a map of them by name; nothing where its value is none of these. */
export function schemaForm(keyword: string, value: unknown): "one" | "list" | "map" | undefined {
  if (typeof value !== "object") {
    return typeof value === "boolean" && SCHEMA_KEYWORDS.has(keyword) ? "one" : undefined;
  }
  if (Array.isArray(value)) return SCHEMA_LIST_KEYWORDS.has(keyword) ? "list" : undefined;
  if (value === null) return undefined;
  if (SCHEMA_KEYWORDS.has(keyword)) return "one";
  return SCHEMA_MAP_KEYWORDS.has(keyword) ? "map" : undefined;
}

/** Calls back with each direct subschema and its place below `schema`. */
export function forEachSubschema(
  schema: JsonSchemaObject,
  visit: (subschema: JsonSchema, keyword: string, key: string | number | undefined) => void,
): void {
  for (const keyword of Object.keys(schema)) {
    const value = schema[keyword];
    const form = schemaForm(keyword, value);
    if (form === "one") visit(value as JsonSchema, keyword, undefined);
    else if (form === "list") {
      const list = value as readonly unknown[];
      for (let i = 0; i < list.length; i++) if (isSchema(list[i])) visit(list[i] as JsonSchema, keyword, i);
    } else if (form === "map") {
      const members = value as JsonSchemaObject;
      for (const key of Object.keys(members)) {
        const entry = members[key];
        if (isSchema(entry)) visit(entry, keyword, key);
      }
    }
  }
}

/** A schema and all schemas within it, each once. */
export function subschemasOf(root: JsonSchemaObject): ReadonlySet<JsonSchemaObject> {
  const found = new Set([root]);
  const add = (part: JsonSchema): void => {
    if (isObject(part)) found.add(part);
  };
  for (const part of found) forEachSubschema(part, add);
  return found;
}
