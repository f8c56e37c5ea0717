import { describe, expect, it } from "vitest";
import { showAgo, showBytes, showCount, showMs } from "./show.ts";

describe("figures for people", () => {
  it.each([
    [0, "0 ms"],
    [0.44, "0.4 ms"],
    [12.4, "12 ms"],
    [999, "999 ms"],
    [1_250, "1.3 s"],
    [59_940, "59.9 s"],
    [59_960, "1 min 0 s"],
    [119_800, "2 min 0 s"],
    [185_000, "3 min 5 s"],
  ])("%d ms is %s", (ms, text) => {
    expect(showMs(ms)).toBe(text);
  });

  it.each([
    [999, "999 B"],
    [1_234, "1.2 KB"],
    [2_500_000, "2.5 MB"],
  ])("%d bytes are %s", (bytes, text) => {
    expect(showBytes(bytes)).toBe(text);
  });

  it.each([
    [0, "0 s ago"],
    [61_000, "1 min ago"],
    [7_300_000, "2 h ago"],
    [200_000_000, "2 d ago"],
    [-5_000, "0 s ago"],
  ])("%d ms before now is %s", (ms, text) => {
    expect(showAgo(1e12 - ms, 1e12)).toBe(text);
  });

  it("one of a thing is one", () => {
    expect([showCount(0, "call"), showCount(1, "call"), showCount(1_200, "call")]).toEqual([
      "0 calls",
      "1 call",
      "1,200 calls",
    ]);
  });
});
