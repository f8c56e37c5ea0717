import { ownerOf } from "../access/identity.ts";
import type { ResponseEnvelope } from "../envelope/envelope.ts";
import { CallError } from "../errors/errors.ts";
import { isRequestId, randomId } from "../execution/call-context.ts";
import { LONGEST_DELAY } from "../execution/cancellation.ts";
import type { ExecuteOptions, Executor } from "../registry/executor.ts";
import { endCall } from "../result/ended-call.ts";
import { endedCallOf, isSettled, type TaskRecord } from "../tasks/task.ts";
import type { TaskAsker, Tasks } from "../tasks/tasks.ts";

/** How a task is doing; what runs elsewhere may say no more than its status. */
export interface TaskState extends Pick<TaskRecord, "id" | "operationId" | "status"> {
  /** What it said last, or why it failed. */
  readonly message?: string | undefined;
  readonly progress?: TaskRecord["progress"];
  /** Unix epoch milliseconds. */
  readonly createdAt?: number | undefined;
  readonly updatedAt?: number | undefined;
  readonly expiresAt?: number | undefined;
}

/** How long the result of a task is waited for; the task goes on in either case. */
export interface TaskWaitOptions {
  /** @default it is waited for to its end */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a call that becomes a task may be told: `timeoutMs` is the time of the task, and the caller that starts it may leave. */
export interface StartOptions extends Omit<ExecuteOptions, "signal"> {
  /** Milliseconds that the task and its result are kept. @default what the bounds of the tasks say */
  readonly ttlMs?: number | undefined;
}

/** A call that goes on when nobody waits for it; iterating gives its states until it has ended. */
export interface StartedTask extends AsyncIterable<TaskState> {
  /** By which it is found again. */
  readonly id: string;
  status(): Promise<TaskState>;
  /** The envelope that the call ended in; throws the error it ended in. */
  result(options?: TaskWaitOptions): Promise<ResponseEnvelope>;
  /** Ends it; one that has ended stays as it is. */
  cancel(): Promise<void>;
}

/** Starts a call as a task of this process. */
export async function startTask(
  tasks: Tasks,
  executor: Executor,
  call: { readonly operationId: string; readonly input: unknown; readonly options: StartOptions },
): Promise<StartedTask> {
  const { operationId, input, options } = call;
  const { ttlMs, identity, requestId: given, ...rest } = options;
  const asker: TaskAsker = { owner: `client ${ownerOf(identity)}`, identity };
  const requestId = isRequestId(given) ? given : randomId();
  const { id } = await tasks.start(
    { ...asker, operationId, input, requestId, ttlMs },
    async ({ signal, link, onProgress: tell }) => {
      const onProgress = (value: unknown): void => {
        tell(value);
        rest.onProgress?.(value);
      };
      const caller = { ...rest.caller, task: link };
      const told = { ...rest, identity, requestId, signal, onProgress, caller };
      return { call: await endCall(executor, operationId, input, told) };
    },
  );
  return new LocalTask(tasks, asker, id);
}

class LocalTask implements StartedTask {
  readonly id: string;
  readonly #tasks: Tasks;
  readonly #asker: TaskAsker;

  constructor(tasks: Tasks, asker: TaskAsker, id: string) {
    this.#tasks = tasks;
    this.#asker = asker;
    this.id = id;
  }

  async status(): Promise<TaskState> {
    return toState(await this.#tasks.get(this.#asker, this.id));
  }

  async result({ timeoutMs, signal }: TaskWaitOptions = {}): Promise<ResponseEnvelope> {
    const wait = (until: AbortSignal) => this.#tasks.result(this.#asker, this.id, { signal: until });
    const { outcome } = endedCallOf((await waitedFor({ timeoutMs, signal }, wait)).result);
    if ("error" in outcome) throw outcome.error;
    return outcome.envelope;
  }

  async cancel(): Promise<void> {
    await this.#tasks.cancel(this.#asker, this.id);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TaskState> {
    let latest: TaskRecord | undefined;
    let wake = (): void => {};
    const leave = await this.#tasks.watch(this.#asker, this.id, (task) => {
      latest = task;
      wake();
    });
    try {
      let shown = await this.#tasks.get(this.#asker, this.id);
      yield toState(shown);
      while (!isSettled(shown)) {
        if (latest === undefined) await this.#changed(shown, (heard) => (wake = heard));
        // A reader who is slower than the task sees the latest state alone.
        shown = latest ?? (await this.#tasks.get(this.#asker, this.id));
        latest = undefined;
        yield toState(shown);
      }
    } finally {
      leave();
    }
  }

  /** Waits until something is heard; a task that expires says nothing. */
  async #changed({ expiresAt }: TaskRecord, hear: (heard: () => void) => void): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      hear(resolve);
      timer = setTimeout(resolve, Math.min(Math.max(0, expiresAt - Date.now()) + 1, LONGEST_DELAY));
    });
    clearTimeout(timer);
  }
}

function toState(task: TaskRecord): TaskState {
  const { id, operationId, status, message, progress, createdAt, updatedAt, expiresAt } = task;
  return { id, operationId, status, message, progress, createdAt, updatedAt, expiresAt };
}

/** Waits for something that goes on when nobody waits any more; the signal that it is given aborts then. */
async function waitedFor<T>(
  { timeoutMs, signal }: TaskWaitOptions,
  wait: (until: AbortSignal) => Promise<T>,
): Promise<T> {
  const leaving = new AbortController();
  const leave = (): void => leaving.abort();
  // A timer may fire before the clock shows its time, so it tells by itself that the time is over.
  let late = false;
  const endWait = (): void => {
    late = true;
    leave();
  };
  const timer = timeoutMs === undefined ? undefined : setTimeout(endWait, Math.min(timeoutMs, LONGEST_DELAY));
  signal?.addEventListener("abort", leave, { once: true });
  if (signal?.aborted === true) leave();
  try {
    return await wait(leaving.signal);
  } catch (thrown) {
    if (!late || signal?.aborted === true) throw thrown;
    const message = "The task has not ended yet; it goes on, and its result can be waited for again.";
    throw new CallError("TIMEOUT", message, { cause: thrown, stack: false });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", leave);
  }
}
