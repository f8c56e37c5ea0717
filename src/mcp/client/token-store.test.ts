import { describe, expect, it } from "vitest";
import { createKeptCredentials, createMemoryTokenStore } from "./token-store.ts";

const tokens = (name: string) => ({ access_token: name });

describe("credentials of authorization servers", () => {
  it("Mcp: are kept apart, and those whose tokens came last are in use", async () => {
    const kept = createKeptCredentials(createMemoryTokenStore());
    await kept.keep({ issuer: "a", client: { client_id: "at a" } });
    await kept.keep({ issuer: "a", tokens: tokens("a") });
    await kept.keep({ issuer: "b", client: { client_id: "at b" } });
    expect(await kept.of(undefined)).toMatchObject({ issuer: "a", client: { client_id: "at a" } });
    await kept.keep({ issuer: "b", tokens: tokens("b") });
    expect(await kept.of(undefined)).toMatchObject({ issuer: "b", tokens: tokens("b") });
    expect(await kept.of("a")).toMatchObject({ tokens: tokens("a") });
    expect(await kept.of("c")).toBeUndefined();
  });

  it("Mcp: are forgotten for one of them alone, or for all", async () => {
    const kept = createKeptCredentials(createMemoryTokenStore());
    for (const issuer of ["a", "b"]) await kept.keep({ issuer, client: {}, tokens: tokens(issuer) });
    await kept.forget(["tokens"], "b");
    expect(await kept.of("b")).toEqual({ issuer: "b", client: {} });
    expect(await kept.of("a")).toMatchObject({ tokens: tokens("a") });
    await kept.forget(["tokens", "client"], undefined);
    expect(await kept.of("a")).toEqual({ issuer: "a" });
  });

  it("Mcp: are kept for eight of them; a ninth takes the place of the one not used for longest", async () => {
    const kept = createKeptCredentials(createMemoryTokenStore());
    for (let n = 1; n <= 8; n++) await kept.keep({ issuer: String(n), tokens: tokens(String(n)) });
    await kept.keep({ issuer: "1", tokens: tokens("again") });
    expect(await kept.of("2")).toBeDefined();
    await kept.keep({ issuer: "9", tokens: tokens("9") });
    expect(await kept.of("2")).toBeUndefined();
    expect(await kept.of("1")).toMatchObject({ tokens: tokens("again") });
  });

  it("Mcp: may belong to any name, and what is no credentials in a store is left out", async () => {
    const store = createMemoryTokenStore();
    const kept = createKeptCredentials(store);
    await kept.keep({ issuer: "__proto__", tokens: tokens("p") });
    expect(await kept.of(undefined)).toMatchObject({ tokens: tokens("p") });
    expect(({} as Record<string, unknown>)["tokens"]).toBeUndefined();
    for (const issuers of ["x", [1, null, {}, { issuer: "a", tokens: "t" }, { issuer: "a", client: [] }]]) {
      await store.save({ issuers, current: "a" });
      expect(await kept.of(undefined)).toBeUndefined();
    }
  });

  it("Mcp: stand beside fields that belong to none of them", async () => {
    const kept = createKeptCredentials(createMemoryTokenStore());
    await Promise.all([kept.set("home", "h"), kept.set("discovery", { d: 1 }), kept.keep({ issuer: "a" })]);
    await kept.set("discovery", undefined);
    expect(await kept.get("discovery")).toBeUndefined();
    expect(await kept.get("home")).toBe("h");
    expect(await kept.of("a")).toEqual({ issuer: "a" });
  });
});
