import { expect, it } from "vitest";
import { issuesElsewhere, NO_ISSUES, placeIssues, splitIssues } from "./form-tools.ts";

const issue = (pointer: string) => ({ pointer, expected: "a", found: "b" });

it("hands issues down by name, whatever the name is", () => {
  const pointers = ["", "/a/b", "/a/c", "/__proto__/x", "/", "/m~0n/k~1l", "/constructor"];
  const { own, below } = splitIssues(placeIssues(pointers.map(issue)));
  expect(own).toHaveLength(1);
  expect([...below.keys()]).toEqual(["a", "__proto__", "", "m~n", "constructor"]);
  expect(below.get("a")?.map(({ path }) => path)).toEqual([["b"], ["c"]]);
  const inner = splitIssues(below.get("m~n") ?? []);
  expect(inner.below.get("k/l")?.[0]?.path).toEqual([]);
});

it("keeps those of what is not drawn, with the way to them", () => {
  const { below } = splitIssues(placeIssues([issue("/a"), issue("/gone/x/0")]));
  expect(issuesElsewhere(below, (name) => name === "a").map(({ path }) => path)).toEqual([
    ["gone", "x", "0"],
  ]);
});

it("gives the same list when there are none, and no more than can be read", () => {
  expect(placeIssues([])).toBe(NO_ISSUES);
  expect(placeIssues(Array.from({ length: 10_000 }, () => issue("/a"))).length).toBeLessThan(1_000);
});
