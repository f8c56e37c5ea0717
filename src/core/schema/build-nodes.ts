import { joinPointer } from "../json/json-pointer.ts";
import { isStringList } from "../json/json-value.ts";
import { refuseTypeDefinition } from "./any-schema.ts";
import { countParts, isEqual } from "./compare-values.ts";
import { typeBits } from "./evaluation.ts";
import { isObject, isSchema, type JsonSchema, type JsonSchemaObject } from "./json-schema.ts";
import type { SchemaLimits } from "./limits.ts";
import { compilePattern, type Matcher } from "./pattern.ts";
import type { SchemaIndex, SchemaPlace, SchemaResource } from "./schema-index.ts";
import { SchemaError } from "./schema-issue.ts";
import {
  type ArrayRules,
  type Default,
  inPlaceChildren,
  type NumberRules,
  type ObjectRules,
  SchemaNode,
  type StringRules,
  saysOnly,
  TYPE_BITS,
  type TypeName,
} from "./schema-node.ts";

const OBJECT_KEYWORDS = [
  "additionalProperties",
  "dependencies",
  "dependentRequired",
  "dependentSchemas",
  "maxProperties",
  "minProperties",
  "patternProperties",
  "properties",
  "propertyNames",
  "required",
];
const ARRAY_KEYWORDS = [
  "additionalItems",
  "contains",
  "items",
  "maxContains",
  "maxItems",
  "minContains",
  "minItems",
  "prefixItems",
  "uniqueItems",
];

/** The nodes of a document. */
export interface BuiltNodes {
  readonly root: SchemaNode;
  /** The node of a schema of the document; none where nothing leads to it. */
  nodeOf(schema: JsonSchemaObject): SchemaNode | undefined;
}

/** Turns a place in an indexed document, and all it leads to, into nodes; they belong to `resource` where one is given. */
export function buildNodes(
  place: SchemaPlace,
  index: SchemaIndex,
  { limits, resource }: { readonly limits: SchemaLimits; readonly resource?: SchemaResource | undefined },
): BuiltNodes {
  const builder = new NodeBuilder(index, limits, resource);
  const root = builder.node(place);
  builder.finish();
  builder.settleDynamicReferences(root.resource);
  builder.flattenUnions();
  return { root, nodeOf: (schema) => builder.made(schema) };
}

class NodeBuilder {
  readonly #index: SchemaIndex;
  readonly #limits: SchemaLimits;
  readonly #resource: SchemaResource | undefined;
  readonly #nodes = new Map<object, SchemaNode>();
  /** More than any cache would keep: none is compiled twice for one schema. */
  readonly #patterns = new Map<string, Matcher>();
  /** Filled from here, not by recursion: a chain of references can be as long as the schema. */
  readonly #unfilled: [SchemaNode, JsonSchema][] = [];

  constructor(index: SchemaIndex, limits: SchemaLimits, resource: SchemaResource | undefined) {
    this.#index = index;
    this.#limits = limits;
    this.#resource = resource;
  }

  made(schema: JsonSchemaObject): SchemaNode | undefined {
    return this.#nodes.get(schema);
  }

