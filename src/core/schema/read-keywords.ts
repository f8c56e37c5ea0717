import { joinPointer } from "../json/json-pointer.ts";
import { isObject, isSchema, type JsonSchema, type JsonSchemaObject } from "./json-schema.ts";
import { SchemaError } from "./schema-error.ts";

/** Reads the keywords of one schema object, and refuses those whose value is not of the kind the keyword takes. */
export class KeywordReader {
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
    if (value === undefined || isStrings(value)) return value;
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

/** Tells whether every entry of a list is a string. */
export function isStrings(list: unknown): list is readonly string[] {
  return Array.isArray(list) && list.every((entry) => typeof entry === "string");
}
