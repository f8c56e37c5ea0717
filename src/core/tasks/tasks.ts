import { holdsRights, type Identity, type Rights } from "../access/identity.ts";
import { Listeners } from "../collections/listeners.ts";
import { CallError, isCallError } from "../errors/errors.ts";
import { randomId } from "../execution/call-context.ts";
import { addAbortListener, LONGEST_DELAY, removeAbortListener } from "../execution/cancellation.ts";
import { toKept } from "../idempotency/idempotent-calls.ts";
import { type JsonValue, toJsonTextOrNone } from "../json/json-value.ts";
import { CallSlots } from "../limits/call-slots.ts";
import type { CallerSide } from "../operation/caller-side.ts";
import { checkOption, checkOptionsObject, readBounds } from "../options/check-options.ts";
import { CLOSE_TIMEOUT_MS, type CloseOptions } from "../options/shared-options.ts";
import type { Executor } from "../registry/executor.ts";
import { endCall } from "../result/ended-call.ts";
import { fromWire, toWire } from "../wire/wire.ts";
import { RESULT_KEY, RunningTask, settledBy, type TaskRun, type TaskWork } from "./running-task.ts";
import {
  faultError,
  isSettled,
  TASK_BOUNDS,
  TASK_LIMITS,
  type TaskBounds,
  type TaskQuestion,
  type TaskRecord,
  type TaskResult,
  taskCancelled,
  taskNotFound,
  tooManyTasks,
  toResumption,
} from "./task.ts";
import { MemoryTaskStore, type StoredTask, type TaskStore, taskKey } from "./task-store.ts";

/** How tasks are kept and resumed. */
export interface TasksOptions {
  /** @default in this process: tasks end with it */
  readonly store?: TaskStore | undefined;
  /** What goes on with a task whose process is gone, where its handler noted how. @default such a task is lost */
  readonly executor?: Pick<Executor, "execute" | "get"> | undefined;
  /** May change. @default those of `TASK_BOUNDS` */
  readonly limits?: { readonly [Name in keyof TaskBounds]?: number | undefined } | undefined;
  /** Milliseconds after which a call becomes a task where its caller takes one. @default only what is durable does, at once */
  readonly afterMs?: number | undefined;
  /** Whether callers are told apart, and one among others has three quarters of what may run. @default true */
  readonly isShared?: boolean | undefined;
  /**
   * Whether the handler of an operation notes how another process goes on with its call: a lasting task of it begins once that is noted, or after
   * a second, so that a process that dies in between loses nothing that a client was told of. @default none does
   */
  readonly isResumable?: ((operationId: string) => boolean) | undefined;
}

/** A call that is to be a task. */
export interface TaskStart {
  /** See `ownerOf`; a session for an anonymous caller. */
  readonly owner: string;
  readonly identity: Identity | undefined;
  readonly operationId: string;
  /** What another process needs to go on with it. @default `undefined` */
  readonly input?: unknown;
  /** What its handler noted with `hold` while the call was no task yet: it is stored with the task. @default nothing */
  readonly handle?: JsonValue | undefined;
  readonly requestId: string;
  /** Milliseconds that the caller wants it kept. @default `keepMs` of the bounds, which is also the most */
  readonly ttlMs?: number | undefined;
}

/** Who asks for a task. */
export interface TaskAsker {
  readonly owner: string;
  readonly identity: Identity | undefined;
  /** Who is asked what a task wants to know that this process takes up. @default nobody can be asked */
  readonly callerOf?: ((run: TaskRun) => CallerSide) | undefined;
}

/** A task that is settled, and what it came to. */
export interface SettledTask {
  readonly task: TaskRecord;
  readonly result: TaskResult;
}

/** A page of tasks. */
export interface TaskPage {
  readonly tasks: readonly TaskRecord[];
  readonly nextCursor?: string;
}

const ID = /^[0-9a-f]{32}$/;
const PAGE = 100;
/** Milliseconds that ending something elsewhere may take. */
const END_MS = 30_000;
/** Between two looks of somebody who waits, should nobody tell of a change. */
const POLL_MS = 2_000;
/** Milliseconds that the id of a relayed task waits for the note of its handler. */
const NOTE_MS = 1_000;
const OPTIONS = Object.keys({
  store: true,
  executor: true,
  limits: true,
  afterMs: true,
  isShared: true,
  isResumable: true,
} satisfies Record<keyof TasksOptions, true>);

