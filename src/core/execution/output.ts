import type { StandardSchemaV1 } from "@standard-schema/spec";
import { type ResponseEnvelope, withFacts } from "../envelope/envelope.ts";
import { CallError } from "../errors/errors.ts";
import type { OperationEntry } from "../registry/operation-entry.ts";
import type { OperationSchema } from "../schema/any-schema.ts";
import type { NormalizationReport, SchemaIssue } from "../schema/schema-issue.ts";
import { toSchemaIssues } from "./standard-issues.ts";
import { turnDown } from "./turned-down.ts";

/** What a whole value replaced by its parsed form looks like in a report. */
const REPARSED: NormalizationReport = Object.freeze({ stripped: [], defaulted: [], converted: [""] });

/** Normalises data; what still fails its schema is refused, or goes out whole with its violations. */
export function reconcile(
  entry: OperationEntry,
  output: OperationSchema,
  envelope: ResponseEnvelope,
): ResponseEnvelope {
  const { valid, value, report, issues } = output.normalize(envelope.data);
  return valid ? normalized(envelope, report, value) : violating(entry, envelope, issues);
}

/**
 * The same for a schema that brings its own parser, which may know rules that JSON Schema cannot express: what it refuses
 * is a violation too. Its parsed value is taken only where the data as returned cannot pass: a schema that transforms.
 */
export async function reconcileParsed(
  entry: OperationEntry,
  output: OperationSchema,
  validate: StandardSchemaV1.Props["validate"],
  envelope: ResponseEnvelope,
): Promise<ResponseEnvelope> {
  const { valid, value, report, issues } = output.normalize(envelope.data);
  const parsed = await validate(value);
  if (valid) {
    if (parsed.issues) return violating(entry, envelope, toSchemaIssues(parsed.issues, value));
    return normalized(envelope, report, value);
  }
  const usable = !parsed.issues && output.check(parsed.value);
  return usable ? normalized(envelope, REPARSED, parsed.value) : violating(entry, envelope, issues);
}

function normalized(
  envelope: ResponseEnvelope,
  report: NormalizationReport | undefined,
  value: unknown,
): ResponseEnvelope {
  return report === undefined ? envelope : withFacts(envelope, { normalization: report }, value);
}

function violating(
  entry: OperationEntry,
  envelope: ResponseEnvelope,
  issues: readonly SchemaIssue[],
): ResponseEnvelope {
  const message = `The output of "${entry.id}" does not match its schema.`;
  if (entry.strict) {
    throw turnDown(new CallError("OUTPUT_INVALID", message, { details: { issues } }), entry.id);
  }
  entry.settings.warn({ type: "output-invalid", message, operationId: entry.id, issues });
  const places = new Set(issues.map(({ pointer }) => pointer));
  const known = envelope.meta.waybill?.violations?.filter(({ pointer }) => !places.has(pointer)) ?? [];
  return withFacts(envelope, { violations: [...known, ...issues] });
}
