import { describe, expect, it } from "vitest";
import { query } from "../../test/make-operation.ts";
import { ids, pair } from "../../test/remote-pair.ts";
import type { AccessControl } from "../core/access/access.ts";
import type { Identity } from "../core/access/identity.ts";

describe("RemoteRegistry.list", () => {
  const rules: Record<string, AccessControl | undefined> = {
    open: undefined,
    known: {},
    read: { scopes: { allOf: ["read"] } },
    both: { scopes: { allOf: ["read", "write"] } },
    either: { scopes: { anyOf: ["write", "admin"] } },
    project: { resource: { pointer: "/id", type: "project" } },
    mixed: { scopes: { allOf: ["read"] }, resource: [{ pointer: "/id", type: "project" }] },
  };
  const identities: (Identity | undefined)[] = [
    undefined,
    ...[[], ["read"], ["write"], ["read", "write"], ["admin"]].flatMap((scopes) =>
      [undefined, {}, { project: [] }, { project: ["p1"] }, { project: "*" as const }].map((resources) => ({
        subject: "s",
        scopes,
        ...(resources && { resources }),
      })),
    ),
  ];

  it("Discovery: shows every caller exactly what the registry behind it would", async () => {
    const { remote, registry } = await pair(
      Object.entries(rules).map(([name, access]) => query(`a.${name}`, () => 1, access && { access })),
    );
    for (const identity of identities) {
      expect([identity, ids(remote.list({ identity }))]).toEqual([
        identity,
        ids(registry.list({ identity })),
      ]);
    }
    expect(ids(remote.list())).toEqual(["a.open"]);
    expect(() => remote.list({ identity: { subject: "" } })).toThrow(TypeError);
  });

  it("Discovery: gives the same objects each time", async () => {
    const { remote } = await pair([query("a.x", () => 1), query("a.y", () => 1)]);
    const [x, y] = remote.list();
    expect(remote.list().map((operation) => operation === x || operation === y)).toEqual([true, true]);
    expect(remote.get("a.x")).toBe(x);
    expect(remote.operations).toBe(remote.operations);
  });
});
