import type { AccessControl } from "../../core/access/access.ts";
import { canonicalJson, isPlainObject, type JsonValue, setOwn } from "../../core/json/json-value.ts";
import type {
  AnyOperation,
  ErrorDeclaration,
  GatedFeature,
  OperationAnnotations,
  OperationType,
  Tier,
} from "../../core/operation/operation-types.ts";
import { type AnySchema, type SchemaDirection, toOperationSchema } from "../../core/schema/any-schema.ts";
import type { SchemaOptions } from "../../core/schema/compile-schema.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import { shortText } from "../../core/text/truncate-text.ts";
import { isOperationId } from "./operation-id.ts";

/** What others need to know of an operation to call it: its spec without its handler, as plain JSON. */
export interface OperationNotice {
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
  readonly type: OperationType;
  readonly description: string;
  readonly title?: string;
  readonly tags?: readonly string[];
  readonly inputSchema?: JsonSchema;
  readonly outputSchema?: JsonSchema;
  readonly errors?: readonly (Omit<ErrorDeclaration, "schema"> & { readonly schema?: JsonSchema })[];
  readonly access?: AccessControl;
  readonly annotations?: OperationAnnotations;
  readonly tier?: Tier;
  readonly features?: readonly GatedFeature[];
  readonly durable?: boolean;
}

/** A service and what it offers. */
export interface ServiceNotice {
  /** Unguessable, made anew with every start. */
  readonly serviceId: string;
  /** For people; several services may share one. */
  readonly name: string;
  readonly operations: readonly OperationNotice[];
}

type ErrorNotice = NonNullable<OperationNotice["errors"]>[number];

/** What was registered under limits of its own is written down; those who find it too much say so. */
const UNLIMITED: SchemaOptions = {
  codegen: false,
  limits: {
    schemaLength: Number.POSITIVE_INFINITY,
    schemaDepth: Number.POSITIVE_INFINITY,
    subschemas: Number.POSITIVE_INFINITY,
    expansion: Number.POSITIVE_INFINITY,
    patternLength: Number.POSITIVE_INFINITY,
    patternSize: Number.POSITIVE_INFINITY,
  },
};

const PLAIN_FIELDS = ["title", "tags", "access", "annotations", "tier", "features", "durable"] as const;

/** Notices of operations that cannot change, so that one change of a registry does not write all of it down again. */
const written = new WeakMap<AnyOperation, OperationNotice>();

/**
 * Writes down what others need to know to call an operation. Its handler, authority, pager and `_meta` stay here; so does
 * its visibility, and a service leaves internal operations out when it announces itself.
 */
export function toOperationNotice(operation: AnyOperation): OperationNotice {
  const known = written.get(operation);
  if (known !== undefined) return known;
  const notice = write(operation);
  if (Object.isFrozen(operation)) written.set(operation, notice);
  return notice;
}

function write(operation: AnyOperation): OperationNotice {
  const { namespace, name, version, type, description, inputSchema, outputSchema } = operation;
  const errors = declaredErrors(operation);
  return Object.freeze({
    namespace,
    name,
    version,
    type,
    description,
    ...plainFields(operation),
    ...(inputSchema !== undefined && { inputSchema: toJson(inputSchema, "input") }),
    ...(outputSchema !== undefined && { outputSchema: toJson(outputSchema, "output") }),
    ...(errors !== undefined && { errors }),
  });
}

function plainFields(operation: AnyOperation): Partial<OperationNotice> {
  const present = PLAIN_FIELDS.filter((field) => operation[field] !== undefined);
  return Object.fromEntries(present.map((field) => [field, operation[field]]));
}

function toJson(schema: AnySchema, direction: SchemaDirection): JsonSchema {
  // A key of its own, so that nothing compiled is kept for the sake of its JSON.
  return toOperationSchema(schema, direction, { ...UNLIMITED }).json;
}

