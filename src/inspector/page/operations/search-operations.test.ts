import { expect, test } from "vitest";
import { cpuMs } from "../../../../test/cpu-ms.ts";
import type { OperationRow } from "../../protocol.ts";
import { bySource, type ListLine, searchOperations, toSearched } from "./search-operations.ts";

const row = (id: string, over: Partial<OperationRow> = {}): OperationRow => ({
  id,
  source: id.split(".")[0] ?? "",
  type: "query",
  summary: "",
  ...over,
});

const found = (lines: readonly ListLine[]): readonly string[] =>
  lines.map((line) => (line.kind === "source" ? `[${line.source} ${line.count}]` : line.row.id));

const rows = [
  row("depot.list", { summary: "Lists parcels in the depot." }),
  row("depot.parcel", { type: "mutation" }),
  row("parcel.send", { title: "Send a Parcel", type: "mutation" }),
  row("parcel.watch", { type: "subscription" }),
  row("tariff.price", { title: "Price of a parcel" }),
];

test("without a query every operation stands below its source", () => {
  expect(found(searchOperations(toSearched(rows), { query: " " }))).toEqual([
    "[depot 2]",
    "depot.list",
    "depot.parcel",
    "[parcel 2]",
    "parcel.send",
    "parcel.watch",
    "[tariff 1]",
    "tariff.price",
  ]);
});

test("matches at the start of an id come before those within it, then titles, then summaries", () => {
  expect(found(searchOperations(toSearched(rows), { query: "PARCEL" }))).toEqual([
    "[parcel 2]",
    "parcel.send",
    "parcel.watch",
    "[depot 2]",
    "depot.parcel",
    "depot.list",
    "[tariff 1]",
    "tariff.price",
  ]);
});

test("all words must match, wherever each of them does", () => {
  expect(found(searchOperations(toSearched(rows), { query: "depot lists" }))).toEqual([
    "[depot 1]",
    "depot.list",
  ]);
  expect(searchOperations(toSearched(rows), { query: "depot nothing" })).toEqual([]);
});

test("a source narrows the list, as does a type that is searched for, and positions count operations alone", () => {
  const lines = searchOperations(toSearched(rows), { query: "subscription", source: "parcel" });
  expect(found(lines)).toEqual(["[parcel 1]", "parcel.watch"]);
  expect(lines[1]).toMatchObject({ position: 1 });
});

test("names of the prototype are plain sources", () => {
  const odd = [row("__proto__.a", { source: "__proto__" }), row("b", { source: "constructor" })];
  expect([...bySource(odd).keys()]).toEqual(["__proto__", "constructor"]);
  expect(found(searchOperations(toSearched(odd), { query: "" }))).toHaveLength(4);
});

test("10,000 operations are searched within a frame", () => {
  const many = toSearched(
    Array.from({ length: 10_000 }, (_, at) =>
      row(`source-${at % 7}.operation-${at}`, {
        title: `Operation ${at}`,
        summary: "Does something to parcels, and tells how it went. ".repeat(3),
      }),
    ),
  );
  for (const query of ["o", "op", "parcels went", "operation 99", "nothing of it"]) {
    const times = Array.from({ length: 8 }, () => {
      const start = cpuMs();
      searchOperations(many, { query });
      return cpuMs() - start;
    });
    expect(Math.min(...times)).toBeLessThan(16);
  }
});
