import { forEachSubschema, isObject, type JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { toPortableSchema } from "./portable-schema.ts";

const TODAY = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;
const BEFORE = /^https?:\/\/json-schema\.org\/(?:draft-0[3-7]|draft\/2019-09)\/schema#?$/;

/** Keywords that only 2019-09 and later have: a validator of an older dialect passes over them. References into `$defs` work in all. */
const NEWER = [
  ...["prefixItems", "unevaluatedProperties", "unevaluatedItems", "minContains", "maxContains"],
  ...["dependentSchemas", "dependentRequired", "$dynamicRef", "$dynamicAnchor", "$anchor"],
];

/**
 * Rewrites a schema as 2020-12, which is what MCP takes a schema for that does not say. `$schema` is left out where every dialect reads
 * the schema alike: clients whose validator knows another dialect alone refuse one that names this. Where it matters, it stays. A schema
 * of another dialect without a counterpart keeps it, and says so.
 */
export function toModernSchema(schema: JsonSchemaObject): JsonSchemaObject {
  const { $schema } = schema;
  const isOld = typeof $schema === "string" && BEFORE.test($schema);
  const isToday = typeof $schema !== "string" || TODAY.test($schema);
  if (!isOld && !(isToday && hasOldForms(schema))) return withoutDialect(schema);
  try {
    return toPortableSchema(schema, "exact") ?? schema;
  } catch {
    return schema;
  }
}

/** Leaves out `$schema` wherever it names today's dialect and nothing depends on that. */
function withoutDialect(root: JsonSchemaObject): JsonSchemaObject {
  const names = ({ $schema }: JsonSchemaObject): boolean =>
    typeof $schema === "string" && TODAY.test($schema);
  const all = subschemasOf(root);
  if (!all.some(names) || all.some((schema) => NEWER.some((keyword) => keyword in schema))) return root;
  const copy = structuredClone(root);
  for (const schema of subschemasOf(copy)) {
    if (names(schema)) delete (schema as Record<string, unknown>)["$schema"];
  }
  return copy;
}

/** A schema and all schemas within it. */
function subschemasOf(root: JsonSchemaObject): readonly JsonSchemaObject[] {
  const seen = new Set([root]);
  for (const schema of seen) {
    forEachSubschema(schema, (subschema) => {
      if (isObject(subschema)) seen.add(subschema);
    });
  }
  return [...seen];
}

/** What older dialects wrote otherwise, and some libraries still do without naming one. */
function hasOldForms(root: JsonSchemaObject): boolean {
  return subschemasOf(root).some(
    ({ items, dependencies, exclusiveMinimum, exclusiveMaximum }) =>
      Array.isArray(items) ||
      dependencies !== undefined ||
      typeof exclusiveMinimum === "boolean" ||
      typeof exclusiveMaximum === "boolean",
  );
}
