import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runs } from "../../test/runs.ts";
import { defineOperation } from "../core/operation/operation.ts";
import { assertNamespace, nameDigest, splitId, toOperationName } from "./names.ts";

const accepts = (name: string) =>
  defineOperation({
    namespace: "a",
    name,
    version: "1.0.0",
    type: "query",
    description: "",
    handler: () => 1,
  });

describe("toOperationName", () => {
  it.each(["echo", "get-sum", "a.b/c_d-e", "a__abcdefghijklm", "__proto__", "constructor", "x".repeat(200)])(
    "RE-22 keeps %s as it is",
    (name) => expect(toOperationName(name)).toBe(name),
  );

  it.each([
    ["add numbers!", /^add_numbers___[a-z2-7]{13}$/],
    ["", /^tool__[a-z2-7]{13}$/],
    ["../../etc", /^etc__[a-z2-7]{13}$/],
    ["日本", /^tool__[a-z2-7]{13}$/],
    ["x".repeat(201), /^x{185}__[a-z2-7]{13}$/],
  ])("RE-22 escapes %j readably", (name, expected) => expect(toOperationName(name)).toMatch(expected));

  it("RE-22 gives any name one that core accepts, and no two odd names the same", () => {
    const odd = fc.oneof(
      fc.string({ unit: "binary", maxLength: 250 }),
      fc.string({ unit: fc.constantFrom("a", "_", ".", "/", "-", " ", "\ud800", "\udc00"), maxLength: 6 }),
      fc.constantFrom("a b", "a_b", "a  b", "a\u0000b"),
    );
    fc.assert(
      fc.property(odd, odd, (a, b) => {
        for (const name of [a, toOperationName(a)]) accepts(toOperationName(name));
        expect(toOperationName(toOperationName(a))).toBe(toOperationName(a));
        if (a !== b) expect(toOperationName(a)).not.toBe(toOperationName(b));
      }),
      runs(500),
    );
  });

  it("RE-22 tells lone surrogates apart, which UTF-8 would not", () => {
    expect(nameDigest("\ud800")).not.toBe(nameDigest("\ud801"));
    expect(nameDigest("x")).toMatch(/^[a-z2-7]{13}$/);
  });
});

describe("namespaces and ids", () => {
  it.each(["a", "_", "A-b_9", "x".repeat(64)])("Mcp: takes the namespace %s", (namespace) => {
    expect(() => assertNamespace(namespace)).not.toThrow();
  });

  it.each(["", "-a", "a.b", "a b", "x".repeat(65), undefined, 7])(
    "Mcp: refuses the namespace %s",
    (namespace) => {
      expect(() => assertNamespace(namespace)).toThrow(TypeError);
    },
  );

  it("Mcp: splits ids at the first dot", () => {
    expect(splitId("a.b.c")).toEqual({ namespace: "a", name: "b.c" });
    for (const bad of ["a", ".a", "a.", "", 1, null, "a.-b", "a b.c"]) expect(splitId(bad)).toBeUndefined();
  });
});
