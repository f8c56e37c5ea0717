import { Command } from "commander";
import type { Io } from "./io.ts";
import { createStyle, wantsColors } from "./terminal/style.ts";

/** How one command is added to a program. */
type AddCommand = (program: Command, io: Io) => void;

/** Creates a program that holds these commands, writes where it is told, and throws instead of exiting. */
export function createProgram(io: Io, commands: readonly AddCommand[]): Command {
  const style = createStyle(io.stdout, io.env);
  const program = new Command("waybill")
    .exitOverride()
    .configureHelp({
      styleTitle: (text) => style.bold(text),
      styleCommandText: (text) => style.cyan(text),
      sortOptions: false,
    })
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
      // What is wrong is told once, by `tellFailure`.
      outputError: () => {},
      getOutHasColors: () => wantsColors(io.stdout, io.env),
      getErrHasColors: () => wantsColors(io.stderr, io.env),
      getOutHelpWidth: () => io.stdout.columns || 100,
      getErrHelpWidth: () => io.stderr.columns || 100,
    })
    .helpCommand(false);
  for (const add of commands) add(program, io);
  for (const command of program.commands) addSettings(command);
  return program;
}

const SETTINGS: readonly (readonly [string, string])[] = [
  ["-q, --quiet", "nothing on stderr but what went wrong"],
  ["--verbose", "more on stderr"],
  ["--no-color", "no colours"],
];

/** Lets every command take what is read before it runs, where it has no such flag of its own. */
function addSettings(command: Command): void {
  for (const [flags, what] of SETTINGS) {
    const long = flags.slice(flags.indexOf("--"));
    const isTaken = command.options.some((option) => option.long === long || option.short === "-q");
    const spelled = isTaken ? long : flags;
    if (!command.options.some((option) => option.long === long)) command.option(spelled, what);
  }
  for (const inner of command.commands) addSettings(inner);
}
