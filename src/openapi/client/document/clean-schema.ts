import { setOwn } from "../../../core/json/json-value.ts";
import { isObject, type JsonSchema } from "../../../core/schema/json-schema.ts";
import { SCHEMA_LIMITS } from "../../../core/schema/limits.ts";
import { compilePattern } from "../../../core/schema/pattern.ts";
import { definitionName } from "../../../core/schema/plain-schema.ts";
import { modernItems } from "../../../core/schema/rewrite-schema.ts";
import { PROTO_KEY } from "./copy-schema.ts";
import { anyPiece, type Position, type SchemaPiece } from "./schema-piece.ts";

const COUNTS = [
  "maxContains",
  "maxItems",
  "maxLength",
  "maxProperties",
  "minContains",
  "minItems",
  "minLength",
  "minProperties",
];
const NUMBERS = ["exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"];
const BOOLEANS = ["deprecated", "readOnly", "uniqueItems", "writeOnly"];
const TEXTS = ["contentEncoding", "contentMediaType", "description", "format", "title"];
/** Keywords whose schemas look at the value itself. */
const IN_PLACE_ONE = ["if", "then", "else", "not"];
const IN_PLACE_LISTS = ["allOf", "anyOf", "oneOf"];
const PART_ONE = [
  "additionalProperties",
  "contains",
  "propertyNames",
  "unevaluatedItems",
  "unevaluatedProperties",
];
const TEXT_RULES = [
  "type",
  "format",
  "minLength",
  "maxLength",
  "pattern",
  "contentEncoding",
  "enum",
  "const",
];

/** Makes an upgraded schema one that the engine takes: what is wrong in it is left out, and noted. */
export function cleanSchema(schema: unknown, notes: Iterable<string> = []): SchemaPiece {
  const cleaning = new Cleaning(notes);
  const { piece } = cleaning;
  piece.schema = cleaning.clean(schema, cleaning.begin());
  piece.length = JSON.stringify(piece.schema).length;
  return piece;
}

type Keywords = Record<string, unknown>;

/** Where a schema stands. */
interface Place {
  readonly position: Position;
  readonly depth: number;
  /** What it is part of by `allOf`. */
  readonly scope?: Keywords | undefined;
  /** Whether it only decides about others (`not`, `if`). */
  readonly isTest?: boolean | undefined;
}

class Cleaning {
  readonly piece: SchemaPiece;

  constructor(notes: Iterable<string>) {
    this.piece = { ...anyPiece(notes), positions: [], subschemas: 0 };
  }

  /** The place of a schema that looks at a value of its own. */
  begin(isTest = false): Place {
    const position = { count: 0, depth: 0, refs: [] };
    this.piece.positions.push(position);
    return { position, depth: 1, isTest };
  }

  clean(schema: unknown, place: Place): JsonSchema {
    const { position, depth } = place;
    position.count += 1;
    position.depth = Math.max(position.depth, depth);
    this.piece.subschemas += 1;
    if (!isObject(schema)) return typeof schema === "boolean" ? schema : true;
    const result: Keywords = {};
    this.#refer(schema, result, position);
    if (Object.hasOwn(schema, "type"))
      Object.assign(
        result,
        mendType(schema["type"], (note) => this.#note(note)),
      );
    this.#annotations(schema, result);
    this.#assertions(schema, result);
    this.#combinations(schema, result, place);
    this.#objects(schema, result, place);
    this.#arrays(schema, result, place);
    return asBytes(result);
  }

  #note(sentence: string): void {
    this.piece.notes.add(sentence);
  }

