import { randomId } from "../../../core/execution/call-context.ts";
import { addAbortListener, removeAbortListener } from "../../../core/execution/cancellation.ts";
import type { JsonValue } from "../../../core/json/json-value.ts";
import type { CallerSide, CallerTask, ElicitRequest } from "../../../core/operation/caller-side.ts";
import type { AnyOperation } from "../../../core/operation/operation-types.ts";
import type { EndedCall } from "../../../core/result/ended-call.ts";
import type { ResultFormat } from "../../../core/result/result-reader.ts";
import type { CallToolResult } from "../../../core/result/tool-result.ts";
import type { TaskOutcome, TaskRun } from "../../../core/tasks/running-task.ts";
import type { TaskQuestion, TaskRecord } from "../../../core/tasks/task.ts";
import type { TaskAsker, Tasks } from "../../../core/tasks/tasks.ts";
import { toProtocolError } from "../../protocol/messages.ts";
import { methodNotFound } from "../../protocol/revisions.ts";
import {
  assertAskable,
  checkedAnswer,
  noAnswer,
  readElicitAnswer,
  readRoots,
  readSampleAnswer,
} from "../caller-answers.ts";
import { givenRequestId, type PeerRequest, type ProgressParams, RequestReporter } from "../peer-request.ts";
import { JsonResult } from "../results/to-result.ts";
import type { MayGoOn, SuspendableRun } from "../suspended-calls.ts";
import type { ServedTools } from "../tools/served-tools.ts";
import {
  readTaskParam,
  relatedTask,
  takesTasks,
  tasksNotDeclared,
  toCreated,
  toLegacyTask,
} from "./task-wire.ts";

/** Whether the calls of a tool may be tasks, or have to be. */
export type TaskSupport = "forbidden" | "optional" | "required";

/** What hears a handler while its call runs. */
export type CallReporter = Pick<RequestReporter, "progress" | "tell" | "log">;

/** A call of a tool in the parts that it runs in, wherever it goes on. */
export interface ToolWork {
  readonly name: string;
  readonly operation: AnyOperation;
  readonly input: unknown;
  readonly format: ResultFormat;
  readonly mayGoOn: MayGoOn;
  /** Runs the operation. */
  end(run: SuspendableRun, reporter: CallReporter): Promise<EndedCall>;
  /** Writes what it came to; throws what is no result. */
  write(call: EndedCall): Promise<CallToolResult | JsonResult>;
}

/** How a call is to run: as a task from the start, as one if it takes too long, or as no task. */
export type TaskPlan =
  | { readonly kind: "task"; readonly ttlMs?: number | undefined }
  | { readonly kind: "late"; readonly afterMs: number };

/** How a call is to run where tasks are served; nothing for a call that is no task. Throws where it must be one and cannot, or the other way round. */
export function planOf(
  { tasks, taskSupportOf }: ServedTools,
  request: PeerRequest,
  { id, durable }: AnyOperation,
  params: Readonly<Record<string, unknown>>,
): TaskPlan | undefined {
  if (tasks === undefined) return undefined;
  const support = taskSupportOf(id);
  if (request.peer.era === "legacy") {
    const wanted = readTaskParam(request, params["task"]);
    // 2025-11-25 has this one code for both mistakes.
    if (wanted === undefined ? support === "required" : support === "forbidden") throw methodNotFound();
    return wanted && { kind: "task", ...wanted };
  }
  if (support === "forbidden") return undefined;
  if (!takesTasks(request)) {
    if (support === "required") throw tasksNotDeclared();
    return undefined;
  }
  if (durable === true) return { kind: "task" };
  const afterMs = support === "required" ? 0 : tasks.afterMs;
  return afterMs === undefined ? undefined : { kind: "late", afterMs };
}

/** Runs a call by its plan; the answer may be a task. */
export function runPlanned(
  served: ServedTools,
  request: PeerRequest,
  work: ToolWork,
  plan: TaskPlan,
): Promise<object> {
  if (plan.kind === "task") return startTask(served, request, work, plan.ttlMs);
  const start = (run: SuspendableRun, exchange: RequestReporter): Promise<object> =>
    runUntilLate({ served, request, work, run, exchange, afterMs: plan.afterMs });
  return request.run<object>("tools/call", work.name, start, work.mayGoOn);
}

/** Who asks for tasks with a request. */
export function askerOf(request: PeerRequest): TaskAsker {
  const { owner, identity } = request;
  return { owner, identity, callerOf: (run) => toTaskCaller(run, request) };
}

