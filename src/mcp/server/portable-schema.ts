import { setOwn } from "../../core/json/json-value.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { SchemaReferences } from "./schema-references.ts";
import { toUnicodePattern } from "./unicode-pattern.ts";

/**
 * Who reads a schema: anyone who keeps to 2020-12; the validators of today's clients; or those of 2025 clients, which read what
 * does not name its dialect as 2020-12 or as draft-07.
 */
export type SchemaReader = "exact" | "modern" | "legacy";

type Keywords = Record<string, unknown>;

/** Names of the document or its parts, which plain pointers make needless; the validators stumble over those that clash. */
const NAMING = new Set(["$schema", "$id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary"]);

/** Keywords that mean nothing here, but something else to a validator of the SDKs, or make it give up. */
const FOREIGN = new Set(["id", "nullable", "$async"]);

const DATA = new Set(["const", "default", "examples", "required", "type"]);
const ONE = new Set(["additionalProperties", "contentSchema", "else", "propertyNames", "then"]);
const LISTS = new Set(["allOf", "anyOf"]);
const MAPS = new Set(["$defs", "definitions", "properties"]);

/** Keywords of 2019-09 and later, which a draft-07 validator passes over. */
const LATER = ["dependentRequired", "dependentSchemas", "maxContains", "minContains", "prefixItems"];

/**
 * Rewrites a schema as 2020-12 with plain pointers for references. For `exact` nothing that it says is changed, or the answer is
 * undefined; for validators it says no more than before, and nothing that they refuse or read otherwise.
 */
export function toPortableSchema(
  schema: JsonSchemaObject,
  reader: SchemaReader,
): JsonSchemaObject | undefined {
  const references = new SchemaReferences(schema);
  const first = new Rewriting(references, reader, true);
  const whole = first.document(schema);
  if (first.losses === 0) return whole;
  // What a reference leads to may now accept more than before, which matters wherever accepting is turned into refusing.
  return reader === "exact" ? undefined : new Rewriting(references, reader, false).document(schema);
}

class Rewriting {
  /** How often something was left out, or is passed over by the reader. */
  losses = 0;
  readonly #references: SchemaReferences;
  readonly #reader: SchemaReader;
  readonly #trustsReferences: boolean;

  constructor(references: SchemaReferences, reader: SchemaReader, trustsReferences: boolean) {
    this.#references = references;
    this.#reader = reader;
    this.#trustsReferences = trustsReferences;
  }

