import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { findHidden } from "./clean-text.ts";

describe("findHidden", () => {
  it("Mcp: looks into every string and key of a schema", () => {
    const schema = {
      properties: { "a\u200Bb": { description: "x\u202E", enum: ["\u200B", 1, null] } },
      required: [["a\u001B[0m"]],
    };
    expect(new Map(findHidden(schema).map(({ kind, count }) => [kind, count]))).toEqual(
      new Map([
        ["zero-width", 2],
        ["bidi", 1],
        ["escape", 1],
      ]),
    );
    expect(findHidden({ title: "Plain", of: ["👩‍👧", true] })).toEqual([]);
  });

  it("Mcp: takes linear time, and any depth", () => {
    let deep: unknown = "\u200B";
    for (let level = 0; level < 200_000; level++) deep = level % 2 === 0 ? [deep] : { deep };
    const startedAt = cpuMs();
    expect(findHidden(deep)).toEqual([{ kind: "zero-width", count: 1 }]);
    expect(cpuMs() - startedAt).toBeLessThan(10_000);
  });
});
