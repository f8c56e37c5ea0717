import { describe, expect, it } from "vitest";
import { createRandom } from "../../../test/random.ts";
import { runs } from "../../../test/runs.ts";
import type { SharedFlight } from "../policy/shared-reuse.ts";
import { createLocalStateStore } from "./local-state-store.ts";
import { ReplicaLease } from "./replica-lease.ts";
import { StateReuse } from "./state-reuse.ts";
import { StateError, type StateStore } from "./state-store.ts";

const NAME = { owner: "ann", key: "call" };
const LIMITS = { keepMs: 60_000, entries: 100, characters: 10_000, share: 1 / 4 };

/** What several replicas have on one store, which may fail between any two steps. */
const open = (
  options: { readonly now?: () => number; readonly step?: (replica: string) => Promise<void> } = {},
) => {
  const base = createLocalStateStore({ now: options.now });
  const { step = async () => {} } = options;
  const replica = (name: string) => {
    const around = async <T>(run: () => Promise<T>): Promise<T> => {
      await step(name);
      const made = await run();
      await step(name);
      return made;
    };
    const store: StateStore = {
      isExclusive: false,
      isUp: true,
      now: () => base.now(),
      get: (name) => around(() => base.get(name)),
      create: (name, value, write) => around(() => base.create(name, value, write)),
      update: (name, revision, value, write) => around(() => base.update(name, revision, value, write)),
      delete: (name, revision) => around(() => base.delete(name, revision)),
      mayHave: (name) => base.mayHave(name),
      list: (collection, owner, listing) => around(() => base.list(collection, owner, listing)),
      watch: (name, listener) => base.watch(name, listener),
      close: async () => {},
    };
    const lease = new ReplicaLease(store, { replica: name, leaseMs: 150 });
    const reuse = new StateReuse({ reach: async () => ({ store, lease }) });
    return { name, reuse, lease, join: (signal = new AbortController().signal) => reuse.join(NAME, signal) };
  };
  const gone = async (name: string): Promise<void> => {
    const record = { collection: "replicas", owner: "", key: name };
    const found = await base.get(record);
    if (found !== undefined) await base.delete(record, found.revision);
  };
  return { base, replica, gone };
};

const end = (flight: SharedFlight, text: string | undefined): void => {
  if (flight.state !== "leading") throw new Error(flight.state);
  flight.end(text);
};

describe("results that replicas share", () => {
  it("are had by every replica, for whoever they were made for, until they are as old as is asked for", async () => {
    let ahead = 0;
    const { replica } = open({ now: () => Date.now() + ahead });
    const [one, two] = [replica("one").reuse, replica("two").reuse];
    one.set(NAME, "{}", LIMITS);
    await expect.poll(() => two.get(NAME, 1_000)).toMatchObject({ text: "{}" });
    expect(await two.get({ owner: "bob", key: "call" }, 1_000)).toBeUndefined();
    ahead = 1_000;
    expect(await two.get(NAME, 1_000)).toBeUndefined();
    expect((await two.get(NAME, 60_000))?.ageMs).toBeGreaterThanOrEqual(1_000);
    // One that is too old for somebody is replaced.
    two.set(NAME, '"new"', LIMITS);
    await expect.poll(() => one.get(NAME, 1_000)).toMatchObject({ text: '"new"' });
    ahead = 61_000;
    expect(await one.get(NAME, 3_600_000)).toBeUndefined();
  });

  it("have bounds: a part for one caller, so that there is room for others", async () => {
    const { replica } = open();
    const { reuse } = replica("one");
    const has = async (owner: string, key: string) => (await reuse.get({ owner, key }, 1_000)) !== undefined;
    for (let count = 1; count <= 26; count++) reuse.set({ owner: "ann", key: `${count}` }, "1", LIMITS);
    await expect.poll(() => has("ann", "25")).toBe(true);
    reuse.set({ owner: "bob", key: "1" }, "1", LIMITS);
    await expect.poll(() => has("bob", "1")).toBe(true);
    expect(await has("ann", "26")).toBe(false);
    reuse.set({ owner: "bob", key: "long" }, "x".repeat(2_501), LIMITS);
    reuse.set({ owner: "bob", key: "after" }, "x", LIMITS);
    await expect.poll(() => has("bob", "after")).toBe(true);
    expect(await has("bob", "long")).toBe(false);
  });
});

