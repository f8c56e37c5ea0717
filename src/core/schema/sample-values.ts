import { setOwn } from "../json/json-value.ts";
import type { CompiledSchema } from "./compile-schema.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "./json-schema.ts";
import { findReference } from "./schema-view.ts";

/** Values that a schema may well accept, the most telling first: with all members, or with those alone that must be there. */
export function sampleValues(root: JsonSchema): readonly unknown[] {
  return [new Sampling(root, true).of(root, 0), new Sampling(root, false).of(root, 0)];
}

/** An input made from a schema, always the same; one that is not accepted may still show what is wanted. */
export interface SampleInput {
  readonly value: unknown;
  readonly isAccepted: boolean;
}

/** Makes the simplest input that is accepted: only what must be there, if that is enough. */
export function sampleInput(schema: CompiledSchema): SampleInput {
  const samples = [...sampleValues(schema.json)].reverse();
  const at = samples.findIndex((sample) => schema.check(sample));
  return { value: samples[Math.max(at, 0)], isAccepted: at !== -1 };
}

const MAX_DEPTH = 8;
const MAX_VALUES = 500;
/** Below this depth only what must be there is shown. */
const FULL_DEPTH = 3;

const BY_FORMAT: ReadonlyMap<unknown, string> = new Map([
  ["date-time", "2026-01-31T12:00:00Z"],
  ["date", "2026-01-31"],
  ["time", "12:00:00Z"],
  ["duration", "PT1H"],
  ["email", "someone@example.com"],
  ["hostname", "example.com"],
  ["ipv4", "192.0.2.1"],
  ["ipv6", "2001:db8::1"],
  ["uri", "https://example.com/"],
  ["uuid", "123e4567-e89b-42d3-a456-426614174000"],
]);

class Sampling {
  readonly #root: JsonSchema;
  readonly #full: boolean;
  #count = 0;

  constructor(root: JsonSchema, full: boolean) {
    this.#root = root;
    this.#full = full;
  }

  of(schema: unknown, depth: number): unknown {
    if (!isObject(schema) || depth > MAX_DEPTH || ++this.#count > MAX_VALUES) return {};
    const given = givenValue(schema);
    if (given !== undefined) return given.value;
    const parts = this.#inPlace(schema).map((part) => this.of(part, depth + 1));
    const own = hasKind(schema) || parts.length === 0 ? [this.#plain(schema, depth)] : [];
    return merged([...parts, ...own]);
  }

  #inPlace({ $ref, allOf, anyOf, oneOf }: JsonSchemaObject): readonly unknown[] {
    const parts: unknown[] = Array.isArray(allOf) ? [...allOf] : [];
    if (typeof $ref === "string") parts.unshift(findReference($ref, this.#root));
    for (const branches of [anyOf, oneOf]) if (Array.isArray(branches)) parts.push(branches[0]);
    return parts;
  }

  #plain(schema: JsonSchemaObject, depth: number): unknown {
    const type = Array.isArray(schema["type"]) ? schema["type"][0] : schema["type"];
    switch (type ?? guessedType(schema)) {
      case "array":
        return this.#list(schema, depth);
      case "string":
        return text(schema);
      case "integer":
      case "number":
        return number(schema);
      case "boolean":
        return true;
      case "null":
        return null;
      default:
        return this.#object(schema, depth);
    }
  }

  #object({ properties, required }: JsonSchemaObject, depth: number): unknown {
    const wanted = new Set(Array.isArray(required) ? required : []);
    const value: Record<string, unknown> = {};
    for (const name of isObject(properties) ? Object.keys(properties) : []) {
      const isShown = wanted.has(name) || (this.#full && depth < FULL_DEPTH);
      if (isShown) setOwn(value, name, this.of((properties as JsonSchemaObject)[name], depth + 1));
    }
    return value;
  }

  #list({ items, prefixItems, minItems, maxItems }: JsonSchemaObject, depth: number): unknown {
    const prefix: readonly unknown[] = Array.isArray(prefixItems)
      ? prefixItems
      : Array.isArray(items)
        ? items
        : [];
    const shown = this.#full && depth < FULL_DEPTH && isObject(items) && maxItems !== 0 ? 1 : 0;
    const least = typeof minItems === "number" ? Math.min(minItems, MAX_VALUES) : 0;
    const length = Math.max(least, prefix.length, shown);
    return Array.from({ length }, (_, at) =>
      this.of(prefix[at] ?? (Array.isArray(items) ? true : items), depth + 1),
    );
  }
}

/** A value the schema itself names. */
function givenValue(schema: JsonSchemaObject): { readonly value: unknown } | undefined {
  const { examples, enum: values } = schema;
  if (Array.isArray(examples) && examples.length > 0) return { value: examples[0] };
  for (const keyword of ["default", "const"]) {
    if (Object.hasOwn(schema, keyword)) return { value: schema[keyword] };
  }
  return Array.isArray(values) && values.length > 0 ? { value: values[0] } : undefined;
}

function hasKind(schema: JsonSchemaObject): boolean {
  return schema["type"] !== undefined || schema["properties"] !== undefined;
}

function guessedType(schema: JsonSchemaObject): string {
  if (schema["items"] !== undefined || schema["prefixItems"] !== undefined) return "array";
  return schema["minLength"] !== undefined || schema["pattern"] !== undefined ? "string" : "object";
}

function text({ format, minLength, maxLength }: JsonSchemaObject): string {
  const least = typeof minLength === "number" ? Math.min(minLength, MAX_VALUES) : 0;
  const most = typeof maxLength === "number" ? maxLength : MAX_VALUES;
  return (BY_FORMAT.get(format) ?? "text").padEnd(least, "x").slice(0, most);
}

function number({
  type,
  minimum,
  maximum,
  exclusiveMinimum,
  exclusiveMaximum,
  multipleOf,
}: JsonSchemaObject): number {
  const step = typeof multipleOf === "number" ? multipleOf : 1;
  const low = [minimum, typeof exclusiveMinimum === "number" ? exclusiveMinimum + step : undefined];
  const high = [maximum, typeof exclusiveMaximum === "number" ? exclusiveMaximum - step : undefined];
  const numbers = (bounds: readonly unknown[]) => bounds.filter((bound) => typeof bound === "number");
  const value = Math.min(Math.max(step, ...numbers(low)), ...numbers(high));
  const isStepped = typeof multipleOf === "number" || type === "integer";
  return isStepped ? Math.ceil(value / step) * step : value;
}

function merged(parts: readonly unknown[]): unknown {
  if (parts.length === 1 || !parts.every(isObject)) return parts[0];
  const value: Record<string, unknown> = {};
  for (const part of parts) for (const key of Object.keys(part)) setOwn(value, key, part[key]);
  return value;
}
