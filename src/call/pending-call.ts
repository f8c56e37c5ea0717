import type { Identity } from "../core/access/identity.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { CallError, toCallError } from "../core/errors/errors.ts";
import {
  type AbortListener,
  addAbortListener,
  monotonicNow,
  removeAbortListener,
  toDeadline,
} from "../core/execution/cancellation.ts";
import type { SubscribeOptions } from "../core/registry/executor.ts";
import type { Asker, AskLine } from "./bus.ts";
import { abortedError, deadlineError, fromErrorPayload, givenUpError, overLimit } from "./call-errors.ts";
import {
  type AbortReason,
  type AnswerEvent,
  type CallRequested,
  type CallResponded,
  turnedAway,
} from "./call-events.ts";
import type { ObservedCall } from "./call-observer.ts";
import {
  assertSignal,
  type CallOptions,
  createRequest,
  NO_CALL_OPTIONS,
  requestIdOf,
} from "./call-options.ts";
import { countedBytes } from "./credit-gate.ts";
import type { Timed } from "./deadline-queue.ts";
import type { PendingEntry, PendingHost } from "./pending-request-map.ts";

/** Which try of a call it is. */
export interface AttemptOptions {
  readonly attempt: number;
  /** The call it is a try of has the place in the map. */
  readonly isHeld: boolean;
  /** The code the try before ended with. */
  readonly retryOf?: string | undefined;
}

const FIRST_TRY: AttemptOptions = Object.freeze({ attempt: 1, isHeld: false, retryOf: undefined });

