import type { StandardSchemaV1 } from "@standard-schema/spec";
import { setOwn } from "../core/json/json-value.ts";
import {
  type AnySchema,
  type OperationSchema,
  type StandardSchema,
  toOperationSchema,
} from "../core/schema/any-schema.ts";
import { compileSchema } from "../core/schema/compile-schema.ts";
import { isObject, isSchema, type JsonSchema, type JsonSchemaObject } from "../core/schema/json-schema.ts";

/** A schema of an envelope: plain JSON Schema to advertise, and a Standard Schema for whoever takes one. */
export type EnvelopeSchema<Envelope> = JsonSchemaObject & StandardSchema<Envelope>;

/** What an envelope looks like around its data. */
export interface EnvelopeShape {
  readonly properties: Readonly<Record<string, JsonSchema>>;
  readonly required: readonly string[];
  /** Holds for an error, whose data need not match. */
  readonly failed: JsonSchemaObject;
  /** Tells an error when the data is checked by its own library. */
  isFailed(envelope: Readonly<Record<string, unknown>>): boolean;
}

const REFERENCES: ReadonlySet<string> = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);

/** Keywords whose value is data, whatever it looks like. */
const VALUES: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);

/** Keywords whose value maps names to schemas. */
const MAPS: ReadonlySet<string> = new Set([
  "$defs",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

/** Where the schema of the data stands in the schema of the envelope. */
const PLACE = "#/$defs/data";

/**
 * Describes an envelope whose `data` fits a schema, or that is an error: clients that check results against the advertised
 * schema would otherwise throw errors away.
 */
export function createEnvelopeSchema<Envelope>(
  schema: AnySchema,
  shape: EnvelopeShape,
): EnvelopeSchema<Envelope> {
  const data = toOperationSchema(schema, "output");
  const { $schema, ...moved } = isObject(data.json) ? moveReferences(structuredClone(data.json)) : {};
  const json: JsonSchemaObject = {
    ...($schema !== undefined && { $schema }),
    type: "object",
    properties: { ...shape.properties, data: {} },
    required: [...shape.required, "data"],
    anyOf: [{ properties: { data: { $ref: PLACE } } }, shape.failed],
    $defs: { data: isObject(data.json) ? moved : data.json },
  };
  const own = compileSchema(json);
  return withStandard(json, async (value) => {
    if (!own.check(value)) return { issues: own.errors(value).map(toIssue) };
    return checkData(data, value as Record<string, unknown>, shape);
  }) as EnvelopeSchema<Envelope>;
}

/** Makes what an operation declares advertisable: plain JSON Schema, and a Standard Schema at once. */
export function createDataSchema(schema: AnySchema): EnvelopeSchema<unknown> | undefined {
  const data = toOperationSchema(schema, "output");
  if (!isObject(data.json)) return undefined;
  const json: JsonSchemaObject = structuredClone(data.json);
  return withStandard(json, async (value) => {
    if (!data.check(value)) return { issues: data.errors(value).map(toIssue) };
    return data.validate === undefined ? { value } : data.validate(value);
  }) as EnvelopeSchema<unknown>;
}

/** Asks the library the schema came from: it may know rules that JSON Schema cannot express. */
async function checkData(
  data: OperationSchema,
  envelope: Record<string, unknown>,
  shape: EnvelopeShape,
): Promise<StandardSchemaV1.Result<unknown>> {
  if (data.validate === undefined || shape.isFailed(envelope)) return { value: envelope };
  const { issues } = await data.validate(envelope["data"]);
  if (issues === undefined) return { value: envelope };
  return { issues: issues.map(({ message, path = [] }) => ({ message, path: ["data", ...path] })) };
}

function toIssue({ pointer, expected, found }: { pointer: string; expected: string; found: string }) {
  const path = pointer.split("/").slice(1);
  return { message: `expected ${expected}, found ${found}`, path };
}

/** Not enumerable, so that what is advertised is the JSON Schema alone. */
function withStandard(
  json: JsonSchemaObject,
  validate: StandardSchemaV1.Props["validate"],
): JsonSchemaObject {
  // Copies, because some validators write on the schemas they are given.
  const copy = () => structuredClone(json);
  const jsonSchema = { input: copy, output: copy };
  return Object.defineProperty(json, "~standard", {
    value: { version: 1, vendor: "waybill", validate, jsonSchema },
  });
}

/** Copies a schema with its local references pointing to its new place; below an `$id` of its own they stay right. */
function moveReferences(schema: JsonSchemaObject): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  if (schema["$id"] !== undefined) return { ...schema };
  for (const keyword of Object.keys(schema)) {
    const value = schema[keyword];
    const reference = REFERENCES.has(keyword) ? movedReference(value) : undefined;
    // The older keyword may point nowhere but to the root.
    if (reference !== undefined) copy[keyword === "$recursiveRef" ? "$ref" : keyword] = reference;
    else setOwn(copy, keyword, movedKeyword(keyword, value));
  }
  return copy;
}

function movedKeyword(keyword: string, value: unknown): unknown {
  if (VALUES.has(keyword)) return value;
  return MAPS.has(keyword) && isObject(value) ? moveMembers(value) : moveInside(value);
}

/** A reference may lead anywhere in a schema, so everything in it but plain values is looked through. */
function moveInside(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(moveInside);
  if (!isObject(value)) return value;
  return isMap(value) ? moveMembers(value) : moveReferences(value);
}

/** Below a keyword nobody knows, names and schemas can only be told apart by what they hold. */
function isMap(value: Record<string, unknown>): boolean {
  return Object.values(value).every(isSchema);
}

function moveMembers(value: Record<string, unknown>): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) setOwn(copy, key, moveInside(value[key]));
  return copy;
}

function movedReference(value: unknown): string | undefined {
  if (typeof value !== "string" || !(value === "#" || value.startsWith("#/"))) return undefined;
  return PLACE + value.slice(1);
}
