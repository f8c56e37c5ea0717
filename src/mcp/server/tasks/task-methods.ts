import { isCallError } from "../../../core/errors/errors.ts";
import { addAbortListener, removeAbortListener } from "../../../core/execution/cancellation.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import {
  endedCallOf,
  isSettled,
  type TaskQuestion,
  type TaskRecord,
  taskNotFound,
} from "../../../core/tasks/task.ts";
import type { SettledTask, Tasks } from "../../../core/tasks/tasks.ts";
import { invalidParams, ProtocolError, type RpcError } from "../../protocol/messages.ts";
import type { PeerRequest } from "../peer-request.ts";
import type { RequestAnswer } from "../resources/serve-providers.ts";
import { JsonResult, toResult } from "../results/to-result.ts";
import type { ServedTools } from "../tools/served-tools.ts";
import { askerOf, formOf, writeText } from "./task-calls.ts";
import {
  endedWithout,
  isInputResponse,
  relatedTask,
  takesTasks,
  tasksNotDeclared,
  toInputRequest,
  toLegacyTask,
  toModernTask,
} from "./task-wire.ts";

/** What answers the methods of tasks, of both revisions that have them. */
export function taskAnswers(served: ServedTools, tasks: Tasks): Readonly<Record<string, RequestAnswer>> {
  const asked = new AskedQuestions();
  const scope = { served, tasks, asked };
  return {
    "tasks/get": ({ taskId }, request) => answerGet(scope, request, taskId),
    "tasks/list": ({ cursor }, request) => answerList(scope, request, cursor),
    "tasks/result": ({ taskId }, request) => answerResult(scope, request, taskId),
    "tasks/cancel": ({ taskId }, request) => answerCancel(scope, request, taskId),
    "tasks/update": ({ taskId, inputResponses }, request) =>
      answerUpdate(scope, request, taskId, inputResponses),
  };
}

interface TaskScope {
  readonly served: ServedTools;
  readonly tasks: Tasks;
  readonly asked: AskedQuestions;
}

async function answerGet(scope: TaskScope, request: PeerRequest, id: unknown): Promise<object> {
  const task = await visibleTask(scope, request, id);
  if (request.peer.era === "legacy") return toLegacyTask(task, scope.tasks);
  return new JsonResult(await writeDetailed(scope, request, task));
}

async function answerList(scope: TaskScope, request: PeerRequest, cursor: unknown): Promise<object> {
  const { tasks, served } = scope;
  const page = await tasks.list(askerOf(request), { cursor, limit: Math.min(100, served.limits.pageSize) });
  const mayCall = callableBy(served, request);
  const shown = page.tasks.filter(({ operationId }) => mayCall(operationId));
  return {
    tasks: shown.map((task) => toLegacyTask(task, tasks)),
    ...(page.nextCursor !== undefined && { nextCursor: page.nextCursor }),
  };
}

/** Waits for what a task comes to; meanwhile its client is asked what the task wants to know. */
async function answerResult(scope: TaskScope, request: PeerRequest, id: unknown): Promise<object> {
  const { tasks, asked } = scope;
  const asker = askerOf(request);
  const task = await visibleTask(scope, request, id);
  const wait = { tasks, request };
  const put = (now: TaskRecord): void => asked.put(wait, now);
  const stop = isSettled(task) ? () => {} : await tasks.watch(asker, task.id, put);
  asked.put(wait, task, true);
  try {
    const settled = await tasks.result(asker, task.id, { signal: request.signal });
    put(settled.task);
    const error = await errorOf(scope, request, settled);
    if (error !== undefined) throw new ProtocolError(error.code, error.message, error.data);
    return new JsonResult(await textOf(scope, request, settled));
  } catch (thrown) {
    throw toTaskRefusal(thrown);
  } finally {
    stop();
  }
}

async function answerCancel(scope: TaskScope, request: PeerRequest, id: unknown): Promise<object> {
  const { tasks } = scope;
  await visibleTask(scope, request, id);
  const { task, isChanged } = await tasks.cancel(askerOf(request), id).catch((thrown) => {
    throw toTaskRefusal(thrown);
  });
  if (request.peer.era === "modern") return {};
  if (!isChanged) throw invalidParams(`The task has ended already, as ${task.status}.`);
  return toLegacyTask(task, tasks);
}

