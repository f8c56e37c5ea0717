import type { AnyOperation, ErrorDeclaration } from "../../core/operation/operation-types.ts";
import { type AnySchema, type SchemaDirection, toOperationSchema } from "../../core/schema/any-schema.ts";
import type { SchemaOptions } from "../../core/schema/compile-schema.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import type { OperationNotice } from "./service-notice.ts";

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
 * its visibility, and whoever announces it leaves internal operations out.
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
