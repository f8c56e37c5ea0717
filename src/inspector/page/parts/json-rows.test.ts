import { describe, expect, it } from "vitest";
import {
  MOST_TREE_ROWS,
  nodesToOpen,
  openAtFirst,
  PAGE,
  placeMarks,
  type TreeMark,
  treeRows,
} from "./json-rows.ts";

const all = { isOpen: () => true, shownOf: () => PAGE };
const mark: TreeMark = { tone: "note", word: "converted" };

describe("treeRows", () => {
  it("lists what is open, in order, with places among siblings", () => {
    const rows = treeRows({ a: [1, 2], b: null }, all);
    expect(rows.map(({ id, depth, place, of }) => [id, depth, place, of])).toEqual([
      ["", 0, 1, 1],
      ["/a", 1, 1, 2],
      ["/a/0", 2, 1, 2],
      ["/a/1", 2, 2, 2],
      ["/b", 1, 2, 2],
    ]);
    expect(treeRows({ a: [1] }, { ...all, isOpen: (pointer) => pointer === "" })).toHaveLength(2);
  });

  it("shows long lists a page at a time", () => {
    const rows = treeRows(Array(10_000).fill(0), all);
    expect(rows).toHaveLength(1 + PAGE + 1);
    expect(rows.at(-1)).toMatchObject({ id: "+", pointer: "", left: 10_000 - PAGE });
  });

  it("takes names of every kind as names", () => {
    const rows = treeRows(JSON.parse('{"__proto__": {"toString": 1}, "a/b": 2, "": 3}'), all);
    expect(rows.map(({ id }) => id)).toEqual(["", "/__proto__", "/__proto__/toString", "/a~1b", "/"]);
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
  });

  it("is bounded in length, and by no depth", () => {
    const wide = Array(100).fill(Array(100).fill([1, 2]));
    expect(treeRows(wide, all)).toHaveLength(MOST_TREE_ROWS);
    let deep: unknown = 1;
    for (let at = 0; at < 4_000; at++) deep = [deep];
    expect(treeRows(deep, all)).toHaveLength(4_001);
  });
});

describe("what is open", () => {
  it("is opened level by level, for as long as there is room", () => {
    const value = { list: Array(90).fill({ a: 1 }), other: { b: { c: 1 } } };
    expect([...nodesToOpen(value, { depth: 2, rows: 200 })]).toEqual(["", "/list", "/other"]);
    const everything = { depth: Number.POSITIVE_INFINITY, rows: 1_000 };
    expect([...nodesToOpen(value, { ...everything, rows: 92 })]).toEqual([""]);
    expect(nodesToOpen(value, everything).size).toBe(94);
  });

  it("leads to the marks", () => {
    const value = { a: { b: { c: { d: 1 } } }, x: { y: { z: 1 } } };
    const placed = placeMarks(value, new Map([["/a/b/c/d", [mark]]]));
    const open = openAtFirst(value, 1, placed);
    expect([...open]).toEqual(["", "/a", "/a/b", "/a/b/c"]);
  });
});

describe("placeMarks", () => {
  it("puts a mark at its node, or at the nearest one above with the rest of the way", () => {
    const value = { a: { b: 1 } };
    const placed = placeMarks(
      value,
      new Map([
        ["/a/b", [mark]],
        ["/a/gone/x~1y", [mark]],
        ["/constructor", [mark]],
      ]),
    );
    expect(placed.at.get("/a/b")?.map(({ rest }) => rest)).toEqual([""]);
    expect(placed.at.get("/a")?.map(({ rest }) => rest)).toEqual(["/gone/x~1y"]);
    expect(placed.at.get("")?.map(({ rest }) => rest)).toEqual(["/constructor"]);
    expect(placed.below.get("")).toBe(2);
    expect(placed.below.get("/a")).toBe(1);
  });
});
