import type { ErrorCode } from "../../core/errors/error-codes.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { saidIn } from "../../core/errors/source-words.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import { isPlainObject, memberAt } from "../../core/json/json-value.ts";
import { Backoff } from "../../core/limits/backoff.ts";
import type { CallerTask } from "../../core/operation/caller-side.ts";
import { metaOf, type Params, RELATED_TASK, readError } from "../protocol/messages.ts";
import { isModernRevision } from "../protocol/revisions.ts";
import { callTool, type ToolCall } from "./call-tool.ts";
import { answerRound } from "./caller-questions.ts";
import type { McpLink, McpRequestOptions, McpServerFacts } from "./mcp-connection.ts";
import { offersTasks, RequestStop } from "./mcp-session.ts";
import { toPlainLine } from "./plain-line.ts";
import { fromRpcError } from "./request-failures.ts";
import type { TaskWatch } from "./server-questions.ts";

/** Milliseconds between two questions how a task is doing: what the server says, within bounds. */
export const POLL_DELAYS = {
  /** Where the server says less, nothing at all as in 0, or that its task is gone sooner. */
  least: 100,
  /** Where the server says nothing. */
  usual: 1_000,
  /** Where the server says more. */
  most: 60_000,
} as const;

/** Milliseconds that one question about a task may take. */
const ASKING_MS = 30_000;

/** Milliseconds that a server has to name the task of a call that nobody waits for any more, so that it can be cancelled. */
const NAMING_MS = 5_000;

/** The longest task id that is repeated to its server. */
const ID_LENGTH = 1_024;

/** Characters of what a server says of the state of a task. */
const MESSAGE_LENGTH = 500;

const STATUSES = ["working", "input_required", "completed", "failed", "cancelled"] as const;

/** What a server says of a task. */
interface TaskState {
  readonly taskId: string;
  readonly status: (typeof STATUSES)[number];
  readonly message: string | undefined;
  /** Milliseconds until it is asked about again. */
  readonly delay: number;
  /** All that the server sent: with the result, the error or the questions, since 2026-07-28. */
  readonly told: Params;
}

/** How a task that a call became is waited for. */
export interface TaskFollowing {
  /** The exact name of the tool, for messages. */
  readonly tool: string;
  /** On the monotonic clock: when the caller stops waiting. @default after the limit `taskMs` */
  readonly deadline?: number | undefined;
  readonly request: McpRequestOptions;
  /** Hears progress, and what comes unasked, from before the task had a name. */
  readonly watch: TaskNews;
  /** The task that the call itself is: it notes the one of the server, so that another process can go on with it. @default none */
  readonly relayed?: CallerTask | undefined;
}

/** What is noted of a task of a server: all that it takes to go on waiting for it. */
interface TaskHandle {
  readonly taskId: string;
  /** Whose it is, as people know it: another server that has taken the place of this one is not asked. */
  readonly server: string;
}

/** Tells whether a server takes calls of its tools as tasks, in the form of 2025-11-25. */
export function canCallAsTask({ protocolVersion, capabilities }: McpServerFacts): boolean {
  const call = memberAt(capabilities, "tasks", "requests", "tools", "call");
  return protocolVersion === "2025-11-25" && isPlainObject(call);
}

/**
 * Calls a tool as a task (2025-11-25), and waits for its result. A caller who leaves before the task has a name is answered at once,
 * and the task is cancelled when it has one.
 */
export async function callAsTask(
  connection: McpLink,
  call: ToolCall,
  following: TaskFollowing,
): Promise<unknown> {
  const { deadline, watch } = following;
  const left = deadline === undefined ? connection.limits.taskMs : Math.max(0, deadline - monotonicNow());
  const ttl = Math.min(Math.ceil(left) + POLL_DELAYS.most, Number.MAX_SAFE_INTEGER);
  try {
    const given = await createTask(connection, { ...call, task: { ttl } }, following);
    const task = isPlainObject(given) && !Object.hasOwn(given, "content") ? given["task"] : undefined;
    // A server that takes no tasks after all answers the call itself.
    return task === undefined ? given : await followTask(connection, task, following);
  } finally {
    watch.isOver = true;
  }
}

