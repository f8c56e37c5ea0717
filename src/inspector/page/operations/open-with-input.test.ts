import { expect, it } from "vitest";
import { MOST_LINKED, openFromLink, takeOpened } from "./open-with-input.ts";

const nested = (levels: number): string => `${"[".repeat(levels)}1${"]".repeat(levels)}`;

it("a link fills in its input once, and runs nothing", () => {
  openFromLink("a.once", '{"x":1}');
  expect(takeOpened("a.once")).toEqual({ operation: "a.once", input: { x: 1 }, isRun: false });
  openFromLink("a.once", '{"x":1}');
  expect(takeOpened("a.once")).toBeUndefined();
});

it.each([
  ["of the most levels", nested(100), true],
  ["of one level more", nested(101), false],
  ["of thousands of levels", nested(3_900), false],
  ["of the most characters", JSON.stringify("a".repeat(MOST_LINKED - 2)), true],
  ["of one character more", JSON.stringify("a".repeat(MOST_LINKED - 1)), false],
  ["cut short", '{"x":', false],
])("an input %s is filled in or left out", (title, json, isFilledIn) => {
  openFromLink(title, json);
  expect(takeOpened(title) !== undefined).toBe(isFilledIn);
});
