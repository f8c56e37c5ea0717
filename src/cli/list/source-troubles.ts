import { NO_FILE_NOTE } from "../../gateway/sources/local-source.ts";
import type { SourceReport } from "../../gateway/sources/source.ts";
import type { PastedCommand } from "../pasted-command.ts";
import { refusedLine } from "./refused-tools.ts";

/** Modules that are told of by name; of the rest only how many there are. */
const MOST_MODULES = 5;

/** One line for each source that is not up although it should be, then what is wrong with modules and tools, with commands to paste. */
export function troubleLines(reports: readonly SourceReport[], paste: PastedCommand): readonly string[] {
  const refused = reports.flatMap((report) => refusedLine(report, paste) ?? []);
  return [...downLines(reports), ...moduleLines(reports, paste), ...refused];
}

/** One line for each source that is not up although it should be. */
export function downLines(reports: readonly SourceReport[]): readonly string[] {
  return reports.flatMap(({ name, state }) =>
    state.status === "down" ? [`The source "${name}" is down: ${state.reason}`] : [],
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
