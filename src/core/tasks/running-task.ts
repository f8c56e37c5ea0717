import { CallError, isCallError } from "../errors/errors.ts";
import { randomId } from "../execution/call-context.ts";
import { LONGEST_DELAY } from "../execution/cancellation.ts";
import { toKept } from "../idempotency/idempotent-calls.ts";
import { isPlainObject, type JsonValue, toJsonTextOrNone } from "../json/json-value.ts";
import { backoffMs } from "../limits/backoff.ts";
import type { CallerTask } from "../operation/caller-side.ts";
import type { EndedCall } from "../result/ended-call.ts";
import { shortText } from "../text/truncate-text.ts";
import { toWire } from "../wire/wire.ts";
import {
  faultError,
  isSettled,
  TASK_LIMITS,
  type TaskBounds,
  type TaskFault,
  type TaskQuestion,
  type TaskRecord,
  type TaskResult,
  taskCancelled,
  taskExpired,
  toResumption,
} from "./task.ts";
import type { TaskStore } from "./task-store.ts";

/** What the work of a task has to do with. */
export interface TaskRun {
  readonly task: TaskRecord;
  /** Aborts when the task is cancelled or expires, or its process ends. */
  readonly signal: AbortSignal;
  /** What goes into the `caller` of the call. */
  readonly link: CallerTask;
  /** Asks the caller, who may answer much later; resolves with what was answered, as it came. */
  ask(question: TaskQuestion, signal: AbortSignal, key?: string): Promise<JsonValue>;
  /** Takes whatever a handler reports. */
  readonly onProgress: (value: unknown) => void;
}

/** What the work of a task came to. */
export interface TaskOutcome {
  readonly call: Pick<EndedCall, "outcome" | "requestId" | "durationMs">;
  /** The answer as the surface that began the task writes it. */
  readonly written?: TaskResult["written"];
  /** Whether that is an error of its protocol. @default false */
  readonly isRefused?: boolean | undefined;
}

/** Does the work of a task. */
export type TaskWork = (run: TaskRun) => Promise<TaskOutcome>;

/** The text beside a task that is its result. */
export const RESULT_KEY = "result";

/** Between two messages that are written down. */
const MESSAGE_MS = 1_000;
/** Questions that have the names which their handler gave them. */
const MOST_NAMED = 1_000;
/** Between two looks at what is stored: changes may be missed while the store is away. */
const POLL_MS = 15_000;
const RETRY = { delayMs: 100, maxDelayMs: 5_000 } as const;

interface Asked {
  readonly question: TaskQuestion;
  resolve(answer: JsonValue): void;
  reject(error: CallError): void;
}

interface RunningTaskOptions {
  readonly store: TaskStore;
  readonly bounds: TaskBounds;
  /** Hears that it runs here no more. */
  readonly onEnd: () => void;
  /** The input of the call, for another process that goes on with it. */
  readonly input?: unknown;
  /** Whether it goes on from what another process noted. @default false */
  readonly isResumed?: boolean | undefined;
}

/** A task that runs in this process. What is stored decides: what is known here is written there, and what comes from there is taken up. */
export class RunningTask {
  readonly #store: TaskStore;
  readonly #options: RunningTaskOptions;
  readonly #controller = new AbortController();
  readonly #questions = new Map<string, Asked>();
  /** Names of questions that were given: none is given twice, and none that another process may have given. */
  readonly #named = new Set<string>();
  readonly #stopWatching: () => void;
  readonly #expiry: ReturnType<typeof setTimeout> | undefined;
  readonly #looking: ReturnType<typeof setInterval> | undefined;
  #task: TaskRecord;
  #message: string | undefined;
  #progress: TaskRecord["progress"];
  #resumption: TaskRecord["resumption"];
  #input: JsonValue | undefined;
  #saidAt = Number.NEGATIVE_INFINITY;
  #sayLater: ReturnType<typeof setTimeout> | undefined;
  #isDue = false;
  #syncing: Promise<void> | undefined;
  #isOver = false;
  #onNoted: (() => void) | undefined;

