import type { AnyOperation } from "../core/operation/operation-types.ts";
import { toOperationSchema } from "../core/schema/any-schema.ts";
import { isObject, type JsonSchemaObject } from "../core/schema/json-schema.ts";

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
