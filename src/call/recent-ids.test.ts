import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RecentIds } from "./recent-ids.ts";

describe("RecentIds", () => {
  it("Call: remembers at least the last N ids, and forgets those before the last 2N", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 100 }), (capacity, count) => {
        const recent = new RecentIds(capacity);
        for (let n = 0; n < count; n++) recent.add(String(n));
        for (let n = 0; n < count; n++) {
          if (n >= count - capacity) expect(recent.has(String(n))).toBe(true);
          if (n < count - 2 * capacity) expect(recent.has(String(n))).toBe(false);
        }
        expect(recent.has(String(count))).toBe(false);
      }),
    );
  });

  it("Call: one id said 10,000 times drives no other out", () => {
    const recent = new RecentIds(4);
    for (const id of ["a", "b", "c"]) recent.add(id);
    for (let n = 0; n < 10_000; n++) recent.add("again");
    expect(["a", "b", "c", "again"].map((id) => recent.has(id))).toEqual([true, true, true, true]);
  });

  it("Call: an id like any property of an object is just an id", () => {
    const recent = new RecentIds(5);
    expect(["__proto__", "constructor", ""].map((id) => recent.has(id))).toEqual([false, false, false]);
    recent.add("__proto__");
    expect(recent.has("__proto__")).toBe(true);
  });
});
