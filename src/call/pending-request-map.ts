import type { Identity } from "../core/access/identity.ts";
import { isMarkedEnvelope, isResponseEnvelope } from "../core/envelope/envelope.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { CallError, isCallError, toCallError } from "../core/errors/errors.ts";
import { checkExecuteOptions } from "../core/execution/call-context.ts";
import { monotonicNow, toDeadline } from "../core/execution/cancellation.ts";
import { backoffMs } from "../core/limits/backoff.ts";
import { checkRetry, RETRY_DEFAULTS } from "../core/options/shared-options.ts";
import type { SubscribeOptions } from "../core/registry/executor.ts";
import type { Bus } from "./bus.ts";
import { abortedError, circuitOpen, overLimit, unproven } from "./call-errors.ts";
import { type CallCounters, type CallObservers, createCounters, type LiveCounters } from "./call-observer.ts";
import {
  assertSignal,
  type CallLimits,
  type CallOptions,
  type CallRetryOptions,
  type CredentialSource,
  checkCallOptions,
  deadlineOf,
  NO_CALL_OPTIONS,
  readCallLimits,
  requestIdOf,
} from "./call-options.ts";
import { type CircuitBreakerOptions, Circuits, readCircuitBreaker } from "./circuits.ts";
import type { BoundCall } from "./credentials/token-key.ts";
import { DeadlineQueue, type Timed } from "./deadline-queue.ts";
import { PendingCall, PendingStream } from "./pending-call.ts";
import { checkRetryBudget, RetryBudget, type RetryBudgetOptions } from "./retry-budget.ts";

/** How calls are asked for. */
export interface PendingRequestMapOptions {
  /** Makes the signed token that says who is asking, on a bus that does not carry identities itself. */
  readonly credentials?: CredentialSource | undefined;
  readonly limits?: Partial<CallLimits> | undefined;
  /** How many retries are sent for all calls together; false for as many as calls ask for. @default 20 % of the calls, and 10 a second */
  readonly retryBudget?: RetryBudgetOptions | false | undefined;
  /** When calls of an operation that answers nothing but `UNAVAILABLE` are not sent any more; false for never. @default after 50 in a row */
  readonly circuitBreaker?: CircuitBreakerOptions | false | undefined;
}

/** A call or subscription that has not settled. */
export interface PendingEntry extends Timed {
  readonly requestId: string;
  readonly hasFreshId: boolean;
  /** Ends it from this side, and tells the other. */
  giveUp(error: CallError): void;
}

/** What calls under way share with the map they are in; nobody outside holds it. */
export interface PendingHost {
  readonly bus: Bus;
  /** Those of the bus. */
  readonly observers: CallObservers | undefined;
  readonly limits: CallLimits;
  /** Tries of calls that have a place in the map themselves. */
  readonly tries: DeadlineQueue;
  readonly counters: LiveCounters;
  /** By operation. */
  readonly circuits: Circuits<string>;
  /** Nothing where calls are retried as often as they ask for. */
  readonly retryBudget: RetryBudget | undefined;
  /** The signed token for an identity; nothing where none is needed. */
  credentialFor(
    identity: Identity | undefined,
    operationId: string,
    call: BoundCall,
  ): string | Promise<string> | undefined;
  admit(pending: PendingEntry, operationId: string): void;
  release(pending: PendingEntry): void;
  respond(path: unknown, output: unknown): void;
}

/**
 * The asking side of a bus: sends requests and settles each exactly once, with its answer, its error, an abort or its deadline.
 */
export class PendingRequestMap {
  readonly #pending = new DeadlineQueue<PendingEntry>();
  /** Those whose request id the caller chose, which must not be under way twice. */
  readonly #named = new Map<string, PendingEntry>();
  readonly #host: PendingHost;
  #closed = false;

  constructor(bus: Bus, options: PendingRequestMapOptions = {}) {
    const { credentials, retryBudget } = options;
    checkRetryBudget(retryBudget);
    this.#host = {
      bus,
      observers: bus.observers,
      limits: readCallLimits(options.limits),
      tries: new DeadlineQueue(),
      counters: createCounters(),
      circuits: new Circuits({ ...readCircuitBreaker(options.circuitBreaker), most: MOST_CIRCUITS }),
      retryBudget: retryBudget === false ? undefined : new RetryBudget(retryBudget),
      credentialFor: (identity, operationId, call) => {
        if (identity === undefined || bus.carriesIdentity) return undefined;
        if (credentials !== undefined) return credentials(identity, operationId, call);
        throw unproven(operationId);
      },
      admit: (pending, operationId) => this.#admit(pending, operationId),
      release: (pending) => {
        // A call that was refused for its request id is not the one that holds it.
        if (this.#pending.remove(pending) && !pending.hasFreshId) this.#named.delete(pending.requestId);
      },
      respond: (path, output) => this.respond(path, output),
    };
  }