  document(root: JsonSchemaObject): JsonSchemaObject {
    const written = this.#object(root);
    if (this.#references.moved.size === 0) return written;
    const definitions = isObject(written["$defs"]) ? written["$defs"] : {};
    for (const [target, name] of this.#references.moved) setOwn(definitions, name, this.#object(target));
    return { ...written, $defs: definitions };
  }

  #schema(schema: unknown): JsonSchema {
    if (!isObject(schema)) return schema !== false;
    return this.#references.moved.has(schema) ? this.#reference(schema) : this.#object(schema);
  }

  #reference(target: JsonSchema): Keywords {
    if (!this.#trustsReferences) this.losses++;
    return { $ref: this.#references.pointerTo(target) };
  }

  #object(schema: JsonSchemaObject): Keywords {
    const before = this.losses;
    const isOld = this.#references.isOld(schema);
    const copy: Keywords = {};
    const further: JsonSchema[] = [];
    this.#referTo(schema, copy, further);
    // Before 2019-09 a reference hid everything beside it, except what was only ever pointed at.
    const source = isOld && typeof schema["$ref"] === "string" ? onlyBesideReference(schema) : schema;
    for (const keyword of Object.keys(source)) this.#keyword(keyword, source, copy);
    this.#array(source, copy, isOld);
    this.#members(source, copy);
    this.#dependencies(source, copy);
    this.#numbers(source, copy);
    this.#choices(source, copy, further);
    if (further.length > 0) copy["allOf"] = [...((copy["allOf"] as JsonSchema[]) ?? []), ...further];
    if (!isOld) this.#unevaluated(source, copy, before);
    if (this.#reader === "legacy") for (const keyword of LATER) if (keyword in copy) this.losses++;
    return copy;
  }

  #referTo(schema: JsonSchemaObject, copy: Keywords, further: JsonSchema[]): void {
    for (const { target } of this.#references.referencesOf(schema)) {
      if (target === undefined) this.losses++;
      else if (target === false) further.push({ not: {} });
      else if (target !== true) {
        const reference = this.#reference(target);
        if (copy["$ref"] === undefined) copy["$ref"] = reference["$ref"];
        else further.push(reference);
      }
    }
  }

  /** Keywords that need no look at those beside them; what is written elsewhere is left out. */
  #keyword(keyword: string, source: JsonSchemaObject, copy: Keywords): void {
    const value = source[keyword];
    if (WRITTEN_ELSEWHERE.has(keyword) || NAMING.has(keyword)) return;
    if (this.#reader !== "exact" && FOREIGN.has(keyword)) return;
    if (ONE.has(keyword)) setOwn(copy, keyword, this.#schema(value));
    else if (LISTS.has(keyword)) this.#list(keyword, value, copy);
    else if (MAPS.has(keyword) && isObject(value)) setOwn(copy, keyword, this.#map(value));
    else if (keyword === "pattern") this.#pattern(value, copy);
    else if (keyword === "format") {
      if (typeof value === "string") copy["format"] = value;
    } else if (DATA.has(keyword) || !this.#isConfusing(value)) setOwn(copy, keyword, value);
  }

  #list(keyword: string, value: unknown, copy: Keywords): void {
    if (!Array.isArray(value)) return;
    if (value.length > 0) copy[keyword] = value.map((item) => this.#schema(item));
    else if (keyword !== "allOf") this.losses++;
  }

  #map(members: Readonly<Record<string, unknown>>): Keywords {
    const copy: Keywords = {};
    for (const name of Object.keys(members)) setOwn(copy, name, spelledOut(this.#schema(members[name])));
    return copy;
  }

  /** Below keywords nobody knows, some validators still take note of names. */
  #isConfusing(value: unknown): boolean {
    if (this.#reader === "exact" || typeof value !== "object" || value === null) return false;
    return /"\$(?:id|anchor|dynamicAnchor)":/.test(JSON.stringify(value));
  }

  #pattern(value: unknown, copy: Keywords): void {
    const pattern = this.#reader === "exact" ? String(value) : toUnicodePattern(String(value));
    if (pattern === undefined) this.losses++;
    else copy["pattern"] = pattern;
  }

  #array(source: JsonSchemaObject, copy: Keywords, isOld: boolean): void {
    const { items } = source;
    const isTuple = Array.isArray(items);
    const prefix = isTuple ? items : isOld ? undefined : source["prefixItems"];
    const rest = isTuple ? source["additionalItems"] : items;
    const hasPrefix = Array.isArray(prefix) && prefix.length > 0;
    if (hasPrefix) copy["prefixItems"] = prefix.map((item) => this.#schema(item));
    // A validator of draft-07 does not know the former, and would hold all items to the latter.
    if (hasPrefix && this.#reader === "legacy") this.losses++;
    else if (rest !== undefined) copy["items"] = this.#schema(rest);
    if (source["contains"] !== undefined) this.#contains(source, copy, isOld);
  }

  #contains(source: JsonSchemaObject, copy: Keywords, isOld: boolean): void {
    const { minContains, maxContains } = isOld ? {} : source;
    if (minContains === 0 && this.#reader !== "exact") this.losses++;
    if (minContains === 0 && this.#reader === "legacy") return;
    const before = this.losses;
    copy["contains"] = this.#schema(source["contains"]);
    // Said outright, because beside `maxContains` some validators forget that the default is 1.
    const least = minContains ?? (maxContains === undefined ? undefined : 1);
    if (least !== undefined) copy["minContains"] = least;
    if (maxContains !== undefined && this.losses === before) copy["maxContains"] = maxContains;
  }

  /** Validators find a member that every object inherits in all of them, and one named `__proto__` in none. */
  #members(source: JsonSchemaObject, copy: Keywords): void {
    const before = this.losses;
    const { patternProperties, required } = source;
    if (isObject(patternProperties)) this.#patternProperties(patternProperties, copy);
    if (this.#reader === "exact") return;
    const properties = copy["properties"];
    let isClosed = this.losses === before;
    if (isObject(properties)) {
      for (const name of Object.keys(properties).filter(isInherited)) {
        this.losses++;
        delete properties[name];
        isClosed = false;
      }
    }
    if (Array.isArray(required) && required.some(isInherited)) this.losses++;
    if (!isClosed && copy["additionalProperties"] !== undefined) delete copy["additionalProperties"];
  }

  #patternProperties(members: Readonly<Record<string, unknown>>, copy: Keywords): void {
    const written: Keywords = {};
    for (const source of Object.keys(members)) {
      const pattern = this.#reader === "exact" ? source : toUnicodePattern(source);
      const isFree = pattern === source || (pattern !== undefined && !Object.hasOwn(members, pattern));
      if (isFree && !Object.hasOwn(written, pattern)) setOwn(written, pattern, this.#schema(members[source]));
      else this.losses++;
    }
    copy["patternProperties"] = written;
  }

  #dependencies(source: JsonSchemaObject, copy: Keywords): void {
    const required: Keywords = {};
    const schemas: Keywords = {};
    for (const keyword of ["dependentRequired", "dependentSchemas", "dependencies"]) {
      const members = source[keyword];
      if (!isObject(members)) continue;
      for (const name of Object.keys(members)) {
        const value = members[name];
        const into = Array.isArray(value) ? required : schemas;
        if (this.#reader !== "exact" && isInherited(name)) this.losses++;
        else if (Object.hasOwn(into, name)) this.losses++;
        else setOwn(into, name, Array.isArray(value) ? value : this.#schema(value));
      }
    }
    if (Object.keys(required).length > 0) copy["dependentRequired"] = required;
    if (Object.keys(schemas).length > 0) copy["dependentSchemas"] = schemas;
  }

  #numbers(source: JsonSchemaObject, copy: Keywords): void {
    for (const [keyword, bound] of EXCLUSIVE) {
      const value = source[keyword];
      if (typeof value === "number") copy[keyword] = value;
      else if (value === true && typeof source[bound] === "number") copy[keyword] = source[bound];
    }
    const { multipleOf } = source;
    if (multipleOf === undefined) return;
    // Some validators divide, and find that 19.99 is no multiple of 0.01.
    if (this.#reader === "exact" || Number.isInteger(multipleOf)) copy["multipleOf"] = multipleOf;
    else this.losses++;
  }

  /** Where accepting more inside would mean accepting less outside, the keyword is loosened or left out. */
  #choices(source: JsonSchemaObject, copy: Keywords, further: JsonSchema[]): void {
    const { oneOf } = source;
    if (Array.isArray(source["enum"])) {
      if (source["enum"].length > 0) copy["enum"] = source["enum"];
      else further.push({ not: {} });
    }
    if (source["not"] !== undefined) this.#unlessLossy("not", source, copy);
    if (source["if"] === undefined || !this.#unlessLossy("if", source, copy)) {
      delete copy["then"];
      delete copy["else"];
    }
    if (!Array.isArray(oneOf) || oneOf.length === 0) return;
    const before = this.losses;
    const branches = oneOf.map((branch) => this.#schema(branch));
    if (this.losses === before) copy["oneOf"] = branches;
    else if (copy["anyOf"] === undefined) copy["anyOf"] = branches;
    else further.push({ anyOf: branches });
  }

  #unlessLossy(keyword: string, source: JsonSchemaObject, copy: Keywords): boolean {
    const before = this.losses;
    const written = this.#schema(source[keyword]);
    if (this.losses > before) return false;
    copy[keyword] = written;
    return true;
  }

  /** Says what is left over, so it holds only while nothing beside it was lost. */
  #unevaluated(source: JsonSchemaObject, copy: Keywords, before: number): void {
    for (const keyword of ["unevaluatedItems", "unevaluatedProperties"]) {
      if (source[keyword] === undefined) continue;
      const isSound = this.losses === before && this.#reader !== "legacy";
      if (isSound) copy[keyword] = this.#schema(source[keyword]);
      else this.losses++;
    }
  }
}

const EXCLUSIVE = [
  ["exclusiveMinimum", "minimum"],
  ["exclusiveMaximum", "maximum"],
] as const;

const WRITTEN_ELSEWHERE = new Set([
  ...["$ref", "$dynamicRef", "$recursiveRef", "additionalItems", "items", "prefixItems", "contains"],
  ...["minContains", "maxContains", "patternProperties", "dependencies", "dependentRequired"],
  ...["dependentSchemas", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "enum", "not", "if", "oneOf"],
  ...["unevaluatedItems", "unevaluatedProperties"],
]);

function onlyBesideReference({ definitions, $defs, title, description }: JsonSchemaObject): JsonSchemaObject {
  const kept = { title, description, definitions, $defs };
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined));
}

/** A boolean schema as an object of keywords, the only kind that older clients take for a member. */
export function spelledOut(schema: JsonSchema): JsonSchemaObject {
  if (typeof schema !== "boolean") return schema;
  return schema ? {} : { not: {} };
}

function isInherited(name: unknown): boolean {
  return typeof name === "string" && (name === "__proto__" || name in Object.prototype);
}