describe("a run that replicas wait for", () => {
  it("is one replica's, and its result is had by those who waited, not by those who come later", async () => {
    const { replica } = open();
    const [one, two, three] = [replica("one"), replica("two"), replica("three")];
    const leading = await one.join();
    const waiting = [two.join(), three.join()];
    // Whoever comes after the end waits for nothing.
    await new Promise((resolve) => setImmediate(resolve));
    end(leading, '"result"');
    expect(await Promise.all(waiting)).toEqual(Array(2).fill({ state: "landed", text: '"result"' }));
    const later = await three.join();
    expect(later.state).toBe("leading");
    end(later, undefined);
    expect((await two.join()).state).toBe("leading");
  });

  it("that came to nothing is run by the next, and one whose caller leaves is waited for no more", async () => {
    const { replica } = open();
    const [one, two] = [replica("one"), replica("two")];
    const leading = await one.join();
    const leaving = new AbortController();
    const left = two.join(leaving.signal);
    const waiting = two.join();
    leaving.abort();
    expect(await left).toEqual({ state: "alone" });
    end(leading, undefined);
    expect((await waiting).state).toBe("leading");
  });

  it("holds nobody up when its replica is gone", async () => {
    const { replica, gone } = open();
    const [one, two] = [replica("one"), replica("two")];
    expect((await one.join()).state).toBe("leading");
    const waiting = two.join();
    await one.lease.close();
    await gone("one");
    expect((await waiting).state).toBe("leading");
  });

  it("holds nobody up when the store did not take its end, once it takes it", async () => {
    let isAway = false;
    const { replica } = open({
      step: async (name) => {
        if (isAway && name === "one") throw new StateError("unreachable", "Planted.");
      },
    });
    const [one, two] = [replica("one"), replica("two")];
    const leading = await one.join();
    const waiting = two.join();
    isAway = true;
    end(leading, '"result"');
    await new Promise((resolve) => setTimeout(resolve, 20));
    isAway = false;
    expect((await waiting).state).toBe("leading");
  });

  it("holds nobody up when two claims of one replica have an uncertain end, and the first was stored", async () => {
    let steps = Number.POSITIVE_INFINITY;
    const { replica } = open({
      step: async (name) => {
        if (name === "one" && steps-- === 0) throw new StateError("slow", "Planted.", { uncertain: true });
      },
    });
    const [one, two] = [replica("one"), replica("two")];
    await one.lease.hold();
    steps = 1; // After the record was created.
    expect(await one.join()).toEqual({ state: "alone" });
    steps = 2; // Before the record is updated.
    expect(await one.join()).toEqual({ state: "alone" });
    expect((await two.join()).state).toBe("leading");
  });

  it("is run alone where the store cannot be asked, is a process's own, or has no room", async () => {
    const lost = new StateReuse({
      reach: async () => {
        throw new StateError("unreachable", "Planted.");
      },
    });
    const { signal } = new AbortController();
    expect(await lost.join(NAME, signal)).toEqual({ state: "alone" });
    expect(await lost.get(NAME, 1_000)).toBeUndefined();
    lost.set(NAME, "1", LIMITS);
    const own = new StateReuse({ reach: async () => undefined });
    expect(await own.join(NAME, signal)).toEqual({ state: "alone" });
    const { replica } = open();
    const { reuse } = replica("one");
    for (let count = 0; count < 2_500; count++) await reuse.join({ owner: "ann", key: `${count}` }, signal);
    expect(await reuse.join({ owner: "ann", key: "more" }, signal)).toEqual({ state: "alone" });
    expect((await reuse.join({ owner: "bob", key: "0" }, signal)).state).toBe("leading");
  });

  it("is led by one at a time of those who live, and everybody ends, whatever happens in which order", async () => {
    const seen = { landed: 0, led: 0 };
    for (let seed = 1; seed <= runs(200).numRuns; seed++) {
      const random = createRandom(seed);
      const dead = new Set<string>();
      const steps: (() => void)[] = [];
      const { replica, gone } = open({
        step: async (name) => {
          await new Promise<void>((resolve) => void steps.push(resolve));
          if (dead.has(name)) await new Promise(() => {});
          if (random.chance(0.02)) throw new StateError("slow", "Planted.", { uncertain: true });
        },
      });
      const replicas = ["one", "two", "three"].map(replica);
      const leading = new Set<string>();
      let open_ = 0;
      const call = async ({ name, join }: (typeof replicas)[number]): Promise<void> => {
        const flight = await join();
        if (dead.has(name)) return;
        if (flight.state === "landed") seen.landed++;
        if (flight.state !== "leading") return;
        seen.led++;
        leading.add(name);
        expect([seed, leading.size]).toEqual([seed, 1]);
        for (let count = random.below(5); count > 0; count--)
          await new Promise<void>((resolve) => void steps.push(resolve));
        leading.delete(name);
        flight.end(random.chance(0.8) ? '"result"' : undefined);
      };
      let left = 12;
      let crashes = seed % 2;
      for (let turns = 0; turns < 20_000 && (left > 0 || open_ > 0); turns++) {
        if (left > 0 && random.chance(0.2)) {
          left--;
          const one = random.pick(replicas.filter(({ name }) => !dead.has(name)));
          open_++;
          const cut = (): boolean => dead.has(one.name);
          void call(one).finally(() => {
            if (!cut()) open_--;
          });
        }
        if (crashes > 0 && left < 6 && random.chance(0.1)) {
          crashes--;
          // Nothing of it is waited for: what runs at others has to end all the same.
          dead.add("one");
          leading.delete("one");
          left = 0;
          open_ = 0;
          await gone("one");
          break;
        }
        steps.splice(random.below(Math.max(steps.length, 1)), 1)[0]?.();
        // With no step left, what goes on waits for a timer.
        if (steps.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        else await new Promise((resolve) => setImmediate(resolve));
      }
      expect([seed, open_]).toEqual([seed, 0]);
      const last = call(replicas.at(-1) as (typeof replicas)[number]);
      let isOver = false;
      void last.then(() => {
        isOver = true;
      });
      for (let turns = 0; turns < 20_000 && !isOver; turns++) {
        steps.splice(random.below(Math.max(steps.length, 1)), 1)[0]?.();
        if (steps.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        else await new Promise((resolve) => setImmediate(resolve));
      }
      expect([seed, isOver]).toEqual([seed, true]);
      for (const { lease } of replicas) void lease.close();
      for (const { name } of replicas) dead.add(name);
    }
    expect(seen.led).toBeGreaterThan(0);
    expect(seen.landed).toBeGreaterThan(0);
  }, 120_000);
});