  /** Calls and subscriptions that have not settled. */
  get size(): number {
    return this.#pending.size;
  }

  /** What came back and was dropped, and why. */
  get counters(): CallCounters {
    return { ...this.#host.counters };
  }

  /** Operations whose circuit is open: calls are refused, but for one now and then that tries it. */
  get openCircuits(): readonly string[] {
    return this.#host.circuits.opened();
  }

  /** Calls an operation and resolves with its envelope; rejects with a `CallError`. */
  call(operationId: string, input?: unknown, given?: CallOptions): Promise<ResponseEnvelope> {
    try {
      if (given !== undefined) checkCallOptions(given);
      // Read once: what an option says must not change on the way.
      const options = given === undefined ? NO_CALL_OPTIONS : { ...given };
      const deadline = deadlineOf(operationId, options.timeoutMs, this.#host.limits.deadlineMs);
      const { retry } = options;
      if (retry !== undefined && retry !== false)
        return callWithRetries(this.#host, { operationId, options, retry, until: deadline }, input);
      return new Promise((resolve, reject) => {
        new PendingCall(this.#host, operationId, options, deadline, resolve, reject).start(input);
      });
    } catch (thrown) {
      return Promise.reject(thrown instanceof TypeError ? thrown : toCallError(thrown));
    }
  }

  /** Reads a subscription: nothing is sent before the first value is asked for, and leaving the loop stops the handler. */
  subscribe(
    operationId: string,
    input?: unknown,
    options: SubscribeOptions = {},
  ): AsyncIterableIterator<ResponseEnvelope, undefined> {
    checkExecuteOptions(options);
    return new PendingStream(this.#host, operationId, input, { ...options });
  }

  /**
   * Settles a call. `path` is the private reply path of that very call, which only a bus is given; for anything else, a request
   * id included, nothing happens but a count. Throws on an output that is not an envelope.
   */
  respond(path: unknown, output: unknown): void {
    if (!isMarkedEnvelope(output) && !isResponseEnvelope(output)) {
      throw new TypeError("Only a response envelope can be an answer; wrap the value with localEnvelope().");
    }
    if (PendingCall.isOf(path, this.#host)) path.settle(output);
    else this.#host.counters.forged++;
  }

  /** Aborts whatever has not settled; calls after this are refused. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const pending of this.#pending.toArray()) {
      pending.giveUp(new CallError("ABORTED", "The asking side was closed while the call was under way."));
    }
    this.#pending.clear();
    this.#host.tries.clear();
  }

  #admit(pending: PendingEntry, operationId: string): void {
    if (this.#closed) {
      throw new CallError(
        "UNAVAILABLE",
        `"${operationId}" was called after the asking side had been closed.`,
        {
          retryable: false,
        },
      );
    }
    const { circuits, counters } = this.#host;
    if (circuits.size > 0 && !circuits.passes(operationId)) {
      counters.circuitOpen++;
      throw circuitOpen(operationId);
    }
    const { pendingCalls } = this.#host.limits;
    if (this.#pending.size >= pendingCalls) {
      this.#host.counters.overLimit++;
      const message = `${pendingCalls} calls are waiting for their answers already; "${operationId}" was not sent.`;
      throw overLimit(message, { limit: "pendingCalls", allowed: pendingCalls });
    }
    if (!pending.hasFreshId && this.#named.has(pending.requestId)) {
      const message = `A call with the request id of this call of "${operationId}" is under way; leave requestId out.`;
      throw new CallError("CONFLICT", message);
    }
    if (!pending.hasFreshId) this.#named.set(pending.requestId, pending);
    this.#pending.add(pending);
  }
}

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;

/** Operations whose failures are remembered. */
const MOST_CIRCUITS = 10_000;

/** What may go away by itself when a call is tried again. */
const WORTH_RETRYING: ReadonlySet<string> = new Set(["UNAVAILABLE", "NO_RESPONDER", "TIMEOUT"]);

/** A member that has no room is another matter than one that says it never will. */
function isWorthRetrying({ code, retryable }: CallError): boolean {
  return WORTH_RETRYING.has(code) || (code === "RESOURCE_EXHAUSTED" && retryable);
}

/** A call that may be tried again. */
interface RetryPlan {
  readonly operationId: string;
  readonly options: CallOptions;
  readonly retry: CallRetryOptions;
  readonly until: number;
}

/** Calls until there is an answer, under one request id; the answering side refuses what it must not run again. */
async function callWithRetries(
  host: PendingHost,
  plan: RetryPlan,
  input: unknown,
): Promise<ResponseEnvelope> {
  const { operationId, options, retry } = plan;
  checkRetry("retry", retry, ["attemptTimeoutMs"]);
  const { signal } = options;
  assertSignal(signal);
  if (signal?.aborted === true) throw abortedError(operationId, signal.reason);
  const call = new RetriedCall(host, plan);
  host.admit(call, operationId);
  host.retryBudget?.earn();
  try {
    return await call.run(input);
  } finally {
    host.release(call);
  }
}

/** A call that is tried until there is an answer. It has one place in its map, whichever try is under way, or none. */
class RetriedCall implements PendingEntry {
  /** Each try has its own. */
  readonly deadline = Number.POSITIVE_INFINITY;
  before: Timed | undefined;
  after: Timed | undefined;
  readonly requestId: string;
  readonly hasFreshId: boolean;
  readonly #host: PendingHost;
  readonly #operationId: string;
  readonly #options: CallOptions;
  readonly #retry: CallRetryOptions;
  readonly #until: number;
  /** The try under way, or the pause before the next one. */
  #current: { giveUp(error: CallError): void } | undefined;
  /** Said perhaps between two tries, when there is nobody to hear it. */
  #givenUp: CallError | undefined;

  constructor(host: PendingHost, { operationId, options, retry, until }: RetryPlan) {
    this.#host = host;
    this.#operationId = operationId;
    this.requestId = requestIdOf(options);
    this.hasFreshId = this.requestId !== options.requestId;
    this.#options = { ...options, requestId: this.requestId };
    this.#retry = retry;
    this.#until = until;
  }

  giveUp(error: CallError): void {
    this.#givenUp = error;
    this.#current?.giveUp(error);
  }

  expire(): void {}

  async run(input: unknown): Promise<ResponseEnvelope> {
    let mayHaveRun = 0;
    let failure: CallError | undefined;
    for (let tried = 1; ; tried++) {
      const attempt = this.#try(input, mayHaveRun + 1, failure?.code);
      try {
        return await attempt.answer;
      } catch (thrown) {
        // That it may not run again says less than why the try before failed.
        if (mayHaveRun > 0 && isCallError(thrown) && thrown.code === "CONFLICT") throw failure;
        if (this.#givenUp !== undefined) throw this.#givenUp;
        const { attempts = RETRY_DEFAULTS.attempts } = this.#retry;
        if (!isCallError(thrown) || !isWorthRetrying(thrown) || tried >= attempts) throw thrown;
        failure = thrown;
        if (attempt.call.mayHaveRun) mayHaveRun++;
        const { delayMs = FIRST_PAUSE_MS, maxDelayMs = LONGEST_PAUSE_MS } = this.#retry;
        const pause = backoffMs(tried, delayMs, maxDelayMs);
        if (monotonicNow() + pause >= this.#until) throw thrown;
        this.#spend(thrown);
        await this.#pause(pause);
      }
    }
  }

  /** Counts one more try, or ends with the failure of the last one where all callers have retried enough. */
  #spend(failure: CallError): void {
    const { retryBudget, counters } = this.#host;
    if (retryBudget?.spend() === false) {
      counters.overBudget++;
      throw failure;
    }
    counters.retried++;
  }

  #try(
    input: unknown,
    run: number,
    retryOf: string | undefined,
  ): { readonly call: PendingCall; readonly answer: Promise<ResponseEnvelope> } {
    const { attemptTimeoutMs } = this.#retry;
    const now = monotonicNow();
    const own = attemptTimeoutMs === undefined ? this.#until : toDeadline(attemptTimeoutMs, now);
    const until = Math.min(this.#until, own);
    const isTimed = this.#options.timeoutMs !== undefined || attemptTimeoutMs !== undefined;
    const options = isTimed ? { ...this.#options, timeoutMs: Math.max(0, until - now) } : this.#options;
    const { promise, resolve, reject } = withResolvers<ResponseEnvelope>();
    const call = new PendingCall(this.#host, this.#operationId, options, until, resolve, reject, {
      attempt: run,
      isHeld: true,
      retryOf,
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
