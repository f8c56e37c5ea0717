import { setOwn } from "../../../core/json/json-value.ts";
import {
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  schemaForm,
} from "../../../core/schema/json-schema.ts";
import { mapSubschemas, modernKeywords } from "../../../core/schema/rewrite-schema.ts";
import type { ReferenceTargets } from "../../../core/schema/schema-index.ts";

type Keywords = Record<string, unknown>;

/** Names of a schema or its parts, needless where references are pointers; and what OpenAPI reads otherwise than JSON Schema does. */
const LEFT_OUT = new Set([
  ...["$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"],
  ...["$defs", "definitions", "$async", "nullable", "discriminator", "xml", "externalDocs"],
]);

/** What is written with a look at names and values. */
const WRITTEN_APART = new Set([
  ...["$ref", "$dynamicRef", "$recursiveRef", "properties", "patternProperties", "dependentRequired"],
  ...["dependentSchemas", "const", "enum"],
]);

const NOTHING: JsonSchemaObject = { not: {} };

/** The answer where a schema says what a document cannot. */
export class NotDescribable extends Error {
  override readonly name = "NotDescribable";
}

/** A reference as it is written, and the schema it leads to, which gets its name later. */
export interface ReferenceSite {
  readonly holder: { $ref: string };
  readonly target: JsonSchemaObject;
}

/** What rewriting a schema needs to know of the one it is part of. */
export interface RewriteContext {
  readonly targets: ReferenceTargets;
  /** The schemas that are referred to wherever they stand. */
  readonly named: { has(schema: JsonSchemaObject): boolean };
  /** Receives the references. */
  readonly sites: ReferenceSite[];
}

/**
 * Writes a schema as one of today's dialect that says the same, each reference as one to the named schema it means and alone in
 * its schema. No key of it is taken for a reference by tools that look for those everywhere.
 */
export function toDocumentSchema(schema: JsonSchemaObject, context: RewriteContext): JsonSchemaObject {
  return new Rewriting(context).object(schema);
}

/** The same for a member of one of those schemas, which may have a name itself. */
export function toDocumentMember(schema: unknown, context: RewriteContext): JsonSchemaObject {
  return new Rewriting(context).schema(schema);
}

class Rewriting {
  readonly #context: RewriteContext;

  constructor(context: RewriteContext) {
    this.#context = context;
  }

  /** Boolean schemas are spelled out: many tools know none. */
  schema(schema: unknown): JsonSchemaObject {
    if (!isObject(schema)) return schema === false ? NOTHING : {};
    if (!this.#context.named.has(schema)) return this.object(schema);
    const holder = { $ref: "" };
    this.#context.sites.push({ holder, target: schema });
    return holder;
  }

  object(schema: JsonSchemaObject): JsonSchemaObject {
    const isOld = this.#context.targets.isOld(schema);
    const further = this.#references(schema);
    // Before 2019-09 a reference hid everything beside it.
    if (isOld && further[0] !== undefined) return further[0];
    const modern = modernKeywords(schema, isOld);
    const kept = Object.entries(modern).filter(([keyword, value]) => isPlain(keyword, value));
    const copy: Keywords = {
      ...mapSubschemas(Object.fromEntries(kept), (part, keyword) =>
        // The one place where every tool knows booleans.
        keyword === "additionalProperties" && typeof part === "boolean" ? part : this.schema(part),
      ),
    };
    this.#members(modern, copy);
    this.#dependents(modern, copy, further);
    this.#values(modern, copy, further);
    return joined(copy, further);
  }

  #references(schema: JsonSchemaObject): JsonSchemaObject[] {
    return this.#context.targets.referencesOf(schema).map(({ keyword, target }) => {
      if (target === undefined) throw new NotDescribable(`What ${keyword} means cannot be told.`);
      return this.schema(target);
    });
  }

  #members({ properties, patternProperties }: JsonSchemaObject, copy: Keywords): void {
    const named: Keywords = {};
    const patterned: Keywords = {};
    if (isObject(patternProperties)) {
      for (const source of Object.keys(patternProperties)) {
        setOwn(patterned, source, this.schema(patternProperties[source]));
      }
    }
    for (const name of isObject(properties) ? Object.keys(properties) : []) {
      const written = this.schema((properties as Keywords)[name]);
      if (POINTING_KEYS.has(name)) setOwn(patterned, freePattern(name, patterned), written);
      else setOwn(named, name, written);
    }
    if (isObject(properties)) copy["properties"] = named;
    if (Object.keys(patterned).length > 0) copy["patternProperties"] = patterned;
  }

  #dependents(schema: JsonSchemaObject, copy: Keywords, further: JsonSchemaObject[]): void {
    for (const keyword of ["dependentRequired", "dependentSchemas"]) {
      const members = schema[keyword];
      const written: Keywords = {};
      for (const name of isObject(members) ? Object.keys(members) : []) {
        const value = (members as JsonSchemaObject)[name];
        const isNames = keyword === "dependentRequired";
        const then = isNames ? { required: value } : this.schema(value);
        if (POINTING_KEYS.has(name)) further.push({ if: { type: "object", required: [name] }, then });
        else setOwn(written, name, isNames ? value : then);
      }
      if (Object.keys(written).length > 0) copy[keyword] = written;
    }
  }

  #values(schema: JsonSchemaObject, copy: Keywords, further: JsonSchemaObject[]): void {
    if (Object.hasOwn(schema, "const")) {
      if (hasPointingKey(schema["const"])) further.push(exactly(schema["const"]));
      else copy["const"] = schema["const"];
    }
    const values = schema["enum"];
    if (!Array.isArray(values)) return;
    if (values.length === 0) further.push(NOTHING);
    else if (hasPointingKey(values)) further.push({ anyOf: values.map(exactly) });
    else copy["enum"] = values;
  }
}

