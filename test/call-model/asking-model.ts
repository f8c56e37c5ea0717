import type { AnswerEvent, Asker, AskerEvent, CallRequested, CallResponded } from "../../src/call/index.ts";
import { createCounters, type LiveCounters } from "./counters.ts";
import type { CallPlan, ModelCall, Outcome } from "./model-call.ts";
import { ModelStream } from "./model-stream.ts";
import type { AskingWatcher } from "./watched-bus.ts";

/** Milliseconds a call may take where it says nothing. */
export const CEILING_MS = 300_000;
/** What both sides are limited to: few enough for the limits to be met. */
export const LIMITS = { streamBuffer: 4, pendingCalls: 8 } as const;

const WORTH_RETRYING = new Set(["UNAVAILABLE", "NO_RESPONDER", "TIMEOUT"]);

/** What the asking side has to do, from what it is told and what it hears. */
export class AskingModel implements AskingWatcher {
  now = 0;
  map = 0;
  readonly calls: ModelCall[] = [];
  readonly streams: ModelStream[] = [];
  readonly counters: LiveCounters[] = [createCounters()];
  readonly aborted = new Set<number>();
  /** Requests whose other end has to be told that nobody waits any more. */
  readonly owed = new Set<number>();
  readonly problems: string[] = [];
  #starting: ModelCall | ModelStream | undefined;
  readonly #byAsk = new Map<number, ModelCall | ModelStream>();

  get pending(): number {
    const waiting = this.calls.filter(({ phase }) => phase === "pending" || phase === "pausing");
    return waiting.length + this.streams.filter(({ phase }) => phase === "open").length;
  }

