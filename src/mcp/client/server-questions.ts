import { addAbortListener, monotonicNow } from "../../core/execution/cancellation.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import { metaOf, RELATED_TASK } from "../protocol/messages.ts";
import { answerQuestion, QuestionRefused, REFUSALS } from "./caller-questions.ts";
import type { McpLimits } from "./connection-options.ts";

type Params = Readonly<Record<string, unknown>>;

interface ServerQuestionsOptions {
  readonly roots: readonly { readonly uri: string; readonly name?: string }[];
  readonly limits: McpLimits;
}

/** What a connection tells of a task while it is waited for: progress and questions come without a request of ours. */
export interface TaskWatch {
  /** Nobody waits any more: what comes is dropped. */
  readonly isOver: boolean;
  onProgress(progress: Params): void;
  /** Counts a question that the server asks for the task; false once there were too many. */
  admitsQuestion(): boolean;
}

/** The task whose result is waited for: questions that name it are for its caller. */
export interface TaskQuestions {
  readonly taskId: string;
  readonly task: TaskWatch;
}

interface OpenQuestion {
  readonly stop: AbortController;
  /** Who was asked; nobody for what is answered without asking. */
  readonly caller: CallerSide | undefined;
}

/** Why a question ended whose server still waits for a reply. */
class CallerLeft extends Error {
  override readonly name = "CallerLeft";
}

/** The questions that servers of the 2025 revisions ask in requests of their own, which do not say whose call they belong to. */
export class ServerQuestions {
  readonly #options: ServerQuestionsOptions;
  readonly #callers = new CallersInFlight();
  readonly #open = new Set<OpenQuestion>();
  /** Whom questions for a task are for, by its id. */
  readonly #tasks = new Map<string, TaskQuestions & { readonly caller: CallerSide | undefined }>();

  constructor(options: ServerQuestionsOptions) {
    this.#options = options;
  }

  /** Counts a call in, and returns how to count it out; with a caller's last one, its open questions end as cancelled. */
  enter(method: string, caller: CallerSide | undefined, about?: TaskQuestions): Leave {
    const leave = this.#callers.enter(method, caller);
    const asker = about && { ...about, caller };
    if (asker !== undefined) this.#tasks.set(asker.taskId, asker);
    return (givenUpAs) => {
      leave(givenUpAs);
      if (asker !== undefined && this.#tasks.get(asker.taskId) === asker) this.#tasks.delete(asker.taskId);
      if (caller !== undefined && !this.#callers.isRunning(caller)) this.#endFor(caller);
    };
  }

  /** The answer came to a call that was given up. */
  answered(id: number): void {
    this.#callers.answered(id);
  }

  /** A call that was given up goes on. */
  progressed(id: number): void {
    this.#callers.progressed(id);
  }

  /** Answers a question; rejects with a `QuestionRefused`. The signal aborts when the server does not want to know any more. */
  async answer(method: string, params: Params | undefined, signal: AbortSignal): Promise<Params> {
    const { roots, limits } = this.#options;
    if (this.#open.size >= limits.openQuestions) {
      throw new QuestionRefused(REFUSALS.failed, `More than ${limits.openQuestions} questions are open.`);
    }
    const caller = method === "roots/list" ? undefined : this.#whom(params);
    const stop = new AbortController();
    const open: OpenQuestion = { stop, caller };
    const onAbort = (): void => stop.abort(new Error("The server withdrew its question."));
    addAbortListener(signal, { onAbort });
    this.#open.add(open);
    const question = { method, params, caller, roots, maxLength: limits.questionLength, signal: stop.signal };
    const answered = await answerQuestion(question).then(
      (answer) => () => answer,
      (refusal: unknown) => () => {
        throw refusal;
      },
    );
    this.#open.delete(open);
    return stop.signal.reason instanceof CallerLeft ? replyOfNobody(method) : answered();
  }

  /** A server that gets no reply would go on with a call that nobody waits for. */
  #endFor(caller: CallerSide): void {
    for (const open of [...this.#open]) {
      if (open.caller === caller) open.stop.abort(new CallerLeft("The caller has left."));
    }
  }

  #whom(params: Params | undefined): CallerSide | undefined {
    const about = metaOf(params)?.[RELATED_TASK];
    if (isPlainObject(about)) return this.#ofTask(about["taskId"]);
    const found = this.#callers.find();
    switch (found.kind) {
      case "one":
        return found.caller;
      case "none":
        throw new QuestionRefused(REFUSALS.unable, "No call is running that this could be asked for.");
      case "several":
        throw new QuestionRefused(REFUSALS.unclear, describeDoubt(found.waitMs));
    }
  }

  #ofTask(taskId: unknown): CallerSide | undefined {
    const asker = typeof taskId === "string" ? this.#tasks.get(taskId) : undefined;
    if (asker === undefined)
      throw new QuestionRefused(REFUSALS.unclear, "Nobody waits for the task that it is asked for.");
    if (!asker.task.admitsQuestion())
      throw new QuestionRefused(REFUSALS.failed, "Too many questions were asked for this task.");
    return asker.caller;
  }
}

