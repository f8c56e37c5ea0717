import type { AnswerEvent, AskerEvent, CallRequested } from "../../src/call/index.ts";
import { CEILING_MS } from "./asking-model.ts";
import { type ControlledRun, OPERATIONS } from "./controlled-runs.ts";
import { createCounters, type LiveCounters } from "./counters.ts";
import type { AnsweringWatcher } from "./watched-bus.ts";

/** What has to be said next: the type of an event, and the code of an error. */
export interface Due {
  readonly type: AnswerEvent["type"];
  readonly code?: string;
  readonly data?: unknown;
  /** The stream goes on after it. */
  readonly isYield?: boolean;
}

/** One delivery of a request as it has to go. */
export interface ModelAnswer {
  readonly request: CallRequested;
  readonly service: number;
  readonly deadline: number;
  isRefused: boolean;
  state: "open" | "over";
  /** The handler has to be told that nobody waits. */
  isStopped: boolean;
  credit: number;
  sequence: number;
  progressDue: number;
  due: Due | undefined;
  run: ControlledRun | undefined;
}

/** One answering side, from when it came to when it was gone. */
export interface ModelService {
  readonly seen: Set<string>;
  readonly counters: LiveCounters;
  /** When whatever still runs is given up. */
  drainAt: number;
  isLeaving: boolean;
  /** It has said that it is done: nothing may run there any more. */
  isDrained: boolean;
}

/** What the answering sides have to do, from what they are told and what they hear. */
export class AnsweringModel implements AnsweringWatcher {
  now = 0;
  readonly services: ModelService[] = [];
  readonly answers = new Map<number, ModelAnswer>();
  readonly problems: string[] = [];
  #linked = 0;

  join(): number {
    const counters = createCounters();
    const drainAt = Number.POSITIVE_INFINITY;
    return this.services.push({ seen: new Set(), counters, drainAt, isLeaving: false, isDrained: false }) - 1;
  }

  taken(answer: number, request: CallRequested, service: number): void {
    const { requestId, attempt = 1, timeLeftMs, credit } = request;
    const { seen, counters } = this.services[service] as ModelService;
    const isRepeated = attempt > 1 || seen.has(requestId);
    const isRefused = isRepeated && !(attempt > 1 && request.operationId === OPERATIONS.again);
    if (isRefused) counters.duplicate++;
    else seen.add(requestId);
    const longest = credit === undefined ? CEILING_MS : Number.POSITIVE_INFINITY;
    this.answers.set(answer, {
      request,
      service,
      deadline: this.now + Math.min(timeLeftMs ?? longest, longest),
      isRefused,
      state: "open",
      isStopped: false,
      credit: credit ?? 0,
      sequence: 0,
      progressDue: 0,
      due: isRefused ? { type: "call.error", code: "CONFLICT" } : undefined,
      run: undefined,
    });
  }

  replied(number: number, event: AnswerEvent): void {
    const answer = this.answers.get(number) as ModelAnswer;
    const { due, request } = answer;
    if (event.requestId !== request.requestId) this.problems.push("replied for another request");
    if (answer.state === "over") this.problems.push(`${event.type} after the last word`);
    else if (event.type === "call.progress") {
      if (answer.progressDue-- <= 0) this.problems.push("progress nobody made");
    } else if (due !== undefined && isDue(event, due, answer.sequence)) {
      answer.due = undefined;
      if (due.isYield === true) answer.sequence++;
      else answer.state = "over";
    } else if (this.#mayTurnAway(answer, event)) {
      answer.state = "over";
      answer.isRefused = true;
    } else if (this.#mayGiveUp(answer, event)) this.#stop(answer);
    else this.problems.push(`${JSON.stringify(event)} instead of ${JSON.stringify(due)}`);
  }

  heard(number: number, event: AskerEvent): void {
    const answer = this.answers.get(number) as ModelAnswer;
    const { counters } = this.services[answer.service] as ModelService;
    if (answer.state === "over") counters.late++;
    else if (event.requestId !== answer.request.requestId) counters.forged++;
    else if (event.type === "call.aborted") this.#stop(answer);
    else if (answer.request.credit === undefined) counters.unexpected++;
    else answer.credit += event.credit;
  }

  callerLost(number: number): void {
    const answer = this.answers.get(number) as ModelAnswer;
    if (answer.state !== "over") this.#stop(answer);
  }

  /** A handler is about to be told what to do. */
  tell(run: ControlledRun, due: Due): void {
    const answer = this.answerOf(run);
    if (answer?.state === "open") answer.due = due;
  }

  /** A handler is about to report progress. */
  report(run: ControlledRun): void {
    const answer = this.answerOf(run);
    if (answer?.state === "open" && answer.request.progress === true) answer.progressDue++;
  }

  answerOf(run: ControlledRun): ModelAnswer | undefined {
    return [...this.answers.values()].find((answer) => answer.run === run);
  }

  /** Finds out which delivery each new run belongs to; one that belongs to none should not be. */
  link(runs: readonly ControlledRun[]): void {
    for (; this.#linked < runs.length; this.#linked++) {
      const run = runs[this.#linked] as ControlledRun;
      const answer = [...this.answers.values()].find(
        ({ request, service, run: other, isRefused }) =>
          request.requestId === run.requestId &&
          service === run.service &&
          other === undefined &&
          !isRefused &&
          request.timeLeftMs !== 0,
      );
      if (answer === undefined) this.problems.push(`${run.requestId} ran, and nobody asked for it`);
      else answer.run = run;
    }
  }

  #stop(answer: ModelAnswer): void {
    answer.state = "over";
    answer.isStopped = true;
    answer.due = undefined;
  }

  /** Whoever has left takes nothing more, and says that it has not run. */
  #mayTurnAway({ service, run, due }: ModelAnswer, event: AnswerEvent): boolean {
    const isLeaving = this.services[service]?.isLeaving === true;
    if (!isLeaving || run !== undefined || due !== undefined) return false;
    return event.type === "call.error" && event.error.code === "NO_RESPONDER";
  }

  #mayGiveUp(answer: ModelAnswer, event: AnswerEvent): boolean {
    if (event.type === "call.error") return event.error.code === "TIMEOUT" && this.now >= answer.deadline;
    const { drainAt } = this.services[answer.service] as ModelService;
    return event.type === "call.aborted" && this.now >= drainAt;
  }
}

function isDue(event: AnswerEvent, due: Due, sequence: number): boolean {
  if (event.type !== due.type) return false;
  if (event.type === "call.error") return event.error.code === due.code;
  if (event.type === "call.completed") return event.count === sequence;
  if (event.type !== "call.responded") return true;
  const isInPlace = due.isYield === true ? event.sequence === sequence : event.sequence === undefined;
  return isInPlace && JSON.stringify(event.output.data) === JSON.stringify(due.data);
}