  /** A call is about to be made, perhaps under a request id that is taken. */
  call(plan: CallPlan, isIdempotent: boolean, isTaken: boolean): ModelCall {
    const call: ModelCall = {
      ...plan,
      map: this.map,
      deadline: this.now + (plan.timeoutMs ?? CEILING_MS),
      isIdempotent,
      phase: "starting",
      requestId: undefined,
      asker: undefined,
      ask: -1,
      tried: 0,
      runs: 1,
      attemptDeadline: 0,
      pauseUntil: 0,
      progress: 0,
      failure: undefined,
      outcome: undefined,
    };
    this.calls.push(call);
    if (plan.signal !== undefined && this.aborted.has(plan.signal)) this.#settle(call, { code: "ABORTED" });
    else if (this.#isFull()) this.#settle(call, { code: "RESOURCE_EXHAUSTED" });
    else if (isTaken) this.#settle(call, { code: "CONFLICT" });
    else this.#starting = call;
    return call;
  }

  /** Calls under way whose request id everybody knows. */
  get named(): readonly ModelCall[] {
    return this.calls.filter(({ phase, isNamed }) => isNamed && (phase === "pending" || phase === "pausing"));
  }

  subscribe(timeoutMs: number | undefined, signal: number | undefined): ModelStream {
    const deadline = timeoutMs === undefined ? Number.POSITIVE_INFINITY : this.now + timeoutMs;
    const stream = new ModelStream(this.map, deadline, signal, LIMITS.streamBuffer);
    this.streams.push(stream);
    return stream;
  }

  /** A step of a stream is about to be asked for. */
  read(stream: ModelStream): void {
    const isFirst = stream.phase === "not started";
    if (isFirst) stream.phase = "open";
    stream.read();
    if (!isFirst) return;
    if (stream.signal !== undefined && this.aborted.has(stream.signal)) stream.finish({ code: "ABORTED" });
    else if (this.now >= stream.deadline) stream.finish({ code: "TIMEOUT" });
    else if (stream.map !== this.map) stream.finish({ code: "UNAVAILABLE" });
    else if (this.#isFull(stream)) stream.finish({ code: "RESOURCE_EXHAUSTED" });
    else this.#starting = stream;
  }

  leave(stream: ModelStream): void {
    if (stream.phase === "open") this.#leave(stream, "done");
    stream.leave();
  }

  /** What was about to be started has been. */
  started(): void {
    if (this.#starting !== undefined) this.problems.push("a call was made and nothing was asked");
    this.#starting = undefined;
  }

  abort(signal: number): void {
    this.aborted.add(signal);
    this.#abortAll((one) => one.signal === signal);
  }

  /** The map is about to be closed, and another one made. */
  close(): void {
    this.#abortAll(({ map }) => map === this.map);
    this.map++;
    this.counters.push(createCounters());
  }

  /** Time has passed: whatever should have ended by now has. */
  expireDue(): void {
    for (const call of this.calls) {
      if (call.phase === "pending" && this.now >= call.attemptDeadline) this.#expire(call);
    }
    for (const stream of this.streams) {
      if (stream.phase === "open" && this.now >= stream.deadline) this.#leave(stream, { code: "TIMEOUT" });
    }
  }

  asked(ask: number, request: CallRequested, asker: Asker): void {
    const asking = this.#starting ?? this.#due(request.requestId);
    this.#starting = undefined;
    if (asking === undefined) return void this.problems.push(`${request.requestId} was asked unbidden`);
    this.#byAsk.set(ask, asking);
    asking.ask = ask;
    asking.requestId = request.requestId;
    if (asking instanceof ModelStream) return;
    asking.asker = asker;
    asking.phase = "pending";
    asking.tried++;
    asking.attemptDeadline = Math.min(
      asking.deadline,
      this.now + (asking.attemptTimeoutMs ?? Number.POSITIVE_INFINITY),
    );
    const isTimed = asking.timeoutMs !== undefined || asking.attemptDeadline !== asking.deadline;
    const timeLeft = isTimed ? asking.attemptDeadline - this.now : undefined;
    if (request.timeLeftMs !== timeLeft) this.problems.push(`${request.timeLeftMs} ms left, not ${timeLeft}`);
    if ((request.attempt ?? 1) !== asking.runs)
      this.problems.push(`attempt ${request.attempt}, not ${asking.runs}`);
  }

  sent(ask: number, event: AskerEvent): void {
    const asking = this.#byAsk.get(ask);
    if (event.type === "call.credit") {
      const isWithin = asking instanceof ModelStream && asking.grant(event.credit);
      if (!isWithin) this.problems.push(`granted ${event.credit} beyond the window`);
      return;
    }
    if (event.reason === "deadline" && !this.owed.has(ask)) this.#expireNow(asking);
    if (!this.owed.delete(ask)) this.problems.push(`gave up ${event.requestId} for no reason`);
  }

  received(ask: number, event: AnswerEvent): void {
    const asking = this.#byAsk.get(ask);
    if (asking === undefined) return void this.problems.push("an answer on a line nobody asked on");
    const counters = this.#countersOf(asking);
    const isOpen = asking instanceof ModelStream ? asking.phase === "open" : asking.phase === "pending";
    if (!isOpen || asking.ask !== ask) counters.late++;
    else if (event.requestId !== asking.requestId) counters.forged++;
    else if (asking instanceof ModelStream) this.#streamed(asking, event, counters);
    else this.#answered(asking, event, counters);
  }

  lost(ask: number, code: string): void {
    const asking = this.#byAsk.get(ask);
    if (asking === undefined || asking.ask !== ask) return;
    if (asking instanceof ModelStream) {
      if (asking.phase === "open") asking.finish({ code });
    } else if (asking.phase === "pending") this.#failed(asking, code, code === "NO_RESPONDER");
  }

  /** Counts one more than the map has room for. */
  #isFull(itself?: ModelStream): boolean {
    const others = this.pending - (itself?.phase === "open" ? 1 : 0);
    if (others < LIMITS.pendingCalls) return false;
    (this.counters[this.map] as LiveCounters).overLimit++;
    return true;
  }

  #countersOf({ map }: ModelCall | ModelStream): LiveCounters {
    return this.counters[map] as LiveCounters;
  }

  #due(requestId: string): ModelCall | undefined {
    return this.calls.find(
      (call) => call.phase === "pausing" && call.requestId === requestId && call.pauseUntil <= this.now,
    );
  }

