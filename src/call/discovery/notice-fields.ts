import type { JsonValue } from "../../core/json/json-value.ts";

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
export type JsonObject = Readonly<Record<string, JsonValue>>;

/** What a field must be, for people, and whether it is; the rest is checked by what checks local operations. */
export type FieldRule = readonly [wanted: string, isUsable: (value: JsonValue) => boolean];

const DESCRIPTION = NOTICE_LIMITS.description;
const HINTS = ["readOnly", "destructive", "idempotent", "openWorld"];
const ERROR_FIELDS = ["code", "description", "schema", "httpStatus"];

/** Every field that is read; any other is ignored, so that later versions can add some. */
export const FIELD_RULES: ReadonlyMap<string, FieldRule> = new Map<string, FieldRule>([
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
export const REQUIRED_FIELDS = ["namespace", "name", "version", "type", "description"] as const;

/** Tells JSON objects from lists and everything else. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Leaves out of each declared error what this version does not know. */
export function knownErrorFields(errors: JsonValue): JsonValue {
  if (!Array.isArray(errors)) return errors;
  return Object.freeze(errors.map((error: JsonObject) => pick(error, ERROR_FIELDS)));
}

/** Copies these own fields, as far as they are there. */
export function pick(source: JsonObject, fields: Iterable<string>): JsonObject {
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
