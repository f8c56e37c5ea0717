import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { SourceReport } from "../../gateway/sources/source.ts";
import type { PastedCommand } from "../pasted-command.ts";
import { counted } from "../terminal/counted.ts";
import { shellWord } from "./example-call.ts";

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

/** Whether calls of an operation are refused because its tool changed since it was approved. */
export function isRefused(report: SourceReport | undefined, operation: AnyOperation): boolean {
  const { id, name } = operation;
  // A gateway whose ids are kept serves them under names without dots.
  const names = [name, id, id.replaceAll(".", "_")];
  return report?.changed?.some(({ tool, kind }) => kind === "changed" && names.includes(tool)) === true;
}
