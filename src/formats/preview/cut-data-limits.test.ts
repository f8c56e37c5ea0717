import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { compileSchema } from "../../core/schema/compile-schema.ts";
import { CUT_DATA_LIMITS, cutData } from "./cut-data.ts";

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
    const schema = compileSchema({ properties: { a: { minItems: 4_000 }, b: { minItems: 4_000 } } });
    let asked = 0;
    const counting: typeof schema = {
      ...schema,
      json: schema.json,
      meaningful: true,
      isClean: (value) => schema.isClean(value),
      fillDefaults: (value) => schema.fillDefaults(value),
      normalize: (value) => schema.normalize(value),
      check: (value) => {
        asked += 1;
        return schema.check(value);
      },
      errors: (value) => {
        asked += 1;
        return schema.errors(value);
      },
    };
    const data = { a: rows(5_000), b: rows(5_000) };
    expect(cutData(data, { schema: counting }).data).toBeDefined();
    expect(asked).toBeGreaterThan(10);
    expect(asked).toBeLessThanOrEqual(CUT_DATA_LIMITS.schemaChecks);
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
