import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  LONGEST_KEEP_MS,
  LONGEST_LISTED_KEY,
  MOST_LISTED,
  MOST_VALUE_BYTES,
  type StateBounds,
  type StateName,
  type StateStore,
} from "../src/gateway/state/state-store.ts";

/** A store of a test, on a clock that the test moves. */
export interface OpenedState {
  readonly store: StateStore;
  /** Milliseconds by which the clock is ahead. */
  advance(ms: number): void;
}

const WIDE: StateBounds = { records: 100_000, bytes: 1e9, ownRecords: 100_000, ownBytes: 1e9 };

/** Every test of the contract, for one kind of store; `open` may give the same store each time. */
export function describeStateStore(title: string, open: () => Promise<OpenedState>): void {
  /** Names of a collection that no other test has. */
  const names = () => {
    const collection = `c-${randomUUID()}`;
    return (key: string, owner = "ann"): StateName => ({ collection, owner, key });
  };
  const text = (value: string): Uint8Array => Buffer.from(value);
  const until = (store: StateStore, ms = 60_000, bounds = WIDE) => ({ expiresAt: store.now() + ms, bounds });
  const read = async (store: StateStore, name: StateName): Promise<string | undefined> => {
    const found = await store.get(name);
    return found && Buffer.from(found.value).toString();
  };

  describe(`${title} as a store of state`, () => {
    it("gives back what was created, to its owner alone", async () => {
      const [{ store }, name] = [await open(), names()];
      expect(await store.get(name("a"))).toBeUndefined();
      const created = await store.create(name("a"), text("1"), until(store));
      expect(created.state).toBe("created");
      expect(await read(store, name("a"))).toBe("1");
      for (const other of [
        name("a", "bob"),
        name("a", ""),
        name("b"),
        { ...name("a"), collection: "other" },
      ]) {
        expect(await store.get(other)).toBeUndefined();
      }
    });

    it("creates a record for one of those who try at once, and shows it to the others", async () => {
      const [{ store }, name] = [await open(), names()];
      const all = await Promise.all(
        Array.from({ length: 20 }, (_, at) => store.create(name("a"), text(String(at)), until(store))),
      );
      expect(all.filter(({ state }) => state === "created")).toHaveLength(1);
      const kept = await read(store, name("a"));
      for (const one of all) {
        if (one.state === "exists") expect(Buffer.from(one.record.value).toString()).toBe(kept);
        else expect(one.state).toBe("created");
      }
    });

    it("lets one of those who change the same revision succeed, and nobody with an old one", async () => {
      const [{ store }, name] = [await open(), names()];
      const created = await store.create(name("a"), text("0"), until(store));
      if (created.state !== "created") throw new Error(created.state);
      const all = await Promise.all(
        Array.from({ length: 10 }, (_, at) =>
          store.update(name("a"), created.revision, text(String(at + 1)), until(store)),
        ),
      );
      const done = all.filter((one) => one.state === "updated");
      expect([done.length, all.filter(({ state }) => state === "changed").length]).toEqual([1, 9]);
      expect(await store.delete(name("a"), created.revision)).toBe(false);
      const found = await store.get(name("a"));
      expect(found?.revision).toBe(done[0]?.state === "updated" ? done[0].revision : "none");
      expect(await store.delete(name("a"), found?.revision as number)).toBe(true);
      expect(await store.get(name("a"))).toBeUndefined();
      expect(await store.update(name("a"), found?.revision as number, text("x"), until(store))).toEqual({
        state: "changed",
      });
    });

    it("creates anew what was deleted, under another revision", async () => {
      const [{ store }, name] = [await open(), names()];
      const revisions = new Set<number>();
      for (const value of ["1", "2", "3"]) {
        const created = await store.create(name("a"), text(value), until(store));
        if (created.state !== "created") throw new Error(created.state);
        revisions.add(created.revision);
        expect(await read(store, name("a"))).toBe(value);
        expect(await store.delete(name("a"), created.revision)).toBe(true);
        expect(await store.delete(name("a"), created.revision)).toBe(false);
      }
      expect(revisions.size).toBe(3);
    });

    it("forgets a record when its time is over, not before, and gives its room to others", async () => {
      const [{ store, advance }, name] = [await open(), names()];
      const bounds = { ...WIDE, records: 1 };
      await store.create(name("a"), text("1"), until(store, 60_000, bounds));
      advance(59_000);
      expect(await read(store, name("a"))).toBe("1");
      expect(await store.create(name("b"), text("2"), until(store, 60_000, bounds))).toEqual({
        state: "full",
      });
      advance(1_000);
      expect(await store.get(name("a"))).toBeUndefined();
      expect((await store.create(name("b"), text("2"), until(store, 60_000, bounds))).state).toBe("created");
      expect((await store.create(name("a"), text("3"), until(store, 60_000, WIDE))).state).toBe("created");
      expect(await read(store, name("a"))).toBe("3");
    });

    it("keeps so many records and bytes of all and of one owner, however many ask at once", async () => {
      const [{ store }, name] = [await open(), names()];
      const bounds = { records: 5, bytes: 50, ownRecords: 3, ownBytes: 30 };
      const create = (key: string, owner: string, bytes: number) =>
        store.create(name(key, owner), new Uint8Array(bytes), until(store, 60_000, bounds));
      const anns = await Promise.all(["1", "2", "3", "4", "5"].map((key) => create(key, "ann", 10)));
      expect(anns.map(({ state }) => state).sort()).toEqual([
        "created",
        "created",
        "created",
        "full",
        "full",
      ]);
      expect((await create("1", "bob", 21)).state).toBe("full");
      expect((await create("1", "bob", 20)).state).toBe("created");
      expect((await create("1", "cid", 0)).state).toBe("full");
      const found = await store.get(name("1", "bob"));
      expect(
        await store.update(
          name("1", "bob"),
          found?.revision as number,
          new Uint8Array(21),
          until(store, 60_000, bounds),
        ),
      ).toEqual({ state: "full" });
      expect((await store.get(name("1", "bob")))?.value.length).toBe(20);
      const smaller = await store.update(
        name("1", "bob"),
        found?.revision as number,
        new Uint8Array(10),
        until(store, 60_000, bounds),
      );
      expect(smaller.state).toBe("updated");
      expect((await create("1", "cid", 10)).state).toBe("created");
      expect((await create("2", "cid", 0)).state).toBe("full");
    });

    it("keeps values of every size it promises, and refuses one byte more", { timeout: 60_000 }, async () => {
      const [{ store }, name] = [await open(), names()];
      for (const size of [0, 1, 1_047_551, 1_047_552, 1_047_553, 1_048_576, 5_000_000, MOST_VALUE_BYTES]) {
        const value = randomBytes(size);
        const created = await store.create(name(String(size)), value, until(store));
        if (created.state !== "created") throw new Error(created.state);
        expect(
          Buffer.compare(Buffer.from((await store.get(name(String(size))))?.value ?? "none"), value),
        ).toBe(0);
        expect(await store.delete(name(String(size)), created.revision)).toBe(true);
      }
      const over = new Uint8Array(MOST_VALUE_BYTES + 1);
      await expect(store.create(name("over"), over, until(store))).rejects.toThrow(RangeError);
      await expect(
        store.create(name("long"), text(""), until(store, LONGEST_KEEP_MS + 1_000)),
      ).rejects.toThrow(RangeError);
    });

    it("keeps names apart, whatever they hold", async () => {
      const [{ store }, name] = [await open(), names()];
      const hostile = ["", ".", "*", ">", "a.b", "a b", "\n", "\0", "ä€😀", '"],["', "x".repeat(100_000)];
      for (const key of hostile) {
        for (const owner of hostile) {
          const created = await store.create(name(key, owner), text(`${owner}/${key}`), until(store));
          expect(created.state).toBe("created");
        }
      }
      for (const key of hostile) {
        for (const owner of hostile) expect(await read(store, name(key, owner))).toBe(`${owner}/${key}`);
      }
    });

    it("lists the keys of an owner that were written to be listed, page by page", async () => {
      const [{ store, advance }, name] = [await open(), names()];
      const { collection } = name("");
      const listed = (ms = 60_000) => ({ ...until(store, ms), listed: true });
      const list = (owner: string, limit = MOST_LISTED, after?: string) =>
        store.list(collection, owner, { limit, after });
      expect(await list("ann")).toEqual([]);
      // Whatever they hold, in the order of their code units.
      const keys = ["", "\n", "*.>", "a", "ab", "b", "ä", "€", "x".repeat(LONGEST_LISTED_KEY)].sort();
      const revisions = new Map<string, number>();
      for (const key of [...keys].reverse()) {
        const created = await store.create(name(key), text(key), listed());
        if (created.state === "created") revisions.set(key, created.revision);
      }
      await store.create(name("hidden"), text(""), until(store));
      await store.create(name("a", "bob"), text(""), listed(30_000));
      expect(await list("ann")).toEqual(keys);
      expect(await list("bob")).toEqual(["a"]);
      expect(await store.list(`${collection}-other`, "ann", { limit: 10 })).toEqual([]);
      const pages: string[][] = [];
      for (let after: string | undefined; ; ) {
        const page = await list("ann", 4, after);
        if (page.length === 0) break;
        pages.push([...page]);
        after = page.at(-1);
      }
      expect(pages.map(({ length }) => length)).toEqual([4, 4, 1]);
      expect(pages.flat()).toEqual(keys);
      // A change says again whether it is listed.
      await store.update(name("a"), revisions.get("a") ?? 0, text("2"), listed());
      await store.update(name("b"), revisions.get("b") ?? 0, text("2"), until(store));
      await store.delete(name("ab"), revisions.get("ab") ?? 0);
      expect(await list("ann")).toEqual(keys.filter((key) => key !== "b" && key !== "ab"));
      advance(30_000);
      expect(await list("bob")).toEqual([]);
      for (const limit of [0, MOST_LISTED + 1, 1.5])
        await expect(list("ann", limit)).rejects.toThrow(RangeError);
      const long = "x".repeat(LONGEST_LISTED_KEY + 1);
      await expect(store.create(name(long), text(""), listed())).rejects.toThrow(RangeError);
    });

    it("tells those who watch a record that it has changed", async () => {
      const [{ store }, name] = [await open(), names()];
      let heard = 0;
      let told: () => void = () => {};
      const stop = store.watch(name("a"), () => {
        heard++;
        told();
      });
      const next = () => new Promise<void>((resolve) => (told = resolve));
      let waiting = next();
      const created = await store.create(name("a"), text("1"), until(store));
      if (created.state !== "created") throw new Error(created.state);
      await waiting;
      waiting = next();
      await store.update(name("a"), created.revision, text("2"), until(store));
      await waiting;
      waiting = next();
      await store.delete(name("a"), (await store.get(name("a")))?.revision as number);
      await waiting;
      stop();
      const before = heard;
      await store.create(name("a"), text("3"), until(store));
      expect(heard).toBe(before);
    });
  });
}
