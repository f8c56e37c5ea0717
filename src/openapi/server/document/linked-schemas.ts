import { parsePointer } from "../../../core/json/json-pointer.ts";
import {
  forEachSubschema,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  MODERN,
} from "../../../core/schema/json-schema.ts";
import { SCHEMA_LIMITS } from "../../../core/schema/limits.ts";
import { SchemaIndex, type SchemaPlace } from "../../../core/schema/schema-index.ts";

const REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"] as const;
type Reference = (typeof REFERENCES)[number];

/** Knows what every reference of one schema means, and a name for each schema that one leads to. */
export class LinkedSchemas {
  readonly #index = new SchemaIndex({}, SCHEMA_LIMITS, MODERN);
  readonly #root: SchemaPlace;
  readonly #names = new Map<JsonSchemaObject, string>();
  #holders: ReadonlyMap<string, number> | undefined;

  /** `toName` gives a free name for a schema known as something in its document, or as nothing. */
  constructor(root: JsonSchemaObject, name: string, toName: (known: string) => string) {
    this.#root = this.#index.add(root);
    this.#names.set(root, name);
    const seen = new Set<JsonSchemaObject>([root]);
    const visit = (schema: JsonSchema | undefined): void => {
      if (isObject(schema)) seen.add(schema);
    };
    for (const schema of seen) {
      forEachSubschema(schema, visit);
      for (const keyword of this.referencesOf(schema)) {
        const target = this.targetOf(schema, keyword);
        visit(target);
        if (!isObject(target) || this.#names.has(target)) continue;
        this.#names.set(target, toName(lastPartOf(String(schema[keyword]))));
      }
    }
  }

  /** Every schema that has a name, the root first. */
  named(): Iterable<readonly [JsonSchemaObject, string]> {
    return this.#names;
  }

  nameOf(schema: JsonSchemaObject): string | undefined {
    return this.#names.get(schema);
  }

  /** Whether a schema is read by the rules of draft-07 and before. */
  isOld(schema: JsonSchemaObject): boolean {
    return this.#resourceOf(schema).dialect.legacy;
  }

  /** The keywords of a schema that refer to another one. */
  referencesOf(schema: JsonSchemaObject): readonly Reference[] {
    const isOld = this.isOld(schema);
    return REFERENCES.filter(
      (keyword) => typeof schema[keyword] === "string" && (!isOld || keyword === "$ref"),
    );
  }

  /** What a reference means wherever a value is checked from; nothing when that differs, or is not known here. */
  targetOf(schema: JsonSchemaObject, keyword: Reference): JsonSchema | undefined {
    const reference = String(schema[keyword]);
    try {
      const place = this.#index.resolve(reference, this.#resourceOf(schema), "");
      return keyword === "$ref" ? place.schema : this.#settled(keyword, reference, place);
    } catch {
      return undefined;
    }
  }

  #resourceOf(schema: JsonSchemaObject): SchemaPlace["resource"] {
    return this.#index.place(schema, this.#root.resource, "").resource;
  }

  #settled(keyword: Reference, reference: string, place: SchemaPlace): JsonSchema | undefined {
    const name = keyword === "$recursiveRef" ? "" : reference.slice(reference.indexOf("#") + 1);
    if (place.resource.dynamicAnchors.get(name) !== place.schema) return place.schema;
    const outermost = this.#root.resource.dynamicAnchors.get(name);
    if (outermost !== undefined) return outermost;
    this.#holders ??= countHolders(this.#index);
    return (this.#holders.get(name) ?? 0) > 1 ? undefined : place.schema;
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

function lastPartOf(reference: string): string {
  const hash = reference.indexOf("#");
  const fragment = hash === -1 ? "" : reference.slice(hash + 1);
  return (fragment.startsWith("/") ? parsePointer(fragment).at(-1) : fragment) ?? "";
}
