import { forEachSubschema, isObject, type JsonSchemaObject } from "./json-schema.ts";

/** Where the definitions of a schema stand. */
const DEFINITIONS = "#/$defs/";

/** Names of schemas and other ways to refer to them, which mean something else once a schema is taken apart. */
const NAMING = new Set([
  ...["$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"],
  ...["$vocabulary", "definitions", "$defs"],
]);

/** What there is in a schema in which nothing has a name, and which refers to definitions of its root alone. */
export interface PlainSchema {
  /** Names of the definitions that it refers to. */
  readonly refs: ReadonlySet<string>;
  /** Whether it refers to the root itself. */
  readonly refersToRoot: boolean;
  /** How many schemas it consists of. */
  readonly subschemas: number;
  readonly patterns: ReadonlySet<string>;
  readonly hasDefaults: boolean;
}

/** Frozen schemas stand in many others, and are looked at once. */
const surveyed = new WeakMap<JsonSchemaObject, PlainSchema | "not plain">();

/** Tells what there is in a schema; undefined where something in it has a name, or is referred to otherwise. */
export function surveyPlainSchema(schema: JsonSchemaObject): PlainSchema | undefined {
  const before = surveyed.get(schema);
  const found = before ?? survey(schema) ?? "not plain";
  if (before === undefined && Object.isFrozen(schema)) surveyed.set(schema, found);
  return found === "not plain" ? undefined : found;
}

function survey(schema: JsonSchemaObject): PlainSchema | undefined {
  const refs = new Set<string>();
  const patterns = new Set<string>();
  let [refersToRoot, hasDefaults, subschemas] = [false, false, 1];
  const left = [schema];
  for (let part = left.pop(); part !== undefined; part = left.pop()) {
    for (const keyword of Object.keys(part)) if (NAMING.has(keyword)) return undefined;
    const { $ref, pattern, patternProperties } = part;
    if ($ref === "#") refersToRoot = true;
    else if ($ref !== undefined) {
      const name = definitionName($ref);
      if (name === undefined) return undefined;
      refs.add(name);
    }
    if (typeof pattern === "string") patterns.add(pattern);
    if (isObject(patternProperties))
      for (const source of Object.keys(patternProperties)) patterns.add(source);
    hasDefaults ||= Object.hasOwn(part, "default");
    forEachSubschema(part, (child) => {
      subschemas += 1;
      if (isObject(child)) left.push(child);
    });
  }
  return { refs, refersToRoot, subschemas, patterns, hasDefaults };
}

/** Reads the name out of a reference to a definition, where it needs no escaping. */
export function definitionName(reference: unknown): string | undefined {
  if (typeof reference !== "string" || !reference.startsWith(DEFINITIONS)) return undefined;
  const name = reference.slice(DEFINITIONS.length);
  return /^[A-Za-z0-9._-]+$/.test(name) && name !== "__proto__" ? name : undefined;
}

/** Writes the reference to a definition of a schema, by a name that needs no escaping. */
export function definitionRef(name: string): string {
  return DEFINITIONS + name;
}

/** Other dialects read references in other ways. */
const TODAY = /^https?:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;

/** Tells whether a `$schema` is today's, or leaves it open. */
export function isTodaysDialect($schema: unknown): boolean {
  return typeof $schema !== "string" || TODAY.test($schema);
}

/** Those of the names that refer, step by step, to nothing but each other. */
export function closedNames(
  names: Iterable<string>,
  refsOf: (name: string) => ReadonlySet<string> | undefined,
): ReadonlySet<string> {
  const closed = new Set(names);
  const referrers = new Map<string, string[]>();
  const left: string[] = [];
  for (const name of closed) {
    for (const ref of refsOf(name) ?? []) {
      if (!closed.has(ref)) left.push(name);
      else if (!referrers.get(ref)?.push(name)) referrers.set(ref, [name]);
    }
  }
  for (let name = left.pop(); name !== undefined; name = left.pop()) {
    if (closed.delete(name)) left.push(...(referrers.get(name) ?? []));
  }
  return closed;
}
