import { isObject, type JsonSchema, type JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { referencePath, type SchemaView, viewSchema } from "../../core/schema/schema-view.ts";

/** What `#/$defs/…` refers to. */
export type Definitions = Readonly<Record<string, JsonSchema>>;

/** Reads a schema whose references lead to definitions. */
export function viewWithDefinitions(schema: JsonSchema | undefined, definitions: Definitions): SchemaView {
  return viewSchema(schema, { $defs: definitions });
}

/** Copies a schema with the definitions it needs, and no others. */
export function withDefinitions(schema: JsonSchema, definitions: Definitions): JsonSchema {
  if (!isObject(schema)) return schema;
  const used = usedDefinitions(schema, definitions);
  if (used === undefined) return schema;
  // Definitions of its own would be hidden: references are from the root.
  return Object.hasOwn(schema, "$defs") ? { allOf: [schema], $defs: used } : { ...schema, $defs: used };
}

/** The name of the definition that a reference leads to or into. */
function definitionName(reference: unknown): string | undefined {
  const [place, name] = (typeof reference === "string" && referencePath(reference)) || [];
  return place === "$defs" ? name : undefined;
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
