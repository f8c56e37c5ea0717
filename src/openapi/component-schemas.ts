import {
  forEachSubschema,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
} from "../core/schema/json-schema.ts";

/** Where the schemas of a document stand. */
const COMPONENTS = "#/components/schemas/";

/** Where the definitions of a schema stand. */
const DEFINITIONS = "#/$defs/";

/** Where a schema of a document says which schema it was made of, where it does not say all of it. */
export const EXACT = "x-waybill";

/** Names of schemas and other ways to refer to them, which mean something else once a schema is taken apart. */
const NAMING = new Set([
  ...["$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"],
  ...["$vocabulary", "definitions", "$defs"],
]);

/** Writes the reference to a schema of a document. */
export function componentRef(name: string): string {
  return COMPONENTS + name;
}

/** Reads the name out of a reference to a schema of a document. */
export function componentName(reference: unknown): string | undefined {
  return typeof reference === "string" && reference.startsWith(COMPONENTS)
    ? reference.slice(COMPONENTS.length)
    : undefined;
}

/** Writes the reference to a definition of a schema, by a name that needs no escaping. */
export function definitionRef(name: string): string {
  return DEFINITIONS + name;
}

/** Reads the name out of a reference to a definition, where it needs no escaping. */
export function definitionName(reference: unknown): string | undefined {
  if (typeof reference !== "string" || !reference.startsWith(DEFINITIONS)) return undefined;
  const name = reference.slice(DEFINITIONS.length);
  return /^[A-Za-z0-9._-]+$/.test(name) && name !== "__proto__" ? name : undefined;
}

/** Copies a schema with other references; those it is not told about stay as they are. */
export function withReferences(
  schema: JsonSchemaObject,
  change: (reference: string) => string | undefined,
): JsonSchemaObject {
  const copy: Record<string, unknown> = structuredClone(schema);
  for (const part of partsOf(copy)) {
    const changed = typeof part["$ref"] === "string" ? change(part["$ref"]) : undefined;
    if (changed !== undefined) (part as Record<string, unknown>)["$ref"] = changed;
  }
  return copy;
}

/**
 * Tells whether a schema can be taken apart into its definitions and put together again: they all stand in `$defs` of its root, all
 * are referred to by name there, and nothing else in it has a name. `refsOf` tells what is known of a definition already.
 */
export function isSeparable(
  { $defs = {}, ...rest }: JsonSchemaObject,
  refsOf: (name: string) => ReadonlySet<string> | undefined = () => undefined,
): boolean {
  const { $schema } = rest;
  if (!isObject($defs) || (typeof $schema === "string" && !TODAY.test($schema))) return false;
  const reached = new Set<string>();
  const add = (refs: ReadonlySet<string> | undefined): boolean => {
    for (const name of refs ?? []) reached.add(name);
    return refs !== undefined;
  };
  if (!add(plainRefs(rest))) return false;
  for (const name of reached) {
    const definition = Object.hasOwn($defs, name) ? $defs[name] : undefined;
    if (!isObject(definition) || !add(refsOf(name) ?? plainRefs(definition))) return false;
  }
  return reached.size === Object.keys($defs).length;
}

/** Names of the definitions that a schema refers to; undefined where something in it has a name, or is referred to otherwise. */
export function plainRefs(schema: JsonSchemaObject): ReadonlySet<string> | undefined {
  const names = new Set<string>();
  for (const part of partsOf(schema)) {
    for (const keyword of Object.keys(part)) if (NAMING.has(keyword)) return undefined;
    if (part["$ref"] === undefined || part["$ref"] === "#") continue;
    const name = definitionName(part["$ref"]);
    if (name === undefined) return undefined;
    names.add(name);
  }
  return names;
}

/** Other dialects read references in other ways. */
const TODAY = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;

/** A schema and all within it. */
function partsOf(schema: JsonSchemaObject): ReadonlySet<JsonSchemaObject> {
  const parts = new Set<JsonSchemaObject>([schema]);
  const add = (part: JsonSchema): void => {
    if (isObject(part)) parts.add(part);
  };
  for (const part of parts) forEachSubschema(part, add);
  return parts;
}
