import { shellWord } from "../../core/text/clean-text.ts";
import { counted } from "../../core/text/nearest-name.ts";
import { NO_FILE_NOTE, type SourceReport } from "../../gateway/sources/source.ts";
import { isNpmNoise } from "../../mcp/client/plain-line.ts";
import type { PastedCommand } from "../pasted-command.ts";

/** Modules that are told of by name; of the rest only how many there are. */
const MOST_MODULES = 5;

/** Lines of standard error that are shown; the rest with `--verbose`. */
const SHOWN_STDERR = 5;

/** Lines about each source that is not up although it should be, then what is wrong with modules and tools, with commands to paste. */
export function troubleLines(
  reports: readonly SourceReport[],
  paste: PastedCommand,
  isVerbose = false,
): readonly string[] {
  const refused = reports.flatMap((report) => refusedLine(report, paste) ?? []);
  return [
    ...loginLines(reports, paste),
    ...downLines(reports, isVerbose),
    ...moduleLines(reports, paste),
    ...refused,
  ];
}

/** A line for each source that waits for a login, with the command that does it. */
function loginLines(reports: readonly SourceReport[], paste: PastedCommand): readonly string[] {
  return reports.flatMap(({ name, login }) => (login === "wanted" ? [loginLine(name, paste)] : []));
}

/** Says that a source waits for a login, with the command that does it. */
export function loginLine(name: string, paste: PastedCommand): string {
  return `The source "${name}" waits for a login; run: ${paste(`login ${shellWord(name)}`)}`;
}

/** A line for each source that is not up although it should be, with the last ones of its process. */
export function downLines(reports: readonly SourceReport[], isVerbose = false): readonly string[] {
  return reports.flatMap((report) => {
    const { name, state } = report;
    // Said in words of its own, with what to do.
    if (state.status !== "down" || report.login === "wanted") return [];
    return [`The source "${name}" is down: ${state.reason}`, ...stderrLines(report, isVerbose)];
  });
}

/** The last lines that a process wrote to standard error, as far as the reason does not have them already. */
function stderrLines({ state, stderr = [] }: SourceReport, isVerbose: boolean): readonly string[] {
  const [only] = stderr;
  if (
    stderr.length === 1 &&
    state.status === "down" &&
    state.reason.includes(only?.replace(/\.$/, "") as string)
  )
    return [];
  const shown = isVerbose ? stderr : tellingLines(stderr).slice(-SHOWN_STDERR);
  const left = stderr.length - shown.length;
  if (shown.length === 0) return [];
  const more = left > 0 ? `, ${left} more with --verbose` : "";
  return [`  its last lines on standard error${more}:`, ...shown.map((line) => `  | ${line}`)];
}

/** Lines that tell something: brackets that stand alone and what npm adds to errors do not. */
export function tellingLines(lines: readonly string[]): readonly string[] {
  return lines.filter((line) => /[\p{L}\p{N}]/u.test(line) && !isNpmNoise(line));
}

/** One line for each source that has not come up in time. */
export function lateLines(reports: readonly SourceReport[], ms: number): readonly string[] {
  return reports.flatMap(({ name, state }) =>
    state.status === "connecting"
      ? [
          `The source "${name}" has not come up within ${ms / 1_000}s, and is left out; --timeout gives it longer.`,
        ]
      : [],
  );
}

/** One line for each module that cannot be used, and for each pattern that finds none; a source that is down says so itself. */
function moduleLines(reports: readonly SourceReport[], paste: PastedCommand): readonly string[] {
  return reports
    .filter(({ kind, state }) => kind === "local" && state.status === "up")
    .flatMap((report) => {
      const broken = report.unusable.map(({ name, reason }) => `${name}: ${reason}`);
      const left = broken.length - MOST_MODULES;
      const more =
        left > 0 ? [`${left} more cannot be used; "${paste("list --sources --json")}" names them.`] : [];
      return [...broken.slice(0, MOST_MODULES), ...more, ...emptyLines(report)];
    });
}

/** Patterns of `operations` that lead to no file. */
export function emptyPatterns({ kind, notes }: SourceReport): readonly string[] {
  if (kind !== "local") return [];
  return notes.filter(({ note }) => note === NO_FILE_NOTE).map(({ name }) => name);
}

/** One line for each of them. */
export function emptyLines(report: SourceReport): readonly string[] {
  return emptyPatterns(report).map(
    (pattern) => `No file is found by "${pattern}", which "operations" of the config names.`,
  );
}

/** Tools that are named; of the rest only how many there are. */
const MOST_TOOLS = 5;

/** Says which tools of a source are refused until they are approved, and how that is done; nothing where none is. */
export function refusedLine({ name, changed = [] }: SourceReport, paste: PastedCommand): string | undefined {
  if (changed.length === 0) return undefined;
  const named = changed.slice(0, MOST_TOOLS).map(({ tool, kind }) => `${tool} (${kind})`);
  const left = changed.length - named.length;
  const which = `${named.join(", ")}${left > 0 ? ` and ${left} more` : ""}`;
  const [are, they, them] = changed.length === 1 ? ["is", "it is", "it"] : ["are", "they are", "them"];
  const server = shellWord(name);
  return `${counted(changed.length, "tool")} of "${name}" ${are} refused until ${they} approved: ${which}. "${paste(`lock ${server}`)}" shows why, "${paste(`lock --approve ${server}`)}" approves ${them}.`;
}
