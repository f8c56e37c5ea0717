import {
  isObject,
  isSchema,
  type JsonSchema,
  type JsonSchemaObject,
} from "../../../core/schema/json-schema.ts";

/** What `#/$defs/…` refers to. */
export type Definitions = Readonly<Record<string, JsonSchema>>;

const REFERENCE = "#/$defs/";
/** Schemas that are looked at to answer one question: a document may hold any number. */
const MOST_LOOKED_AT = 500;

/** Gives the name of the definition that a reference means. */
function definitionName(reference: unknown): string | undefined {
  if (typeof reference !== "string" || !reference.startsWith(REFERENCE)) return undefined;
  const name = reference.slice(REFERENCE.length);
  return safelyDecoded(name).replace(/~1/g, "/").replace(/~0/g, "~");
}

function safelyDecoded(text: string): string {
  try {
    return text.includes("%") ? decodeURIComponent(text) : text;
  } catch {
    return text;
  }
}

/** Gives a schema and all that apply together with it or in its place: references, `allOf`, `anyOf`, `oneOf`. */
export function partsOf(
  schema: JsonSchema | undefined,
  definitions: Definitions,
): readonly JsonSchemaObject[] {
  const seen = new Set<unknown>();
  const left: unknown[] = [schema];
  const parts: JsonSchemaObject[] = [];
  while (left.length > 0 && seen.size < MOST_LOOKED_AT) {
    const next = left.pop();
    if (!isObject(next) || seen.has(next)) continue;
    seen.add(next);
    parts.push(next);
    for (const keyword of ["oneOf", "anyOf", "allOf"]) {
      const list = next[keyword];
      if (Array.isArray(list)) for (const item of list.slice(0, MOST_LOOKED_AT).reverse()) left.push(item);
    }
    const name = definitionName(next["$ref"]);
    if (name !== undefined && Object.hasOwn(definitions, name)) left.push(definitions[name]);
  }
  return parts;
}

/** Gives the properties a value of this schema may have. */
export function propertiesOf(
  schema: JsonSchema | undefined,
  definitions: Definitions,
): ReadonlyMap<string, JsonSchema> {
  const found = new Map<string, JsonSchema>();
  for (const { properties } of partsOf(schema, definitions)) {
    if (!isObject(properties)) continue;
    for (const [name, property] of Object.entries(properties)) {
      if (isSchema(property) && !found.has(name)) found.set(name, property);
    }
  }
  return found;
}

/** Gives the types a schema names, in `type`, `enum` and `const`; empty where it names none. */
export function typesOf(schema: JsonSchema | undefined, definitions: Definitions): ReadonlySet<string> {
  const types = new Set<string>();
  for (const part of partsOf(schema, definitions)) {
    const { type } = part;
    if (typeof type === "string") types.add(type);
    else if (Array.isArray(type)) for (const name of type) types.add(String(name));
    else if (Object.hasOwn(part, "const")) types.add(typeOf(part["const"]));
    else if (Array.isArray(part["enum"])) for (const value of part["enum"]) types.add(typeOf(value));
    else if (isObject(part["properties"])) types.add("object");
  }
  return types;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** Gives the schema of the items where a schema describes a list and nothing else. */
export function itemsOf(schema: JsonSchema | undefined, definitions: Definitions): JsonSchema | undefined {
  for (const { type, items } of partsOf(schema, definitions)) {
    if ((type === "array" || (Array.isArray(type) && type.includes("array"))) && isSchema(items))
      return items;
  }
  return undefined;
}

/** Copies a schema with the definitions it needs, and no others. */
export function withDefinitions(schema: JsonSchema, definitions: Definitions): JsonSchema {
  if (!isObject(schema)) return schema;
  const used = usedDefinitions(schema, definitions);
  if (used === undefined) return schema;
  // Definitions of its own would be hidden: references are from the root.
  return Object.hasOwn(schema, "$defs") ? { allOf: [schema], $defs: used } : { ...schema, $defs: used };
}

function usedDefinitions(schema: JsonSchemaObject, definitions: Definitions): Definitions | undefined {
  const used = new Map<string, JsonSchema>();
  const left = [...namesIn(schema)];
  for (let name = left.pop(); name !== undefined; name = left.pop()) {
    if (used.has(name) || !Object.hasOwn(definitions, name)) continue;
    const definition = definitions[name] as JsonSchema;
    // Written as objects, which documents can refer to by name.
    used.set(name, isObject(definition) ? definition : definition ? {} : { not: {} });
    if (isObject(definition)) left.push(...namesOf(definition));
  }
  return used.size === 0 ? undefined : Object.fromEntries(used);
}

/** What definitions refer to: many operations use the same ones. */
const namesKnown = new WeakMap<JsonSchemaObject, readonly string[]>();

function namesOf(definition: JsonSchemaObject): readonly string[] {
  const names = namesKnown.get(definition) ?? [...namesIn(definition)];
  namesKnown.set(definition, names);
  return names;
}

function namesIn(schema: JsonSchemaObject): ReadonlySet<string> {
  const names = new Set<string>();
  const seen = new Set<object>();
  const left: unknown[] = [schema];
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next !== "object" || next === null || seen.has(next)) continue;
    seen.add(next);
    const name = Array.isArray(next) ? undefined : definitionName((next as JsonSchemaObject)["$ref"]);
    if (name !== undefined) names.add(name);
    for (const member of Object.values(next)) if (typeof member === "object") left.push(member);
  }
  return names;
}
