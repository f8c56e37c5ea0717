import { parsePointer } from "../../core/json/json-pointer.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../core/schema/json-schema.ts";

const MAX_DEPTH = 16;
const MAX_PARTS = 200;

/** A schema taken apart: itself and all that applies in the same place, references followed, choices included. */
export function partsOf(schema: unknown, root: JsonSchema): readonly JsonSchemaObject[] {
  const parts: JsonSchemaObject[] = [];
  const visit = (part: unknown, depth: number): void => {
    if (!isObject(part) || depth > MAX_DEPTH || parts.length >= MAX_PARTS || parts.includes(part)) return;
    parts.push(part);
    if (typeof part["$ref"] === "string") visit(resolve(part["$ref"], root), depth + 1);
    for (const word of ["allOf", "anyOf", "oneOf"]) {
      const branches = part[word];
      if (Array.isArray(branches)) for (const branch of branches) visit(branch, depth + 1);
    }
  };
  visit(schema, 0);
  return parts;
}

function resolve(reference: string, root: unknown): unknown {
  if (!reference.startsWith("#")) return undefined;
  let found: unknown = root;
  for (const key of reference.length > 1 ? parsePointer(reference.slice(1)) : []) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as Record<string, unknown>)[key];
  }
  return found;
}

/** The schemas of a member of a value, by name or, in a list, by place. */
export function memberSchemas(parts: readonly JsonSchemaObject[], key: string, root: JsonSchema): unknown[] {
  const found: unknown[] = [];
  for (const { properties, items, prefixItems, additionalProperties } of parts) {
    if (isObject(properties) && Object.hasOwn(properties, key)) found.push(properties[key]);
    else if (isObject(additionalProperties)) found.push(additionalProperties);
    if (!/^\d+$/.test(key)) continue;
    const tuple = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
    const item = tuple[Number(key)] ?? items;
    if (isObject(item)) found.push(item);
  }
  return found.flatMap((schema) => partsOf(schema, root));
}

/** The names of members that a value may have, those that must be there first told apart. */
export function membersOf(parts: readonly JsonSchemaObject[]): {
  readonly names: readonly string[];
  readonly required: ReadonlySet<string>;
} {
  const names = new Set<string>();
  const required = new Set<string>();
  for (const part of parts) {
    const { properties, required: wanted } = part;
    if (isObject(properties)) for (const name of Object.keys(properties)) names.add(name);
    if (Array.isArray(wanted)) for (const name of wanted) if (typeof name === "string") required.add(name);
  }
  return { names: [...names], required };
}

/** The JSON types that these schemas allow; empty where they say nothing. */
export function typesOf(parts: readonly JsonSchemaObject[]): ReadonlySet<string> {
  const types = new Set<string>();
  for (const { type, properties, items } of parts) {
    for (const name of Array.isArray(type) ? type : [type]) if (typeof name === "string") types.add(name);
    if (type === undefined && isObject(properties)) types.add("object");
    if (type === undefined && items !== undefined) types.add("array");
  }
  return types;
}
