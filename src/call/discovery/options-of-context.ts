import { CallContext, inheritFrom } from "../../core/execution/call-context.ts";
import { monotonicNow } from "../../core/execution/deadline.ts";
import type { OperationContext } from "../../core/operation/operation-context.ts";
import type { ExecuteOptions } from "../../core/registry/executor.ts";

/** What a call over a bus takes over from the call whose handler makes it: who asks, until when, and how deep it is. */
export function optionsOfContext(
  context: OperationContext,
  ceilingMs = Number.POSITIVE_INFINITY,
): ExecuteOptions {
  const { requestId, operationId, identity, signal, deadline, metadata, progress } = context;
  return {
    signal,
    identity,
    metadata,
    // What is left to the call above is no wish of this one, so that it is cut rather than refused.
    timeoutMs:
      deadline === undefined ? undefined : Math.min(Math.max(0, deadline - monotonicNow()), ceilingMs),
    onProgress: progress,
    origin: { parent: { requestId, operationId }, depth: depthOf(context) + 1 },
  };
}

/** A context that is not ours, in a test of a handler say, starts at the top. */
function depthOf(context: OperationContext): number {
  return context instanceof CallContext ? inheritFrom(context).depth : 0;
}
