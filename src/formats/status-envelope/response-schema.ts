import type { ParsedBy } from "../../core/operation/operation-types.ts";
import type { AnySchema } from "../../core/schema/any-schema.ts";
import type { JsonSchemaObject } from "../../core/schema/json-schema.ts";
import { createEnvelopeSchema, type EnvelopeSchema, type EnvelopeShape } from "../envelope-schema.ts";
import type { ToolResponseEnvelope } from "./types.ts";

const TEXTS = { type: "array", items: { type: "string" } };

/** Describes a `ToolResponseMeta`; unknown fields are tolerated. */
export const ToolResponseMetaSchema: JsonSchemaObject = {
  type: "object",
  properties: {
    status: { enum: ["ok", "error", "info", "warn"] },
    summary: { type: "string" },
    details: TEXTS,
    nextSteps: TEXTS,
    truncated: { type: "boolean" },
    tokenUsage: { type: "object", properties: { inline: { type: "number" }, total: { type: "number" } } },
    rateLimit: {
      type: "object",
      properties: { remaining: { type: "number" }, resetSeconds: { type: "number" } },
    },
  },
  required: ["status", "summary"],
};

const SHAPE: EnvelopeShape = {
  fields: { type: "object", properties: { meta: ToolResponseMetaSchema }, required: ["meta", "data"] },
  failed: { properties: { meta: { properties: { status: { const: "error" } } } } },
  isFailed: ({ meta }) => (meta as { status?: unknown }).status === "error",
};

/**
 * Declares a whole status envelope as a tool's `outputSchema`, from the schema of its data. An error is admitted whatever
 * its data.
 */
export function createToolResponseEnvelopeSchema<S extends AnySchema>(
  schema: S,
): EnvelopeSchema<ToolResponseEnvelope<ParsedBy<S>>, S> {
  return createEnvelopeSchema(schema, SHAPE);
}
