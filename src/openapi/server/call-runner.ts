import { CallError, isCallError } from "../../core/errors/errors.ts";
import { addAbortListener } from "../../core/execution/abort-listeners.ts";
import type { Metadata } from "../../core/operation/operation-context.ts";
import type { Executor } from "../../core/registry/executor.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { type EndedCall, endCall } from "../../core/result/ended-call.ts";
import type { Representation } from "./accept.ts";
import type { HttpHandlerBounds } from "./check-handler-options.ts";
import type { AnswerHeaders, AuthenticatedRequest, HttpAnswer } from "./http-exchange.ts";
import { IdempotentAnswers } from "./idempotency.ts";
import { problemAnswer, requestError } from "./problem-answer.ts";
import { writeAnswer, writeOutcome } from "./write-answer.ts";

/** A call somebody wants, and how the answer is to look. */
export interface WantedCall {
  readonly caller: AuthenticatedRequest;
  readonly operationId: string;
  readonly input: unknown;
  readonly representation: Representation;
  /** Milliseconds the caller will wait. */
  readonly timeoutMs: number;
  /** Whether the answer goes into a larger JSON document. */
  readonly nested?: boolean | undefined;
  readonly idempotencyKey?: string | undefined;
  /** Tells the input from others; only with a key. */
  readonly fingerprint?: string | undefined;
  /** Sees the call once it has ended, before it is written. */
  readonly onEnd?: ((call: EndedCall) => void) | undefined;
}

/** Codes of calls that never got as far as their handler, or that may be made again as they are. */
const NOT_FINAL = new Set([
  "ABORTED",
  "ACCESS_DENIED",
  "OPERATION_NOT_FOUND",
  "UNAUTHENTICATED",
  "UPGRADE_REQUIRED",
  "VALIDATION_ERROR",
]);

/** Runs calls, so many at a time, and writes what they come to. */
export class CallRunner {
  readonly #executor: Executor;
  readonly #bounds: HttpHandlerBounds;
  readonly #challenge: string;
  readonly #answers: IdempotentAnswers;
  readonly #takesAnySignal: boolean;
  #running = 0;

  constructor(executor: Executor, bounds: HttpHandlerBounds, challenge: string) {
    this.#executor = executor;
    this.#takesAnySignal = executor instanceof OperationRegistry;
    this.#bounds = bounds;
    this.#challenge = challenge;
    this.#answers = new IdempotentAnswers(bounds);
  }

  /** Runs a call, or repeats what it came to before; a call that failed is an answer too. */
  run(wanted: WantedCall): Promise<HttpAnswer> {
    const { idempotencyKey, fingerprint = "", caller, operationId } = wanted;
    if (idempotencyKey === undefined) return this.#run(wanted);
    const call = {
      key: JSON.stringify([caller.identity?.subject, operationId, idempotencyKey]),
      fingerprint,
      signal: caller.request.signal,
      patienceMs: wanted.timeoutMs,
    };
    return this.#answers.run(call, async () => {
      let isKept = true;
      const answer = await this.#run(wanted, () => {
        isKept = false;
      });
      return { answer, isFinal: isKept };
    });
  }

  /** What handlers see of a request. */
  metadata({ traceparent, tracestate }: AuthenticatedRequest, idempotencyKey?: string): Metadata {
    const metadata: Record<string, string> = { traceparent };
    if (tracestate !== undefined) metadata["tracestate"] = tracestate;
    if (idempotencyKey !== undefined) metadata["idempotencyKey"] = idempotencyKey;
    return metadata;
  }

  /** Tells `onPassing` where the same call may come to something else. */
  async #run(wanted: WantedCall, onPassing?: () => void): Promise<HttpAnswer> {
    const { caller, representation, nested = false } = wanted;
    if (this.#running >= this.#bounds.calls) {
      onPassing?.();
      return problemAnswer(tooMany(), caller.requestId);
    }
    this.#running += 1;
    try {
      const call = endedByUs(await this.#call(wanted), caller.request.signal);
      if (onPassing !== undefined && !isFinal(call)) onPassing();
      wanted.onEnd?.(call);
      const options = { representation, nested, errorHeaders: this.errorHeaders };
      return representation.kind === "format"
        ? await writeAnswer(call, options)
        : writeOutcome(call, options);
    } catch (thrown) {
      // The call ran; that its result cannot be written changes nothing about that.
      if (!isCallError(thrown)) throw thrown;
      return problemAnswer(thrown, caller.requestId);
    } finally {
      this.#running -= 1;
    }
  }

  /** What an answer with this status says beyond its problem. */
  readonly errorHeaders = (status: number): AnswerHeaders | undefined =>
    status === 401 ? { "www-authenticate": this.#challenge } : undefined;

  #call(wanted: WantedCall): Promise<EndedCall> {
    const { caller, operationId, input, timeoutMs, idempotencyKey } = wanted;
    return endCall(this.#executor, operationId, input, {
      requestId: caller.requestId,
      identity: caller.identity,
      signal: this.#takesAnySignal ? caller.request.signal : toPlatformSignal(caller.request.signal),
      timeoutMs: Math.min(timeoutMs, this.#bounds.timeoutMs),
      metadata: this.metadata(caller, idempotencyKey),
    });
  }
}

/** Whoever ended a call from this side says why; a client that left hears nothing anyway. */
function endedByUs(call: EndedCall, signal: AbortSignal): EndedCall {
  const { outcome } = call;
  const wasEnded = signal.aborted && "error" in outcome && outcome.error.code === "ABORTED";
  return wasEnded && isCallError(signal.reason) ? { ...call, outcome: { error: signal.reason } } : call;
}

/** Only a registry of ours knows the light signals of connections. */
function toPlatformSignal(signal: AbortSignal): AbortSignal {
  if (signal instanceof AbortSignal) return signal;
  const controller = new AbortController();
  const onAbort = (from: AbortSignal): void => controller.abort(from.reason);
  if (isAborted(signal)) onAbort(signal);
  else addAbortListener(signal, { onAbort });
  return controller.signal;
}

function isAborted(signal: { readonly aborted: boolean }): boolean {
  return signal.aborted;
}

function tooMany(): CallError {
  return new CallError("RESOURCE_EXHAUSTED", "Too many calls run at the moment; try again later.", {
    details: { retryAfterMs: 1_000 },
    stack: false,
  });
}

function isFinal({ outcome }: EndedCall): boolean {
  return "envelope" in outcome || (!outcome.error.retryable && !NOT_FINAL.has(outcome.error.code));
}

/** Reads how long a caller will wait, in milliseconds. */
export function readPatience(header: string | undefined, otherwise: number): number {
  if (header === undefined) return otherwise;
  if (/^\d{1,10}$/.test(header)) return Number(header);
  throw requestError("VALIDATION_ERROR", "The time to wait must be a whole number of milliseconds.");
}
