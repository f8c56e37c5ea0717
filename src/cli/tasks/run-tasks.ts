import { isErrorEnvelope } from "../../core/envelope/envelope.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { decodeEnvelope } from "../../core/wire/wire.ts";
import { ENVELOPE_TYPE } from "../../openapi/media-types.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { createPastedCommand, type PastedCommand } from "../pasted-command.ts";
import { findGateway, type GatewayFlags } from "../session/find-gateway.ts";
import { askTask, type RemoteAddress, RemoteFault, type TaskAnswer } from "../session/remote-gateway.ts";
import { toSafeJson, writeOut } from "../terminal/style.ts";
import { renderTable } from "../terminal/table.ts";

/** Flags of `waybill tasks`. */
export interface TasksFlags extends GatewayFlags {
  readonly json?: boolean | undefined;
  /** Milliseconds. */
  readonly timeout?: number | undefined;
}

type TasksAction = "list" | "show" | "wait" | "cancel";

/** What a gateway tells of a task. */
interface TaskView {
  readonly id: string;
  readonly operation: string;
  readonly status: string;
  readonly message?: unknown;
  readonly progress?: unknown;
  readonly createdAt: string;
  readonly expiresAt: string;
}

/** Digits of an id that are shown, and are mostly enough to name it. */
const SHORT_ID = 12;
const LEAST_ID = 4;
/** Pages of a hundred tasks that are read. */
const MOST_PAGES = 100;
/** Seconds that the gateway holds one question for a result. */
const WAIT_SECONDS = 30;
const SETTLED: ReadonlySet<string> = new Set(["completed", "failed", "cancelled"]);

/** Runs `waybill tasks`, on the gateway that runs. */
export async function runTasks(
  io: Io,
  what: TasksAction,
  { id, ...flags }: TasksFlags & { readonly id: string | undefined },
): Promise<number> {
  const address = await findGateway(io, flags);
  if (what === "list") return await list(io, flags, await readTasks(address));
  const paste = createPastedCommand(io, flags);
  const taskId = await chosen(address, id, paste);
  if (what === "wait") return await wait(io, flags, { address, id: taskId });
  const method = what === "cancel" ? "DELETE" : "GET";
  const task = taskIn(await asked(address, `/tasks/${taskId}`, { method }));
  if (flags.json) await writeOut(io, `${toSafeJson({ task }, 2)}\n`);
  else if (what === "show") await writeOut(io, `${linesOf(task, paste).join("\n")}\n`);
  else if (!io.quiet) await writeOut(io, `${safeLine(task.operation)}: cancelled.\n`);
  return EXIT.ok;
}

async function list(io: Io, { json }: TasksFlags, tasks: readonly TaskView[]): Promise<number> {
  if (json) {
    await writeOut(io, `${toSafeJson({ tasks }, 2)}\n`);
    return EXIT.ok;
  }
  if (tasks.length === 0) {
    if (!io.quiet) io.stderr.write("waybill: there are no tasks of yours.\n");
    return EXIT.ok;
  }
  const head = ["id", "status", "operation", "progress", "message", "began"];
  const rows = tasks.map((task) => [
    task.id.slice(0, SHORT_ID),
    task.status,
    task.operation,
    progressOf(task),
    safeLine(String(task.message ?? ""), 60),
    task.createdAt,
  ]);
  await writeOut(io, `${renderTable(rows, { head, stream: io.stdout, env: io.env })}\n`);
  return EXIT.ok;
}

/** Waits for the end of a task, and prints what `waybill call` would have printed as JSON. */
async function wait(
  io: Io,
  flags: TasksFlags,
  { address, id }: { readonly address: RemoteAddress; readonly id: string },
): Promise<number> {
  const end = flags.timeout === undefined ? Number.POSITIVE_INFINITY : performance.now() + flags.timeout;
  for (;;) {
    const left = Math.max(0, Math.min(WAIT_SECONDS, Math.ceil((end - performance.now()) / 1_000)));
    const prefer = left === 0 ? {} : { prefer: `wait=${left}` };
    const answer = await asked(address, `/tasks/${id}/result`, { accept: ENVELOPE_TYPE, ...prefer });
    if (answer.status !== 202) return await tell(io, flags, answer);
    if (performance.now() < end) continue;
    const again = createPastedCommand(io, flags)(`tasks wait ${id.slice(0, SHORT_ID)}`);
    throw new CommandError(
      `The task has not ended yet; it goes on. Wait for it again with "${again}".`,
      EXIT.callError,
    );
  }
}

