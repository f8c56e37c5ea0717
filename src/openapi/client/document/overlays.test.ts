import { describe, expect, it } from "vitest";
import { findOverlay } from "./overlays.ts";

describe("several overlays", () => {
  const sign = { method: "GET", path: "/x", operationId: "getX" };

  it("RE-25 patches in turn, what is removed included", () => {
    const found = findOverlay(sign, [
      {
        operations: {
          getX: {
            title: "one",
            input: { required: ["a"], title: null },
            patch: { summary: null, tags: ["a"] },
          },
        },
      },
      {
        operations: {
          "get /x": {
            title: undefined,
            input: { properties: { a: { title: "A" } } },
            patch: { tags: null, "x-b": { c: null } },
          },
        },
      },
    ] as unknown as Parameters<typeof findOverlay>[1]);
    expect(found).toEqual({
      title: "one",
      input: { required: ["a"], title: null, properties: { a: { title: "A" } } },
      patch: { summary: null, tags: null, "x-b": { c: null } },
    });
  });

  it("RE-25 lets the later one win where there is nothing to merge", () => {
    const overlays = [
      { operations: { getX: { output: true, hide: true } } },
      { operations: { getX: { output: false } } },
    ];
    expect(findOverlay(sign, overlays)).toEqual({ output: false, hide: true });
  });
});
