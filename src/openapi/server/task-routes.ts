import { type Identity, ownerOf } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import { addAbortListener, removeAbortListener } from "../../core/execution/cancellation.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { CallSlots } from "../../core/limits/call-slots.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Executor } from "../../core/registry/executor.ts";
import {
  endedCallOf,
  isSettled,
  type TaskRecord,
  type TaskResult,
  taskNotFound,
} from "../../core/tasks/task.ts";
import type { SettledTask, TaskAsker, Tasks } from "../../core/tasks/tasks.ts";
import { decodeBase64, encodeBase64 } from "../../core/wire/base64.ts";
import type { AuthenticatedRequest, HttpAnswer } from "../../http/exchange.ts";
import { accessRefusal, type CallRunner, type WantedCall } from "./call-runner.ts";
import { refuseOr } from "./problem-answer.ts";
import { readReserved } from "./read-request.ts";
import { type Negotiation, type Representation, representationName, writeAnswer } from "./write-answer.ts";

/** Where tasks are; one of them is at `/tasks/<id>`, and what it came to at `/tasks/<id>/result`. */
export const TASKS_PATH = "/tasks";

/** The longest time that somebody waits for a result in one request, in milliseconds. */
const LONGEST_WAIT_MS = 60_000;

const LISTED = { allow: "GET, HEAD, OPTIONS" };
const CANCELLABLE = { allow: "GET, HEAD, DELETE, OPTIONS" };

interface TaskRoutesOptions {
  readonly tasks: Tasks;
  readonly executor: Executor;
  readonly runner: CallRunner;
  /** A request that waits for a task takes one of them. */
  readonly slots: CallSlots;
  readonly negotiation: Negotiation;
}

/** What a client asks for with `Prefer` (RFC 7240). */
interface Preference {
  readonly isAsync: boolean;
  /** Milliseconds that it waits first; nothing where it did not say. */
  readonly waitMs: number | undefined;
}

/** Answers calls later that ask for that, and tells how they are doing. */
export class TaskRoutes {
  readonly #options: TaskRoutesOptions;

  constructor(options: TaskRoutesOptions) {
    this.#options = options;
  }

  /** Runs a call whose client would rather not wait: the answer is a task, or what came of it in the time the client waits. Nothing for any other. */
  runLater(wanted: WantedCall): Promise<HttpAnswer> | undefined {
    const given = wanted.caller.request.header("prefer");
    if (given === undefined) return undefined;
    const { isAsync, waitMs = 0 } = readPreference(given);
    const operation = isAsync ? this.#options.executor.get(wanted.operationId) : undefined;
    if (operation === undefined || operation.visibility === "internal") return undefined;
    return this.#start(wanted, operation, waitMs);
  }

