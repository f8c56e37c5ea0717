import type { AnyOperation, ErrorDeclaration } from "../core/operation/operation-types.ts";
import { toOperationSchema } from "../core/schema/any-schema.ts";
import { isObject, type JsonSchemaObject } from "../core/schema/json-schema.ts";

/** All that is known of an operation, as plain data for programs. */
export function operationJson(operation: AnyOperation, source: string | undefined): Record<string, unknown> {
  const { id, namespace, name, version, type, title, description, tags, annotations, access } = operation;
  const { tier, features } = operation;
  const errors = errorsOf(operation);
  return {
    id,
    namespace,
    name,
    version,
    type,
    ...(source !== undefined && { source }),
    ...(title !== undefined && { title }),
    description,
    ...(tags !== undefined && tags.length > 0 && { tags }),
    ...(annotations !== undefined && { annotations }),
    ...(access !== undefined && { access }),
    ...(tier !== undefined && { tier }),
    ...(features !== undefined && features.length > 0 && { features }),
    ...schemas(operation),
    ...(errors.length > 0 && { errors: errors.map(({ schema: _, ...rest }) => rest) }),
  };
}

function schemas(operation: AnyOperation): Record<string, unknown> {
  const inputSchema = schemaOf(operation, "input");
  const outputSchema = schemaOf(operation, "output");
  return {
    ...(inputSchema !== undefined && { inputSchema }),
    ...(outputSchema !== undefined && { outputSchema }),
  };
}

/** The failures an operation announces, as a list. */
export function errorsOf({ errors }: AnyOperation): readonly ErrorDeclaration[] {
  if (errors === undefined) return [];
  if (Array.isArray(errors)) return errors as readonly ErrorDeclaration[];
  const byCode = errors as Readonly<Record<string, Omit<ErrorDeclaration, "code">>>;
  return Object.entries(byCode).map(([code, rest]) => ({ code, ...rest }));
}

/** The JSON Schema of an operation's input or output; nothing for one that has none or cannot give it. */
export function schemaOf(
  operation: AnyOperation,
  direction: "input" | "output",
): JsonSchemaObject | undefined {
  try {
    const schema = direction === "input" ? operation.inputSchema : operation.outputSchema;
    const json = schema === undefined ? undefined : toOperationSchema(schema, direction).json;
    return isObject(json) ? json : undefined;
  } catch {
    return undefined;
  }
}
