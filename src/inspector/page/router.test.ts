import { describe, expect, it } from "vitest";
import { parseRoute, toHash, VIEWS } from "./router.ts";

describe("routes", () => {
  it.each(VIEWS)("%s is found by its own address", (view) => {
    expect(parseRoute(toHash(view))).toEqual({ view, chosen: undefined });
  });

  it.each(["parcel.send", "a.b/c", "a.b%2Fc", "x.<img>", "42", "é.ü", "a.b?c#d"])(
    "what is chosen comes back: %s",
    (chosen) => {
      expect(parseRoute(toHash("operations", chosen))).toEqual({ view: "operations", chosen });
    },
  );

  it.each(["", "#", "#/", "#/nowhere", "#/nowhere/x", "#operations", "#/__proto__/x"])(
    "what nobody knows is the first view: %s",
    (hash) => {
      expect(parseRoute(hash)).toEqual({ view: VIEWS[0], chosen: undefined });
    },
  );

  it("an address that cannot be decoded is taken as it is", () => {
    expect(parseRoute("#/calls/%E0%A4%A")).toEqual({ view: "calls", chosen: "%E0%A4%A" });
  });
});
