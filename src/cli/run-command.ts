import type { Command } from "commander";
import { isCallError } from "../core/errors/errors.ts";
import { safeLine, safeText } from "../core/text/clean-text.ts";
import { nearestName } from "../core/text/nearest-name.ts";
import { CommandError, EXIT, type Io } from "./io.ts";
import { spelledCommand } from "./pasted-command.ts";

/** Exit codes that actions returned, by the surroundings they ran in. */
const exitCodes = new WeakMap<Io, number>();

/**
 * Makes an action for commander out of a function that returns the exit code, or nothing for 0:
 * `command.action(action(io, async (file: string, flags: Flags) => EXIT.ok))`. What it throws is told by `runProgram`.
 */
export function action<Args extends unknown[]>(
  io: Io,
  run: (...args: Args) => Promise<number | undefined> | Promise<void>,
): (...args: Args) => Promise<void> {
  return async (...args) => {
    exitCodes.set(io, (await run(...args)) ?? EXIT.ok);
  };
}

/** Runs what the arguments (without node and script) ask a program for, tells what went wrong, and returns the exit code. */
export async function runProgram(program: Command, io: Io, args: readonly string[]): Promise<number> {
  exitCodes.delete(io);
  try {
    await program.parseAsync([...args], { from: "user" });
    return io.signal?.aborted && !exitCodes.has(io) ? EXIT.interrupted : (exitCodes.get(io) ?? EXIT.ok);
  } catch (thrown) {
    return tellFailure(io, thrown, args[0]);
  }
}

/** Writes one message about what was thrown by a command, and returns the exit code that goes with it. */
export function tellFailure(io: Io, thrown: unknown, command?: string): number {
  const { message, exitCode } = describeFailure(io, thrown, command);
  if (message !== "") io.stderr.write(`waybill: ${safeText(message)}\n`);
  if (io.env["WAYBILL_DEBUG"] && exitCode !== EXIT.ok && thrown instanceof Error)
    io.stderr.write(`${safeText(stackOf(thrown))}\n`);
  return exitCode;
}

interface Failure {
  readonly message: string;
  readonly exitCode: number;
}

function describeFailure(io: Io, thrown: unknown, command: string | undefined): Failure {
  if (isCommanderEnd(thrown)) {
    if (thrown.exitCode === 0) return { message: "", exitCode: EXIT.ok };
    return { message: describeUsageMistake(io, thrown, command), exitCode: EXIT.usage };
  }
  // Whatever breaks after Ctrl-C breaks because of it.
  if (io.signal?.aborted) return { message: "", exitCode: EXIT.interrupted };
  if (thrown instanceof CommandError) return { message: thrown.message, exitCode: thrown.exitCode };
  if (thrown instanceof Error && thrown.name === "ConfigError")
    return { message: configMistakes(thrown), exitCode: EXIT.usage };
  if (isCallError(thrown))
    return { message: `${safeLine(thrown.message, 2_000)} (${thrown.code})`, exitCode: EXIT.callError };
  const what = thrown instanceof Error ? thrown.message : String(thrown);
  return {
    message: `unexpected failure: ${what.split("\n", 1)[0]} (set WAYBILL_DEBUG=1 for the stack)`,
    exitCode: EXIT.fault,
  };
}

function configMistakes(error: Error): string {
  const { issues = [error.message] } = error as { issues?: readonly string[] };
  if (issues.length === 1) return issues[0] as string;
  return `the config has ${issues.length} mistakes:\n${issues.map((issue) => `  ${issue}`).join("\n")}`;
}

/** How commander says that it is done, for better or worse. */
function isCommanderEnd(
  thrown: unknown,
): thrown is Error & { readonly code: string; readonly exitCode: number } {
  const code = thrown instanceof Error ? (thrown as { code?: unknown }).code : undefined;
  return typeof code === "string" && code.startsWith("commander.");
}

function stackOf(error: Error): string {
  const { cause } = error;
  const stack = error.stack ?? error.message;
  return cause instanceof Error ? `${stack}\ncaused by ${stackOf(cause)}` : stack;
}

/** What options are called elsewhere in this command, where that is not here. */
const OTHER_NAMES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  encode: { "--format": "--to" },
  transcode: { "--format": "--to" },
};

/** Says in our words what commander found wrong with the arguments. */
function describeUsageMistake(
  io: Io,
  { code, message }: { readonly code: string; readonly message: string },
  command: string | undefined,
): string {
  const [first = "", hint = ""] = message.replace(/^error: /, "").split("\n");
  const quoted = /'([^']*)'/.exec(first)?.[1] ?? "";
  // npx keeps a flag for itself that stands before the first word.
  const see = `"${spelledCommand(io)} ${command === undefined ? "help" : `${command} --help`}" tells more.`;
  // Every letter is near every other.
  const known = OTHER_NAMES[command ?? ""]?.[quoted];
  const near = known ?? (quoted.length > 2 ? /Did you mean (.*?)\?/.exec(hint)?.[1] : undefined);
  switch (code) {
    case "commander.unknownOption":
      return `there is no option ${safeLine(quoted, 80)}; ${near === undefined ? see : `did you mean ${near}?`}`;
    case "commander.missingArgument":
      return `"${command}" needs <${quoted}>; ${see}`;
    case "commander.missingMandatoryOptionValue":
      return `"${command}" needs ${quoted}; ${see}`;
    case "commander.optionMissingArgument":
      return `${quoted} needs a value; ${see}`;
    case "commander.invalidArgument":
      return describeWrongChoice(first, command) ?? `${safeLine(first, 300).replace(/\.$/, "")}; ${see}`;
    case "commander.excessArguments":
      return `"${command}" takes fewer arguments; ${see}`;
    default:
      return `${safeLine(first, 300).replace(/\.$/, "")}; ${see}`;
  }
}

/** Says which words there are for an argument or an option; nothing where commander says something else. */
function describeWrongChoice(sentence: string, command: string | undefined): string | undefined {
  const [, choices] = /\. Allowed choices are (.*?)\.?$/.exec(sentence) ?? [];
  if (choices === undefined) return undefined;
  const [, argument] = /^command-argument value '(.*)' is invalid for argument '/s.exec(sentence) ?? [];
  const [, option = "", value = ""] =
    /^option '(?:.*?)(--[\w-]+).*?' argument '(.*)' is invalid\./s.exec(sentence) ?? [];
  const what = argument === undefined ? option : `"${command}"`;
  const given = argument ?? value;
  const near = nearestName(given, choices.split(", "));
  const end = near === undefined ? "." : `; did you mean "${near}"?`;
  return `${what} takes one of ${choices}; it is "${safeLine(given, 80)}"${end}`;
}
