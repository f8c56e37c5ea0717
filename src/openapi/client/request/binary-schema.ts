import { parsePointer } from "../../../core/json/json-pointer.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import type { OperationPlan } from "../plan.ts";

/** Most references that are followed from one schema. */
const MOST_REFERENCES = 20;

/** Follows references into the definitions; one that leads nowhere, or round in a circle, stays as it is. */
export function followReference(
  schema: JsonSchema | undefined,
  definitions: OperationPlan["definitions"],
): JsonSchema | undefined {
  let followed = schema;
  for (let i = 0; i < MOST_REFERENCES; i++) {
    const name = isObject(followed) ? definitionName(followed["$ref"]) : undefined;
    if (name === undefined || !Object.hasOwn(definitions, name)) return followed;
    followed = definitions[name];
  }
  return followed;
}

/** The definition that a reference leads to or into. */
export function definitionName(reference: unknown): string | undefined {
  if (typeof reference !== "string" || !reference.startsWith("#/$defs/")) return undefined;
  try {
    return parsePointer(decodeURIComponent(reference.slice(1)))[1];
  } catch {
    return undefined;
  }
}

/** The properties of an object that are files, lists of files included. */
export function binaryProperties(
  schema: JsonSchema | undefined,
  definitions: OperationPlan["definitions"],
): ReadonlySet<string> {
  const followed = followReference(schema, definitions);
  const properties = isObject(followed) ? followed["properties"] : undefined;
  const names = new Set<string>();
  if (!isObject(properties)) return names;
  for (const [name, property] of Object.entries(properties)) {
    const known = followReference(property as JsonSchema, definitions);
    if (!isObject(known)) continue;
    const items =
      known["type"] === "array" ? followReference(known["items"] as JsonSchema, definitions) : known;
    if (isObject(items) && isBinary(items)) names.add(name);
  }
  return names;
}

/** Tells whether a schema describes bytes: not text, and not text that stands for them. */
function isBinary(schema: JsonSchemaObject): boolean {
  if (schema["format"] === "binary") return true;
  const { contentMediaType, contentEncoding } = schema;
  if (typeof contentMediaType !== "string" || contentEncoding !== undefined) return false;
  return !/^text\/|json$|xml$/i.test(contentMediaType);
}
