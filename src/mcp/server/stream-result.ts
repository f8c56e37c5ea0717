import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { toOperationSchema } from "../../core/schema/any-schema.ts";
import type { JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { moveSchema } from "./embed-schema.ts";
import { toModernSchema } from "./modern-schema.ts";

/** What the one result of a subscription says: its first values, and how many there were. */
export interface StreamResult {
  readonly items: readonly unknown[];
  readonly count: number;
  /** Whether there were more values than `items` holds. */
  readonly truncated: boolean;
}

const prepared = new WeakMap<AnyOperation, JsonSchemaObject>();

/** The schema of the result of a subscription, around that of its values. */
export function streamSchema(operation: AnyOperation): JsonSchemaObject {
  const known = prepared.get(operation) ?? makeSchema(operation);
  prepared.set(operation, known);
  return known;
}

function makeSchema({ outputSchema }: AnyOperation): JsonSchemaObject {
  const compiled = outputSchema === undefined ? undefined : toOperationSchema(outputSchema, "output");
  const json = compiled?.meaningful ? compiled.json : true;
  const items =
    typeof json === "boolean" ? json : moveSchema(toModernSchema(json), "#/properties/items/items");
  return {
    type: "object",
    properties: {
      items: { type: "array", items },
      count: { type: "integer", minimum: 0 },
      truncated: { type: "boolean" },
    },
    required: ["items", "count", "truncated"],
  };
}
