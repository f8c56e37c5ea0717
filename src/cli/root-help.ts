import { COMMANDS } from "./command-table.ts";
import type { Io } from "./io.ts";
import { createStyle } from "./terminal/style.ts";

const EXAMPLES: readonly (readonly [string, string])[] = [
  ["waybill serve", "the config of this folder, or a small world to play with"],
  ["waybill list", "what can be called"],
  ["waybill call parcel.list limit=3", "an operation with a key=value input"],
  ["waybill list --mcp 'npx -y some-mcp-server'", "the tools of any MCP server"],
  ["waybill check https://example.com/openapi.json", "does this service keep its word?"],
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
${exampleLines(EXAMPLES, style.dim)}

Results go to stdout, everything else to stderr. Exit codes: 0 ok, 1 the operation said no, 2 usage, 3 the call failed, 130 interrupted.
`;
}

/** Examples in two columns. */
export function exampleLines(
  examples: readonly (readonly [string, string])[],
  dim: (text: string) => string,
): string {
  const width = Math.max(...examples.map(([line]) => line.length)) + 2;
  return examples.map(([line, what]) => `  ${line.padEnd(width)}${dim(what)}`.trimEnd()).join("\n");
}