async function startTask(
  served: ServedTools,
  request: PeerRequest,
  work: ToolWork,
  ttlMs: number | undefined,
): Promise<object> {
  const tasks = served.tasks as Tasks;
  const task = await tasks.start(startOf(request, work, ttlMs), async (run) => {
    const caller = toTaskCaller(run, request);
    const reporter = new RequestReporter();
    reporter.attach({
      meta: TOKEN,
      logLevel: "off",
      notify: (_, progress) => tellProgress(run, request, progress),
    });
    return await toOutcome(await work.end({ signal: run.signal, caller }, reporter), work, { run, request });
  });
  tellChanges(tasks, request, task);
  return toCreated(task, tasks, request);
}

function startOf(request: PeerRequest, { operation, input }: ToolWork, ttlMs?: number) {
  const { owner, identity } = request;
  const requestId = givenRequestId(request) ?? randomId();
  return { owner, identity, operationId: operation.id, input, requestId, ttlMs };
}

/** Progress is told where there is a token; here it goes to the task. */
const TOKEN = { progressToken: 0 };

/** Notes progress with the task, and tells a 2025 client that asked for it: its token holds as long as the task. */
function tellProgress(run: TaskRun, { peer, meta }: PeerRequest, progress: object): void {
  run.onProgress(progress);
  const progressToken = meta?.["progressToken"];
  if (peer.era !== "legacy" || progressToken === undefined) return;
  peer.notify("notifications/progress", { ...progress, progressToken, _meta: relatedTask(run.task.id) });
}

/** Tells a 2025 client that stays what becomes of its task. */
function tellChanges(tasks: Tasks, request: PeerRequest, { id }: TaskRecord): void {
  const { peer } = request;
  if (peer.era !== "legacy" || !peer.stays) return;
  let status: TaskRecord["status"] = "working";
  const tell = (task: TaskRecord): void => {
    if (task.status === status) return;
    status = task.status;
    peer.notify("notifications/tasks/status", toLegacyTask(task, tasks));
  };
  tasks.watch(askerOf(request), id, tell).catch(() => {});
}

/** What a task came to, with the answer as the client that began it gets it. */
async function toOutcome(
  call: EndedCall,
  work: ToolWork,
  { run, request }: { readonly run: TaskRun; readonly request: PeerRequest },
): Promise<TaskOutcome> {
  const form = formOf(request, work.format);
  try {
    return { call, written: { [form]: writeText(await work.write(call), request, run.task.id) } };
  } catch (thrown) {
    const error = toProtocolError(thrown, () => {});
    return { call, written: { [form]: JSON.stringify(error) }, isRefused: true };
  }
}

/** Names how a request wants its results written. */
export function formOf({ peer }: Pick<PeerRequest, "peer">, { name }: ResultFormat): string {
  return `mcp ${peer.era} ${name}`;
}

/** Writes a result as JSON; 2025-11-25 wants to be told in it which task it is of. */
export function writeText(
  result: CallToolResult | JsonResult,
  { peer }: Pick<PeerRequest, "peer">,
  taskId: string,
): string {
  const isText = result instanceof JsonResult;
  if (peer.era === "modern") return isText ? result.json : JSON.stringify(result);
  if (isText) return `${result.json.slice(0, -1)},"_meta":${JSON.stringify(relatedTask(taskId))}}`;
  return JSON.stringify({ ...result, _meta: { ...result._meta, ...relatedTask(taskId) } });
}

interface LateCall {
  readonly served: ServedTools;
  readonly request: PeerRequest;
  readonly work: ToolWork;
  readonly run: SuspendableRun;
  readonly exchange: RequestReporter;
  readonly afterMs: number;
}

