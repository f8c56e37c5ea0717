import type { Identity } from "../core/access/identity.ts";
import type { CallErrorJSON } from "../core/errors/errors.ts";
import { EXECUTE_OPTIONS, isExecuteOption, isRequestId, randomId } from "../core/execution/call-context.ts";
import { isAbortSignal, monotonicNow, toDeadline } from "../core/execution/cancellation.ts";
import { checkOptionsObject, refuseName } from "../core/options/check-options.ts";
import type { RetryOptions } from "../core/options/shared-options.ts";
import type { ExecuteOptions } from "../core/registry/executor.ts";
import { overLimit } from "./call-errors.ts";
import type { CallRequested } from "./call-events.ts";
import type { BoundCall } from "./credentials/token-key.ts";

/** How often a call may be tried. A try that may have run is repeated only by operations that are declared idempotent. */
export interface CallRetryOptions extends RetryOptions {
  /** As in `RetryOptions`, but shorter: the next try goes to another member. @default 20 */
  readonly delayMs?: number | undefined;
  /** @default 1_000 */
  readonly maxDelayMs?: number | undefined;
  /** Milliseconds one try may take. @default what is left of the whole call */
  readonly attemptTimeoutMs?: number | undefined;
}

/** What a call over a bus may be told. */
export interface CallOptions extends ExecuteOptions {
  /** @default one try */
  readonly retry?: CallRetryOptions | false | undefined;
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
type OwnFields = Pick<CallRequested, "timeLeftMs" | "attempt" | "credential" | "credit" | "creditBytes">;

/** Writes a request; only fields that say something are there, for others would be sent as undefined. */
export function createRequest(
  { requestId }: Pick<CallRequested, "requestId">,
  operationId: string,
  input: unknown,
  { metadata, onProgress, origin }: Pick<CallOptions, "metadata" | "onProgress" | "origin">,
  { timeLeftMs, attempt, credential, credit, creditBytes }: OwnFields,
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
  if (creditBytes !== undefined) request.creditBytes = creditBytes;
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

/** What a bus and both of its sides take on before they refuse more with `RESOURCE_EXHAUSTED`. */
export const CALL_LIMITS = {
  /** Calls and subscriptions one asking side waits for. */
  pendingCalls: 10_000,
  /** Calls and subscriptions one answering side runs at a time. */
  runningCalls: 10_000,
  /** Bytes of one event, written down; in chunks where the bus carries less at a time. */
  messageBytes: 16 * 1024 * 1024,
  /** Yields of one subscription that wait for their reader. */
  streamBuffer: 64,
  /** Bytes of them, written down; the last one may take more than is left. */
  streamBytes: 4 * 1024 * 1024,
  /** Milliseconds a call may take, and takes at most where it says nothing. */
  deadlineMs: 300_000,
  /** Request ids an answering side remembers, so that none runs twice. */
  rememberedRequests: 100_000,
  /** Operations one service may offer, and services one directory holds. */
  operations: 100_000,
  services: 10_000,
} as const;

/** The error that says that something is too large must not be. */
const LEAST_MESSAGE_BYTES = 2_048;

/** Limits by name; what is left out takes its default. */
export type CallLimits = { readonly [Limit in keyof typeof CALL_LIMITS]: number };

/** Fills in the defaults; a `TypeError` names the limit that makes no sense. */
export function readCallLimits(given: Partial<CallLimits> = {}): CallLimits {
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(CALL_LIMITS, name)) throw new TypeError(`There is no limit called "${name}".`);
    if (value !== undefined && !(Number.isInteger(value) && value > 0)) {
      throw new TypeError(`limits.${name} must be a whole number, 1 or more.`);
    }
    if (name === "messageBytes" && value < LEAST_MESSAGE_BYTES) {
      throw new TypeError(`limits.messageBytes must be at least ${LEAST_MESSAGE_BYTES}.`);
    }
  }
  const defined = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return { ...CALL_LIMITS, ...defined };
}

/** A durable call that has ended in an error, and will not be tried again by itself. */
export interface FailedCall {
  readonly requestId: string;
  readonly operationId: string;
  /** Unix epoch milliseconds. */
  readonly failedAt: number;
  readonly error: CallErrorJSON;
}

/** Which failed calls are listed. */
export interface FailedCallsOptions {
  /** How many at most, up to 1,000. @default 100 */
  readonly limit?: number | undefined;
  /** Those behind the `next` of another list. @default from the oldest that is kept */
  readonly after?: number | undefined;
}

/** Failed calls, the oldest first. */
export interface FailedCallsPage {
  readonly calls: readonly FailedCall[];
  /** Where the next page begins; absent where there is none. */
  readonly next?: number;
}
