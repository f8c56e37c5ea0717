import { parsePointer } from "../json/json-pointer.ts";
import { isObject, isSchema, type JsonSchema, type JsonSchemaObject } from "./json-schema.ts";

/** Schemas that are looked at for one place: a document may hold any number, and may lead round in circles. */
const MOST_PARTS = 500;
/** References that are followed from one to the next. */
const MOST_HOPS = 20;

/**
 * What a schema says of one place of a value, for readers that show, guess or choose. Checks are made by compiled schemas: a view looks
 * at a bounded number of schemas and follows references within the document alone.
 */
export class SchemaView {
  readonly #schemas: readonly unknown[];
  readonly #root: unknown;
  #parts: readonly JsonSchemaObject[] | undefined;

  /** `root` is the document that references start from. */
  constructor(schemas: readonly unknown[], root: unknown) {
    this.#schemas = schemas;
    this.#root = root;
  }

  /** All schemas that apply together or in each other's place: references followed, `allOf`, `anyOf` and `oneOf` included, each once. */
  get parts(): readonly JsonSchemaObject[] {
    this.#parts ??= findParts(this.#schemas, this.#root);
    return this.#parts;
  }

  /** The JSON types that are named, by `type`, or else by values, members or items; empty where nothing is said. */
  get types(): ReadonlySet<string> {
    const types = new Set<unknown>();
    for (const part of this.parts) {
      const { type, properties, items, prefixItems, enum: values } = part;
      if (type !== undefined) for (const name of [type].flat()) types.add(name);
      else if (Object.hasOwn(part, "const")) types.add(jsonTypeOf(part["const"]));
      else if (Array.isArray(values)) for (const value of values) types.add(jsonTypeOf(value));
      else {
        if (isObject(properties)) types.add("object");
        if (items !== undefined || prefixItems !== undefined) types.add("array");
      }
    }
    return new Set([...types].filter((name) => typeof name === "string"));
  }

  /** The names of members that `properties` list. */
  get names(): ReadonlySet<string> {
    return new Set(
      this.parts.flatMap(({ properties }) => (isObject(properties) ? Object.keys(properties) : [])),
    );
  }

  /** The names of members that must be there. */
  get required(): ReadonlySet<string> {
    const names = this.parts.flatMap(({ required }) => (Array.isArray(required) ? required : []));
    return new Set(names.filter((name) => typeof name === "string"));
  }

