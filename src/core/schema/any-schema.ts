import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { isPlainObject } from "../json/json-value.ts";
import type { TSchema } from "../typed-schema/type.ts";
import { type CompiledSchema, compileSchema, type SchemaOptions } from "./compile-schema.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "./json-schema.ts";
import { rewriteSchema } from "./rewrite-schema.ts";
import { SchemaError } from "./schema-issue.ts";

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
  /** Tells whether the library may make a valid input of a value that is none, by a conversion such as `z.coerce`; nothing for plain schemas. */
  readonly mayConvert?: ((value: unknown) => boolean) | undefined;
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
  if (standard === undefined) return Object.assign(compileSchema(schema, options), { validate: undefined });
  const json = standardJson(standard, schema, direction);
  let loose: CompiledSchema | undefined;
  return Object.assign(compileSchema(json, options), {
    validate: standard.validate.bind(standard),
    mayConvert: (value: unknown): boolean => {
      loose ??= compileSchema(withoutTypes(json as JsonSchema), options);
      return loose.check(value);
    },
  });
}

/** Keywords that bound what a library gets to see, whatever it converts: sizes, patterns, and which members there are. */
const BOUNDING = new Set([
  ...["$schema", "$ref", "$defs", "definitions", "required", "pattern", "maxLength", "maxItems"],
  ...["maxProperties", "properties", "patternProperties", "additionalProperties", "items"],
  ...["prefixItems", "anyOf", "allOf"],
]);

/** The same schema with its bounds alone: values of any type pass, and alternatives need not exclude each other. */
function withoutTypes(schema: JsonSchema): JsonSchema {
  return rewriteSchema(schema, {
    keywords: ({ oneOf, ...others }) => {
      const kept = Object.entries(others).filter(([keyword]) => BOUNDING.has(keyword));
      return { ...(Array.isArray(oneOf) && { anyOf: oneOf }), ...Object.fromEntries(kept) };
    },
  });
}

