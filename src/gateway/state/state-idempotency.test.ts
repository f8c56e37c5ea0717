import { describe, expect, it } from "vitest";
import { createKeys, type OpenedKeys } from "../../../test/state-keys.ts";
import type { HeldKey, KeyBounds, KeyEnd, KeyName } from "../../core/idempotency/idempotency-store.ts";
import { createLocalStateStore } from "./local-state-store.ts";
import { StateError, type StateStore } from "./state-store.ts";

const BOUNDS: KeyBounds = { keys: 100, bytes: 1e6, ownKeys: 100, ownBytes: 1e6, keepMs: 3_600_000 };
const end = (text: string): KeyEnd => ({
  state: "kept",
  outcome: { kind: "envelope", text, requestId: "r", durationMs: 1 },
});

it("stores how calls ended once the store is back, whatever it says about one of them", async () => {
  const base = createLocalStateStore();
  let isLost = false;
  /** The record of the first key cannot be written any more; while the store is lost, none can. */
  const update: StateStore["update"] = (name, ...change) => {
    if (isLost) throw new StateError("unreachable", "Planted.");
    if (name.key === "first") throw new StateError("damaged", "Planted.");
    return base.update(name, ...change);
  };
  const own = createKeys({ ...around(base), update }, "one", 3_600_000);
  const held: HeldKey[] = [];
  for (const key of ["first", "second"]) {
    const claimed = await own.keys.claim({ owner: "ann", key, fingerprint: "f" }, BOUNDS);
    if ("held" in claimed) held.push(claimed.held);
  }
  isLost = true;
  for (const each of held) await own.keys.settle(each, end(`"${each.key}"`), BOUNDS);
  isLost = false;
  await own.keys.close();
  const other = createKeys(base, "two", 3_600_000);
  expect(await other.keys.claim({ owner: "ann", key: "second", fingerprint: "f" }, BOUNDS)).toEqual({
    fingerprint: "f",
    ...end('"second"'),
  });
  // This replica itself knows of the other one too.
  expect(own.keys.own({ owner: "ann", key: "first" })).toEqual({ fingerprint: "f", ...end('"first"') });
  await other.close();
  await own.close();
});

it("stores how a call ended as soon as the store is back, without a sign of life in between", async () => {
  const base = createLocalStateStore();
  let isLost = false;
  const update: StateStore["update"] = (...change) => {
    if (isLost) throw new StateError("unreachable", "Planted.");
    return base.update(...change);
  };
  // The next sign of life is a quarter of an hour away.
  const own = createKeys({ ...around(base), update }, "one", 3_600_000);
  const other = createKeys(base, "two", 3_600_000);
  const held = await claim(own, "a");
  isLost = true;
  await own.keys.settle(held, end("1"), BOUNDS);
  isLost = false;
  await expect.poll(() => other.keys.claim(ask("a"), BOUNDS)).toEqual({ fingerprint: "f", ...end("1") });
  await other.close();
  await own.close();
});

it("puts how a call ended in the place of that nobody knows it, and lets a key that was given up not run again", async () => {
  const base = createLocalStateStore();
  const own = createKeys(around(base), "one", 3_600_000);
  const other = createKeys(around(base), "two", 3_600_000);
  const [first, second] = [await claim(own, "a"), await claim(own, "b")];
  // The other one takes it for gone, although it is only slow.
  const sign = { collection: "replicas", owner: "", key: "one" };
  await base.delete(sign, (await base.get(sign))?.revision ?? 0);
  const unknown = { fingerprint: "f", state: "lost", reason: "unknown" };
  for (const key of ["a", "b"]) expect(await other.keys.claim(ask(key), BOUNDS)).toEqual(unknown);
  await own.keys.settle(first, end("1"), BOUNDS);
  await own.keys.release(second);
  expect(await other.keys.claim(ask("a"), BOUNDS)).toEqual({ fingerprint: "f", ...end("1") });
  expect(await other.keys.claim(ask("b"), BOUNDS)).toEqual(unknown);
  await other.close();
  await own.close();
});

it("takes every claim back that nobody was told of, however often its caller tries in vain", async () => {
  const base = createLocalStateStore();
  let isLost = false;
  const create: StateStore["create"] = async (...record) => {
    if (!isLost) return base.create(...record);
    // The first one is stored, and the answer is lost; those after it do not even arrive.
    if (!base.mayHave(record[0])) await base.create(...record);
    throw new StateError("slow", "Planted.", { uncertain: true });
  };
  const get: StateStore["get"] = (name) => {
    if (isLost) throw new StateError("slow", "Planted.");
    return base.get(name);
  };
  const own = createKeys({ ...around(base), create, get }, "one", 3_600_000);
  const other = createKeys(base, "two", 3_600_000);
  await claim(own, "first");
  isLost = true;
  for (const _ of [1, 2, 3]) await expect(own.keys.claim(ask("a"), BOUNDS)).rejects.toThrow("Planted.");
  isLost = false;
  await expect.poll(() => other.keys.claim(ask("a"), BOUNDS)).toMatchObject({ state: "claimed" });
  await other.close();
  await own.close();
});

