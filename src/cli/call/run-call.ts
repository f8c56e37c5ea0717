import { isErrorEnvelope, type ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { isCallError } from "../../core/errors/errors.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ExecuteOptions } from "../../core/registry/executor.ts";
import type { FormatName } from "../../core/result/tool-result.ts";
import { schemaOf } from "../../gateway/schema-of.ts";
import { findOperation } from "../find-operation.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { ownerFor } from "../owner-identity.ts";
import { openSession, type Session, type SourceFlags } from "../session.ts";
import { withProgress } from "../terminal/progress.ts";
import { createCallerSide } from "./caller-side.ts";
import { membersOf, partsOf } from "./input-schema.ts";
import { memberPaths, parseInputs } from "./parse-inputs.ts";
import { parseGivenJson } from "./parse-json.ts";
import { readOfferedStdin, readStdin } from "./read-stdin.ts";
import { tellCallError, tellMisfit, tellSaid, tellToolError, tellUnknown } from "./tell-outcome.ts";
import { createResultWriter, type ResultWriter } from "./write-result.ts";

/** Flags of `waybill call`. */
export interface CallFlags extends SourceFlags {
  readonly envelope?: boolean;
  readonly format?: FormatName;
  readonly raw?: boolean;
  readonly output?: string;
  readonly all?: boolean;
  readonly take?: number;
  readonly idempotencyKey?: string;
  readonly progress?: boolean;
  readonly json?: boolean;
  readonly timeout?: number;
}

/** The longest idempotency key. */
const MOST_KEY_CHARACTERS = 255;

/** Runs `waybill call`. */
export async function runCall(
  io: Io,
  id: string,
  words: readonly string[],
  flags: CallFlags,
): Promise<number> {
  checkFlags(flags);
  const session = await openSession(io, flags, { forOperation: id });
  try {
    const operation = await findOperation(io, flags, session, id);
    checkTake(operation, flags);
    const input = await readInput(io, operation, words);
    const told = tellUnknown(io, operation, memberPaths(words, schemaOf(operation, "input") ?? {}));
    const call: Call = { io, session, operation, input, flags, told, given: 0 };
    return await settle(call);
  } finally {
    await session.close();
  }
}

function checkFlags(flags: CallFlags): void {
  const { envelope, format, raw, json, output, idempotencyKey } = flags;
  const shapes = { "--envelope": envelope, "--format": format, "--raw": raw };
  const given = Object.entries(shapes).flatMap(([name, value]) => (value ? [name] : []));
  if (given.length > 1) throw new CommandError(`${given.join(" and ")} cannot be given together.`);
  if (raw && json) throw new CommandError("--raw and --json cannot be given together.");
  if (output === "") throw new CommandError("--output needs the name of a file.");
  if (idempotencyKey === undefined) return;
  if (idempotencyKey === "" || idempotencyKey.length > MOST_KEY_CHARACTERS)
    throw new CommandError(`--idempotency-key takes 1 to ${MOST_KEY_CHARACTERS} characters.`);
  // Without one, what was answered would be forgotten when this process ends.
  if (flags.url === undefined)
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
  const isNeeded = schema !== undefined && membersOf(partsOf(schema, schema)).required.size > 0;
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
  /** How many values or pages came so far. */
  given: number;
}

async function settle(call: Call): Promise<number> {
  const { io, operation, flags } = call;
  const writer = createResultWriter(io, operation, flags);
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
    return EXIT.callError;
  }
}

function optionsOf({ io, flags, session, operation }: Call): ExecuteOptions {
  const { timeout, idempotencyKey, progress } = flags;
  const identity = ownerFor(operation, session);
  return {
    ...(identity !== undefined && { identity }),
    signal: io.signal,
    timeoutMs: timeout,
    caller: createCallerSide(io),
    ...(idempotencyKey !== undefined && { metadata: { idempotencyKey } }),
    ...(progress && { onProgress: (value: unknown) => showProgress(io, value) }),
  };
}

function showProgress(io: Io, value: unknown): void {
  import("./show-progress.ts").then(({ writeProgress }) => writeProgress(io, value)).catch(() => {});
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
