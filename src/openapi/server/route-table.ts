import { CallError } from "../../core/errors/errors.ts";
import { joinPointer } from "../../core/json/json-pointer.ts";
import { setOwn } from "../../core/json/json-value.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Executor } from "../../core/registry/executor.ts";
import { describeFound } from "../../core/schema/evaluation.ts";
import { isObject, type JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { issueText } from "../../core/schema/schema-issue.ts";
import { schemaJson } from "./document/schema-json.ts";

/** One member of an input that goes into the query. */
export interface QueryParameter {
  readonly name: string;
  /** The type of the value, or of each one in a list. */
  readonly type: "string" | "number" | "boolean";
  /** Written once for each value: `a=1&a=2`. */
  readonly isList: boolean;
  readonly required: boolean;
  /** Whether nothing at all in the query is an empty list: one that must be there, and may be empty. */
  readonly isEmptyByDefault: boolean;
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

/**
 * Says where the input of an operation goes; a query or subscription takes it from the query where nothing of it can get lost
 * there. Only one input cannot be said in it, a list that may be left out and is empty: it goes to `/call`.
 */
export function inputPlaceOf(operation: AnyOperation): InputPlace {
  const place = places.get(operation) ?? findPlace(operation);
  places.set(operation, place);
  return place;
}

function findPlace(operation: AnyOperation): InputPlace {
  const json = operation.type === "mutation" ? undefined : schemaJson(() => operation.inputSchema, "input");
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
    const { mayBeEmpty, ...rest } = kind;
    const isRequired = wanted.has(name);
    parameters.push({ name, ...rest, required: isRequired, isEmptyByDefault: mayBeEmpty && isRequired });
  }
  return { place: "query", parameters };
}

interface Kind extends Pick<QueryParameter, "type" | "isList"> {
  readonly mayBeEmpty: boolean;
}

function kindOf(schema: unknown): Kind | undefined {
  if (!isObject(schema) || schema["$ref"] !== undefined) return undefined;
  if (schema["type"] !== "array") {
    const type = scalarType(schema);
    return type === undefined ? undefined : { type, isList: false, mayBeEmpty: false };
  }
  const { items, minItems, prefixItems } = schema;
  const type = prefixItems === undefined ? scalarType(items) : undefined;
  const mayBeEmpty = typeof minItems !== "number" || minItems < 1;
  return type === undefined ? undefined : { type, isList: true, mayBeEmpty };
}

function scalarType(schema: unknown): QueryParameter["type"] | undefined {
  if (!isObject(schema) || schema["$ref"] !== undefined) return undefined;
  switch (schema["type"]) {
    case "string":
    case "boolean":
    case "number":
      return schema["type"];
    case "integer":
      return "number";
    case undefined:
      return typeOfAll(valueTypes(schema));
    default:
      return undefined;
  }
}

/** The types of all values a schema without a type of its own may accept, where it lists them or their schemas. */
function valueTypes(schema: JsonSchemaObject): readonly unknown[] {
  if (Object.hasOwn(schema, "const")) return [typeof schema["const"]];
  if (Array.isArray(schema["enum"])) return schema["enum"].map((value) => typeof value);
  const branches = schema["anyOf"] ?? schema["oneOf"];
  return Array.isArray(branches) ? branches.map(scalarType) : [];
}

function typeOfAll(types: readonly unknown[]): QueryParameter["type"] | undefined {
  const [type, ...others] = new Set(types);
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

/** The id of the operation that would be at a path, there or not; nothing for other paths. */
export function idOfPath(path: string, basePath: string): string | undefined {
  const base = basePath.endsWith("/") ? basePath : `${basePath}/`;
  const slash = path.indexOf("/", base.length);
  if (!path.startsWith(base) || slash < 0) return undefined;
  return `${path.slice(base.length, slash)}.${path.slice(slash + 1)}`;
}

const names = new WeakMap<readonly QueryParameter[], ReadonlyMap<string, QueryParameter>>();

/** Every call of an operation asks for the same ones. */
function byName(parameters: readonly QueryParameter[]): ReadonlyMap<string, QueryParameter> {
  const known = names.get(parameters);
  if (known !== undefined) return known;
  const found = new Map(parameters.map((parameter) => [parameter.name, parameter]));
  names.set(parameters, found);
  return found;
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
  const known = byName(parameters);
  const input: Record<string, unknown> = {};
  for (const piece of pieces) {
    if (piece === "") continue;
    const equals = piece.indexOf("=");
    const given = decode(equals === -1 ? piece : piece.slice(0, equals), "");
    const parameter = known.get(given);
    // The same text, but one that is a name of members already.
    const name = parameter?.name ?? given;
    const pointer = joinPointer("", name);
    const text = decode(equals === -1 ? "" : piece.slice(equals + 1), pointer);
    const before = Object.hasOwn(input, name) ? input[name] : undefined;
    if (parameter?.isList) {
      const list = (before ?? []) as unknown[];
      list.push(readScalar(text, parameter.type, joinPointer(pointer, list.length)));
      setOwn(input, name, list);
    } else if (before === undefined) setOwn(input, name, readScalar(text, parameter?.type, pointer));
    else throw unreadable(pointer, "one value", "several");
  }
  for (const { name, isEmptyByDefault } of parameters) {
    if (isEmptyByDefault && !Object.hasOwn(input, name)) setOwn(input, name, []);
  }
  return { input };
}

function readScalar(text: string, type: QueryParameter["type"] | undefined, pointer: string): unknown {
  switch (type) {
    case "number": {
      const number = NUMBER.test(text) ? Number(text) : Number.NaN;
      if (!Number.isFinite(number)) throw unreadable(pointer, "a number", describeFound(text));
      return number;
    }
    case "boolean":
      if (text !== "true" && text !== "false")
        throw unreadable(pointer, "true or false", describeFound(text));
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
  const message = `The query cannot be read: ${issueText({ pointer, expected, found }, "it")}.`;
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
  const lists = new Map(parameters.filter(({ isList }) => isList).map((list) => [list.name, list]));
  const pieces: string[] = [];
  for (const [name, value] of Object.entries(input)) {
    if (value === undefined) continue;
    const list = Array.isArray(value) ? lists.get(name) : undefined;
    const isSaid = list === undefined || list.isEmptyByDefault || (value as unknown[]).length > 0;
    if (!isSaid) throw unreadable(joinPointer("", name), "a list that is not empty", "an empty list");
    for (const item of list === undefined ? [value] : (value as unknown[])) {
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

/** How an operation is reached. */
export interface OperationRoute {
  readonly operation: AnyOperation;
  readonly place: InputPlace;
  /** The value of `allow`. */
  readonly allow: string;
  /** Whether its input has a member that asks for a page. */
  readonly hasCursor: boolean;
}

/** Finds operations by path: a path names one by itself, so that nothing is searched. */
export class RouteTable {
  readonly #executor: Executor;
  readonly basePath: string;
  readonly #prefix: string;
  /** Only what was found: others could fill it with anything. */
  readonly #found = new Map<string, OperationRoute>();

  constructor(executor: Executor, basePath: string) {
    this.#executor = executor;
    this.basePath = basePath;
    this.#prefix = `${basePath}/`;
  }

  /** Tells whether an operation could be here. */
  covers(path: string): boolean {
    return path.startsWith(this.#prefix);
  }

  find(path: string): OperationRoute | undefined {
    const known = this.#found.get(path);
    if (known !== undefined) return known;
    const route = this.covers(path) ? this.#lookUp(path) : undefined;
    if (route !== undefined) this.#found.set(path, route);
    return route;
  }

  /** Forgets all: operations have changed. */
  clear(): void {
    this.#found.clear();
  }

  #lookUp(path: string): OperationRoute | undefined {
    const rest = path.slice(this.#prefix.length);
    const slash = rest.indexOf("/");
    if (slash < 1) return undefined;
    const name = rest.slice(slash + 1).replaceAll("%2F", "/");
    const operation = this.#executor.get(`${rest.slice(0, slash)}.${name}`);
    if (operation === undefined || operation.visibility === "internal") return undefined;
    // Of the ways a path can be written, one counts.
    if (operationPath(operation, this.basePath) !== path) return undefined;
    return toRoute(operation);
  }
}

function toRoute(operation: AnyOperation): OperationRoute {
  const place = inputPlaceOf(operation);
  const isQuery = place.place === "query";
  return {
    operation,
    place,
    allow: isQuery ? "GET, HEAD, OPTIONS" : "POST, OPTIONS",
    hasCursor: isQuery && place.parameters.some(({ name }) => name === "cursor"),
  };
}
