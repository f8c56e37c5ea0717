import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { type CallError, isCallError } from "../core/errors/errors.ts";
import { monotonicNow, toDeadline } from "../core/execution/deadline.ts";
import { abortedError } from "./call-errors.ts";
import { assertSignal, type CallOptions, type RetryOptions, requestIdOf } from "./call-options.ts";
import { Linked } from "./linked-set.ts";
import { PendingCall } from "./pending-call.ts";
import type { Pending, PendingHost } from "./pending-request-map.ts";

const MAX_ATTEMPTS = 100;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;

/** What may go away by itself when a call is tried again. */
const WORTH_RETRYING: ReadonlySet<string> = new Set(["UNAVAILABLE", "NO_RESPONDER", "TIMEOUT"]);

/** Calls until there is an answer, under one request id; the answering side refuses what it must not run again. */
export async function callWithRetries(
  host: PendingHost,
  operationId: string,
  input: unknown,
  options: CallOptions,
  retry: RetryOptions,
  deadline: number,
): Promise<ResponseEnvelope> {
  const { attempts } = retry;
  if (!Number.isInteger(attempts) || attempts < 1 || attempts > MAX_ATTEMPTS) {
    throw new TypeError(`retry.attempts must be a whole number from 1 to ${MAX_ATTEMPTS}.`);
  }
  const { signal } = options;
  assertSignal(signal);
  if (signal?.aborted === true) throw abortedError(operationId, signal.reason);
  const call = new RetriedCall(host, operationId, options, retry, deadline);
  host.admit(call, operationId);
  try {
    return await call.run(input);
  } finally {
    host.release(call);
  }
}

/** A call that is tried until there is an answer. It has one place in its map, whichever try is under way, or none. */
class RetriedCall extends Linked implements Pending {
  readonly requestId: string;
  readonly hasFreshId: boolean;
  readonly #host: PendingHost;
  readonly #operationId: string;
  readonly #options: CallOptions;
  readonly #retry: RetryOptions;
  readonly #deadline: number;
  /** The try under way, or the pause before the next one. */
  #current: { giveUp(error: CallError): void } | undefined;
  /** Said perhaps between two tries, when there is nobody to hear it. */
  #givenUp: CallError | undefined;

  constructor(
    host: PendingHost,
    operationId: string,
    options: CallOptions,
    retry: RetryOptions,
    deadline: number,
  ) {
    super();
    this.#host = host;
    this.#operationId = operationId;
    this.requestId = requestIdOf(options);
    this.hasFreshId = this.requestId !== options.requestId;
    this.#options = { ...options, requestId: this.requestId };
    this.#retry = retry;
    this.#deadline = deadline;
  }

  giveUp(error: CallError): void {
    this.#givenUp = error;
    this.#current?.giveUp(error);
  }

  async run(input: unknown): Promise<ResponseEnvelope> {
    let mayHaveRun = 0;
    let failure: unknown;
    for (let tried = 1; ; tried++) {
      const attempt = this.#try(input, mayHaveRun + 1);
      try {
        return await attempt.answer;
      } catch (thrown) {
        // That it may not run again says less than why the try before failed.
        if (mayHaveRun > 0 && isCallError(thrown) && thrown.code === "CONFLICT") throw failure;
        failure = thrown;
        if (this.#givenUp !== undefined) throw this.#givenUp;
        if (!isCallError(thrown) || !WORTH_RETRYING.has(thrown.code) || tried >= this.#retry.attempts)
          throw thrown;
        if (attempt.call.mayHaveRun) mayHaveRun++;
        const pause =
          Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tried - 1)) * (0.5 + Math.random() / 2);
        if (monotonicNow() + pause >= this.#deadline) throw thrown;
        await this.#pause(pause);
      }
    }
  }

  #try(
    input: unknown,
    run: number,
  ): { readonly call: PendingCall; readonly answer: Promise<ResponseEnvelope> } {
    const { attemptTimeoutMs } = this.#retry;
    const now = monotonicNow();
    const own = attemptTimeoutMs === undefined ? this.#deadline : toDeadline(attemptTimeoutMs, now);
    const until = Math.min(this.#deadline, own);
    const isTimed = this.#options.timeoutMs !== undefined || attemptTimeoutMs !== undefined;
    const options = isTimed ? { ...this.#options, timeoutMs: Math.max(0, until - now) } : this.#options;
    const { promise, resolve, reject } = withResolvers<ResponseEnvelope>();
    const call = new PendingCall(this.#host, this.#operationId, options, until, resolve, reject, {
      attempt: run,
      isHeld: true,
    });
    this.#current = call;
    call.start(input);
    return { call, answer: promise };
  }

  /** Waits, or less when the signal aborts, which the next try finds out by itself. */
  async #pause(ms: number): Promise<void> {
    const { signal } = this.#options;
    const { promise, resolve, reject } = withResolvers<void>();
    this.#current = { giveUp: reject };
    if (this.#givenUp !== undefined) reject(this.#givenUp);
    const wake = () => resolve();
    const timer = setTimeout(wake, ms);
    signal?.addEventListener("abort", wake);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", wake);
    }
  }
}

function withResolvers<T>(): {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
} {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