/** One call from the asking side. It is its own reply path: only those who were given it by the map that made it hold it. */
export class PendingCall implements Asker, AbortListener, PendingEntry {
  readonly requestId: string;
  readonly deadline: number;
  readonly hasFreshId: boolean;
  readonly retryOf: string | undefined;
  before: Timed | undefined;
  after: Timed | undefined;
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
    { attempt, isHeld, retryOf }: AttemptOptions = FIRST_TRY,
  ) {
    this.#host = host;
    this.#operationId = operationId;
    this.#options = options;
    this.deadline = deadline;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#attempt = attempt;
    this.#isHeld = isHeld;
    this.retryOf = retryOf;
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
      if (this.#isHeld) this.#host.tries.add(this);
      else this.#host.admit(this, this.#operationId);
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
      if (this.#host.circuits.size > 0) this.#host.circuits.succeeded(this.#operationId);
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
        if (event.notRun === true) this.mayHaveRun = false;
        if (turnedAway(event) === "failed") this.#host.circuits.failed(this.#operationId);
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
      // An observer may have given the call up.
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
    if (this.#isHeld) this.#host.tries.remove(this);
    else this.#host.release(this);
    const { signal } = this.#options;
    if (signal !== undefined) removeAbortListener(signal, this);
    this.#line?.close();
    this.#line = undefined;
  }
}

type Step = IteratorResult<ResponseEnvelope, undefined>;

interface Reader {
  resolve(step: Step): void;
  reject(error: unknown): void;
}

/** A value that waits for its reader, and the bytes of it that count. */
interface Arrived {
  readonly output: ResponseEnvelope;
  readonly bytes: number;
}

/** Bytes that are granted at a time at most. */
const MOST_GRANTED = 2 ** 30;

const DONE: Step = Object.freeze({ done: true, value: undefined });

/**
 * One subscription from the asking side. What has arrived waits here for its reader, never more than was granted; more is
 * granted when half of that has been read.
 */
export class PendingStream
  implements AsyncIterableIterator<ResponseEnvelope, undefined>, Asker, AbortListener, PendingEntry
{
  readonly requestId: string;
  readonly deadline: number;
  before: Timed | undefined;
  after: Timed | undefined;
  readonly hasFreshId: boolean;
  readonly #host: PendingHost;
  readonly #operationId: string;
  readonly #input: unknown;
  readonly #options: SubscribeOptions;
  readonly #window: number;
  /** Infinite on a bus that writes nothing down. */
  readonly #windowBytes: number;
  #state: "not started" | "open" | "over" = "not started";
  #line: AskLine | undefined;
  #arrived: Arrived[] = [];
  #readers: Reader[] = [];
  #next = 0;
  /** Yields granted and not yet arrived. */
  #granted: number;
  #readSinceGrant = 0;
  /** Bytes granted and not yet arrived; the last yield that was sent for them may have taken more. */
  #grantedBytes: number;
  #bytesSinceGrant = 0;
  /** Reports the subscription from when it is sent, where somebody observes the bus. */
  #observed: ObservedCall | undefined;
  /** What the reader hears once everything that arrived has been read. */
  #end: CallError | "completed" | undefined;

  constructor(host: PendingHost, operationId: string, input: unknown, options: SubscribeOptions) {
    assertSignal(options.signal);
    this.#host = host;
    this.#operationId = operationId;
    this.#input = input;
    this.#options = options;
    this.#window = host.limits.streamBuffer;
    this.#granted = this.#window;
    const isMeasured = host.observers?.isMeasured === true;
    this.#windowBytes = isMeasured
      ? Math.min(host.limits.streamBytes, MOST_GRANTED)
      : Number.POSITIVE_INFINITY;
    this.#grantedBytes = this.#windowBytes;
    this.requestId = requestIdOf(options);
    this.hasFreshId = this.requestId !== options.requestId;
    const { timeoutMs } = options;
    this.deadline =
      timeoutMs === undefined ? Number.POSITIVE_INFINITY : toDeadline(timeoutMs, monotonicNow());
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Step> {
    if (this.#state === "not started") this.#start();
    const arrived = this.#arrived.shift();
    if (arrived !== undefined) {
      this.#grantMore(arrived.bytes);
      return Promise.resolve({ done: false, value: arrived.output });
    }
    if (this.#state === "over") return this.#lastStep();
    return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
  }

  /** Leaves: the handler's signal aborts. */
  async return(): Promise<Step> {
    this.#arrived = [];
    if (this.#state === "open") this.#giveUp("completed", "left");
    this.#state = "over";
    this.#end = undefined;
    return DONE;
  }

  receive(event: AnswerEvent, bytes?: number): void {
    if (this.#state !== "open") this.#host.counters.late++;
    else if (event.requestId !== this.requestId) this.#host.counters.forged++;
    else this.#take(event, bytes);
  }

  lost(error: CallError): void {
    this.#finish(error);
  }

  giveUp(error: CallError): void {
    this.#giveUp(error, "aborted");
  }

  onAbort(signal: AbortSignal): void {
    const isTimeout = toCallError(signal.reason).code === "TIMEOUT";
    if (isTimeout) this.expire();
    else this.#giveUp(abortedError(this.#operationId, signal.reason), "aborted");
  }

  expire(): void {
    this.#giveUp(deadlineError(this.#operationId), "deadline");
  }

  #start(): void {
    const { signal, identity } = this.#options;
    this.#state = "open";
    try {
      if (signal?.aborted === true) throw abortedError(this.#operationId, signal.reason);
      if (monotonicNow() >= this.deadline) throw deadlineError(this.#operationId);
      this.#host.admit(this, this.#operationId);
      if (signal !== undefined) addAbortListener(signal, this);
      const credential = this.#host.credentialFor(identity, this.#operationId, {
        requestId: this.requestId,
        input: this.#input,
      });
      if (credential instanceof Promise) {
        credential
          .then((token) => this.#state === "open" && this.#send(token))
          .catch((thrown) => this.#finish(toCallError(thrown)));
      } else this.#send(credential);
    } catch (thrown) {
      this.#finish(toCallError(thrown));
    }
  }

  #send(credential: string | undefined): void {
    const { identity } = this.#options;
    const isTimed = this.deadline !== Number.POSITIVE_INFINITY;
    const request = createRequest(this, this.#operationId, this.#input, this.#options, {
      timeLeftMs: isTimed ? Math.max(0, this.deadline - monotonicNow()) : undefined,
      credential,
      credit: this.#window,
      creditBytes: this.#windowBytes === Number.POSITIVE_INFINITY ? undefined : this.#windowBytes,
    });
    const { observers } = this.#host;
    if (observers !== undefined && observers.size > 0) {
      this.#observed = observers.observeRequest(request);
      this.#observed.sending();
      // An observer may have given it up.
      if (this.#isOver) return;
    }
    const line = this.#host.bus.request(request, this, identity);
    if (this.#isOver) line.close();
    else this.#line = line;
    this.#observed?.requested(line.bytes);
  }

  get #isOver(): boolean {
    return this.#state === "over";
  }

  #take(event: AnswerEvent, bytes: number | undefined): void {
    switch (event.type) {
      case "call.responded":
        this.#arrive(event, bytes);
        break;
      case "call.completed":
        if (event.count === this.#next) this.#finish("completed", undefined, bytes);
        else this.#gap(event.count);
        break;
      case "call.error":
        if (turnedAway(event) === "failed") this.#host.circuits.failed(this.#operationId);
        this.#finish(fromErrorPayload(event.error), undefined, bytes);
        break;
      case "call.aborted":
        this.#finish(givenUpError(this.#operationId, event.reason), event.reason ?? "aborted", bytes);
        break;
      case "call.progress":
        this.#progress(event.value);
        break;
    }
  }

  #arrive({ output, sequence }: CallResponded, bytes: number | undefined): void {
    if (sequence === undefined) {
      this.#host.counters.unexpected++;
    } else if (sequence < this.#next) {
      this.#host.counters.duplicate++;
    } else if (sequence > this.#next) {
      this.#gap(sequence);
    } else if (this.#granted === 0) {
      this.#refuse("streamBuffer", this.#window);
    } else if (this.#grantedBytes <= 0) {
      this.#refuse("streamBytes", this.#windowBytes);
    } else {
      if (this.#host.circuits.size > 0) this.#host.circuits.succeeded(this.#operationId);
      this.#next++;
      this.#granted--;
      const counted = countedBytes(bytes);
      this.#grantedBytes -= counted;
      this.#hand(output, counted);
      this.#observed?.responded(output, bytes);
    }
  }

  #refuse(limit: "streamBuffer" | "streamBytes", allowed: number): void {
    this.#host.counters.overLimit++;
    const message = `The service that runs "${this.#operationId}" sent more than was asked for.`;
    this.#breakOff(overLimit(message, { limit, allowed }));
  }

  #hand(output: ResponseEnvelope, bytes: number): void {
    const reader = this.#readers.shift();
    if (reader === undefined) this.#arrived.push({ output, bytes });
    else {
      this.#grantMore(bytes);
      reader.resolve({ done: false, value: output });
    }
  }

  #gap(received: number): void {
    this.#host.counters.gaps++;
    const message = `Part of what "${this.#operationId}" sent was lost on the way.`;
    const details = { expected: this.#next, received };
    this.#breakOff(new CallError("UNAVAILABLE", message, { details, stack: false }));
  }

  #progress(value: unknown): void {
    try {
      this.#options.onProgress?.(value);
    } catch {
      // Progress is information: what a listener makes of it never fails the subscription.
    }
  }

  #grantMore(read: number): void {
    this.#readSinceGrant++;
    this.#bytesSinceGrant += read;
    const isHalf = this.#readSinceGrant * 2 >= this.#window || this.#bytesSinceGrant * 2 >= this.#windowBytes;
    if (this.#state !== "open" || !isHalf) return;
    const credit = this.#readSinceGrant;
    const bytes = this.#bytesSinceGrant;
    this.#readSinceGrant = 0;
    this.#bytesSinceGrant = 0;
    this.#granted += credit;
    this.#grantedBytes += bytes;
    const { requestId } = this;
    this.#line?.send({ type: "call.credit", requestId, credit, ...(bytes > 0 && { bytes }) });
  }

  /** Ends from this side: what has arrived is not delivered any more. */
  #giveUp(end: CallError | "completed", reason: AbortReason): void {
    if (this.#state !== "open") return;
    this.#stopOther(reason);
    this.#finish(end, reason);
  }

  /** Ends because of what the other side did wrong. */
  #breakOff(error: CallError): void {
    this.#stopOther("aborted");
    this.#finish(error);
  }

  #stopOther(reason: AbortReason): void {
    this.#arrived = [];
    this.#line?.send({ type: "call.aborted", requestId: this.requestId, reason });
  }

  /** `aborted` says why, where one side gave up. */
  #finish(end: CallError | "completed", aborted?: AbortReason, bytes?: number): void {
    if (this.#state === "over") return;
    this.#state = "over";
    this.#end = end;
    this.#host.release(this);
    const { signal } = this.#options;
    if (signal !== undefined) removeAbortListener(signal, this);
    this.#line?.close();
    this.#line = undefined;
    this.#report(end, aborted, bytes);
    const readers = this.#readers;
    this.#readers = [];
    for (const { resolve, reject } of readers) this.#lastStep().then(resolve, reject);
  }

  #report(end: CallError | "completed", aborted?: AbortReason, bytes?: number): void {
    const code = end === "completed" ? undefined : end.code;
    if (aborted !== undefined) this.#observed?.aborted(aborted, code, bytes);
    else if (code !== undefined) this.#observed?.failed(code, bytes);
    else this.#observed?.completed(bytes);
  }

  /** An error is heard once; a later read is told that it is over. */
  #lastStep(): Promise<Step> {
    const end = this.#end;
    this.#end = "completed";
    return end instanceof CallError ? Promise.reject(end) : Promise.resolve(DONE);
  }
}
