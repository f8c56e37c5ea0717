import { useMemo, useState } from "preact/hooks";
import { shortJson } from "../parts/json-text.ts";
import { isWebAddress, SafeLink } from "../parts/safe-link.tsx";
import { counted } from "../parts/show.ts";
import { visibleText } from "../parts/visible-text.ts";
import { csvOf, type Rows, type Sorting, sortedRows } from "./rows-of.ts";
import { saveFile } from "./save-file.ts";

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
  const more = moreColumns > 0 ? `; ${counted(moreColumns, "column")} after ${columns.length} not shown` : "";
  return `${shown}${counted(count, "row")}${from}${more}`;
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
      {isWebAddress(value) ? <SafeLink address={value} text={text} /> : <bdi>{text}</bdi>}
    </td>
  );
}
