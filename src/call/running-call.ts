import type { Identity } from "../core/access/identity.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { errorTraits } from "../core/errors/error-codes.ts";
import { CallError, isCallError, toCallError } from "../core/errors/errors.ts";
import { monotonicNow } from "../core/execution/deadline.ts";
import type { ExecuteOptions } from "../core/registry/executor.ts";
import type { Answerer, AnswerLine, Delivery } from "./bus.ts";
import { deadlineError, repeated, toErrorPayload, unread } from "./call-errors.ts";
import type { AbortReason, AnswerEvent, AskerEvent, CallRequested } from "./call-events.ts";
import type { Authenticate, RunningHost, Stopping } from "./call-handler.ts";
import type { ObservedCall } from "./call-observer.ts";
import { CreditGate } from "./credit-gate.ts";
import type { Timed } from "./deadline-queue.ts";
import { Linked } from "./linked-set.ts";

/** Reports of progress that may wait to be sent. */
const UNSENT_REPORTS = 1_000;

/** One call from the answering side: runs it, and publishes what comes of it. */
export class RunningCall extends Linked implements Answerer, Timed {
  readonly deadline: number;
  readonly #host: RunningHost;
  readonly #delivery: Delivery;
  readonly #line: AnswerLine;
  readonly #stopping: Stopping;
  readonly #credit: CreditGate | undefined;
  readonly #observed: ObservedCall | undefined;
  #over = false;
  #unsentReports = 0;

  constructor(host: RunningHost, delivery: Delivery, line: AnswerLine, observed?: ObservedCall) {
    super();
    const { credit, timeLeftMs } = delivery.request;
    const { deadlineMs } = host.limits;
    this.#host = host;
    this.#delivery = delivery;
    this.#line = line;
    this.#observed = observed;
    this.#stopping = host.createStopping();
    // A caller who is gone without a word must not keep a handler running for ever; streams are watched by the bus, and a caller
    // in this process never goes without a word.
    const isEndless = credit !== undefined || delivery.isLocal === true;
    const longest = isEndless ? Number.POSITIVE_INFINITY : deadlineMs;
    this.deadline = monotonicNow() + Math.min(timeLeftMs ?? longest, longest);
    this.#credit = credit === undefined ? undefined : new CreditGate(credit);
  }

  run(): void {
    if (this.deadline !== Number.POSITIVE_INFINITY) this.#host.deadlines.add(this);
    const { authenticate } = this.#host;
    if (authenticate === undefined) this.#start(this.#delivery.identity);
    else this.#authenticate(authenticate);
  }

