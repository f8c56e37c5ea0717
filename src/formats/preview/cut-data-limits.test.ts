import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { CUT_DATA_LIMITS } from "../../core/preview/cut-data.ts";
import { compileSchema } from "../../core/schema/compile-schema.ts";
import { cutData } from "./token-budget.ts";

const rows = (count: number): { id: number; name: string }[] =>
  Array.from({ length: count }, (_, id) => ({ id, name: `row number ${id}` }));

describe("the work of cutting data", () => {
  it("TR-6 cuts 500 levels and leaves 501 whole", () => {
    const nest = (levels: number): unknown => {
      let value: unknown = "a".repeat(5_000);
      for (let i = 0; i < levels; i++) value = [value];
      return value;
    };
    expect(cutData(nest(CUT_DATA_LIMITS.depth)).truncated).toBe(true);
    expect(cutData(nest(CUT_DATA_LIMITS.depth + 1)).truncated).toBe(false);
  });

  it("TR-6 cuts 64 Mi characters and leaves more whole", () => {
    const text = "a".repeat(CUT_DATA_LIMITS.characters - 2);
    expect(cutData(text).truncated).toBe(true);
    expect(cutData(`${text}a`).truncated).toBe(false);
  });

  it("TR-6 asks a schema at most 64 times", () => {
    const schema = compileSchema({ type: "object" });
    let asked = 0;
    const refusing: typeof schema = {
      ...schema,
      json: schema.json,
      meaningful: true,
      isClean: (value) => schema.isClean(value),
      fillDefaults: (value) => schema.fillDefaults(value),
      normalize: (value) => schema.normalize(value),
      check: () => {
        asked += 1;
        return false;
      },
      errors: () => {
        asked += 1;
        return [{ pointer: "", expected: "something else", found: "an object" }];
      },
    };
    const data = { a: rows(5_000), b: rows(5_000) };
    expect(cutData(data, { schema: refusing }).truncated).toBe(false);
    expect(asked).toBeGreaterThan(10);
    expect(asked).toBeLessThanOrEqual(CUT_DATA_LIMITS.schemaChecks);
  });

  it("TR-6 gives up the search for a cut where there is none, after a bounded number of looks", () => {
    const items = { required: ["id", "name"], properties: { name: { pattern: "^row number \\d+$" } } };
    const schema = compileSchema({ properties: { rows: { minItems: 20_000, items } }, required: ["rows"] });
    const data = { rows: rows(20_000) };
    const start = cpuMs();
    expect(cutData(data, { schema, maxCharacters: 200_000 })).toEqual({ data, truncated: false, cuts: [] });
    expect(cpuMs() - start).toBeLessThan(3_000);
  });

  it.each([
    ["a million numbers", () => Array.from({ length: 1_000_000 }, (_, i) => i)],
    ["many empty objects", () => Array.from({ length: 300_000 }, () => ({}))],
    ["a long string", () => ["a".repeat(10_000_000)]],
    ["many strings", () => Array.from({ length: 100_000 }, () => "😀".repeat(50))],
    ["many properties", () => Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`p${i}`, "x"]))],
  ])("TR-6 handles %s in linear time", (_, make) => {
    const data = make();
    const schema = compileSchema({ type: ["array", "object"], minProperties: 2 });
    const start = cpuMs();
    expect(cutData(data, { schema }).truncated).toBe(true);
    expect(cpuMs() - start).toBeLessThan(3_000);
  });
});
