import type { StandardSchemaV1 } from "@standard-schema/spec";
import { parsePointer } from "../core/json/json-pointer.ts";
import type { EnvelopeOf, ParsedBy } from "../core/operation/operation-types.ts";
import {
  type AnySchema,
  markEnvelopeSchema,
  type OperationSchema,
  type StandardSchema,
  toOperationSchema,
} from "../core/schema/any-schema.ts";
import { type CompiledSchema, compileSchema } from "../core/schema/compile-schema.ts";
import { isObject, type JsonSchema, type JsonSchemaObject } from "../core/schema/json-schema.ts";
import { changeReferences, movedReference } from "../core/schema/rewrite-schema.ts";
import { issueWords } from "../core/schema/schema-issue.ts";

/**
 * A schema of an envelope around data of the schema `S`: plain JSON Schema to advertise, a Standard Schema for libraries that take one, and
 * what zod 4 and the MCP SDK 1.x take for a zod schema. As the `outputSchema` of an operation it means its data.
 */
export type EnvelopeSchema<Envelope, S extends AnySchema = AnySchema> = JsonSchemaObject &
  StandardSchema<Envelope> &
  EnvelopeOf<S> &
  ZodLike<Envelope> & {
    /** The members one by one. An SDK that is given the shape takes the whole schema; in a copy of it `data` has to match for errors too. */
    readonly shape: { readonly [K in keyof Envelope]-?: ShapeMember<K, Envelope, S> };
  };

/** By these fields zod 4 knows a schema. They are zod's alone, so their types fit every version of it and tell callers nothing. */
interface ZodLike<T, Presence extends "optional" | undefined = undefined> {
  readonly _zod: {
    readonly version: never;
    readonly def: never;
    readonly deferred: never;
    readonly run: never;
    readonly parse: never;
    readonly traits: never;
    readonly pattern: never;
    readonly constr: never;
    readonly bag: never;
    readonly isst: never;
    readonly values: undefined;
    readonly optin: Presence;
    readonly optout: Presence;
    readonly output: T;
    readonly input: T;
  };
}

type ShapeMember<K extends keyof Envelope, Envelope, S> = K extends "data"
  ? S extends { readonly _zod: unknown }
    ? S
    : ZodLike<ParsedBy<S>> & StandardSchema<ParsedBy<S>>
  : ZodLike<Envelope[K], undefined extends Envelope[K] ? "optional" : undefined> &
      StandardSchema<Envelope[K]>;

/** A schema to advertise: plain JSON Schema, and a Standard Schema for libraries that take one. */
export type AdvertisedSchema = JsonSchemaObject & StandardSchema<unknown>;

/** What an envelope looks like around its data. One object for each format, by which what is compiled of it is kept. */
export interface EnvelopeShape {
  /** The schema of the members but `data`, which is required like the others. */
  readonly fields: {
    readonly type: "object";
    readonly properties: Readonly<Record<string, JsonSchemaObject>>;
    readonly required: readonly string[];
  };
  /** Holds for an error, whose data need not match. */
  readonly failed: JsonSchemaObject;
  /** Tells an error when the data is checked by its own library. */
  isFailed(envelope: Readonly<Record<string, unknown>>): boolean;
}

/** Where the schema of the data stands in the schema of the envelope. */
const PLACE = "#/$defs/data";

/**
 * Describes an envelope whose `data` fits a schema, or that is an error: clients that check results against the advertised
 * schema would otherwise throw errors away.
 */
