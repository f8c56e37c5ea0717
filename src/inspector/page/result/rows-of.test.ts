import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../../test/cpu-ms.ts";
import { csvOf, MOST_COLUMNS, type Rows, rowsOf, sortedRows } from "./table-view.tsx";

function found(data: unknown): Rows {
  const rows = rowsOf(data);
  if (rows === undefined) throw new Error("There are no rows.");
  return rows;
}

describe("rowsOf", () => {
  it("finds a list of objects, with the columns of all of them", () => {
    const rows = found([{ a: 1 }, { b: 2, a: 3 }]);
    expect(rows.columns).toEqual(["a", "b"]);
    expect([rows.cell(0, 0), rows.cell(0, 1), rows.cell(1, 1), rows.cell(9, 0)]).toEqual([
      1,
      undefined,
      2,
      undefined,
    ]);
  });

  it("finds the one list of objects in an object", () => {
    expect(found({ total: 2, items: [{ a: 1 }], tags: ["x"] })).toMatchObject({
      member: "items",
      others: 2,
      count: 1,
    });
    expect(rowsOf({ a: [{ x: 1 }], b: [{ y: 1 }] })).toBeUndefined();
  });

  it("finds lists of one length in a list", () => {
    expect(
      found([
        [1, 2],
        [3, 4],
      ]).columns,
    ).toEqual(["1", "2"]);
    expect(rowsOf([[1], [1, 2]])).toBeUndefined();
  });

  it.each([[], {}, null, "text", 5, [1, 2], [{}], [[]], [{ a: 1 }, 2], { a: [] }, { a: [1] }])(
    "finds none in %j",
    (data) => {
      expect(rowsOf(data)).toBeUndefined();
    },
  );

  it("takes hostile names as names, and no more columns than are shown", () => {
    const rows = found([JSON.parse('{"__proto__": 1, "constructor": 2}'), { other: 3 }]);
    expect(rows.columns).toEqual(["__proto__", "constructor", "other"]);
    expect([rows.cell(0, 0), rows.cell(1, 0), rows.cell(1, 1)]).toEqual([1, undefined, undefined]);
    const wide = found([Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`c${at}`, at]))]);
    expect([wide.columns.length, wide.moreColumns]).toEqual([MOST_COLUMNS, 10]);
  });
});

describe("sortedRows", () => {
  it("orders numbers and texts, and leaves what is missing at the end, either way", () => {
    const rows = found([{ a: "b10" }, { a: null }, { a: 5 }, { a: "b9" }, { b: 1 }, { a: -1 }]);
    expect(sortedRows(rows, { column: 0, isDown: false })).toEqual([5, 2, 3, 0, 1, 4]);
    expect(sortedRows(rows, { column: 0, isDown: true })).toEqual([0, 3, 2, 5, 1, 4]);
    expect(sortedRows(rows, undefined)).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it("orders 10,000 rows at once", () => {
    const rows = found(Array.from({ length: 10_000 }, (_, at) => ({ a: `name ${(at * 7919) % 10_000}` })));
    const began = cpuMs();
    const order = sortedRows(rows, { column: 0, isDown: false });
    expect(rows.cell(order[0] as number, 0)).toBe("name 0");
    expect(cpuMs() - began).toBeLessThan(2_000);
  });
});

describe("csvOf", () => {
  it("quotes what must be quoted", () => {
    const rows = found([{ "a,b": 'say "hi"', c: "two\nlines", d: { e: 1 }, f: null, g: true }]);
    expect(csvOf(rows, [0])).toBe('"a,b",c,d,f,g\r\n"say ""hi""","two\nlines","{""e"":1}",,true\r\n');
  });

  it.each(["=1+1", "+1", "-cmd", "@x", "\tx", "\r=1", " =1"])(
    "keeps a spreadsheet from running %j",
    (text) => {
      const cell = csvOf(found([{ a: text }]), [0]).split("a\r\n")[1] ?? "";
      expect(cell.replace(/^"/, "").startsWith("'")).toBe(true);
      expect(
        csvOf(found([{ [text]: 1 }]), [0])
          .replace(/^"/, "")
          .startsWith("'"),
      ).toBe(true);
    },
  );

  it("leaves numbers alone", () => {
    expect(csvOf(found([{ a: -5 }]), [0])).toBe("a\r\n-5\r\n");
  });
});