describe("keys above others, of the same calls", () => {
  const open = (base: StateStore, replica: string) => {
    const below = createKeys(around(base), replica, 3_600_000, { collection: "below" });
    const nameOf = ({ owner, key }: KeyName): KeyName => ({ owner, key: `${key} below` });
    const above = createKeys(around(base), replica, 3_600_000, { below: { keys: below.keys, nameOf } });
    return { below, above };
  };
  const gone = async (base: StateStore, replica: string): Promise<void> => {
    const sign = { collection: "replicas", owner: "", key: replica };
    await base.delete(sign, (await base.get(sign))?.revision ?? 0);
  };

  it("say of a replica that is gone what those below say: how the call ended, that it runs, or that nobody knows", async () => {
    const base = createLocalStateStore();
    const [one, two, three] = [open(base, "one"), open(base, "two"), open(base, "three")];
    for (const key of ["ended", "lost", "elsewhere"]) await claim(one.above, key);
    await one.below.keys.settle(await claim(one.below, "ended below"), end("1"), BOUNDS);
    await claim(one.below, "lost below");
    const running = await claim(three.below, "elsewhere below");
    await gone(base, "one");
    const waiting = two.above.keys.ended({ owner: "ann", key: "ended" });
    expect(await waiting).toEqual(end("1"));
    expect(await two.above.keys.claim(ask("ended"), BOUNDS)).toEqual({ fingerprint: "f", ...end("1") });
    const lost = { state: "lost", reason: "unknown" };
    expect(await two.above.keys.claim(ask("lost"), BOUNDS)).toEqual({ fingerprint: "f", ...lost });
    const elsewhere = { fingerprint: "f", state: "running" };
    expect(await two.above.keys.claim(ask("elsewhere"), BOUNDS)).toEqual(elsewhere);
    await three.below.keys.settle(running, end("3"), BOUNDS);
    expect(await two.above.keys.claim(ask("elsewhere"), BOUNDS)).toEqual({ fingerprint: "f", ...end("3") });
    for (const { above, below } of [one, two, three]) await Promise.all([above.close(), below.close()]);
  });

  it("are claimed again where the call of a replica that is gone never came to those below, for the same input alone", async () => {
    const base = createLocalStateStore();
    const [one, two] = [open(base, "one"), open(base, "two")];
    const stale = await claim(one.above, "a");
    await gone(base, "one");
    const other = { ...ask("a"), fingerprint: "g" };
    expect(await two.above.keys.claim(other, BOUNDS)).toEqual({ state: "running", fingerprint: "f" });
    const held = await claim(two.above, "a");
    // One that was only slow has lost it.
    await one.above.keys.settle(stale, end("late"), BOUNDS);
    expect(await one.above.keys.claim(ask("a"), BOUNDS)).toEqual({ state: "running", fingerprint: "f" });
    await two.above.keys.settle(held, end("2"), BOUNDS);
    expect(await one.above.keys.claim(ask("a"), BOUNDS)).toEqual({ fingerprint: "f", ...end("2") });
    for (const { above, below } of [one, two]) await Promise.all([above.close(), below.close()]);
  });
});

it("waits for a call of another replica no longer than it is open", async () => {
  const store = around(createLocalStateStore());
  const [own, other] = [createKeys(store, "one", 3_600_000), createKeys(store, "two", 3_600_000)];
  await claim(own, "a");
  const waiting = other.keys.ended(ask("a"));
  const refused = expect(waiting).rejects.toThrow("closed");
  await other.keys.close();
  await refused;
  await other.close();
  await own.close();
});

const ask = (key: string) => ({ owner: "ann", key, fingerprint: "f" });

async function claim({ keys }: OpenedKeys, key: string): Promise<HeldKey> {
  const claimed = await keys.claim(ask(key), BOUNDS);
  if (claimed.state !== "claimed") throw new Error(claimed.state);
  return claimed.held;
}

function around(base: StateStore): StateStore {
  return {
    isExclusive: false,
    isUp: true,
    now: () => base.now(),
    get: (name) => base.get(name),
    create: (...args) => base.create(...args),
    update: (...args) => base.update(...args),
    delete: (...args) => base.delete(...args),
    mayHave: (name) => base.mayHave(name),
    list: (...args) => base.list(...args),
    watch: (...args) => base.watch(...args),
    close: async () => {},
  };
}
