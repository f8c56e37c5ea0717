import { isPlainObject } from "../../../core/json/json-value.ts";
import { isObject, type JsonSchema } from "../../../core/schema/json-schema.ts";
import { changeSubschemas } from "./change-subschemas.ts";
import { type SchemaPiece, toDefinitionRef } from "./schema-piece.ts";

/** Which way data goes: into an API, or out of it. */
export type Direction = "input" | "output";

/** Properties that an object requires although they do not travel this way. */
export function wronglyRequired(
  holder: Record<string, unknown>,
  direction: Direction,
  rootOf: (definition: unknown) => JsonSchema | undefined,
): string[] {
  const flag = direction === "input" ? "readOnly" : "writeOnly";
  const { required, properties } = holder;
  if (!Array.isArray(required) || !isObject(properties)) return [];
  return required.filter((name: string) => {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!isObject(property)) return false;
    if (property[flag] === true) return true;
    const target = rootOf(property["$ref"]);
    return isObject(target) && target[flag] === true;
  });
}

/** What changes in a copy of a schema. */
export interface VariantChanges {
  /** The name that a definition has in the copy. */
  rename(name: string): string;
  /** Properties no longer required. */
  notRequired(holder: Record<string, unknown>): readonly string[];
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
    relax(result, changes.notRequired(schema));
    return result;
  };
  return copy(piece.schema) as JsonSchema;
}

function relax(schema: Record<string, unknown>, names: readonly string[]): void {
  if (names.length === 0 || !Array.isArray(schema["required"])) return;
  const required = schema["required"].filter((name: string) => !names.includes(name));
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
