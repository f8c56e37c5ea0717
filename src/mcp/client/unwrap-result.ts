import { setOwn } from "../../core/json/json-value.ts";
import { isObject, isSchema, type JsonSchema, type JsonSchemaObject } from "../../core/schema/json-schema.ts";

/** What a schema that only wraps another one may say besides; anything more, and it means something of its own. */
const HARMLESS = new Set([
  "$schema",
  "$defs",
  "definitions",
  "title",
  "description",
  "type",
  "properties",
  "required",
  "additionalProperties",
  "x-fastmcp-wrap-result",
]);

/** Keywords whose value is data, in which nothing is a reference. */
const DATA_KEYWORDS = new Set(["const", "enum", "default", "examples"]);
const REF_KEYWORDS = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);
const DEFINITIONS = ["$defs", "definitions"] as const;

/**
 * The schema of the one member that an object schema consists of, as a document of its own; nothing where the schema is not
 * exactly that wrapper, or refers to things that would be lost on the way.
 */
export function schemaInside(wrapper: unknown, member: string): JsonSchema | undefined {
  if (!isWrapper(wrapper, member)) return undefined;
  const inner = (wrapper["properties"] as Record<string, unknown>)[member];
  if (inner === true) return true;
  if (!isObject(inner)) return undefined;
  const isResource = typeof inner["$id"] === "string" && !inner["$id"].startsWith("#");
  const moving: Moving = { place: `#/properties/${member}`, isLost: false };
  const own = isResource ? inner : (moveRefs(inner, moving) as JsonSchemaObject);
  const kept = keptDefinitions(wrapper, own, moving);
  return moving.isLost || kept === undefined ? undefined : joined(wrapper, own, kept);
}

/** The value that a wrapper holds; nothing where it is an object with anything else in it. */
export function valueInside(value: unknown, member: string): { readonly value: unknown } | undefined {
  if (!isObject(value)) return undefined;
  const keys = Object.keys(value);
  return keys.length === 1 && keys[0] === member ? { value: value[member] } : undefined;
}

function isWrapper(schema: unknown, member: string): schema is JsonSchemaObject {
  if (!isObject(schema) || schema["type"] !== "object") return false;
  const { properties, required, additionalProperties } = schema;
  return (
    Object.keys(schema).every((keyword) => HARMLESS.has(keyword)) &&
    isObject(properties) &&
    Object.keys(properties).join() === member &&
    isSchema(properties[member]) &&
    Array.isArray(required) &&
    required.length === 1 &&
    required[0] === member &&
    (additionalProperties === undefined || additionalProperties === false)
  );
}

interface Moving {
  /** Where the inner schema stands in the wrapper. */
  readonly place: string;
  /** Set once something refers to what does not come along. */
  isLost: boolean;
}

/** Turns references around: those into the inner schema start at its own root now, those to definitions stay. */
function moveRefs(node: unknown, moving: Moving): unknown {
  if (Array.isArray(node)) return node.map((item) => moveRefs(item, moving));
  if (!isObject(node)) return node;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(node)) {
    const value = node[key];
    if (REF_KEYWORDS.has(key) && typeof value === "string") setOwn(copy, key, movedRef(value, moving));
    else setOwn(copy, key, DATA_KEYWORDS.has(key) ? value : moveRefs(value, moving));
  }
  return copy;
}

function movedRef(ref: string, moving: Moving): string {
  if (ref === moving.place) return "#";
  if (ref.startsWith(`${moving.place}/`)) return `#${ref.slice(moving.place.length)}`;
  if (ref === "#" || (ref.startsWith("#/") && !/^#\/(?:\$defs|definitions)\//.test(ref)))
    moving.isLost = true;
  return ref;
}

/** The definitions of the wrapper; nothing where the inner schema has some of its own as well, which would have to be mixed. */
function keptDefinitions(
  wrapper: JsonSchemaObject,
  inner: JsonSchemaObject,
  moving: Moving,
): Record<string, unknown> | undefined {
  const kept: Record<string, unknown> = {};
  for (const keyword of DEFINITIONS) {
    if (wrapper[keyword] === undefined) continue;
    if (inner[keyword] !== undefined) return undefined;
    kept[keyword] = moveRefs(wrapper[keyword], moving);
  }
  return kept;
}

function joined(
  wrapper: JsonSchemaObject,
  inner: JsonSchemaObject,
  kept: Record<string, unknown>,
): JsonSchemaObject {
  const dialect = wrapper["$schema"] === undefined ? {} : { $schema: wrapper["$schema"] };
  const hasDefinitions = Object.keys(kept).length > 0;
  // Before 2019-09 a reference hides what stands beside it.
  if (hasDefinitions && inner["$ref"] !== undefined) return { ...dialect, allOf: [inner], ...kept };
  return { ...dialect, ...inner, ...kept };
}