export function createEnvelopeSchema<Envelope, S extends AnySchema>(
  schema: S,
  shape: EnvelopeShape,
): EnvelopeSchema<Envelope, S> {
  const data = toOperationSchema(schema, "output");
  const { $schema, ...moved } = isObject(data.json) ? moveReferences(structuredClone(data.json)) : {};
  const json: JsonSchemaObject = {
    ...($schema !== undefined && { $schema }),
    type: "object",
    properties: { ...shape.fields.properties, data: {} },
    required: [...shape.fields.required],
    anyOf: [{ properties: { data: { $ref: PLACE } } }, shape.failed],
    $defs: { data: isObject(data.json) ? moved : data.json },
  };
  const whole = compileSchema(json);
  const validate: Validate = (value) => {
    const fits = whole.check(value);
    // The members first: what the whole says of its alternatives is hard to read.
    const fields = fits ? whole : toOperationSchema(shape.fields, "output");
    if (!fits && !fields.check(value)) return failure(fields, value);
    const envelope = value as Record<string, unknown>;
    if (shape.isFailed(envelope)) return fits ? { value } : failure(whole, value);
    return andThen(checkData(data, envelope["data"]), ({ issues }) => {
      if (issues === undefined) return fits ? { value } : failure(whole, value);
      return { issues: issues.map(({ message, path = [] }) => ({ message, path: ["data", ...path] })) };
    });
  };
  withStandard(json, validate);
  withZod(json, { json, validate }, { shape: shapeOf(schema, data, shape) });
  return markEnvelopeSchema(json, schema) as EnvelopeSchema<Envelope, S>;
}

/** Makes what an operation declares advertisable: plain JSON Schema, and a Standard Schema at once. */
export function createDataSchema(schema: AnySchema): AdvertisedSchema | undefined {
  const data = toOperationSchema(schema, "output");
  if (!isObject(data.json)) return undefined;
  const json: JsonSchemaObject = structuredClone(data.json);
  return withStandard(json, (value) => checkData(data, value)) as AdvertisedSchema;
}

type Result = StandardSchemaV1.Result<unknown>;
type Validate = (value: unknown) => Result | Promise<Result>;

/** Goes on at once where it can: zod parses at once unless it is told to wait. */
function andThen<T, U>(value: T | Promise<T>, next: (value: T) => U): U | Promise<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Asks the library the schema came from first: its messages are the author's, and it may know rules that JSON Schema cannot express. */
function checkData(data: OperationSchema, value: unknown): Result | Promise<Result> {
  const asJson = (): Result => (data.check(value) ? { value } : failure(data, value));
  if (data.validate === undefined) return asJson();
  return andThen(data.validate(value), (result) => {
    if (result.issues !== undefined) return result;
    const checked = asJson();
    return checked.issues === undefined ? result : checked;
  });
}

function failure(schema: CompiledSchema, value: unknown): StandardSchemaV1.FailureResult {
  const issues = schema.errors(value).map(({ pointer, expected, found }) => ({
    message: issueWords({ expected, found }),
    path: pathIn(value, pointer),
  }));
  return { issues };
}

/** A pointer as the path of an issue: the places in a list are numbers. */
function pathIn(value: unknown, pointer: string): PropertyKey[] {
  let inside = value;
  return parsePointer(pointer).map((key) => {
    const parent = inside;
    inside = Array.isArray(parent) || isObject(parent) ? (parent as Record<string, unknown>)[key] : undefined;
    return Array.isArray(parent) ? Number(key) : key;
  });
}

/** Not enumerable, so that what is advertised is the JSON Schema alone. */
function withStandard(json: JsonSchemaObject, validate: Validate): JsonSchemaObject {
  // Copies, because some validators write on the schemas they are given.
  const copy = () => structuredClone(json);
  const jsonSchema = { input: copy, output: copy };
  return Object.defineProperty(json, "~standard", {
    value: { version: 1, vendor: "waybill", validate, jsonSchema },
  });
}

/** The members of an envelope, each a schema of its own. */
function shapeOf(schema: AnySchema, data: OperationSchema, { fields }: EnvelopeShape): object {
  const members = Object.entries(fields.properties).map(([name, json]) => {
    const optional = !fields.required.includes(name);
    const validate: Validate = (value) =>
      optional && value === undefined ? { value } : checkData(toOperationSchema(json, "output"), value);
    return [name, zodSchema(json, validate, { optional })];
  });
  const isZod = typeof schema === "object" && "_zod" in schema;
  const own = isZod ? schema : zodSchema(data.json, (value) => checkData(data, value), {});
  return Object.fromEntries([...members, ["data", own]]);
}

