import { expect, test } from "vitest";
import { operationLines } from "./operation-groups.ts";
import { lineAfterKey } from "./operation-list.tsx";

const rows = Array.from({ length: 30 }, (_, at) => ({
  id: `a.${at}`,
  source: at < 15 ? "one" : "two",
  type: "query" as const,
  summary: "",
}));
// Line 0 and line 16 are heads; operations stand at 1 to 15 and 17 to 31.
const lines = operationLines(rows, undefined);

test("arrows pass over the heads of sources and stop at the ends", () => {
  expect(lineAfterKey(lines, -1, "ArrowDown")).toBe(1);
  expect(lineAfterKey(lines, 15, "ArrowDown")).toBe(17);
  expect(lineAfterKey(lines, 17, "ArrowUp")).toBe(15);
  expect(lineAfterKey(lines, 1, "ArrowUp")).toBe(1);
  expect(lineAfterKey(lines, 31, "ArrowDown")).toBe(31);
});

test("pages and ends", () => {
  expect(lineAfterKey(lines, 1, "PageDown")).toBe(11);
  expect(lineAfterKey(lines, 6, "PageDown")).toBe(17);
  expect(lineAfterKey(lines, 30, "PageDown")).toBe(31);
  expect(lineAfterKey(lines, 11, "PageUp")).toBe(1);
  expect(lineAfterKey(lines, 3, "PageUp")).toBe(1);
  expect(lineAfterKey(lines, 5, "Home")).toBe(1);
  expect(lineAfterKey(lines, 5, "End")).toBe(31);
});

test("an empty list and other keys lead nowhere", () => {
  expect(lineAfterKey([], -1, "ArrowDown")).toBeUndefined();
  expect(lineAfterKey([], 0, "End")).toBeUndefined();
  expect(lineAfterKey(lines, 1, "a")).toBeUndefined();
});
