import type { OperationOverlay } from "../openapi-options.ts";
import type { DescribedOperation, OperationPlan, SecuritySchemePlan } from "../plan.ts";
import { copyExtension } from "./copy-json.ts";
import { READING_METHODS } from "./http-methods.ts";
import { answersWithStream, type FoundOperation, textOf } from "./index-operations.ts";
import type { DocumentReader } from "./inline-operation.ts";
import { planOperation } from "./plan-operation.ts";

/** What operations are described by, beside what the document says about each. */
export interface DescriptionContext extends DocumentReader {
  readonly schemes: Readonly<Record<string, SecuritySchemePlan>>;
}

/** What is said of an operation beside its document. */
export interface OperationNaming {
  readonly name: string;
  readonly overlay: OperationOverlay;
  /** What is already known to be odd about it. */
  readonly notes: readonly string[];
}

/** Describes an operation that was found; the rest is read when it is asked for. */
export function describeOperation(
  found: FoundOperation,
  { name, overlay, notes }: OperationNaming,
  context: DescriptionContext,
): DescribedOperation {
  const { method, path, operationId } = found;
  const { summary, description, tags, deprecated, parameters, "x-waybill": waybill } = found.operation.value;
  const title = overlay.title ?? textOf(summary);
  let plan: OperationPlan | undefined;
  return {
    name,
    operationId,
    method,
    path,
    type: typeOf(found, overlay, context),
    title,
    description: overlay.description ?? textOf(description) ?? textOf(summary) ?? `${method} ${path}`,
    tags: Array.isArray(tags) ? tags.filter((tag) => typeof tag === "string") : [],
    deprecated: deprecated === true,
    waybill: waybill === undefined ? undefined : copyExtension(waybill),
    parameters,
    plan() {
      plan ??= planOperation(
        { ...found, notes, contentType: overlay.contentType, schemes: context.schemes },
        context,
      );
      return plan;
    },
  };
}

function typeOf(
  found: FoundOperation,
  { readOnly, stream }: OperationOverlay,
  { files, version }: DescriptionContext,
): DescribedOperation["type"] {
  if (stream ?? answersWithStream(found, files, version)) return "subscription";
  return (readOnly ?? READING_METHODS.has(found.method.toUpperCase())) ? "query" : "mutation";
}
