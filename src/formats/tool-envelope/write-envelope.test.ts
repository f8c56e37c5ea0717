import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../../test/runs.ts";
import { toToolResult } from "../index.ts";
import { Base64Writer, toBase64Text } from "./base64-text.ts";
import { ENVELOPE_PREFIX } from "./envelope-block.ts";

const meta = { tool: "t", ts: "" };

function written(payload: unknown): string {
  const { content } = toToolResult({ summaryMarkdown: "", payload, meta });
  return Buffer.from((content[1] as { text: string }).text.slice(ENVELOPE_PREFIX.length), "base64").toString(
    "utf8",
  );
}

const asJson = (payload: unknown) => JSON.stringify({ payload, meta: { ...meta, version: 1 } });

describe("an envelope with long lists", () => {
  const long = (count: number, item: (i: number) => unknown) =>
    Array.from({ length: count }, (_, i) => item(i));

  it.each([
    ["at the threshold", long(64, (i) => i)],
    ["one below", long(63, (i) => i)],
    ["of objects", { rows: long(500, (i) => ({ id: i, name: `n${i}` })) }],
    ["beside other members", { a: 1, rows: long(100, String), b: { c: [1] }, d: null, e: "x" }],
    [
      "deeper than it looks",
      { a: { rows: long(100, String) }, rows: long(64, () => ({ rows: long(70, (i) => i) })) },
    ],
    ["of long texts", long(70, () => "é漢😀".repeat(5_000))],
    ["of empty things", long(70, () => "")],
    ["with members JSON leaves out", { rows: long(70, String), a: undefined, b: () => 1, c: Symbol("c") }],
    ["with dates", { rows: long(70, () => new Date(0)), at: new Date(1) }],
    ["with a member that leaves itself out", { rows: long(70, String), a: { toJSON: () => undefined } }],
    ["that says itself how it is written", { rows: long(70, String), toJSON: () => "short" }],
    ["with keys of every kind", { "": 1, __proto__x: 2, '"': 3, "\u2028": 4, rows: long(64, String) }],
  ])("TE-1 is written as JSON.stringify writes it: %s", (_, payload) => {
    expect(written(payload)).toBe(asJson(payload));
  });

  it("TE-1 is written as JSON.stringify writes it, whatever it holds", () => {
    const item = fc.oneof(fc.jsonValue(), fc.string({ unit: "binary", maxLength: 400 }));
    const list = fc.array(item, { minLength: 60, maxLength: 90 });
    const payload = fc.oneof(
      list,
      fc.dictionary(fc.string(), fc.oneof(fc.jsonValue(), list), { maxKeys: 4 }),
    );
    fc.assert(
      fc.property(payload, (value) => {
        expect(written(value)).toBe(asJson(value));
      }),
      runs(200),
    );
  });

  it.each([
    ["undefined", long(70, () => undefined)],
    ["NaN in one of many", { rows: long(5_000, (i) => (i === 4_999 ? Number.NaN : i)) }],
    ["a map", { rows: long(70, () => new Map()) }],
    ["itself", circular()],
  ])("TE-3 that holds %s is refused", (_, payload) => {
    expect(() => written(payload)).toThrow("cannot be written as JSON");
  });

  function circular() {
    const rows: unknown[] = long(70, String);
    rows.push(rows);
    return { rows };
  }

  it("TE-1 may be written while another one is being written", () => {
    const inner = { rows: long(100, String) };
    const payload = { rows: long(100, (i) => ({ toJSON: () => (i === 50 ? written(inner) : i) })) };
    const text = written(payload);
    expect(JSON.parse(text).payload.rows[50]).toBe(asJson(inner));
    expect(JSON.parse(text).payload.rows[99]).toBe(99);
    expect(written(inner)).toBe(asJson(inner));
  });
});

describe("the writer", () => {
  const lengths = [0, 1, 2, 3, 16_383, 16_384, 16_385, 49_151, 49_152, 49_153, 100_000];

  it.each(["a", "é", "漢", "😀", "a😀"])("TE-1 encodes any length of %j, in any pieces", (unit) => {
    for (const length of lengths) {
      const text = unit.repeat(length);
      const expected = `p:${Buffer.from(text).toString("base64")}`;
      expect(toBase64Text("p:", text) === expected).toBe(true);
      const writer = new Base64Writer("p:");
      for (const part of [text, "", unit, text]) writer.add(part);
      expect(writer.finish() === `p:${Buffer.from(text + unit + text).toString("base64")}`).toBe(true);
    }
  });
});