  constructor(task: TaskRecord, options: RunningTaskOptions) {
    this.#task = task;
    this.#store = options.store;
    this.#options = options;
    this.#message = task.message;
    this.#progress = task.progress;
    this.#resumption = task.resumption;
    this.#input = task.resumption?.input;
    this.#stopWatching = this.#store.watch(task, this.look);
    const left = task.expiresAt - this.#store.now();
    if (left <= LONGEST_DELAY) this.#expiry = setTimeout(() => this.#drop(taskExpired()), Math.max(0, left));
    keepsNobody(this.#expiry);
    if (this.#store.isLasting) this.#looking = setInterval(this.look, POLL_MS);
    keepsNobody(this.#looking);
  }

  /** Does the work, to its end. */
  run(work: TaskWork): void {
    const { signal } = this.#controller;
    const run: TaskRun = {
      task: this.#task,
      signal,
      link: this.#link(),
      ask: (question, asking, key) => this.#ask(question, asking, key),
      onProgress: (value) => this.#hear(value),
    };
    // What asks for a task gets it before anything else happens.
    Promise.resolve()
      .then(() => work(run))
      .then(
        (outcome) => this.#settle(outcome),
        (thrown) => this.#settle(failed(this.#task, thrown)),
      )
      // The store stayed away until the task expired.
      .catch(() => this.#drop(taskExpired()));
  }

  /** Looks what has become of the task elsewhere. */
  readonly look = (): void => {
    this.#isDue = true;
    this.#syncing ??= this.#syncAll().finally(() => {
      this.#syncing = undefined;
      if (this.#isDue && !this.#isOver) this.look();
    });
  };

  /** Resolves when the handler has noted something, or the task has ended here; after so many milliseconds in any case. */
  noted(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#onNoted = () => {
        clearTimeout(timer);
        resolve();
      };
      if (this.#isOver) this.#onNoted();
    });
  }

  /** Leaves it to another process, where one can go on with it; says whether one can. */
  leave(error: CallError): boolean {
    if (this.#resumption === undefined || !this.#store.isLasting) {
      this.#controller.abort(error);
      return false;
    }
    this.#drop(error);
    return true;
  }

  /** What the handler noted in another process. */
  get #resumedFrom(): JsonValue | undefined {
    return this.#options.isResumed === true ? this.#task.resumption?.handle : undefined;
  }