  /** Answers a request below `/tasks`; nothing for other paths. */
  answer(caller: AuthenticatedRequest): Promise<HttpAnswer> | HttpAnswer | undefined {
    const { path } = caller.request;
    if (path === TASKS_PATH) return refuseOr(caller, LISTED, () => this.#list(caller));
    if (!path.startsWith(`${TASKS_PATH}/`)) return undefined;
    const [id = "", part, ...more] = path.slice(TASKS_PATH.length + 1).split("/");
    if (part === "result" && more.length === 0)
      return refuseOr(caller, LISTED, () => this.#result(caller, id));
    if (part !== undefined) return undefined;
    const isCancel = caller.request.method === "DELETE";
    return refuseOr(caller, CANCELLABLE, () =>
      isCancel ? this.#cancel(caller, id) : this.#status(caller, id),
    );
  }

  async #start(wanted: WantedCall, operation: AnyOperation, waitMs: number): Promise<HttpAnswer> {
    const { tasks, executor, runner } = this.#options;
    const { caller, operationId, input } = wanted;
    const { identity, requestId } = caller;
    const refusal = accessRefusal(executor, operation, identity);
    if (refusal !== undefined) throw refusal;
    const asked = { owner: ownerOf(identity), identity, operationId, input, requestId };
    const task = await tasks.start(asked, async (run) => ({ call: await runner.runAsTask(wanted, run) }));
    const settled = await this.#settledWithin(caller, task, waitMs);
    if (settled === undefined) return { ...this.#accepted(task), status: 202 };
    return await this.#write(settled, caller, wanted.representation);
  }

  async #list(caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const { tasks, executor } = this.#options;
    const cursor = new URLSearchParams(caller.request.query).get("cursor") ?? undefined;
    const page = await tasks.list(askerOf(caller), { cursor });
    const mayCall = callableBy(executor, caller.identity);
    const shown = page.tasks.filter(({ operationId }) => mayCall(operationId));
    const next = page.nextCursor;
    const link = next === undefined ? {} : { link: `<?cursor=${encodeURIComponent(next)}>; rel="next"` };
    const body = {
      tasks: shown.map((task) => this.#show(task)),
      ...(next !== undefined && { nextCursor: next }),
    };
    return { status: 200, headers: { ...JSON_HEADERS, ...link }, body: JSON.stringify(body) };
  }

  async #status(caller: AuthenticatedRequest, id: string): Promise<HttpAnswer> {
    const task = await this.#visible(caller, id);
    return { ...this.#accepted(task), status: 200 };
  }

  async #result(caller: AuthenticatedRequest, id: string): Promise<HttpAnswer> {
    const { negotiation } = this.#options;
    const { request, identity } = caller;
    const { format } = readReserved(request.query);
    const representation = negotiation.choose(request.header("accept"), format, identity);
    const task = await this.#visible(caller, id);
    const { waitMs = 0 } = readPreference(request.header("prefer") ?? "");
    const settled = await this.#settledWithin(caller, task, waitMs);
    // Asked too early, it is not there yet.
    if (settled === undefined) return { ...this.#accepted(await this.#visible(caller, id)), status: 202 };
    return await this.#write(settled, caller, representation);
  }

  async #cancel(caller: AuthenticatedRequest, id: string): Promise<HttpAnswer> {
    await this.#visible(caller, id);
    const { task } = await this.#options.tasks.cancel(askerOf(caller), id);
    if (task.status === "cancelled") return { ...this.#accepted(task), status: 200 };
    const details = { reason: "task_settled", status: task.status };
    throw new CallError("CONFLICT", "The task has ended already; its result stands.", {
      details,
      stack: false,
    });
  }

  /** The task, for a caller who may still call its operation; for anybody else there is none. */
  async #visible(caller: AuthenticatedRequest, id: string): Promise<TaskRecord> {
    const { tasks, executor } = this.#options;
    const task = await tasks.get(askerOf(caller), id);
    if (!callableBy(executor, caller.identity)(task.operationId)) throw taskNotFound();
    return task;
  }

  /** What a task came to, once it has; nothing where the time is over first, the client leaves, or no further request may wait. */
  async #settledWithin(
    caller: AuthenticatedRequest,
    task: TaskRecord,
    waitMs: number,
  ): Promise<SettledTask | undefined> {
    const { tasks, slots } = this.#options;
    const asker = askerOf(caller);
    if (isSettled(task)) return await tasks.result(asker, task.id);
    if (waitMs === 0 || !hasTaken(slots, asker.owner)) return undefined;
    const { signal } = caller.request;
    const over = new AbortController();
    const leave = { onAbort: () => over.abort() };
    if (signal.aborted) over.abort();
    else addAbortListener(signal, leave);
    const timer = setTimeout(() => over.abort(), Math.min(waitMs, LONGEST_WAIT_MS));
    try {
      return await tasks.result(asker, task.id, { signal: over.signal });
    } catch (thrown) {
      if (over.signal.aborted) return undefined;
      throw thrown;
    } finally {
      clearTimeout(timer);
      removeAbortListener(signal, leave);
      slots.giveBack(asker.owner);
    }
  }

