import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import type { OperationRow } from "../../protocol.ts";
import { useKeys } from "../page-session.ts";
import { Badge, TypeBadge } from "../parts/controls.tsx";
import { CutMiddle } from "../parts/plain-text.tsx";
import { showCount, visibleText } from "../parts/show.ts";
import { indexAfterKey, VirtualList } from "../parts/virtual-list.tsx";
import { navigate, toHash } from "../router.ts";
import {
  bySource,
  groupKeyOf,
  groupLines,
  type Narrowing,
  operationLines,
  type ShownLine,
} from "./operation-groups.ts";
import { type FoundIds, useWorkspace } from "./workspace.ts";

const HEIGHT = 48;

/** The operations as a list that is searched while typing and moved in with the arrow keys. */
export function OperationList({
  rows,
  chosen,
}: {
  readonly rows: readonly OperationRow[];
  readonly chosen: string | undefined;
}) {
  const id = useId();
  const list = useOperationList(rows, chosen);
  const { lines, count, narrowing, narrow, active, at, fold, onKeyDown } = list;
  const draw = (line: ShownLine, index: number) =>
    line.kind === "source" ? (
      <SourceHead line={line} />
    ) : line.kind === "group" ? (
      <GroupHead
        line={line}
        id={`${id}-${index}`}
        isActive={line.key === active}
        onFold={() => fold(line.key)}
      />
    ) : (
      <OperationLine
        row={line.row}
        id={`${id}-${index}`}
        place={[line.position, count]}
        isChosen={line.row.id === chosen}
        isActive={line.row.id === active}
      />
    );
  return (
    <>
      <ListFilters rows={rows} list={list} count={count} id={id} />
      {count === 0 && (
        <p class="notice">
          No operation matches.{" "}
          <button type="button" onClick={() => narrow({ query: "", source: undefined })}>
            Show all
          </button>
        </p>
      )}
      <VirtualList
        key={JSON.stringify(narrowing)}
        items={lines}
        height={HEIGHT}
        keep={at}
        reveal={at}
        keyOf={(line) =>
          line.kind === "source" ? `source ${line.source}` : line.kind === "group" ? line.key : line.position
        }
        onKeyDown={onKeyDown}
        attributes={{
          id: `${id}-list`,
          role: "listbox",
          tabIndex: 0,
          "aria-label": "Operations",
          "aria-activedescendant": at < 0 ? undefined : `${id}-${at}`,
        }}
        draw={draw}
      />
    </>
  );
}

/** The head of a source in the list. */
function SourceHead({ line: { source, count } }: { readonly line: Extract<ShownLine, { kind: "source" }> }) {
  return (
    <div class="source-head" role="presentation">
      <strong class="cut">{visibleText(source, 200)}</strong>
      <span class="soft small">{showCount(count, "operation")}</span>
    </div>
  );
}

/** The head of a group in the list, which folds it. */
function GroupHead({
  line: { name, count, isOpen },
  id,
  isActive,
  onFold,
}: {
  readonly line: Extract<ShownLine, { kind: "group" }>;
  readonly id: string;
  readonly isActive: boolean;
  readonly onFold: () => void;
}) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the list has the keys and the focus
    <div
      class={`operation-line group-head ${isActive ? "active" : ""}`}
      id={id}
      role="option"
      aria-selected={false}
      onClick={onFold}
    >
      <span class="row-top">
        <span class="fold-sign soft" aria-hidden="true">
          {isOpen ? "▾" : "▸"}
        </span>
        <span class="cut grow">{visibleText(name, 200)}</span>
        <span class="soft small">{count.toLocaleString("en")}</span>
      </span>
      <span class="hidden-text">
        {showCount(count, "operation")}, {isOpen ? "open" : "folded"}
      </span>
    </div>
  );
}

/** One operation in the list. */
interface OperationLineProps {
  readonly row: OperationRow;
  readonly id: string;
  /** Which one it is, of how many. */
  readonly place: readonly [number, number];
  readonly isChosen: boolean;
  readonly isActive: boolean;
}

/** Shows an operation as a line to choose. */
function OperationLine({ row, id, place, isChosen, isActive }: OperationLineProps) {
  return (
    <a
      class={`operation-line ${isActive ? "active" : ""}`}
      id={id}
      role="option"
      tabIndex={-1}
      href={toHash("operations", row.id)}
      aria-selected={isChosen}
      aria-posinset={place[0]}
      aria-setsize={place[1]}
    >
      <span class="row-top">
        <CutMiddle text={row.id} />
        {/* What destroys is a mutation anyhow, and the id needs the room. */}
        {row.destructive ? <Badge tone="bad">destructive</Badge> : <TypeBadge type={row.type} />}
      </span>
      <span class="cut soft small">{visibleText(row.title || row.summary, 300)}</span>
      <span class="hidden-text">, source {visibleText(row.source, 200)}</span>
    </a>
  );
}

const MOST_SOURCES = 500;

