import { expect, it } from "vitest";
import { digestOf } from "./call-log.ts";

it.each([
  [{ id: "P-1001" }, 'id: "P-1001"'],
  [
    { kg: 2, zone: "world", tags: ["a", "b"], to: { city: "Lisbon" } },
    'kg: 2, zone: "world", tags: [2], to: {…}',
  ],
  [{ a: 1, b: 2, c: 3, d: 4, e: 5 }, "a: 1, b: 2, c: 3, d: 4, …"],
  ["plain", '"plain"'],
  [[1, 2, 3], "[3]"],
  [null, "null"],
  [{}, ""],
  [undefined, "undefined"],
])("says %j in a few words", (input, words) => {
  expect(digestOf(input)).toBe(words);
});

it("leaves a text of more than 40 characters out whole, so that no half of a secret is ever shown", () => {
  expect(digestOf({ text: "x".repeat(40) })).toBe(`text: "${"x".repeat(40)}"`);
  expect(digestOf({ text: "x".repeat(41) })).toBe("text: 41 characters");
  expect(digestOf({ ["n".repeat(41)]: 1 })).toBe("…: 1");
});
