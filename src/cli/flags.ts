import type { Command } from "commander";
import { CommandError } from "./io.ts";
import { safeLine } from "./terminal/safe-text.ts";

/** Adds the flags that say where operations come from: those of `SourceFlags`. */
export function addSourceFlags(command: Command): Command {
  return command
    .option("-c, --config <file>", "a config file (default: the nearest waybill.config.*)")
    .option("--mcp <server>", "one MCP server instead: an address, or a command line in quotes")
    .option("--openapi <document>", "one OpenAPI document instead: a path or an address")
    .option("--url <gateway>", "a running gateway instead: its address")
    .option(
      "--token-env <name>",
      "the environment variable that holds the token for --url (default: WAYBILL_TOKEN), --mcp or --openapi",
    );
}

/** Gathers the values of a flag that may be repeated. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Adds `--json`. */
export function addJsonFlag(command: Command, what = "JSON for programs"): Command {
  return command.option("--json", what);
}

/** Adds `--timeout`, in milliseconds when read. */
export function addTimeoutFlag(command: Command, what: string): Command {
  return command.option("--timeout <time>", `${what}: 500ms, 5s, 2m; a bare number is milliseconds`, (text) =>
    parseDuration(text, "--timeout"),
  );
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
/** What a timer can hold. */
const MOST_MS = 2_147_483_647;

/** Reads a length of time into milliseconds. */
export function parseDuration(text: string, flag: string): number {
  const [, digits, unit = "ms"] = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h)?$/.exec(text.trim()) ?? [];
  const ms = digits === undefined ? Number.NaN : Math.round(Number(digits) * (UNITS[unit] as number));
  if (ms >= 1 && ms <= MOST_MS) return ms;
  throw new CommandError(`${flag} takes a time such as 500ms, 5s or 2m; it is "${safeLine(text, 40)}".`);
}

/** Reads a whole number from `least` to `most`. */
export function parseWholeNumber(text: string, flag: string, least: number, most: number): number {
  const value = /^\d{1,15}$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new CommandError(
    `${flag} takes a whole number from ${least} to ${most}; it is "${safeLine(text, 40)}".`,
  );
}

/** Says which values a flag takes, unless it is one of them. */
export function checkChoice<T extends string>(text: string, flag: string, choices: readonly T[]): T {
  const chosen = choices.find((choice) => choice === text);
  if (chosen !== undefined) return chosen;
  throw new CommandError(`${flag} takes one of ${choices.join(", ")}; it is "${safeLine(text, 40)}".`);
}
