import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { DescribedApi, DescribedOperation, OperationPlan } from "../../openapi/client/plan.ts";
import { counted } from "../terminal/counted.ts";
import type { CheckList } from "./check-report.ts";
import { tryCompile } from "./mcp-tool-checks.ts";

/** An operation of the document, and what it became. */
export interface ApiOperation {
  /** How people know it: method and path. */
  readonly label: string;
  readonly described: DescribedOperation;
  readonly operation: AnyOperation;
}

/** Names an operation by method and path. */
export function labelOf({ method, path }: Pick<DescribedOperation, "method" | "path">): string {
  return `${method} ${path}`;
}

/** Checks what a document says, without calling anything. */
export async function checkDocument(
  list: CheckList,
  api: DescribedApi,
  operations: readonly ApiOperation[],
  onProgress: (text: string) => void,
): Promise<void> {
  for (const { name, reason } of api.unusable) list.fail("openapi.operation", name, reason);
  if (api.unusable.length === 0) {
    list.pass(
      "openapi.operation",
      "",
      `${counted(operations.length, "operation")}, each of which can be used.`,
    );
  }
  checkOperationIds(list, operations);
  let count = 0;
  for (const one of operations) {
    count += 1;
    if (count % 100 === 0) {
      onProgress(`reading operations: ${count} of ${operations.length}`);
      // Others get a turn: a document may hold thousands.
      await new Promise((resolve) => setImmediate(resolve));
    }
    const plan = one.described.plan();
    for (const note of plan.notes) list.warn("openapi.note", one.label, note);
    checkSecurity(list, one.label, plan);
    checkSchemas(list, one);
  }
}

function checkOperationIds(list: CheckList, operations: readonly ApiOperation[]): void {
  const id = "openapi.operation-id";
  const owners = new Map<string, string[]>();
  const without: string[] = [];
  for (const { label, described } of operations) {
    const { operationId } = described;
    if (operationId === undefined) without.push(label);
    else owners.set(operationId, [...(owners.get(operationId) ?? []), label]);
  }
  const repeated = [...owners].filter(([, labels]) => labels.length > 1);
  for (const [operationId, labels] of repeated) {
    list.fail(id, operationId, `${labels.length} operations have this operationId.`, { evidence: labels });
  }
  for (const label of without)
    list.warn(id, label, "It has no operationId; its name is made of method and path.");
  if (repeated.length + without.length === 0 && operations.length > 0) {
    list.pass(id, "", "Every operation has an operationId of its own.");
  }
}

function checkSecurity(list: CheckList, label: string, plan: OperationPlan): void {
  const id = "openapi.security";
  const names = new Set(plan.security.flatMap((alternative) => Object.keys(alternative)));
  if (names.size === 0) return;
  let isRight = true;
  for (const name of names) {
    const scheme = Object.hasOwn(plan.schemes, name) ? plan.schemes[name] : undefined;
    if (scheme !== undefined && scheme.type !== "unknown") continue;
    isRight = false;
    const what = scheme === undefined ? "is not declared" : "is of a type that OpenAPI does not know";
    list.fail(id, label, `The security scheme "${name}" ${what}.`);
  }
  if (isRight) list.pass(id, label, `It asks for ${[...names].join(", ")}.`);
}

function checkSchemas(list: CheckList, { label, operation }: ApiOperation): void {
  const id = "openapi.schema";
  let isRight = true;
  for (const side of ["inputSchema", "outputSchema"] as const) {
    const schema = operation[side];
    if (schema === undefined) continue;
    const compiled = tryCompile(schema);
    if ("schema" in compiled) continue;
    isRight = false;
    const what = side === "inputSchema" ? "what it takes" : "what it answers";
    list.fail(id, label, `The schema of ${what} cannot be used. ${compiled.reason}`);
  }
  if (isRight) list.pass(id, label, "Its schemas can be used.");
}
