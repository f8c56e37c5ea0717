import type { Identity } from "../access/identity.ts";
import type { ResponseEnvelope } from "../envelope/response-meta.ts";
import { type CallError, isCallError, toCallError } from "../errors/errors.ts";
import { monotonicNow } from "../execution/cancellation.ts";
import type { AnyOperation } from "../operation/operation-types.ts";
import type { ExecuteOptions, Executor } from "../registry/executor.ts";
import type { ResultEntry } from "./result-store.ts";

/** A call that has ended, and all that is known about it. */
export interface EndedCall {
  readonly operationId: string;
  /** The name the caller used, where a surface has another one than the id. */
  readonly calledAs?: string | undefined;
  /** Absent when there is no such operation. */
  readonly operation: AnyOperation | undefined;
  readonly requestId: string;
  readonly identity: Identity | undefined;
  /** What makes a text of this result the caller's, for formats that keep some in a store. @default it is nobody's */
  readonly keeps?: Pick<ResultEntry, "owner" | "binding"> | undefined;
  /** From a monotonic clock. */
  readonly durationMs: number;
  /** What came back, or what it failed with. */
  readonly outcome: { readonly envelope: ResponseEnvelope } | { readonly error: CallError };
}

interface EndCallOptions extends ExecuteOptions {
  readonly requestId: string;
}

/** Calls an operation and waits for its end, whichever that is; it never throws for a call that failed. */
export async function endCall(
  executor: Executor,
  operationId: string,
  input: unknown,
  options: EndCallOptions,
): Promise<EndedCall> {
  const { requestId, identity } = options;
  const startedAt = monotonicNow();
  let outcome: EndedCall["outcome"];
  try {
    outcome = { envelope: await executor.execute(operationId, input, options) };
  } catch (thrown) {
    outcome = { error: toCallError(thrown) };
  }
  const durationMs = Math.max(0, monotonicNow() - startedAt);
  const isMissing = "error" in outcome && outcome.error.code === "OPERATION_NOT_FOUND";
  const operation = isMissing ? undefined : executor.get(operationId);
  return { operationId, operation, requestId, identity, durationMs, outcome };
}

/** Tells of an error whose cause nobody meant, which its caller hears nothing of. */
export function warnOfUnexpected(
  warn: (message: string, cause?: unknown) => void,
  { code, cause }: CallError,
  { operationId, requestId }: Pick<EndedCall, "operationId" | "requestId">,
): void {
  if (code !== "EXECUTION_ERROR" && code !== "UNKNOWN_ERROR") return;
  if (cause === undefined || isCallError(cause)) return;
  warn(`"${operationId}" failed unexpectedly (request ${requestId}).`, cause);
}
