import { TIERS } from "../../core/access/tier.ts";
import type { ParsedBy } from "../../core/operation/operation-types.ts";
import type { AnySchema } from "../../core/schema/any-schema.ts";
import { createEnvelopeSchema, type EnvelopeSchema, type EnvelopeShape } from "../envelope-schema.ts";
import type { TieredEnvelope } from "./tiered-envelope.ts";

const TEXT = { type: "string" };
const HINT = {
  type: "object",
  properties: { feature: TEXT, tier: TEXT, reason: TEXT },
  required: ["feature", "tier", "reason"],
};
const ERROR = {
  type: ["object", "null"],
  properties: { error: TEXT, error_code: TEXT, error_details: { type: ["object", "null"] } },
  required: ["error", "error_code"],
};

const SHAPE: EnvelopeShape = {
  fields: {
    type: "object",
    properties: {
      tier: { enum: TIERS },
      tool_version: TEXT,
      tool_id: TEXT,
      request_id: TEXT,
      capabilities: { type: "array", items: TEXT },
      duration_ms: { type: "number", minimum: 0 },
      error: ERROR,
      upgrade_hints: { type: "array", items: HINT },
    },
    required: [
      "tier",
      "tool_version",
      "tool_id",
      "request_id",
      "capabilities",
      "error",
      "upgrade_hints",
      "data",
    ],
  },
  failed: { properties: { error: { type: "object" } } },
  isFailed: ({ error }) => error !== null,
};

/** Declares a whole tiered envelope as a tool's `outputSchema`, from the schema of its data; errors are admitted. */
export function createTieredEnvelopeSchema<S extends AnySchema>(
  schema: S,
): EnvelopeSchema<TieredEnvelope<ParsedBy<S>>, S> {
  return createEnvelopeSchema(schema, SHAPE);
}
