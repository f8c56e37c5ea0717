import { resolve } from "node:path";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { CommandError, EXIT, type Io } from "../io.ts";
import { openSession, type Session, type SourceFlags } from "../session.ts";
import { spelledCommand } from "../spelled-command.ts";
import { toSafeJson } from "../terminal/json-output.ts";
import { writeOut } from "../terminal/write-out.ts";
import { holdsTypes, writeTypesFile } from "./types-file.ts";
import { writeTypes } from "./write-types.ts";

/** Where the types go unless somebody says otherwise. */
const TYPES_FILE = "waybill-types.ts";

/** The flags of `waybill types`. */
export interface TypesFlags extends SourceFlags {
  readonly out?: string;
  readonly check?: boolean;
  readonly partial?: boolean;
  readonly closed?: boolean;
  readonly json?: boolean;
}

/** Writes types for everything that is mounted. */
export async function runTypes(io: Io, flags: TypesFlags): Promise<number> {
  if (flags.check && flags.out === "-")
    throw new CommandError("--check compares a file; --out - names none.");
  if (flags.json && flags.out === "-")
    throw new CommandError("--json and --out - cannot be given together: both write to stdout.");
  const session = await openSession(io, flags);
  try {
    refuseGaps(io, session, flags.partial === true);
    const operations = [...session.gateway.executor.operations].filter(
      ({ visibility }) => visibility !== "internal",
    );
    return await emitTypes(io, operations, flags);
  } finally {
    await session.close();
  }
}

/** A file that leaves out what is down for a moment would take types away from those who use them. */
function refuseGaps(io: Io, { gateway }: Session, isPartial: boolean): void {
  for (const { name, state } of gateway.sources) {
    if (state.status === "up" || state.status === "disabled") continue;
    const reason = state.status === "down" ? state.reason : `it is ${state.status}`;
    const message = `The source "${safeLine(name, 100)}" is down, so its types are not known: ${safeLine(reason)}`;
    if (!isPartial) {
      throw new CommandError(
        `${message}\nNothing was written; --partial writes the types of the others.`,
        EXIT.callError,
      );
    }
    io.stderr.write(`waybill: ${message}\n`);
  }
}

/** Writes, prints or checks the types of operations. */
export async function emitTypes(
  io: Io,
  operations: readonly AnyOperation[],
  { out = TYPES_FILE, check, closed, json }: Pick<TypesFlags, "out" | "check" | "closed" | "json">,
): Promise<number> {
  if (out === "") throw new CommandError("--out takes a file, or - for stdout.");
  const pieces = writeTypes(operations, { closed, onUnreadable: (...what) => tellUnreadable(io, ...what) });
  if (out === "-") {
    for (const piece of pieces) await writeOut(io, piece);
    return EXIT.ok;
  }
  const path = resolve(io.cwd, out);
  if (json) return reportTypes(io, { path, out, count: operations.length, isCheck: check === true }, pieces);
  if (check) return checkFile(io, path, out, pieces);
  await writeTypesFile(path, pieces);
  const count = operations.length === 1 ? "1 operation" : `${operations.length} operations`;
  tell(io, `${count} typed in ${safeLine(out, 200)}; make sure that your tsconfig.json includes it.`);
  return EXIT.ok;
}

interface TypesReport {
  readonly path: string;
  readonly out: string;
  readonly count: number;
  readonly isCheck: boolean;
}

/** Writes or checks the file, and says so for programs. */
async function reportTypes(io: Io, report: TypesReport, pieces: Iterable<string>): Promise<number> {
  const { path, out, count, isCheck } = report;
  const state = isCheck ? await holdsTypes(path, pieces) : "written";
  if (!isCheck) await writeTypesFile(path, pieces);
  io.stdout.write(`${toSafeJson({ file: out, operations: count, state })}\n`);
  return state === "written" || state === "same" ? EXIT.ok : EXIT.toolError;
}

async function checkFile(io: Io, path: string, out: string, pieces: Iterable<string>): Promise<number> {
  const state = await holdsTypes(path, pieces);
  const shown = safeLine(out, 200);
  if (state === "same") {
    tell(io, `${shown} is up to date.`);
    return EXIT.ok;
  }
  const what = state === "missing" ? `${shown} does not exist` : `${shown} is out of date`;
  throw new CommandError(
    `${what}; "${spelledCommand(io)} types" with the same flags and without --check writes it.`,
    EXIT.toolError,
  );
}

function tellUnreadable(io: Io, id: string, direction: string, cause: unknown): void {
  const why = cause instanceof Error ? cause.message : String(cause);
  tell(
    io,
    `the ${direction} of ${safeLine(id, 200)} is unknown: its schema cannot be used. ${safeLine(why)}`,
  );
}

function tell(io: Io, message: string): void {
  if (!io.quiet) io.stderr.write(`waybill: ${message}\n`);
}
