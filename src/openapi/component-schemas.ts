import { joinPointer, parsePointer } from "../core/json/json-pointer.ts";
import { isPlainObject, setOwn } from "../core/json/json-value.ts";
import { isObject, type JsonSchemaObject } from "../core/schema/json-schema.ts";
import { isTodaysDialect, surveyPlainSchema } from "../core/schema/plain-schema.ts";
import { rewriteSchema } from "../core/schema/rewrite-schema.ts";

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
  return rewriteSchema(schema, {
    keywords: (part) => {
      const changed = typeof part["$ref"] === "string" ? change(part["$ref"]) : undefined;
      return changed === undefined ? part : { ...part, $ref: changed };
    },
  });
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

/** How a schema differs from what a document says of it. */
export interface SchemaPatch {
  /** Pointers to schemas that have a reference beside the rest, which the document writes as the only one of `allOf`. */
  readonly beside?: readonly string[];
  /** Pointers to members that it does not have. */
  readonly without?: readonly string[];
  /** What it has, by pointer. */
  readonly with?: Readonly<Record<string, unknown>>;
}

/** Finds what to change in a JSON object to get the other one. */
export function findPatch(from: object, to: object): SchemaPatch {
  const beside: string[] = [];
  const without: string[] = [];
  const changed: Record<string, unknown> = {};
  const compare = (before: unknown, after: unknown, pointer: string): void => {
    if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
      for (const [at, item] of before.entries()) compare(item, after[at], joinPointer(pointer, at));
    } else if (isPlainObject(before) && isPlainObject(after)) {
      const reference = Object.hasOwn(after, "allOf") ? undefined : onlyReference(before["allOf"]);
      const isBeside = reference !== undefined && after["$ref"] === reference;
      if (isBeside) beside.push(pointer);
      for (const key of Object.keys(before)) {
        if (isBeside && key === "allOf") continue;
        if (!Object.hasOwn(after, key)) without.push(joinPointer(pointer, key));
      }
      for (const key of Object.keys(after)) {
        if (isBeside && key === "$ref") continue;
        const known = Object.hasOwn(before, key) ? before[key] : undefined;
        compare(known, after[key], joinPointer(pointer, key));
      }
    } else if (!Object.is(before, after)) setOwn(changed, pointer, after);
  };
  compare(from, to, "");
  return {
    ...(beside.length > 0 && { beside }),
    ...(without.length > 0 && { without }),
    ...(Object.keys(changed).length > 0 && { with: changed }),
  };
}

/** The reference that a list consists of. */
function onlyReference(list: unknown): string | undefined {
  const [only] = Array.isArray(list) && list.length === 1 ? list : [];
  if (!isPlainObject(only) || Object.keys(only).length !== 1) return undefined;
  return typeof only["$ref"] === "string" ? only["$ref"] : undefined;
}

/** Makes the changes in a JSON object, as far as what they name is there. */
export function applyPatch(value: Record<string, unknown>, patch: unknown): void {
  if (!isPlainObject(patch)) return;
  const { beside, without, with: changed } = patch;
  for (const pointer of Array.isArray(beside) ? beside : []) {
    const [holder, key] = typeof pointer === "string" ? find(value, `${pointer}/allOf`) : [];
    const reference = isPlainObject(holder) && key !== undefined ? onlyReference(holder[key]) : undefined;
    if (!isPlainObject(holder) || reference === undefined) continue;
    delete holder["allOf"];
    holder["$ref"] = reference;
  }
  for (const pointer of Array.isArray(without) ? without : []) {
    const [holder, key] = typeof pointer === "string" ? find(value, pointer) : [];
    if (isPlainObject(holder) && key !== undefined) delete holder[key];
  }
  for (const pointer of isPlainObject(changed) ? Object.keys(changed) : []) {
    const [holder, key] = find(value, pointer);
    const after = (changed as Record<string, unknown>)[pointer];
    if (key === undefined) continue;
    if (isPlainObject(holder)) setOwn(holder, key, after);
    else if (Array.isArray(holder) && Object.hasOwn(holder, key)) holder[Number(key)] = after;
  }
}

function find(value: unknown, pointer: string): [holder?: unknown, key?: string | undefined] {
  if (!pointer.startsWith("/")) return [];
  const keys = parsePointer(pointer);
  const last = keys.pop();
  let holder = value;
  for (const key of keys) {
    if (typeof holder !== "object" || holder === null || !Object.hasOwn(holder, key)) return [];
    holder = (holder as Record<string, unknown>)[key];
  }
  return [holder, last];
}