  node(place: SchemaPlace): SchemaNode {
    const { schema } = place;
    const known = isObject(schema) ? (this.#nodes.get(schema) ?? this.#index.knownNode(schema)) : undefined;
    if (known !== undefined) return known;
    const node = new SchemaNode(this.#resource ?? place.resource, place.pointer);
    if (isObject(schema)) this.#nodes.set(schema, node);
    this.#unfilled.push([node, schema]);
    return node;
  }

  finish(): void {
    for (let next = this.#unfilled.pop(); next !== undefined; next = this.#unfilled.pop()) {
      const [node, schema] = next;
      if (typeof schema === "boolean") node.constant = schema;
      else this.#fill(node, new KeywordReader(schema, node.pointer));
      if (this.#unfilled.length === 0) this.#reachDynamicAnchors();
    }
  }

  /** `$dynamicRef` may land on any of these, so each needs its node. */
  #reachDynamicAnchors(): void {
    for (const resource of this.#index.resources()) {
      for (const [name, schema] of resource.dynamicAnchors) {
        if (!resource.dynamicNodes.has(name)) {
          resource.dynamicNodes.set(name, this.node(this.#index.place(schema, resource, "")));
        }
      }
    }
  }

  /** The outermost resource wins, so a reference is settled when the root has its anchor or only one resource does. */
  settleDynamicReferences(root: SchemaResource): void {
    const holders = new Map<string, number>();
    for (const { dynamicNodes } of this.#index.resources()) {
      for (const name of dynamicNodes.keys()) holders.set(name, (holders.get(name) ?? 0) + 1);
    }
    for (const { dynamicRef } of this.#nodes.values()) {
      if (dynamicRef === undefined) continue;
      const outermost = root.dynamicNodes.get(dynamicRef.name);
      const isOnly = (holders.get(dynamicRef.name) ?? 0) <= 1;
      dynamicRef.settled = outermost ?? (isOnly ? dynamicRef.target : undefined);
    }
  }

  /** A union of constants is an enumeration written at length; what is left then tells which nodes are compound. */
  flattenUnions(): void {
    for (const node of this.#nodes.values()) {
      const values = node.values === undefined ? unionValues(node.anyOf) : undefined;
      if (values !== undefined) {
        node.values = values;
        node.types ||= unionTypes(node.anyOf);
        node.anyOf = undefined;
      }
      const hasChoice = node.dynamicRef !== undefined || node.anyOf !== undefined || node.oneOf !== undefined;
      node.isEmpty = saysOnly(node);
      node.isCompound = hasChoice || inPlaceChildren(node).length > 0;
    }
  }

  #fill(node: SchemaNode, read: KeywordReader): void {
    const { legacy, validation } = node.resource.dialect;
    refuseTypeDefinition(read.schema, node.resource.root, read.pointer);
    const reference = read.string("$ref");
    if (reference !== undefined) {
      node.ref = this.node(this.#index.resolve(reference, node.resource, read.at("$ref")));
    }
    if (read.has("default")) node.default = toDefault(read.value("default"));
    if (reference !== undefined && legacy) return;
    if (!legacy) this.#fillModern(node, read);
    this.#fillApplicators(node, read);
    if (validation) readAssertions(node, read, (source, pointer) => this.#pattern(source, pointer));
    if (OBJECT_KEYWORDS.some((keyword) => read.has(keyword))) node.object = this.#objectRules(node, read);
    if (ARRAY_KEYWORDS.some((keyword) => read.has(keyword))) node.array = this.#arrayRules(node, read);
  }

  #fillModern(node: SchemaNode, read: KeywordReader): void {
    node.unevaluatedProperties = this.#one(node, read, "unevaluatedProperties");
    node.unevaluatedItems = this.#one(node, read, "unevaluatedItems");
    const recursive = read.string("$recursiveRef");
    const reference = read.string("$dynamicRef") ?? recursive;
    if (reference === undefined) return;
    const place = this.#index.resolve(reference, node.resource, read.pointer);
    const name = recursive === undefined ? reference.slice(reference.indexOf("#") + 1) : "";
    const isDynamic = place.resource.dynamicAnchors.get(name) === place.schema;
    if (isDynamic) node.dynamicRef = { name, target: this.node(place), settled: undefined };
    else node.allOf = [this.node(place)];
  }

  #fillApplicators(node: SchemaNode, read: KeywordReader): void {
    const allOf = this.#many(node, read, "allOf");
    if (allOf !== undefined) node.allOf = [...(node.allOf ?? []), ...allOf];
    node.anyOf = this.#many(node, read, "anyOf");
    node.oneOf = this.#many(node, read, "oneOf");
    node.not = this.#one(node, read, "not");
    node.condition = this.#one(node, read, "if");
    const consequence = this.#one(node, read, "then");
    const alternative = this.#one(node, read, "else");
    if (node.condition === undefined) return;
    node.consequence = consequence;
    node.alternative = alternative;
  }

  #objectRules(node: SchemaNode, read: KeywordReader): ObjectRules {
    const { validation } = node.resource.dialect;
    const dependentRequired: [string, readonly string[]][] = [];
    const dependentSchemas: [string, SchemaNode][] = [...this.#map(node, read, "dependentSchemas")];
    for (const keyword of ["dependentRequired", "dependencies"]) {
      for (const [key, value] of read.map(keyword)) {
        const pointer = joinPointer(read.at(keyword), key);
        if (isStringList(value)) dependentRequired.push([key, value]);
        else if (keyword === "dependencies" && isSchema(value)) {
          dependentSchemas.push([key, this.#child(node, value, pointer)]);
        } else throw new SchemaError(`The keyword "${keyword}" takes names of properties.`, pointer);
      }
    }
    const properties = this.#map(node, read, "properties");
    return {
      named: read.has("properties"),
      properties: new Map(properties),
      keys: properties.map(([key]) => key),
      defaulted: undefined,
      steps: properties.map(([key]) => joinPointer("", key)),
      children: properties.map(([, child]) => child),
      required: [...new Set((validation ? read.strings("required") : undefined) ?? [])],
      patterns: this.#map(node, read, "patternProperties").map(([source, child]) => [
        this.#pattern(source, read.at("patternProperties")),
        child,
      ]),
      additional: this.#one(node, read, "additionalProperties"),
      names: this.#one(node, read, "propertyNames"),
      minProperties: (validation ? read.count("minProperties") : undefined) ?? 0,
      maxProperties: (validation ? read.count("maxProperties") : undefined) ?? Number.POSITIVE_INFINITY,
      dependentRequired: validation ? dependentRequired : [],
      dependentSchemas,
    };
  }

  #arrayRules(node: SchemaNode, read: KeywordReader): ArrayRules {
    const { legacy, validation } = node.resource.dialect;
    const hasTuple = Array.isArray(read.value("items"));
    const tuple = hasTuple ? "items" : "prefixItems";
    return {
      prefix: (hasTuple || !legacy ? this.#many(node, read, tuple) : undefined) ?? [],
      items: this.#one(node, read, hasTuple ? "additionalItems" : "items"),
      contains: this.#one(node, read, "contains"),
      minContains: (validation && !legacy ? read.count("minContains") : undefined) ?? 1,
      maxContains:
        (validation && !legacy ? read.count("maxContains") : undefined) ?? Number.POSITIVE_INFINITY,
      minItems: (validation ? read.count("minItems") : undefined) ?? 0,
      maxItems: (validation ? read.count("maxItems") : undefined) ?? Number.POSITIVE_INFINITY,
      unique: (validation ? read.boolean("uniqueItems") : undefined) ?? false,
    };
  }

  #pattern(source: string, pointer: string): Matcher {
    const known = this.#patterns.get(source) ?? compilePattern(source, pointer, this.#limits);
    this.#patterns.set(source, known);
    return known;
  }

  #child(parent: SchemaNode, schema: JsonSchema, pointer: string): SchemaNode {
    return this.node(this.#index.place(schema, parent.resource, pointer));
  }

  #one(parent: SchemaNode, read: KeywordReader, keyword: string): SchemaNode | undefined {
    const schema = read.schemaAt(keyword);
    return schema === undefined ? undefined : this.#child(parent, schema, read.at(keyword));
  }

  #many(parent: SchemaNode, read: KeywordReader, keyword: string): SchemaNode[] | undefined {
    const at = read.at(keyword);
    return read.schemas(keyword)?.map((schema, i) => this.#child(parent, schema, joinPointer(at, i)));
  }

  #map(parent: SchemaNode, read: KeywordReader, keyword: string): [string, SchemaNode][] {
    const at = read.at(keyword);
    return read
      .schemaMap(keyword)
      .map(([key, schema]) => [key, this.#child(parent, schema, joinPointer(at, key))]);
  }
}

function toDefault(value: unknown): Default {
  return { value, parts: countParts(value, Number.POSITIVE_INFINITY) };
}

function unionValues(branches: readonly SchemaNode[] | undefined): readonly unknown[] | undefined {
  if (branches === undefined || !branches.every(isConstant)) return undefined;
  return branches.flatMap(({ types, values = [] }) =>
    values.filter((value) => types === 0 || (types & typeBits(value)) !== 0),
  );
}

/** The types of all branches together; 0, which allows any, as soon as one of them does. */
function unionTypes(branches: readonly SchemaNode[] = []): number {
  const types = branches.map((branch) => branch.types);
  return types.includes(0) ? 0 : types.reduce((union, bits) => union | bits, 0);
}

function isConstant(node: SchemaNode): boolean {
  return node.values !== undefined && saysOnly(node, "values", "types");
}

/** Compiles a pattern that stands at a pointer, or refuses it. */
type ToMatcher = (source: string, pointer: string) => Matcher;

/** Reads the keywords that look at a value as a whole: its type, its allowed values, bounds on numbers and strings. */
function readAssertions(node: SchemaNode, read: KeywordReader, toMatcher: ToMatcher): void {
  node.types = readTypes(read);
  node.values = readValues(read);
  node.number = readNumber(read);
  node.string = readString(read, toMatcher);
}

function readValues(read: KeywordReader): readonly unknown[] | undefined {
  const values = read.list("enum");
  if (!read.has("const")) return values;
  const only = read.value("const");
  return values === undefined || values.some((value) => isEqual(value, only)) ? [only] : [];
}

function readTypes(read: KeywordReader): number {
  const value = read.value("type");
  if (value === undefined) return 0;
  let types = 0;
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (names.length === 0)
    throw new SchemaError('The keyword "type" names at least one type.', read.at("type"));
  for (const name of names) {
    if (typeof name !== "string" || !Object.hasOwn(TYPE_BITS, name)) {
      throw new SchemaError(`"${String(name)}" is not a JSON Schema type.`, read.at("type"));
    }
    types |= TYPE_BITS[name as TypeName];
  }
  return types;
}

function readNumber(read: KeywordReader): NumberRules | undefined {
  const minimum = read.number("minimum");
  const maximum = read.number("maximum");
  const multipleOf = read.number("multipleOf");
  if (multipleOf !== undefined && multipleOf <= 0) {
    throw new SchemaError('The keyword "multipleOf" takes a number above zero.', read.at("multipleOf"));
  }
  // Draft-04 and OpenAPI 3.0 say `exclusiveMinimum: true` beside `minimum`.
  const low = read.value("exclusiveMinimum") === true ? minimum : exclusive(read, "exclusiveMinimum");
  const high = read.value("exclusiveMaximum") === true ? maximum : exclusive(read, "exclusiveMaximum");
  const rules = { minimum, maximum, exclusiveMinimum: low, exclusiveMaximum: high, multipleOf };
  return Object.values(rules).every((bound) => bound === undefined) ? undefined : rules;
}

function exclusive(read: KeywordReader, keyword: string): number | undefined {
  return read.value(keyword) === false ? undefined : read.number(keyword);
}

function readString(read: KeywordReader, toMatcher: ToMatcher): StringRules | undefined {
  const minLength = read.count("minLength");
  const maxLength = read.count("maxLength");
  const source = read.string("pattern");
  if (minLength === undefined && maxLength === undefined && source === undefined) return undefined;
  return {
    minLength: minLength ?? 0,
    maxLength: maxLength ?? Number.POSITIVE_INFINITY,
    pattern: source === undefined ? undefined : toMatcher(source, read.at("pattern")),
  };
}

/** Reads the keywords of one schema object, and refuses those whose value is not of the kind the keyword takes. */
class KeywordReader {
  readonly schema: JsonSchemaObject;
  readonly pointer: string;

  constructor(schema: JsonSchemaObject, pointer: string) {
    this.schema = schema;
    this.pointer = pointer;
  }

  has(keyword: string): boolean {
    return Object.hasOwn(this.schema, keyword);
  }

  value(keyword: string): unknown {
    return this.has(keyword) ? this.schema[keyword] : undefined;
  }

  at(keyword: string): string {
    return joinPointer(this.pointer, keyword);
  }

  number(keyword: string): number | undefined {
    const value = this.value(keyword);
    if (value === undefined || typeof value === "number") return value;
    return this.#refuse(keyword, "a number");
  }

  count(keyword: string): number | undefined {
    const value = this.number(keyword);
    if (value === undefined || (Number.isInteger(value) && value >= 0)) return value;
    return this.#refuse(keyword, "a whole number that is not negative");
  }

  string(keyword: string): string | undefined {
    const value = this.value(keyword);
    if (value === undefined || typeof value === "string") return value;
    return this.#refuse(keyword, "a string");
  }

  boolean(keyword: string): boolean | undefined {
    const value = this.value(keyword);
    if (value === undefined || typeof value === "boolean") return value;
    return this.#refuse(keyword, "a boolean");
  }

  list(keyword: string): readonly unknown[] | undefined {
    const value = this.value(keyword);
    if (value === undefined || Array.isArray(value)) return value;
    return this.#refuse(keyword, "an array");
  }

  strings(keyword: string): readonly string[] | undefined {
    const value = this.list(keyword);
    if (value === undefined || isStringList(value)) return value;
    return this.#refuse(keyword, "an array of strings");
  }

  schemaAt(keyword: string): JsonSchema | undefined {
    const value = this.value(keyword);
    if (value === undefined || isSchema(value)) return value;
    return this.#refuse(keyword, "a schema");
  }

  schemas(keyword: string): readonly JsonSchema[] | undefined {
    const value = this.list(keyword);
    if (value === undefined || value.every(isSchema)) return value as readonly JsonSchema[] | undefined;
    return this.#refuse(keyword, "an array of schemas");
  }

  map(keyword: string): readonly (readonly [string, unknown])[] {
    const value = this.value(keyword);
    if (value === undefined) return [];
    return isObject(value) ? Object.entries(value) : this.#refuse(keyword, "an object");
  }

  schemaMap(keyword: string): readonly (readonly [string, JsonSchema])[] {
    const entries = this.map(keyword);
    if (entries.every((entry): entry is [string, JsonSchema] => isSchema(entry[1]))) return entries;
    return this.#refuse(keyword, "an object of schemas");
  }

  #refuse(keyword: string, wanted: string): never {
    throw new SchemaError(`The keyword "${keyword}" takes ${wanted}.`, this.at(keyword));
  }
}
