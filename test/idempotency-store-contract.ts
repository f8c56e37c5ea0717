import { afterEach, describe, expect, it, vi } from "vitest";
import type {
  HeldKey,
  IdempotencyStore,
  KeyBounds,
  KeyEnd,
  KeyRequest,
} from "../src/core/idempotency/idempotency-store.ts";

const WIDE: KeyBounds = { keys: 100, bytes: 100_000, ownKeys: 100, ownBytes: 100_000, keepMs: 1_000 };

const ask = (key: string, owner = "ann", fingerprint = "f"): KeyRequest => ({ owner, key, fingerprint });

/** An outcome whose text and one-letter key are so many bytes. */
const outcome = (bytes: number): KeyEnd => ({
  state: "kept",
  outcome: { kind: "envelope", text: "x".repeat(bytes - 1), requestId: "r", durationMs: 1 },
});

/** Every test of the contract, for one kind of store; `open` gives an empty one. The store reads the clock of `performance`. */
export function describeIdempotencyStore(
  name: string,
  open: () => IdempotencyStore | Promise<IdempotencyStore>,
): void {
  /** Claims a key that nobody has. */
  const claim = async (
    store: IdempotencyStore,
    request: KeyRequest,
    bounds: KeyBounds = WIDE,
  ): Promise<HeldKey> => {
    const claimed = await store.claim(request, bounds);
    if (claimed.state !== "claimed") throw new Error(`The key is ${claimed.state}.`);
    return claimed.held;
  };
  const stateOf = async (store: IdempotencyStore, request: KeyRequest, bounds: KeyBounds = WIDE) =>
    (await store.claim(request, bounds)).state;

  describe(`${name} as a store of idempotency keys`, () => {
    afterEach(() => void vi.useRealTimers());

    it("gives a key to one of those who ask at once, and tells the others that its call runs", async () => {
      const store = await open();
      const all = await Promise.all(Array.from({ length: 20 }, () => store.claim(ask("a"), WIDE)));
      expect(all.filter(({ state }) => state === "claimed")).toHaveLength(1);
      expect(all.filter(({ state }) => state === "running")).toHaveLength(19);
    });

    it("tells how a call ended, and with which fingerprint it was claimed", async () => {
      const store = await open();
      const end = outcome(10);
      await store.settle(await claim(store, ask("a", "ann", "first")), end, WIDE);
      await store.settle(await claim(store, ask("b")), { state: "lost", reason: "unknown" }, WIDE);
      expect(await store.claim(ask("a", "ann", "second"), WIDE)).toEqual({ fingerprint: "first", ...end });
      expect(await store.claim(ask("b"), WIDE)).toMatchObject({ state: "lost", reason: "unknown" });
    });

    it("keeps the same key of two callers apart", async () => {
      const store = await open();
      const ann = await claim(store, ask("a", "ann"));
      const bob = await claim(store, ask("a", "bob"));
      await store.settle(ann, outcome(10), WIDE);
      expect(await stateOf(store, ask("a", "bob"))).toBe("running");
      await store.release({ ...ann, owner: "bob" });
      await store.settle(bob, outcome(20), WIDE);
      expect(await store.claim(ask("a", "ann"), WIDE)).toMatchObject(outcome(10));
      expect(await store.claim(ask("a", "bob"), WIDE)).toMatchObject(outcome(20));
    });

    it("tells those who wait how the call ended, or that they may claim the key", async () => {
      const store = await open();
      expect(await store.ended({ owner: "ann", key: "a" })).toBeUndefined();
      const [kept, released] = [await claim(store, ask("a")), await claim(store, ask("b"))];
      const waiting = [kept, kept, released].map(({ owner, key }) => store.ended({ owner, key }));
      await store.settle(kept, outcome(10), WIDE);
      await store.release(released);
      expect(await Promise.all(waiting)).toEqual([outcome(10), outcome(10), undefined]);
      expect(await store.ended(kept)).toEqual(outcome(10));
      expect(await stateOf(store, ask("b"))).toBe("claimed");
    });

    it("lets nobody end a claim that is not theirs any more", async () => {
      const store = await open();
      const old = await claim(store, ask("a"));
      await store.release(old);
      const held = await claim(store, ask("a"));
      await store.settle(old, outcome(10), WIDE);
      await store.release(old);
      expect(await stateOf(store, ask("a"))).toBe("running");
      await store.settle(held, outcome(20), WIDE);
      await store.settle(held, outcome(30), WIDE);
      await store.release(held);
      expect(await store.claim(ask("a"), WIDE)).toMatchObject(outcome(20));
    });

    it("keeps so many keys, running ones included, of all and of one caller", async () => {
      const store = await open();
      const bounds = { ...WIDE, keys: 3, ownKeys: 2 };
      await store.settle(await claim(store, ask("a"), bounds), outcome(10), bounds);
      const second = await claim(store, ask("b"), bounds);
      expect(await stateOf(store, ask("c"), bounds)).toBe("full");
      await claim(store, ask("c", "bob"), bounds);
      expect(await stateOf(store, ask("d", "bob"), bounds)).toBe("full");
      expect([await stateOf(store, ask("a"), bounds), await stateOf(store, ask("b"), bounds)]).toEqual([
        "kept",
        "running",
      ]);
      await store.release(second);
      expect(await stateOf(store, ask("d", "bob"), bounds)).toBe("claimed");
    });

    it("keeps so many bytes of all and of one caller: one more is lost, and then no new key fits", async () => {
      const store = await open();
      const bounds = { ...WIDE, bytes: 30, ownBytes: 20 };
      const [fits, over] = [await claim(store, ask("a"), bounds), await claim(store, ask("b"), bounds)];
      await store.settle(fits, outcome(10), bounds);
      await store.settle(over, outcome(11), bounds);
      expect(await store.claim(ask("b"), bounds)).toMatchObject({ state: "lost", reason: "too_long" });
      const exact = await claim(store, ask("c"), bounds);
      await store.settle(exact, outcome(10), bounds);
      expect([await stateOf(store, ask("c"), bounds), await stateOf(store, ask("d"), bounds)]).toEqual([
        "kept",
        "full",
      ]);
      const [bobs, last] = [
        await claim(store, ask("a", "bob"), bounds),
        await claim(store, ask("b", "bob"), bounds),
      ];
      await store.settle(bobs, outcome(11), bounds);
      await store.settle(last, outcome(10), bounds);
      expect(await stateOf(store, ask("a", "bob"), bounds)).toBe("lost");
      expect(await stateOf(store, ask("c", "cid"), bounds)).toBe("full");
    });

    it("counts bytes, not characters", async () => {
      const store = await open();
      const end: KeyEnd = {
        state: "kept",
        outcome: { kind: "error", text: "ä€", requestId: "r", durationMs: 1 },
      };
      for (const [key, bytes, state] of [
        ["a", 5, "lost"],
        ["b", 6, "kept"],
      ] as const) {
        const bounds = { ...WIDE, bytes };
        await store.settle(await claim(store, ask(key), bounds), end, bounds);
        expect(await stateOf(store, ask(key))).toBe(state);
      }
    });

    it("forgets a key and its room when its time since the claim is over, and none whose call runs", async () => {
      vi.useFakeTimers({ toFake: ["performance"] });
      const store = await open();
      const bounds = { ...WIDE, keys: 2, ownKeys: 2, bytes: 10, ownBytes: 10 };
      const slow = await claim(store, ask("a"), bounds);
      await store.settle(await claim(store, ask("b"), bounds), outcome(10), bounds);
      vi.advanceTimersByTime(999);
      expect(await stateOf(store, ask("b"), bounds)).toBe("kept");
      expect(await stateOf(store, ask("c"), bounds)).toBe("full");
      vi.advanceTimersByTime(1);
      expect(await stateOf(store, ask("a"), bounds)).toBe("running");
      const next = await claim(store, ask("b"), bounds);
      await store.settle(next, outcome(10), bounds);
      expect(await stateOf(store, ask("b"), bounds)).toBe("kept");
      const waiting = store.ended(slow);
      await store.settle(slow, { state: "lost", reason: "unknown" }, bounds);
      expect(await waiting).toEqual({ state: "lost", reason: "unknown" });
    });

    it("holds plain data", async () => {
      const store = await open();
      const held = await claim(store, ask("a"));
      expect(structuredClone(held)).toEqual(held);
      await store.settle(structuredClone(held), outcome(10), WIDE);
      const kept = await store.claim(ask("a"), WIDE);
      expect(JSON.parse(JSON.stringify(kept))).toEqual(kept);
    });
  });
}
