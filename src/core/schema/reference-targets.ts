import { forEachSubschema, isObject, type JsonSchema, type JsonSchemaObject, MODERN } from "./json-schema.ts";
import { SCHEMA_LIMITS } from "./limits.ts";
import { SchemaIndex, type SchemaPlace, type SchemaResource } from "./schema-index.ts";

const REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"] as const;

/** A reference of a schema, and what it means; undefined where that cannot be told. */
export interface FoundReference {
  readonly keyword: (typeof REFERENCES)[number];
  readonly reference: string;
  readonly target: JsonSchema | undefined;
}

/** Knows what every reference of one document means, for whoever writes the document in another way. */
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
