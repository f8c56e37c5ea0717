import { setOwn } from "../../core/json/json-value.ts";
import { isObject, type JsonSchemaObject } from "../../core/schema/json-schema.ts";

const TODAY = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;
const BEFORE_2019 = /^https?:\/\/json-schema\.org\/draft-0[67]\/schema#?$/;
const OF_2019 = /^https?:\/\/json-schema\.org\/draft\/2019-09\/schema#?$/;

const DATA_KEYWORDS = new Set(["const", "enum", "default", "examples", "required", "type"]);
const NAME_KEYWORDS = new Set([
  "$defs",
  "definitions",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

/**
 * Rewrites a schema as 2020-12, which is what MCP takes a schema for that does not say; `$schema` is then left out, because the
 * validators of older clients refuse a name they do not know, unless `keepsName`. What has no counterpart keeps its dialect, and
 * says so.
 */
export function toModernSchema(schema: JsonSchemaObject, keepsName = false): JsonSchemaObject {
  const { $schema, ...rest } = schema;
  if (typeof $schema !== "string") return schema;
  if (TODAY.test($schema)) return keepsName ? schema : rest;
  const isOld = BEFORE_2019.test($schema);
  if (!isOld && !OF_2019.test($schema)) return schema;
  if (!isOld && JSON.stringify(rest).includes('"$recursive')) return schema;
  return rewritten(rest, isOld) as JsonSchemaObject;
}

function rewritten(node: unknown, isOld: boolean): unknown {
  if (Array.isArray(node)) return node.map((item) => rewritten(item, isOld));
  if (!isObject(node)) return node;
  // Before 2019-09 a reference hid everything beside it, except what was only ever pointed at.
  const source = isOld && typeof node["$ref"] === "string" ? onlyReference(node) : node;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(source)) rewriteKeyword(copy, key, source, isOld);
  return copy;
}

function onlyReference(node: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { $ref, definitions, $defs, title, description } = node;
  const kept = { $ref, definitions, $defs, title, description };
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined));
}

function rewriteKeyword(
  copy: Record<string, unknown>,
  key: string,
  source: Readonly<Record<string, unknown>>,
  isOld: boolean,
): void {
  const value = source[key];
  if (key === "items" && Array.isArray(value)) setOwn(copy, "prefixItems", rewritten(value, isOld));
  else if (key === "additionalItems") {
    if (Array.isArray(source["items"])) setOwn(copy, "items", rewritten(value, isOld));
  } else if (key === "dependencies" && isObject(value)) rewriteDependencies(copy, value, isOld);
  else if (key === "$id" && isOld && typeof value === "string" && value.startsWith("#")) {
    setOwn(copy, "$anchor", value.slice(1));
  } else if (DATA_KEYWORDS.has(key)) setOwn(copy, key, value);
  else if (NAME_KEYWORDS.has(key) && isObject(value)) setOwn(copy, key, eachMember(value, isOld));
  else setOwn(copy, key, rewritten(value, isOld));
}

function rewriteDependencies(
  copy: Record<string, unknown>,
  dependencies: Readonly<Record<string, unknown>>,
  isOld: boolean,
): void {
  const required: Record<string, unknown> = {};
  const schemas: Record<string, unknown> = {};
  for (const key of Object.keys(dependencies)) {
    const value = dependencies[key];
    if (Array.isArray(value)) setOwn(required, key, value);
    else setOwn(schemas, key, rewritten(value, isOld));
  }
  if (Object.keys(required).length > 0) setOwn(copy, "dependentRequired", required);
  if (Object.keys(schemas).length > 0) setOwn(copy, "dependentSchemas", schemas);
}

function eachMember(members: Readonly<Record<string, unknown>>, isOld: boolean): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(members)) setOwn(copy, key, rewritten(members[key], isOld));
  return copy;
}
