import type { OperationOverlay } from "../openapi-options.ts";
import type { DescribedOperation, OperationPlan, SecuritySchemePlan } from "../plan.ts";
import { copyExtension } from "./copy-json.ts";
import { READING_METHODS } from "./http-methods.ts";
import { answersWithStream, type FoundOperation, textOf } from "./index-operations.ts";
import type { DocumentReader } from "./inline-operation.ts";
import { planOperation } from "./plan-operation.ts";

/** What an operation is described by, beside what the document says. */
export interface DescriptionContext extends DocumentReader {
  readonly name: string;
  readonly overlay: OperationOverlay;
  readonly schemes: Readonly<Record<string, SecuritySchemePlan>>;
}

/** Describes an operation that was found; the rest is read when it is asked for. */
export function describeOperation(found: FoundOperation, context: DescriptionContext): DescribedOperation {
  const { method, path, operationId } = found;
  const { overlay } = context;
  const operation = found.operation.value;
  const summary = textOf(operation["summary"]);
  const tags: readonly unknown[] = Array.isArray(operation["tags"]) ? operation["tags"] : [];
  let plan: OperationPlan | undefined;
  return {
    name: context.name,
    operationId,
    method,
    path,
    type: typeOf(found, context),
    title: overlay.title ?? summary,
    description: overlay.description ?? textOf(operation["description"]) ?? summary ?? `${method} ${path}`,
    tags: tags.filter((tag): tag is string => typeof tag === "string"),
    deprecated: operation["deprecated"] === true,
    waybill: operation["x-waybill"] === undefined ? undefined : copyExtension(operation["x-waybill"]),
    plan() {
      plan ??= planOperation(
        { ...found, contentType: overlay.contentType, schemes: context.schemes },
        context,
      );
      return plan;
    },
  };
}

function typeOf(found: FoundOperation, context: DescriptionContext): DescribedOperation["type"] {
  const { readOnly, stream } = context.overlay;
  if (stream ?? answersWithStream(found, context.files, context.version)) return "subscription";
  return (readOnly ?? READING_METHODS.has(found.method.toUpperCase())) ? "query" : "mutation";
}