  #drop(keyword: string, wanted: string): void {
    this.#note(`A schema has a "${keyword}" that is not ${wanted}; it was left out.`);
  }

  #part(schema: unknown, { isTest }: Place): JsonSchema {
    return this.clean(schema, this.begin(isTest));
  }

  #refer(schema: Keywords, result: Keywords, position: Position): void {
    const target = definitionName(schema["$ref"]);
    if (target === undefined) return;
    result["$ref"] = schema["$ref"];
    const site = { holder: result, target };
    position.refs.push(site);
    this.piece.refs.push(site);
  }

  #annotations(schema: Keywords, result: Keywords): void {
    for (const keyword of TEXTS) {
      const value = schema[keyword];
      if (typeof value === "string") result[keyword] ??= value;
    }
    for (const keyword of BOOLEANS) {
      const value = schema[keyword];
      if (value === true) result[keyword] = true;
      else if (value !== undefined && value !== false) this.#drop(keyword, "a boolean");
    }
    if (Object.hasOwn(schema, "default")) result["default"] = schema["default"];
    if (Array.isArray(schema["examples"])) result["examples"] = schema["examples"];
    else if (Object.hasOwn(schema, "example")) result["examples"] = [schema["example"]];
    if (isObject(schema["discriminator"])) result["discriminator"] = schema["discriminator"];
  }

  #assertions(schema: Keywords, result: Keywords): void {
    for (const keyword of COUNTS) {
      const value = schema[keyword];
      if (typeof value === "number" && Number.isInteger(value) && value >= 0) result[keyword] = value;
      else if (value !== undefined) this.#drop(keyword, "a whole number");
    }
    this.#numbers(schema, result);
    if (Array.isArray(schema["enum"]) && schema["enum"].length > 0) result["enum"] = schema["enum"];
    else if (schema["enum"] !== undefined) this.#drop("enum", "a list of values");
    if (Object.hasOwn(schema, "const")) result["const"] = schema["const"];
    const { pattern } = schema;
    if (pattern === undefined) return;
    if (typeof pattern === "string" && this.#takes(pattern)) result["pattern"] = pattern;
    else this.#drop("pattern", "a regular expression that runs in bounded time");
  }

  #numbers(schema: Keywords, result: Keywords): void {
    for (const keyword of NUMBERS) {
      const value = schema[keyword];
      if (typeof value === "number" && Number.isFinite(value) && (keyword !== "multipleOf" || value > 0)) {
        result[keyword] = value;
      } else if (value !== undefined && typeof value !== "boolean") this.#drop(keyword, "a number");
    }
    for (const [exclusive, bound] of [
      ["exclusiveMinimum", "minimum"],
      ["exclusiveMaximum", "maximum"],
    ] as const) {
      if (schema[exclusive] !== true || result[bound] === undefined) continue;
      result[exclusive] = result[bound];
      delete result[bound];
    }
  }

  #takes(pattern: string): boolean {
    try {
      compilePattern(pattern, "", SCHEMA_LIMITS);
      this.piece.patterns.add(pattern);
      return true;
    } catch {
      return false;
    }
  }

  #combinations(schema: Keywords, result: Keywords, place: Place): void {
    const { position, isTest, scope = result } = place;
    const inside: Place = { position, depth: place.depth + 1, isTest };
    for (const keyword of IN_PLACE_LISTS) {
      const list = schema[keyword];
      if (!Array.isArray(list)) continue;
      const at = keyword === "allOf" ? { ...inside, scope } : inside;
      if (list.length === 0) this.#drop(keyword, "a list of schemas");
      else result[keyword] = list.map((item) => this.clean(item, at));
    }
    for (const keyword of IN_PLACE_ONE) {
      if (schema[keyword] === undefined) continue;
      const tests = isTest === true || keyword === "not" || keyword === "if";
      result[keyword] = this.clean(schema[keyword], { ...inside, isTest: tests });
    }
    const { dependentSchemas } = schema;
    if (!isObject(dependentSchemas)) return;
    result["dependentSchemas"] = mapValues(dependentSchemas, (item) => this.clean(item, inside));
  }

  #objects(schema: Keywords, result: Keywords, place: Place): void {
    if (isObject(schema["properties"])) {
      result["properties"] = mapValues(schema["properties"], (item) => this.#part(item, place));
    }
    this.#patternProperties(schema, result, place);
    for (const keyword of PART_ONE) {
      if (schema[keyword] !== undefined) result[keyword] = this.#part(schema[keyword], place);
    }
    const required = this.#names("required", schema["required"]);
    if (required !== undefined && required.length > 0) {
      result["required"] = required;
      const { scope = result, isTest } = place;
      if (isTest !== true) this.piece.requiring.push({ holder: result, scope, wrong: {} });
    }
    const dependent = schema["dependentRequired"] ?? schema["dependencies"];
    if (!isObject(dependent)) return;
    const lists = Object.entries(dependent).filter(([, names]) => Array.isArray(names));
    const entries = lists.map(
      ([key, names]) => [key, this.#names("dependentRequired", names) ?? []] as const,
    );
    result["dependentRequired"] = Object.fromEntries(entries);
  }

  #patternProperties(schema: Keywords, result: Keywords, place: Place): void {
    const patterns = schema["patternProperties"];
    if (!isObject(patterns)) return;
    const kept: Keywords = {};
    for (const pattern of Object.keys(patterns)) {
      if (this.#takes(pattern)) setOwn(kept, pattern, this.#part(patterns[pattern], place));
      else {
        this.#drop("patternProperties", "a regular expression that runs in bounded time");
        // What such a name is allowed to hold is no longer known.
        delete schema["additionalProperties"];
      }
    }
    if (Object.keys(kept).length > 0) result["patternProperties"] = kept;
  }

  #names(keyword: string, value: unknown): string[] | undefined {
    if (value === undefined || value === false) return undefined;
    if (!Array.isArray(value)) {
      this.#drop(keyword, "a list of names");
      return undefined;
    }
    const names = value.filter((name): name is string => typeof name === "string");
    if (names.length < value.length) this.#drop(keyword, "a name");
    return [...new Set(names)];
  }

  #arrays(schema: Keywords, result: Keywords, place: Place): void {
    const { prefix, rest } = modernItems(schema, false);
    if (prefix !== undefined) result["prefixItems"] = prefix.map((item) => this.#part(item, place));
    if (rest !== undefined) result["items"] = this.#part(rest, place);
  }
}