async function answerUpdate(
  scope: TaskScope,
  request: PeerRequest,
  id: unknown,
  responses: unknown,
): Promise<object> {
  await visibleTask(scope, request, id);
  if (!isPlainObject(responses))
    throw invalidParams('"inputResponses" must be an object with answers by name.');
  await scope.tasks.answer(askerOf(request), id, responses, isInputResponse).catch((thrown) => {
    throw toTaskRefusal(thrown);
  });
  return {};
}

/**
 * Follows a task for a stream of changes, each time with all that `tasks/get` would say, and first where it has ended or asks by now; nothing
 * where the caller sees none.
 */
export async function listenToTask(
  served: ServedTools,
  request: PeerRequest,
  id: string,
  tell: (params: object) => void,
): Promise<(() => void) | undefined> {
  const { tasks } = served;
  if (tasks === undefined) return undefined;
  const scope = { served, tasks, asked: new AskedQuestions() };
  let told = Promise.resolve();
  const tellOf = (task: TaskRecord): void => {
    told = told.then(async () => tell(JSON.parse(await writeDetailed(scope, request, task)))).catch(() => {});
  };
  let leave: (() => void) | undefined;
  try {
    await visibleTask(scope, request, id);
    leave = await tasks.watch(askerOf(request), id, tellOf);
    const task = await visibleTask(scope, request, id);
    // What it came to, or asked, before it was followed is no change that would be told.
    if (task.status !== "working") tellOf(task);
    return leave;
  } catch (thrown) {
    leave?.();
    if (thrown instanceof ProtocolError) return undefined;
    throw thrown;
  }
}

/** The task, for a caller who may still call its operation; for anybody else there is none. */
async function visibleTask(
  { served, tasks }: TaskScope,
  request: PeerRequest,
  id: unknown,
): Promise<TaskRecord> {
  if (request.peer.era === "modern" && !takesTasks(request)) throw tasksNotDeclared();
  try {
    const task = await tasks.get(askerOf(request), id);
    if (callableBy(served, request)(task.operationId)) return task;
    throw taskNotFound();
  } catch (thrown) {
    throw toTaskRefusal(thrown);
  }
}

function callableBy({ executor }: ServedTools, { identity }: PeerRequest): (operationId: string) => boolean {
  const listed = new Set<string>(executor.list({ identity }).map(({ id }) => id));
  return (operationId) => listed.has(operationId);
}

/** A task that is not there is a parameter that is wrong. */
function toTaskRefusal(thrown: unknown): unknown {
  const isNone = isCallError(thrown) && thrown.code === "NOT_FOUND";
  return isNone ? invalidParams(thrown.message) : thrown;
}

/** All that is said of a task since 2026-07-28, as JSON. */
async function writeDetailed(scope: TaskScope, request: PeerRequest, task: TaskRecord): Promise<string> {
  const { tasks } = scope;
  const head = JSON.stringify(toModernTask(task, tasks)).slice(0, -1);
  if (task.questions !== undefined && task.status === "input_required") {
    const asked = Object.entries(task.questions).map(([key, question]) => [key, toInputRequest(question)]);
    return `${head},"inputRequests":${JSON.stringify(Object.fromEntries(asked))}}`;
  }
  if (!isSettled(task) || task.status === "cancelled") return `${head}}`;
  const settled = await tasks.result(askerOf(request), task.id);
  const error = await errorOf(scope, request, settled);
  if (error !== undefined) return `${head},"error":${JSON.stringify(error)}}`;
  return `${head},"result":${await textOf(scope, request, settled)}}`;
}

/** The error of the protocol that a task came to; nothing where it came to a result. */
async function errorOf(
  scope: TaskScope,
  request: PeerRequest,
  settled: SettledTask,
): Promise<RpcError | undefined> {
  const without = endedWithout(settled.task);
  if (without !== undefined || settled.task.isRefused !== true) return without;
  return JSON.parse(await textOf(scope, request, settled)) as RpcError;
}

