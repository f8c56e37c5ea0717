import type { Identity } from "../core/access/identity.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { type CallError, toCallError } from "../core/errors/errors.ts";
import {
  type AbortListener,
  addAbortListener,
  removeAbortListener,
} from "../core/execution/abort-listeners.ts";
import { monotonicNow } from "../core/execution/deadline.ts";
import type { Asker, AskLine } from "./bus.ts";
import { abortedError, deadlineError, fromErrorPayload, givenUpError } from "./call-errors.ts";
import type { AbortReason, AnswerEvent, CallRequested } from "./call-events.ts";
import type { ObservedCall } from "./call-observer.ts";
import {
  assertSignal,
  type CallOptions,
  createRequest,
  NO_CALL_OPTIONS,
  requestIdOf,
} from "./call-options.ts";
import type { Timed } from "./deadline-queue.ts";
import { Linked } from "./linked-set.ts";
import type { PendingHost } from "./pending-request-map.ts";

/** Which try of a call it is. */
export interface AttemptOptions {
  readonly attempt: number;
  /** The call it is a try of has the place in the map. */
  readonly isHeld: boolean;
}

const FIRST_TRY: AttemptOptions = Object.freeze({ attempt: 1, isHeld: false });

/** One call from the asking side. It is its own reply path: whoever holds it was given it by the map that made it. */
export class PendingCall extends Linked implements Asker, AbortListener, Timed {
  readonly requestId: string;
  readonly deadline: number;
  readonly hasFreshId: boolean;
  /** Whether the request went out and was not given back: the handler may have run. */
  mayHaveRun = false;
  readonly #host: PendingHost;
  readonly #operationId: string;
  readonly #options: CallOptions;
  readonly #attempt: number;
  readonly #isHeld: boolean;
  readonly #resolve: (envelope: ResponseEnvelope) => void;
  readonly #reject: (error: unknown) => void;
  #line: AskLine | undefined;
  #settled = false;
  /** Reports the call from when it is sent, where somebody observes the bus. */
  #observed: ObservedCall | undefined;

  constructor(
    host: PendingHost,
    operationId: string,
    options: CallOptions,
    deadline: number,
    resolve: (envelope: ResponseEnvelope) => void,
    reject: (error: unknown) => void,
    { attempt, isHeld }: AttemptOptions = FIRST_TRY,
  ) {
    super();
    this.#host = host;
    this.#operationId = operationId;
    this.#options = options;
    this.deadline = deadline;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#attempt = attempt;
    this.#isHeld = isHeld;
    this.requestId = requestIdOf(options);
    this.hasFreshId = this.requestId !== options.requestId;
  }

  /** Tells a call of this map from everything else, what merely inherits from one included. */
  static isOf(path: unknown, host: PendingHost): path is PendingCall {
    return typeof path === "object" && path !== null && #host in path && path.#host === host;
  }

