import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../test/cpu-ms.ts";
import { findHunks } from "./readable-diff.ts";

const words = fc.array(fc.constantFrom("a", "b", "keys", " ", "\\u{200b}", "😀", "."), { maxLength: 60 });

/** Puts every hunk's other side in, by what stands around it. */
function apply(before: string, hunks: ReturnType<typeof findHunks>): string {
  let [text, at] = ["", 0];
  for (const { lead, before: old, after, skipped } of hunks) {
    const start = before.indexOf(`${lead}${old}`, at + Math.max(0, skipped - 40)) + lead.length;
    text += before.slice(at, start) + after;
    at = start + old.length;
  }
  return text + before.slice(at);
}

describe("hunks", () => {
  it("tell apart places that are far from each other, and count what is between", () => {
    const same = "nothing new here, as ever. ".repeat(40);
    const hunks = findHunks(`${same}one ${same}two ${same}`, `${same}1 ${same}2 ${same}`);
    expect(hunks.map(({ before, after }) => [before, after])).toEqual([
      ["one", "1"],
      ["two", "2"],
    ]);
    expect(hunks.map(({ skipped }) => skipped)).toEqual([1_040, 1_001]);
    expect(hunks.map(({ rest }) => rest)).toEqual([0, 1_041]);
  });

  it("are one where texts have nothing in common, however long, in no time", () => {
    const before = Array.from({ length: 50_000 }, (_, i) => `a${i}`).join(" ");
    const startedAt = cpuMs();
    const [hunk, ...others] = findHunks(before, before.replaceAll("a", "b"));
    expect([others, hunk?.after.length]).toEqual([[], before.length]);
    expect(cpuMs() - startedAt).toBeLessThan(2_000);
  });

  it("hold all that was taken out and put in", () => {
    fc.assert(
      fc.property(words, words, (one, other) => {
        const [before, after] = [one.join(""), other.join("")];
        const hunks = findHunks(before, after);
        expect(hunks.length === 0).toBe(before === after);
        const removed = hunks.reduce((sum, { before: old }) => sum + old.length, 0);
        const added = hunks.reduce((sum, { after: now }) => sum + now.length, 0);
        expect(before.length - removed + added).toBe(after.length);
        if (before.length < 40) expect(apply(before, hunks)).toBe(after);
      }),
    );
  });
});