/** Why it cannot be told whom to ask, and what helps. */
function describeDoubt(waitMs: number | undefined): string {
  const [why, then] =
    waitMs === undefined
      ? ["Calls of several callers are running", "Try again when the others have ended."]
      : [
          "A call of another caller was given up unanswered and may still run",
          `Wait ${Math.ceil(waitMs / 1_000)} s, or reconnect the source.`,
        ];
  return `${why}: it cannot be told whose question this is. ${then}`;
}

/** What a server is told for somebody who has left. */
function replyOfNobody(method: string): Params {
  if (method === "elicitation/create") return { action: "cancel" };
  throw new QuestionRefused(REFUSALS.left, "The caller has left.");
}

/** What a server may want to ask something about. */
const CALLS: ReadonlySet<string> = new Set([
  "tools/call",
  "prompts/get",
  "resources/read",
  "completion/complete",
  "tasks/result",
]);

/** Bounds on what is remembered of calls that were given up. */
export const GIVEN_UP_LIMITS = {
  /** Calls; with one more, no question is anybody's for a while. */
  calls: 1_000,
  /** Milliseconds of silence after which a server is taken to have stopped; as many as the call had run, where that is more. */
  rememberMs: 60_000,
  /** Milliseconds of silence that are enough for any call. */
  longestMs: 600_000,
} as const;

/** Whose question it must be: the 2025 revisions do not say, so only what all calls in flight agree on is certain. */
type CallerInFlight<C = CallerSide> =
  | { readonly kind: "one"; readonly caller: C | undefined }
  | { readonly kind: "none" }
  /** With how long it takes at most until a call that was given up is forgotten, where no other stands in the way. */
  | { readonly kind: "several"; readonly waitMs?: number };

/** Who stays the same over several calls. */
type Party = CallerSide["party"];

/** The id of a request. */
type Id = number | string;

/** Counts a call out; one given up before it was answered goes on at the server, and stays remembered under its id. */
type Leave = (givenUpAs?: Id) => void;

/** A call that nobody waits for, and how long the server must have said nothing of it. */
interface GivenUp {
  readonly party: Party;
  readonly silenceMs: number;
  until: number;
}

interface CallersOptions {
  /** A clock that never goes back, in milliseconds. @default that of the process */
  readonly now?: (() => number) | undefined;
  /** Which requests count. @default those that a server may ask something about */
  readonly counts?: ((method: string) => boolean) | undefined;
  /** Milliseconds for which a server may still speak of a call that it has answered. @default 0 */
  readonly lingerMs?: number | undefined;
}

