import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareKeys, pageOf } from "./page-cursor.ts";

const same = (key: string): string => key;

describe("pageOf", () => {
  it("RE-30 walks any list in pages without loss or repetition", () => {
    const lists = fc.uniqueArray(fc.string(), { maxLength: 50 });
    fc.assert(
      fc.property(lists, fc.integer({ min: 1, max: 7 }), (keys, size) => {
        const sorted = keys.toSorted(compareKeys);
        const walked: string[] = [];
        let cursor: string | undefined;
        do {
          const page = pageOf(sorted, same, cursor, size);
          expect(page.items.length).toBeLessThanOrEqual(size);
          walked.push(...page.items);
          cursor = page.nextCursor;
        } while (cursor !== undefined);
        expect(walked).toEqual(sorted);
      }),
    );
  });

  it("RE-30 ends at exactly one page and goes on at one more", () => {
    expect(pageOf(["a", "b"], same, undefined, 2).nextCursor).toBeUndefined();
    expect(pageOf(["a", "b", "c"], same, undefined, 2).nextCursor).toBeDefined();
  });

  it("RE-30 keeps its place when what it stands at is gone", () => {
    const { nextCursor } = pageOf(["a", "b", "c", "d"], same, undefined, 2);
    expect(pageOf(["a", "c", "d"], same, nextCursor, 2).items).toEqual(["c", "d"]);
  });

  it.each([7, null, "", "x", "dzE6YQ", "A".repeat(30_000)])("RE-30 refuses the cursor %j", (cursor) => {
    expect(() => pageOf(["a"], same, cursor, 2)).toThrow("cursor");
  });
});