function declaredErrors({ errors }: AnyOperation): readonly ErrorNotice[] | undefined {
  if (errors === undefined) return undefined;
  if (isList(errors)) return errors.map(toErrorNotice);
  return Object.entries(errors).map(([code, declared]) => toErrorNotice({ ...declared, code }));
}

function isList(errors: NonNullable<AnyOperation["errors"]>): errors is readonly ErrorDeclaration[] {
  return Array.isArray(errors);
}

function toErrorNotice({ code, description, httpStatus, schema }: ErrorDeclaration): ErrorNotice {
  return {
    code,
    ...(description !== undefined && { description }),
    ...(httpStatus !== undefined && { httpStatus }),
    ...(schema !== undefined && { schema: toJson(schema, "output") }),
  };
}

/** Bounds on what a service may say of itself and of one operation; what is over them is unusable. */
export const NOTICE_LIMITS = {
  /** Characters of the notice of one operation, written as JSON. */
  length: 8_388_608,
  /** Nesting of it: that of a schema, and what stands around one. */
  depth: 260,
  version: 256,
  title: 1_000,
  description: 100_000,
  /** How many tags, and how long each. */
  tags: 100,
  tag: 200,
  errors: 1_000,
  features: 1_000,
  /** Characters of the pointer of a feature. */
  pointer: 1_000,
  /** Characters of the id and the name of a service. */
  serviceId: 100,
  serviceName: 200,
} as const;

/** Plain JSON by name. */
type JsonObject = Readonly<Record<string, JsonValue>>;

/** What a field must be, for people, and whether it is; the rest is checked by what checks local operations. */
type FieldRule = readonly [wanted: string, isUsable: (value: JsonValue) => boolean];

const DESCRIPTION = NOTICE_LIMITS.description;
const HINTS = ["readOnly", "destructive", "idempotent", "openWorld"];
const ERROR_FIELDS = ["code", "description", "schema", "httpStatus"];

/** Every field that is read; any other is ignored, so that later versions can add some. */
const FIELD_RULES: ReadonlyMap<string, FieldRule> = new Map<string, FieldRule>([
  ["namespace", ["a string", isString]],
  ["name", ["a string", isString]],
  ["version", text(NOTICE_LIMITS.version)],
  ["type", ["a string", isString]],
  ["description", text(NOTICE_LIMITS.description)],
  ["title", text(NOTICE_LIMITS.title)],
  ["tags", list(NOTICE_LIMITS.tags, `strings of at most ${NOTICE_LIMITS.tag} characters`, isTag)],
  ["inputSchema", ["a JSON Schema", isSchema]],
  ["outputSchema", ["a JSON Schema", isSchema]],
  ["errors", list(NOTICE_LIMITS.errors, "errors with a code and a description that is text", isError)],
  ["access", ["an object", isJsonObject]],
  ["annotations", [`an object of ${HINTS.join(", ")}, each true or false`, isHints]],
  ["tier", ["a string", isString]],
  [
    "features",
    list(NOTICE_LIMITS.features, "features with a name, a reason and a pointer that are text", isFeature),
  ],
  ["durable", ["true or false", (value) => typeof value === "boolean"]],
]);

/** Fields without which there is no operation. */
const REQUIRED_FIELDS = ["namespace", "name", "version", "type", "description"] as const;

/** Tells JSON objects from lists and everything else. */
function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Leaves out of each declared error what this version does not know. */
function knownErrorFields(errors: JsonValue): JsonValue {
  if (!Array.isArray(errors)) return errors;
  return Object.freeze(errors.map((error: JsonObject) => pick(error, ERROR_FIELDS)));
}

/** Copies these own fields, as far as they are there. */
function pick(source: JsonObject, fields: Iterable<string>): JsonObject {
  const present = [...fields].filter((field) => Object.hasOwn(source, field));
  return Object.freeze(Object.fromEntries(present.map((field) => [field, source[field] ?? null])));
}

