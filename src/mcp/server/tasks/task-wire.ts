import type { CallError } from "../../../core/errors/errors.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import { faultError, type TaskQuestion, type TaskRecord, taskCancelled } from "../../../core/tasks/task.ts";
import type { Tasks } from "../../../core/tasks/tasks.ts";
import {
  invalidParams,
  metaOf,
  type Params,
  ProtocolError,
  RELATED_TASK,
  RPC_CODES,
  type RpcError,
} from "../../protocol/messages.ts";
import { META_KEYS, TASKS_EXTENSION } from "../../protocol/revisions.ts";
import { readElicitAnswer, readRoots, readSampleAnswer } from "../caller-answers.ts";
import type { PeerRequest } from "../peer-request.ts";

/** What the create answer says of a task that ends with its process. */
const NOT_LASTING = "A restart of the server loses this task.";

/** Tasks that one client hears of in one stream. */
export const MOST_HEARD_TASKS = 100;

/** Tells whether a request is one of the 2026-07-28 revision whose client takes tasks. */
export function takesTasks({ peer, meta }: Pick<PeerRequest, "peer" | "meta">): boolean {
  return peer.era === "modern" && meta !== undefined && declares(meta);
}

/** Tells whether the parameters of a 2026-07-28 request say that its client takes tasks. */
export function declaresTasks(params: Params): boolean {
  const meta = metaOf(params);
  return meta !== undefined && declares(meta);
}

function declares(meta: Params): boolean {
  const declared = meta[META_KEYS.clientCapabilities];
  const extensions = isPlainObject(declared) ? declared["extensions"] : undefined;
  return isPlainObject(extensions) && isPlainObject(extensions[TASKS_EXTENSION]);
}

/** The error for a 2026-07-28 client that does not say that it takes tasks, where it has to. */
export function tasksNotDeclared(): ProtocolError {
  const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  const message = `Missing required client capabilities: extensions["${TASKS_EXTENSION}"]`;
  return new ProtocolError(RPC_CODES.missingCapability, message, { requiredCapabilities });
}

/** What a 2025-11-25 client asks for with `task`; nothing for a call that is to be none. */
export function readTaskParam(
  { peer }: PeerRequest,
  value: unknown,
): { readonly ttlMs?: number } | undefined {
  if (value === undefined || peer.era !== "legacy" || peer.revision !== TASKS_REVISION) return undefined;
  const ttl = isPlainObject(value) ? value["ttl"] : null;
  if (ttl === undefined) return {};
  if (typeof ttl === "number" && Number.isFinite(ttl) && ttl >= 0) return { ttlMs: ttl };
  throw invalidParams('"task" must be an object, and its "ttl" a number of milliseconds.');
}

/** The one revision that has tasks in its core. */
export const TASKS_REVISION = "2025-11-25";

/** A task as 2025-11-25 says it: a tool that said no has failed. */
export function toLegacyTask(task: TaskRecord, { bounds }: Tasks): Readonly<Record<string, unknown>> {
  const { id, status, message, createdAt, updatedAt, expiresAt } = task;
  return {
    taskId: id,
    status,
    ...(message !== undefined && { statusMessage: message }),
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttl: expiresAt - createdAt,
    pollInterval: bounds.pollMs,
  };
}

/** A task as 2026-07-28 says it, without what it came to: only what would have been an error of the protocol has failed. */
export function toModernTask(task: TaskRecord, { bounds }: Tasks): Readonly<Record<string, unknown>> {
  const { id, message, createdAt, updatedAt, expiresAt } = task;
  return {
    taskId: id,
    status: modernStatus(task),
    ...(message !== undefined && { statusMessage: message }),
    createdAt: new Date(createdAt).toISOString(),
    lastUpdatedAt: new Date(updatedAt).toISOString(),
    ttlMs: expiresAt - createdAt,
    pollIntervalMs: bounds.pollMs,
  };
}

function modernStatus({ status, isRefused, fault }: TaskRecord): TaskRecord["status"] {
  return status === "failed" && isRefused !== true && fault === undefined ? "completed" : status;
}

/** The answer to a call that has become a task. */
export function toCreated(task: TaskRecord, tasks: Tasks, { peer }: Pick<PeerRequest, "peer">): object {
  const shown = tasks.isLasting ? task : { ...task, message: NOT_LASTING };
  if (peer.era === "legacy") return { task: toLegacyTask(shown, tasks) };
  return { resultType: "task", ...toModernTask(shown, tasks) };
}

/** A question in the words of the protocol. */
export function toInputRequest(question: TaskQuestion): {
  readonly method: string;
  readonly params?: object;
} {
  switch (question.kind) {
    case "elicit":
      return {
        method: "elicitation/create",
        params: { ...question.request, mode: question.request.mode ?? "form" },
      };
    case "sample":
      return { method: "sampling/createMessage", params: question.request };
    case "roots":
      return { method: "roots/list" };
  }
}

/** Tells whether an answer fits its question, as far as the protocol says how. */
export function isInputResponse({ kind }: TaskQuestion, answer: unknown): boolean {
  switch (kind) {
    case "elicit":
      return readElicitAnswer(answer) !== undefined;
    case "sample":
      return readSampleAnswer(answer) !== undefined;
    case "roots":
      return readRoots(answer) !== undefined;
  }
}

/** The error of a task that has no result. */
export function endedWithout({ status, fault }: TaskRecord): RpcError | undefined {
  if (status === "cancelled") return toTaskError(taskCancelled());
  return fault && toTaskError(faultError(fault));
}

function toTaskError(error: CallError): RpcError {
  return { code: RPC_CODES.internalError, message: error.message, data: error.toJSON() };
}

/** Says in `_meta` which task something belongs to, as 2025-11-25 wants it. */
export function relatedTask(taskId: string): Readonly<Record<string, object>> {
  return { [RELATED_TASK]: { taskId } };
}
