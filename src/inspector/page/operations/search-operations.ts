import type { OperationRow } from "../../protocol.ts";

/** An operation with its texts as they are searched; made once for a list. */
export interface SearchedRow {
  readonly row: OperationRow;
  /** Its id, its title, and what else is searched. */
  readonly text: string;
  readonly idEnd: number;
  readonly titleEnd: number;
}

/** What the list is narrowed to. */
export interface Narrowing {
  /** Words that must all be there. */
  readonly query: string;
  /** @default every source */
  readonly source?: string | undefined;
}

/** A line of the list: the head of a source, or an operation below it. */
export type ListLine =
  | { readonly kind: "source"; readonly source: string; readonly count: number }
  | { readonly kind: "operation"; readonly row: OperationRow; readonly position: number };

const MOST_CHARACTERS = 400;
const MOST_WORDS = 8;

/** Prepares a list for being searched on every key. */
export function toSearched(rows: readonly OperationRow[]): readonly SearchedRow[] {
  return rows.map((row) => {
    const id = searched(row.id);
    const title = `${id}\n${searched(row.title)}`;
    const text = `${title}\n${searched(row.summary)}\n${searched(row.source)}\n${row.type}`;
    return { row, text, idEnd: id.length, titleEnd: title.length };
  });
}

/** Finds operations, those whose id matches first, then by title, then by the rest; each source in one piece. */
export function searchOperations(
  rows: readonly SearchedRow[],
  { query, source }: Narrowing,
): readonly ListLine[] {
  const words = searched(query).trim().split(/\s+/).slice(0, MOST_WORDS);
  const ranked: OperationRow[][] = [[], [], [], []];
  for (const item of rows) {
    if (source === undefined || item.row.source === source) ranked[rankOf(item, words)]?.push(item.row);
  }
  let position = 0;
  return [...bySource(ranked.flat())].flatMap(([name, found]): ListLine[] => [
    { kind: "source", source: name, count: found.length },
    ...found.map((row): ListLine => {
      position += 1;
      return { kind: "operation", row, position };
    }),
  ]);
}

/** The operations of each source, in the order they come. */
export function bySource(rows: readonly OperationRow[]): ReadonlyMap<string, readonly OperationRow[]> {
  const groups = new Map<string, OperationRow[]>();
  for (const row of rows) {
    const group = groups.get(row.source);
    if (group === undefined) groups.set(row.source, [row]);
    else group.push(row);
  }
  return groups;
}

function searched(text = ""): string {
  return text.slice(0, MOST_CHARACTERS).toLowerCase();
}

/** The worst place a word is found in: 0 begins the id, 1 within it, 2 in the title, 3 elsewhere; -1 when one is nowhere. */
function rankOf({ text, idEnd, titleEnd }: SearchedRow, words: readonly string[]): number {
  let last = 0;
  for (const word of words) {
    const at = text.indexOf(word);
    if (at < 0) return -1;
    if (at > last) last = at;
  }
  return Number(last > 0) + Number(last > idEnd) + Number(last > titleEnd);
}