function text(limit: number): FieldRule {
  return [`text of at most ${limit} characters`, (value) => isString(value) && value.length <= limit];
}

function list(limit: number, what: string, isItem: (value: JsonValue) => boolean): FieldRule {
  const isUsable = (value: JsonValue) => Array.isArray(value) && value.length <= limit && value.every(isItem);
  return [`a list of at most ${limit} ${what}`, isUsable];
}

function isString(value: JsonValue | undefined): value is string {
  return typeof value === "string";
}

function isTag(value: JsonValue): boolean {
  return isString(value) && value.length <= NOTICE_LIMITS.tag;
}

function isSchema(value: JsonValue): boolean {
  return typeof value === "boolean" || isJsonObject(value);
}

function isError(value: JsonValue): boolean {
  return isJsonObject(value) && isString(value["code"]) && isOptionalText(value, "description", DESCRIPTION);
}

function isFeature(value: JsonValue): boolean {
  if (!isJsonObject(value) || !isString(value["name"])) return false;
  return (
    isOptionalText(value, "reason", DESCRIPTION) && isOptionalText(value, "pointer", NOTICE_LIMITS.pointer)
  );
}

function isOptionalText(value: JsonObject, field: string, limit: number): boolean {
  if (!Object.hasOwn(value, field)) return true;
  const found = value[field];
  return isString(found) && found.length <= limit;
}

function isHints(value: JsonValue): boolean {
  if (!isJsonObject(value)) return false;
  return Object.entries(value).every(([hint, given]) => HINTS.includes(hint) && typeof given === "boolean");
}

/** Why a notice cannot be used; its id where it has one. */
export interface UnusableNotice {
  readonly usable: false;
  readonly id: string | undefined;
  readonly reason: string;
}

/** A notice whose fields have been read; nobody has looked at its schemas and rules yet. */
export interface ReadNotice {
  readonly usable: true;
  readonly id: string;
  readonly notice: OperationNotice;
  /** The same for equal notices. */
  readonly text: string;
}

const MAX_REASON = 500;

/** Copies the known fields of what came from outside; never throws. */
export function readOperationNotice(value: unknown): ReadNotice | UnusableNotice {
  let id: string | undefined;
  try {
    const copied = copyBoundedJson(value, NOTICE_LIMITS);
    if (!isJsonObject(copied)) throw new TypeError("An operation must be an object.");
    id = idOf(copied);
    const fields = readFields(copied);
    if (id === undefined) throw new TypeError("Its namespace and name do not make an id.");
    return { usable: true, id, notice: fields as unknown as OperationNotice, text: canonicalJson(fields) };
  } catch (thrown) {
    return { usable: false, id, reason: reasonOf(thrown) };
  }
}

/** Says in bounded words what was thrown. */
export function reasonOf(thrown: unknown): string {
  const reason = thrown instanceof Error ? thrown.message : "It cannot be read.";
  return shortText(reason, MAX_REASON);
}

function idOf({ namespace, name }: JsonObject): string | undefined {
  if (typeof namespace !== "string" || typeof name !== "string") return undefined;
  const id = `${namespace}.${name}`;
  return isOperationId(id) && !namespace.includes(".") ? id : undefined;
}

function readFields(copied: JsonObject): JsonObject {
  const missing = REQUIRED_FIELDS.find((field) => !Object.hasOwn(copied, field));
  if (missing !== undefined) throw new TypeError(`It has no ${missing}.`);
  const fields: JsonObject = pick(copied, FIELD_RULES.keys());
  for (const [field, value] of Object.entries(fields)) {
    const [wanted, isUsable] = FIELD_RULES.get(field) ?? ["known", () => false];
    if (!isUsable(value)) throw new TypeError(`Its ${field} must be ${wanted}.`);
  }
  const { errors } = fields;
  return errors === undefined ? fields : Object.freeze({ ...fields, errors: knownErrorFields(errors) });
}