async function createTask(connection: McpLink, call: ToolCall, following: TaskFollowing): Promise<unknown> {
  const { request, watch } = following;
  const letGo = new AbortController();
  const options = { ...request, signal: letGo.signal, onProgress: watch.hear, task: watch };
  const creating = callTool(connection, call, options);
  const asked = connection.asked("tools/call", { name: call.tool });
  const stop = new RequestStop(asked, request.timeoutMs ?? ASKING_MS, request.signal);
  try {
    return await Promise.race([creating, whenStopped(stop)]);
  } catch (failure) {
    if (stop.failure !== undefined) {
      if (!isLeft(following, stop.failure)) cancelOnceNamed(connection, creating, request);
      setTimeout(() => letGo.abort(), NAMING_MS).unref();
    }
    throw failure;
  } finally {
    stop.end();
  }
}

/** Ends of a task that end what it relays to; where its process stops, or another one has it, the task goes on. */
const FINAL: ReadonlySet<unknown> = new Set(["task_cancelled", "task_expired"]);

/** Tells whether another process goes on waiting for a task that is waited for no more here. */
function isLeft({ relayed }: TaskFollowing, failure: unknown): boolean {
  // A call that is no task yet has nobody else to wait for it.
  if (relayed === undefined || relayed.isPossible === true) return false;
  if (!isCallError(failure) || failure.code !== "ABORTED") return false;
  for (let at: unknown = failure, depth = 0; isCallError(at) && depth < 8; at = at.cause, depth++) {
    if (FINAL.has(memberAt(at.details, "reason"))) return false;
  }
  return true;
}

function cancelOnceNamed(connection: McpLink, creating: Promise<unknown>, request: McpRequestOptions): void {
  creating.then(
    (given) => {
      const taskId = memberAt(given, "task", "taskId");
      if (typeof taskId === "string" && taskId.length <= ID_LENGTH) cancelTask(connection, taskId, request);
    },
    () => {},
  );
}

/** Asks a server to stop a task, as far as it lets itself be asked; nobody waits for what it says. */
function cancelTask(connection: McpLink, taskId: string, { party, call }: McpRequestOptions): void {
  const { server } = connection;
  const canBeAsked = offersTasks(server) || isPlainObject(memberAt(server.capabilities, "tasks", "cancel"));
  if (!canBeAsked) return;
  connection.request("tasks/cancel", { taskId }, { timeoutMs: ASKING_MS, party, call }).catch(() => {});
}

/**
 * Waits for the result of a task, over as many connections as that takes, and gives it as if it had been the answer to the call.
 * A caller that gives up cancels the task.
 */
export async function followTask(
  connection: McpLink,
  task: unknown,
  following: TaskFollowing,
): Promise<Params> {
  const asked = connection.asked("tools/call", { name: following.tool });
  const first = readState(task, asked.server, undefined);
  return await new TaskDriver(connection, first, following).run();
}

/** Goes on with the task that a call noted in another process; nothing where the call noted none, and is to be made. */
export async function resumeTask(connection: McpLink, following: TaskFollowing): Promise<Params | undefined> {
  const { relayed, tool } = following;
  const handle = relayed?.handle;
  if (relayed === undefined || handle === undefined) return undefined;
  const asked = connection.asked("tools/call", { name: tool });
  const taskId = memberAt(handle, "taskId");
  if (typeof taskId !== "string" || memberAt(handle, "server") !== asked.server) {
    const what = `${asked.server} is not the one whose task the tool ${JSON.stringify(tool)} ran as.`;
    throw new CallError("UNAVAILABLE", what, { details: { task: "forgotten" }, stack: false });
  }
  if (relayed.isCancelled === true) {
    cancelTask(connection, taskId, following.request);
    throw new CallError("ABORTED", "The task was cancelled.", { stack: false });
  }
  const state = {
    taskId,
    status: "working",
    message: undefined,
    delay: POLL_DELAYS.least,
    told: {},
  } as const;
  return await new TaskDriver(connection, state, following).run();
}

