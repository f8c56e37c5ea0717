import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { sourceNames } from "./loaded-config.ts";

const toConfig = (mcp: readonly string[], openapi: readonly string[] = []) => ({
  mcpServers: Object.fromEntries(mcp.map((name) => [name, {}])),
  openapi: Object.fromEntries(openapi.map((name) => [name, { document: "x.json" }])),
});

describe("sourceNames", () => {
  it("keeps names that are namespaces, and makes others so", () => {
    const names = sourceNames(toConfig(["files", "my server", "läden/eins", "local", "bus"], ["pet.store"]));
    expect([...names]).toEqual([
      ["mcpServers.files", "files"],
      ["mcpServers.my server", "my_server"],
      ["mcpServers.läden/eins", "l_den_eins"],
      ["mcpServers.local", "local"],
      ["mcpServers.bus", "bus"],
      ["openapi.pet.store", "pet_store"],
    ]);
  });

  it("numbers names that collide, across kinds too", () => {
    const names = sourceNames(toConfig(["a b", "a_b", "a_b_2"], ["a_b", "a.b"]));
    expect([...names.values()]).toEqual(["a_b", "a_b_2", "a_b_2_2", "a_b_3", "a_b_4"]);
  });

  it("takes __proto__ for an ordinary name", () => {
    const mcpServers = JSON.parse('{ "__proto__": {} }');
    expect([...sourceNames({ mcpServers })]).toEqual([["mcpServers.__proto__", "__proto__"]]);
  });

  it("gives every source of any config a namespace of its own, at most 64 characters long", () => {
    const key = fc.oneof(
      fc.string(),
      fc.constantFrom("a", "a_2", "a b", "a.b", "x".repeat(64), `${"x".repeat(64)}y`),
    );
    const keys = fc.uniqueArray(key, { maxLength: 30 });
    fc.assert(
      fc.property(keys, keys, (mcp, openapi) => {
        const names = [...sourceNames(toConfig(mcp, openapi)).values()];
        expect(names).toHaveLength(mcp.length + openapi.length);
        expect(new Set(names).size).toBe(names.length);
        for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      }),
    );
  });
});
