import { setOwn } from "../../../core/json/json-value.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../../core/schema/json-schema.ts";
import type { ReferenceTargets } from "../../../core/schema/reference-targets.ts";
import { hasPointingKey, POINTING_KEYS } from "./exact-schema.ts";

type Keywords = Record<string, unknown>;

/** Names of a schema or its parts, needless where references are pointers; and what OpenAPI reads otherwise than JSON Schema does. */
const LEFT_OUT = new Set([
  ...["$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"],
  ...["$defs", "definitions", "$async", "nullable", "discriminator", "xml", "externalDocs"],
]);

/** What `#array` and `#dependencies` write, `#bound` and `#values` too. */
const WRITTEN_APART = new Set([
  ...["$ref", "$dynamicRef", "$recursiveRef", "items", "prefixItems", "additionalItems", "contains"],
  ...["minContains", "maxContains", "properties", "patternProperties", "dependencies"],
  ...["dependentRequired", "dependentSchemas", "exclusiveMinimum", "exclusiveMaximum", "const", "enum"],
  ...["unevaluatedItems", "unevaluatedProperties"],
]);

const ONE = new Set(["additionalProperties", "contentSchema", "else", "if", "not", "propertyNames", "then"]);
const LISTS = new Set(["allOf", "anyOf", "oneOf"]);

const BOUNDS = [
  ["exclusiveMinimum", "minimum"],
  ["exclusiveMaximum", "maximum"],
] as const;

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
export function rewriteSchema(schema: JsonSchemaObject, context: RewriteContext): JsonSchemaObject {
  return new Rewriting(context).object(schema);
}

/** The same for a member of one of those schemas, which may have a name itself. */
export function rewriteMember(schema: unknown, context: RewriteContext): JsonSchemaObject {
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
    const copy: Keywords = {};
    for (const keyword of Object.keys(schema)) this.#keyword(keyword, schema[keyword], copy);
    this.#array(schema, copy, isOld);
    this.#members(schema, copy);
    this.#dependencies(schema, copy, further);
    this.#values(schema, copy, further);
    for (const [keyword, bound] of BOUNDS) {
      const value = schema[keyword] === true ? schema[bound] : schema[keyword];
      if (typeof value === "number") copy[keyword] = value;
    }
    return joined(copy, further);
  }

  #references(schema: JsonSchemaObject): JsonSchemaObject[] {
    return this.#context.targets.referencesOf(schema).map(({ keyword, target }) => {
      if (target === undefined) throw new NotDescribable(`What ${keyword} means cannot be told.`);
      return this.schema(target);
    });
  }

  #keyword(keyword: string, value: unknown, copy: Keywords): void {
    if (LEFT_OUT.has(keyword) || WRITTEN_APART.has(keyword)) return;
    // The one place where every tool knows them.
    if (keyword === "additionalProperties" && typeof value === "boolean") copy[keyword] = value;
    else if (ONE.has(keyword)) setOwn(copy, keyword, this.schema(value));
    else if (LISTS.has(keyword) && Array.isArray(value)) {
      setOwn(
        copy,
        keyword,
        value.map((item) => this.schema(item)),
      );
    } else if (!hasPointingKey(value)) setOwn(copy, keyword, value);
  }

  #array(schema: JsonSchemaObject, copy: Keywords, isOld: boolean): void {
    const { items, contains } = schema;
    const isTuple = Array.isArray(items);
    const prefix = isTuple ? items : isOld ? undefined : schema["prefixItems"];
    const rest = isTuple ? schema["additionalItems"] : items;
    if (Array.isArray(prefix) && prefix.length > 0) {
      copy["prefixItems"] = prefix.map((item) => this.schema(item));
    }
    if (rest !== undefined) copy["items"] = this.schema(rest);
    if (contains !== undefined) copy["contains"] = this.schema(contains);
    if (isOld) return;
    for (const keyword of ["minContains", "maxContains"]) {
      if (schema[keyword] !== undefined) copy[keyword] = schema[keyword];
    }
    for (const keyword of ["unevaluatedItems", "unevaluatedProperties"]) {
      if (schema[keyword] !== undefined) copy[keyword] = this.schema(schema[keyword]);
    }
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

  #dependencies(schema: JsonSchemaObject, copy: Keywords, further: JsonSchemaObject[]): void {
    const written = { required: {} as Keywords, schemas: {} as Keywords };
    for (const keyword of ["dependentRequired", "dependentSchemas", "dependencies"]) {
      const members = schema[keyword];
      for (const name of isObject(members) ? Object.keys(members) : []) {
        const value = (members as Keywords)[name];
        const then = Array.isArray(value) ? { required: value } : this.schema(value);
        const into = Array.isArray(value) ? written.required : written.schemas;
        if (POINTING_KEYS.has(name) || Object.hasOwn(into, name)) {
          further.push({ if: { type: "object", required: [name] }, then });
        } else setOwn(into, name, Array.isArray(value) ? value : then);
      }
    }
    if (Object.keys(written.required).length > 0) copy["dependentRequired"] = written.required;
    if (Object.keys(written.schemas).length > 0) copy["dependentSchemas"] = written.schemas;
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
