import { RESPONSE_SOURCES } from "../envelope/envelope.ts";
import { isPlainObject, isStringList } from "../json/json-value.ts";
import { type AnySchema, assertWritable, dataSchemaOf } from "../schema/any-schema.ts";
import type {
  AnyOperation,
  DataPart,
  Operation,
  OperationAnnotations,
  OperationSpec,
  OperationType,
  ReturnsReader,
  UnknownSchema,
} from "./operation-types.ts";
import { isSemanticVersion } from "./semantic-version.ts";

const NAMESPACE = {
  pattern: /^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$/,
  allowed: 'letters, digits, "_" and "-", at most 64',
} as const;
const NAME = {
  pattern: /^[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}$/,
  allowed: 'letters, digits, "_", "-", "." and "/", at most 200',
} as const;
const ERROR_CODE = /^[A-Za-z][A-Za-z0-9_.-]{0,99}$/;

const TYPES: readonly unknown[] = ["query", "mutation", "subscription"];
const VISIBILITIES: readonly unknown[] = [undefined, "external", "internal"];
const POLICIES: readonly unknown[] = [undefined, "off", "warn", "strict"];
const SOURCES: readonly unknown[] = [undefined, ...RESPONSE_SOURCES, "call"];
const TIERS: readonly unknown[] = [undefined, "community", "pro", "enterprise"];

const FIELDS = new Set([
  ...[
    "id",
    "namespace",
    "name",
    "version",
    "type",
    "title",
    "description",
    "tags",
    "inputSchema",
    "outputSchema",
  ],
  ...[
    "errors",
    "access",
    "visibility",
    "annotations",
    "tier",
    "features",
    "authority",
    "outputPolicy",
    "source",
  ],
  ...["durable", "pager", "returns", "render", "_meta", "handler"],
]);

/** Gives a spec its id and freezes it; the handler's types follow from the schemas. */
export function defineOperation<
  const NS extends string,
  const N extends string,
  const K extends OperationType = "mutation",
  const I extends AnySchema = UnknownSchema,
  const O extends AnySchema = UnknownSchema,
  const R extends ReturnsReader | undefined = undefined,
>(
  spec: Omit<OperationSpec<NS, N, K, I, DataPart<O>, R>, "outputSchema"> & { readonly outputSchema?: O },
): Operation<NS, N, K, I, DataPart<O>> {
  if (!isPlainObject(spec)) throw new TypeError("An operation is defined by a plain object.");
  const { outputSchema, version = "1.0.0", type = "mutation" } = spec;
  const { description = describeByName(spec as OperationSpec) } = spec;
  const operation = {
    ...spec,
    version,
    type,
    description,
    ...(outputSchema !== undefined && { outputSchema: dataSchemaOf(outputSchema) }),
    id: `${spec.namespace}.${spec.name}`,
  } as unknown as Operation<NS, N, K, I, DataPart<O>>;
  assertOperation(operation as AnyOperation);
  const { id, inputSchema } = operation;
  if (inputSchema !== undefined) trySchema(id, "inputSchema", () => assertWritable(inputSchema, "input"));
  if (outputSchema !== undefined) {
    trySchema(id, "outputSchema", () => assertWritable(operation.outputSchema as AnySchema, "output"));
  }
  return Object.freeze(operation);
}

/** Does something with a schema of an operation; what refuses the schema is thrown with the operation and the field. */
export function trySchema<T>(id: string, field: string, use: () => T): T {
  try {
    return use();
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TypeError(`Operation "${id}": its ${field} is refused. ${reason}`, { cause });
  }
}

