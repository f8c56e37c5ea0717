import { CallError } from "../../core/errors/errors.ts";
import { joinPointer } from "../../core/json/json-pointer.ts";
import { setOwn } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
import { isObject, type JsonSchemaObject } from "../../core/schema/json-schema.ts";

/** One member of an input that goes into the query. */
export interface QueryParameter {
  readonly name: string;
  /** The type of the value, or of each one in a list. */
  readonly type: "string" | "number" | "boolean";
  /** Written once for each value: `a=1&a=2`. */
  readonly isList: boolean;
  readonly required: boolean;
}

/** Where the input of an operation goes: the query of a GET, or the body of a POST. */
export type InputPlace =
  | { readonly place: "query"; readonly parameters: readonly QueryParameter[] }
  | { readonly place: "body" };

/** Members of an input that may go into the query; with more of them it goes into the body. */
export const MAX_QUERY_PROPERTIES = 64;

/** Parameters of one query that are read; one more is a `VALIDATION_ERROR`. */
export const MAX_QUERY_PARAMETERS = 1_000;

/** Query parameters with a meaning of their own on every route. */
const RESERVED_PARAMETERS: ReadonlySet<string> = new Set(["waybill-format", "waybill-last-event-id"]);

/** Text that UTF-8 cannot hold, and so no query. */
const LONE_SURROGATE = /\p{Surrogate}/u;

const BODY: InputPlace = { place: "body" };

/** Keywords that may say more about members than `properties` does. */
const BEYOND_PROPERTIES = [
  ...["patternProperties", "anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const"],
  ...["$ref", "$dynamicRef", "$recursiveRef", "dependentSchemas", "dependencies"],
];

const places = new WeakMap<AnyOperation, InputPlace>();

/** Says where the input of an operation goes; a query or subscription takes it from the query where nothing of it can get lost there. */
export function placeOf(operation: AnyOperation): InputPlace {
  const place = places.get(operation) ?? findPlace(operation);
  places.set(operation, place);
  return place;
}

function findPlace({ type, inputSchema }: AnyOperation): InputPlace {
  if (type === "mutation" || inputSchema === undefined) return BODY;
  const { json } = toOperationSchema(inputSchema, "input");
  if (!isObject(json) || json["type"] !== "object") return BODY;
  if (BEYOND_PROPERTIES.some((keyword) => json[keyword] !== undefined)) return BODY;
  const { properties = {}, additionalProperties, required } = json;
  if (additionalProperties !== undefined && additionalProperties !== false) return BODY;
  if (!isObject(properties)) return BODY;
  const names = Object.keys(properties);
  if (names.length > MAX_QUERY_PROPERTIES) return BODY;
  const wanted = new Set(Array.isArray(required) ? required : []);
  const parameters: QueryParameter[] = [];
  for (const name of names) {
    const kind = RESERVED_PARAMETERS.has(name) ? undefined : kindOf(properties[name]);
    if (kind === undefined || LONE_SURROGATE.test(name)) return BODY;
    parameters.push({ name, ...kind, required: wanted.has(name) });
  }
  return { place: "query", parameters };
}

function kindOf(schema: unknown): Pick<QueryParameter, "type" | "isList"> | undefined {
  if (!isObject(schema) || schema["$ref"] !== undefined) return undefined;
  if (schema["type"] !== "array") {
    const type = scalarType(schema);
    return type === undefined ? undefined : { type, isList: false };
  }
  const { items, minItems, prefixItems } = schema;
  // No list at all and an empty one look the same in a query.
  if (typeof minItems !== "number" || minItems < 1 || prefixItems !== undefined) return undefined;
  const type = isObject(items) && items["$ref"] === undefined ? scalarType(items) : undefined;
  return type === undefined ? undefined : { type, isList: true };
}

function scalarType(schema: JsonSchemaObject): QueryParameter["type"] | undefined {
  switch (schema["type"]) {
    case "string":
    case "boolean":
    case "number":
      return schema["type"];
    case "integer":
      return "number";
    case undefined:
      return typeOfAll(Object.hasOwn(schema, "const") ? [schema["const"]] : schema["enum"]);
    default:
      return undefined;
  }
}

