import { describe, expect, it } from "vitest";
import { query } from "../../test/make-operation.ts";
import { hidePasswords } from "./hide-passwords.ts";

const hide = (inputSchema: object, input: unknown): unknown =>
  hidePasswords(
    query("desk.sign", () => 1, { inputSchema: inputSchema as never }),
    input,
  );

class Holder {
  readonly p = "x";
}

const PASSWORD = { type: "string", format: "password" };

describe("hiding passwords", () => {
  it.each([
    ["a member", { properties: { p: PASSWORD } }, { p: "x", q: 1 }, { p: "•••", q: 1 }],
    ["what is only written", { properties: { p: { writeOnly: true } } }, { p: { a: 1 } }, { p: "•••" }],
    ["the whole input", { type: "string", writeOnly: true }, "x", "•••"],
    ["items of a list", { properties: { p: { items: PASSWORD } } }, { p: ["x", "y"] }, { p: ["•••", "•••"] }],
    ["an item of a tuple", { prefixItems: [{}, PASSWORD] }, [1, "x", 2], [1, "•••", 2]],
    [
      "any other member",
      { properties: { q: {} }, additionalProperties: PASSWORD },
      { p: "x", q: 1 },
      { p: "•••", q: 1 },
    ],
    ["members by pattern", { patternProperties: { "^p": PASSWORD } }, { p1: "x" }, { p1: "•••" }],
    [
      "one of several",
      { anyOf: [{ properties: { p: PASSWORD } }, { properties: { p: {} } }] },
      { p: "x" },
      { p: "•••" },
    ],
    [
      "behind a reference",
      { $defs: { s: PASSWORD }, properties: { p: { $ref: "#/$defs/s" } } },
      { p: "x" },
      { p: "•••" },
    ],
    [
      "behind a reference nobody can follow",
      { $defs: { s: PASSWORD }, properties: { p: { $ref: "#/$defs/t" } } },
      { p: "x" },
      { p: "•••" },
    ],
    [
      "behind a dynamic reference",
      { $defs: { s: { $dynamicAnchor: "s", ...PASSWORD } }, properties: { p: { $dynamicRef: "#s" } } },
      { p: "x", q: 1 },
      { p: "•••", q: 1 },
    ],
    [
      "behind a reference by name",
      { $defs: { s: { $anchor: "s", ...PASSWORD } }, properties: { p: { $ref: "#s" } } },
      { p: "x" },
      { p: "•••" },
    ],
    [
      "behind a reference to somewhere else",
      { properties: { p: { $ref: "https://example.com/p.json" } } },
      { p: "x", q: 1 },
      { p: "•••", q: 1 },
    ],
    [
      "behind a reference from another base",
      {
        $defs: { s: {} },
        properties: { p: { $id: "o", $defs: { s: PASSWORD }, properties: { a: { $ref: "#/$defs/s" } } } },
      },
      { p: { a: "x" } },
      { p: "•••" },
    ],
    [
      "what depends on another member",
      { dependencies: { q: { properties: { p: PASSWORD } }, r: ["q"] } },
      { p: "x", q: 1 },
      { p: "•••", q: 1 },
    ],
    [
      "what depends on another member, in later drafts",
      { dependentSchemas: { q: { properties: { p: PASSWORD } } } },
      { p: "x", q: 1 },
      { p: "•••", q: 1 },
    ],
    [
      "what holds on a condition",
      { if: {}, then: { properties: { p: PASSWORD } }, else: { properties: { q: PASSWORD } } },
      { p: "x", q: "y", r: 1 },
      { p: "•••", q: "•••", r: 1 },
    ],
    ["members nothing else is said of", { unevaluatedProperties: PASSWORD }, { p: "x" }, { p: "•••" }],
    ["items nothing else is said of", { unevaluatedItems: PASSWORD }, ["x"], ["•••"]],
    ["names that are secrets", { propertyNames: PASSWORD }, { x: 1 }, "•••"],
    ["text that holds secrets", { properties: { p: { contentSchema: PASSWORD } } }, { p: "x" }, { p: "•••" }],
    ["what a word nobody knows may say", { extends: { properties: { p: PASSWORD } } }, { p: "x" }, "•••"],
    [
      "what writes itself",
      { properties: { o: { properties: { p: PASSWORD } } } },
      { o: { toJSON: () => ({ p: "x" }) } },
      { o: "•••" },
    ],
    [
      "an instance",
      { properties: { o: { properties: { p: PASSWORD } } } },
      { o: new Holder() },
      { o: "•••" },
    ],
    [
      "a member of a strange name",
      { properties: { ["__proto__"]: PASSWORD } },
      JSON.parse('{"__proto__":"x"}'),
      JSON.parse('{"__proto__":"•••"}'),
    ],
  ])("hides %s", (_, schema, input, hidden) => {
    expect(hide(schema, input)).toEqual(hidden);
  });

  it("gives any other input back as it is", () => {
    const input = { p: "x" };
    expect(hide({ properties: { p: { type: "string" } } }, input)).toBe(input);
  });

  it("hides all where a schema cannot be read", () => {
    const operation = query("desk.sign", () => 1);
    const unreadable = Object.defineProperty({ ...operation }, "inputSchema", {
      get: () => {
        throw new Error("not today");
      },
    });
    expect(hidePasswords(unreadable, { p: "x" })).toBe("•••");
    expect(hidePasswords(operation, { p: "x" })).toEqual({ p: "x" });
  });

  it("looks at five hundred schemas for one value, and hides what has one more", () => {
    const withParts = (count: number) => ({
      properties: { p: { allOf: Array.from({ length: count - 1 }, () => ({})) }, s: PASSWORD },
    });
    expect(hide(withParts(500), { p: "x", q: 1 })).toEqual({ p: "x", q: 1 });
    expect(hide(withParts(501), { p: "x", q: 1 })).toEqual({ p: "•••", q: 1 });
  });

  it("looks sixty-four levels deep, and hides what is deeper", () => {
    const tree = { properties: { in: { $ref: "#" }, p: PASSWORD } };
    const nested = (levels: number): unknown => (levels === 0 ? "x" : { in: nested(levels - 1) });
    expect(hide(tree, nested(64))).toEqual(nested(64));
    expect(JSON.stringify(hide(tree, nested(65)))).not.toContain("x");
  });

  it("hides what is left of an input that takes too long to look through", () => {
    const wide = { items: { allOf: Array.from({ length: 400 }, () => ({})) }, contains: { not: PASSWORD } };
    const many = { items: { allOf: Array.from({ length: 400 }, () => ({})) }, $defs: { p: PASSWORD } };
    const shown = hide(many, ["x", ...Array.from({ length: 20_000 }, () => ({ deep: ["y"] }))]) as unknown[];
    expect([shown.length, shown[0], shown.at(-1)]).toEqual([20_001, "x", "•••"]);
    expect(hide(wide, ["x"])).toEqual(["•••"]);
  });
});
