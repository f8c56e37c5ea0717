import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { CallError, toCallError } from "../core/errors/errors.ts";
import {
  type AbortListener,
  addAbortListener,
  removeAbortListener,
} from "../core/execution/abort-listeners.ts";
import { monotonicNow, toDeadline } from "../core/execution/deadline.ts";
import type { SubscribeOptions } from "../core/registry/executor.ts";
import type { Asker, AskLine } from "./bus.ts";
import { abortedError, deadlineError, fromErrorPayload, givenUpError, overLimit } from "./call-errors.ts";
import type { AbortReason, AnswerEvent, CallResponded } from "./call-events.ts";
import type { ObservedCall } from "./call-observer.ts";
import { assertSignal, createRequest, requestIdOf } from "./call-options.ts";
import type { Timed } from "./deadline-queue.ts";
import { Linked } from "./linked-set.ts";
import type { PendingHost } from "./pending-request-map.ts";

type Step = IteratorResult<ResponseEnvelope, undefined>;

interface Reader {
  resolve(step: Step): void;
  reject(error: unknown): void;
}

const DONE: Step = Object.freeze({ done: true, value: undefined });

/**
 * One subscription from the asking side. What has arrived waits here for its reader, never more than was granted; more is
 * granted when half of that has been read.
 */
export class PendingStream
  extends Linked
  implements AsyncIterableIterator<ResponseEnvelope, undefined>, Asker, AbortListener, Timed
{
  readonly requestId: string;
  readonly deadline: number;
  readonly hasFreshId: boolean;
  readonly #host: PendingHost;
  readonly #operationId: string;
  readonly #input: unknown;
  readonly #options: SubscribeOptions;
  readonly #window: number;
  #state: "not started" | "open" | "over" = "not started";
  #line: AskLine | undefined;
  #arrived: ResponseEnvelope[] = [];
  #readers: Reader[] = [];
  #next = 0;
  /** Yields granted and not yet arrived. */
  #granted: number;
  #readSinceGrant = 0;
  /** Reports the subscription from when it is sent, where somebody observes the bus. */
  #observed: ObservedCall | undefined;
  /** What the reader hears once everything that arrived has been read. */
  #end: CallError | "completed" | undefined;

  constructor(host: PendingHost, operationId: string, input: unknown, options: SubscribeOptions) {
    super();
    assertSignal(options.signal);
    this.#host = host;
    this.#operationId = operationId;
    this.#input = input;
    this.#options = options;
    this.#window = host.limits.streamBuffer;
    this.#granted = this.#window;
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
    const envelope = this.#arrived.shift();
    if (envelope !== undefined) {
      this.#grantMore();
      return Promise.resolve({ done: false, value: envelope });
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
      if (this.deadline !== Number.POSITIVE_INFINITY) this.#host.deadlines.add(this);
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
    });
    const { observers } = this.#host;
    if (observers !== undefined && observers.size > 0) {
      this.#observed = observers.observeRequest(request);
      this.#observed.sending();
      // Whoever observes may have given it up.
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
      this.#host.counters.overLimit++;
      const message = `Whoever runs "${this.#operationId}" sent more than was asked for.`;
      this.#breakOff(overLimit(message, { limit: "streamBuffer", allowed: this.#window }));
    } else {
      this.#next++;
      this.#granted--;
      this.#hand(output);
      this.#observed?.responded(output, bytes);
    }
  }

  #hand(output: ResponseEnvelope): void {
    const reader = this.#readers.shift();
    if (reader === undefined) this.#arrived.push(output);
    else {
      this.#grantMore();
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

  #grantMore(): void {
    this.#readSinceGrant++;
    if (this.#state !== "open" || this.#readSinceGrant * 2 < this.#window) return;
    const credit = this.#readSinceGrant;
    this.#readSinceGrant = 0;
    this.#granted += credit;
    this.#line?.send({ type: "call.credit", requestId: this.requestId, credit });
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
    this.#host.deadlines.remove(this);
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

  /** An error is heard once; whoever asks again is told that it is over. */
  #lastStep(): Promise<Step> {
    const end = this.#end;
    this.#end = "completed";
    return end instanceof CallError ? Promise.reject(end) : Promise.resolve(DONE);
  }
}