/** How much of a foreign value is copied before it is refused. */
interface JsonBounds {
  /** Characters of the value written as JSON, near enough. */
  readonly length: number;
  /** Nested objects and arrays. */
  readonly depth: number;
}

interface Copying {
  readonly bounds: JsonBounds;
  length: number;
}

/**
 * Copies plain JSON into frozen data that shares nothing with its source; throws a `TypeError` with the reason when it is
 * something else, or too much. A value that contains itself is too deep, and one that shares its parts is as long as it reads.
 */
export function copyBoundedJson(value: unknown, bounds: JsonBounds): JsonValue {
  return copy(value, 0, { bounds, length: 0 });
}

function copy(value: unknown, depth: number, state: Copying): JsonValue {
  if (value === null || typeof value === "boolean") return grow(state, 5, value);
  if (typeof value === "string") return grow(state, value.length + 2, value);
  if (typeof value === "number" && Number.isFinite(value)) return grow(state, 8, value + 0);
  if (typeof value !== "object") throw new TypeError(`It must be plain JSON, and holds ${nameOf(value)}.`);
  if (depth >= state.bounds.depth) {
    throw new TypeError(`It is nested deeper than ${state.bounds.depth} levels.`);
  }
  grow(state, 2, undefined);
  if (Array.isArray(value)) return Object.freeze(Array.from(value, (item) => copy(item, depth + 1, state)));
  if (!isPlainObject(value)) throw new TypeError("It must be plain JSON, and holds a special object.");
  return Object.freeze(copyMembers(value, depth, state));
}

function copyMembers(source: Record<string, unknown>, depth: number, state: Copying): JsonValue {
  const result: Record<string, JsonValue> = {};
  for (const key of Object.keys(source)) {
    const member = source[key];
    if (member === undefined) continue;
    grow(state, key.length + 4, undefined);
    setOwn(result, key, copy(member, depth + 1, state));
  }
  return result;
}

function grow<T>(state: Copying, length: number, value: T): T {
  state.length += length;
  if (state.length <= state.bounds.length) return value;
  throw new TypeError(`It is longer than ${state.bounds.length} characters.`);
}

function nameOf(value: unknown): string {
  return typeof value === "number" || value === undefined ? String(value) : `a ${typeof value}`;
}

/** What a service says of itself, before its operations are looked at. */
export interface ServiceHeader {
  readonly serviceId: string;
  readonly name: string;
  readonly operations: readonly unknown[];
  /** Why what it offers cannot be read; there are no operations then. */
  readonly reason?: string;
}

const SERVICE_ID = /^(?:[A-Za-z0-9_-]{1,64}\.)?[A-Za-z0-9_-]+$/;

/** Tells whether a service may be known by this: letters, digits, `_` and `-`, not too many, and before them its user, if it has one. */
export function isServiceId(value: unknown): value is string {
  return typeof value === "string" && value.length <= NOTICE_LIMITS.serviceId && SERVICE_ID.test(value);
}

/** Reads what came from outside; `serviceId` is empty where there is none, and nothing is ever thrown. */
export function readService(value: unknown): ServiceHeader {
  let serviceId = "";
  try {
    const given = (value ?? {}) as { serviceId?: unknown; name?: unknown; operations?: unknown };
    const { serviceId: id } = given;
    if (!isServiceId(id)) throw new TypeError("A service without a usable serviceId.");
    serviceId = id;
    const { name, operations } = given;
    if (typeof name !== "string" || name.length > NOTICE_LIMITS.serviceName) {
      throw new TypeError(`Its name must be text of at most ${NOTICE_LIMITS.serviceName} characters.`);
    }
    if (!Array.isArray(operations)) throw new TypeError("Its operations must be a list.");
    return { serviceId, name, operations };
  } catch (thrown) {
    return { serviceId, name: "", operations: [], reason: reasonOf(thrown) };
  }
}
