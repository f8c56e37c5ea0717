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

/** A definition of which something is known, which holds wherever its references lead to the same definitions. */
export interface KnownDefinition<Known> {
  readonly plain: PlainSchema;
  readonly refs: ReadonlyMap<string, Known>;
}

/** Leaves those of the definitions of a schema whose references lead to the same ones here as where they were learned. */
export function withSameReferences<Known extends KnownDefinition<Known>>(
  found: Map<string, Known>,
): ReadonlyMap<string, Known> {
  const others: string[] = [];
  for (const [name, { refs }] of found) {
    for (const [ref, known] of refs) {
      if (found.get(ref) === known) continue;
      others.push(name);
      break;
    }
  }
  return others.length === 0 ? found : withoutReferrers(found, others);
}

/** Gives definitions that are new their references, and hands on those that refer to nothing but each other and what is known. */
export function learnReferences<Known extends KnownDefinition<Known>>(
  made: ReadonlyMap<string, Known & { readonly refs: Map<string, Known> }>,
  known: ReadonlyMap<string, Known>,
  keep: (name: string, definition: Known) => void,
): void {
  const others: string[] = [];
  for (const [name, { plain, refs }] of made) {
    for (const ref of plain.refs) {
      const target = made.get(ref) ?? known.get(ref);
      if (target !== undefined) refs.set(ref, target);
    }
    if (refs.size < plain.refs.size) others.push(name);
  }
  const closed = others.length === 0 ? made : withoutReferrers(new Map<string, Known>(made), others);
  for (const [name, definition] of closed) keep(name, definition);
}

/** Takes definitions out, and those that refer to them, step by step. */
function withoutReferrers<Known extends KnownDefinition<Known>>(
  definitions: Map<string, Known>,
  taken: readonly string[],
): ReadonlyMap<string, Known> {
  const referrers = new Map<string, string[]>();
  for (const [name, { plain }] of definitions) {
    for (const ref of plain.refs) addTo(referrers, ref, name);
  }
  const left = [...taken];
  for (let name = left.pop(); name !== undefined; name = left.pop()) {
    if (definitions.delete(name)) left.push(...(referrers.get(name) ?? []));
  }
  return definitions;
}

function addTo(lists: Map<string, string[]>, key: string, entry: string): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [entry]);
  else list.push(entry);
}
