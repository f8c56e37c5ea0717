import type { Command } from "commander";
import { COMMANDS } from "./command-table.ts";
import type { Io } from "./io.ts";
import { spelledCommand } from "./pasted-command.ts";
import { createStyle } from "./terminal/style.ts";

const EXAMPLES: readonly (readonly [string, string])[] = [
  ["waybill serve", "the config of this folder, or a small world to play with"],
  ["waybill list", "what can be called"],
  ["waybill call parcel.list limit=3", "an operation with a key=value input"],
  ["waybill list --mcp 'npx -y some-mcp-server'", "the tools of any MCP server"],
  ["waybill check https://example.com/openapi.json", "check an API against its document"],
];

/** The help of the command as a whole. */
export function rootHelp(io: Io): string {
  const style = createStyle(io.stdout, io.env);
  const shown = COMMANDS.filter(({ hidden }) => !hidden);
  const groups = [...new Set(shown.map(({ group }) => group))];
  const width = Math.max(...shown.map(({ name }) => name.length)) + 2;
  const parts = groups.map((group) => {
    const rows = shown.filter((row) => row.group === group);
    const lines = rows.map(({ name, summary }) => `  ${style.cyan(name.padEnd(width))}${summary}`);
    return `${style.bold(group)}\n${lines.join("\n")}`;
  });
  return `${style.bold("Usage:")} waybill <command> [options]

Many tool sources behind one typed call: MCP servers, HTTP APIs and functions of your own.

${parts.join("\n\n")}

${style.bold("Options")}
  -h, --help     this, or the help of a command
  -V, --version  the version
  -q, --quiet    nothing on stderr but what went wrong
  --verbose      more on stderr
  --no-color     no colours

${style.bold("Examples")}
${exampleLines(io, EXAMPLES)}

Results go to stdout, everything else to stderr. Exit codes: 0 ok, 1 the operation or the API answered with an error, 2 usage, 3 the call failed, 130 interrupted.
`;
}

/** Examples in two columns, spelled so that they can be pasted. */
function exampleLines(io: Io, examples: readonly (readonly [string, string])[]): string {
  const { dim } = createStyle(io.stdout, io.env);
  const command = spelledCommand(io);
  const paste = (line: string): string =>
    line.replace(/(^|\| |<\()waybill /g, (_, before: string) => `${before}${command} `);
  const pasted = examples.map(([line, what]) => [paste(line), what] as const);
  const width = Math.max(...pasted.map(([line]) => line.length)) + 2;
  return pasted.map(([line, what]) => `  ${line.padEnd(width)}${dim(what)}`.trimEnd()).join("\n");
}

/** Adds examples below the help of a command: command lines, and what each does. */
export function addExamples(
  command: Command,
  io: Io,
  examples: readonly (readonly [string, string])[],
): Command {
  const style = createStyle(io.stdout, io.env);
  return command.addHelpText("after", () => `\n${style.bold("Examples:")}\n${exampleLines(io, examples)}`);
}
