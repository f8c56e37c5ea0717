import type { JsonSchema, JsonSchemaObject } from "../src/index.ts";
import { isObject, parsePointer } from "./json-values.ts";

/** Tells whether a value can stand where a schema is expected. */
const isSchema = (value: unknown): value is JsonSchema => typeof value === "boolean" || isObject(value);

const MAX_DEPTH = 6;
const SCALARS: readonly unknown[] = [
  0,
  1,
  7,
  -3,
  1.5,
  "",
  "7",
  "007",
  "1e3",
  "ab",
  "true",
  "😀",
  true,
  false,
  null,
];
const EXOTIC: readonly unknown[] = [
  undefined,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  -0,
  7n,
  new Date(0),
  Symbol.iterator,
  Object.freeze(Object.assign(Object.create(null), { a: 1 })),
  Object.freeze(Object.create({ a: 1 })),
];
const EXCESS_NAMES = ["d", "zz", "__proto__", "constructor", "toString"];

/** Makes a value for a schema: what the numbers decide is kept, bent a little, or left out. */
export function sampleValue(schema: JsonSchema, numbers: readonly number[], isExotic: boolean): unknown {
  return new Sampler(schema, numbers, isExotic).value(schema, 0);
}

class Sampler {
  readonly #root: JsonSchema;
  readonly #numbers: readonly number[];
  readonly #isExotic: boolean;
  #at = 0;

  constructor(root: JsonSchema, numbers: readonly number[], isExotic: boolean) {
    this.#root = root;
    this.#numbers = numbers;
    this.#isExotic = isExotic;
  }

  value(schema: JsonSchema, depth: number): unknown {
    const made = depth > MAX_DEPTH || !isObject(schema) ? this.#pick(SCALARS) : this.#bySchema(schema, depth);
    if (this.#chance(6)) return bend(made);
    if (this.#isExotic && this.#chance(30)) return this.#pick(EXOTIC);
    return this.#chance(50) ? this.#pick(SCALARS) : made;
  }

  #bySchema(schema: JsonSchemaObject, depth: number): unknown {
    if ("const" in schema) return schema["const"];
    if (Array.isArray(schema["enum"])) return this.#pick(schema["enum"]);
    const parts = this.#inPlace(schema).map((child) => this.value(child, depth + 1));
    if (parts.length > 0 && !("properties" in schema)) return mergeParts(parts);
    const type = this.#pick([schema["type"] ?? guessType(schema)].flat());
    if (type === "object") return mergeParts([...parts, this.#object(schema, depth)]);
    if (type === "array") return this.#array(schema, depth);
    return this.#scalar(type);
  }

  #inPlace(schema: JsonSchemaObject): JsonSchema[] {
    const children: unknown[] = [];
    if (typeof schema["$ref"] === "string") children.push(this.#resolve(schema["$ref"]));
    if (Array.isArray(schema["allOf"])) children.push(...schema["allOf"]);
    for (const keyword of ["anyOf", "oneOf"]) {
      const branches = schema[keyword];
      if (Array.isArray(branches)) children.push(this.#pick(branches));
    }
    if ("if" in schema)
      children.push(...(this.#chance(2) ? [schema["if"], schema["then"]] : [schema["else"]]));
    return children.filter(isSchema);
  }

  #object(schema: JsonSchemaObject, depth: number): unknown {
    const result: Record<string, unknown> = {};
    for (const keyword of ["properties", "dependentSchemas"]) {
      const children = schema[keyword];
      for (const key of isObject(children) ? Object.keys(children) : []) {
        const child = (children as JsonSchemaObject)[key];
        if (isSchema(child) && !this.#chance(3)) putOwn(result, key, this.value(child, depth + 1));
      }
    }
    const rest = schema["additionalProperties"];
    if (this.#chance(2)) {
      putOwn(result, this.#pick(EXCESS_NAMES), this.value(isSchema(rest) ? rest : true, depth + 1));
    }
    return result;
  }

  #array(schema: JsonSchemaObject, depth: number): unknown {
    const { prefixItems, items } = schema;
    const prefix = Array.isArray(prefixItems) ? prefixItems : [];
    const length = (this.#next() + prefix.length) % 4;
    return Array.from({ length }, (_, i) => {
      const child = prefix[i] ?? items ?? schema["contains"];
      return this.value(isSchema(child) ? child : true, depth + 1);
    });
  }

  #scalar(type: unknown): unknown {
    if (type === "integer") return this.#pick([0, 1, 2, 7, -3]);
    if (type === "number") return this.#pick([0, 1.5, 7, 1e21]);
    if (type === "boolean") return this.#chance(2);
    return type === "null" ? null : this.#pick(["", "a", "ab", "7", "007", "true", "a1"]);
  }

  #resolve(reference: string): unknown {
    let current: unknown = this.#root;
    for (const key of parsePointer(reference.slice(1)))
      current = isObject(current) ? current[key] : undefined;
    return current;
  }

  #next(): number {
    this.#at = (this.#at + 1) % this.#numbers.length;
    return (this.#numbers[this.#at] ?? 0) + this.#at;
  }

  #chance(one: number): boolean {
    return this.#next() % one === 0;
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#next() % list.length] as T;
  }
}

function guessType(schema: JsonSchemaObject): string {
  if ("properties" in schema || "patternProperties" in schema) return "object";
  return "items" in schema || "prefixItems" in schema || "contains" in schema ? "array" : "string";
}

/** Writes a scalar as another type, which a lossless conversion may undo. */
function bend(value: unknown): unknown {
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return typeof value === "string" && value !== "" && Number.isFinite(Number(value)) ? Number(value) : value;
}

function mergeParts(parts: readonly unknown[]): unknown {
  if (!parts.every((part) => isObject(part) && Object.getPrototypeOf(part) === Object.prototype))
    return parts.at(-1);
  const result: Record<string, unknown> = {};
  for (const part of parts as Record<string, unknown>[]) {
    for (const key of Object.keys(part)) putOwn(result, key, part[key]);
  }
  return result;
}

/** Adds an own property, whatever its name. */
export function putOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
}
