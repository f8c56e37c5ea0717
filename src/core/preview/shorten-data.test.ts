import { describe, expect, it } from "vitest";
import { chooseDrops } from "./shorten-data.ts";

const never = () => false;
const data = {
  a: { b: "x".repeat(40), c: "x".repeat(60) },
  d: ["x".repeat(20), { e: "x".repeat(50) }],
  f: 1,
};
const size = JSON.stringify(data).length;

describe("properties to leave out", () => {
  it("TR-6 chooses none where all fits", () => {
    expect(chooseDrops(data, size, never)).toEqual(new Set());
  });

  it.each([
    [1, "/f"],
    [10, "/a/b"],
    [46, "/a/b"],
    [47, "/d/1/e"],
    [70, "/d"],
    [100, "/a"],
  ])("TR-6 chooses, to save %i characters, %s alone", (excess, pointer) => {
    expect(chooseDrops(data, size - excess, never)).toEqual(new Set([pointer]));
  });

  it("TR-6 chooses the largest together where none suffices alone, none within another", () => {
    expect(chooseDrops(data, size - 130, never)).toEqual(new Set(["/a", "/d"]));
  });

  it("TR-6 keeps what must stay, by its place in any item", () => {
    const isKept = (place: string): boolean => ["/d/*/e", "/a"].includes(place);
    expect(chooseDrops(data, size - 48, isKept)).toEqual(new Set(["/a/c"]));
  });

  it("TR-6 gives up where all that may go is too little", () => {
    expect(chooseDrops(data, 1, never)).toBeUndefined();
    expect(chooseDrops("text", 1, never)).toBeUndefined();
  });
});