/** Runs a call that becomes a task once it has worked for so long; while it waits for an answer of its client it does not. */
function runUntilLate({ served, request, work, run, exchange, afterMs }: LateCall): Promise<object> {
  const tasks = served.tasks as Tasks;
  const own = new AbortController();
  let task: TaskRun | undefined;
  let starting: Promise<unknown> | undefined;
  let isOver = false;
  let waiting = 0;
  let handle: JsonValue | undefined;
  let isPending = false;
  let progress: object | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const link: CallerTask = {
    get id() {
      return task?.task.id ?? "";
    },
    get isPossible() {
      return task === undefined;
    },
    hold: async (given) => {
      handle = given;
      await task?.link.hold(given);
    },
    wait: async (isWaiting) => {
      isPending = isWaiting;
      await task?.link.wait?.(isWaiting);
    },
    say: (message) => task?.link.say(message),
  };
  const leaving = { onAbort: (signal: AbortSignal) => own.abort(signal.reason) };
  addAbortListener(run.signal, leaving);
  const result = new Promise<object>((resolve, reject) => {
    const becomeTask = (): void => {
      const stored = handle;
      starting = tasks
        .start({ ...startOf(request, work), handle: stored }, async (given) => {
          task = given;
          // Without room for the note, no other process can go on with it: it goes on here.
          if (isPending) await given.link.wait?.(true).catch(() => {});
          if (handle !== stored) await given.link.hold(handle as JsonValue).catch(() => {});
          if (progress !== undefined) given.onProgress(progress);
          given.signal.addEventListener("abort", () => own.abort(given.signal.reason), { once: true });
          return await toOutcome(await ending, work, { run: given, request });
        })
        .then((record) => {
          removeAbortListener(run.signal, leaving);
          resolve(toCreated(record, tasks, request));
        })
        // Without room for another task it goes on as what it is.
        .catch(() => {
          starting = undefined;
          if (isOver) resolve(written());
        });
    };
    const begin = (): void => {
      clearTimeout(timer);
      if (waiting > 0 || task !== undefined || isOver) return;
      timer = setTimeout(becomeTask, afterMs);
    };
    const caller = toLateCaller(run.caller, {
      link,
      taskCaller: async () => {
        await starting;
        return task && toTaskCaller(task, request);
      },
      onAsk: () => {
        waiting += 1;
        clearTimeout(timer);
      },
      onAnswer: () => {
        waiting -= 1;
        begin();
      },
    });
    const reporter = new RequestReporter();
    reporter.attach({
      meta: TOKEN,
      logLevel: request.logLevel,
      notify: (method, params) => {
        if (task !== undefined) task.onProgress(params);
        else if (method === "notifications/progress") {
          progress = params;
          exchange.tell(params as unknown as ProgressParams);
        } else request.notify(method, params);
      },
    });
    const ending = work.end({ signal: own.signal, caller }, reporter);
    const written = async (): Promise<object> => await work.write(await ending);
    const end = (): void => {
      isOver = true;
      clearTimeout(timer);
      if (starting === undefined) resolve(written());
    };
    ending.then(end, (thrown) => {
      end();
      reject(thrown);
    });
    begin();
  });
  return served.running.orGivenUp(result).finally(() => removeAbortListener(run.signal, leaving));
}

interface LateCallerOptions {
  readonly link: CallerTask;
  /** The side of the task, once the call is one. */
  readonly taskCaller: () => Promise<CallerSide | undefined>;
  readonly onAsk: () => void;
  readonly onAnswer: () => void;
}

/** Asks the client of a call until that is a task, and then the callers that ask for the task. */
function toLateCaller(
  given: CallerSide | undefined,
  { link, taskCaller, onAsk, onAnswer }: LateCallerOptions,
): CallerSide {
  const ask = async <A>(put: (side: CallerSide) => Promise<A> | undefined): Promise<A> => {
    const side = (await taskCaller()) ?? given;
    onAsk();
    try {
      return (await (side && put(side))) ?? noAnswer();
    } finally {
      onAnswer();
    }
  };
  return {
    ...(given?.party !== undefined && { party: given.party }),
    ...(given?.extensions !== undefined && { extensions: given.extensions }),
    task: link,
    elicit: (request, signal, key) => ask((side) => side.elicit?.(request, signal, key)),
    sample: (request, signal, key) => ask((side) => side.sample?.(request, signal, key)),
    roots: (signal, key) => ask((side) => side.roots?.(signal, key)),
  };
}

/** Whom a task asks: the client that it belongs to, whenever that looks after it. */
function toTaskCaller(run: TaskRun, request: Pick<PeerRequest, "capabilities" | "extensions">): CallerSide {
  const { capabilities: can, extensions } = request;
  const ask = async <A>(
    question: TaskQuestion,
    read: (answer: unknown) => A | undefined,
    signal: AbortSignal,
    key: string | undefined,
  ): Promise<A> => read(await run.ask(question, signal, key)) ?? noAnswer();
  return {
    extensions,
    task: run.link,
    elicit: async (asked: ElicitRequest, signal, key) => {
      assertAskable(asked.mode ?? "form", can);
      return checkedAnswer(
        await ask({ kind: "elicit", request: asked }, readElicitAnswer, signal, key),
        asked,
      );
    },
    sample: async (asked, signal, key) => {
      assertAskable("sampling", can);
      return await ask({ kind: "sample", request: asked }, readSampleAnswer, signal, key);
    },
    roots: async (signal, key) => {
      assertAskable("roots", can);
      return await ask({ kind: "roots" }, readRoots, signal, key);
    },
  };
}
