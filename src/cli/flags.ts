import type { Command } from "commander";
import { safeLine } from "../core/text/clean-text.ts";
import { CommandError, type Io } from "./io.ts";

/** Adds the flags that say where operations come from: those of `SourceFlags`. */
export function addSourceFlags(command: Command): Command {
  return command
    .option("-c, --config <file>", "a config file (default: the nearest waybill.config.*)")
    .option("--mcp <server>", "one MCP server instead: an address, or a command line in quotes")
    .option("--openapi <document>", "one OpenAPI document instead: a path or an address")
    .option("--base-url <address>", "where the API of --openapi is, in place of what the document says")
    .option("--allow-private", "lets --openapi call private addresses that the document names")
    .option("--url <gateway>", "a running gateway instead: its address")
    .option(
      "--token-env <name>",
      "the environment variable that holds the token for --url (default: WAYBILL_TOKEN), --mcp or --openapi",
    );
}

/** Adds `--source`. */
export function addSourceOption(command: Command): Command {
  return command.option("--source <name>", "use only this source of the config; may be repeated", collect);
}

/** Adds `--source` and `--no-gateway`: which sources are used, and by whom they are started. */
export function addSessionFlags(command: Command): Command {
  return addSourceOption(command).option(
    "--no-gateway",
    "start the sources here, also where a gateway runs for the config",
  );
}

const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
const LOG_FORMATS = ["json", "text"] as const;

/** Adds the flags that commands share which serve until they are ended. */
export function addServingFlags(command: Command): Command {
  return command
    .option("--no-watch", "do not follow changes of the config, modules and documents")
    .option("--log-level <level>", LOG_LEVELS.join(", "), (text) =>
      checkChoice(text, "--log-level", LOG_LEVELS),
    )
    .option("--log-format <format>", `${LOG_FORMATS.join(", ")} (default: text on a terminal)`, (text) =>
      checkChoice(text, "--log-format", LOG_FORMATS),
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
export function addTimeoutFlag(command: Command, io: Io, what: string): Command {
  return command.option("--timeout <time>", `${what}: 500ms, 5s, 2m`, (text) => {
    const ms = parseDuration(text, "--timeout");
    tellBareNumber(io, text, "--timeout");
    return ms;
  });
}

/** Says how a time without a unit was read: others mean milliseconds by it. */
export function tellBareNumber(io: Io, text: string, flag: string): void {
  if (io.quiet || !/^\s*0*[1-9][\d.]*\s*$/.test(text)) return;
  const given = safeLine(text.trim(), 40);
  io.stderr.write(`waybill: ${flag} ${given} is read as ${given}s; write ${given}s or ${given}ms.\n`);
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
/** What a timer can hold. */
const MOST_MS = 2_147_483_647;

/** Reads a length of time into milliseconds; a bare number is seconds, and `least` is the shortest, in milliseconds. */
export function parseDuration(text: string, flag: string, least = 1): number {
  const [, digits, unit = "s"] = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h)?$/.exec(text.trim()) ?? [];
  const ms = digits === undefined ? Number.NaN : Math.round(Number(digits) * (UNITS[unit] as number));
  if (ms >= least && ms <= MOST_MS) return ms;
  throw new CommandError(`${flag} takes a time such as 500ms, 5s or 2m; it is "${safeLine(text, 40)}".`);
}

/** Reads a whole number from `least` to `most`. */
export function parseWholeNumber(
  text: string,
  flag: string,
  [least, most]: readonly [least: number, most: number],
): number {
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