/** Throws where a schema of a library has no JSON Schema for this side of a call; JSON Schemas are vetted when they are registered. */
export function assertWritable(schema: AnySchema, direction: SchemaDirection): void {
  const standard = standardProps(schema);
  if (standard !== undefined) standardJson(standard, schema, direction);
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
  const write = props.jsonSchema[direction];
  const written = (libraryOptions?: Record<string, unknown>) =>
    write({ target: "draft-2020-12", ...(libraryOptions && { libraryOptions }) });
  try {
    return written(LIBRARY_OPTIONS.get(vendor));
  } catch (cause) {
    const again = direction === "input" ? CONVERTING_OPTIONS.get(vendor) : undefined;
    try {
      if (again !== undefined) return written(again);
    } catch {
      // The first failure says what cannot be.
    }
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

/** A node of a zod schema, by what its JSON Schema depends on. */
interface ZodNode {
  readonly zodSchema: {
    readonly _zod: {
      readonly def: {
        readonly type: string;
        readonly coerce?: boolean;
        readonly values?: readonly unknown[];
      };
    };
  };
  readonly jsonSchema: Record<string, unknown>;
}

const NOT_IN_JSON = new Set([
  "bigint",
  "symbol",
  "undefined",
  "void",
  "date",
  "map",
  "set",
  "transform",
  "nan",
  "custom",
  "function",
]);

/** What a library is told where it refused, for inputs that it converts itself: zod says of a coerced date only that it is a date. */
const CONVERTING_OPTIONS: ReadonlyMap<string, Record<string, unknown>> = new Map([
  [
    "zod",
    {
      unrepresentable: "any",
      override: ({ zodSchema, jsonSchema }: ZodNode) => {
        const { type, coerce, values = [] } = zodSchema._zod.def;
        const isDate = type === "date" && coerce === true;
        if (isDate) Object.assign(jsonSchema, { type: "string", format: "date-time" });
        const isOdd =
          NOT_IN_JSON.has(type) || values.some((value) => value === undefined || typeof value === "bigint");
        if (isOdd && !isDate) throw new TypeError(`zod has no JSON Schema for "${type}".`);
      },
    },
  ],
]);

const DECLARE = "declare the shape with Type from waybill or as JSON Schema";
const USE = `use TypeBox, zod 4.2 or newer, arktype, or valibot with toStandardJsonSchema, or ${DECLARE}`;

/** Refuses an object of a class, which would be read as a schema without keywords and allow everything. */
export function refuseInstance(value: object, pointer: string): void {
  if (isPlainObject(value)) return;
  if ("~standard" in value) {
    throw new SchemaError(
      "A schema of a library stands inside a JSON Schema; declare the whole schema with one of them.",
      pointer,
    );
  }
  throw new SchemaError(`${nameOf(value)} is not JSON Schema; ${adviceFor(value)}.`, pointer);
}

function nameOf(value: object): string {
  const name: unknown = value.constructor?.name;
  return typeof name === "string" && name !== "" ? `An object of the class ${name}` : "An object of a class";
}

/** Libraries whose schemas are objects of classes and say nothing of Standard Schema, told apart by what every schema of theirs has. */
function adviceFor(value: object): string {
  if ("coercer" in value && "refiner" in value) {
    return `superstruct cannot write JSON Schema: ${DECLARE}, and call assert(value, struct) in the handler`;
  }
  if ("decode" in value && "encode" in value && "validate" in value) {
    return `io-ts cannot write JSON Schema: ${DECLARE}, and call decode in the handler`;
  }
  if ("toTerminals" in value || ("try" in value && "parse" in value)) {
    return `valita cannot write JSON Schema: ${DECLARE}, and call parse in the handler`;
  }
  return USE;
}

/** What every schema of TypeBox 0.34 has that was made by `Type.Transform`. */
const TRANSFORM = Symbol.for("TypeBox.Transform");

/** Refuses what TypeBox checks or converts by functions, which a JSON Schema cannot hold. */
export function refuseFunctions(value: object, pointer: string): void {
  if (Object.hasOwn(value, "~refine") || Object.hasOwn(value, "~codec")) {
    throw new SchemaError(
      "Type.Refine and Type.Codec cannot be written as JSON Schema; check or convert in the handler instead.",
      pointer,
    );
  }
  if (!Object.hasOwn(value, TRANSFORM)) return;
  throw new SchemaError(
    "Type.Transform of TypeBox 0.34 is JSON Schema of the value before it is decoded, and its decode would be ignored; declare that type without Transform and convert in the handler.",
    pointer,
  );
}

/** All keywords of JSON Type Definition (RFC 8927). */
const JTD_KEYWORDS = new Set([
  ...["additionalProperties", "definitions", "discriminator", "elements", "enum", "mapping", "metadata"],
  ...["nullable", "optionalProperties", "properties", "ref", "values"],
]);

/** Refuses a JSON Type Definition, of which JSON Schema would understand half. */
export function refuseTypeDefinition(schema: JsonSchemaObject, root: unknown, pointer: string): void {
  const keyword = typeDefinitionKeyword(schema, root);
  if (keyword === undefined) return;
  throw new SchemaError(
    `"${keyword}" is a keyword of JSON Type Definition (RFC 8927), not of JSON Schema, which would ignore it; write ${JTD_MEANS[keyword]}.`,
    pointer,
  );
}

const JTD_MEANS = {
  optionalProperties: "all properties as properties, and name those that must be there in required",
  elements: '{ "type": "array", "items": … }',
  values: '{ "type": "object", "additionalProperties": … }',
  discriminator: '"oneOf", with a "const" in each alternative',
  ref: '{ "$ref": "#/definitions/…" }',
} as const;

/** Schemas in the wild hold words of their own, so a keyword counts only where all the others are of JSON Type Definition too. */
function typeDefinitionKeyword(schema: JsonSchemaObject, root: unknown): keyof typeof JTD_MEANS | undefined {
  const has = (keyword: string) => Object.hasOwn(schema, keyword);
  const holds = (keyword: string) => has(keyword) && isObject(schema[keyword]);
  const found = holds("optionalProperties")
    ? "optionalProperties"
    : holds("elements")
      ? "elements"
      : holds("values")
        ? "values"
        : has("discriminator") && typeof schema["discriminator"] === "string" && holds("mapping")
          ? "discriminator"
          : isNamed(schema["ref"], root)
            ? "ref"
            : undefined;
  return found !== undefined && Object.keys(schema).every((key) => JTD_KEYWORDS.has(key)) ? found : undefined;
}

function isNamed(ref: unknown, root: unknown): boolean {
  if (typeof ref !== "string" || !isObject(root) || !isObject(root["definitions"])) return false;
  return Object.hasOwn(root["definitions"], ref);
}

/** Says what to do with a Standard Schema that cannot give its JSON Schema. */
function adviceForStandard(vendor: string, schema: object): string {
  if (vendor === "zod") return adviceForZod(schema);
  return (
    ADVICE.get(vendor) ?? "use a version that implements ~standard.jsonSchema, or pass plain JSON Schema"
  );
}

/** Says what to do with a Standard Schema that failed to write its JSON Schema. */
function adviceForFailure(vendor: string): string {
  const plain = "declare a plain shape and convert in the handler";
  return vendor === "sury" ? `call S.enableStandardJSONSchema() first; if it was called, ${plain}` : plain;
}

function adviceForZod(schema: object): string {
  if (!("_zod" in schema)) {
    return "zod 3 never does: use zod 4.2 or newer, or pass zodToJsonSchema(schema) of the package zod-to-json-schema";
  }
  // Only the schemas of zod itself have methods such as `optional`.
  if (!("optional" in schema)) {
    return "those of zod/mini never do: pass z.toJSONSchema(schema), which does not run its own checks, or use zod itself";
  }
  return "use zod 4.2 or newer";
}

const ADVICE: ReadonlyMap<string, string> = new Map([
  ["valibot", "wrap it with toStandardJsonSchema from @valibot/to-json-schema"],
  [
    "sury",
    "use sury 11 or newer and call S.enableStandardJSONSchema() first, or pass S.toJSONSchema(schema), which does not run its own checks",
  ],
  ["valita", `valita never does: ${DECLARE}, and call parse in the handler`],
]);
