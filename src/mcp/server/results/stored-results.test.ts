import { describe, expect, it } from "vitest";
import { GIVEN_RESULTS, GivenResults, SEEN_LINKS, SeenLinks } from "./stored-results.ts";

const uri = (n: number) => `waybill://results/${n.toString(16).padStart(32, "0")}`;
const link = (n: number) => ({ type: "resource_link", uri: uri(n) });

describe("GivenResults", () => {
  it("X-4 knows who was given what, however the address is written", () => {
    const given = new GivenResults();
    given.note("ann", [
      link(1),
      { type: "resource_link", uri: `waybill+first:${uri(2)}` },
      { type: "text" },
      null,
    ]);
    for (const address of [uri(1), `${uri(1)}?offset=0&length=1`, `waybill+a:waybill+b.c:${uri(2)}`]) {
      expect([given.isForeign("ann", address), given.isForeign("bob", address)]).toEqual([false, true]);
    }
    for (const other of ["x://1", `${uri(1)}0`, "waybill://other/1"]) {
      expect(given.isForeign("bob", other)).toBe(false);
    }
  });

  it("X-6 remembers as many addresses and callers as it says, and one more in place of the oldest", () => {
    const given = new GivenResults();
    const { addresses, callers } = GIVEN_RESULTS;
    given.note(
      "ann",
      Array.from({ length: addresses }, (_, n) => link(n)),
    );
    expect(given.isForeign("ann", uri(0))).toBe(false);
    given.note("ann", [link(addresses)]);
    expect([0, 1, addresses].map((n) => given.isForeign("ann", uri(n)))).toEqual([true, false, false]);
    for (let n = 1; n < callers; n++) given.note(`caller ${n}`, [link(1)]);
    expect(given.isForeign("ann", uri(1))).toBe(false);
    given.note("one more", [link(1)]);
    expect([given.isForeign("ann", uri(1)), given.isForeign("caller 1", uri(1))]).toEqual([true, false]);
  });
});

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
