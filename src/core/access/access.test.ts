import { describe, expect, it } from "vitest";
import { type AccessControl, AccessRule } from "./access.ts";
import { HeldIdentity, type Identity } from "./identity.ts";

const codeOf = (
  access: AccessControl,
  identity: Omit<Identity, "subject"> | undefined,
  input: unknown = {},
) => {
  const held = identity && HeldIdentity.of({ subject: "ada", ...identity });
  return new AccessRule(access, "a.b").refusal(held, input)?.code;
};

const admits = (access: AccessControl, identity: Omit<Identity, "subject"> | undefined) =>
  new AccessRule(access, "a.b").admits(identity && HeldIdentity.of({ subject: "ada", ...identity }));

describe("AccessRule", () => {
  it("RE-10 asks for an identity as soon as access is declared", () => {
    expect(codeOf({}, undefined)).toBe("UNAUTHENTICATED");
    const message = 'Calling "a.b" needs an identity, and the call has none.';
    expect(new AccessRule({}, "a.b").refusal(undefined, {})?.message).toBe(message);
    expect(codeOf({}, {})).toBeUndefined();
    expect(admits({}, undefined)).toBe(false);
    expect(admits({}, {})).toBe(true);
  });

  it.each([
    [{ allOf: ["a", "b"] }, ["a", "b", "c"], undefined],
    [{ allOf: ["a", "b"] }, ["a"], "ACCESS_DENIED"],
    [{ allOf: ["a", "b"] }, [], "ACCESS_DENIED"],
    [{ anyOf: ["a", "b"] }, ["b"], undefined],
    [{ anyOf: ["a", "b"] }, ["c"], "ACCESS_DENIED"],
    [{ allOf: ["a"], anyOf: ["b", "c"] }, ["a", "c"], undefined],
    [{ allOf: ["a"], anyOf: ["b", "c"] }, ["a"], "ACCESS_DENIED"],
    [{ allOf: ["a"], anyOf: ["b", "c"] }, ["c"], "ACCESS_DENIED"],
  ])("RE-10 holds %j against the scopes %j: %s", (scopes, held, code) => {
    expect(codeOf({ scopes }, { scopes: held })).toBe(code);
    expect(admits({ scopes }, { scopes: held })).toBe(code === undefined);
  });

  const onProject: AccessControl = { resource: { pointer: "/project/id", type: "project" } };
  const owner = { resources: { project: ["p1", "p2"] } };

  it("RE-10 binds a call to the resource its input names", () => {
    expect(codeOf(onProject, owner, { project: { id: "p2" } })).toBeUndefined();
    expect(codeOf(onProject, owner, { project: { id: "p3" } })).toBe("ACCESS_DENIED");
    expect(codeOf(onProject, { resources: { project: "*" } }, { project: { id: "p3" } })).toBeUndefined();
    expect(codeOf(onProject, { resources: { team: ["p1"] } }, { project: { id: "p1" } })).toBe(
      "ACCESS_DENIED",
    );
    expect(codeOf(onProject, {}, { project: { id: "p1" } })).toBe("ACCESS_DENIED");
  });

  it("RE-10 reads an id that is the whole input, and takes a listed star for an id like any other", () => {
    const whole: AccessControl = { resource: { pointer: "", type: "project" } };
    expect(codeOf(whole, owner, "p1")).toBeUndefined();
    expect(codeOf(whole, { resources: { project: ["*"] } }, "p1")).toBe("ACCESS_DENIED");
  });

  it("RE-10 asks for every resource when several are named", () => {
    const both: AccessControl = {
      resource: [
        { pointer: "/from", type: "account" },
        { pointer: "/to", type: "account" },
      ],
    };
    const holder = { resources: { account: ["a", "b"] } };
    expect(codeOf(both, holder, { from: "a", to: "b" })).toBeUndefined();
    expect(codeOf(both, holder, { from: "a", to: "c" })).toBe("ACCESS_DENIED");
    expect(codeOf(both, holder, { to: "b" })).toBe("ACCESS_DENIED");
  });

  it.each([
    ["a missing id", {}],
    ["a number", { project: { id: 1 } }],
    ["a list", { project: { id: ["p1"] } }],
    ["nothing at all", undefined],
    ["null", { project: null }],
    ["text in the way", { project: "p1" }],
    ["an inherited id", { project: Object.create({ id: "p1" }) }],
    ["an id behind a getter", { project: Object.defineProperty({}, "id", { get: () => "p1" }) }],
  ])("RE-10 denies %s", (_, input) => {
    expect(codeOf(onProject, { resources: { project: "*" } }, input)).toBe("ACCESS_DENIED");
  });

  it("RE-10 runs no getter and survives hostile proxies", () => {
    let ran = false;
    const trap = Object.defineProperty({}, "project", {
      get() {
        ran = true;
        throw new Error("hostile");
      },
    });
    expect(codeOf(onProject, owner, trap)).toBe("ACCESS_DENIED");
    expect(ran).toBe(false);
    const proxy = new Proxy(
      {},
      {
        getOwnPropertyDescriptor() {
          throw new Error("hostile");
        },
      },
    );
    expect(codeOf(onProject, owner, proxy)).toBe("ACCESS_DENIED");
  });

  it("RE-10 admits exactly those whom some input could get past it", () => {
    expect(admits(onProject, owner)).toBe(true);
    expect(admits(onProject, { resources: { project: "*" } })).toBe(true);
    expect(admits(onProject, { resources: { project: [] } })).toBe(false);
    expect(admits(onProject, { resources: { team: ["p1"] } })).toBe(false);
  });

  it("RE-10 does not tell which scope or resource is missing", () => {
    const rule = new AccessRule({ scopes: { allOf: ["secret:scope"] } }, "a.b");
    const error = rule.refusal(HeldIdentity.of({ subject: "ada" }), {});
    expect(JSON.stringify(error)).not.toContain("secret");
    expect(error?.message).toContain('"a.b"');
  });

  it.each([
    [{ scope: ["a"] }, 'access has no "scope"; it may hold scopes and resource.'],
    [{ scopes: ["a"] }, "access.scopes must be an object"],
    [{ scopes: { all: ["a"] } }, 'access.scopes has no "all"'],
    [{ scopes: { allOf: [] } }, "access.scopes.allOf must list"],
    [{ scopes: { anyOf: "a" } }, "access.scopes.anyOf must list"],
    [{ scopes: { anyOf: [""] } }, "access.scopes.anyOf must list"],
    [{ scopes: { anyOf: ["a", 5] } }, "access.scopes.anyOf must list"],
    [{ resource: { pointer: 5, type: "project" } }, "access.resource.pointer must be a JSON pointer"],
    [
      { resource: { pointer: "projectId", type: "project" } },
      "access.resource.pointer must be a JSON pointer",
    ],
    [{ resource: { pointer: "/projectId" } }, "access.resource.type must be"],
    [{ resource: { path: "/a", type: "b" } }, 'access.resource has no "path"'],
    [{ resource: "project" }, "access.resource must be an object"],
    [null, "access must be an object"],
    [["admin"], "access must be an object"],
  ])("RE-10 refuses the rule %j rather than leave the door open", (access, message) => {
    expect(() => new AccessRule(access as never, "a.b")).toThrow(`Operation "a.b": ${message}`);
  });
});
