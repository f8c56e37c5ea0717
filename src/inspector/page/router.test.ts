import { describe, expect, it } from "vitest";
import { parseRoute, toHash, VIEWS } from "./router.ts";

describe("routes", () => {
  it.each(VIEWS)("%s is found by its own address", (view) => {
    expect(parseRoute(toHash(view))).toEqual({ view, chosen: undefined, input: undefined });
  });

  it.each(["parcel.send", "a.b/c", "a.b%2Fc", "x.<img>", "42", "é.ü", "a.b?c#d"])(
    "what is chosen comes back: %s",
    (chosen) => {
      expect(parseRoute(toHash("operations", chosen))).toEqual({
        view: "operations",
        chosen,
        input: undefined,
      });
    },
  );

  it.each(["", "#", "#/", "#/nowhere", "#/nowhere/x", "#operations", "#/__proto__/x"])(
    "what nobody knows is the first view: %s",
    (hash) => {
      expect(parseRoute(hash)).toEqual({ view: VIEWS[0], chosen: undefined, input: undefined });
    },
  );

  it("an address that cannot be decoded is taken as it is", () => {
    expect(parseRoute("#/calls/%E0%A4%A")).toEqual({ view: "calls", chosen: "%E0%A4%A", input: undefined });
  });

  it.each(['{"id":"P-1"}', '{"a?b":"c/d#e&input=f%2F"}', '"é\\n"'])("an input comes back: %s", (input) => {
    expect(parseRoute(toHash("operations", "a.b?c", input))).toEqual({
      view: "operations",
      chosen: "a.b?c",
      input,
    });
  });

  it("an input without something chosen is left out", () => {
    expect(parseRoute("#/operations?input=1")).toEqual({
      view: "operations",
      chosen: undefined,
      input: undefined,
    });
  });
});
