import { createHash } from "node:crypto";
import { setOwn } from "../../core/json/json-value.ts";
import { isObject, type JsonSchemaObject } from "../../core/schema/json-schema.ts";

/** Keywords whose value is data, in which nothing is a reference. */
const DATA_KEYWORDS = new Set(["const", "enum", "default", "examples"]);

/** Keywords whose members are names of the author's, each with a schema. */
const NAME_KEYWORDS = new Set([
  "$defs",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

/** Puts a schema under one required member of an object schema; its references within the document still find what they meant. */
export function embedSchema(schema: JsonSchemaObject, member: string): JsonSchemaObject {
  const { $schema, ...rest } = schema;
  return {
    ...(typeof $schema === "string" && { $schema }),
    type: "object",
    properties: { [member]: moveSchema(rest, `#/properties/${member}`) },
    required: [member],
  };
}

/** The schema as it reads at a place further down in a document, a JSON pointer that begins with `#`. */
export function moveSchema(schema: JsonSchemaObject, place: string): JsonSchemaObject {
  if (isResource(schema)) return schema;
  const text = JSON.stringify(schema);
  // What `$recursiveRef` means depends on the root of its resource: it keeps one of its own, which no other schema has.
  if (text.includes('"$recursiveRef"')) {
    return { $id: `urn:sha256:${createHash("sha256").update(text).digest("hex")}`, ...schema };
  }
  return text.includes('Ref"') || text.includes('"$ref"')
    ? (moveRefs(schema, place, false) as JsonSchemaObject)
    : schema;
}

function moveRefs(node: unknown, place: string, isNameMap: boolean): unknown {
  if (Array.isArray(node)) return node.map((item) => moveRefs(item, place, false));
  if (!isObject(node)) return node;
  if (!isNameMap && isResource(node)) return node;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(node)) {
    setOwn(copy, key, isNameMap ? moveRefs(node[key], place, false) : movedKeyword(key, node[key], place));
  }
  return copy;
}

function movedKeyword(keyword: string, value: unknown, place: string): unknown {
  if ((keyword === "$ref" || keyword === "$dynamicRef") && typeof value === "string") {
    if (value === "#") return place;
    return value.startsWith("#/") ? place + value.slice(1) : value;
  }
  if (DATA_KEYWORDS.has(keyword)) return value;
  return moveRefs(value, place, NAME_KEYWORDS.has(keyword));
}

/** Within a schema with an `$id` of its own, references start from there and stay as they are. */
function isResource(node: Readonly<Record<string, unknown>>): boolean {
  const { $id } = node;
  return typeof $id === "string" && !$id.startsWith("#");
}