/** The title, or the name in words: `book_parcel` and `bookParcel` are "Book parcel". */
function describeByName({ title, name }: OperationSpec): string {
  if (title !== undefined || typeof name !== "string") return title ?? "";
  const words = name.replace(/([a-z0-9])([A-Z])/g, (_, before, after) => `${before} ${after.toLowerCase()}`);
  const text = words.replace(/[_./-]+/g, " ").trim();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Tells whether a text can be a namespace. */
export function isNamespace(text: string): boolean {
  return NAMESPACE.pattern.test(text);
}

/** Takes an operation as it is, and what lacks an id or could still change as a frozen copy. */
export function toOperation(spec: OperationSpec): AnyOperation {
  // What a prototype holds would be lost in a copy, an access rule too.
  if (!isPlainObject(spec)) {
    throw new TypeError("An operation must be a plain object; make it with defineOperation().");
  }
  const { id } = spec as Partial<AnyOperation>;
  if (id === undefined) return defineOperation(spec) as AnyOperation;
  const operation = spec as OperationSpec as AnyOperation;
  return Object.isFrozen(operation) ? operation : Object.freeze({ ...operation });
}

/** Throws a `TypeError` that names the field and the fix when an operation cannot be one. */
export function assertOperation(operation: AnyOperation): void {
  const { namespace, name, id } = operation;
  assertPart("namespace", namespace, NAMESPACE);
  assertPart("name", name, NAME);
  if (id !== `${namespace}.${name}`) {
    throw new TypeError(
      `Operation "${namespace}.${name}": its id says otherwise; make it with defineOperation().`,
    );
  }
  // A misspelt rule would leave the door open, so nothing unknown is let through.
  const unknown = Object.keys(operation).find((field) => !FIELDS.has(field));
  if (unknown !== undefined) {
    throw new TypeError(`Operation "${id}" has no field "${unknown}"; what is yours alone goes into _meta.`);
  }
  const assertField = fieldCheckOf(id);
  assertField("handler", "a function", typeof operation.handler === "function");
  assertField("type", '"query", "mutation" or "subscription"', TYPES.includes(operation.type));
  const { version, description, title, tags } = operation;
  assertField("title", "a string", title === undefined || typeof title === "string");
  assertField("tags", "a list of strings", tags === undefined || isStringList(tags));
  assertField("version", 'a semantic version, such as "1.0.0"', isSemanticVersion(version));
  assertField("description", "a string", typeof description === "string");
  assertField("visibility", '"external" or "internal"', VISIBILITIES.includes(operation.visibility));
  assertField("outputPolicy", '"off", "warn" or "strict"', POLICIES.includes(operation.outputPolicy));
  assertField("source", '"local", "http", "mcp" or "call"', SOURCES.includes(operation.source));
  assertField("tier", '"community", "pro" or "enterprise"', TIERS.includes(operation.tier));
  const { pager, durable, returns, render } = operation;
  assertField(
    "returns",
    "a reader of results, such as createResultReader() of waybill/formats",
    returns === undefined || typeof returns?.toEnvelope === "function",
  );
  assertField("render", "a function", render === undefined || typeof render === "function");
  assertField("durable", "true or false", durable === undefined || typeof durable === "boolean");
  assertField(
    "pager",
    "an object with a next function",
    pager === undefined || typeof pager?.next === "function",
  );
}

/** Throws unless a code and a status can stand in a declared error. */
export function assertErrorDeclaration(
  id: string,
  code: unknown,
  httpStatus: unknown,
): asserts code is string {
  const assertField = fieldCheckOf(id);
  assertField("errors", 'declared under codes such as "OUT_OF_STOCK"', matches(code, ERROR_CODE));
  const usable =
    typeof httpStatus === "number" && Number.isInteger(httpStatus) && httpStatus >= 400 && httpStatus < 600;
  assertField("errors", "given an httpStatus between 400 and 599", httpStatus === undefined || usable);
}

interface PartRule {
  readonly pattern: RegExp;
  readonly allowed: string;
}

function assertPart(part: string, value: unknown, { pattern, allowed }: PartRule): void {
  if (matches(value, pattern)) return;
  const shown = typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : `of type ${typeof value}`;
  throw new TypeError(
    `The ${part} of an operation may hold ${allowed}, and starts with none of "-", "." and "/"; it is ${shown}.`,
  );
}

/** Checks the fields of one operation. */
function fieldCheckOf(id: string): (field: string, wanted: string, ok: boolean) => void {
  return (field, wanted, ok) => {
    if (!ok) throw new TypeError(`Operation "${id}": ${field} must be ${wanted}.`);
  };
}

function matches(value: unknown, pattern: RegExp): value is string {
  return typeof value === "string" && pattern.test(value);
}

const HINTS = ["readOnly", "destructive", "idempotent", "openWorld"] satisfies (keyof OperationAnnotations)[];

/** The hints alone, whatever else an untyped caller or a document put beside them. */
export function annotationsOf(
  annotations: Readonly<Record<string, unknown>> | OperationAnnotations,
): OperationAnnotations {
  return Object.fromEntries(
    Object.entries(annotations).filter(
      ([hint, value]) => HINTS.includes(hint as never) && typeof value === "boolean",
    ),
  );
}
