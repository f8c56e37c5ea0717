import { joinPointer, parsePointer } from "../json/json-pointer.ts";
import { shortText } from "../text/truncate-text.ts";
import {
  type Dialect,
  forEachSubschema,
  isObject,
  isSchema,
  type JsonSchema,
  type JsonSchemaObject,
  LEGACY,
  MODERN,
} from "./json-schema.ts";
import { SCHEMA_LIMITS, type SchemaLimits } from "./limits.ts";
import { PatternBudget } from "./pattern.ts";
import type { PlainSchema } from "./plain-schema.ts";
import { SchemaError } from "./schema-issue.ts";
import type { SchemaNode } from "./schema-node.ts";
import { snapshotSchema } from "./snapshot-schema.ts";

/** A schema document, or an embedded one with its own `$id`: the unit that URIs and anchors name. */
export interface SchemaResource {
  readonly uri: string;
  readonly root: JsonSchema;
  readonly dialect: Dialect;
  readonly anchors: Map<string, JsonSchema>;
  /** Names that `$dynamicRef` may find here; `""` stands for `$recursiveAnchor`. */
  readonly dynamicAnchors: Map<string, JsonSchema>;
  /** The same anchors once they are nodes. */
  readonly dynamicNodes: Map<string, SchemaNode>;
}

/** A schema found by reference, with the resource it belongs to. */
export interface SchemaPlace {
  readonly schema: JsonSchema;
  readonly resource: SchemaResource;
  readonly pointer: string;
}

/** A part of a document that is known from another one. */
interface KnownPart {
  readonly node: SchemaNode;
  readonly plain: PlainSchema;
}

const DEFAULT_BASE = "waybill:///";

/** Knows every resource and anchor of a document, and finds what a reference means without asking the network. */
export class SchemaIndex {
  readonly #resources = new Map<string, SchemaResource>();
  readonly #places = new Map<JsonSchema, SchemaPlace>();
  readonly #known = new Map<JsonSchema, SchemaNode>();
  readonly #documents: Readonly<Record<string, JsonSchema>>;
  readonly #limits: SchemaLimits;
  readonly #dialect: Dialect;
  readonly #patterns: PatternBudget;
  #subschemas = 0;

  /** `dialect` is what documents without `$schema` are read by. */
  constructor(documents: Readonly<Record<string, JsonSchema>>, limits: SchemaLimits, dialect: Dialect) {
    this.#documents = documents;
    this.#limits = limits;
    this.#dialect = dialect;
    this.#patterns = new PatternBudget(limits);
  }

  /** Every resource met so far. */
  resources(): Iterable<SchemaResource> {
    return new Set(this.#resources.values());
  }

  /** Adds a whole document and returns its root. */
  add(root: JsonSchema, uri = DEFAULT_BASE): SchemaPlace {
    const resource = this.#open(root, uri, this.#dialect);
    this.#walk(root, resource, "");
    return this.place(root, resource, "");
  }

  /** Counts in a part of the document that has nodes already and is not looked into; to be called before the document is added. */
  addKnown(schema: JsonSchemaObject, { node, plain }: KnownPart): void {
    this.#known.set(schema, node);
    this.#count(plain.subschemas);
    for (const source of plain.patterns) this.#patterns.add(source, "/$defs");
  }

  /** The node of a part that is known from another document. */
  knownNode(schema: JsonSchemaObject): SchemaNode | undefined {
    return this.#known.get(schema);
  }

  /** Returns where a subschema stands; one that no keyword leads to is taken to be in `resource`. */
  place(schema: JsonSchema, resource: SchemaResource, pointer: string): SchemaPlace {
    return this.#places.get(schema) ?? { schema, resource, pointer };
  }

  /** Finds what `reference` means inside `from`, or refuses it. */
  resolve(reference: string, from: SchemaResource, pointer: string): SchemaPlace {
    const [target, fragment] = splitFragment(toAbsolute(reference, from.uri, pointer));
    const resource = this.#resources.get(target) ?? this.#load(target);
    if (resource === undefined) {
      throw new SchemaError(
        `$ref "${shortText(reference, 100)}" names a document that is not here; nothing is fetched, so put it under $defs.`,
        pointer,
      );
    }
    const found =
      fragment === "" || fragment.startsWith("/")
        ? this.#walkTo(resource, fragment)
        : this.#anchor(resource, fragment);
    if (found === undefined)
      throw new SchemaError(`$ref "${shortText(reference, 100)}" points at nothing.`, pointer);
    return found;
  }

  #anchor(resource: SchemaResource, name: string): SchemaPlace | undefined {
    const schema = resource.anchors.get(name);
    return schema === undefined ? undefined : this.place(schema, resource, `#${name}`);
  }

