import { isObject } from "../../../core/schema/json-schema.ts";
import { copyJson, NOT_JSON } from "./copy-json.ts";
import type { DocumentFile } from "./document-file.ts";

/** What copying a schema needs to know about the world around it. */
export interface CopyContext {
  readonly file: DocumentFile;
  /** Whether what stands beside `$ref` counts, as it does since OpenAPI 3.1. */
  readonly hasSiblings: boolean;
  /** Gives what a reference leads to a place under `#/$defs`; nothing where it leads nowhere. */
  refer(reference: string, file: DocumentFile): string | undefined;
  /** The same for a schema object that contains itself. */
  referToObject(schema: object, file: DocumentFile): string;
  note(sentence: string): void;
}

/** A schema that is nested more deeply is taken to allow anything there. */
const MAX_DEPTH = 40;
/** Subschemas of one schema that are copied. */
const MAX_SUBSCHEMAS = 20_000;
/** How `__proto__` is written where plain assignment would lose it. */
export const PROTO_KEY = "\u0000proto";

const ONE = new Set([
  ...["additionalItems", "additionalProperties", "contains", "else", "if", "items", "not"],
  ...["propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"],
]);
const LISTS = new Set(["items", "allOf", "anyOf", "oneOf", "prefixItems"]);
const MAPS = new Set(["dependentSchemas", "patternProperties", "properties"]);
const DATA = new Set([
  ...["const", "default", "dependencies", "dependentRequired", "discriminator"],
  ...["enum", "example", "examples", "required", "type"],
]);
const PLAIN = new Set([
  ...[
    "contentEncoding",
    "contentMediaType",
    "deprecated",
    "description",
    "exclusiveMaximum",
    "exclusiveMinimum",
  ],
  ...[
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
  ],
  ...["minLength", "minProperties", "minimum", "multipleOf", "nullable", "pattern", "readOnly", "title"],
  ...["uniqueItems", "writeOnly", "x-nullable"],
]);
const ANNOTATIONS = [
  "title",
  "description",
  "deprecated",
  "default",
  "example",
  "examples",
  "readOnly",
  "writeOnly",
];

const BESIDE_REF = new Set([...ANNOTATIONS, "nullable", "x-nullable"]);

type Copied = boolean | Record<string, unknown>;

/** Copies a schema of any version with only what schemas may say, its references made to lead to `#/$defs`, null allowed where it is nullable. */
export function copySchema(schema: unknown, context: CopyContext): Copied {
  return new SchemaCopy(context).copy(schema, 0);
}

/** Where keywords are copied to, and how deep the schema lies. */
interface CopyPlace {
  readonly result: Record<string, unknown>;
  readonly depth: number;
}

class SchemaCopy {
  readonly #context: CopyContext;
  readonly #open = new Set<object>();
  #left = MAX_SUBSCHEMAS;

  constructor(context: CopyContext) {
    this.#context = context;
  }