  #abortAll(isMeant: (one: ModelCall | ModelStream) => boolean): void {
    for (const call of this.calls.filter(isMeant)) {
      if (call.phase === "pending") this.owed.add(call.ask);
      if (call.phase !== "settled") this.#settle(call, { code: "ABORTED" });
    }
    for (const stream of this.streams.filter(isMeant)) {
      if (stream.phase === "open") this.#leave(stream, { code: "ABORTED" });
    }
  }

  #expireNow(asking: ModelCall | ModelStream | undefined): void {
    if (asking instanceof ModelStream) {
      if (asking.phase === "open" && this.now >= asking.deadline) this.#leave(asking, { code: "TIMEOUT" });
    } else if (asking?.phase === "pending" && this.now >= asking.attemptDeadline) this.#expire(asking);
  }

  #expire(call: ModelCall): void {
    this.owed.add(call.ask);
    this.#failed(call, "TIMEOUT");
  }

  /** Ends a stream from this side. */
  #leave(stream: ModelStream, end: Outcome): void {
    this.owed.add(stream.ask);
    stream.arrived.length = 0;
    stream.finish(end);
  }

  /** A try that the bus itself gave back has not run, and is the first one still. */
  #failed(call: ModelCall, code: string, isGivenBack = false): void {
    if (code === "CONFLICT" && call.runs > 1) {
      this.#settle(call, { code: call.failure ?? code });
      return;
    }
    call.failure = code;
    const pause = Math.min(500, 10 * 2 ** (call.tried - 1));
    const isFinal = !WORTH_RETRYING.has(code) || call.tried >= call.attempts;
    if (isFinal || this.now + pause >= call.deadline) this.#settle(call, { code });
    else {
      if (!isGivenBack) call.runs++;
      this.#countersOf(call).retried++;
      call.phase = "pausing";
      call.pauseUntil = this.now + pause;
    }
  }

  #settle(call: ModelCall, outcome: Outcome): void {
    call.phase = "settled";
    call.outcome = outcome;
  }

  #answered(call: ModelCall, event: AnswerEvent, counters: LiveCounters): void {
    if (event.type === "call.responded") {
      // Too late is a deadline, which the asking side says itself.
      if (this.now < call.attemptDeadline) this.#settle(call, outcomeOf(event));
    } else if (event.type === "call.error") this.#failed(call, event.error.code, event.notRun === true);
    else if (event.type === "call.aborted") this.#failed(call, codeOf(event.reason));
    else if (event.type === "call.progress") call.progress++;
    else counters.unexpected++;
  }

  #streamed(stream: ModelStream, event: AnswerEvent, counters: LiveCounters): void {
    if (event.type === "call.error") stream.finish({ code: event.error.code });
    else if (event.type === "call.aborted") stream.finish({ code: codeOf(event.reason) });
    else if (event.type === "call.progress") stream.progress++;
    else if (event.type === "call.completed") {
      if (event.count === stream.next) stream.finish("done");
      else this.#gap(stream, counters);
    } else if (event.sequence === undefined) counters.unexpected++;
    else if (event.sequence < stream.next) counters.duplicate++;
    else if (event.sequence > stream.next) this.#gap(stream, counters);
    else if (!stream.arrive(outcomeOf(event))) {
      counters.overLimit++;
      this.#leave(stream, { code: "RESOURCE_EXHAUSTED" });
    }
  }

  #gap(stream: ModelStream, counters: LiveCounters): void {
    counters.gaps++;
    this.#leave(stream, { code: "UNAVAILABLE" });
  }
}

function codeOf(reason: string | undefined): string {
  if (reason === "disconnected") return "UNAVAILABLE";
  return reason === "deadline" ? "TIMEOUT" : "ABORTED";
}

function outcomeOf({ output }: CallResponded): Outcome {
  return { data: output.data, isError: (output.meta as { isError?: boolean }).isError === true };
}
