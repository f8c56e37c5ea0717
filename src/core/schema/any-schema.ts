import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import type { TSchema } from "typebox";
import { type CompiledSchema, compileSchema, type SchemaOptions } from "./compile-schema.ts";
import { adviceForFailure, adviceForStandard } from "./foreign-schema.ts";
import type { JsonSchema } from "./json-schema.ts";
import { SchemaError } from "./schema-error.ts";

/** A Standard Schema that can also give its JSON Schema: zod 4, arktype, wrapped valibot. */
export type StandardSchema<Input = unknown, Output = Input> = StandardSchemaV1<Input, Output> &
  StandardJSONSchemaV1<Input, Output>;

/** Anything an operation may declare as a schema: TypeBox, plain JSON Schema, or a Standard Schema. */
export type AnySchema = JsonSchema | TSchema | StandardSchema;

/** Which side of a call a schema describes. */
export type SchemaDirection = "input" | "output";

/** A compiled schema, with the declaring library's own check where there is one. */
export interface OperationSchema extends CompiledSchema {
  /** Runs the Standard Schema itself: it may know rules that JSON Schema cannot express, and transforms. */
  readonly validate: StandardSchemaV1.Props["validate"] | undefined;
}

const DATA_SCHEMA = Symbol("data schema");

/** Says of the schema of an envelope which schema its data has; enumerating the schema does not show it. */
export function markEnvelopeSchema<S extends object>(schema: S, data: AnySchema): S {
  return Object.defineProperty(schema, DATA_SCHEMA, { value: data });
}

/** The schema of the data: the one given, or the one inside where it is marked as the schema of an envelope. */
export function dataSchemaOf(schema: AnySchema): AnySchema {
  if (!isKey(schema) || !Object.hasOwn(schema, DATA_SCHEMA)) return schema;
  return (schema as { readonly [DATA_SCHEMA]?: AnySchema })[DATA_SCHEMA] ?? schema;
}

/** Compiled schemas by the object they came from, so that operations which share a schema share the work. */
const compiled = new WeakMap<SchemaOptions, WeakMap<object, Map<SchemaDirection, OperationSchema>>>();

/** What schemas are compiled with where nobody says otherwise: one object, so that each is compiled once for everybody. */
export const DEFAULT_SCHEMA_OPTIONS: SchemaOptions = Object.freeze({});

/** Compiles whatever an operation declares, or refuses it with a word on what to do. */
export function toOperationSchema(
  schema: AnySchema,
  direction: SchemaDirection,
  options: SchemaOptions = DEFAULT_SCHEMA_OPTIONS,
): OperationSchema {
  if (!isKey(schema)) return compileAny(schema, direction, options);
  const bySchema = entry(
    compiled,
    options,
    () => new WeakMap<object, Map<SchemaDirection, OperationSchema>>(),
  );
  const byDirection = entry(bySchema, schema, () => new Map<SchemaDirection, OperationSchema>());
  const known = byDirection.get(direction) ?? compileAny(schema, direction, options);
  byDirection.set(direction, known);
  return known;
}

function isKey(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function entry<K extends object, V>(map: WeakMap<K, V>, key: K, make: () => V): V {
  const known = map.get(key) ?? make();
  map.set(key, known);
  return known;
}

function compileAny(schema: AnySchema, direction: SchemaDirection, options: SchemaOptions): OperationSchema {
  const standard = standardProps(schema);
  const json = standard === undefined ? schema : standardJson(standard, schema, direction);
  return Object.assign(compileSchema(json, options), { validate: standard?.validate.bind(standard) });
}

type StandardProps = StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props>;

function standardProps(schema: unknown): StandardProps | undefined {
  if (!isKey(schema) || !("~standard" in schema)) return undefined;
  return schema["~standard"] as StandardProps;
}

function standardJson(
  props: StandardProps,
  schema: AnySchema,
  direction: SchemaDirection,
): Record<string, unknown> {
  const vendor = String(props.vendor);
  if (typeof props.jsonSchema?.[direction] !== "function") {
    throw new SchemaError(
      `This ${vendor} schema cannot give its JSON Schema; ${adviceForStandard(vendor, schema as object)}.`,
    );
  }
  try {
    const libraryOptions = LIBRARY_OPTIONS.get(vendor);
    return props.jsonSchema[direction]({
      target: "draft-2020-12",
      ...(libraryOptions && { libraryOptions }),
    });
  } catch (cause) {
    throw new SchemaError(
      `This ${vendor} schema cannot be written as JSON Schema for ${direction}; ${adviceForFailure(vendor)}.`,
      "",
      { cause },
    );
  }
}

/** Left to itself, arktype writes `{}` for what JSON Schema cannot say; a narrowed type is checked by arktype itself. */
const LIBRARY_OPTIONS: ReadonlyMap<string, Record<string, unknown>> = new Map([
  [
    "arktype",
    {
      fallback: {
        default: ({ code }: { readonly code: string }) => {
          throw new TypeError(`arktype has no JSON Schema for "${code}".`);
        },
        predicate: ({ base }: { readonly base: unknown }) => base,
      },
    },
  ],
]);