  copy(schema: unknown, depth: number): Copied {
    if (typeof schema === "boolean") return schema;
    if (!isObject(schema)) {
      this.#context.note("A schema is neither an object nor a boolean; anything is allowed there.");
      return true;
    }
    if (depth > 0 && this.#open.has(schema))
      return { $ref: this.#context.referToObject(schema, this.#context.file) };
    if (depth >= MAX_DEPTH || --this.#left < 0) {
      this.#context.note("A schema is too deep or too large; anything is allowed there.");
      return true;
    }
    this.#open.add(schema);
    const result: Record<string, unknown> = {};
    const place = { result, depth };
    const isAlone = !this.#context.hasSiblings && typeof schema["$ref"] === "string";
    for (const keyword of Object.keys(schema)) {
      if (!isAlone || this.#stands(keyword)) this.#keyword(keyword, schema[keyword], place);
    }
    this.#open.delete(schema);
    return allowNull(result);
  }

  /** Before 3.1 a reference stands alone; what changes nothing about it, and what everybody writes there, is kept. */
  #stands(keyword: string): boolean {
    if (keyword === "$ref" || BESIDE_REF.has(keyword)) return true;
    if ([LISTS, ONE, MAPS, DATA, PLAIN].some((known) => known.has(keyword))) {
      this.#context.note(
        `A schema has "${keyword}" beside "$ref", which does not count before OpenAPI 3.1; it was left out.`,
      );
    }
    return false;
  }

  #keyword(keyword: string, value: unknown, { result, depth }: CopyPlace): void {
    if (value === undefined) return;
    if (keyword === "$ref" || keyword === "$dynamicRef" || keyword === "$recursiveRef") {
      if (typeof value === "string") this.#refer(keyword, value, result);
    } else if (LISTS.has(keyword) && Array.isArray(value)) {
      result[keyword] = value.map((item) => nullArm(keyword, this.copy(item, depth + 1)));
    } else if (ONE.has(keyword)) {
      if (isObject(value) || typeof value === "boolean") result[keyword] = this.copy(value, depth + 1);
      else this.#context.note(`A schema has a "${keyword}" that is no schema; it was left out.`);
    } else if (MAPS.has(keyword)) {
      if (isObject(value)) result[keyword] = this.#map(value, depth);
      else this.#context.note(`A schema has "${keyword}" that are not an object; they were left out.`);
    } else if (DATA.has(keyword)) {
      const data = copyJson(value);
      if (data !== NOT_JSON) result[keyword] = data;
      else this.#context.note(`A schema has a "${keyword}" that is not JSON, or too large; it was left out.`);
    } else if (LISTS.has(keyword)) {
      this.#context.note(`A schema has "${keyword}" that is no list; it was left out.`);
    } else if (PLAIN.has(keyword) && typeof value !== "object" && !Number.isNaN(value))
      result[keyword] = value;
  }

  #refer(keyword: string, reference: string, result: Record<string, unknown>): void {
    if (keyword !== "$ref" && result["$ref"] !== undefined) return;
    const target = this.#context.refer(reference, this.#context.file);
    if (target !== undefined) result["$ref"] = target;
  }

  #map(schemas: Record<string, unknown>, depth: number): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    for (const key of Object.keys(schemas)) {
      result[key === "__proto__" ? PROTO_KEY : key] = this.copy(schemas[key], depth + 1);
    }
    return result;
  }
}

/** Writes `nullable` out, which is said in more ways than the upgrade knows. */
function allowNull(schema: Record<string, unknown>): Record<string, unknown> {
  const { nullable, "x-nullable": extension, ...rest } = schema;
  if (nullable !== true && extension !== true) return rest;
  const combines = ["$ref", "allOf", "anyOf", "oneOf", "not"].some((keyword) => Object.hasOwn(rest, keyword));
  if (combines) {
    const annotations: Record<string, unknown> = {};
    for (const keyword of ANNOTATIONS) {
      if (!Object.hasOwn(rest, keyword)) continue;
      annotations[keyword] = rest[keyword];
      delete rest[keyword];
    }
    return { ...annotations, anyOf: [rest, { type: "null" }] };
  }
  if (Array.isArray(rest["enum"]) && !rest["enum"].includes(null)) rest["enum"] = [...rest["enum"], null];
  const { type } = rest;
  if (type === undefined) return Object.hasOwn(rest, "enum") ? rest : { ...rest, ...marked(rest) };
  const types: unknown[] = Array.isArray(type) ? type : [type];
  return { ...rest, type: types.includes("null") ? types : [...types, "null"] };
}

/** A schema that says nothing but that it is nullable; an arm of a union that says so means null itself. */
function marked(schema: Record<string, unknown>): Record<string, unknown> {
  return Object.keys(schema).every((keyword) => ANNOTATIONS.includes(keyword)) ? { nullable: true } : {};
}

function nullArm(keyword: string, schema: Copied): Copied {
  if (
    (keyword !== "anyOf" && keyword !== "oneOf") ||
    typeof schema === "boolean" ||
    schema["nullable"] !== true
  ) {
    return schema;
  }
  const { nullable: _, ...rest } = schema;
  return { ...rest, type: "null" };
}
