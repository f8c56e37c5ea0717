import { setOwn } from "../core/json/json-value.ts";
import {
  forEachSubschema,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
} from "../core/schema/json-schema.ts";
import { isTodaysDialect, surveyPlainSchema } from "../core/schema/plain-schema.ts";

/** Where the schemas of a document stand. */
const COMPONENTS = "#/components/schemas/";

/** Where the parameters that operations share stand. */
const PARAMETERS = "#/components/parameters/";

/** How the text of a schema begins that is a reference to one of them. */
const REFERENCE = `{"$ref":"${COMPONENTS}`;

/** Stands for the properties of a schema that the parameters of its operation give back. */
export const IN_PARAMETERS = "parameters";

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

/** Reads the name out of a reference to a parameter of a document. */
export function parameterName(reference: unknown): string | undefined {
  return typeof reference === "string" && reference.startsWith(PARAMETERS)
    ? reference.slice(PARAMETERS.length)
    : undefined;
}

/** Writes a schema that says nothing but that it is one of the document, as text: no tool takes it for a reference where it stands. */
export function writeReference(reference: string): string {
  return JSON.stringify({ $ref: reference });
}

/** Reads the name out of such a text. */
export function writtenReference(text: unknown): string | undefined {
  if (typeof text !== "string" || !text.startsWith(REFERENCE) || !text.endsWith(`"}`)) return undefined;
  return componentName(text.slice(REFERENCE.length - COMPONENTS.length, -2));
}

/** Copies a schema with other references; those it is not told about stay as they are. */
export function withReferences(
  schema: JsonSchemaObject,
  change: (reference: string) => string | undefined,
): JsonSchemaObject {
  const changes = new Map<unknown, string>();
  for (const part of partsOf(schema)) {
    const changed = typeof part["$ref"] === "string" ? change(part["$ref"]) : undefined;
    if (changed !== undefined) changes.set(part, changed);
  }
  return changes.size === 0 ? schema : (copyWith(schema, changes) as JsonSchemaObject);
}

function copyWith(value: unknown, changes: ReadonlyMap<unknown, string>): unknown {
  if (Array.isArray(value)) return value.map((item) => copyWith(item, changes));
  if (!isObject(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) setOwn(copy, key, copyWith(value[key], changes));
  const reference = changes.get(value);
  if (reference !== undefined) copy["$ref"] = reference;
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
