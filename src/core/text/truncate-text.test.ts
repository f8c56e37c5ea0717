import { expect, it } from "vitest";
import { truncateText } from "./truncate-text.ts";

it.each([
  ["ab", 2, "ab"],
  ["abc", 2, "ab"],
  ["a😀", 3, "a😀"],
  ["a😀", 2, "a"],
  ["a😀b", 3, "a😀"],
])("%j cut to %i is %j", (text, most, expected) => {
  expect(truncateText(text, most)).toBe(expected);
});