  #walkTo(resource: SchemaResource, pointer: string): SchemaPlace | undefined {
    let current: unknown = resource.root;
    let place = this.place(resource.root, resource, "");
    for (const key of parsePointer(pointer)) {
      if (typeof current !== "object" || current === null || !Object.hasOwn(current, key)) return undefined;
      current = (current as Record<string, unknown>)[key];
      if (isObject(current)) place = this.#places.get(current) ?? place;
    }
    if (!isSchema(current)) return undefined;
    if (place.schema === current) return place;
    const found = { schema: current, resource: place.resource, pointer };
    if (isObject(current) && !this.#places.has(current)) this.#walk(current, place.resource, pointer);
    return found;
  }

  #load(uri: string): SchemaResource | undefined {
    const document = Object.hasOwn(this.#documents, uri) ? this.#documents[uri] : METASCHEMAS.get(uri)?.();
    if (document === undefined) return undefined;
    this.add(snapshotSchema(document, this.#limits), uri);
    return this.#resources.get(uri);
  }

  #open(root: JsonSchema, uri: string, inherited: Dialect): SchemaResource {
    const dialect = this.#dialectOf(root, inherited);
    const id = isObject(root) ? idOf(root, dialect) : undefined;
    const resource: SchemaResource = {
      uri: id === undefined ? uri : splitFragment(toAbsolute(id, uri, ""))[0],
      root,
      dialect,
      anchors: new Map(),
      dynamicAnchors: new Map(),
      dynamicNodes: new Map(),
    };
    for (const name of new Set([uri, resource.uri])) {
      if (!this.#resources.has(name)) this.#resources.set(name, resource);
    }
    return resource;
  }

  #dialectOf(root: JsonSchema, inherited: Dialect): Dialect {
    const uri =
      isObject(root) && typeof root["$schema"] === "string" ? splitFragment(root["$schema"])[0] : undefined;
    if (uri === undefined) return inherited;
    if (/json-schema\.org\/draft-0[3-7]\//.test(uri)) return LEGACY;
    const custom = Object.hasOwn(this.#documents, uri) ? this.#documents[uri] : undefined;
    const vocabulary = isObject(custom) ? custom["$vocabulary"] : undefined;
    if (!isObject(vocabulary)) return MODERN;
    return {
      legacy: false,
      validation: Object.keys(vocabulary).some((name) => name.endsWith("/vocab/validation")),
    };
  }

  #walk(schema: JsonSchema, resource: SchemaResource, pointer: string): void {
    if (this.#known.has(schema)) return;
    this.#count(1);
    if (!isObject(schema) || this.#places.has(schema)) return;
    const own =
      schema === resource.root || idOf(schema, resource.dialect) === undefined
        ? resource
        : this.#open(schema, resource.uri, resource.dialect);
    this.#places.set(schema, { schema, resource: own, pointer });
    if (own.dialect.legacy && typeof schema["$ref"] === "string") return;
    addAnchors(schema, own);
    this.#countPatterns(schema, pointer);
    forEachSubschema(schema, (child, keyword, key) => {
      const at = joinPointer(pointer, keyword);
      this.#walk(child, own, key === undefined ? at : joinPointer(at, key));
    });
  }

  #count(subschemas: number): void {
    this.#subschemas += subschemas;
    if (this.#subschemas <= this.#limits.subschemas) return;
    throw new SchemaError(`The schema has more than ${this.#limits.subschemas} subschemas.`);
  }

  /** Here, so that too many are refused before the first is compiled. */
  #countPatterns({ pattern, patternProperties }: JsonSchemaObject, pointer: string): void {
    if (typeof pattern === "string") this.#patterns.add(pattern, joinPointer(pointer, "pattern"));
    if (!isObject(patternProperties)) return;
    for (const source of Object.keys(patternProperties)) {
      this.#patterns.add(source, joinPointer(pointer, "patternProperties"));
    }
  }
}

const REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"] as const;

/** A reference of a schema, and what it means; undefined where that cannot be told. */
export interface FoundReference {
  readonly keyword: (typeof REFERENCES)[number];
  readonly reference: string;
  readonly target: JsonSchema | undefined;
}

/** Knows what every reference of one document means, for code that writes the document in another way. */
export class ReferenceTargets {
  readonly #index = new SchemaIndex({}, SCHEMA_LIMITS, MODERN);
  readonly #root: SchemaPlace;
  readonly #document: JsonSchemaObject;
  #holders: ReadonlyMap<string, number> | undefined;

  constructor(document: JsonSchemaObject) {
    this.#document = document;
    this.#root = this.#index.add(document);
  }

  /** Whether a schema is read by the rules of draft-07 and before. */
  isOld(schema: JsonSchemaObject): boolean {
    return this.#resourceOf(schema).dialect.legacy;
  }

  /** The references of a schema, each of which applies. */
  referencesOf(schema: JsonSchemaObject): readonly FoundReference[] {
    const isOld = this.isOld(schema);
    return REFERENCES.filter(
      (keyword) => typeof schema[keyword] === "string" && (!isOld || keyword === "$ref"),
    ).map((keyword) => {
      const reference = String(schema[keyword]);
      return { keyword, reference, target: this.#find(keyword, reference, schema) };
    });
  }

  /** Calls back with every reference that can be reached from the document, to a schema of keywords. */
  forEachReference(visit: (target: JsonSchemaObject, reference: string) => void): void {
    const seen = new Set<JsonSchemaObject>([this.#document]);
    const see = (schema: JsonSchema): void => {
      if (isObject(schema)) seen.add(schema);
    };
    for (const schema of seen) {
      forEachSubschema(schema, see);
      for (const { target, reference } of this.referencesOf(schema)) {
        if (!isObject(target)) continue;
        see(target);
        visit(target, reference);
      }
    }
  }

  #resourceOf(schema: JsonSchemaObject): SchemaResource {
    return this.#index.place(schema, this.#root.resource, "").resource;
  }

  #find(keyword: string, reference: string, schema: JsonSchemaObject): JsonSchema | undefined {
    try {
      const place = this.#index.resolve(reference, this.#resourceOf(schema), "");
      return keyword === "$ref" ? place.schema : this.#settled(keyword, reference, place);
    } catch {
      return undefined;
    }
  }

  /** What a dynamic reference means wherever the value is checked from; nothing when that differs. */
  #settled(keyword: string, reference: string, { schema, resource }: SchemaPlace): JsonSchema | undefined {
    const name = keyword === "$recursiveRef" ? "" : reference.slice(reference.indexOf("#") + 1);
    if (resource.dynamicAnchors.get(name) !== schema) return schema;
    const outermost = this.#root.resource.dynamicAnchors.get(name);
    if (outermost !== undefined) return outermost;
    this.#holders ??= countHolders(this.#index);
    return (this.#holders.get(name) ?? 0) > 1 ? undefined : schema;
  }
}

/** How many resources have each dynamic anchor. */
function countHolders(index: SchemaIndex): ReadonlyMap<string, number> {
  const holders = new Map<string, number>();
  for (const { dynamicAnchors } of index.resources()) {
    for (const name of dynamicAnchors.keys()) holders.set(name, (holders.get(name) ?? 0) + 1);
  }
  return holders;
}

function idOf(schema: JsonSchemaObject, dialect: Dialect): string | undefined {
  const id = schema["$id"];
  if (typeof id !== "string") return undefined;
  if (!dialect.legacy) return id;
  return id.startsWith("#") || typeof schema["$ref"] === "string" ? undefined : id;
}

function addAnchors(schema: JsonSchemaObject, resource: SchemaResource): void {
  const { $anchor, $dynamicAnchor, $id } = schema;
  if (resource.dialect.legacy) {
    if (typeof $id === "string" && $id.startsWith("#")) resource.anchors.set($id.slice(1), schema);
    return;
  }
  if (typeof $anchor === "string") resource.anchors.set($anchor, schema);
  if (typeof $dynamicAnchor === "string") {
    resource.anchors.set($dynamicAnchor, schema);
    resource.dynamicAnchors.set($dynamicAnchor, schema);
  }
  if (schema["$recursiveAnchor"] === true) resource.dynamicAnchors.set("", schema);
}

function splitFragment(uri: string): [uri: string, fragment: string] {
  const hash = uri.indexOf("#");
  if (hash === -1) return [uri, ""];
  const fragment = uri.slice(hash + 1);
  try {
    return [uri.slice(0, hash), decodeURIComponent(fragment)];
  } catch {
    return [uri.slice(0, hash), fragment];
  }
}

function toAbsolute(reference: string, base: string, pointer: string): string {
  if (reference.startsWith("#")) return base + reference;
  try {
    return new URL(reference, base).href;
  } catch {
    throw new SchemaError(`"${shortText(reference, 100)}" is not a URI reference.`, pointer);
  }
}

const DRAFT_2020 = "https://json-schema.org/draft/2020-12";
const self = { $dynamicRef: "#meta" };
const selfList = { type: "array", minItems: 1, items: self };
const selfMap = { type: "object", additionalProperties: self };
const count = { type: "integer", minimum: 0 };
const names = { type: "array", items: { type: "string" }, uniqueItems: true };
const simpleTypes = { enum: ["array", "boolean", "integer", "null", "number", "object", "string"] };
const typeKeyword = {
  anyOf: [simpleTypes, { type: "array", items: simpleTypes, minItems: 1, uniqueItems: true }],
};

function vocabulary(
  name: string,
  properties: Record<string, unknown>,
  more: Record<string, unknown> = {},
): JsonSchema {
  return {
    $schema: `${DRAFT_2020}/schema`,
    $id: `${DRAFT_2020}/meta/${name}`,
    $dynamicAnchor: "meta",
    type: ["object", "boolean"],
    properties,
    ...more,
  };
}

const VOCABULARIES: Readonly<Record<string, () => JsonSchema>> = {
  core: () => {
    const anchor = { type: "string", pattern: "^[A-Za-z_][-A-Za-z0-9._]*$" };
    const reference = { type: "string" };
    return vocabulary("core", {
      $id: { type: "string", pattern: "^[^#]*#?$" },
      $schema: reference,
      $ref: reference,
      $anchor: anchor,
      $dynamicRef: reference,
      $dynamicAnchor: anchor,
      $vocabulary: { type: "object", additionalProperties: { type: "boolean" } },
      $comment: { type: "string" },
      $defs: selfMap,
    });
  },
  applicator: () =>
    vocabulary("applicator", {
      prefixItems: selfList,
      items: self,
      contains: self,
      additionalProperties: self,
      properties: selfMap,
      patternProperties: selfMap,
      dependentSchemas: selfMap,
      propertyNames: self,
      if: self,
      then: self,
      else: self,
      allOf: selfList,
      anyOf: selfList,
      oneOf: selfList,
      not: self,
    }),
  unevaluated: () => vocabulary("unevaluated", { unevaluatedItems: self, unevaluatedProperties: self }),
  validation: () => vocabulary("validation", { ...validationKeywords(), type: typeKeyword }),
  "meta-data": () => vocabulary("meta-data", annotationKeywords()),
  "format-annotation": () => vocabulary("format-annotation", { format: { type: "string" } }),
  content: () =>
    vocabulary("content", {
      contentEncoding: { type: "string" },
      contentMediaType: { type: "string" },
      contentSchema: self,
    }),
};

function validationKeywords(): Record<string, unknown> {
  return {
    const: true,
    enum: { type: "array", items: true },
    multipleOf: { type: "number", exclusiveMinimum: 0 },
    maximum: { type: "number" },
    exclusiveMaximum: { type: "number" },
    minimum: { type: "number" },
    exclusiveMinimum: { type: "number" },
    maxLength: count,
    minLength: count,
    pattern: { type: "string" },
    maxItems: count,
    minItems: count,
    uniqueItems: { type: "boolean" },
    maxContains: count,
    minContains: count,
    maxProperties: count,
    minProperties: count,
    required: names,
    dependentRequired: { type: "object", additionalProperties: names },
  };
}

function annotationKeywords(): Record<string, unknown> {
  return {
    title: { type: "string" },
    description: { type: "string" },
    default: true,
    deprecated: { type: "boolean" },
    readOnly: { type: "boolean" },
    writeOnly: { type: "boolean" },
    examples: { type: "array", items: true },
  };
}

function draft2020(): JsonSchema {
  const parts = Object.keys(VOCABULARIES);
  return vocabulary(
    "",
    {},
    {
      $id: `${DRAFT_2020}/schema`,
      $vocabulary: Object.fromEntries(parts.map((name) => [`${DRAFT_2020}/vocab/${name}`, true])),
      allOf: parts.map((name) => ({ $ref: `meta/${name}` })),
    },
  );
}

function draft07(): JsonSchema {
  const root = { $ref: "#" };
  const list = { type: "array", minItems: 1, items: root };
  const map = { type: "object", additionalProperties: root };
  const { dependentRequired: _, minContains: _min, maxContains: _max, ...validation } = validationKeywords();
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    $id: "http://json-schema.org/draft-07/schema#",
    type: ["object", "boolean"],
    properties: {
      $id: { type: "string" },
      $schema: { type: "string" },
      $ref: { type: "string" },
      $comment: { type: "string" },
      ...annotationKeywords(),
      ...validation,
      type: typeKeyword,
      additionalItems: root,
      items: { anyOf: [root, list] },
      contains: root,
      definitions: map,
      properties: map,
      patternProperties: map,
      additionalProperties: root,
      dependencies: { type: "object", additionalProperties: { anyOf: [root, names] } },
      propertyNames: root,
      format: { type: "string" },
      contentMediaType: { type: "string" },
      contentEncoding: { type: "string" },
      if: root,
      then: root,
      else: root,
      allOf: list,
      anyOf: list,
      oneOf: list,
      not: root,
    },
    default: true,
  };
}

/** The metaschemas a schema may refer to by their public URIs, made when asked for. */
const METASCHEMAS: ReadonlyMap<string, () => JsonSchema> = new Map([
  [`${DRAFT_2020}/schema`, draft2020],
  ["http://json-schema.org/draft-07/schema", draft07],
  ...Object.entries(VOCABULARIES).map(([name, make]) => [`${DRAFT_2020}/meta/${name}`, make] as const),
]);
