import { isMembers, ownOf } from "../parts/json-text.ts";

/** Data that reads as a table. */
export interface Rows {
  /** Where the rows are: the name of the one member that holds them, or nothing where they are the data itself. */
  readonly member: string | undefined;
  /** Members that the data has besides. */
  readonly others: number;
  readonly columns: readonly string[];
  /** Columns that there are besides. */
  readonly moreColumns: number;
  readonly count: number;
  /** The value in a cell; `undefined` where the row has none. */
  readonly cell: (row: number, column: number) => unknown;
}

/** Columns that are shown. */
export const MOST_COLUMNS = 50;

/** Finds the rows in data: a list of objects, a list of lists of one length, or an object with one such list in it. */
export function rowsOf(data: unknown): Rows | undefined {
  if (Array.isArray(data)) return listRows(data, { member: undefined, others: 0 });
  if (!isMembers(data)) return undefined;
  const members = Object.entries(data);
  const [only, another] = members.filter(([, value]) => Array.isArray(value) && value.some(isMembers));
  if (only === undefined || another !== undefined) return undefined;
  return listRows(only[1] as readonly unknown[], { member: only[0], others: members.length - 1 });
}

type Place = Pick<Rows, "member" | "others">;

function listRows(list: readonly unknown[], place: Place): Rows | undefined {
  const isLists = list.every(Array.isArray);
  const width = isLists ? list[0]?.length : undefined;
  if (isLists ? !list.every((row) => row.length === width) : !list.every(isMembers)) return undefined;
  const rows = list as readonly Readonly<Record<string, unknown>>[];
  const names = new Set<string>();
  for (const row of rows) for (const name of Object.keys(row)) names.add(name);
  if (names.size === 0) return undefined;
  const keys = [...names].slice(0, MOST_COLUMNS);
  const cell = (row: number, column: number): unknown => ownOf(rows[row], keys[column] ?? "");
  const columns = isLists ? keys.map((key) => String(Number(key) + 1)) : keys;
  return { ...place, columns, moreColumns: names.size - keys.length, count: list.length, cell };
}

/** How a table is sorted. */
export interface Sorting {
  readonly column: number;
  readonly isDown: boolean;
}

/** Orders the rows by a column: numbers before texts before the rest, those without a value last, either way. */
export function sortedRows(rows: Rows, sorting: Sorting | undefined): readonly number[] {
  const order = Array.from({ length: rows.count }, (_, row) => row);
  if (sorting === undefined) return order;
  const values = order.map((row) => rows.cell(row, sorting.column) ?? undefined);
  const sign = sorting.isDown ? -1 : 1;
  return order.sort((a, b) => compare(values[a], values[b], sign) || a - b);
}

const RANKS = ["number", "boolean", "string", "object", "undefined"];
const words = new Intl.Collator("en", { numeric: true });

function compare(a: unknown, b: unknown, sign: number): number {
  const rank = RANKS.indexOf(typeof a) - RANKS.indexOf(typeof b);
  if (a === undefined || b === undefined) return rank;
  if (rank !== 0 || typeof a === "object") return sign * rank;
  if (typeof a === "string") return sign * words.compare(a.slice(0, 200), String(b).slice(0, 200));
  return sign * (Number(a) - Number(b));
}

/** Writes a table as CSV (RFC 4180); a text that a spreadsheet would take for a formula gets a `'` before it. */
export function csvOf(rows: Rows, order: readonly number[]): string {
  const line = (cells: readonly unknown[]): string => cells.map(csvCell).join(",");
  const lines = order.map((row) => line(rows.columns.map((_, column) => rows.cell(row, column))));
  return `${[line(rows.columns), ...lines].join("\r\n")}\r\n`;
}

function csvCell(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const safe = /^\s*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) || safe !== safe.trim() ? `"${safe.replaceAll('"', '""')}"` : safe;
}