/** What a task came to as this client takes it; what was written once stands. */
async function textOf(
  { served, tasks }: TaskScope,
  request: PeerRequest,
  settled: SettledTask,
): Promise<string> {
  const format = served.formatFor(request);
  const { task, result } = settled;
  return await tasks.written(settled, formOf(request, format), async () => {
    const { identity } = request;
    const operation = served.executor.get(task.operationId);
    if (operation === undefined) throw toTaskRefusal(taskNotFound());
    const { operationId } = task;
    const call = { operationId, operation, identity, ...endedCallOf(result) };
    if (task.isRefused === true && "error" in call.outcome) {
      const { error } = call.outcome;
      return JSON.stringify({ code: -32_603, message: error.message, data: error.toJSON() });
    }
    const calledAs = served.table.nameOf(operation);
    return writeText(
      await toResult({ ...call, calledAs }, { served, request, operation, format }),
      request,
      task.id,
    );
  });
}

/** A request that waits for the result of a task. */
interface TaskWait {
  readonly tasks: Tasks;
  readonly request: PeerRequest;
}

/**
 * Puts the questions of tasks to 2025 clients: each to one request for the result, the latest one, as the client of an earlier one may be gone.
 * What is answered elsewhere is taken back.
 */
class AskedQuestions {
  /** What takes each question back, by task and name. */
  readonly #asked = new Map<string, Map<string, AbortController>>();

  /** Puts what a task asks; also what another request was asked, where this is the latest one. */
  put({ tasks, request }: TaskWait, task: TaskRecord, isLatest = false): void {
    const { id, questions = {}, status } = task;
    const open = status === "input_required" ? questions : {};
    this.#takeBack(id, (key) => !Object.hasOwn(open, key));
    for (const [key, question] of Object.entries(open)) {
      if (!isAskable(question, request)) continue;
      if (isLatest) this.#takeBack(id, (other) => other === key);
      if (this.#asked.get(id)?.has(key) === true) continue;
      const back = new AbortController();
      const own = this.#asked.get(id) ?? new Map<string, AbortController>();
      this.#asked.set(id, own.set(key, back));
      this.#ask(request, { id, question }, back)
        .then((answer) => tasks.answer(askerOf(request), id, { [key]: answer }))
        // Nobody waits any more: the next caller that asks for the result is asked again.
        .catch(() => {})
        .finally(() => {
          if (own.get(key) === back) own.delete(key);
          if (own.size === 0 && this.#asked.get(id) === own) this.#asked.delete(id);
        });
    }
  }

  #takeBack(id: string, isOver: (key: string) => boolean): void {
    const own = this.#asked.get(id);
    for (const [key, back] of own ?? []) {
      if (!isOver(key)) continue;
      own?.delete(key);
      back.abort();
    }
  }

  /** The answer; one that says that there is none where the client could not be asked, or refused. */
  async #ask(
    request: PeerRequest,
    { id, question }: { readonly id: string; readonly question: TaskQuestion },
    back: AbortController,
  ): Promise<unknown> {
    const { method, params } = toInputRequest(question);
    const options = { signal: back.signal, timeoutMs: request.waitingMs };
    const leave = { onAbort: () => back.abort() };
    if (request.signal.aborted) back.abort();
    else addAbortListener(request.signal, leave);
    try {
      return await request.ask(method, { ...params, _meta: relatedTask(id) }, options);
    } catch (thrown) {
      if (back.signal.aborted) throw thrown;
      return { refused: true };
    } finally {
      removeAbortListener(request.signal, leave);
    }
  }
}

/** Tells whether a client can be asked at all; for one that cannot, others may answer. */
function isAskable(question: TaskQuestion, { capabilities: can }: PeerRequest): boolean {
  switch (question.kind) {
    case "elicit":
      return can[question.request.mode ?? "form"];
    case "sample":
      return can.sampling;
    case "roots":
      return can.roots;
  }
}
