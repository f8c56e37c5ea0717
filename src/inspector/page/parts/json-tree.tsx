import { truncateText } from "../../../core/text/truncate-text.ts";
import "./json-tree.css";
import type { VNode } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Badge, CopyButton } from "./controls.tsx";
import {
  MOST_TREE_ROWS,
  nodesToOpen,
  openAtFirst,
  PAGE,
  type PlacedMarks,
  placeMarks,
  type TreeMarks,
  type TreeRow,
  treeRows,
} from "./json-rows.ts";
import { isSafeAddress, SafeLink } from "./plain-text.tsx";
import { showCount, visibleText } from "./show.ts";
import { lineJson, shortJson, shownText } from "./show-json.ts";

export type { TreeMark, TreeMarks } from "./json-rows.ts";

const DEEPEST_INDENT = 24;
const NO_MARKS: TreeMarks = new Map();

/** What a tree is made of. */
interface JsonTreeProps {
  /** Any JSON. */
  readonly value: unknown;
  /** What it is, for screen readers. */
  readonly label: string;
  /** What is to be said of its nodes; keep the map while it is the same. @default nothing */
  readonly marks?: TreeMarks | undefined;
  /** How many levels are open at first. @default 2 */
  readonly openDepth?: number | undefined;
}

/** Shows any JSON as a tree that is opened node by node; arrow keys, Home, End and Enter work as in every tree. */
export function JsonTree({ value, label, marks = NO_MARKS, openDepth = 2 }: JsonTreeProps) {
  const tree = useTree(value, marks, openDepth);
  const { rows, current, isMoved } = tree;
  const draw = useDrawn(tree);
  const list = useRef<HTMLDivElement>(null);
  // Takes the focus to the row that was gone to; drawing alone moves nothing.
  useLayoutEffect(() => {
    if (isMoved.current) (list.current?.children[rows.indexOf(current)] as HTMLElement | undefined)?.focus();
    isMoved.current = false;
  });
  return (
    <div class="json-tree">
      <TreeTools {...tree} />
      <div class="rows" role="tree" aria-label={label} ref={list} onKeyDown={tree.onKey}>
        {rows.map(draw)}
      </div>
      {rows.length >= MOST_TREE_ROWS && (
        <p class="soft small">Not all is drawn; close some of it to see the rest.</p>
      )}
    </div>
  );
}

/** Draws rows; one that is as it was is taken as it was drawn, so that moving about costs the same in every tree. */
function useDrawn({ current, whole, placed, press }: Tree): (row: TreeRow) => VNode {
  const { current: drawn } = useRef(new WeakMap<TreeRow, VNode>());
  return (row) => {
    const isCurrent = row === current;
    const isWhole = whole.has(row.id);
    const isPlain = !isCurrent && !isWhole;
    const known = isPlain ? drawn.get(row) : undefined;
    if (known !== undefined) return known;
    const node = (
      // biome-ignore lint/a11y/useKeyWithClickEvents: keys are heard by the tree
      <div
        key={row.id}
        role="treeitem"
        class="node"
        aria-level={row.depth + 1}
        aria-posinset={row.place}
        aria-setsize={row.of}
        aria-expanded={row.size ? row.isOpen : undefined}
        aria-selected={isCurrent}
        tabIndex={isCurrent ? 0 : -1}
        style={{ "--depth": Math.min(row.depth, DEEPEST_INDENT) }}
        onClick={() => press(row)}
      >
        <TreeNode row={row} placed={placed} isCurrent={isCurrent} isWhole={isWhole} />
      </div>
    );
    if (isPlain) drawn.set(row, node);
    return node;
  };
}

function TreeTools({ current, openAll, closeAll }: Tree) {
  return (
    <div class="row tools">
      <code class="where cut soft">
        <bdi>{visibleText(current.pointer, 120)}</bdi>
      </code>
      <CopyButton label="Copy value" what="the value" text={() => shownText(current.value)} />
      <CopyButton label="Copy pointer" what="the pointer" text={() => current.pointer} />
      <button type="button" onClick={openAll}>
        Expand all
      </button>
      <button type="button" onClick={closeAll}>
        Collapse all
      </button>
    </div>
  );
}

type Tree = ReturnType<typeof useTree>;

/** Rows that are opened at once, at most. */
const OPEN_ROWS = 2_000;

function useTree(value: unknown, marks: TreeMarks, openDepth: number) {
  const placed = useMemo(() => placeMarks(value, marks), [value, marks]);
  const first = useMemo(() => openAtFirst(value, openDepth, placed), [value, openDepth, placed]);
  const [chosen, setChosen] = useState<ReadonlySet<string>>();
  const open = chosen ?? first;
  const [pages, setPages] = useState<ReadonlyMap<string, number>>(new Map());
  const [whole, setWhole] = useState<ReadonlySet<string>>(new Set());
  const [at, setAt] = useState("");
  const isMoved = useRef(false);
  const shownOf = (pointer: string): number => pages.get(pointer) ?? PAGE;
  const rows = useMemo(
    () => treeRows(value, { isOpen: (pointer) => open.has(pointer), shownOf }),
    [value, open, pages],
  );
  const current = rows.find(({ id }) => id === at) ?? (rows[0] as TreeRow);
  const go = (row: TreeRow | undefined): void => {
    if (row === undefined) return;
    isMoved.current = true;
    setAt(row.id);
  };
  const press = (row: TreeRow): void => {
    go(row);
    if (row.left > 0) setPages((old) => new Map(old).set(row.pointer, shownOf(row.pointer) + PAGE));
    else if (row.size === undefined) setWhole(toggled(whole, row.id));
    else setChosen(toggled(open, row.id));
  };
  return {
    rows,
    current,
    placed,
    whole,
    isMoved,
    press,
    onKey: (event: KeyboardEvent) => moveBy(event, { rows, current, go, press }),
    openAll: () => setChosen(nodesToOpen(value, { depth: Number.POSITIVE_INFINITY, rows: OPEN_ROWS })),
    closeAll: () => setChosen(new Set([""])),
  };
}

