import type { Identity } from "../core/access/identity.ts";
import { isAbortSignal } from "../core/execution/abort-listeners.ts";
import { isRequestId } from "../core/execution/call-scope.ts";
import { monotonicNow, toDeadline } from "../core/execution/deadline.ts";
import type { ExecuteOptions } from "../core/registry/executor.ts";
import { overLimit } from "./call-errors.ts";
import type { CallRequested } from "./call-events.ts";

/** How often a call may be tried. */
export interface RetryOptions {
  /** Tries in all. A try that may have run is repeated only by operations that are declared idempotent. */
  readonly attempts: number;
  /** Milliseconds one try may take. @default what is left of the whole call */
  readonly attemptTimeoutMs?: number | undefined;
}

/** What a call over a bus may be told. */
export interface CallOptions extends ExecuteOptions {
  /** @default one try */
  readonly retry?: RetryOptions | undefined;
}

/** Makes the signed token that says who is asking. */
export type CredentialSource = (identity: Identity, operationId: string) => string | Promise<string>;

/** The fields of a request that come from the options of its call, those that are there. */
export function requestFields(options: CallOptions): Partial<CallRequested> | undefined {
  const { metadata, onProgress, origin } = options;
  if (metadata === undefined && onProgress === undefined && origin === undefined) return undefined;
  return {
    ...(metadata !== undefined && { metadata }),
    ...(onProgress !== undefined && { progress: true }),
    ...(origin !== undefined && { depth: origin.depth, ...(origin.parent && { parent: origin.parent }) }),
  };
}

/** The request id of a call: the caller's when it makes sense, else one that cannot be guessed. */
export function requestIdOf({ requestId }: CallOptions): string {
  return isRequestId(requestId) ? requestId : crypto.randomUUID();
}

/** When a call is over, on the monotonic clock; throws for more than the ceiling. */
export function deadlineOf(operationId: string, timeoutMs: number | undefined, ceilingMs: number): number {
  const now = monotonicNow();
  if (timeoutMs === undefined) return now + ceilingMs;
  const deadline = toDeadline(timeoutMs, now);
  if (timeoutMs <= ceilingMs) return deadline;
  const message = `The call of "${operationId}" asks for ${timeoutMs} ms; at most ${ceilingMs} ms are allowed.`;
  throw overLimit(message, { limit: "deadlineMs", allowed: ceilingMs }, false);
}

/** Throws unless the signal of a call can be waited on. */
export function assertSignal(signal: unknown): void {
  if (signal !== undefined && !isAbortSignal(signal)) throw new TypeError("signal must be an AbortSignal.");
}
