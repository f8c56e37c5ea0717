import type { Identity } from "../core/access/identity.ts";
import { isMarkedEnvelope } from "../core/envelope/envelope.ts";
import { isResponseEnvelope } from "../core/envelope/is-response-envelope.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { CallError, toCallError } from "../core/errors/errors.ts";
import { checkExecuteOptions } from "../core/execution/call-scope.ts";
import type { SubscribeOptions } from "../core/registry/executor.ts";
import type { Bus } from "./bus.ts";
import { type CallCounters, createCounters, type LiveCounters } from "./call-counters.ts";
import { overLimit, unproven } from "./call-errors.ts";
import { type CallLimits, readLimits } from "./call-limits.ts";
import type { CallObservers } from "./call-observer.ts";
import {
  type CallOptions,
  type CredentialSource,
  checkCallOptions,
  deadlineOf,
  NO_CALL_OPTIONS,
} from "./call-options.ts";
import { callWithRetries } from "./call-retries.ts";
import type { BoundCall } from "./credentials/bound-call.ts";
import { DeadlineQueue } from "./deadline-queue.ts";
import { type Linked, LinkedSet } from "./linked-set.ts";
import { PendingCall } from "./pending-call.ts";
import { PendingStream } from "./pending-stream.ts";

/** How calls are asked for. */
export interface PendingRequestMapOptions {
  /** Makes the signed token that says who is asking, on a bus that does not carry identities itself. */
  readonly credentials?: CredentialSource | undefined;
  readonly limits?: Partial<CallLimits> | undefined;
}

/** A call or subscription that has not settled. */
export interface Pending extends Linked {
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
  readonly deadlines: DeadlineQueue;
  readonly counters: LiveCounters;
  /** The signed token for an identity; nothing where none is needed. */
  credentialFor(
    identity: Identity | undefined,
    operationId: string,
    call: BoundCall,
  ): string | Promise<string> | undefined;
  admit(pending: Pending, operationId: string): void;
  release(pending: Pending): void;
  respond(path: unknown, output: unknown): void;
}

/**
 * The asking side of a bus: sends requests and settles each exactly once, with its answer, its error, an abort or its deadline.
 */
export class PendingRequestMap {
  readonly #pending = new LinkedSet<Pending>();
  /** Those whose request id the caller chose, which must not be under way twice. */
  readonly #named = new Map<string, Pending>();
  readonly #host: PendingHost;
  #closed = false;

  constructor(bus: Bus, options: PendingRequestMapOptions = {}) {
    const { credentials } = options;
    this.#host = {
      bus,
      observers: bus.observers,
      limits: readLimits(options.limits),
      deadlines: new DeadlineQueue(),
      counters: createCounters(),
      credentialFor: (identity, operationId, call) => {
        if (identity === undefined || bus.carriesIdentity) return undefined;
        if (credentials !== undefined) return credentials(identity, operationId, call);
        throw unproven(operationId);
      },
      admit: (pending, operationId) => this.#admit(pending, operationId),
      release: (pending) => {
        // A call that was refused for its request id is not the one that holds it.
        if (this.#pending.delete(pending) && !pending.hasFreshId) this.#named.delete(pending.requestId);
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

  /** Calls an operation and resolves with its envelope; rejects with a `CallError`. */
  call(operationId: string, input?: unknown, given?: CallOptions): Promise<ResponseEnvelope> {
    try {
      if (given !== undefined) checkCallOptions(given);
      // Read once: what an option says must not change on the way.
      const options = given === undefined ? NO_CALL_OPTIONS : { ...given };
      const deadline = deadlineOf(operationId, options.timeoutMs, this.#host.limits.deadlineMs);
      const { retry } = options;
      if (retry !== undefined)
        return callWithRetries(this.#host, operationId, input, options, retry, deadline);
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
    this.#host.deadlines.clear();
  }

  #admit(pending: Pending, operationId: string): void {
    if (this.#closed) {
      throw new CallError(
        "UNAVAILABLE",
        `"${operationId}" was called after the asking side had been closed.`,
        {
          retryable: false,
        },
      );
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
