import { type AnySchema, type SchemaDirection, toOperationSchema } from "../../../core/schema/any-schema.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";

/**
 * The JSON of a schema that an operation declares; nothing for one that cannot be read or is refused, of which `onRefused` hears:
 * calls are told so, and no other operation suffers from it.
 */
export function schemaJson(
  read: () => AnySchema | undefined,
  direction: SchemaDirection,
  onRefused?: (cause: unknown) => void,
): JsonSchema | undefined {
  try {
    const schema = read();
    return schema === undefined ? undefined : toOperationSchema(schema, direction).json;
  } catch (cause) {
    onRefused?.(cause);
    return undefined;
  }
}
