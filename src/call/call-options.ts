import type { Identity } from "../core/access/identity.ts";
import { isAbortSignal } from "../core/execution/abort-listeners.ts";
import { EXECUTE_OPTIONS, isExecuteOption } from "../core/execution/call-scope.ts";
import { monotonicNow, toDeadline } from "../core/execution/deadline.ts";
import { isRequestId, randomId } from "../core/execution/request-id.ts";
import { checkOptionsObject, refuseName } from "../core/options/check-options.ts";
import type { ExecuteOptions } from "../core/registry/executor.ts";
import { overLimit } from "./call-errors.ts";
import type { CallRequested } from "./call-events.ts";
import type { BoundCall } from "./credentials/bound-call.ts";

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
  /** For operations that are called durably: the same key stands for the same call. @default none */
  readonly idempotencyKey?: string | undefined;
}

const OWN_OPTIONS: Readonly<Record<Exclude<keyof CallOptions, keyof ExecuteOptions>, true>> = {
  retry: true,
  idempotencyKey: true,
};
const OPTIONS: readonly string[] = [...EXECUTE_OPTIONS, ...Object.keys(OWN_OPTIONS)];

/** Throws a `TypeError` for an option of a call over a bus that there is not, or for options that are no object. */
export function checkCallOptions(options: object): void {
  if (typeof options !== "object") checkOptionsObject(options, OPTIONS);
  for (const name in options) {
    if (!isExecuteOption(name) && !Object.hasOwn(OWN_OPTIONS, name)) refuseName(options, name, OPTIONS);
  }
}

/** A call that is told nothing. */
export const NO_CALL_OPTIONS: CallOptions = Object.freeze({});

/** Makes the signed token that says who is asking, for one call. */
export type CredentialSource = (
  identity: Identity,
  operationId: string,
  call: BoundCall,
) => string | Promise<string>;

/** What only the one that asks knows about its request. */
type OwnFields = Pick<CallRequested, "timeLeftMs" | "attempt" | "credential" | "credit">;

/** Writes a request; only fields that say something are there, for others would be sent as undefined. */
export function createRequest(
  { requestId }: Pick<CallRequested, "requestId">,
  operationId: string,
  input: unknown,
  { metadata, onProgress, origin }: Pick<CallOptions, "metadata" | "onProgress" | "origin">,
  { timeLeftMs, attempt, credential, credit }: OwnFields,
): CallRequested {
  // Assigned one by one: conditional spreads cost more than the rest of a call within a process.
  const request: { -readonly [Field in keyof CallRequested]: CallRequested[Field] } = {
    type: "call.requested",
    requestId,
    operationId,
    input,
  };
  if (timeLeftMs !== undefined) request.timeLeftMs = timeLeftMs;
  if (attempt !== undefined) request.attempt = attempt;
  if (credential !== undefined) request.credential = credential;
  if (credit !== undefined) request.credit = credit;
  if (metadata !== undefined) request.metadata = metadata;
  if (onProgress !== undefined) request.progress = true;
  if (origin !== undefined) {
    request.depth = origin.depth;
    if (origin.parent !== undefined) request.parent = origin.parent;
  }
  return request;
}

/** The request id of a call: the caller's when it makes sense, else one that cannot be guessed. */
export function requestIdOf({ requestId }: CallOptions): string {
  return isRequestId(requestId) ? requestId : randomId();
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