  /** Says how a task is doing, and when to look again. */
  #accepted(task: TaskRecord): HttpAnswer {
    const isOpen = !isSettled(task);
    const seconds = String(Math.max(1, Math.ceil(this.#options.tasks.bounds.pollMs / 1_000)));
    const headers = {
      ...JSON_HEADERS,
      location: `${TASKS_PATH}/${task.id}`,
      ...(isOpen && { "retry-after": seconds, "preference-applied": "respond-async" }),
    };
    return { status: 200, headers, body: JSON.stringify(this.#show(task)) };
  }

  #show(task: TaskRecord): object {
    const { id, operationId, status, message, progress, questions, createdAt, updatedAt, expiresAt } = task;
    const at = `${TASKS_PATH}/${id}`;
    return {
      id,
      operation: operationId,
      status,
      ...(message !== undefined && { message }),
      ...(progress !== undefined && { progress }),
      ...(questions !== undefined && { questions }),
      createdAt: new Date(createdAt).toISOString(),
      updatedAt: new Date(updatedAt).toISOString(),
      expiresAt: new Date(expiresAt).toISOString(),
      ...(!this.#options.tasks.isLasting && { endsWithServer: true }),
      links: { self: at, ...(isSettled(task) && { result: `${at}/result` }) },
    };
  }

  /** Writes what a task came to as the call itself would have been answered; what was written once stands. */
  async #write(
    settled: SettledTask,
    caller: AuthenticatedRequest,
    representation: Representation,
  ): Promise<HttpAnswer> {
    const { tasks, executor, runner } = this.#options;
    const { requestId, identity } = caller;
    const { operationId } = settled.task;
    const form = `http ${representationName(representation)}`;
    const text = await tasks.written(settled, form, async (result: TaskResult) => {
      const ended = endedCallOf(result);
      const call = { operationId, operation: executor.get(operationId), identity, ...ended };
      const options = { representation, nested: false, caller, errorHeaders: runner.errorHeaders };
      return encodeAnswer(await writeAnswer({ ...call, requestId: ended.requestId }, options));
    });
    const answer = decodeAnswer(text);
    return {
      ...answer,
      headers: { ...answer.headers, "cache-control": "no-store", "x-request-id": requestId },
    };
  }
}

const JSON_HEADERS = { "content-type": "application/json", "cache-control": "no-store" };

function askerOf({ identity }: AuthenticatedRequest): TaskAsker {
  return { owner: ownerOf(identity), identity };
}

/** Tells whether one more may wait: a client that only prefers to is not refused for it. */
function hasTaken(slots: CallSlots, owner: string): boolean {
  try {
    slots.take(owner);
    return true;
  } catch {
    return false;
  }
}

/** Tells which operations a caller may call; asked once for a whole list. */
function callableBy(executor: Executor, identity: Identity | undefined): (operationId: string) => boolean {
  const ids = new Set<string>(executor.list({ identity }).map(({ id }) => id));
  return (operationId) => ids.has(operationId);
}

/** Reads the two preferences that matter here; others, and what cannot be read, count as not said. */
function readPreference(header: string): Preference {
  const said = new Map(
    header
      .slice(0, MOST_PREFERENCE)
      .split(/[,;]/)
      .map((piece) => {
        const [name = "", value = ""] = piece.split("=", 2);
        return [name.trim().toLowerCase(), value.trim().replaceAll('"', "")] as const;
      })
      // What is said first counts.
      .reverse(),
  );
  const wait = said.get("wait") ?? "";
  return {
    isAsync: said.has("respond-async"),
    waitMs: /^\d{1,6}$/.test(wait) ? Number(wait) * 1_000 : undefined,
  };
}

/** Characters of a `Prefer` header that are read. */
const MOST_PREFERENCE = 1_000;

function encodeAnswer({ status, headers, body }: HttpAnswer): string {
  const bytes = body instanceof Uint8Array ? encodeBase64(body) : undefined;
  return JSON.stringify({ status, headers, ...(bytes === undefined ? { body } : { bytes }) });
}

function decodeAnswer(text: string): HttpAnswer {
  const { status, headers, body, bytes } = JSON.parse(text);
  const shown = isPlainObject(headers) ? (headers as HttpAnswer["headers"]) : {};
  return { status, headers: shown, body: typeof bytes === "string" ? decodeBase64(bytes) : body };
}