/**
 * Calls that outlive the request that made them. A task is settled once: by a result, an error, a cancellation or its expiry; a caller that asks
 * later gets the same answer until it expires, at whichever process. Only its owner learns that it exists.
 */
export class Tasks {
  readonly #store: TaskStore;
  readonly #executor: TasksOptions["executor"];
  readonly #isResumable: NonNullable<TasksOptions["isResumable"]>;
  readonly #running = new Map<string, RunningTask>();
  /** Those that may have been stored although nobody was told so: they do not run. */
  readonly #strays = new Set<string>();
  readonly #slots: CallSlots;
  readonly #ended = new Listeners();
  readonly bounds: TaskBounds;
  /** Milliseconds after which a call becomes a task where its caller takes one; nothing where only durable calls do. */
  readonly afterMs: number | undefined;
  #isClosed = false;

  constructor(options: TasksOptions = {}) {
    checkOptionsObject(options, OPTIONS);
    const { store = new MemoryTaskStore(), executor, limits, isShared = true, afterMs } = options;
    // A timer that waits for longer fires at once.
    const isDelay = Number.isSafeInteger(afterMs) && Number(afterMs) >= 0 && Number(afterMs) <= LONGEST_DELAY;
    checkOption("afterMs", afterMs, `a whole number from 0 to ${LONGEST_DELAY}`, isDelay);
    this.#store = store;
    this.#executor = executor;
    this.#isResumable = options.isResumable ?? (() => false);
    this.bounds = readBounds(limits, { ...TASK_BOUNDS });
    this.#slots = new CallSlots({ calls: this.bounds.running }, isShared);
    this.afterMs = afterMs;
  }

  /** Whether a restart of this process loses none of them; those that run are lost unless another process can go on with them. */
  get isLasting(): boolean {
    return this.#store.isLasting;
  }

  /** Tasks that run in this process. */
  get running(): number {
    return this.#running.size;
  }

