import {
  forEachSubschema,
  isObject,
  type JsonSchema,
  type JsonSchemaObject,
  MODERN,
} from "../../core/schema/json-schema.ts";
import { SCHEMA_LIMITS } from "../../core/schema/limits.ts";
import { SchemaIndex, type SchemaPlace, type SchemaResource } from "../../core/schema/schema-index.ts";

/** Names that can stand in a reference as they are, for every validator. */
const SAFE_NAME = /^[\w.-]+$/;

const DEFINITIONS = ["$defs", "definitions"] as const;
const REFERENCES = ["$ref", "$dynamicRef", "$recursiveRef"] as const;

/**
 * Knows what every reference of a document means, and a plain pointer for it: to the root, to a definition that stays where it
 * is, or to a new definition. So neither `$id` nor anchors are needed to follow them.
 */
export class SchemaReferences {
  readonly #index = new SchemaIndex({}, SCHEMA_LIMITS, MODERN);
  #holders: ReadonlyMap<string, number> | undefined;
  readonly #root: SchemaPlace;
  readonly #pointers = new Map<JsonSchema, string>();
  /** Schemas that are referred to where no pointer is safe, with the names of their new definitions. */
  readonly moved = new Map<JsonSchemaObject, string>();

  constructor(root: JsonSchemaObject) {
    this.#root = this.#index.add(root);
    this.#pointers.set(root, "#");
    this.#keepDefinitions(root, "#");
    this.#findTargets(root);
  }

  /** Whether a schema is read by the rules of draft-07 and before. */
  isOld(schema: JsonSchemaObject): boolean {
    return this.#resourceOf(schema).dialect.legacy;
  }

  /** The schemas that apply because of references beside each other; undefined stands for one that cannot be told. */
  targetsOf(schema: JsonSchemaObject): readonly (JsonSchema | undefined)[] {
    const isOld = this.isOld(schema);
    return REFERENCES.filter(
      (keyword) => typeof schema[keyword] === "string" && (!isOld || keyword === "$ref"),
    ).map((keyword) => this.#find(keyword, schema));
  }

  /** The reference that leads to a schema found by `targetsOf`. */
  pointerTo(target: JsonSchema): string | undefined {
    return this.#pointers.get(target);
  }

  #resourceOf(schema: JsonSchemaObject): SchemaResource {
    return this.#index.place(schema, this.#root.resource, "").resource;
  }

  #find(keyword: (typeof REFERENCES)[number], schema: JsonSchemaObject): JsonSchema | undefined {
    const reference = String(schema[keyword]);
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
    return (this.#holdersOfAnchors().get(name) ?? 0) > 1 ? undefined : schema;
  }

  /** How many resources have each dynamic anchor. */
  #holdersOfAnchors(): ReadonlyMap<string, number> {
    if (this.#holders !== undefined) return this.#holders;
    const holders = new Map<string, number>();
    for (const { dynamicAnchors } of this.#index.resources()) {
      for (const name of dynamicAnchors.keys()) holders.set(name, (holders.get(name) ?? 0) + 1);
    }
    this.#holders = holders;
    return holders;
  }

  #keepDefinitions(schema: JsonSchemaObject, pointer: string): void {
    for (const keyword of DEFINITIONS) {
      const members = schema[keyword];
      if (!isObject(members)) continue;
      for (const name of Object.keys(members)) {
        const member = members[name];
        if (!isObject(member) || !SAFE_NAME.test(name) || name in Object.prototype) continue;
        if (this.#pointers.has(member)) continue;
        this.#pointers.set(member, `${pointer}/${keyword}/${name}`);
        this.#keepDefinitions(member, `${pointer}/${keyword}/${name}`);
      }
    }
  }

  #findTargets(root: JsonSchemaObject): void {
    const seen = new Set<JsonSchema>([root]);
    const visit = (schema: JsonSchema): void => {
      if (isObject(schema)) seen.add(schema);
    };
    for (const schema of seen) {
      if (!isObject(schema)) continue;
      forEachSubschema(schema, visit);
      for (const target of this.targetsOf(schema)) {
        if (!isObject(target)) continue;
        visit(target);
        if (!this.#pointers.has(target)) this.#move(target, root);
      }
    }
  }

  #move(target: JsonSchemaObject, root: JsonSchemaObject): void {
    const taken = isObject(root["$defs"]) ? root["$defs"] : {};
    let name = `ref${this.moved.size + 1}`;
    while (Object.hasOwn(taken, name)) name = `_${name}`;
    this.moved.set(target, name);
    this.#pointers.set(target, `#/$defs/${name}`);
  }
}
