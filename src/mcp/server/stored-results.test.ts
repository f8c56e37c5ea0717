import { describe, expect, it } from "vitest";
import { GIVEN_RESULTS, GivenResults } from "./stored-results.ts";

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
