import type { Command } from "commander";
import type { Io } from "./io.ts";
import { exampleLines } from "./root-help.ts";
import { createStyle } from "./terminal/style.ts";

/** Adds examples below the help of a command: command lines, and what each does. */
export function addExamples(
  command: Command,
  io: Io,
  examples: readonly (readonly [string, string])[],
  more = "",
): Command {
  const style = createStyle(io.stdout, io.env);
  const tail = more === "" ? "" : `\n\n${more}`;
  return command.addHelpText(
    "after",
    () => `\n${style.bold("Examples:")}\n${exampleLines(examples, style.dim)}${tail}`,
  );
}