  /** The names of members that must be there whichever alternative of the schema is meant, null apart. */
  get requiredAlways(): ReadonlySet<string> {
    return requiredOfEach(this.#schemas, { root: this.#root, left: MOST_PARTS });
  }

  /** Values that `enum` and `const` name. */
  get values(): readonly unknown[] {
    return this.parts.flatMap((part) => {
      if (Object.hasOwn(part, "const")) return [part["const"]];
      return Array.isArray(part["enum"]) ? part["enum"] : [];
    });
  }

  /** What the first part says that has this keyword with a value of this type. */
  text(keyword: string): string | undefined {
    return this.parts.map((part) => part[keyword]).find((said) => typeof said === "string");
  }

  number(keyword: string): number | undefined {
    return this.parts.map((part) => part[keyword]).find((said) => typeof said === "number");
  }

  has(name: string): boolean {
    return this.parts.some(({ properties }) => isObject(properties) && Object.hasOwn(properties, name));
  }

  /** The schemas of a member of an object by name, or of a list by place. */
  member(name: string): SchemaView {
    const isPlace = /^\d+$/.test(name);
    const schemas = this.parts.flatMap(({ properties, additionalProperties, items, prefixItems }) => {
      const own = isObject(properties) && Object.hasOwn(properties, name);
      const member = own ? (properties as JsonSchemaObject)[name] : additionalProperties;
      return isPlace ? [member, itemAt(Number(name), items, prefixItems)] : [member];
    });
    return new SchemaView(schemas, this.#root);
  }

  /** The schemas of items that stand at no place of their own, or at one. */
  items(at?: number): SchemaView {
    const schemas = this.parts.map(({ items, prefixItems }) =>
      at === undefined ? items : itemAt(at, items, prefixItems),
    );
    return new SchemaView(schemas, this.#root);
  }
}

/** Reads a schema, in a document of its own unless another one is given. */
export function viewSchema(schema: unknown, root: unknown = schema): SchemaView {
  return new SchemaView([schema], root);
}

interface RequiredReading {
  readonly root: unknown;
  /** Schemas that may still be looked at. */
  left: number;
}

/** The names that each of several schemas requires. */
function requiredOfEach(schemas: readonly unknown[], reading: RequiredReading): ReadonlySet<string> {
  const sets = schemas
    .filter((schema): schema is JsonSchemaObject => isObject(schema) && schema["type"] !== "null")
    .map((schema) => requiredOf(schema, reading));
  const [first = new Set<string>(), ...others] = sets;
  return new Set([...first].filter((name) => others.every((names) => names.has(name))));
}

function requiredOf(schema: JsonSchemaObject, reading: RequiredReading): ReadonlySet<string> {
  reading.left -= 1;
  if (reading.left < 0) return new Set();
  const { required, allOf, anyOf, oneOf, $ref } = schema;
  const target = $ref === undefined ? undefined : findReference($ref, reading.root);
  const together = [...(Array.isArray(allOf) ? allOf.slice(0, MOST_PARTS) : []), target].filter(isObject);
  const alternatives = [anyOf, oneOf].filter((list) => Array.isArray(list));
  return new Set([
    ...(Array.isArray(required) ? required.filter((name) => typeof name === "string") : []),
    ...together.flatMap((part) => [...requiredOf(part, reading)]),
    ...alternatives.flatMap((list) => [...requiredOfEach(list.slice(0, MOST_PARTS), reading)]),
  ]);
}

function itemAt(at: number, items: unknown, prefixItems: unknown): unknown {
  const places: readonly unknown[] = Array.isArray(prefixItems)
    ? prefixItems
    : Array.isArray(items)
      ? items
      : [];
  return places[at] ?? items;
}

function findParts(schemas: readonly unknown[], root: unknown): readonly JsonSchemaObject[] {
  const found = new Set<JsonSchemaObject>();
  const left = schemas.toReversed();
  while (left.length > 0 && found.size < MOST_PARTS) {
    const part = left.pop();
    if (!isObject(part) || found.has(part)) continue;
    found.add(part);
    for (const keyword of ["oneOf", "anyOf", "allOf"]) {
      const list = part[keyword];
      if (Array.isArray(list)) left.push(...list.slice(0, MOST_PARTS).reverse());
    }
    if (part["$ref"] !== undefined) left.push(findReference(part["$ref"], root));
  }
  return [...found];
}

/** Follows references; one that leads nowhere, or round in a circle, stays as it is. */
export function followReferences(schema: JsonSchema | undefined, root: unknown): JsonSchema | undefined {
  let followed = schema;
  for (let hop = 0; hop < MOST_HOPS; hop++) {
    const target = isObject(followed) ? findReference(followed["$ref"], root) : undefined;
    if (!isSchema(target)) break;
    followed = target;
  }
  return followed;
}

/**
 * Finds what a reference within a document leads to; nothing for one that leads out of it, nowhere, or into a schema with an `$id`,
 * where references start anew.
 */
export function findReference(reference: unknown, root: unknown): unknown {
  if (typeof reference !== "string" || !isObject(root)) return undefined;
  const path = referencePath(reference);
  if (path === undefined) return findNamed(reference, root);
  let found: unknown = root;
  for (const key of path) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as JsonSchemaObject)[key];
    if (isObject(found) && typeof found["$id"] === "string") return undefined;
  }
  return found;
}

/** Finds a definition by the name that it gives itself. */
function findNamed(reference: string, { $defs, definitions }: JsonSchemaObject): unknown {
  return [$defs, definitions]
    .flatMap((members): unknown[] => (isObject(members) ? Object.values(members) : []))
    .find((each) => isObject(each) && (`#${each["$anchor"]}` === reference || each["$id"] === reference));
}

/** The keys that a reference leads along from the root of its document; nothing for one that is no pointer. */
export function referencePath(reference: string): readonly string[] | undefined {
  if (reference !== "#" && !reference.startsWith("#/")) return undefined;
  const pointer = reference.slice(1);
  try {
    return parsePointer(pointer.includes("%") ? decodeURIComponent(pointer) : pointer);
  } catch {
    return parsePointer(pointer);
  }
}

/** The JSON type of a value. */
export function jsonTypeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}
