import {
  forEachSubschema,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
} from "../core/schema/json-schema.ts";
import { isTodaysDialect, surveyPlainSchema } from "../core/schema/plain-schema.ts";

/** Where the schemas of a document stand. */
const COMPONENTS = "#/components/schemas/";

/** Where a schema of a document says which schema it was made of, where it does not say all of it. */
export const EXACT = "x-waybill";

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
  if (!isObject($defs) || !isTodaysDialect(rest["$schema"])) return false;
  const reached = new Set<string>();
  const add = (refs: ReadonlySet<string> | undefined): boolean => {
    for (const name of refs ?? []) reached.add(name);
    return refs !== undefined;
  };
  if (!add(surveyPlainSchema(rest)?.refs)) return false;
  for (const name of reached) {
    const definition = Object.hasOwn($defs, name) ? $defs[name] : undefined;
    if (!isObject(definition) || !add(refsOf(name) ?? surveyPlainSchema(definition)?.refs)) return false;
  }
  return reached.size === Object.keys($defs).length;
}

/** A schema and all within it. */
function partsOf(schema: JsonSchemaObject): ReadonlySet<JsonSchemaObject> {
  const parts = new Set<JsonSchemaObject>([schema]);
  const add = (part: JsonSchema): void => {
    if (isObject(part)) parts.add(part);
  };
  for (const part of parts) forEachSubschema(part, add);
  return parts;
}
