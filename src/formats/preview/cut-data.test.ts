import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { schemaCases } from "../../../test/arbitrary-schema.ts";
import { runs, scaled, seededRuns } from "../../../test/runs.ts";
import { parsePointer } from "../../core/json/json-pointer.ts";
import { type CompiledSchema, compileSchema } from "../../core/schema/compile-schema.ts";
import { cutData, estimateTokens } from "./token-budget.ts";

const sizeOf = (value: unknown): number => JSON.stringify(value).length;
const rows = (count: number): { id: number; name: string }[] =>
  Array.from({ length: count }, (_, id) => ({ id, name: `row number ${id}` }));

function at(value: unknown, pointer: string): unknown {
  return parsePointer(pointer).reduce((inner, key) => (inner as Record<string, unknown>)[key], value);
}

/** Tells whether one value could be a cut of another: shorter arrays and strings, fewer properties, nothing new. */
function isCutOf(cut: unknown, whole: unknown): boolean {
  if (typeof cut === "string" && typeof whole === "string") {
    return cut === whole || (cut.endsWith("…") && whole.startsWith(cut.slice(0, -1)));
  }
  if (Array.isArray(cut) && Array.isArray(whole)) {
    return cut.length <= whole.length && cut.every((item, i) => isCutOf(item, whole[i]));
  }
  if (typeof cut !== "object" || cut === null || typeof whole !== "object" || whole === null) {
    return Object.is(cut, whole);
  }
  const source = whole as Record<string, unknown>;
  return Object.entries(cut).every(
    ([key, inner]) => Object.hasOwn(source, key) && isCutOf(inner, source[key]),
  );
}

/** Some of the schemas that chance makes are refused, as those that refer to nothing but themselves. */
function compileOrSkip(schema: unknown): CompiledSchema {
  try {
    return compileSchema(schema);
  } catch {
    return fc.pre(false) as never;
  }
}