function toggled(set: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(id)) next.add(id);
  return next;
}

interface Moves {
  readonly rows: readonly TreeRow[];
  readonly current: TreeRow;
  readonly go: (row: TreeRow | undefined) => void;
  readonly press: (row: TreeRow) => void;
}

function moveBy(event: KeyboardEvent, { rows, current, go, press }: Moves): void {
  // Links and buttons in a row have keys of their own.
  if ((event.target as Element).getAttribute("role") !== "treeitem") return;
  const at = rows.indexOf(current);
  const moves: Readonly<Record<string, () => void>> = {
    ArrowDown: () => go(rows[at + 1]),
    ArrowUp: () => go(rows[at - 1]),
    Home: () => go(rows[0]),
    End: () => go(rows.at(-1)),
    ArrowRight: () => current.size && (current.isOpen ? go(rows[at + 1]) : press(current)),
    ArrowLeft: () => (current.isOpen ? press(current) : go(rows.find(({ id }) => id === current.parent))),
    Enter: () => press(current),
    " ": () => press(current),
  };
  const move = moves[event.key];
  if (move === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  move();
}

const CUT = 300;
const MOST_CHARACTERS = 100_000;
const KEY_CHARACTERS = 200;
const PREVIEW_CHARACTERS = 60;
const MOST_MARKS = 20;
const MARK_CHARACTERS = 160;

/** A row of a tree, and what the tree knows of it besides its value. */
interface TreeNodeProps {
  readonly row: TreeRow;
  readonly placed: PlacedMarks;
  readonly isCurrent: boolean;
  readonly isWhole: boolean;
}

/** What is written in the row of a node. */
function TreeNode({ row, placed, isCurrent, isWhole }: TreeNodeProps) {
  const { key, pointer, value, size, isOpen, left } = row;
  if (left > 0) return <span class="more">Show more of {showCount(left, "member")} left</span>;
  const marks = placed.at.get(pointer) ?? [];
  const below = isOpen ? 0 : (placed.below.get(pointer) ?? 0);
  return (
    <>
      {key !== undefined && <NodeKey name={key} />}{" "}
      {size === undefined ? (
        <Leaf value={value} isCurrent={isCurrent} isWhole={isWhole} />
      ) : (
        <span class="soft">
          {showCount(size, Array.isArray(value) ? "item" : "member")}
          {!isOpen && size > 0 && <span aria-hidden="true"> {shortJson(value, PREVIEW_CHARACTERS)}</span>}
        </span>
      )}
      {marks.slice(0, MOST_MARKS).map(({ tone, word, rest }) => [
        " ",
        <Badge tone={tone}>
          {rest !== "" && <bdi>{visibleText(rest, 60)}</bdi>} {visibleText(word, MARK_CHARACTERS)}
        </Badge>,
      ])}
      {marks.length > MOST_MARKS && ` ${showCount(marks.length - MOST_MARKS, "note")} more`}{" "}
      {below > 0 && <Badge>{showCount(below, "mark")} inside</Badge>}
    </>
  );
}

function NodeKey({ name }: { readonly name: string | number }) {
  if (typeof name === "number") return <span class="soft">{name}:</span>;
  const text = /^[\w$.-]+$/.test(name) ? name : lineJson(name.slice(0, KEY_CHARACTERS));
  return (
    <span class="key">
      <bdi>{visibleText(text, KEY_CHARACTERS)}</bdi>:
    </span>
  );
}

function Leaf({
  value,
  isCurrent,
  isWhole,
}: Pick<TreeNodeProps, "isCurrent" | "isWhole"> & { readonly value: unknown }) {
  const tabIndex = isCurrent ? 0 : -1;
  if (typeof value !== "string") {
    return <span class={typeof value === "number" ? "number" : "word"}>{lineJson(value)}</span>;
  }
  if (isSafeAddress(value)) return <SafeLink address={value} tabIndex={tabIndex} />;
  const most = isWhole ? MOST_CHARACTERS : CUT;
  return (
    <>
      <bdi class="text">
        {lineJson(truncateText(value, most))}
        {value.length > most && "…"}
      </bdi>
      {/* A press on it is one on its row. */}
      {value.length > CUT && (
        <button type="button" class="quiet small" tabIndex={tabIndex}>
          {isWhole ? "Show less" : `Show more of ${showCount(value.length, "character")}`}
        </button>
      )}
    </>
  );
}