/** Whether a keyword is written by itself, whatever stands beside it. */
function isPlain(keyword: string, value: unknown): boolean {
  if (LEFT_OUT.has(keyword) || WRITTEN_APART.has(keyword)) return false;
  return schemaForm(keyword, value) !== undefined || !hasPointingKey(value);
}

/** A reference stands alone where it can; tools that replace it by what it means would lose what is beside it. */
function joined(copy: Keywords, further: readonly JsonSchemaObject[]): JsonSchemaObject {
  const [only] = further;
  if (only === undefined) return copy;
  if (further.length === 1 && Object.keys(copy).length === 0) return only;
  const before = Array.isArray(copy["allOf"]) ? (copy["allOf"] as readonly JsonSchema[]) : [];
  return { ...copy, allOf: [...before, ...further] };
}

/** A pattern for one name, written in a way that is not taken. */
function freePattern(name: string, taken: Keywords): string {
  const bare = name.slice(1);
  const pattern = [`^\\$${bare}$`, `^[$]${bare}$`, `^(?:\\$${bare})$`].find(
    (source) => !Object.hasOwn(taken, source),
  );
  if (pattern === undefined) throw new NotDescribable(`No pattern for "${name}" is free.`);
  return pattern;
}

/** One value, without writing its keys as keys. */
function exactly(value: unknown): JsonSchemaObject {
  if (Array.isArray(value)) {
    const items = value.length === 0 ? {} : { prefixItems: value.map(exactly) };
    return { type: "array", ...items, items: NOTHING, minItems: value.length };
  }
  if (!isObject(value)) return { const: value };
  const names = Object.keys(value);
  const properties: Keywords = {};
  const patternProperties: Keywords = {};
  for (const name of names) {
    const isPointing = POINTING_KEYS.has(name);
    const key = isPointing ? freePattern(name, patternProperties) : name;
    setOwn(isPointing ? patternProperties : properties, key, exactly(value[name]));
  }
  return { type: "object", properties, patternProperties, required: names, additionalProperties: false };
}

/** Keys that tools for OpenAPI take for references or names wherever in a document they stand. */
const POINTING_KEYS: ReadonlySet<string> = new Set([
  "$ref",
  "$id",
  "$anchor",
  "$dynamicRef",
  "$dynamicAnchor",
]);

/** In JSON text, where a quotation mark within a string has a backslash before it. */
const POINTING = /"\$(?:ref|id|anchor|dynamicRef|dynamicAnchor)":/;

/** Tells whether a tool would take something in a JSON value for a reference, or for the name of one. */
export function hasPointingKey(value: unknown): boolean {
  return typeof value === "object" && value !== null && POINTING.test(JSON.stringify(value));
}

/** A schema word for word, to stand in a document that is not about it: as text where tools would follow its references. */
export function toExactSchema(schema: JsonSchema): JsonSchema | string {
  return hasPointingKey(schema) ? JSON.stringify(schema) : schema;
}