  /** Begins a task; it is stored before its work begins, and before this resolves. Throws `RESOURCE_EXHAUSTED` where there is no room. */
  async start(asked: TaskStart, work: TaskWork): Promise<TaskRecord> {
    if (this.#isClosed) throw new CallError("UNAVAILABLE", "The server is closing.", { stack: false });
    const { owner } = asked;
    this.#slots.take(owner);
    let task: TaskRecord;
    try {
      await this.#store.hold();
      task = this.#record(asked);
      const created = this.#store.create(task, this.bounds).catch((thrown) => {
        if (this.#strays.size < this.bounds.tasks) this.#strays.add(taskKey(task));
        throw thrown;
      });
      if ((await created) === undefined) throw tooManyTasks();
    } catch (thrown) {
      this.#slots.giveBack(owner);
      throw thrown;
    }
    const running = this.#run(task, work, { input: asked.input });
    const isAwaited = this.#store.isLasting && task.resumption === undefined;
    if (isAwaited && this.#isResumable(asked.operationId)) await running.noted(NOTE_MS);
    return task;
  }

  /** The task as it is now; throws `NOT_FOUND`, the same for whatever is not there or not for this asker. */
  async get(asker: TaskAsker, id: unknown): Promise<TaskRecord> {
    return (await this.#find(asker, id)).task;
  }

  /** Waits until a task is settled, and gives what it came to; throws `NOT_FOUND` where it is gone by then. */
  async result(
    asker: TaskAsker,
    id: unknown,
    options: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<SettledTask> {
    let found = await this.#find(asker, id);
    while (!isSettled(found.task)) {
      await this.#changed(found, options.signal);
      found = await this.#find(asker, id);
    }
    return { task: found.task, result: await this.#resultOf(found.task) };
  }

  /** What a task came to, in a form of one surface: written once, and the same from then on. */
  async written(
    { task, result }: SettledTask,
    form: string,
    write: (result: TaskResult) => Promise<string>,
  ): Promise<string> {
    const known = result.written?.[form] ?? (await this.#store.kept(task, `form ${form}`));
    if (known !== undefined) return known;
    const text = await write(result);
    const isKept = new TextEncoder().encode(text).length <= this.bounds.resultBytes;
    const stands = isKept ? await this.#store.keep(task, `form ${form}`, text, this.bounds) : undefined;
    if (stands !== undefined) return stands;
    if (this.#store.now() >= task.expiresAt) throw taskNotFound();
    // Where there is no room to keep it, it is written again for the next caller.
    return text;
  }

  /** The tasks of an asker, the latest first. */
  async list(
    asker: TaskAsker,
    options: { readonly cursor?: unknown; readonly limit?: number } = {},
  ): Promise<TaskPage> {
    const { cursor, limit = PAGE } = options;
    const after = cursor === undefined ? undefined : readCursor(cursor);
    const all = (await this.#store.list(asker.owner))
      .filter((task) => holdsRights(asker.identity, task.rights))
      .sort((a, b) => compare(placeOf(b), placeOf(a)));
    const rest = after === undefined ? all : all.filter((task) => compare(placeOf(task), after) < 0);
    const tasks = rest.slice(0, limit);
    const last = tasks.at(-1);
    const current = await Promise.all(
      tasks.map((task) => (isSettled(task) ? task : this.#currentOf(asker, task))),
    );
    return {
      tasks: current.filter((task) => task !== undefined),
      ...(last !== undefined && rest.length > limit && { nextCursor: placeOf(last) }),
    };
  }

  /** Cancels a task; one that is settled stays as it is. Resolves with the task, and whether this has cancelled it. */
  async cancel(
    asker: TaskAsker,
    id: unknown,
  ): Promise<{ readonly task: TaskRecord; readonly isChanged: boolean }> {
    for (;;) {
      const { task, revision } = await this.#find(asker, id, "cancel");
      if (isSettled(task)) return { task, isChanged: false };
      const { questions: _, answers: __, resumption, ...rest } = task;
      const cancelled: TaskRecord = { ...rest, status: "cancelled", updatedAt: this.#store.now() };
      const updated = await this.#store.update(cancelled, revision, this.bounds);
      if (updated === "full") throw tooManyTasks();
      if (updated === "changed") continue;
      const running = this.#running.get(taskKey(task));
      running?.look();
      if (running === undefined && resumption?.handle !== undefined) await this.#endElsewhere(asker, task);
      return { task: cancelled, isChanged: true };
    }
  }

  /**
   * Answers questions of a task, by their names; names that are not asked are skipped, and so is what `isAnswer` refuses. Resolves with
   * the task as it is then.
   */
  async answer(
    asker: TaskAsker,
    id: unknown,
    answers: Readonly<Record<string, unknown>>,
    isAnswer: (question: TaskQuestion, answer: unknown) => boolean = () => true,
  ): Promise<TaskRecord> {
    for (;;) {
      const { task, revision } = await this.#find(asker, id);
      const open = Object.entries(task.questions ?? {});
      const given = open.filter(
        ([key, question]) => isUsable(answers, key) && isAnswer(question, answers[key]),
      );
      if (isSettled(task) || given.length === 0) return task;
      const names = new Set(given.map(([key]) => key));
      const left = open.filter(([key]) => !names.has(key));
      const { questions: _, ...rest } = task;
      const answered: TaskRecord = {
        ...rest,
        status: left.length > 0 ? "input_required" : "working",
        ...(left.length > 0 && { questions: Object.fromEntries(left) }),
        answers: {
          ...task.answers,
          ...Object.fromEntries(given.map(([key]) => [key, answers[key] as JsonValue])),
        },
        updatedAt: this.#store.now(),
      };
      const updated = await this.#store.update(answered, revision, this.bounds);
      if (updated === "full") throw tooManyTasks();
      if (updated === "changed") continue;
      this.#running.get(taskKey(task))?.look();
      return answered;
    }
  }

  /** Hears of every change of a task that is the asker's, until it is settled or gone, or the function that it gives is called. */
  async watch(asker: TaskAsker, id: unknown, listener: (task: TaskRecord) => void): Promise<() => void> {
    const leaving = new AbortController();
    let found = await this.#find(asker, id);
    const follow = async (): Promise<void> => {
      while (!isSettled(found.task) && !leaving.signal.aborted) {
        const { revision } = found;
        await this.#changed(found, leaving.signal);
        found = await this.#find(asker, id);
        if (found.revision !== revision) listener(found.task);
      }
    };
    follow().catch(() => {});
    return () => leaving.abort();
  }

  /** Begins no more, and ends what runs: what another process can go on with is left to it. */
  async close({ timeoutMs = CLOSE_TIMEOUT_MS }: CloseOptions = {}): Promise<void> {
    this.#isClosed = true;
    const error = new CallError("UNAVAILABLE", faultError("lost").message, {
      details: { reason: "task_lost_by_restart" },
      retryable: false,
      stack: false,
    });
    for (const running of [...this.#running.values()]) running.leave(error);
    if (this.#running.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.#ended.add(() => {
        if (this.#running.size > 0) return;
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #record({ owner, identity, operationId, requestId, ttlMs, input, handle }: TaskStart): TaskRecord {
    const { keepMs } = this.bounds;
    const resumption = handle === undefined ? undefined : resumptionOrNone(handle, input);
    const now = this.#store.now();
    const asked = ttlMs === undefined || !Number.isFinite(ttlMs) ? keepMs : Math.trunc(ttlMs);
    const kept = Math.min(keepMs, Math.max(TASK_LIMITS.leastKeepMs, asked));
    return {
      id: randomId(),
      owner,
      operationId,
      requestId,
      rights: rightsOf(identity),
      status: "working",
      createdAt: now,
      updatedAt: now,
      expiresAt: now + kept,
      replica: this.#store.replica,
      ...(resumption !== undefined && { resumption }),
    };
  }

  #run(
    task: TaskRecord,
    work: TaskWork,
    options: { readonly input?: unknown; readonly isResumed?: boolean },
  ): RunningTask {
    const key = taskKey(task);
    const onEnd = (): void => {
      if (this.#running.get(key) !== running) return;
      this.#running.delete(key);
      this.#slots.giveBack(task.owner);
      this.#ended.tell();
    };
    const running = new RunningTask(task, { store: this.#store, bounds: this.bounds, onEnd, ...options });
    this.#running.set(key, running);
    running.run(work);
    return running;
  }

  /** Finds a task for a caller who may see it; one whose process is gone is taken up by this one, or settled. */
  async #find(asker: TaskAsker, id: unknown, purpose: "see" | "cancel" = "see"): Promise<StoredTask> {
    for (;;) {
      const found =
        typeof id === "string" && ID.test(id) ? await this.#store.get({ owner: asker.owner, id }) : undefined;
      if (found === undefined || !holdsRights(asker.identity, found.task.rights)) throw taskNotFound();
      if (!(await this.#isLeft(found.task))) return found;
      if (purpose === "cancel" && found.task.resumption !== undefined) return found;
      // Another process may do the same: what is stored decides. Where there is no room for it, the next request tries again.
      if (!(await this.#takeUp(asker, found))) return found;
    }
  }

  /** Whether a task has not ended and nobody runs it. */
  async #isLeft(task: TaskRecord): Promise<boolean> {
    if (isSettled(task) || this.#running.has(taskKey(task))) return false;
    return this.#strays.has(taskKey(task)) || (await this.#store.isGone(task.replica));
  }

  /** Goes on with a task, or settles it as lost; says whether there was room for that. */
  async #takeUp(asker: TaskAsker, { task, revision }: StoredTask): Promise<boolean> {
    const work = this.#resumedWork(asker, task);
    if (work === undefined) {
      const lost = settledBy(task, "lost", this.#store.now());
      return (await this.#store.update(lost, revision, this.bounds)) !== "full";
    }
    const { owner } = task;
    await this.#store.hold();
    this.#slots.take(owner);
    const { questions: _, answers: __, ...rest } = task;
    const taken: TaskRecord = {
      ...rest,
      status: "working",
      replica: this.#store.replica,
      updatedAt: this.#store.now(),
    };
    const updated = await this.#store.update(taken, revision, this.bounds).catch((thrown) => {
      this.#slots.giveBack(owner);
      throw thrown;
    });
    if (typeof updated === "number") this.#run(taken, work, { isResumed: true });
    else this.#slots.giveBack(owner);
    return updated !== "full";
  }

  /** Ends what a cancelled task has left running in a place that its process told of. */
  async #endElsewhere(asker: TaskAsker, task: TaskRecord): Promise<void> {
    const work = this.#resumedWork(asker, task);
    if (work === undefined || !(await this.#store.isGone(task.replica))) return;
    const { resumption } = task;
    const run: TaskRun = {
      task,
      signal: AbortSignal.timeout(END_MS),
      link: {
        id: task.id,
        handle: resumption?.handle,
        isCancelled: true,
        hold: async () => {},
        say: () => {},
      },
      ask: () => Promise.reject(taskCancelled()),
      onProgress: () => {},
    };
    void work(run).catch(() => {});
  }

  /** Calls the operation again, whose handler goes on from what it noted. */
  #resumedWork(
    { identity, callerOf }: TaskAsker,
    { resumption, operationId, requestId }: TaskRecord,
  ): TaskWork | undefined {
    const executor = this.#executor;
    if (resumption === undefined || executor === undefined || this.#isClosed) return undefined;
    return async (run) => {
      const caller = callerOf?.(run) ?? { task: run.link };
      const { signal, onProgress } = run;
      const options = { identity, signal, onProgress, requestId, caller };
      const input = resumption.input === undefined ? undefined : fromWire(resumption.input);
      return { call: await endCall(executor as Executor, operationId, input, options) };
    };
  }

  async #currentOf(asker: TaskAsker, task: TaskRecord): Promise<TaskRecord | undefined> {
    try {
      return (await this.#find(asker, task.id)).task;
    } catch (thrown) {
      // It expired while the list was made.
      if (isCallError(thrown) && thrown.code === "NOT_FOUND") return undefined;
      throw thrown;
    }
  }

  async #resultOf(task: TaskRecord): Promise<TaskResult> {
    const failure = task.status === "cancelled" ? taskCancelled() : task.fault && faultError(task.fault);
    if (failure !== undefined) {
      return { outcome: toKept({ requestId: task.requestId, durationMs: 0, outcome: { error: failure } }) };
    }
    const text = await this.#store.kept(task, RESULT_KEY);
    // Both were kept until the same moment, which has just passed.
    if (text === undefined) throw taskNotFound();
    return JSON.parse(text) as TaskResult;
  }

  /** Resolves when a task may not be any more as it was found. */
  async #changed({ task, revision }: StoredTask, signal: AbortSignal | undefined): Promise<void> {
    let wake = (): void => {};
    const changed = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const listener = { onAbort: () => wake() };
    const stop = this.#store.watch(task, wake);
    const timer = setTimeout(wake, Math.max(0, Math.min(POLL_MS, task.expiresAt - this.#store.now() + 1)));
    if (signal?.aborted === true) wake();
    else if (signal !== undefined) addAbortListener(signal, listener);
    try {
      // It may have changed before it was watched.
      const now = await this.#store.get(task);
      if (now?.revision === revision) await changed;
    } finally {
      stop();
      clearTimeout(timer);
      if (signal !== undefined) removeAbortListener(signal, listener);
    }
    if (signal?.aborted === true)
      throw new CallError("ABORTED", "Nobody waits for the task any more; it goes on.", { stack: false });
  }
}

/** Where it is too long to be kept, the task stays with its process. */
function resumptionOrNone(handle: JsonValue, input: unknown): TaskRecord["resumption"] {
  try {
    return toResumption({ handle }, input === undefined ? undefined : toWire(input));
  } catch {
    return undefined;
  }
}

function rightsOf({ scopes, resources, tier }: Partial<Rights> = {}): Rights {
  return { ...(scopes && { scopes }), ...(resources && { resources }), ...(tier && { tier }) };
}

function isUsable(answers: Readonly<Record<string, unknown>>, key: string): boolean {
  if (!Object.hasOwn(answers, key)) return false;
  const length = toJsonTextOrNone(answers[key])?.length ?? Number.POSITIVE_INFINITY;
  return length <= TASK_LIMITS.questionCharacters;
}

/** Where a task stands in a list: by when it began, as a text that sorts. */
function placeOf({ createdAt, id }: TaskRecord): string {
  return `${String(createdAt).padStart(15, "0")}.${id}`;
}

function readCursor(cursor: unknown): string {
  if (typeof cursor === "string" && /^[0-9]{15}\.[0-9a-f]{32}$/.test(cursor)) return cursor;
  throw new CallError("VALIDATION_ERROR", "The cursor is not one of this list.", { stack: false });
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
