import { listenForFaults } from "./faults.ts";
import { type Interrupts, listenForInterrupts } from "./interrupts.ts";
import { EXIT, type Io } from "./io.ts";
import { tellFailure } from "./run-command.ts";
import { runWaybill } from "./run-waybill.ts";

/** Runs the command in this process, and ends the process with its exit code once all output has left. */
export async function runInProcess(args: readonly string[]): Promise<void> {
  const interrupts = listenForInterrupts((code) => process.exit(code));
  const { stdin, stdout, stderr, env } = process;
  const { signal } = interrupts;
  const io: Io = { stdin, stdout, stderr, env, cwd: process.cwd(), script: process.argv[1], signal };
  for (const stream of [stdout, stderr]) mendColumns(stream);
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
