import type { JsonSchema } from "../../../core/schema/json-schema.ts";

/** Keys that tools for OpenAPI take for references or names wherever in a document they stand. */
export const POINTING_KEYS: ReadonlySet<string> = new Set([
  "$ref",
  "$id",
  "$anchor",
  "$dynamicRef",
  "$dynamicAnchor",
]);

/** In JSON text, where a quotation mark within a string has a backslash before it. */
const POINTING = /"\$(?:ref|id|anchor|dynamicRef|dynamicAnchor)":/;

/** Tells whether a tool would take something in a JSON value for a reference, or for the name of one. */
export function hasPointingKey(value: unknown): boolean {
  return typeof value === "object" && value !== null && POINTING.test(JSON.stringify(value));
}

/** A schema word for word, to stand in a document that is not about it: as text where tools would follow its references. */
export function toExactSchema(schema: JsonSchema): JsonSchema | string {
  return hasPointingKey(schema) ? JSON.stringify(schema) : schema;
}