/** What the list of operations is narrowed with, and how many are left. */
function ListFilters({
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
        {showCount(count, "operation")}
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

/** The list of operations as it is narrowed and moved in. */
interface OperationListState {
  readonly lines: readonly ShownLine[];
  /** Operations that match, those in folded groups included. */
  readonly count: number;
  readonly narrowing: Narrowing;
  /** Folds a group, or unfolds it. */
  readonly fold: (key: string) => void;
  /** The id of the operation that Enter would choose, or the key of the group that it would fold. */
  readonly active: string | undefined;
  /** Its line; -1 where it is not in the list. */
  readonly at: number;
  readonly narrow: (change: Partial<Narrowing>) => void;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

/** Narrows a list of operations and moves in it. */
function useOperationList(rows: readonly OperationRow[], chosen: string | undefined): OperationListState {
  const workspace = useWorkspace();
  const [narrowing, setNarrowing] = useState(workspace.narrowing);
  const [moved, setMoved] = useState(chosen);
  const { query, source } = narrowing;
  const found = useFound(query, rows);
  // What was found last stays until there is an answer.
  const ids = query.trim() === "" ? undefined : found?.ids;
  const isLooking = query.trim() !== "" && found?.query !== query;
  const matching = useMemo(() => operationLines(rows, ids, source), [rows, ids, source]);
  const [folds, setFolds] = useState(0);
  const lines = useMemo(() => {
    // What is searched for is shown, whatever is folded.
    if (query.trim() !== "") return matching;
    const row = rows.find(({ id }) => id === chosen);
    const home = row && groupKeyOf(row);
    return groupLines(matching, (key) => workspace.folds.get(key) ?? key === home);
  }, [matching, query, chosen, folds]);
  const active = moved ?? (narrowing.query === "" ? undefined : keyOf(lines[1]));
  const at = useMemo(
    () => (active === undefined ? -1 : lines.findIndex((line) => keyOf(line) === active)),
    [lines, active],
  );
  const [isEntered, setEntered] = useState(false);
  const open = (id: string): void => {
    if (id !== chosen) navigate(toHash("operations", id));
    else document.getElementById("operation-title")?.focus();
  };
  useEffect(() => setMoved(chosen), [chosen]);
  useEffect(() => {
    if (!isEntered || isLooking) return;
    setEntered(false);
    if (active !== undefined && at >= 0) open(active);
  }, [isEntered, isLooking]);
  const narrow = (change: Partial<Narrowing>): void => {
    workspace.narrowing = { ...narrowing, ...change };
    setNarrowing(workspace.narrowing);
    setMoved(workspace.narrowing.query === "" ? chosen : undefined);
    setEntered(false);
  };
  const fold = (key: string): void => {
    const line = lines.find((one) => one.kind === "group" && one.key === key);
    if (line?.kind !== "group") return;
    workspace.folds.set(key, !line.isOpen);
    setFolds(folds + 1);
    setMoved(key);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const { key } = event;
    if (event.isComposing || (event.target instanceof HTMLInputElement && /Home|End/.test(key))) return;
    if (key === "Enter" && isLooking) {
      event.preventDefault();
      setEntered(true);
      return;
    }
    const line = lines[(key === "Enter" ? at : lineAfterKey(lines, at, key)) ?? -1];
    const id = keyOf(line);
    if (id === undefined) return;
    event.preventDefault();
    if (key !== "Enter") setMoved(id);
    else if (line?.kind === "group") fold(id);
    else open(id);
  };
  const count = matching.reduce((sum, line) => sum + Number(line.kind === "operation"), 0);
  return { lines, count, narrowing, active, at, fold, narrow, onKeyDown };
}

/** So long nothing is typed before a search begins. */
const PAUSE_MS = 60;

/** Searches while somebody types: gives what was found last, and for what. */
function useFound(query: string, rows: readonly OperationRow[]): FoundIds | undefined {
  const workspace = useWorkspace();
  const [found, setFound] = useState(workspace.found);
  useEffect(() => {
    if (query.trim() === "") return;
    const controller = new AbortController();
    const search = async (): Promise<void> => {
      const { operations } = await workspace.api.search(query, controller.signal);
      workspace.found = { query, ids: operations };
      setFound(workspace.found);
    };
    // Where nothing answers, the bar of the page says so.
    const timer = setTimeout(() => search().catch(() => {}), PAUSE_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [query, rows]);
  return found;
}

function keyOf(line: ShownLine | undefined): string | undefined {
  if (line?.kind === "group") return line.key;
  return line?.kind === "operation" ? line.row.id : undefined;
}

/** The line that a key leads to from another, heads of sources passed over; nothing where the key is not for moving. */
export function lineAfterKey(lines: readonly ShownLine[], from: number, key: string): number | undefined {
  const to = indexAfterKey(key, from, lines.length);
  if (to === undefined || lines.length === 0) return undefined;
  // The first line is a head, the last one is none, and no two heads follow each other.
  const at = Math.max(1, to);
  return lines[at]?.kind === "source" ? at + (at < from ? -1 : 1) : at;
}
