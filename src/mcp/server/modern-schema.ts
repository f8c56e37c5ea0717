import { forEachSubschema, isObject, type JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { toPortableSchema } from "./portable-schema.ts";

const TODAY = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;
const BEFORE = /^https?:\/\/json-schema\.org\/(?:draft-0[3-7]|draft\/2019-09)\/schema#?$/;

/**
 * Rewrites a schema as 2020-12, which is what MCP takes a schema for that does not say; one of today stays word for word, and one
 * without a counterpart keeps its dialect, and says so.
 */
export function toModernSchema(schema: JsonSchemaObject): JsonSchemaObject {
  const { $schema } = schema;
  const isOld = typeof $schema === "string" && BEFORE.test($schema);
  const isToday = typeof $schema !== "string" || TODAY.test($schema);
  if (!isOld && !(isToday && hasOldForms(schema))) return schema;
  try {
    return toPortableSchema(schema, "exact") ?? schema;
  } catch {
    return schema;
  }
}

/** What older dialects wrote otherwise, and some libraries still do without naming one. */
function hasOldForms(root: JsonSchemaObject): boolean {
  const seen = new Set([root]);
  for (const schema of seen) {
    const { items, dependencies, exclusiveMinimum, exclusiveMaximum } = schema;
    if (Array.isArray(items) || dependencies !== undefined) return true;
    if (typeof exclusiveMinimum === "boolean" || typeof exclusiveMaximum === "boolean") return true;
    forEachSubschema(schema, (subschema) => {
      if (isObject(subschema)) seen.add(subschema);
    });
  }
  return false;
}
