import { describe, expect, it } from "vitest";
import { HeldIdentity, type Identity } from "./identity.ts";

const ada: Identity = {
  subject: "ada",
  scopes: ["a", "b"],
  resources: { project: ["p1"], team: "*" },
  tier: "pro",
  claims: { email: "ada@example.org", groups: [{ name: "x" }] },
};

describe("HeldIdentity", () => {
  it("RE-10 copies every field", () => {
    expect(HeldIdentity.of(ada)).toEqual(ada);
    expect(HeldIdentity.of({ subject: "bob" })).toEqual({ subject: "bob", scopes: [], resources: {} });
  });

  it("RE-10 cannot be raised by whoever holds the original", () => {
    const scopes = ["read"];
    const projects = ["p1"];
    const resources: Record<string, string[] | "*"> = { project: projects };
    const claims = { groups: ["x"] };
    const held = HeldIdentity.of({ subject: "ada", scopes, resources, claims });
    scopes.push("admin");
    projects.push("p2");
    resources.team = "*";
    claims.groups.push("root");
    expect(held).toEqual({
      subject: "ada",
      scopes: ["read"],
      resources: { project: ["p1"] },
      claims: { groups: ["x"] },
    });
  });

  it("RE-10 is frozen all the way down", () => {
    const held = HeldIdentity.of(ada);
    const attempts = [
      () => Object.assign(held, { subject: "root" }),
      () => (held.scopes as string[]).push("admin"),
      () => Object.assign(held.resources, { team: ["t"] }),
      () => (held.resources["project"] as string[]).push("p2"),
      () => Object.assign(held.claims as object, { admin: true }),
      () => (held.claims as { groups: { name: string }[] }).groups.pop(),
      () => Object.assign((held.claims as { groups: [object] }).groups[0], { name: "root" }),
    ];
    for (const attempt of attempts) expect(attempt).toThrow(TypeError);
    expect(held).toEqual(ada);
  });

  it("RE-10 takes no second copy of a copy, and is not fooled by something that looks like one", () => {
    const held = HeldIdentity.of(ada);
    expect(HeldIdentity.of(held)).toBe(held);
    const forged = Object.setPrototypeOf({ subject: "eve", scopes: ["x"] }, HeldIdentity.prototype);
    expect(HeldIdentity.of(forged)).not.toBe(forged);
  });

  it("RE-10 keeps cyclic and binary claims", () => {
    const claims: Record<string, unknown> = { bytes: new Uint8Array([1]) };
    claims.self = claims;
    const held = HeldIdentity.of({ subject: "ada", claims });
    expect(held.claims?.["self"]).toBe(held.claims);
    expect(held.claims?.["bytes"]).toEqual(new Uint8Array([1]));
  });

  it("RE-10 reads resource types called __proto__ like any other", () => {
    const resources = JSON.parse('{"__proto__": ["p"]}');
    const held = HeldIdentity.of({ subject: "ada", resources });
    expect(Object.entries(held.resources)).toEqual([["__proto__", ["p"]]]);
    expect(held.resources["constructor"]).toBeUndefined();
  });

  it.each([
    [null, "must be an object with a subject; leave it out for an anonymous call"],
    ["ada", "must be an object with a subject"],
    [{}, "needs a subject"],
    [{ subject: "" }, "needs a subject"],
    [{ subject: 5 }, "needs a subject"],
    [{ subject: "a", scopes: "admin" }, "The scopes of an identity must be an array of strings"],
    [{ subject: "a", scopes: [1] }, "The scopes of an identity must be strings"],
    [{ subject: "a", resources: null }, "The resources of an identity must be an object"],
    [{ subject: "a", resources: "p1" }, "The resources of an identity must be an object"],
    [
      { subject: "a", resources: { project: "p1" } },
      'The resources of type "project" of an identity must be an array',
    ],
    [
      { subject: "a", resources: { project: [1] } },
      'The resources of type "project" of an identity must be strings',
    ],
    [{ subject: "a", tier: 3 }, "The tier of an identity must be a string"],
  ])("RE-10 refuses %j as an identity", (value, message) => {
    expect(() => HeldIdentity.of(value as never)).toThrow(TypeError);
    expect(() => HeldIdentity.of(value as never)).toThrow(message);
  });

  it("RE-10 leaves out what is undefined", () => {
    const loose = { subject: "a", tier: undefined, claims: undefined, resources: { project: undefined } };
    const held = HeldIdentity.of(loose as never);
    expect(Object.keys(held)).toEqual(["subject", "scopes", "resources"]);
    expect(Object.keys(held.resources)).toEqual([]);
  });
});
