import { describe, expect, it } from "vitest";
import type { OperationRow } from "../../protocol.ts";
import { groupKeyOf, groupLines, operationLines, type ShownLine } from "./operation-groups.ts";

const rows = (source: string, count: number, groupOf: (at: number) => string | undefined): OperationRow[] =>
  Array.from({ length: count }, (_, at) => {
    const group = groupOf(at);
    return {
      id: `${source}.o${at}`,
      source,
      type: "query",
      summary: "",
      ...(group !== undefined && { group }),
    };
  });

const linesOf = (all: readonly OperationRow[], open: readonly string[] = []): readonly ShownLine[] =>
  groupLines(operationLines(all, undefined), (key) => open.includes(key));

const words = (lines: readonly ShownLine[]): readonly string[] =>
  lines.map((line) =>
    line.kind === "operation"
      ? line.row.id
      : line.kind === "source"
        ? `[${line.source}]`
        : `${line.name} ${line.count}`,
  );

describe("groups of operations", () => {
  it("stand folded in a source of more than 40 operations, and a source of 40 stands there whole", () => {
    const byTag = (at: number): string => (at % 2 === 0 ? "issues" : "actions");
    expect(words(linesOf(rows("big", 41, byTag)))).toEqual(["[big]", "actions 20", "issues 21"]);
    expect(linesOf(rows("big", 40, byTag))).toHaveLength(41);
  });

  it("show what is in them once they are open, the one without a tag last", () => {
    const all = rows("big", 50, (at) => (at < 2 ? "a" : at < 4 ? undefined : "b"));
    const open = [groupKeyOf({ source: "big", group: "a" })];
    expect(words(linesOf(all, open))).toEqual([
      "[big]",
      "a 2",
      "big.o0",
      "big.o1",
      "b 46",
      "Without a tag 2",
    ]);
  });

  it("are of one source each, whatever the sources and tags are called", () => {
    const all = [
      ...rows("one", 50, (at) => (at < 25 ? "x" : "y")),
      ...rows("two", 50, (at) => (at < 25 ? "x" : "__proto__")),
    ];
    const open = [groupKeyOf({ source: "two", group: "x" })];
    expect(linesOf(all, open)).toHaveLength(2 + 4 + 25);
  });

  it("are not made where all operations have the same tag", () => {
    expect(linesOf(rows("big", 50, () => "all"))).toHaveLength(51);
  });
});
