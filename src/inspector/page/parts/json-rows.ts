import { joinPointer, parsePointer } from "../../../core/json/json-pointer.ts";
import type { Tone } from "./controls.tsx";
import { memberOf } from "./show-json.ts";

/** One line of a tree. */
export interface TreeRow {
  /** Different for every row: the pointer, and `+` before that of a list whose next members can be asked for. */
  readonly id: string;
  readonly pointer: string;
  /** The row of what it is in; nothing for the first. */
  readonly parent: string | undefined;
  readonly depth: number;
  readonly key: string | number | undefined;
  readonly value: unknown;
  /** Members of a list or an object. */
  readonly size: number | undefined;
  readonly isOpen: boolean;
  /** Members that are not shown yet, for a row that asks for them. */
  readonly left: number;
  /** Its place among its siblings, from 1, and how many they are. */
  readonly place: number;
  readonly of: number;
}

/** What of a tree is open. */
interface TreeState {
  readonly isOpen: (pointer: string) => boolean;
  /** How many members of a node are shown. */
  readonly shownOf: (pointer: string) => number;
}

/** Members of a node that are shown at first, and more each time they are asked for. */
export const PAGE = 100;

/** Rows of one tree; what is open beyond them is not drawn. */
export const MOST_TREE_ROWS = 5_000;

/** Counts the members of a list or an object; nothing for everything else. */
function sizeOf(value: unknown): number | undefined {
  if (Array.isArray(value)) return value.length;
  return typeof value === "object" && value !== null ? Object.keys(value).length : undefined;
}

/** Lists what is seen of a tree, from top to bottom. */
export function treeRows(value: unknown, { isOpen, shownOf }: TreeState): readonly TreeRow[] {
  const rows: TreeRow[] = [];
  const first = { id: "", pointer: "", parent: undefined, depth: 0, key: undefined, value };
  // What is still to be listed, the next one last: no depth of data can be too much.
  const waiting: Waiting[] = [{ ...first, left: 0, place: 1, of: 1 }];
  for (let next = waiting.pop(); next !== undefined && rows.length < MOST_TREE_ROWS; next = waiting.pop()) {
    const size = sizeOf(next.value);
    const open = size !== undefined && size > 0 && isOpen(next.pointer);
    rows.push({ ...next, size, isOpen: open });
    if (open) waiting.push(...membersOf(next, size, shownOf(next.pointer)).reverse());
  }
  return rows;
}

type Waiting = Omit<TreeRow, "size" | "isOpen">;

function membersOf({ pointer, depth, value }: Waiting, size: number, shown: number): Waiting[] {
  const left = Math.max(0, size - shown);
  const of = size - left + Number(left > 0);
  const common = { parent: pointer, depth: depth + 1, of };
  const rows: Waiting[] = keysOf(value, shown).map((key, at) => {
    const id = joinPointer(pointer, key);
    const member = (value as Record<string | number, unknown>)[key];
    return { ...common, id, pointer: id, key, value: member, left: 0, place: at + 1 };
  });
  if (left > 0) {
    rows.push({ ...common, id: `+${pointer}`, pointer, key: undefined, value: undefined, left, place: of });
  }
  return rows;
}

function keysOf(value: unknown, most: number): readonly (string | number)[] {
  if (!Array.isArray(value)) return Object.keys(value as object).slice(0, most);
  return Array.from({ length: Math.min(value.length, most) }, (_, at) => at);
}

/** Bounds on what is opened by itself. */
interface OpenOptions {
  /** Nodes that deep are opened. */
  readonly depth: number;
  /** Nothing more is opened once so many rows would be seen. */
  readonly rows: number;
}

/** Chooses what to open, level by level. */
export function nodesToOpen(value: unknown, { depth, rows }: OpenOptions): Set<string> {
  const open = new Set<string>();
  let level: readonly { readonly pointer: string; readonly value: unknown }[] = [{ pointer: "", value }];
  let seen = 1;
  for (let at = 0; at < depth && level.length > 0; at++) {
    const next: { pointer: string; value: unknown }[] = [];
    for (const node of level) {
      const shown = Math.min(sizeOf(node.value) ?? 0, PAGE);
      if (shown === 0) continue;
      if (seen + shown > rows && open.size > 0) return open;
      seen += shown;
      open.add(node.pointer);
      for (const key of keysOf(node.value, PAGE)) {
        const member = (node.value as Record<string | number, unknown>)[key];
        next.push({ pointer: joinPointer(node.pointer, key), value: member });
      }
    }
    level = next;
  }
  return open;
}

const OPEN_FOR_MARKS = 30;

/** Chooses what is open before anybody asked: the first levels, and the way to the first marks. */
export function openAtFirst(value: unknown, depth: number, marks: PlacedMarks): Set<string> {
  const open = nodesToOpen(value, { depth, rows: 2 * PAGE });
  for (const pointer of [...marks.below.keys()].slice(0, OPEN_FOR_MARKS)) open.add(pointer);
  return open;
}

/** Something to be said of a node of a tree. */
export interface TreeMark {
  readonly tone: Tone;
  readonly word: string;
}

/** Marks by the JSON pointer of what they are said of; it may no longer be there. */
export type TreeMarks = ReadonlyMap<string, readonly TreeMark[]>;

/** A mark at the node it is shown at. */
interface PlacedMark extends TreeMark {
  /** What is left of its pointer, where the node itself is not there. */
  readonly rest: string;
}

/** Marks as a tree shows them. */
export interface PlacedMarks {
  readonly at: ReadonlyMap<string, readonly PlacedMark[]>;
  /** How many are below a node. */
  readonly below: ReadonlyMap<string, number>;
}

const MOST_MARKS = 1_000;

/** Finds the node of each mark: its own, or the nearest one above that is there. */
export function placeMarks(value: unknown, marks: TreeMarks = new Map()): PlacedMarks {
  const at = new Map<string, PlacedMark[]>();
  const below = new Map<string, number>();
  let count = 0;
  for (const [pointer, told] of marks) {
    if (count >= MOST_MARKS) break;
    count += told.length;
    const { above, place, rest } = nearest(value, pointer);
    for (const upper of above) below.set(upper, (below.get(upper) ?? 0) + told.length);
    const here = at.get(place) ?? [];
    here.push(...told.map((mark) => ({ ...mark, rest })));
    at.set(place, here);
  }
  return { at, below };
}

function nearest(value: unknown, pointer: string) {
  const above: string[] = [];
  const keys = parsePointer(pointer);
  let place = "";
  let node = value;
  for (const [depth, key] of keys.entries()) {
    const member = memberOf(node, key);
    if (member === undefined) {
      const rest = keys.slice(depth).reduce((path, each) => joinPointer(path, each), "");
      return { above, place, rest };
    }
    above.push(place);
    place = joinPointer(place, key);
    node = member.value;
  }
  return { above, place, rest: "" };
}
