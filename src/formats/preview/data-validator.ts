import { parsePointer } from "../../core/json/json-pointer.ts";
import { type AnySchema, toOperationSchema } from "../../core/schema/any-schema.ts";
import type { CompiledSchema } from "../../core/schema/compile-schema.ts";
import { isObject, type JsonSchema } from "../../core/schema/json-schema.ts";
import { FLAG } from "./shorten-data.ts";

/** A schema as callers hold it: compiled already, or anything an operation may declare. */
export type DataSchema = CompiledSchema | AnySchema;

/** The same object every time, under which compiled schemas are remembered. */
const SCHEMA_OPTIONS = {};

/** Asks a schema about candidates, a limited number of times. */
export class DataValidator {
  readonly #compiled: CompiledSchema;
  #asksLeft: number;

  constructor(schema: DataSchema, maxAsks: number) {
    this.#compiled = isCompiled(schema) ? schema : toOperationSchema(schema, "output", SCHEMA_OPTIONS);
    this.#asksLeft = maxAsks;
  }

  /** False for a schema that says nothing. */
  get isMeaningful(): boolean {
    return this.#compiled.meaningful;
  }

  get isExhausted(): boolean {
    return this.#asksLeft <= 0;
  }

  /** Tells whether a value passes; nothing does once the number of questions is used up. */
  accepts(value: unknown): boolean {
    if (this.isExhausted) return false;
    this.#asksLeft--;
    return this.#compiled.check(value) && passesOwnRules(this.#compiled, value);
  }

  /** Pointers to what is wrong with a value. */
  complaints(value: unknown): string[] {
    if (this.isExhausted) return [];
    this.#asksLeft--;
    return this.#compiled.errors(value).map(({ pointer }) => pointer);
  }

  /** Tells whether the outermost object declares a boolean `truncated` that may be true. */
  get declaresFlag(): boolean {
    const { json } = this.#compiled;
    const properties = isObject(json) ? json["properties"] : undefined;
    if (!isObject(properties) || !Object.hasOwn(properties, FLAG)) return false;
    return admitsTrue(properties[FLAG], json, 8);
  }
}

function isCompiled(schema: DataSchema): schema is CompiledSchema {
  return (
    isObject(schema) &&
    typeof schema["isClean"] === "function" &&
    typeof schema["fillDefaults"] === "function"
  );
}

/** Rules of a Standard Schema beyond JSON Schema; those that answer later cannot be asked here and count as broken. */
function passesOwnRules(compiled: CompiledSchema & { readonly validate?: unknown }, value: unknown): boolean {
  const { validate } = compiled;
  if (typeof validate !== "function") return true;
  try {
    const answer: unknown = validate(value);
    if (isObject(answer) && typeof answer["then"] === "function") {
      Promise.resolve(answer).catch(() => undefined);
      return false;
    }
    return isObject(answer) && !answer["issues"];
  } catch {
    return false;
  }
}

function admitsTrue(schema: unknown, root: JsonSchema, steps: number): boolean {
  if (!isObject(schema) || steps === 0) return false;
  const { type, $ref } = schema;
  if (schema["const"] === true || type === "boolean") return true;
  if (typeof $ref === "string" && $ref.startsWith("#/"))
    return admitsTrue(resolve($ref, root), root, steps - 1);
  const lists = [type, schema["enum"]].filter(Array.isArray).flat();
  if (lists.includes("boolean") || lists.includes(true)) return true;
  return [schema["anyOf"], schema["oneOf"]]
    .filter(Array.isArray)
    .flat()
    .some((branch) => admitsTrue(branch, root, steps - 1));
}

function resolve(reference: string, root: unknown): unknown {
  return parsePointer(reference.slice(1)).reduce<unknown>(
    (at, key) => (isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined),
    root,
  );
}
