import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cpuMs } from "../../../../test/cpu-ms.ts";
import { parseLinks, targetOf } from "./link-finder.ts";

describe("link headers", () => {
  it.each([
    ["one", '<https://a.example/?p=2>; rel="next"', "https://a.example/?p=2"],
    ["without quotes", "</?p=2>;rel=next", "/?p=2"],
    ["one of several", '</1>; rel="prev", </2>; title="a, b; <c>"; rel="next"', "/2"],
    ["one of several relations", '</2>; rel="Last NEXT"', "/2"],
    ["with escapes", '</2>; title="\\"\\\\"; rel="ne\\xt"', "/2"],
    ["with commas in its address", "</2?a=1,2>; rel=next", "/2?a=1,2"],
    ["with a bare parameter", "</2>; crossorigin; rel=next", "/2"],
    ["the first relation alone", '</1>; rel="prev"; rel="next"', undefined],
    ["none", "</1>", undefined],
    ["nonsense", "rel=next", undefined],
    ["no end", "<https://a.example; rel=next", undefined],
    ["half a value", '</2>; rel="next', "/2"],
  ])("RE-27 reads the next page: %s", (_, header, target) => {
    expect(targetOf(parseLinks(header), "next")).toBe(target);
  });

  it("RE-27 never fails, and takes no longer for what is made to be slow", () => {
    const piece = fc.constantFrom("<", ">", ";", ",", '"', "\\", "=", " ", "rel", "next", "a");
    fc.assert(fc.property(fc.array(piece), (pieces) => void parseLinks(pieces.join(""))));
    const started = cpuMs();
    for (const text of ["<", ";", '<>;a="', "<>;", "\\", "<>,", '<>;rel="\\'] as const)
      parseLinks(text.repeat(100_000));
    expect(cpuMs() - started).toBeLessThan(5_000);
  });
});
