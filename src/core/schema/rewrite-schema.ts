import { setOwn } from "../json/json-value.ts";
import { isObject, isSchema, type JsonSchema, type JsonSchemaObject, schemaForm } from "./json-schema.ts";

/** What changes when a schema is written again. */
export interface SchemaRules {
  /** Gives what stands for a schema that is not looked into; nothing where it is. */
  readonly replace?: (schema: JsonSchemaObject) => JsonSchema | undefined;
  /** Gives the keywords that a schema is written with. Their subschemas are rewritten afterwards. */
  readonly keywords?: (schema: JsonSchemaObject) => JsonSchemaObject;
  /**
   * Whether what stands below unknown keywords is rewritten too: references may lead there. @default false
   */
  readonly everywhere?: boolean;
}

/** Writes a schema and all schemas within it again. Whatever does not change is the same object as before. */
export function rewriteSchema<S extends JsonSchema>(schema: S, rules: SchemaRules): S | JsonSchemaObject;
export function rewriteSchema(schema: JsonSchema, rules: SchemaRules): JsonSchema {
  if (typeof schema === "boolean") return schema;
  const replaced = rules.replace?.(schema);
  if (replaced !== undefined) return replaced;
  const changed = rules.keywords?.(schema) ?? schema;
  return mapSubschemas(changed, (part) => rewriteSchema(part, rules), rules.everywhere);
}

type Change = (subschema: JsonSchema, keyword: string) => unknown;

/** Copies a schema with something else in the place of each direct subschema; gives the same schema where nothing is else. */
export function mapSubschemas(
  schema: JsonSchemaObject,
  change: Change,
  everywhere = false,
): JsonSchemaObject {
  return mapMembers(schema, (value, keyword) => {
    const form = schemaForm(keyword, value);
    const changePart = (part: unknown) => (isSchema(part) ? change(part, keyword) : part);
    if (form === "one") return changePart(value);
    if (form === "list") return mapList(value as readonly unknown[], changePart);
    if (form === "map") return mapMembers(value as JsonSchemaObject, changePart);
    return everywhere && !DATA_KEYWORDS.has(keyword) ? changeInside(value, changePart) : value;
  });
}

/** Keywords whose value is data, in which nothing is a schema. */
const DATA_KEYWORDS: ReadonlySet<string> = new Set(["const", "default", "enum", "examples"]);

/** Below a keyword nobody knows, names and schemas can only be told apart by what they hold. */
function changeInside(value: unknown, change: (part: unknown) => unknown): unknown {
  if (Array.isArray(value)) return mapList(value, (item) => changeInside(item, change));
  if (!isObject(value)) return value;
  return Object.values(value).every(isSchema)
    ? mapMembers(value, (member) => changeInside(member, change))
    : change(value);
}

function mapList(list: readonly unknown[], change: (item: unknown) => unknown): readonly unknown[] {
  const mapped = list.map(change);
  return mapped.every((item, at) => item === list[at]) ? list : mapped;
}

function mapMembers(
  members: JsonSchemaObject,
  change: (value: unknown, name: string) => unknown,
): JsonSchemaObject {
  let copy: Record<string, unknown> | undefined;
  for (const name of Object.keys(members)) {
    const changed = change(members[name], name);
    if (changed === members[name]) continue;
    copy ??= { ...members };
    setOwn(copy, name, changed);
  }
  return copy ?? members;
}

/** Copies a schema with other references, as keyword and value; below an `$id` of its own they stay as they are. */
export function changeReferences(
  schema: JsonSchemaObject,
  change: (keyword: string, reference: string) => readonly [keyword: string, reference: string] | undefined,
): JsonSchemaObject {
  return rewriteSchema(schema, {
    everywhere: true,
    replace: (part) => (isResource(part) ? part : undefined),
    keywords: (part) => {
      let changed = part;
      for (const keyword of REFERENCES) {
        const reference = part[keyword];
        const to = typeof reference === "string" ? change(keyword, reference) : undefined;
        if (to === undefined) continue;
        const { [keyword]: _, ...rest } = changed;
        changed = { ...(to[0] === keyword ? changed : rest), [to[0]]: to[1] };
      }
      return changed;
    },
  });
}

