import { isErrorEnvelope, type ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { type CallError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { CallerSide, ElicitAnswer } from "../../core/operation/caller-side.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ExecuteOptions } from "../../core/registry/executor.ts";
import { viewSchema } from "../../core/schema/schema-view.ts";
import { safeLine } from "../../core/text/clean-text.ts";
import { schemaOf } from "../../gateway/operation-json.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { createPastedCommand } from "../pasted-command.ts";
import { findOperation } from "../session/find-operation.ts";
import { openSession, type Session, type SourceFlags } from "../session/session.ts";
import { withoutProgress, withProgress } from "../terminal/progress.ts";
import { toSafeJson, writeOut } from "../terminal/style.ts";
import { parseGivenJson, readOfferedStdin, readStdin } from "./given-file.ts";
import { memberPaths, parseInputs } from "./parse-inputs.ts";
import { tellCallError, tellMisfit, tellSaid, tellToolError, tellUnknown } from "./tell-outcome.ts";
import { createResultWriter, type ResultWriter, type WriteFlags } from "./write-result.ts";

/** Flags of `waybill call`. */
export interface CallFlags extends SourceFlags, WriteFlags {
  readonly all?: boolean;
  readonly take?: number;
  readonly idempotencyKey?: string;
  readonly progress?: boolean;
  readonly detach?: boolean;
  readonly timeout?: number;
}

/** The longest idempotency key. */
const MOST_KEY_CHARACTERS = 255;

/** Milliseconds that sources have to start at least, however little time the call has. */
const LEAST_START_MS = 10_000;

/** Runs `waybill call`. */
export async function runCall(
  io: Io,
  { id, words }: { readonly id: string; readonly words: readonly string[] },
  flags: CallFlags,
): Promise<number> {
  checkFlags(flags);
  const session = await openSession(io, flags, {
    forOperation: id,
    patienceMs: flags.timeout && Math.max(flags.timeout, LEAST_START_MS),
  });
  try {
    checkKey(session, flags);
    const operation = await findOperation(session, id, { io, flags });
    checkTake(operation, flags);
    const input = await readInput(io, operation, words);
    const told = tellUnknown(io, operation, memberPaths(words, schemaOf(operation, "input") ?? {}));
    const isRemote = session.isRunning || flags.url !== undefined;
    const call: Call = { io, session, operation, input, flags, told, isRemote, given: 0 };
    return flags.detach ? await detach(call) : await settle(call);
  } finally {
    await session.close();
  }
}

/** Leaves a call to the gateway that runs, and says by which id its result is found. */
async function detach(call: Call): Promise<number> {
  const { io, session, operation, input, flags } = call;
  const { start } = session.gateway;
  const paste = createPastedCommand(io, flags);
  if (start === undefined || operation.type === "subscription") {
    const why =
      start === undefined
        ? `--detach goes with a gateway that runs: start it with "${paste("serve")}", or name one with --url.`
        : `--detach goes with one answer; "${operation.id}" is a subscription.`;
    throw new CommandError(why);
  }
  try {
    const id = await start(operation.id, input, {
      ...(flags.idempotencyKey !== undefined && { metadata: { idempotencyKey: flags.idempotencyKey } }),
      ...(io.signal !== undefined && { signal: io.signal }),
    });
    if (flags.json) await writeOut(io, `${toSafeJson({ task: { id, operation: operation.id } })}\n`);
    else await writeOut(io, `${id}\n`);
    if (!io.quiet && !flags.json)
      io.stderr.write(`waybill: "${paste(`tasks wait ${id.slice(0, 12)}`)}" gives its result.\n`);
    return EXIT.ok;
  } catch (thrown) {
    if (!isCallError(thrown)) throw thrown;
    tellCallError(io, thrown, call);
    return EXIT.callError;
  }
}

function checkFlags(flags: CallFlags): void {
  const { envelope, format, raw, json, output, idempotencyKey } = flags;
  const shapes = { "--envelope": envelope, "--format": format, "--raw": raw };
  const given = Object.entries(shapes).flatMap(([name, value]) => (value ? [name] : []));
  if (given.length > 1) throw new CommandError(`${given.join(" and ")} cannot be given together.`);
  if (raw && json) throw new CommandError("--raw and --json cannot be given together.");
  const shaping = Object.entries({ ...shapes, "--output": output, "--all": flags.all, "--take": flags.take });
  const [shape] = shaping.find(([, value]) => value) ?? [];
  if (flags.detach && shape !== undefined)
    throw new CommandError(`--detach and ${shape} cannot be given together: "tasks wait" gives the result.`);
  if (output === "") throw new CommandError("--output needs the name of a file.");
  if (idempotencyKey === undefined) return;
  if (idempotencyKey === "" || idempotencyKey.length > MOST_KEY_CHARACTERS)
    throw new CommandError(`--idempotency-key takes 1 to ${MOST_KEY_CHARACTERS} characters.`);
}

/** Without a gateway that goes on, what was answered would be forgotten when this process ends. */
function checkKey({ isRunning }: Session, { idempotencyKey, url }: CallFlags): void {
  if (idempotencyKey === undefined || isRunning || url !== undefined) return;
  throw new CommandError("--idempotency-key goes with --url: it is the running gateway that keeps keys.");
}

/** Of one answer there is nothing to take. */
function checkTake(operation: AnyOperation, { all, take }: CallFlags): void {
  if (take === undefined || all || operation.type === "subscription") return;
  throw new CommandError(
    `--take goes with a subscription, or with --all; "${operation.id}" is a ${operation.type}.`,
  );
}

async function readInput(io: Io, operation: AnyOperation, words: readonly string[]): Promise<unknown> {
  const schema = schemaOf(operation, "input");
  if (words.length > 0) return parseInputs(words, { schema, cwd: io.cwd, readStdin: () => readStdin(io) });
  const isNeeded = viewSchema(schema).required.size > 0;
  const offered = await readOfferedStdin(io, isNeeded);
  if (offered !== undefined && offered.trim() !== "") return parseGivenJson(offered, "The input on stdin");
  // Most operations take an object; one that takes anything else says so.
  return {};
}

interface Call {
  readonly io: Io;
  readonly session: Session;
  readonly operation: AnyOperation;
  readonly input: unknown;
  readonly flags: CallFlags;
  /** Members of the input that were said to be unknown. */
  readonly told: ReadonlySet<string>;
  /** Whether a gateway in another process runs it. */
  readonly isRemote: boolean;
  /** How many values or pages came so far. */
  given: number;
}

async function settle(call: Call): Promise<number> {
  const { io, operation, flags } = call;
  const writer = createResultWriter(io, { operation, flags, readLink: linkReader(call) });
  try {
    const code = await (operation.type === "subscription"
      ? follow(call, writer)
      : flags.all
        ? readPages(call, writer)
        : callOnce(call, writer));
    await writer.end();
    return code;
  } catch (thrown) {
    const isInterrupted = io.signal?.aborted === true;
    const isWritten = !isInterrupted && isCallError(thrown) && (await writer.failure(thrown));
    await writer.end();
    // A subscription is often ended by Ctrl-C; what came before it has been written.
    if (isInterrupted) return EXIT.interrupted;
    if (!isCallError(thrown)) throw thrown;
    if (!isWritten) tellCallError(io, thrown, call);
    return isDeclaredAnswer(thrown) ? EXIT.toolError : EXIT.callError;
  }
}

/** Statuses that say something of the caller or the moment, and not of what was asked for. */
const NO_ANSWERS: ReadonlySet<unknown> = new Set([401, 403, 408, 429]);

/** Whether an API answered with a 4xx that its document names: the call reached what it was for, and was told no. */
function isDeclaredAnswer({ details }: CallError): boolean {
  if (!isPlainObject(details) || details["declared"] !== true) return false;
  const { status } = details;
  return typeof status === "number" && status >= 400 && status < 500 && !NO_ANSWERS.has(status);
}

/** Reads what a result links to from the server that it came from. */
function linkReader({ session, operation }: Call): ((uri: string) => Promise<unknown>) | undefined {
  const { readLink } = session.gateway;
  const source = session.gateway.sourceOf(operation.id);
  return source === undefined || readLink === undefined ? undefined : (uri) => readLink(source, uri);
}

function optionsOf({ io, flags, session, operation }: Call): ExecuteOptions {
  const { timeout, idempotencyKey, progress } = flags;
  const identity = session.identityFor(operation);
  return {
    ...(identity !== undefined && { identity }),
    signal: io.signal,
    timeoutMs: timeout,
    caller: createCallerSide(io),
    ...(idempotencyKey !== undefined && { metadata: { idempotencyKey } }),
    ...(progress && { onProgress: (value: unknown) => writeProgress(io, value) }),
  };
}

async function callOnce(call: Call, writer: ResultWriter): Promise<number> {
  const { io, session, operation, input } = call;
  const options = optionsOf(call);
  const run = () => session.gateway.executor.execute(operation.id, input, options);
  const envelope = call.flags.progress ? await run() : await withProgress(io, `calling ${operation.id}`, run);
  await writer.write(envelope);
  return outcome(io, envelope);
}

function outcome(io: Io, envelope: ResponseEnvelope): number {
  tellMisfit(io, envelope);
  if (!isErrorEnvelope(envelope)) {
    tellSaid(io, envelope);
    return EXIT.ok;
  }
  tellToolError(io, envelope);
  return EXIT.toolError;
}

function follow(call: Call, writer: ResultWriter): Promise<number> {
  const { session, operation, input } = call;
  const values = session.gateway.executor.subscribe(operation.id, input, optionsOf(call));
  return writeSeveral(call, writer, values);
}

/** Writes values as they come, and shows that it waits for the next. */
async function writeSeveral(
  call: Call,
  writer: ResultWriter,
  values: AsyncIterable<ResponseEnvelope>,
): Promise<number> {
  const { io, flags, operation } = call;
  const what = `${flags.all ? "reading pages of" : "following"} ${operation.id}`;
  const iterator = values[Symbol.asyncIterator]();
  let code: number = EXIT.ok;
  try {
    for (let count = 0; count < (flags.take ?? Number.POSITIVE_INFINITY); count++) {
      const text = count === 0 ? what : `${what} (${count} so far)`;
      const next = await (flags.progress ? iterator.next() : withProgress(io, text, () => iterator.next()));
      if (next.done) break;
      await writer.line(next.value);
      call.given += 1;
      code = Math.max(code, outcome(io, next.value));
      if (flags.all && code !== EXIT.ok) break;
    }
    return code;
  } finally {
    await iterator.return?.();
  }
}

async function readPages(call: Call, writer: ResultWriter): Promise<number> {
  const { session, operation, input, flags } = call;
  const { CURSOR_PAGER, followPages } = await import("../../core/client/pager.ts");
  const options = optionsOf(call);
  const pages = followPages(input, {
    operationId: operation.id,
    pager: operation.pager ?? CURSOR_PAGER,
    maxPages: Math.min(Math.max(flags.take ?? 0, 1_000_000), 1_000_000_000),
    fetch: (page) => session.gateway.executor.execute(operation.id, page, options),
  });
  return writeSeveral(call, writer, pages);
}

/** Writes one line about what an operation reports while it runs. */
function writeProgress(io: Io, value: unknown): void {
  io.stderr.write(`${lineOf(value)}\n`);
}

/** In the words of MCP where they are used, else as JSON. */
function lineOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return safeLine(String(value));
  const { progress, total, message } = value as Record<string, unknown>;
  if (typeof progress !== "number") return safeLine(toSafeJson(value));
  const share = typeof total === "number" && total > 0 ? `${progress} of ${total}` : String(progress);
  return typeof message === "string" ? `${share}  ${safeLine(message)}` : share;
}

/** Answers what servers ask while a call runs: the person at the terminal does; without one, every question is declined. */
function createCallerSide(io: Io): CallerSide {
  const isPerson = io.stdin.isTTY === true && io.stderr.isTTY === true;
  let turn: Promise<unknown> = Promise.resolve();
  return {
    async elicit(request, signal): Promise<ElicitAnswer> {
      if (!isPerson) return { action: "decline" };
      // One question at a time.
      const asked = turn.then(async () => {
        const { askPerson } = await import("./ask-person.ts");
        return withoutProgress(() => askPerson(io, request, signal));
      });
      turn = asked.catch(() => {});
      return asked;
    },
  };
}