  /** Sends the request; whatever goes wrong rejects the call. */
  start(input: unknown): void {
    const { signal, identity } = this.#options;
    try {
      assertSignal(signal);
      if (signal?.aborted === true) throw abortedError(this.#operationId, signal.reason);
      if (!this.#isHeld) this.#host.admit(this, this.#operationId);
      this.#host.deadlines.add(this);
      if (signal !== undefined) addAbortListener(signal, this);
      const credential = identity && this.#credentialFor(identity, input);
      if (credential instanceof Promise) {
        const send = (token: string) => this.#sendUnlessOver(input, token);
        credential.then(send).catch((thrown) => this.fail(toCallError(thrown)));
      } else this.#send(input, credential);
    } catch (thrown) {
      this.fail(thrown instanceof TypeError ? thrown : toCallError(thrown));
    }
  }

  #credentialFor(identity: Identity, input: unknown): string | Promise<string> | undefined {
    const call = { requestId: this.requestId, input, attempt: this.#attempt };
    return this.#host.credentialFor(identity, this.#operationId, call);
  }

  receive(event: AnswerEvent, bytes?: number): void {
    if (this.#settled) this.#host.counters.late++;
    else if (event.requestId !== this.requestId) this.#host.counters.forged++;
    else this.#take(event, bytes);
  }

  lost(error: CallError): void {
    // The bus itself says that nobody took it; a handler that says so has run.
    if (error.code === "NO_RESPONDER") this.mayHaveRun = false;
    this.fail(error);
  }

  onAbort(signal: AbortSignal): void {
    const isTimeout = toCallError(signal.reason).code === "TIMEOUT";
    this.giveUp(
      isTimeout ? deadlineError(this.#operationId) : abortedError(this.#operationId, signal.reason),
      isTimeout ? "deadline" : "aborted",
    );
  }

  expire(): void {
    this.giveUp(deadlineError(this.#operationId), "deadline");
  }

  /** Resolves the call, unless it has settled: an answer at or after the deadline is late. */
  settle(output: ResponseEnvelope): void {
    if (this.#settled) this.#host.counters.late++;
    else if (monotonicNow() >= this.deadline) this.expire();
    else {
      this.#finish();
      this.#observed?.responded(output, this.#observed.answerBytes);
      this.#resolve(output);
    }
  }

  giveUp(error: CallError, reason: AbortReason = "aborted"): void {
    if (this.#settled) return;
    this.#line?.send({ type: "call.aborted", requestId: this.requestId, reason });
    this.#abort(error, reason);
  }

  fail(error: Error, bytes?: number): void {
    if (this.#settled) return;
    this.#finish();
    this.#observed?.failed(toCallError(error).code, bytes);
    this.#reject(error);
  }

  #abort(error: CallError, reason: AbortReason, bytes?: number): void {
    if (this.#settled) return;
    this.#finish();
    this.#observed?.aborted(reason, error.code, bytes);
    this.#reject(error);
  }

  #take(event: AnswerEvent, bytes: number | undefined): void {
    switch (event.type) {
      case "call.responded":
        if (this.#observed !== undefined) this.#observed.answerBytes = bytes;
        this.#host.respond(this, event.output);
        break;
      case "call.error":
        this.fail(fromErrorPayload(event.error), bytes);
        break;
      case "call.aborted": {
        const { reason = "aborted" } = event;
        this.#abort(givenUpError(this.#operationId, event.reason), reason, bytes);
        break;
      }
      case "call.progress":
        this.#progress(event.value);
        break;
      case "call.completed":
        this.#host.counters.unexpected++;
    }
  }

  #progress(value: unknown): void {
    try {
      this.#options.onProgress?.(value);
    } catch {
      // Progress is information: what a listener makes of it never fails the call.
    }
  }

  #sendUnlessOver(input: unknown, credential: string): void {
    if (!this.#settled) this.#send(input, credential);
  }

  #send(input: unknown, credential: string | undefined): void {
    const request = this.#createRequest(input, credential);
    const { observers } = this.#host;
    if (observers !== undefined && observers.size > 0) {
      this.#observed = observers.observeRequest(request);
      this.#observed.sending();
      // Whoever observes may have given the call up.
      if (this.#settled) return;
    }
    this.mayHaveRun = true;
    let line: AskLine;
    try {
      line = this.#host.bus.request(request, this, this.#options.identity);
    } catch (thrown) {
      this.mayHaveRun = false;
      throw thrown;
    }
    // Whatever answers at once has settled the call by now.
    if (this.#settled) line.close();
    else this.#line = line;
    this.#observed?.requested(line.bytes);
  }

  #createRequest(input: unknown, credential: string | undefined): CallRequested {
    const { requestId } = this;
    const operationId = this.#operationId;
    const options = this.#options;
    // Most calls say nothing else, and are made of nothing else.
    if (options === NO_CALL_OPTIONS) return { type: "call.requested", requestId, operationId, input };
    return createRequest(this, operationId, input, options, {
      timeLeftMs: options.timeoutMs === undefined ? undefined : Math.max(0, this.deadline - monotonicNow()),
      attempt: this.#attempt > 1 ? this.#attempt : undefined,
      credential,
    });
  }

  #finish(): void {
    this.#settled = true;
    if (!this.#isHeld) this.#host.release(this);
    this.#host.deadlines.remove(this);
    const { signal } = this.#options;
    if (signal !== undefined) removeAbortListener(signal, this);
    this.#line?.close();
    this.#line = undefined;
  }
}
