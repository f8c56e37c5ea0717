import { safeLine } from "../../core/text/safe-text.ts";
import { cutToWidth, displayWidth, padToWidth } from "./display-width.ts";
import { createStyle } from "./style.ts";
import { wrapLine } from "./wrap-text.ts";

/** One cell: a text, or a text and how it is painted where there are colours. */
export type Cell = string | { readonly text: string; readonly paint: (text: string) => string };

/** How a table is written. */
export interface TableOptions {
  readonly head: readonly string[];
  /** Where it goes: decides about colours and width. */
  readonly stream: { readonly isTTY?: boolean; readonly columns?: number };
  /** @default none: no colours but those of the cells */
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Spaces before every line. @default 0 */
  readonly indent?: number | undefined;
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
export async function renderTable(
  rows: readonly (readonly Cell[])[],
  options: TableOptions,
): Promise<string> {
  const { head, stream, indent = 0 } = options;
  const texts = [head, ...rows].map((row) => head.map((_, at) => textOf(row[at] ?? "")));
  const natural = head.map((_, at) => Math.max(...texts.map((row) => displayWidth(row[at] as string))));
  if (stream.isTTY !== true) return plain(texts, natural, indent);
  const space = (stream.columns || DEFAULT_COLUMNS) - indent - 1;
  const widths = fitted(natural, space - GAP * (head.length - 1));
  const style = createStyle(stream, options.env ?? {});
  const painted = texts.flatMap((row, at) =>
    (options.wrap ? wrapped(row, widths) : [row]).map((line) =>
      line.map((text, column) => {
        const cut = cutToWidth(text, widths[column] as number);
        const cell = at === 0 ? undefined : rows[at - 1]?.[column];
        if (at === 0) return style.bold(cut);
        return typeof cell === "object" ? cell.paint(cut) : cut;
      }),
    ),
  );
  return draw(painted, widths, indent);
}

/** A row, and below it what its last cell has no room for. */
function wrapped(row: readonly string[], widths: readonly number[]): string[][] {
  const last = row.length - 1;
  const lines = wrapLine(row[last] as string, widths[last] as number);
  return lines.map((line, at) => row.map((text, column) => (column === last ? line : at === 0 ? text : "")));
}

/** By cli-table3, which is loaded for terminals only. */
async function draw(rows: string[][], widths: readonly number[], indent: number): Promise<string> {
  const { default: Table } = await import("cli-table3");
  const edges = ["top", "top-mid", "top-left", "top-right", "bottom", "bottom-mid", "bottom-left"] as const;
  const others = ["bottom-right", "left", "left-mid", "mid", "mid-mid", "right", "right-mid"] as const;
  const none = Object.fromEntries([...edges, ...others].map((name) => [name, ""]));
  const last = widths.length - 1;
  const table = new Table({
    chars: { ...none, middle: " ".repeat(GAP) },
    style: { "padding-left": 0, "padding-right": 0, head: [], border: [] },
    colWidths: widths.map((width, at) => (at === last ? width + 1 : width)),
  });
  table.push(...rows);
  return indented(table.toString().split("\n"), indent);
}

function plain(texts: string[][], widths: readonly number[], indent: number): string {
  const gap = " ".repeat(GAP);
  return indented(
    texts.map((row) => row.map((text, at) => padToWidth(text, widths[at] as number)).join(gap)),
    indent,
  );
}

function indented(lines: readonly string[], indent: number): string {
  return lines.map((line) => " ".repeat(indent) + line.trimEnd()).join("\n");
}

function textOf(cell: Cell): string {
  return safeLine(typeof cell === "string" ? cell : cell.text, MOST_CHARACTERS);
}

/** Takes from the widest column, again and again, until all fit or none is left to take from. */
function fitted(natural: readonly number[], space: number): number[] {
  const widths = [...natural];
  let over = widths.reduce((sum, width) => sum + width, 0) - space;
  while (over > 0) {
    const widest = Math.max(...widths);
    if (widest <= LEAST_COLUMNS) break;
    const second = Math.max(LEAST_COLUMNS, ...widths.filter((width) => width < widest));
    const at = widths.lastIndexOf(widest);
    const taken = Math.max(1, Math.min(over, widest - second));
    widths[at] = widest - taken;
    over -= taken;
  }
  return widths;
}
