import { useMemo, useRef } from "preact/hooks";
import type { OperationRow } from "../../protocol.ts";
import { counted } from "../parts/show.ts";
import { visibleText } from "../parts/visible-text.ts";
import { useKeys } from "../session.ts";
import { bySource } from "./search-operations.ts";
import type { OperationListState } from "./use-operation-list.ts";

const MOST_SOURCES = 500;

/** What the list of operations is narrowed with, and how many are left. */
export function ListFilters({
  rows,
  list,
  count,
  id,
}: {
  readonly rows: readonly OperationRow[];
  readonly list: OperationListState;
  readonly count: number;
  /** Begins the ids of the list and its lines. */
  readonly id: string;
}) {
  const { narrowing, narrow } = list;
  const sources = useMemo(() => [...bySource(rows).keys()].slice(0, MOST_SOURCES), [rows]);
  return (
    <search class="list-filters">
      <SearchBox list={list} id={id} />
      {/* The value of an option is its place, so that no name can stand for "all". */}
      <select
        aria-label="Source"
        value={String(sources.indexOf(narrowing.source ?? ""))}
        onChange={({ currentTarget }) => narrow({ source: sources[Number(currentTarget.value)] })}
      >
        <option value="-1">All sources</option>
        {sources.map((name, index) => (
          <option key={name} value={String(index)}>
            {visibleText(name, 60)}
          </option>
        ))}
      </select>
      <span class="soft small" role="status">
        {counted(count, "operation")}
      </span>
    </search>
  );
}

function SearchBox({ list, id }: { readonly list: OperationListState; readonly id: string }) {
  const { narrowing, narrow, at, onKeyDown } = list;
  const search = useRef<HTMLInputElement>(null);
  useKeys((event) => {
    const isTyped = (event.target as Element).matches("input, select, textarea");
    if (event.key !== "/" || event.ctrlKey || event.metaKey || isTyped) return;
    event.preventDefault();
    search.current?.select();
  });
  return (
    <input
      ref={search}
      type="search"
      role="combobox"
      aria-label="Search operations"
      aria-keyshortcuts="/"
      aria-expanded={true}
      aria-autocomplete="list"
      aria-controls={`${id}-list`}
      aria-activedescendant={at < 0 ? undefined : `${id}-${at}`}
      placeholder="Search operations ( / )"
      autocomplete="off"
      spellcheck={false}
      maxLength={200}
      value={narrowing.query}
      onInput={({ currentTarget }) => narrow({ query: currentTarget.value })}
      onKeyDown={onKeyDown}
    />
  );
}
