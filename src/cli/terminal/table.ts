import { safeLine } from "../../core/text/clean-text.ts";
import { createStyle } from "./style.ts";

/** One cell: a text, or a text and how it is painted where there are colours. */
export type Cell = string | { readonly text: string; readonly paint: (text: string) => string };

/** How a table is written. */
interface TableOptions {
  readonly head: readonly string[];
  /** Where it goes: decides about colours and width. */
  readonly stream: { readonly isTTY?: boolean; readonly columns?: number };
  /** @default none: no colours but those of the cells */
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Spaces before every line. @default 0 */
  readonly indent?: number | undefined;
  /** How many columns from the left are never cut, such as names that are to be copied; those for which there is then no room are left out. @default 0 */
  readonly whole?: number | undefined;
  /** Breaks what is too wide for the last column into lines, where it is cut otherwise. @default false */
  readonly wrap?: boolean | undefined;
}

/** The width of a terminal that does not say how wide it is. */
const DEFAULT_COLUMNS = 80;
const GAP = 2;
/** Columns are not cut below this, as far as the terminal permits. */
const LEAST_COLUMNS = 8;
/** In a pipe there is no width; a cell has a bound all the same. */
const MOST_CHARACTERS = 2_000;

/**
 * Writes rows in columns, without a line feed at the end: on a terminal cut to its width, in a pipe whole and plain. Cells are
 * cleaned and made one line each; wide characters are counted as such.
 */
export function renderTable(rows: readonly (readonly Cell[])[], options: TableOptions): string {
  const { head, stream, indent = 0, whole = 0 } = options;
  const texts = [head, ...rows].map((row) => head.map((_, at) => textOf(row[at] ?? "")));
  const natural = head.map((_, at) => Math.max(...texts.map((row) => displayWidth(row[at] as string))));
  if (stream.isTTY !== true) {
    return inColumns(
      texts.map((row) => row.map((text, at) => padToWidth(text, natural[at] as number))),
      indent,
    );
  }
  const widths = fitted(natural, (stream.columns || DEFAULT_COLUMNS) - indent - 1, whole);
  const style = createStyle(stream, options.env ?? {});
  const lines = texts.flatMap((row, at) => {
    const paintOf = (column: number): ((text: string) => string) => {
      const cell = at === 0 ? undefined : rows[at - 1]?.[column];
      if (at === 0) return style.bold;
      return typeof cell === "object" ? cell.paint : (text) => text;
    };
    return (options.wrap ? wrapped(row, widths) : [row]).map((line) =>
      line.slice(0, widths.length).map((text, column) => {
        const cut = cutToWidth(text, widths[column] as number);
        return paintOf(column)(cut) + padToWidth(cut, widths[column] as number).slice(cut.length);
      }),
    );
  });
  return inColumns(lines, indent);
}

/** A row, and below it what its last cell has no room for. */
function wrapped(row: readonly string[], widths: readonly number[]): string[][] {
  const last = row.length - 1;
  const lines = wrapLine(row[last] as string, widths[last] as number);
  return lines.map((line, at) => row.map((text, column) => (column === last ? line : at === 0 ? text : "")));
}

function inColumns(rows: readonly (readonly string[])[], indent: number): string {
  return rows.map((row) => " ".repeat(indent) + row.join(" ".repeat(GAP)).trimEnd()).join("\n");
}

function textOf(cell: Cell): string {
  return safeLine(typeof cell === "string" ? cell : cell.text, MOST_CHARACTERS);
}

/**
 * Takes from the widest column past the `whole` first, again and again, until all fit or none is left to take from. Where some may not be
 * cut, the last ones are left out until the rest fits.
 */
function fitted(natural: readonly number[], space: number, whole: number): number[] {
  const widths = natural.slice(whole);
  const total = natural.reduce((sum, width) => sum + width, 0) + GAP * (natural.length - 1);
  let over = total - space;
  while (over > 0 && widths.length > 0) {
    const widest = Math.max(...widths);
    if (widest <= LEAST_COLUMNS) break;
    const second = Math.max(LEAST_COLUMNS, ...widths.filter((width) => width < widest));
    const at = widths.lastIndexOf(widest);
    const taken = Math.max(1, Math.min(over, widest - second));
    widths[at] = widest - taken;
    over -= taken;
  }
  if (over > 0 && whole > 0 && natural.length > whole) return fitted(natural.slice(0, -1), space, whole);
  return [...natural.slice(0, whole), ...widths];
}

const ASCII = /^[\x20-\x7e]*$/;
/** What takes no column of its own. */
const NO_WIDTH = /^[\p{Mark}\p{Default_Ignorable_Code_Point}\p{Control}]+$/u;
/** Emoji that are shown as pictures. */
const PICTURE =
  /\p{Emoji_Presentation}|\p{Extended_Pictographic}\ufe0f|\ufe0f\u20e3|\p{Regional_Indicator}{2}/u;
/** East Asian wide and fullwidth characters, by block. */
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]|[\u{16fe0}-\u{18aff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]/u;

let segmenter: Intl.Segmenter | undefined;

function segments(text: string): string[] {
  segmenter ??= new Intl.Segmenter();
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

function widthOf(segment: string): number {
  if (NO_WIDTH.test(segment)) return 0;
  return PICTURE.test(segment) || WIDE.test(segment) ? 2 : 1;
}

/** The number of columns a terminal shows a line of clean text in. */
export function displayWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  return segments(text).reduce((width, segment) => width + widthOf(segment), 0);
}

/** Cuts a line of clean text to a number of columns; what is cut ends with `…`. */
export function cutToWidth(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let kept = "";
  let width = 1;
  for (const segment of segments(text)) {
    width += widthOf(segment);
    if (width > columns) break;
    kept += segment;
  }
  return columns < 1 ? "" : `${kept.trimEnd()}…`;
}

/** Fills a line of clean text with spaces up to a number of columns. */
export function padToWidth(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - displayWidth(text)));
}

/** Breaks a line of clean text between words so that none takes more columns; a word that does stands in a line of its own. */
function wrapLine(line: string, columns: number): readonly string[] {
  const lines: string[] = [];
  let current = "";
  let width = 0;
  for (const word of line.split(" ")) {
    const more = displayWidth(word);
    if (current !== "" && width + 1 + more > columns) {
      lines.push(current);
      current = "";
    }
    width = current === "" ? more : width + 1 + more;
    current = current === "" ? word : `${current} ${word}`;
  }
  return [...lines, current];
}

/** The same for every line of a text, as wide as a terminal is; what goes into a pipe stays as it is. */
export function wrapText(
  text: string,
  { isTTY, columns = 80 }: { readonly isTTY?: boolean; readonly columns?: number },
): string {
  if (isTTY !== true) return text;
  return text
    .split("\n")
    .flatMap((line) => wrapLine(line.trimEnd(), Math.max(20, columns - 1)))
    .join("\n");
}
