import type { Tone } from "./badge.tsx";
import { joinPointer, memberOf, parsePointer } from "./json-text.ts";

/** Something to be said of a node of a tree. */
export interface TreeMark {
  readonly tone: Tone;
  readonly word: string;
}

/** Marks by the JSON pointer of what they are said of; it may no longer be there. */
export type TreeMarks = ReadonlyMap<string, readonly TreeMark[]>;

/** A mark at the node it is shown at. */
export interface PlacedMark extends TreeMark {
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