describe("cutting data", () => {
  it("TR-6 gives data within the limit back as it is, at N, and cuts it at N + 1", () => {
    const data = ["a".repeat(996), "b".repeat(997)];
    expect(sizeOf(data)).toBe(2_000);
    const same = cutData(data);
    expect(same).toEqual({ data, truncated: false, cuts: [] });
    expect(same.data).toBe(data);
    const cut = cutData([...data.slice(0, 1), "b".repeat(998)]);
    expect(cut.truncated).toBe(true);
    expect(sizeOf(cut.data)).toBeLessThanOrEqual(2_000);
  });

  it("TR-6 shortens the longest arrays from the end and says so", () => {
    const data = { tags: ["x", "y"], rows: rows(500) };
    const cut = cutData(data);
    const kept = cut.data.rows.length;
    expect(cut.data).toEqual({ tags: ["x", "y"], rows: rows(kept) });
    expect(cut.cuts).toEqual([{ pointer: "/rows", kind: "items", kept, total: 500 }]);
    expect(sizeOf(cut.data)).toBeLessThanOrEqual(2_000);
    expect(sizeOf({ ...data, rows: rows(kept + 1) })).toBeGreaterThan(2_000);
  });

  it("TR-6 shortens strings where they are what is long, without splitting a grapheme", () => {
    const data = { tags: ["x", "y", "z"], body: "👨‍👩‍👧".repeat(1_000) };
    const cut = cutData(data);
    expect(cut.data.tags).toEqual(data.tags);
    expect(cut.data.body).toMatch(/^(?:👨‍👩‍👧)+…$/);
    expect(sizeOf(cut.data)).toBeGreaterThan(1_900);
    const [only] = cut.cuts;
    expect(only).toMatchObject({ pointer: "/body", kind: "characters", total: 8_000 });
    expect(only?.kept).toBe(cut.data.body.length - 1);
  });

  it("TR-6 shortens arrays of long strings both ways, to empty ones if it must", () => {
    const data = Array.from({ length: 50 }, (_, i) => `${i} ${"text ".repeat(1_000)}`);
    const cut = cutData(data, { maxCharacters: 500 });
    expect(cut.data.length).toBeGreaterThan(2);
    expect(isCutOf(cut.data, data)).toBe(true);
    expect(cutData(data, { maxCharacters: 2 }).data).toEqual([]);
    expect(cutData({ a: data, b: data }, { maxCharacters: 15 }).data).toEqual({ a: [], b: [] });
  });

  it("TR-6 keeps as many items as a schema asks for", () => {
    const schema = compileSchema({ properties: { rows: { type: "array", minItems: 3, items: {} } } });
    const data = { rows: Array.from({ length: 9 }, () => "abc ".repeat(200)) };
    const cut = cutData(data, { schema });
    expect(cut.truncated).toBe(true);
    expect(cut.data.rows.length).toBeGreaterThanOrEqual(3);
    expect(schema.check(cut.data)).toBe(true);
  });

  it("TR-6 learns what every item of an array has to keep", () => {
    const schema = compileSchema({ items: { properties: { pair: { minItems: 2, maxItems: 2 } } } });
    const data = Array.from({ length: 400 }, (_, i) => ({ pair: [i, `${i}`.repeat(20)] }));
    const cut = cutData(data, { schema });
    expect(cut.truncated).toBe(true);
    expect(cut.data.every(({ pair }) => pair.length === 2)).toBe(true);
    expect(cut.data.length).toBeGreaterThan(5);
  });

  it("TR-6 leaves strings whole that a schema knows by their form", () => {
    const schema = compileSchema({ properties: { id: { pattern: "^[a-z]+$" }, text: { type: "string" } } });
    const data = { id: "abcdefghij".repeat(30), text: "Some words. ".repeat(500) };
    const cut = cutData(data, { schema });
    expect(cut.data.id).toBe(data.id);
    expect(cut.data.text.length).toBeGreaterThan(1_000);
    expect(cut.truncated).toBe(true);
  });

  it("TR-6 leaves optional properties out when nothing else helps, and required ones in", () => {
    const values = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`n${i}`, i]));
    const schema = compileSchema({
      required: ["keep", "truncated"],
      properties: { truncated: { type: "boolean" }, keep: { type: "object", required: ["n7"] } },
    });
    const data = { keep: values, more: values, truncated: false };
    const cut = cutData(data, { schema, maxCharacters: 100 });
    expect(cut.truncated).toBe(true);
    expect(sizeOf(cut.data)).toBeLessThanOrEqual(100);
    expect(cut.data.keep["n7"]).toBe(7);
    expect(cut.data.truncated).toBe(true);
    expect(cut.cuts).toContainEqual({ pointer: "/more", kind: "property", kept: 0, total: 1 });
    for (const { pointer } of cut.cuts) expect(at(data, pointer)).toBeDefined();
  });

  it("TR-6 leaves out an optional property that may not be shortened", () => {
    const code = "a".repeat(3_000);
    const schema = {
      type: "object",
      properties: { code: { enum: [code] }, n: { const: 1 } },
      required: ["n"],
    };
    const cut = cutData({ code, n: 1 }, { schema });
    expect(cut).toEqual({
      data: { n: 1 },
      truncated: true,
      cuts: [{ pointer: "/code", kind: "property", kept: 0, total: 1 }],
    });
    expect(cutData({ code, n: 1 }, { schema: { ...schema, required: ["code"] } }).truncated).toBe(false);
  });

  it("TR-6 never leaves a property out without a schema, nor with one that says nothing", () => {
    const data = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`n${i}`, i]));
    expect(cutData(data)).toEqual({ data, truncated: false, cuts: [] });
    expect(cutData(data, { schema: {} }).truncated).toBe(false);
    expect(cutData(data, { schema: { type: "object" } }).truncated).toBe(true);
  });

  it.each([
    ["a boolean", { type: "boolean" }, true],
    ["a boolean or null", { type: ["boolean", "null"] }, true],
    ["true only", { const: true }, true],
    ["an alternative", { anyOf: [{ type: "null" }, { $ref: "#/$defs/flag" }] }, true],
    ["false only", { const: false }, undefined],
    ["a string", { type: "string" }, undefined],
    ["a boolean that may not be true", { type: "boolean", enum: [false] }, undefined],
  ])("TR-6 sets truncated where a schema declares %s", (_, truncated, expected) => {
    const schema = {
      type: "object",
      properties: { rows: { type: "array" }, truncated },
      $defs: { flag: { type: "boolean" } },
    };
    const cut = cutData({ rows: rows(500) } as Record<string, unknown>, { schema });
    expect(cut.truncated).toBe(true);
    expect(cut.data["truncated"]).toBe(expected);
  });

  it("TR-6 does not set truncated where no schema declares it, nor on data that fits", () => {
    const schema = { type: "object", properties: { rows: {}, truncated: { type: "boolean" } } };
    expect(cutData({ rows: rows(3) }, { schema }).data).toEqual({ rows: rows(3) });
    expect("truncated" in cutData({ rows: rows(500) }).data).toBe(false);
    expect("truncated" in cutData({ rows: rows(500) }, { schema: { type: "object" } }).data).toBe(false);
  });

  it("TR-6 gives data whole where no valid cut fits", () => {
    const data = { rows: rows(500) };
    const items = { required: ["id", "name"] };
    const schema = { properties: { rows: { minItems: 500, items } }, required: ["rows"] };
    const cut = cutData(data, { schema });
    expect(cut.data).toBe(data);
    expect(cut).toEqual({ data, truncated: false, cuts: [] });
  });

  it("TR-6 asks rules of a library that JSON Schema cannot say", () => {
    const even = z.object({ rows: z.array(z.unknown()).refine((list) => list.length % 7 === 0) });
    const never = z.object({ rows: z.array(z.unknown()).refine((list) => list.length === 490) });
    const later = z.object({ rows: z.array(z.unknown()).refine(async () => true) });
    const data = { rows: rows(490) };
    const cut = cutData(data, { schema: even });
    expect(cut.data.rows.length % 7).toBe(0);
    expect(cutData(data, { schema: never }).truncated).toBe(false);
    expect(cutData(data, { schema: later }).truncated).toBe(false);
  });

  it("TR-6 keeps data valid against any schema, within the limit, with nothing invented", () => {
    let cuts = 0;
    fc.assert(
      fc.property(schemaCases(false), fc.nat({ max: 60 }), ({ schema, values }, maxCharacters) => {
        const compiled = compileOrSkip(schema);
        for (const value of values.filter((one) => one !== undefined)) {
          const before = JSON.stringify(value);
          const cut = cutData(value, { schema: compiled, maxCharacters });
          expect(JSON.stringify(value)).toBe(before);
          if (!cut.truncated) expect(cut.data).toBe(value);
          else {
            cuts += 1;
            expect(sizeOf(cut.data)).toBeLessThanOrEqual(maxCharacters);
            expect(compiled.check(cut.data)).toBe(true);
            expect(isCutOf(cut.data, value)).toBe(true);
            expect(cut.cuts.length).toBeGreaterThan(0);
          }
        }
      }),
      seededRuns(400),
    );
    expect(cuts).toBeGreaterThan(scaled(400) / 4);
  });

  it("TR-6 keeps any JSON within limits of characters and tokens, without a schema", () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ stringUnit: "binary" }),
        fc.nat({ max: 80 }),
        fc.nat({ max: 30 }),
        (value, most, maxTokens) => {
          const cut = cutData(value, { maxCharacters: most, maxTokens });
          if (!cut.truncated) return;
          expect(sizeOf(cut.data)).toBeLessThanOrEqual(most);
          expect(estimateTokens(JSON.stringify(cut.data))).toBeLessThanOrEqual(maxTokens);
          expect(isCutOf(cut.data, value)).toBe(true);
        },
      ),
      runs(500),
    );
  });

  it("TR-6 leaves out properties for the sake of tokens too", () => {
    const data = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`name${i}`, i]));
    const cut = cutData(data, { schema: { type: "object" }, maxTokens: 50 });
    expect(cut.truncated).toBe(true);
    expect(estimateTokens(JSON.stringify(cut.data))).toBeLessThanOrEqual(50);
  });

  it("TR-6 keeps a property of any name", () => {
    const data: unknown = JSON.parse(`{"__proto__": {"x": 1}, "constructor": "${"a".repeat(3_000)}"}`);
    const { data: cut } = cutData(data);
    expect(Object.keys(cut as object)).toEqual(["__proto__", "constructor"]);
    expect(Object.getPrototypeOf(cut)).toBe(Object.prototype);
  });

  it("TR-6 refuses what JSON cannot hold by its pointer", () => {
    expect(() => cutData({ a: { b: 1n } })).toThrow(
      new TypeError('JSON cannot hold what is at "/a/b": a value of type bigint.'),
    );
  });

  it("TR-6 refuses a wrong limit by its name", () => {
    expect(() => cutData([], { maxCharacters: -1 })).toThrow("maxCharacters");
    expect(() => cutData([], { maxTokens: 0.5 })).toThrow("maxTokens");
  });
});