function zodSchema(schema: JsonSchema, validate: Validate, options: ZodOptions): object {
  const json = isObject(schema) ? structuredClone(schema) : schema ? {} : { not: {} };
  return withZod(withStandard(json, validate), { json, validate }, options);
}

interface ZodOptions {
  /** The members, for the schema of an object. */
  readonly shape?: object;
  /** An object may leave it out. @default false */
  readonly optional?: boolean;
}

/** What zod hands from schema to schema while it parses. */
interface ZodPayload {
  readonly value: unknown;
  readonly issues: unknown[];
}

/**
 * Gives a schema what zod 4 asks of one: how it is checked, and its JSON Schema. The MCP SDK 1.x takes nothing but zod, and this way
 * nobody needs zod who does not use that SDK. The type "custom" is the one that every version of zod leaves to `run`; by `shape` the SDK
 * knows an object. None of it can be enumerated. The shape is the whole schema as well: an SDK that is given it as a raw shape, as
 * people do with `.shape`, would otherwise refuse errors whose data does not match.
 */
function withZod<T extends object>(
  target: T,
  { json, validate }: { readonly json: JsonSchemaObject; readonly validate: Validate },
  { shape, optional }: ZodOptions,
): T {
  const run = (payload: ZodPayload, context?: { readonly async?: boolean | undefined }) => {
    const result = validate(payload.value);
    if (result instanceof Promise && context?.async === false) {
      result.catch(() => {});
      throw new TypeError("This schema is checked asynchronously; use parseAsync or safeParseAsync.");
    }
    return andThen(result, ({ issues = [] }) => {
      payload.issues.push(...issues.map((issue) => toZodIssue(issue, payload.value)));
      return payload;
    });
  };
  const internals = {
    def: { type: "custom", ...(shape && { shape }) },
    traits: new Set(["$ZodType"]),
    version: { major: 4, minor: 0, patch: 0 },
    bag: {},
    deferred: [],
    run,
    parse: run,
    toJSONSchema: () => toEmbeddable(json),
    ...(optional && { optin: "optional", optout: "optional" }),
  };
  Object.defineProperty(target, "_zod", { value: internals });
  if (shape === undefined) return target;
  Object.defineProperty(shape, "_zod", { value: internals });
  Object.defineProperty(shape, "~standard", { value: (target as Partial<StandardSchema>)["~standard"] });
  return Object.defineProperty(target, "shape", { value: shape });
}

function toZodIssue({ message, path = [] }: StandardSchemaV1.Issue, input: unknown): object {
  const keys = path.map((segment) => (typeof segment === "object" ? segment.key : segment));
  return { code: "custom", message, path: keys, input, continue: false };
}

/**
 * The JSON Schema for zod to write: as it is at the root; inside another schema, where its references need a base, with an `$id`. zod
 * does not tell a schema where it is put, but `JSON.stringify` does, by which it copies what it wrote.
 */
function toEmbeddable(json: JsonSchemaObject): object {
  const text = JSON.stringify(json);
  let copies = 0;
  const toJSON = function (this: JsonSchemaObject, key: string): object {
    const { toJSON: _, ...written } = this;
    if (key === "") {
      const { $schema: zodsOwn, ...others } = written;
      return json["$schema"] === undefined ? others : written;
    }
    if (json["$id"] !== undefined || !REFERENCE.test(text)) return written;
    copies += 1;
    return { $id: `urn:waybill:schema:${hash(`${key} ${copies} ${text}`)}`, ...written };
  };
  return { ...structuredClone(json), toJSON };
}

const REFERENCE = /"\$(?:ref|dynamicRef|recursiveRef)":/;

/** FNV-1a: tells the schemas in one document apart. */
function hash(text: string): string {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return (value >>> 0).toString(16).padStart(8, "0");
}

/** Copies a schema with its local references pointing to its new place. */
function moveReferences(schema: JsonSchemaObject): JsonSchemaObject {
  // The older keyword may point nowhere but to the root.
  return changeReferences(schema, (keyword, reference) => [
    keyword === "$recursiveRef" ? "$ref" : keyword,
    movedReference(reference, PLACE),
  ]);
}
