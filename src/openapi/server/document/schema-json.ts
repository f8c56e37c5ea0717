import { type AnySchema, type SchemaDirection, toOperationSchema } from "../../../core/schema/any-schema.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";

/**
 * The JSON of a schema that an operation declares; nothing for one that is refused, which `onRefused` hears why: calls are told
 * so, and no other operation suffers from it.
 */
export function schemaJson(
  schema: AnySchema | undefined,
  direction: SchemaDirection,
  onRefused?: (cause: unknown) => void,
): JsonSchema | undefined {
  if (schema === undefined) return undefined;
  try {
    return toOperationSchema(schema, direction).json;
  } catch (cause) {
    onRefused?.(cause);
    return undefined;
  }
}