  #link(): CallerTask {
    const { id } = this.#task;
    const handle = this.#resumedFrom;
    return {
      id,
      ...(handle !== undefined && { handle }),
      hold: (handle) => this.#note({ handle }),
      wait: (isWaiting) => this.#note(isWaiting ? {} : undefined),
      say: (message) => this.#say(message),
    };
  }

  /** Writes down how another process goes on with the task; nothing where none can. */
  async #note(given: { readonly handle?: JsonValue } | undefined): Promise<void> {
    const { input } = this.#options;
    this.#input ??= input === undefined ? undefined : toWire(input);
    const resumption = given && toResumption(given, this.#input);
    this.#resumption = resumption;
    let isKept = false;
    try {
      await this.#change(({ resumption: _, ...task }) => {
        isKept = true;
        return { ...task, ...(resumption !== undefined && { resumption }) };
      });
    } finally {
      this.#onNoted?.();
    }
    if (!isKept && given?.handle === undefined) throw endOf(this.#task);
  }

  #hear(value: unknown): void {
    const said = readProgress(value);
    if (said.progress !== undefined) this.#progress = said.progress;
    if (said.message !== undefined || said.progress !== undefined) this.#say(said.message ?? this.#message);
  }

  #say(message: string | undefined): void {
    if (message !== undefined) this.#message = shortText(message, TASK_LIMITS.messageCharacters - 1);
    if (this.#isOver || this.#sayLater !== undefined) return;
    const wait = Math.max(0, this.#saidAt + MESSAGE_MS - performance.now());
    if (wait === 0) this.look();
    else this.#sayLater = setTimeout(this.look, wait);
    keepsNobody(this.#sayLater);
  }

  #ask(question: TaskQuestion, signal: AbortSignal, wanted: string | undefined): Promise<JsonValue> {
    const key = this.#keyFor(wanted);
    const tooMany = this.#questions.size >= TASK_LIMITS.questions;
    const length = toJsonTextOrNone(question)?.length ?? Number.POSITIVE_INFINITY;
    if (tooMany || length > TASK_LIMITS.questionCharacters) {
      const why = tooMany ? "The task asks too much at a time." : "The question is too long to be kept.";
      return Promise.reject(new CallError("RESOURCE_EXHAUSTED", why, { stack: false }));
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#questions.delete(key);
        reject(new CallError("ABORTED", undefined, { stack: false }));
        this.look();
      };
      if (signal.aborted) return leave();
      signal.addEventListener("abort", leave, { once: true });
      const settled = (): void => signal.removeEventListener("abort", leave);
      this.#questions.set(key, {
        question,
        resolve: (answer) => {
          settled();
          resolve(answer);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      });
      this.look();
    });
  }

  #keyFor(wanted: string | undefined): string {
    const isFree = wanted !== undefined && this.#resumedFrom === undefined && this.#named.size < MOST_NAMED;
    if (!isFree || this.#named.has(wanted)) return `${wanted ?? "question"}-${randomId().slice(0, 8)}`;
    this.#named.add(wanted);
    return wanted;
  }

  async #syncAll(): Promise<void> {
    for (let tries = 1; this.#isDue && !this.#isOver; tries++) {
      this.#isDue = false;
      try {
        await this.#sync();
        tries = 0;
      } catch {
        // The store tells of it; what is known here is written when it is back.
        this.#isDue = true;
        await pause(backoffMs(tries, RETRY.delayMs, RETRY.maxDelayMs));
      }
    }
  }

  async #sync(): Promise<void> {
    const found = await this.#store.get(this.#task);
    if (this.#isOver) return;
    if (found === undefined || !this.#isOurs(found.task)) return this.#drop(endOf(found?.task));
    for (const [key, answer] of Object.entries(found.task.answers ?? {})) {
      const asked = this.#questions.get(key);
      this.#questions.delete(key);
      asked?.resolve(answer);
    }
    const wanted = this.#shown(found.task);
    if (isSameTask(found.task, wanted)) return;
    clearTimeout(this.#sayLater);
    this.#sayLater = undefined;
    this.#saidAt = performance.now();
    const updated = await this.#store.update(wanted, found.revision, this.#options.bounds);
    if (updated === "changed") this.#isDue = true;
    else if (updated === "full") this.#refuseQuestions();
    else this.#task = wanted;
  }

  /** There is no room to show them. */
  #refuseQuestions(): void {
    const error = new CallError("RESOURCE_EXHAUSTED", "There is no room for the question of the task.", {
      stack: false,
    });
    for (const asked of this.#questions.values()) asked.reject(error);
    this.#questions.clear();
  }

  #shown(task: TaskRecord): TaskRecord {
    const { questions: _, answers: __, message: ___, progress: ____, ...rest } = task;
    const questions = [...this.#questions].map(([key, { question }]) => [key, question] as const);
    return {
      ...rest,
      status: questions.length > 0 ? "input_required" : "working",
      updatedAt: this.#store.now(),
      ...(this.#message !== undefined && { message: this.#message }),
      ...(this.#progress !== undefined && { progress: this.#progress }),
      ...(questions.length > 0 && { questions: Object.fromEntries(questions) }),
    };
  }

  async #settle({ call, written, isRefused }: TaskOutcome): Promise<void> {
    const store = this.#store;
    const { bounds } = this.#options;
    const result: TaskResult = {
      outcome: toKept(this.#asEnded(call)),
      ...(written !== undefined && { written }),
    };
    const text = JSON.stringify({ ...result, ...(isRefused && { isRefused: true }) });
    const isTooLong = new TextEncoder().encode(text).length > bounds.resultBytes;
    await this.#persist(async () => {
      const found = await store.get(this.#task);
      if (found === undefined || !this.#isOurs(found.task)) return true;
      // The first result that is kept stands, whichever process comes to another.
      const stands = isTooLong ? undefined : await store.keep(found.task, RESULT_KEY, text, bounds);
      const by = stands === undefined ? (isTooLong ? "too_long" : "no_room") : { text: stands };
      const settled = settledBy(this.#shown(found.task), by, store.now());
      const updated = await store.update(settled, found.revision, bounds);
      // It goes on until there is room: nobody could be told otherwise that it has ended.
      if (updated === "full") throw new CallError("UNAVAILABLE", "There is no room for how the task ended.");
      return updated !== "changed";
    });
    this.#drop(new CallError("ABORTED", "The task has ended.", { stack: false }));
  }

  /** A call that this side ended failed for the reason that it was ended for. */
  #asEnded(call: TaskOutcome["call"]): TaskOutcome["call"] {
    const { aborted, reason } = this.#controller.signal;
    const wasEnded = aborted && "error" in call.outcome && call.outcome.error.code === "ABORTED";
    return wasEnded && isCallError(reason) ? { ...call, outcome: { error: reason } } : call;
  }

  async #change(change: (task: TaskRecord) => TaskRecord): Promise<void> {
    await this.#persist(async () => {
      const found = await this.#store.get(this.#task);
      if (found === undefined || !this.#isOurs(found.task)) return true;
      const updated = await this.#store.update(change(found.task), found.revision, this.#options.bounds);
      if (updated === "full") throw new CallError("RESOURCE_EXHAUSTED", "There is no room for it.");
      return updated !== "changed";
    });
  }

  /** Tries until it is done, or the task expires: a store that is away comes back. */
  async #persist(attempt: () => Promise<boolean>): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        if (this.#isOver || (await attempt())) return;
        tries = 0;
      } catch (thrown) {
        const isPassing = !isCallError(thrown) || thrown.code === "UNAVAILABLE";
        if (!isPassing || this.#store.now() >= this.#task.expiresAt) throw thrown;
        await pause(backoffMs(tries, RETRY.delayMs, RETRY.maxDelayMs));
      }
    }
  }

  #isOurs(task: TaskRecord): boolean {
    return !isSettled(task) && task.replica === this.#store.replica;
  }

  /** Ends what runs here, whatever has become of the task. */
  #drop(error: CallError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#expiry);
    clearInterval(this.#looking);
    clearTimeout(this.#sayLater);
    this.#stopWatching();
    for (const asked of this.#questions.values()) asked.reject(error);
    this.#questions.clear();
    this.#controller.abort(error);
    this.#options.onEnd();
    this.#onNoted?.();
  }
}

/** The task as it is once its result stands, or where there is none. */
export function settledBy(
  task: TaskRecord,
  by: { readonly text: string } | TaskFault,
  now: number,
): TaskRecord {
  const { questions: _, answers: __, resumption: ___, message: said, ...rest } = task;
  if (typeof by === "string") {
    const { message } = faultError(by);
    return { ...rest, status: "failed", ending: "call_error", fault: by, message, updatedAt: now };
  }
  const { outcome, isRefused } = JSON.parse(by.text) as TaskResult & { readonly isRefused?: true };
  const ending = endingOf(outcome);
  const message = failureOf(outcome) ?? said;
  return {
    ...rest,
    status: ending === "ok" ? "completed" : "failed",
    ending,
    ...(isRefused && { isRefused }),
    ...(message !== undefined && { message: shortText(message, TASK_LIMITS.messageCharacters - 1) }),
    updatedAt: now,
  };
}

/** Why a call failed, in its own words; nothing where it did not, or did not say. */
function failureOf({ kind, text }: TaskResult["outcome"]): string | undefined {
  const kept = JSON.parse(text) as {
    readonly message?: unknown;
    readonly meta?: { readonly waybill?: unknown };
  };
  const { waybill } = kept.meta ?? {};
  const message = kind === "error" ? kept.message : isPlainObject(waybill) ? waybill["message"] : undefined;
  return typeof message === "string" ? message : undefined;
}

function endingOf({ kind, text }: TaskResult["outcome"]): NonNullable<TaskRecord["ending"]> {
  if (kind === "error") return "call_error";
  const { meta } = JSON.parse(text) as { readonly meta?: { readonly isError?: unknown } };
  return meta?.isError === true ? "tool_error" : "ok";
}

/** What becomes of the work of a task that is not this process's any more. */
function endOf(task: TaskRecord | undefined): CallError {
  if (task === undefined) return taskExpired();
  if (task.status === "cancelled") return taskCancelled();
  return new CallError("ABORTED", "The task goes on elsewhere, or has ended.", { stack: false });
}

function failed({ requestId }: TaskRecord, thrown: unknown): TaskOutcome {
  const unknown = { cause: thrown, stack: false };
  const error = isCallError(thrown)
    ? thrown
    : new CallError("UNKNOWN_ERROR", "The task failed unexpectedly.", unknown);
  return { call: { outcome: { error }, requestId, durationMs: 0 }, isRefused: true };
}

function isSameTask(one: TaskRecord, other: TaskRecord): boolean {
  const { updatedAt: _, ...before } = one;
  const { updatedAt: __, ...after } = other;
  return JSON.stringify(sorted(before)) === JSON.stringify(sorted(after));
}

function sorted(task: object): unknown {
  return Object.entries(task).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Reads whatever a handler reports: words, a number, or an object that says how far it is. */
function readProgress(value: unknown): Pick<TaskRecord, "message" | "progress"> {
  if (typeof value === "string") return { message: value };
  if (typeof value === "number") return Number.isFinite(value) ? { progress: { progress: value } } : {};
  if (!isPlainObject(value)) return {};
  const { done, of, progress = done, total = of, message } = value;
  const isCounted = typeof progress === "number" && Number.isFinite(progress);
  const isTotal = typeof total === "number" && Number.isFinite(total);
  return {
    ...(isCounted && { progress: { progress, ...(isTotal && { total }) } }),
    ...(typeof message === "string" && { message }),
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => keepsNobody(setTimeout(resolve, ms)));
}

/** A process does not go on for a timer's sake; in a browser there is nothing to do. */
function keepsNobody(timer: ReturnType<typeof setTimeout> | undefined): void {
  (timer as unknown as { unref?: () => void } | undefined)?.unref?.();
}