/** The keywords that refer to other schemas. */
const REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"] as const;

/** Tells whether references within a schema start from itself, by an `$id` that is no anchor. */
export function isResource({ $id }: JsonSchemaObject): boolean {
  return typeof $id === "string" && !$id.startsWith("#");
}

/** A local reference as it reads once the root that it starts from stands at `place`, a pointer that begins with `#`; others stay. */
export function movedReference(reference: string, place: string): string {
  return reference === "#" || reference.startsWith("#/") ? place + reference.slice(1) : reference;
}

/** The items of a list by place, and of all further places, in the words of 2020-12. */
export interface ModernItems {
  readonly prefix: readonly unknown[] | undefined;
  /** `undefined` where nothing is said. */
  readonly rest: unknown;
}

/** Reads how a schema of any dialect describes items; before 2019-09, `prefixItems` said nothing. */
export function modernItems(schema: JsonSchemaObject, isOld: boolean): ModernItems {
  const { items } = schema;
  const isTuple = Array.isArray(items);
  const prefix: unknown = isTuple ? items : isOld ? undefined : schema["prefixItems"];
  return {
    prefix: Array.isArray(prefix) && prefix.length > 0 ? prefix : undefined,
    rest: isTuple ? schema["additionalItems"] : items,
  };
}

/** Keywords that 2020-12 writes in other words, or that older dialects do not know. */
const REWRITTEN = new Set([
  ...["items", "prefixItems", "additionalItems", "dependencies", "dependentRequired", "dependentSchemas"],
  ...["exclusiveMinimum", "exclusiveMaximum"],
]);
const LATER = new Set(["minContains", "maxContains", "unevaluatedItems", "unevaluatedProperties"]);

const EXCLUSIVE = [
  ["exclusiveMinimum", "minimum"],
  ["exclusiveMaximum", "maximum"],
] as const;

/** A schema of any dialect in the words of 2020-12; `isOld` for dialects before 2019-09. Its references and subschemas stay as they are. */
export function modernKeywords(schema: JsonSchemaObject, isOld: boolean): JsonSchemaObject {
  const modern: Record<string, unknown> = {};
  for (const keyword of Object.keys(schema)) {
    if (!REWRITTEN.has(keyword) && !(isOld && LATER.has(keyword))) setOwn(modern, keyword, schema[keyword]);
  }
  const { prefix, rest } = modernItems(schema, isOld);
  if (prefix !== undefined) modern["prefixItems"] = prefix;
  if (rest !== undefined) modern["items"] = rest;
  writeModernDependents(schema, modern);
  for (const [keyword, bound] of EXCLUSIVE) {
    // Draft-04 says `true` beside the bound.
    const value = schema[keyword] === true ? schema[bound] : schema[keyword];
    if (typeof value === "number") modern[keyword] = value;
  }
  return modern;
}

/** What depends on a member is said in one of two keywords; what both say of one member goes to `allOf`. */
function writeModernDependents(schema: JsonSchemaObject, modern: Record<string, unknown>): void {
  for (const source of ["dependentRequired", "dependentSchemas", "dependencies"]) {
    const members = schema[source];
    for (const name of isObject(members) ? Object.keys(members) : []) {
      const value = (members as JsonSchemaObject)[name];
      const keyword = Array.isArray(value) ? "dependentRequired" : "dependentSchemas";
      const into = (modern[keyword] ?? {}) as Record<string, unknown>;
      const isTaken = Object.hasOwn(into, name);
      const own: Record<string, unknown> = isTaken ? {} : into;
      setOwn(own, name, value);
      if (!isTaken) modern[keyword] = into;
      else modern["allOf"] = [...((modern["allOf"] ?? []) as readonly unknown[]), { [keyword]: own }];
    }
  }
}
