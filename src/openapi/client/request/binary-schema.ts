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
function definitionName(reference: unknown): string | undefined {
  if (typeof reference !== "string" || !reference.startsWith("#/$defs/")) return undefined;
  try {
    return parsePointer(decodeURIComponent(reference.slice(1)))[1];
  } catch {
    return undefined;
  }
}

/** Tells whether a schema describes bytes: not text, and not text that stands for them. */
export function isBinary(schema: JsonSchemaObject): boolean {
  if (schema["format"] === "binary") return true;
  const { contentMediaType, contentEncoding } = schema;
  if (typeof contentMediaType !== "string" || contentEncoding !== undefined) return false;
  return !/^text\/|json$|xml$/i.test(contentMediaType);
}