/** Media types of which a text cannot be the content, unless it is encoded. */
const BYTES = /^(?:application\/(?:octet-stream|pdf|zip|gzip|x-tar)|(?:audio|font|image|video)\/.*)$/i;

/** A text that stands for bytes is not text here: its length and form are those of something else. */
function asBytes(schema: Keywords): JsonSchema {
  const { type, format, contentMediaType, contentEncoding } = schema;
  const types: readonly unknown[] = Array.isArray(type) ? type : [type];
  if (types.some((name) => name !== undefined && name !== "string" && name !== "null")) return schema;
  const says = typeof contentMediaType === "string" && contentEncoding === undefined;
  if (format !== "binary" && !(says && (type === undefined || BYTES.test(contentMediaType)))) return schema;
  // In place: others know this schema as the one that refers or requires.
  schema["contentMediaType"] ??= "application/octet-stream";
  for (const keyword of TEXT_RULES) delete schema[keyword];
  return schema;
}

function mapValues(map: Keywords, change: (value: unknown) => unknown): Keywords {
  const result: Keywords = {};
  for (const key of Object.keys(map)) setOwn(result, key === PROTO_KEY ? "__proto__" : key, change(map[key]));
  return result;
}

/** What a schema says in place of a type that JSON Schema does not know; an empty one allows anything. */
const FOREIGN: ReadonlyMap<string, Readonly<Record<string, unknown>>> = new Map([
  ...["float", "double", "decimal", "real", "numeric", "currency", "money"].map(entry("number")),
  ...["int", "int32", "int64", "long", "short", "bigint", "uint", "uint32", "uint64"].map(entry("integer")),
  ...["bool"].map(entry("boolean")),
  ...["str", "text", "char", "enum", "password", "html", "markdown", "base64", "byte", "id"].map(
    entry("string"),
  ),
  ...["date", "time", "uuid", "uri", "url", "email", "hostname"].map(named),
  ...["datetime", "date-time", "timestamp"].map(
    (name) => [name, { type: "string", format: "date-time" }] as const,
  ),
  ...["map", "dict", "hash", "struct", "record", "jsonobject"].map(entry("object")),
  ...["list", "collection"].map(entry("array")),
  ...["nil", "none", "void"].map(entry("null")),
  ...["file", "binary"].map((name) => [name, { contentMediaType: "application/octet-stream" }] as const),
]);

const KNOWN = new Set(["array", "boolean", "integer", "null", "number", "object", "string"]);

function entry(type: string): (name: string) => readonly [string, Record<string, unknown>] {
  return (name) => [name, { type }];
}

function named(format: string): readonly [string, Record<string, unknown>] {
  return [format, { type: "string", format }];
}

/** The keywords that say what `type` was meant to; `note` hears of what had to be mended. */
function mendType(type: unknown, note: (sentence: string) => void): Record<string, unknown> {
  if (typeof type === "string" && KNOWN.has(type)) return { type };
  const names: readonly unknown[] = Array.isArray(type) ? type : [type];
  const types: string[] = [];
  let extra: Record<string, unknown> = {};
  for (const name of names) {
    if (typeof name === "string" && KNOWN.has(name)) {
      types.push(name);
      continue;
    }
    note(`A schema has the type ${JSON.stringify(name)}, which is none of JSON Schema's.`);
    const mended = typeof name === "string" ? mendName(name.toLowerCase()) : undefined;
    if (mended === undefined) return {};
    const { type: meant, ...rest } = mended;
    extra = { ...extra, ...rest };
    if (typeof meant !== "string") return extra;
    types.push(meant);
  }
  const distinct = [...new Set(types)];
  if (distinct.length === 0) return extra;
  return { type: distinct.length === 1 ? distinct[0] : distinct, ...extra };
}

function mendName(name: string): Readonly<Record<string, unknown>> | undefined {
  return KNOWN.has(name) ? { type: name } : FOREIGN.get(name);
}