function typeOfAll(values: unknown): QueryParameter["type"] | undefined {
  if (!Array.isArray(values)) return undefined;
  const [type, ...others] = new Set(values.map((value) => typeof value));
  if (others.length > 0) return undefined;
  return type === "string" || type === "number" || type === "boolean" ? type : undefined;
}

/** The path of an operation, different for every operation and the same once a URL parser has read it. */
export function operationPath(operation: AnyOperation, basePath: string): string {
  const { namespace, name } = operation;
  const base = basePath.endsWith("/") ? basePath.slice(0, -1) : basePath;
  const isPlain = name.split("/").every((segment) => segment !== "" && segment !== "." && segment !== "..");
  return `${base}/${namespace}/${isPlain ? name : name.replaceAll("/", "%2F")}`;
}

/** Exactly the numbers of JSON. */
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;

/** Reads an input from a query, escaped and without `?`; what no parameter speaks of is kept as text. */
export function readQuery(
  query: string,
  parameters: readonly QueryParameter[],
): { readonly input: Readonly<Record<string, unknown>> } {
  const pieces = query.split("&", MAX_QUERY_PARAMETERS + 1);
  if (pieces.length > MAX_QUERY_PARAMETERS) {
    throw unreadable("", `at most ${MAX_QUERY_PARAMETERS} parameters`, "more");
  }
  const known = new Map(parameters.map((parameter) => [parameter.name, parameter]));
  const input: Record<string, unknown> = {};
  for (const piece of pieces) {
    if (piece === "") continue;
    const equals = piece.indexOf("=");
    const name = decode(equals === -1 ? piece : piece.slice(0, equals), "");
    const pointer = joinPointer("", name);
    const text = decode(equals === -1 ? "" : piece.slice(equals + 1), pointer);
    const parameter = known.get(name);
    const before = Object.hasOwn(input, name) ? input[name] : undefined;
    if (parameter?.isList) {
      const list = (before ?? []) as unknown[];
      list.push(readScalar(text, parameter.type, joinPointer(pointer, list.length)));
      setOwn(input, name, list);
    } else if (before === undefined) setOwn(input, name, readScalar(text, parameter?.type, pointer));
    else throw unreadable(pointer, "one value", "several");
  }
  return { input };
}

function readScalar(text: string, type: QueryParameter["type"] | undefined, pointer: string): unknown {
  switch (type) {
    case "number": {
      const number = NUMBER.test(text) ? Number(text) : Number.NaN;
      if (!Number.isFinite(number)) throw unreadable(pointer, "a number", "other text");
      return number;
    }
    case "boolean":
      if (text !== "true" && text !== "false") throw unreadable(pointer, "true or false", "other text");
      return text === "true";
    case "string":
    case undefined:
      return text;
  }
}

function decode(text: string, pointer: string): string {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    throw unreadable(pointer, "text percent-encoded as UTF-8", "something else");
  }
}

function unreadable(pointer: string, expected: string, found: string): CallError {
  const place = pointer === "" ? "" : ` at ${pointer}`;
  const message = `The query cannot be read:${place} expected ${expected}, found ${found}.`;
  return new CallError("VALIDATION_ERROR", message, {
    details: { issues: [{ pointer, expected, found }] },
    stack: false,
  });
}

/** Writes an input as a query, the way `readQuery` reads it; what a query cannot say is refused. */
export function writeQuery(
  input: Readonly<Record<string, unknown>>,
  parameters: readonly QueryParameter[],
): string {
  const lists = new Set(parameters.filter(({ isList }) => isList).map(({ name }) => name));
  const pieces: string[] = [];
  for (const [name, value] of Object.entries(input)) {
    if (value === undefined) continue;
    for (const item of lists.has(name) && Array.isArray(value) ? value : [value]) {
      pieces.push(`${encode(name, name)}=${encode(Object.is(item, -0) ? "-0" : item, name)}`);
    }
  }
  return pieces.join("&");
}

function encode(value: unknown, name: string): string {
  const isScalar = typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);
  const text = String(isScalar ? value : "");
  if (isScalar && !LONE_SURROGATE.test(text)) return encodeURIComponent(text);
  throw unreadable(joinPointer("", name), "what a query can say", "something else");
}