  #authenticate(authenticate: Authenticate): void {
    const refuse = (thrown: unknown) => {
      this.#host.counters.unauthenticated++;
      this.#fail(
        isCallError(thrown) ? thrown : new CallError("UNAUTHENTICATED", undefined, { cause: thrown }),
      );
    };
    try {
      const identity = authenticate(this.#delivery);
      if (identity instanceof Promise) identity.then((known) => this.#claim(known), refuse);
      else this.#claim(identity);
    } catch (thrown) {
      refuse(thrown);
    }
  }

  /** A credential is good for one run, of this member or of all that share what they remember. */
  #claim(identity: Identity | undefined): void {
    const { operationId, requestId, credential, attempt = 1 } = this.#request;
    if (this.#over) return;
    const settle = (isOurs: boolean) => {
      if (isOurs) this.#start(identity);
      else {
        this.#host.counters.duplicate++;
        this.#fail(repeated(operationId));
      }
    };
    const fail = (cause: unknown) => {
      const message = "Whether the call has run already cannot be found out; try again later.";
      this.#fail(new CallError("UNAVAILABLE", message, { cause, stack: false }));
    };
    try {
      const key = [operationId, requestId, attempt, identity?.subject].join(" ");
      const isOurs = credential === undefined || this.#host.claim(key, attempt);
      if (typeof isOurs === "boolean") settle(isOurs);
      else isOurs.then(settle, fail);
    } catch (thrown) {
      fail(thrown);
    }
  }

  receive(event: AskerEvent): void {
    if (this.#over) this.#host.counters.late++;
    else if (event.requestId !== this.#request.requestId) this.#host.counters.forged++;
    else if (event.type === "call.aborted") {
      const { reason = "aborted" } = event;
      this.#stop(
        reason === "deadline"
          ? deadlineError(this.#request.operationId)
          : new CallError("ABORTED", undefined, { stack: false }),
        reason,
      );
    } else if (this.#credit === undefined) this.#host.counters.unexpected++;
    else this.#credit.grant(event.credit);
  }

  lost(): void {
    this.#stop(new CallError("ABORTED", "The caller is gone.", { stack: false }), "disconnected");
  }

  expire(): void {
    const error = deadlineError(this.#request.operationId);
    this.#fail(error);
    this.#stopping.abort(error);
  }

  /** Tells the caller that nobody goes on with the call. */
  giveUp(): void {
    const error = new CallError("ABORTED", "The service was stopped.", { stack: false });
    this.#fail(error);
    this.#stopping.abort(error);
  }

  get #request(): CallRequested {
    return this.#delivery.request;
  }

  #start(identity: Identity | undefined): void {
    if (this.#over) return;
    try {
      if (this.#credit === undefined) this.#execute(this.#options(identity));
      else this.#stream(this.#options(identity), this.#credit).catch((thrown) => this.#fail(thrown));
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #execute(options: ExecuteOptions): void {
    const { operationId, input, requestId } = this.#request;
    this.#host.executor.execute(operationId, input, options).then(
      (output) => this.#finish({ type: "call.responded", requestId, output }),
      (thrown) => this.#fail(thrown),
    );
  }

  async #stream(options: ExecuteOptions, credit: CreditGate): Promise<void> {
    const { operationId, input, requestId } = this.#request;
    const yields = this.#host.executor.subscribe(operationId, input, options)[Symbol.asyncIterator]();
    try {
      for (let sequence = 0; ; sequence++) {
        await credit.take();
        if (this.#over) return;
        const step: IteratorResult<ResponseEnvelope> = await yields.next();
        if (step.done === true) return this.#finish({ type: "call.completed", requestId, count: sequence });
        if (this.#over) return;
        this.#line.reply({ type: "call.responded", requestId, output: step.value, sequence });
        this.#observed?.responded(step.value, this.#line.sentBytes);
        // However much was granted, no more than this waits to be sent.
        if ((sequence + 1) % this.#host.limits.streamBuffer === 0) await this.#line.flush();
      }
    } catch (thrown) {
      // The reader hears of it now, however long the handler takes to clean up.
      this.#fail(thrown);
      throw thrown;
    } finally {
      // Does nothing at the end of a stream; before it, this is what runs the handler's `finally`.
      await yields.return?.();
    }
  }

  #options(identity: Identity | undefined): ExecuteOptions {
    const { requestId, metadata, depth, parent, progress, timeLeftMs } = this.#request;
    return {
      requestId,
      signal: this.#stopping.signal,
      identity,
      timeoutMs: timeLeftMs,
      metadata,
      origin: depth === undefined ? undefined : { depth, parent },
      onProgress: progress === true ? (value) => this.#progress(value) : undefined,
    };
  }

  #progress(value: unknown): void {
    // Reports are information: more than leave this process are not kept.
    if (this.#over || this.#unsentReports >= UNSENT_REPORTS) return;
    this.#line.reply({ type: "call.progress", requestId: this.#request.requestId, value });
    if (++this.#unsentReports < UNSENT_REPORTS) return;
    const sent = () => {
      this.#unsentReports = 0;
    };
    this.#line.flush().then(sent, sent);
  }

  #fail(thrown: unknown): void {
    const error = this.#explain(toCallError(thrown));
    const { requestId } = this.#request;
    if (errorTraits(error.code).callEvent === "call.aborted")
      this.#finish({ type: "call.aborted", requestId });
    else this.#finish({ type: "call.error", requestId, error: toErrorPayload(error) });
  }

  /** Whoever brought a credential that nobody looked at would search at the wrong end. */
  #explain(error: CallError): CallError {
    const { credential, operationId } = this.#request;
    const isUnread = credential !== undefined && this.#host.authenticate === undefined;
    return isUnread && error.code === "UNAUTHENTICATED" ? unread(operationId) : error;
  }

  /** The last word to the caller; what the bus cannot carry is told as an error. */
  #finish(event: AnswerEvent): void {
    if (this.#over) return;
    let sent = event;
    try {
      this.#line.reply(event);
    } catch (thrown) {
      const { requestId } = this.#request;
      sent = { type: "call.error", requestId, error: toErrorPayload(toCallError(thrown)) };
      this.#line.reply(sent);
    }
    this.#end();
    if (this.#observed !== undefined) reportSent(this.#observed, sent, this.#line.sentBytes);
  }

  /** The caller does not wait any more: nothing is sent, and the handler hears why. */
  #stop(error: CallError, reason: AbortReason): void {
    this.#end();
    this.#observed?.aborted(reason, reason === "left" ? undefined : error.code);
    this.#stopping.abort(error);
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#host.deadlines.remove(this);
    this.#line.close();
    this.#host.done(this);
    this.#credit?.open();
  }
}

/** Reports the last word to the caller. */
function reportSent(observed: ObservedCall, event: AnswerEvent, bytes: number | undefined): void {
  switch (event.type) {
    case "call.responded":
      observed.responded(event.output, bytes);
      break;
    case "call.completed":
      observed.completed(bytes);
      break;
    case "call.error":
      observed.failed(event.error.code, bytes);
      break;
    case "call.aborted":
      observed.aborted(event.reason ?? "aborted", "ABORTED", bytes);
      break;
    case "call.progress":
  }
}
