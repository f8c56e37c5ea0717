import { describe, expect, it } from "vitest";
import { REMEMBERED_TOKENS, TokenCache } from "./token-cache.ts";

interface Found {
  readonly key: string;
  fresh: boolean;
}

function counted(fresh = true) {
  const found: string[] = [];
  const cache = new TokenCache<Found>((value) => value.fresh);
  const get = (key: string) =>
    cache.get(key, async () => {
      found.push(key);
      return { key, fresh };
    });
  return { cache, found, get };
}

describe("what is remembered of tokens", () => {
  it("Identity: is found out once, also by those who ask at the same time", async () => {
    const { found, get } = counted();
    const [first, second] = await Promise.all([get("a"), get("a")]);
    expect(first).toBe(second);
    expect(await get("a")).toBe(first);
    expect(found).toEqual(["a"]);
  });

  it("Identity: is forgotten once it is not fresh, and never kept when it was not", async () => {
    const { found, get } = counted();
    const first = await get("a");
    first.fresh = false;
    expect(await get("a")).not.toBe(first);
    expect(found).toEqual(["a", "a"]);
    const stale = counted(false);
    await stale.get("a");
    expect(stale.cache.size).toBe(0);
  });

  it("Identity: is no failure", async () => {
    const cache = new TokenCache<number>(() => true);
    const failing = async (): Promise<number> => {
      throw new Error("no");
    };
    await expect(cache.get("a", failing)).rejects.toThrow("no");
    expect(await cache.get("a", async () => 7)).toBe(7);
  });

  it("Identity: is at most 1,000 tokens, those used last", async () => {
    expect(REMEMBERED_TOKENS).toBe(1_000);
    const { cache, found, get } = counted();
    for (let i = 0; i < 1_000; i++) await get(`${i}`);
    await get("0");
    expect([cache.size, found.length]).toEqual([1_000, 1_000]);
    await get("one more");
    expect(cache.size).toBe(1_000);
    await get("0");
    expect(found).toHaveLength(1_001);
    await get("1");
    expect(found).toHaveLength(1_002);
  });
});
