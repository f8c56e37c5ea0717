import { isPlainObject } from "../../../core/json/json-value.ts";
import type { JsonSchema } from "../../../core/schema/json-schema.ts";
import { changeSubschemas } from "./change-subschemas.ts";
import { type SchemaPiece, toDefinitionRef } from "./schema-piece.ts";

/** Which way data goes: into an API, or out of it. */
export type Direction = "input" | "output";

/** What changes in a copy of a schema. */
export interface VariantChanges {
  /** The name that a definition has in the copy. */
  rename(name: string): string;
  /** Properties no longer required, by the schema that requires them. */
  readonly notRequired: ReadonlyMap<unknown, ReadonlySet<string>>;
}

/** Copies a piece's schema with other names for definitions and fewer properties required. */
export function toVariant(piece: SchemaPiece, changes: VariantChanges): JsonSchema {
  const targets = new Map(piece.refs.map(({ holder, target }) => [holder as object, target]));
  const copy = (schema: unknown): unknown => {
    if (!isPlainObject(schema)) return schema;
    const result: Record<string, unknown> = { ...schema };
    const target = targets.get(schema);
    if (target !== undefined) result["$ref"] = toDefinitionRef(changes.rename(target));
    changeSubschemas(result, copy);
    relax(result, changes.notRequired.get(schema));
    return result;
  };
  return copy(piece.schema) as JsonSchema;
}

function relax(schema: Record<string, unknown>, names: ReadonlySet<string> | undefined): void {
  if (names === undefined || !Array.isArray(schema["required"])) return;
  const required = schema["required"].filter((name: string) => !names.has(name));
  if (required.length > 0) schema["required"] = required;
  else delete schema["required"];
}

/** Copies a schema without its patterns, of which there are more than the engine compiles for one operation. */
export function withoutPatterns(schema: JsonSchema): JsonSchema {
  if (!isPlainObject(schema)) return schema;
  const { pattern: _, patternProperties, ...rest } = schema as Record<string, unknown>;
  if (patternProperties !== undefined) delete rest["additionalProperties"];
  changeSubschemas(rest, (item) => withoutPatterns(item as JsonSchema));
  return rest;
}
