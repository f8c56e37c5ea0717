import { expect, it } from "vitest";
import { indexAfterKey } from "./virtual-list.tsx";

it("moves within a list, never beyond its ends", () => {
  const keys = ["ArrowDown", "ArrowUp", "PageDown", "PageUp", "Home", "End"];
  expect(keys.map((key) => indexAfterKey(key, 3, 20))).toEqual([4, 2, 13, 0, 0, 19]);
  expect(keys.map((key) => indexAfterKey(key, 19, 20))).toEqual([19, 18, 19, 9, 0, 19]);
  expect(indexAfterKey("ArrowDown", -1, 20)).toBe(0);
});

it("leaves other keys alone", () => {
  expect(["a", "Enter", "constructor"].map((key) => indexAfterKey(key, 3, 20))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
