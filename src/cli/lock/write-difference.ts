import type { ToolDifference } from "../../gateway/lock/readable-diff.ts";
import { findHunks, type TextHunk } from "../../gateway/lock/text-hunks.ts";
import type { Style } from "../terminal/style.ts";

/** Characters of one side that are shown in one piece; of longer ones, the places where they differ. */
const WHOLE = 300;
/** Places within one text that are shown. */
const MOST_HUNKS = 20;

/** How differences are written. */
export interface DifferenceStyle {
  readonly style: Style;
  /** Nothing is cut. */
  readonly all: boolean;
}

/** Writes one place of a definition: what was there, and what is. Whatever is left out is counted. */
export function toDifferenceLines({ path, before, after }: ToolDifference, how: DifferenceStyle): string[] {
  const { style, all } = how;
  const head = `      ${style.dim(path)}`;
  if (before === undefined || after === undefined) {
    return [head, ...toSide("-", before, how), ...toSide("+", after, how)];
  }
  if (before === after) return [head, "        differs in a secret, which is not shown"];
  if (before.length <= WHOLE && after.length <= WHOLE) {
    return [head, ...toSide("-", before, how), ...toSide("+", after, how)];
  }
  const hunks = findHunks(before, after);
  const shown = all ? hunks : hunks.slice(0, MOST_HUNKS);
  const rest = hunks.length - shown.length;
  return [
    `${head}  ${style.dim(`${hunks.length === 1 ? "1 place" : `${hunks.length} places`} in a long text`)}`,
    ...shown.flatMap((hunk) => toHunkLines(hunk, how)),
    ...(rest > 0 ? [`        … and ${rest} more places in this text (--all shows them)`] : []),
  ];
}

function toHunkLines(
  { skipped, rest, lead, before, after, trail }: TextHunk,
  how: DifferenceStyle,
): string[] {
  const start = skipped > 0 ? `…(${skipped} the same)… ${lead}` : lead;
  const end = rest > 0 ? `${trail} …(${rest} the same)…` : trail;
  const { style, all } = how;
  const line = (mark: string, text: string) => `${mark} ${start}${all ? text : cut(text)}${end}`;
  return [`        ${style.red(line("-", before))}`, `        ${style.green(line("+", after))}`];
}

function toSide(mark: "-" | "+", text: string | undefined, { style, all }: DifferenceStyle): string[] {
  if (text === undefined) return [];
  const paint = mark === "-" ? style.red : style.green;
  return [`        ${paint(`${mark} ${all ? text : cut(text)}`)}`];
}

function cut(text: string): string {
  if (text.length <= WHOLE) return text;
  const kept = text.slice(0, WHOLE).replace(/[\uD800-\uDBFF]$/, "");
  return `${kept} …(${text.length - kept.length} more characters; --all shows them)…`;
}
