import { Console } from "node:console";
import { PACKAGE_VERSION } from "../core/package-version.ts";
import { safeLine } from "../core/text/clean-text.ts";
import { nearestName } from "../core/text/nearest-name.ts";
import { COMMANDS, type CommandRow } from "./command-table.ts";
import { type Interrupts, listenForFaults, listenForInterrupts } from "./interrupts.ts";
import { EXIT, type Io } from "./io.ts";
import { spelledCommand } from "./pasted-command.ts";
import { rootHelp } from "./root-help.ts";
import { tellFailure } from "./run-command.ts";

/** Flags that every command takes and that may stand before its name. */
const SETTINGS = ["--no-color", "-q", "--quiet", "--verbose"];

/** Runs the whole command with these arguments (without node and script) and returns the exit code; it never throws. */
export async function runWaybill(given: Io, args: readonly string[]): Promise<number> {
  const io = withSettings(given, args);
  const start = args.findIndex((arg) => !SETTINGS.includes(arg));
  const [first, ...rest] = start === -1 ? [] : args.slice(start);
  if (first === undefined || first === "--help" || first === "-h") return write(io, rootHelp(io));
  if (first === "help") return help(io, rest);
  if (first === "--version" || first === "-V") return write(io, `${PACKAGE_VERSION}\n`);
  if (first.startsWith("-")) return mistake(io, `there is no option ${safeLine(first, 80)}`, first);
  const row = COMMANDS.find(({ name }) => name === first);
  if (row === undefined) return mistake(io, `there is no command "${safeLine(first, 80)}"`, first);
  return runRow(io, row, [...args.slice(0, start), ...rest]);
}

async function runRow(io: Io, row: CommandRow, args: readonly string[]): Promise<number> {
  const [{ createProgram }, { runProgram }, add] = await Promise.all([
    import("./create-program.ts"),
    import("./run-command.ts"),
    row.load(),
  ]);
  return runProgram(createProgram(io, [add]), io, [row.name, ...args]);
}

async function help(io: Io, [name, ...rest]: readonly string[]): Promise<number> {
  if (name === undefined || name.startsWith("-")) return write(io, rootHelp(io));
  return runWaybill(io, [name, ...(COMMANDS.some((row) => row.name === name) ? ["--help"] : rest)]);
}

function write(io: Io, text: string): number {
  io.stdout.write(text);
  return EXIT.ok;
}

function mistake(io: Io, what: string, given: string): number {
  const isFlag = given.startsWith("-");
  const known = isFlag
    ? ["--help", "--version", ...SETTINGS]
    : COMMANDS.filter(({ hidden }) => !hidden).map(({ name }) => name);
  // Every letter is near every other.
  const near = given.length > 2 ? nearestName(given, known) : undefined;
  const fix =
    near === undefined ? `; "${spelledCommand(io)} help" lists what there is.` : nearFix(near, isFlag);
  io.stderr.write(`waybill: ${what}${fix}\n`);
  return EXIT.usage;
}

function nearFix(near: string, isFlag: boolean): string {
  return `; did you mean ${isFlag ? near : `"${near}"`}?`;
}

/** Reads what has to be known before anything is loaded; commands accept these flags too, so that they are no mistakes. */
function withSettings(io: Io, args: readonly string[]): Io {
  const end = args.indexOf("--");
  const flags = new Set(end === -1 ? args : args.slice(0, end));
  return {
    ...io,
    env: flags.has("--no-color") ? { ...io.env, NO_COLOR: "1" } : io.env,
    quiet: io.quiet || flags.has("-q") || flags.has("--quiet"),
    verbose: io.verbose || flags.has("--verbose"),
  };
}

/** Runs the command in this process, and ends the process with its exit code once all output has left. */
export async function runInProcess(args: readonly string[]): Promise<void> {
  const interrupts = listenForInterrupts((code) => process.exit(code));
  const { stdin, stdout, stderr, env } = process;
  const { signal } = interrupts;
  const io: Io = { stdin, stdout, stderr, env, cwd: process.cwd(), script: process.argv[1], signal };
  for (const stream of [stdout, stderr]) mendColumns(stream);
  // Results alone are on stdout, whatever the operations that run here print.
  globalThis.console = new Console(stderr, stderr);
  watchOutput(interrupts);
  listenForFaults((thrown) => process.exit(tellFailure(io, thrown)));
  const code = await runWaybill(io, args);
  process.exitCode = interrupts.exitCode ?? code;
  await Promise.all([flushed(stdout), Promise.race([flushed(stderr), untilStuck(stderr)])]);
  // Whatever is left over, such as a socket that stays open, does not keep the command from ending.
  process.exit();
}

/** Some terminals say that they have no columns, and leave it at that. */
const DEFAULT_COLUMNS = 80;

function mendColumns(stream: NodeJS.WriteStream): void {
  if (stream.isTTY && !stream.columns) stream.columns = DEFAULT_COLUMNS;
}

/** A reader that leaves early (`waybill list | head -1`) is a normal end. */
function watchOutput(interrupts: Interrupts): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (interrupts.exitCode !== undefined) return;
    if (error.code === "EPIPE") return interrupts.end(EXIT.ok);
    process.stderr.write(`waybill: cannot write the output (${error.code}).\n`);
    interrupts.end(EXIT.toolError);
  });
  process.stderr.on("error", () => {});
}

/** Milliseconds in which nothing leaves stderr, after which nobody reads it. */
const STUCK_MS = 1_000;

/** Resolves when nobody reads a stream: what is left in it keeps no process from ending. */
function untilStuck(stream: NodeJS.WriteStream): Promise<void> {
  let left = stream.writableLength;
  return new Promise((resolve) => {
    const look = setInterval(() => {
      if (stream.writableLength < left) left = stream.writableLength;
      else {
        clearInterval(look);
        resolve();
      }
    }, STUCK_MS);
    look.unref();
  });
}

function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.writableEnded) return resolve();
    stream.write("", () => resolve());
  });
}
