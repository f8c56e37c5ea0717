import { type CompiledSchema, compileSchema } from "../../../core/schema/compile-schema.ts";
import type { SchemaIssue } from "../../../core/schema/schema-issue.ts";
import type { MediaPlan, OperationPlan } from "../plan.ts";
import { mediaFor, responseFor, successResponses } from "./declared-media.ts";
import { dataSchemaOf } from "./output-schema.ts";
import { withDefinitions } from "./schema-view.ts";

/** Lists what is wrong with the data of a success, by its status and media type. */
export type DeclaredCheck = (status: number, type: string, data: unknown) => readonly SchemaIssue[];

const NONE: readonly SchemaIssue[] = [];

/**
 * Creates the check of data against what is declared for its own status and media type; nothing where only one thing is, which the
 * operation's schema says already.
 */
export function createDeclaredCheck(plan: OperationPlan): DeclaredCheck | undefined {
  const successes = successResponses(plan);
  const alternatives = successes.reduce((count, { content }) => count + Math.max(content.length, 1), 0);
  if (plan.waybill !== undefined || alternatives < 2) return undefined;
  const compiled = new Map<MediaPlan, CompiledSchema | undefined>();
  return (status, type, data) => {
    const response = responseFor(plan, status);
    if (response === undefined || !successes.includes(response)) return NONE;
    const media = mediaFor(response, type);
    if (media === undefined) return NONE;
    if (!compiled.has(media)) compiled.set(media, compile(media, plan));
    const schema = compiled.get(media);
    return schema === undefined || schema.check(data) ? NONE : schema.errors(data);
  };
}

/** A schema that is refused says nothing; the operation's own, which holds it, tells so. */
function compile(media: MediaPlan, plan: OperationPlan): CompiledSchema | undefined {
  const schema = dataSchemaOf(media, plan.definitions);
  try {
    return schema === undefined ? undefined : compileSchema(withDefinitions(schema, plan.definitions));
  } catch {
    return undefined;
  }
}
