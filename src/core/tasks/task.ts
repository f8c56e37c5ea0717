import type { Rights } from "../access/identity.ts";
import { CallError } from "../errors/errors.ts";
import type { KeptOutcome } from "../idempotency/idempotency-store.ts";
import { fromKept, type RepeatedCall } from "../idempotency/idempotent-calls.ts";
import { type JsonValue, toJsonTextOrNone } from "../json/json-value.ts";
import type { ElicitRequest, SampleRequest } from "../operation/caller-side.ts";

/** Where a task is: running, waiting for an answer of its caller, or settled in one of three ways. */
export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

/** What a task wants to know from its caller. */
export type TaskQuestion =
  | { readonly kind: "elicit"; readonly request: ElicitRequest }
  | { readonly kind: "sample"; readonly request: SampleRequest }
  | { readonly kind: "roots" };

/** How the call of a task ended: its operation said yes, said no, or never answered. */
export type TaskEnding = "ok" | "tool_error" | "call_error";

/** Why a task has failed without a result: its process is gone, or what it came to could not be kept. */
export type TaskFault = keyof typeof TASK_FAULTS;

/** A task as it is kept, without its result; plain JSON. */
export interface TaskRecord {
  readonly id: string;
  /** Whose it is: nobody else learns that it exists. */
  readonly owner: string;
  readonly operationId: string;
  /** Of the call that runs. */
  readonly requestId: string;
  /** What its owner might do when it began; who has lost any of it since does not see it. */
  readonly rights: Rights;
  /** `completed` where the operation said yes, `failed` where it said no or never answered. */
  readonly status: TaskStatus;
  /** Only of a task that has ended by itself. */
  readonly ending?: TaskEnding;
  /** Whether the surface that began it answers with an error of its protocol in place of a result. @default false */
  readonly isRefused?: true;
  /** Why there is no result, of a task that has failed without one. */
  readonly fault?: TaskFault;
  /** What its handler said last, or why it failed. */
  readonly message?: string;
  readonly progress?: { readonly progress: number; readonly total?: number };
  /** Unix epoch milliseconds. */
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly expiresAt: number;
  /** Which process runs it. */
  readonly replica: string;
  /** What has no answer yet, by a name that is used once. */
  readonly questions?: Readonly<Record<string, TaskQuestion>>;
  /** Answers that the process that runs it has not taken yet. */
  readonly answers?: Readonly<Record<string, JsonValue>>;
  /** How another process goes on with it; without a handle it has not begun, and is begun there. */
  readonly resumption?: { readonly handle?: JsonValue; readonly input?: JsonValue };
}

/** What is kept of what a handler noted, with the input of its call. Throws `TOO_LARGE` where that is too long. */
export function toResumption(
  note: { readonly handle?: JsonValue },
  input: JsonValue | undefined,
): NonNullable<TaskRecord["resumption"]> {
  const resumption = { ...note, ...(input !== undefined && { input }) };
  const length = toJsonTextOrNone(resumption)?.length ?? Number.POSITIVE_INFINITY;
  if (length <= TASK_LIMITS.resumptionCharacters) return resumption;
  throw new CallError("TOO_LARGE", "What another process needs to go on with the task is too long.");
}

/** What a task came to: written once, the same for every caller. */
export interface TaskResult {
  readonly outcome: KeptOutcome;
  /** The answer as the surface that began the task writes it, by the name of the form. */
  readonly written?: Readonly<Record<string, string>> | undefined;
}

/** Tells whether a task has ended. */
export function isSettled({ status }: Pick<TaskRecord, "status">): boolean {
  return status !== "working" && status !== "input_required";
}

/** How many tasks there may be, how large and for how long. */
export interface TaskBounds {
  /** Tasks that are kept. @default 10_000 */
  readonly tasks: number;
  /** Tasks of one owner. @default 1_000 */
  readonly ownTasks: number;
  /** Tasks that run in one process. @default 1_000 */
  readonly running: number;
  /** Bytes of results that are kept. @default 134_217_728 */
  readonly bytes: number;
  /** Bytes of results of one owner. @default 33_554_432 */
  readonly ownBytes: number;
  /** Bytes of one result; a longer one makes the task fail. @default 8_388_608 */
  readonly resultBytes: number;
  /** Milliseconds that a task is kept, from its beginning; then it ends, and is forgotten. @default 86_400_000 */
  readonly keepMs: number;
  /** Milliseconds between two looks of a client. @default 1_000 */
  readonly pollMs: number;
}

/** The bounds where nobody sets others. */
export const TASK_BOUNDS: TaskBounds = {
  tasks: 10_000,
  ownTasks: 1_000,
  running: 1_000,
  bytes: 134_217_728,
  ownBytes: 33_554_432,
  resultBytes: 8_388_608,
  keepMs: 86_400_000,
  pollMs: 1_000,
};

/** Bounds of what a handler makes a task hold besides its result. */
export const TASK_LIMITS = {
  /** Questions that have no answer. */
  questions: 16,
  /** Characters of one question, or of one answer, as JSON. */
  questionCharacters: 65_536,
  /** Characters of a message. */
  messageCharacters: 1_000,
  /** Characters of what another process needs to go on, as JSON. */
  resumptionCharacters: 262_144,
  /** Milliseconds that a task is kept at least, whatever its caller asks for. */
  leastKeepMs: 1_000,
} as const;

/** Gives what a task came to as a call that has ended. */
export function endedCallOf({ outcome }: TaskResult): RepeatedCall {
  return fromKept(outcome);
}

/** The one answer for a task that is unknown, expired, somebody else's or no task at all. */
export function taskNotFound(): CallError {
  return new CallError("NOT_FOUND", "There is no such task, or not any more.", { stack: false });
}

/** What asking for the result of a cancelled task gives. */
export function taskCancelled(): CallError {
  return taskError("ABORTED", "The task was cancelled.", "task_cancelled");
}

/** The error of a task whose time is over. */
export function taskExpired(): CallError {
  return taskError("TIMEOUT", "The time that the task may take is over.", "task_expired");
}

const TASK_FAULTS = {
  lost: {
    code: "UNAVAILABLE",
    reason: "task_lost_by_restart",
    message:
      "The process that ran the task ended before the task did: the task is lost by restart, and what it has done is not known.",
  },
  too_long: {
    code: "TOO_LARGE",
    reason: "task_result_too_long",
    message: "The task has ended, but its result is too long to be kept.",
  },
  no_room: {
    code: "RESOURCE_EXHAUSTED",
    reason: "task_result_no_room",
    message: "The task has ended, but there is no room for its result.",
  },
} as const;

/** The error of a task that has failed without a result. */
export function faultError(fault: TaskFault): CallError {
  const { code, message, reason } = TASK_FAULTS[fault];
  // What was done is done: the same call may do it twice.
  return new CallError(code, message, { details: { reason }, retryable: false, stack: false });
}

/** The error where no further task may begin. */
export function tooManyTasks(): CallError {
  return taskError(
    "RESOURCE_EXHAUSTED",
    "As many tasks are kept as may be, also of those that have ended; try again when one has expired.",
    "too_many_tasks",
  );
}

function taskError(code: string, message: string, reason: string): CallError {
  return new CallError(code, message, { details: { reason }, stack: false });
}
