import { FORMAT_NAMES, type FormatName } from "../../core/result/tool-result.ts";
import { didYouMean, nearestName } from "../../core/text/nearest-name.ts";
import { safeLine } from "../../core/text/safe-text.ts";
import { CommandError } from "../io.ts";

/** Reads the name of a format, or says which there are. */
export function parseFormat(text: string, flag: string): FormatName {
  const known = FORMAT_NAMES.find((name) => name === text);
  if (known !== undefined) return known;
  const hint = didYouMean(nearestName(text, FORMAT_NAMES), `; there are ${FORMAT_NAMES.join(", ")}.`);
  throw new CommandError(`There is no format "${safeLine(text, 80)}" for ${flag}${hint}`);
}
