import { nearestName } from "../../core/options/check-options.ts";
import { FORMAT_NAMES, type FormatName } from "../../core/result/tool-result.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { CommandError } from "../io.ts";

/** Reads the name of a format, or says which there are. */
export function parseFormat(text: string, flag: string): FormatName {
  const known = FORMAT_NAMES.find((name) => name === text);
  if (known !== undefined) return known;
  const near = nearestName(text.slice(0, 80), FORMAT_NAMES);
  const hint = near === undefined ? `there are ${FORMAT_NAMES.join(", ")}.` : `did you mean "${near}"?`;
  throw new CommandError(`There is no format "${safeLine(text, 80)}" for ${flag}; ${hint}`);
}
