import { expect, test } from "vitest";
import type { OperationRow } from "../../protocol.ts";
import { bySource, type ListLine, operationLines } from "./operation-groups.ts";

const row = (id: string, over: Partial<OperationRow> = {}): OperationRow => ({
  id,
  source: id.split(".")[0] ?? "",
  type: "query",
  summary: "",
  ...over,
});

const shown = (lines: readonly ListLine[]): readonly string[] =>
  lines.map((line) => (line.kind === "source" ? `[${line.source} ${line.count}]` : line.row.id));

const rows = [row("depot.list"), row("depot.parcel"), row("parcel.send"), row("parcel.watch")];

test("where nothing is searched for every operation stands below its source", () => {
  expect(shown(operationLines(rows, undefined))).toEqual([
    "[depot 2]",
    "depot.list",
    "depot.parcel",
    "[parcel 2]",
    "parcel.send",
    "parcel.watch",
  ]);
});

test("what was found stands in its order, each source in one piece, and what is gone by now is left out", () => {
  const found = ["parcel.watch", "depot.parcel", "depot.gone", "parcel.send"];
  expect(shown(operationLines(rows, found))).toEqual([
    "[parcel 2]",
    "parcel.watch",
    "parcel.send",
    "[depot 1]",
    "depot.parcel",
  ]);
  expect(operationLines(rows, [])).toEqual([]);
});

test("a source narrows the list, and positions count operations alone", () => {
  const lines = operationLines(rows, ["depot.list", "parcel.watch"], "parcel");
  expect(shown(lines)).toEqual(["[parcel 1]", "parcel.watch"]);
  expect(lines[1]).toMatchObject({ position: 1 });
});

test("names of the prototype are plain sources", () => {
  const odd = [row("__proto__.a", { source: "__proto__" }), row("b", { source: "constructor" })];
  expect([...bySource(odd).keys()]).toEqual(["__proto__", "constructor"]);
  expect(operationLines(odd, undefined)).toHaveLength(4);
});
