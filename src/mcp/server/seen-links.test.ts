import { describe, expect, it } from "vitest";
import { SEEN_LINKS, SeenLinks } from "./seen-links.ts";

describe("links that results held", () => {
  it("Mcp: belong to whose result they were in, to several if several claim them", () => {
    const seen = new SeenLinks();
    expect(seen.note("a", "x://1")).toBe(true);
    expect(seen.namespacesOf("x://1")).toEqual(["a"]);
    expect(seen.note("b", "x://1")).toBe(true);
    expect(seen.namespacesOf("x://1")).toEqual(["a", "b"]);
    expect(seen.namespacesOf("x://2")).toEqual([]);
  });

  it("Mcp: of one server are as many as there is room for, and no flood of another makes any be forgotten", () => {
    const seen = new SeenLinks();
    seen.note("good", "report://q3");
    for (let i = 0; i < SEEN_LINKS.links; i += 1) expect(seen.note("evil", `x://${i}`)).toBe(true);
    expect(seen.note("evil", "report://q3")).toBe(false);
    expect(seen.note("evil", "x://0")).toBe(true);
    expect(seen.namespacesOf("report://q3")).toEqual(["good"]);
  });

  it("Mcp: are not remembered when they are too long, one by one or together", () => {
    const seen = new SeenLinks();
    expect(seen.note("a", "x".repeat(SEEN_LINKS.length))).toBe(true);
    expect(seen.note("a", "x".repeat(SEEN_LINKS.length + 1))).toBe(false);
    const room = SEEN_LINKS.total / SEEN_LINKS.length - 1;
    for (let i = 0; i < room; i += 1)
      expect(seen.note("a", String(i).padEnd(SEEN_LINKS.length, "y"))).toBe(true);
    expect(seen.note("a", "z")).toBe(false);
  });
});