/** The calls in flight over one connection, by caller, and those nobody waits for that the server may still be busy with. */
export class CallersInFlight<C extends Pick<CallerSide, "party"> = CallerSide> {
  readonly #now: () => number;
  readonly #counts: (method: string) => boolean;
  readonly #lingerMs: number;
  /** Until when the server may speak of answered calls of each party, the soonest first. */
  readonly #lingering = new Map<Party, number>();
  /** The caller of the latest call comes last. */
  readonly #running = new Map<C | undefined, number>();
  /** How many of those calls are of each party. */
  readonly #parties = new Map<Party, number>();
  readonly #givenUp = new Map<Id, GivenUp>();
  #unclearUntil = Number.NEGATIVE_INFINITY;

  constructor({
    now = monotonicNow,
    counts = (method) => CALLS.has(method),
    lingerMs = 0,
  }: CallersOptions = {}) {
    this.#now = now;
    this.#counts = counts;
    this.#lingerMs = lingerMs;
  }

  /** Returns how to take the call out again. */
  enter(method: string, caller: C | undefined): Leave {
    if (!this.#counts(method)) return () => {};
    const party = caller?.party ?? caller;
    const startedAt = this.#now();
    const count = this.#running.get(caller) ?? 0;
    this.#running.delete(caller);
    this.#running.set(caller, count + 1);
    this.#parties.set(party, (this.#parties.get(party) ?? 0) + 1);
    let left = false;
    return (givenUpAs) => {
      if (left) return;
      left = true;
      take(this.#running, caller);
      take(this.#parties, party);
      if (givenUpAs !== undefined) this.#giveUp(givenUpAs, party, startedAt);
      else if (this.#lingerMs > 0) this.#linger(party);
    };
  }

  /** Tells whether somebody still waits for a call of this caller. */
  isRunning(caller: C | undefined): boolean {
    return this.#running.has(caller);
  }

  /** The server has answered a call that was given up: it asks no more about it. */
  answered(id: Id): void {
    this.#givenUp.delete(id);
  }

  /** The server goes on with a call that was given up: it may still ask about it. */
  progressed(id: Id): void {
    const known = this.#givenUp.get(id);
    if (known !== undefined) known.until = this.#now() + known.silenceMs;
  }

  /** Finds the one whom a question of the server must be for: the latest call of the only caller there is. */
  find(): CallerInFlight<C> {
    if (this.#running.size === 0) return { kind: "none" };
    if (this.#parties.size > 1) return { kind: "several" };
    const [party] = this.#parties.keys();
    this.#forgetOld();
    const now = this.#now();
    let until = this.#unclearUntil;
    for (const other of this.#givenUp.values()) {
      if (other.party !== party) until = Math.max(until, other.until);
    }
    for (const [other, lingersUntil] of this.#lingering) {
      if (other !== party) until = Math.max(until, lingersUntil);
    }
    if (until > now) return { kind: "several", waitMs: until - now };
    return { kind: "one", caller: [...this.#running.keys()].at(-1) };
  }

  #giveUp(id: Id, party: Party, startedAt: number): void {
    this.#forgetOld();
    const now = this.#now();
    const { calls, rememberMs, longestMs } = GIVEN_UP_LIMITS;
    const silenceMs = Math.min(Math.max(now - startedAt, rememberMs), longestMs);
    const until = now + silenceMs;
    // Nobody is taken for the only one because another was forgotten.
    if (this.#givenUp.size >= calls) this.#unclearUntil = Math.max(this.#unclearUntil, until);
    else this.#givenUp.set(id, { party, silenceMs, until });
  }

  #linger(party: Party): void {
    const now = this.#now();
    for (const [other, until] of this.#lingering) {
      if (until > now) break;
      this.#lingering.delete(other);
    }
    this.#lingering.delete(party);
    if (this.#lingering.size >= GIVEN_UP_LIMITS.calls)
      this.#unclearUntil = Math.max(this.#unclearUntil, now + this.#lingerMs);
    else this.#lingering.set(party, now + this.#lingerMs);
  }

  #forgetOld(): void {
    const now = this.#now();
    for (const [id, { until }] of this.#givenUp) {
      if (until <= now) this.#givenUp.delete(id);
    }
  }
}

function take<K>(counts: Map<K, number>, key: K): void {
  const count = (counts.get(key) ?? 1) - 1;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