/** What a server tells of a task without being asked: progress, and questions. */
export class TaskNews implements TaskWatch {
  isOver = false;
  readonly #tell: McpRequestOptions["onProgress"];
  readonly #mostQuestions: number;
  #questions = 0;
  #progress = 0;
  #hearsNumbers = false;
  #message: string | undefined;
  /** Called when the server asks more than it may. */
  onTooMany: (() => void) | undefined;

  constructor(connection: McpLink, tell: McpRequestOptions["onProgress"]) {
    const { rounds, questions } = connection.limits;
    this.#tell = tell;
    this.#mostQuestions = rounds * questions;
  }

  /** Absent where nobody wants to hear of progress, so that the server is not asked for any. */
  get hear(): McpRequestOptions["onProgress"] {
    return this.#tell === undefined ? undefined : (progress) => this.onProgress(progress);
  }

  onProgress(progress: Params): void {
    if (this.isOver) return;
    this.#hearsNumbers = true;
    this.#tell?.(progress);
  }

  /** A new sentence about the state of the task is progress too, until the server counts its progress itself. */
  onMessage(message: string | undefined): void {
    if (message === undefined || message === this.#message || this.isOver) return;
    this.#message = message;
    if (this.#hearsNumbers) return;
    this.#progress += 1;
    this.#tell?.({ progress: this.#progress, message });
  }

  admitsQuestion(): boolean {
    this.#questions += 1;
    if (this.#questions <= this.#mostQuestions) return true;
    this.onTooMany?.();
    return false;
  }
}

/** One task that is waited for: polled, asked for its result, given answers, and cancelled where the caller leaves. */
class TaskDriver {
  readonly #connection: McpLink;
  readonly #following: TaskFollowing;
  readonly #first: TaskState;
  readonly #stop: RequestStop;
  readonly #backoff = new Backoff({ delayMs: POLL_DELAYS.least, maxDelayMs: POLL_DELAYS.most / 2 });
  readonly #sleepers = new Set<() => void>();
  /** Questions that were answered or are being answered, by their keys. */
  readonly #answered = new Set<string>();
  readonly #answering = new AbortController();
  #rounds = 0;
  /** Nothing can be cancelled any more: the task has ended, or its server has forgotten it. */
  #isGone = false;
  /** `tasks/result` is under way, which servers answer when the task has ended. */
  #asksResult = false;
  /** The server answers `tasks/result` before the end, with an error: it is asked at the end alone. */
  #isImpatient = false;
  #result: Params | undefined;
  /** What the server told of the task of its own accord. */
  #told: TaskState | undefined;
  #failure: unknown;

  constructor(connection: McpLink, first: TaskState, following: TaskFollowing) {
    const { deadline, request, tool } = following;
    this.#connection = connection;
    this.#first = first;
    this.#following = following;
    const timeoutMs =
      deadline === undefined ? connection.limits.taskMs : Math.max(0, deadline - monotonicNow());
    this.#stop = new RequestStop(connection.asked("tools/call", { name: tool }), timeoutMs, request.signal);
  }

  async run(): Promise<Params> {
    const { watch } = this.#following;
    const stopListening = this.#connection.onEvent((event) => {
      if (event.type === "notification") this.#hear(event.method, event.params);
    });
    this.#stop.watch(() => this.#wake());
    watch.onTooMany = () => this.#fail(this.#fault("asks too much"));
    try {
      await this.#note();
      return withoutTask(await this.#untilEnd());
    } catch (failure) {
      if (!this.#isGone && !isLeft(this.#following, failure))
        cancelTask(this.#connection, this.#first.taskId, this.#following.request);
      throw failure;
    } finally {
      watch.isOver = true;
      stopListening();
      this.#stop.end();
      // Questions and requests that are still open end with it.
      this.#answering.abort();
    }
  }

  async #note(): Promise<void> {
    const { relayed } = this.#following;
    if (relayed === undefined || relayed.handle !== undefined) return;
    const { server } = this.#connection.asked("tools/call");
    const handle: TaskHandle = { taskId: this.#first.taskId, server };
    await relayed.hold({ ...handle });
  }

  async #untilEnd(): Promise<Params> {
    let state = this.#first;
    for (;;) {
      this.#throwIfOver();
      this.#following.watch.onMessage(state.message);
      if (isEnd(state.status)) {
        this.#isGone = true;
        return this.#isModern ? this.#resultIn(state) : await this.#resultOf(state);
      }
      if (!this.#isModern) this.#askResult();
      else if (state.status === "input_required") this.#answer(state);
      if (!this.#hasNews) await this.#sleep(state.delay);
      this.#throwIfOver();
      if (this.#result !== undefined) return this.#result;
      state = this.#takeTold() ?? (await this.#poll());
    }
  }

  get #isModern(): boolean {
    return isModernRevision(this.#connection.server.protocolVersion);
  }

  get #hasNews(): boolean {
    return this.#result !== undefined || this.#told !== undefined || this.#failure !== undefined;
  }

  #takeTold(): TaskState | undefined {
    const told = this.#told;
    this.#told = undefined;
    return told;
  }

  /** Asks how the task is doing; a server that is away is asked again, until it has been away for too long. */
  async #poll(): Promise<TaskState> {
    const { taskId } = this.#first;
    const { server } = this.#connection.asked("tasks/get");
    const since = monotonicNow();
    for (;;) {
      try {
        const told = await this.#connection.request("tasks/get", { taskId }, this.#question);
        return readState(told, server, taskId);
      } catch (error) {
        await this.#bear(error, since);
        const told = this.#takeTold();
        if (told !== undefined) return told;
        if (this.#result !== undefined) return { ...this.#first, status: "completed" };
      }
    }
  }

  get #question(): McpRequestOptions {
    const { party, onServerLog, call } = this.#following.request;
    return { signal: this.#answering.signal, timeoutMs: ASKING_MS, party, onServerLog, call };
  }

  /** Waits where a failure may pass; throws it where it will not, or has lasted for too long. */
  async #bear(error: unknown, since: number): Promise<void> {
    this.#throwIfOver();
    if (isForgotten(error)) {
      this.#isGone = true;
      throw this.#fault("forgotten", { cause: error });
    }
    const { state, limits } = this.#connection;
    const isLost = state.status === "down" && state.retryAt === Number.POSITIVE_INFINITY;
    const mayPass = isCallError(error) && error.retryable && state.status !== "closed" && !isLost;
    if (!mayPass || monotonicNow() - since >= limits.taskSilenceMs) throw error;
    await this.#sleep(this.#backoff.next(0));
    this.#throwIfOver();
  }

  /** Asks for the result, which a server of 2025-11-25 gives when the task has ended; until then its questions come with it. */
  #askResult(): void {
    if (this.#asksResult || this.#isImpatient) return;
    this.#asksResult = true;
    this.#requestResult(this.#stop.deadline - monotonicNow()).then(
      (result) => this.#take(result),
      (error: unknown) => {
        this.#asksResult = false;
        const mayPass = isCallError(error) && error.retryable;
        if (!mayPass) this.#isImpatient = true;
        // Otherwise the next poll asks again: not sooner, lest the two take turns without a pause.
        if (!mayPass || this.#isGone) this.#wake();
      },
    );
  }

  #take(result: Params): void {
    const about = memberAt(metaOf(result), RELATED_TASK, "taskId");
    if (about === undefined || about === this.#first.taskId) this.#result = result;
    else this.#failure ??= this.#fault("other result");
    this.#wake();
  }

  async #requestResult(timeoutMs: number): Promise<Params> {
    const { request, watch } = this.#following;
    const { taskId } = this.#first;
    const options = { ...this.#question, timeoutMs, caller: request.caller, task: watch };
    return await this.#connection.request("tasks/result", { taskId }, options);
  }

  /** What a task of 2025-11-25 ended with is asked for; where it failed, that may be nothing but a sentence. */
  async #resultOf(state: TaskState): Promise<Params> {
    if (state.status === "cancelled") throw this.#fault("cancelled", { message: state.message });
    const since = monotonicNow();
    while (this.#result === undefined) {
      this.#throwIfOver();
      if (this.#asksResult) {
        await this.#sleep(POLL_DELAYS.usual);
        if (monotonicNow() - since >= this.#connection.limits.taskSilenceMs) throw this.#fault("no result");
        continue;
      }
      try {
        this.#take(await this.#requestResult(ASKING_MS));
      } catch (error) {
        const isFinal = state.status === "failed" && isCallError(error) && !error.retryable;
        this.#throwIfOver();
        if (isFinal)
          throw this.#fault("failed", { cause: error, message: state.message ?? saidIn(error.details) });
        await this.#bear(error, since);
      }
    }
    this.#throwIfOver();
    return this.#result;
  }

  /** Since 2026-07-28, what a task ended with is told with its state. */
  #resultIn({ status, told, message }: TaskState): Params {
    const { result, error } = told;
    if (status === "cancelled") throw this.#fault("cancelled", { message });
    if (status === "completed" && isComplete(result)) return result;
    if (status === "failed" && isPlainObject(error)) {
      const said = readError(error);
      const asked = this.#connection.asked("tools/call", { name: this.#following.tool });
      throw fromRpcError(said.message === "" ? { ...said, message: message ?? "" } : said, asked);
    }
    throw this.#fault("no result");
  }

  /** Answers what the server asks (2026-07-28), each question once; the task is watched meanwhile, as it may end in another way. */
  #answer({ told }: TaskState): void {
    const { limits, roots, secrets } = this.#connection;
    const requests = secrets.maskResult(told["inputRequests"]);
    if (!isPlainObject(requests)) throw this.#fault("asks nothing");
    const fresh = Object.entries(requests).filter(([key]) => !this.#answered.has(key));
    if (fresh.length === 0) return;
    this.#rounds += 1;
    if (this.#rounds > limits.rounds) throw this.#fault("asks too much");
    for (const [key] of fresh.slice(0, limits.questions)) this.#answered.add(key);
    const { tool, request } = this.#following;
    const asked = this.#connection.asked("tools/call", { name: tool });
    const side = { asked, caller: request.caller, roots, limits, signal: this.#answering.signal };
    const { taskId } = this.#first;
    answerRound({ inputRequests: Object.fromEntries(fresh) }, side)
      .then(({ inputResponses }) => this.#send({ taskId, inputResponses }))
      .catch((error: unknown) => this.#fail(error));
  }

  async #send(update: Params): Promise<void> {
    const since = monotonicNow();
    for (;;) {
      try {
        await this.#connection.request("tasks/update", update, this.#question);
        return;
      } catch (error) {
        await this.#bear(error, since);
      }
    }
  }

  #hear(method: string, params: Params): void {
    if (method !== "notifications/tasks/status" || params["taskId"] !== this.#first.taskId) return;
    try {
      this.#told = readState(params, this.#connection.asked(method).server, this.#first.taskId);
      this.#wake();
    } catch {
      // What makes no sense is not heard; the task is polled all the same.
    }
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#wake();
  }

  #throwIfOver(): void {
    this.#stop.throwIfStopped();
    if (this.#failure !== undefined) throw this.#failure;
  }

  #wake(): void {
    for (const wake of [...this.#sleepers]) wake();
  }

  /** Waits, but no longer than until something is heard. */
  #sleep(ms: number): Promise<void> {
    if (this.#stop.failure !== undefined) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#sleepers.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      this.#sleepers.add(wake);
    });
  }

  #fault(reason: TaskFault, { cause, message }: FaultFacts = {}): CallError {
    const { server, secrets } = this.#connection.asked("tools/call");
    const { code, what } = FAULTS[reason];
    const tool = JSON.stringify(toPlainLine(this.#following.tool, 200));
    return new CallError(code, `${server} ${what.replace("{tool}", tool)}.`, {
      cause,
      details: { task: reason, ...(message !== undefined && secrets.saying(message)) },
      stack: false,
    });
  }
}

interface FaultFacts {
  readonly cause?: unknown;
  /** What the server said of it. */
  readonly message?: string | undefined;
}

/** Why a task of a server has no result, and what is said of it. */
const FAULTS = {
  forgotten: {
    code: "UNAVAILABLE",
    what: "no longer knows the task of the tool {tool}; the call may have run",
  },
  cancelled: { code: "EXECUTION_ERROR", what: "cancelled the task of the tool {tool}" },
  failed: { code: "EXECUTION_ERROR", what: "says that the task of the tool {tool} failed" },
  "no result": { code: "EXECUTION_ERROR", what: "ended the task of the tool {tool} without a result" },
  "no task": { code: "EXECUTION_ERROR", what: "answers with a task that has no id or no status" },
  "other task": { code: "EXECUTION_ERROR", what: "answers for another task than it was asked about" },
  "other result": {
    code: "EXECUTION_ERROR",
    what: "gives the result of another task for that of the tool {tool}",
  },
  "asks too much": {
    code: "EXECUTION_ERROR",
    what: "asks for input without an end while the tool {tool} runs as a task",
  },
  "asks nothing": {
    code: "EXECUTION_ERROR",
    what: "asks for input and names none while the tool {tool} runs as a task",
  },
} as const satisfies Record<string, { readonly code: ErrorCode; readonly what: string }>;

type TaskFault = keyof typeof FAULTS;

/** Servers answer with -32602 for a task that they do not know, be it expired, lost, or of another session. */
function isForgotten(error: unknown): boolean {
  const rpcCode = isCallError(error) && isPlainObject(error.details) ? error.details["rpcCode"] : undefined;
  return rpcCode === -32_602 || rpcCode === -32_002;
}

function isEnd(status: TaskState["status"]): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** Reads the state of a task; throws where it is none, or that of another one. */
function readState(value: unknown, server: string, taskId: string | undefined): TaskState {
  const told = isPlainObject(value) ? value : {};
  const { taskId: given, status, statusMessage } = told;
  const known = STATUSES.find((each) => each === status);
  const isId = typeof given === "string" && given !== "" && given.length <= ID_LENGTH;
  if (!isId || known === undefined) throw unreadable(server, "no task");
  if (taskId !== undefined && given !== taskId) throw unreadable(server, "other task");
  const message = typeof statusMessage === "string" ? toPlainLine(statusMessage, MESSAGE_LENGTH) : "";
  return {
    taskId: given,
    status: known,
    message: message === "" ? undefined : message,
    delay: pollDelay(told),
    told,
  };
}

/** What a task ended with is no other task, and asks for nothing. */
function isComplete(result: unknown): result is Params {
  return isPlainObject(result) && (result["resultType"] ?? "complete") === "complete";
}

function unreadable(server: string, reason: "no task" | "other task"): CallError {
  const { code, what } = FAULTS[reason];
  return new CallError(code, `${server} ${what}.`, { details: { task: reason }, stack: false });
}

/** Milliseconds until a task is asked about again: one that is kept for a short time often enough to be seen. */
export function pollDelay({ pollInterval, pollIntervalMs, ttl, ttlMs }: Params): number {
  const wanted = pollIntervalMs ?? pollInterval;
  const kept = ttlMs ?? ttl;
  const delay = isDelay(wanted) ? wanted : POLL_DELAYS.usual;
  const most = isDelay(kept) ? Math.min(POLL_DELAYS.most, kept / 2) : POLL_DELAYS.most;
  return Math.max(POLL_DELAYS.least, Math.min(delay, most));
}

function isDelay(value: unknown): value is number {
  return typeof value === "number" && value >= 0;
}

/** What a result says of the task it came from is between this client and its server. */
function withoutTask(result: Params): Params {
  const meta = metaOf(result);
  if (meta === undefined || !Object.hasOwn(meta, RELATED_TASK)) return result;
  const { [RELATED_TASK]: _, ...kept } = meta;
  const { _meta: __, ...rest } = result;
  return Object.keys(kept).length === 0 ? rest : { ...rest, _meta: kept };
}

function whenStopped(stop: RequestStop): Promise<never> {
  return new Promise((_, reject) => {
    stop.watch(reject);
    try {
      stop.throwIfStopped();
    } catch (failure) {
      reject(failure);
    }
  });
}