async function tell(io: Io, { json }: TasksFlags, answer: TaskAnswer): Promise<number> {
  if (!answer.type.startsWith(ENVELOPE_TYPE)) throw failureOf(answer);
  const envelope = decodeEnvelope(answer.text);
  await writeOut(io, `${toSafeJson(envelope.data, json ? undefined : 2)}\n`);
  return isErrorEnvelope(envelope) ? EXIT.toolError : EXIT.ok;
}

async function readTasks(address: RemoteAddress): Promise<readonly TaskView[]> {
  const found: TaskView[] = [];
  let query = "";
  for (let page = 0; page < MOST_PAGES; page++) {
    const answer = await asked(address, `/tasks${query}`, {});
    const { tasks, nextCursor } = isPlainObject(answer.value) ? answer.value : {};
    if (answer.status !== 200 || !Array.isArray(tasks) || !tasks.every(isTask)) throw failureOf(answer);
    found.push(...tasks);
    if (typeof nextCursor !== "string") return found;
    query = `?cursor=${encodeURIComponent(nextCursor)}`;
  }
  return found;
}

/** A few digits name a task where they name one alone. */
async function chosen(address: RemoteAddress, id: string | undefined, paste: PastedCommand): Promise<string> {
  if (id === undefined || id.length < LEAST_ID) {
    throw new CommandError(
      `Name the task: at least ${LEAST_ID} digits of its id, as "${paste("tasks")}" shows it.`,
    );
  }
  if (/^[0-9a-f]{32}$/.test(id)) return id;
  const fitting = (await readTasks(address)).filter((task) => task.id.startsWith(id));
  const [first] = fitting;
  if (first === undefined)
    throw new CommandError(
      `There is no task "${safeLine(id, 80)}" of yours; "${paste("tasks")}" lists them.`,
    );
  if (fitting.length > 1)
    throw new CommandError(`"${safeLine(id, 80)}" fits ${fitting.length} tasks; give more digits of it.`);
  return first.id;
}

async function asked(
  address: RemoteAddress,
  path: string,
  options: Parameters<typeof askTask>[2],
): Promise<TaskAnswer> {
  try {
    return await askTask(address, path, options);
  } catch (thrown) {
    if (!(thrown instanceof RemoteFault)) throw thrown;
    const message = `The gateway at ${safeLine(address.base, 200)} cannot be reached.`;
    throw new CommandError(message, EXIT.callError, { cause: thrown });
  }
}

function taskIn(answer: TaskAnswer): TaskView {
  if (answer.status === 200 && isTask(answer.value)) return answer.value;
  throw failureOf(answer);
}

/** The gateway is one that the user named or runs: what it says is shown as it is. */
function failureOf({ status, value }: TaskAnswer): CommandError {
  if (status === 401) {
    return new CommandError(
      "The gateway wants a token: set WAYBILL_TOKEN, or name the variable that holds it with --token-env.",
      EXIT.callError,
    );
  }
  const said = isPlainObject(value) ? value["detail"] : undefined;
  const reason = typeof said === "string" ? safeLine(said, 300) : `The gateway answered ${status}.`;
  return new CommandError(reason, EXIT.callError);
}

function linesOf(task: TaskView, paste: PastedCommand): string[] {
  const facts: (readonly [string, string])[] = [
    ["id", task.id],
    ["operation", task.operation],
    ["status", task.status],
    ["progress", progressOf(task)],
    ["message", String(task.message ?? "")],
    ["began", task.createdAt],
    ["kept until", task.expiresAt],
  ];
  const shown = facts.filter(([, value]) => value !== "");
  const next = SETTLED.has(task.status) ? [] : ["", paste(`tasks wait ${task.id.slice(0, SHORT_ID)}`)];
  return [...shown.map(([name, value]) => `${name.padEnd(12)}${safeLine(value, 1_000)}`), ...next];
}

function progressOf({ progress }: TaskView): string {
  const { progress: done, total } = isPlainObject(progress) ? progress : {};
  if (typeof done !== "number") return "";
  return typeof total === "number" ? `${done} of ${total}` : String(done);
}

function isTask(value: unknown): value is TaskView {
  return (
    isPlainObject(value) &&
    ["id", "operation", "status", "createdAt", "expiresAt"].every(
      (name) => typeof value[name] === "string",
    ) &&
    /^[0-9a-f]{32}$/.test(String(value["id"]))
  );
}
