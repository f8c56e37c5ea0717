import { useMemo, useState } from "preact/hooks";
import { isObject } from "../../../core/schema/json-schema.ts";
import { isSafeAddress, SafeLink } from "../parts/plain-text.tsx";
import { showCount, visibleText } from "../parts/show.ts";
import { ownOf, shortJson } from "../parts/show-json.ts";
import { saveFile } from "./copy-as.tsx";

const PAGE = 100;
const CELL = 160;
/** A text that stays on one line. */
const SHORT = 40;

/** Rows as a table, sorted by any column, a hundred at a time. */
export function TableView({ rows }: { readonly rows: Rows }) {
  const [sorting, setSorting] = useState<Sorting>();
  const [wanted, setPage] = useState(0);
  const order = useMemo(() => sortedRows(rows, sorting), [rows, sorting]);
  const last = Math.floor((rows.count - 1) / PAGE);
  const page = Math.min(wanted, last);
  const turn = (title: string, to: number) =>
    last > 0 && (
      <button type="button" disabled={to < 0 || to > last} onClick={() => setPage(to)}>
        {title}
      </button>
    );
  const sortBy = (column: number): void => {
    setPage(0);
    setSorting({ column, isDown: sorting?.column === column && !sorting.isDown });
  };
  return (
    <div class="stack tight">
      <div class="row small">
        <span class="soft grow" role="status">
          {describe(rows, page)}
        </span>
        {turn("Previous rows", page - 1)}
        {turn("Next rows", page + 1)}
        <button type="button" onClick={() => saveFile("rows.csv", csvOf(rows, order))}>
          Download CSV
        </button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
      <section class="scroll table-box" aria-label="Rows" tabIndex={0}>
        <table class="data">
          <Head rows={rows} sorting={sorting} onSort={sortBy} />
          <tbody>
            {order.slice(page * PAGE, (page + 1) * PAGE).map((row) => (
              <tr key={row}>
                {rows.columns.map((_, column) => (
                  <Cell key={column} value={rows.cell(row, column)} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </div>
  );
}

function describe({ count, member, moreColumns, columns }: Rows, page: number): string {
  const from = member === undefined ? "" : ` in ${visibleText(member, 40)}`;
  const shown = count > PAGE ? `${page * PAGE + 1}–${Math.min(count, (page + 1) * PAGE)} of ` : "";
  const more =
    moreColumns > 0 ? `; ${showCount(moreColumns, "column")} after ${columns.length} not shown` : "";
  return `${shown}${showCount(count, "row")}${from}${more}`;
}

function Head({
  rows,
  sorting,
  onSort,
}: {
  readonly rows: Rows;
  readonly sorting: Sorting | undefined;
  readonly onSort: (column: number) => void;
}) {
  return (
    <thead>
      <tr>
        {rows.columns.map((name, column) => {
          const isDown = sorting?.column === column ? sorting.isDown : undefined;
          return (
            <th
              key={column}
              scope="col"
              aria-sort={isDown === undefined ? undefined : isDown ? "descending" : "ascending"}
              class={typeof rows.cell(0, column)}
            >
              <button type="button" class="quiet" onClick={() => onSort(column)}>
                <bdi>{visibleText(name, 60)}</bdi>
                <span aria-hidden="true">{isDown === undefined ? "↕" : isDown ? "↓" : "↑"}</span>
              </button>
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function Cell({ value }: { readonly value: unknown }) {
  if (value === undefined) return <td />;
  if (typeof value !== "string") {
    const kind = typeof value === "object" ? "mono long" : typeof value;
    return <td class={kind}>{shortJson(value, CELL)}</td>;
  }
  const text = visibleText(value, CELL);
  return (
    <td class={value.length > SHORT ? "long" : "short"}>
      {isSafeAddress(value) ? <SafeLink address={value} text={text} /> : <bdi>{text}</bdi>}
    </td>
  );
}

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
  if (!isObject(data)) return undefined;
  const members = Object.entries(data);
  const [only, another] = members.filter(([, value]) => Array.isArray(value) && value.some(isObject));
  if (only === undefined || another !== undefined) return undefined;
  return listRows(only[1] as readonly unknown[], { member: only[0], others: members.length - 1 });
}

type Place = Pick<Rows, "member" | "others">;

function listRows(list: readonly unknown[], place: Place): Rows | undefined {
  const isLists = list.every(Array.isArray);
  const width = isLists ? list[0]?.length : undefined;
  if (isLists ? !list.every((row) => row.length === width) : !list.every(isObject)) return undefined;
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
interface Sorting {
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
