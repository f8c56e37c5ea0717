import fc from "fast-check";
import { expect, it } from "vitest";
import { runs } from "../../test/runs.ts";
import { isPlainObject } from "../core/json/json-value.ts";
import { applyPatch, findPatch } from "./component-schemas.ts";

it("X-6 gives any JSON object back, from any other", () => {
  const objects = fc.jsonValue({ maxDepth: 4 }).filter(isPlainObject);
  const pairs = fc.tuple(objects, objects);
  fc.assert(
    fc.property(pairs, ([from, to]) => {
      const [before, after] = [from, to].map((value) => JSON.parse(JSON.stringify(value)));
      const patch = JSON.parse(JSON.stringify(findPatch(before, after)));
      applyPatch(before, patch);
      expect(before).toEqual(after);
    }),
    runs(500),
  );
});

it("X-6 says in a few words that a reference stands beside the rest", () => {
  const written = {
    properties: { a: { title: "A", allOf: [{ $ref: "#/x" }] }, b: { allOf: [{ $ref: "#/y" }] } },
  };
  const exact = { properties: { a: { title: "A", $ref: "#/x" }, b: { allOf: [{ $ref: "#/y" }] } } };
  const patch = findPatch(written, exact);
  expect(patch).toEqual({ beside: ["/properties/a"] });
  applyPatch(written, patch);
  expect(written).toEqual(exact);
});

it("X-6 changes nothing that is not there, whatever a document says", () => {
  const hostile: readonly unknown[] = [
    undefined,
    "text",
    { beside: "a", without: {}, with: [] },
    {
      beside: [1, "", "/a", "/none"],
      without: [null, "", "a", "/none/b", "/__proto__/x"],
      with: { "": 1, a: 1 },
    },
    {
      with: {
        "/__proto__/polluted": true,
        "/constructor/prototype/polluted": true,
        "/list/9": 1,
        "/list/x": 1,
      },
    },
  ];
  for (const patch of hostile) {
    const value = { a: { allOf: [{ $ref: "#/x", title: "t" }] }, list: [1] };
    applyPatch(value, patch);
    expect(value).toEqual({ a: { allOf: [{ $ref: "#/x", title: "t" }] }, list: [1] });
    expect({}).not.toHaveProperty("polluted");
  }
});
