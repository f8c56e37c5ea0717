import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { StateAccess } from "../state/gateway-state.ts";
import { createLocalStateStore } from "../state/local-state-store.ts";
import { StateError, type StateStore } from "../state/state-store.ts";
import type { GrantStore } from "./caller-logins.ts";
import { createSharedGrants, GrantSeal, SHARED_GRANTS } from "./shared-grants.ts";

const KEY = "a key that all replicas of this gateway share";
const NONE: GrantStore = {
  load: async () => undefined,
  save: async () => {
    throw new Error("It was kept here alone.");
  },
  exclusive: (run) => run(),
  remove: async () => {},
  watch: () => () => {},
};

/** What several replicas have of one store. */
function replicas(count: number, secrets: readonly (string | readonly string[])[] = []) {
  const clock = { now: 1_000 };
  const store = createLocalStateStore({ now: () => clock.now });
  const access: StateAccess = { reach: async () => ({ store, lease: undefined as never }) };
  const of = (owner: string, secret: string | readonly string[] = KEY, id = ["crm"]) =>
    createSharedGrants({ access, seal: new GrantSeal(secret), id, owner, alone: NONE });
  return { clock, store, of, all: Array.from({ length: count }, (_, at) => of("ann", secrets[at])) };
}

/** Every byte that a store was given. */
function spied(store: StateStore): { readonly store: StateStore; readonly written: string[] } {
  const written: string[] = [];
  const create: StateStore["create"] = (name, value, write) => {
    written.push(Buffer.from(value).toString("latin1"));
    return store.create(name, value, write);
  };
  const get = (target: StateStore, name: string | symbol): unknown => {
    const member: unknown = Reflect.get(target, name, target);
    return name === "create" ? create : typeof member === "function" ? member.bind(target) : member;
  };
  return { written, store: new Proxy(store, { get }) };
}

describe("grants that replicas share", () => {
  it("are read and removed at each, and tell each of changes", async () => {
    const { all, of } = replicas(2);
    const [one, two] = all as [GrantStore, GrantStore];
    let told = 0;
    const stop = two.watch(() => told++);
    await one.save({ grant: "1" });
    expect(await two.load()).toEqual({ grant: "1" });
    await two.save({ grant: "2" });
    expect(await one.load()).toEqual({ grant: "2" });
    await expect.poll(() => told).toBeGreaterThan(1);
    expect(await of("bob").load()).toBeUndefined();
    expect(await of("ann", KEY, ["erp"]).load()).toBeUndefined();
    await one.remove();
    expect(await two.load()).toBeUndefined();
    stop();
  });

  it("are encrypted: nothing of them stands in the store, and no other key opens them", async () => {
    const { store: inner } = replicas(0);
    const { store, written } = spied(inner);
    const access: StateAccess = { reach: async () => ({ store, lease: undefined as never }) };
    const at = (secret: string | readonly string[], owner = "ann") =>
      createSharedGrants({ access, seal: new GrantSeal(secret), id: ["crm"], owner, alone: NONE });
    await at(KEY).save({ grant: "1", token: "canary-token" });
    expect(written.join()).not.toContain("canary");
    expect(await at("another key, which is as long as it has to be").load()).toBeUndefined();
    const newer = "the key that takes the place of the first one";
    expect(await at([newer, KEY]).load()).toMatchObject({ token: "canary-token" });
    await at([newer, KEY]).save({ grant: "2" });
    expect(await at(KEY).load()).toBeUndefined();
    expect(await at(newer).load()).toEqual({ grant: "2" });
  });

  it("are not taken for those of another caller, whoever put them there", async () => {
    const seal = new GrantSeal(KEY);
    const sealed = seal.seal(JSON.stringify(["ann", "k"]), { grant: "1" });
    expect(seal.open(JSON.stringify(["bob", "k"]), sealed)).toBeUndefined();
    expect(seal.open(JSON.stringify(["ann", "k"]), sealed)).toEqual({ grant: "1" });
    sealed[sealed.length - 1] = (sealed[sealed.length - 1] ?? 0) ^ 1;
    expect(seal.open(JSON.stringify(["ann", "k"]), sealed)).toBeUndefined();
  });

  it("are changed by one replica at a time", async () => {
    const { all } = replicas(6);
    let [running, most, total] = [0, 0, 0];
    await Promise.all(
      all.map((grants) =>
        grants.exclusive(async () => {
          running += 1;
          most = Math.max(most, running);
          const before = Number((await grants.load())?.["count"] ?? 0);
          await delay(5);
          await grants.save({ count: before + 1 });
          running -= 1;
          total += 1;
        }),
      ),
    );
    expect([most, total]).toEqual([1, 6]);
    expect(await all[0]?.load()).toEqual({ count: 6 });
  });

  it("are kept for a week after they were used last, and no longer", async () => {
    const { all, clock } = replicas(1);
    const [one] = all as [GrantStore];
    await one.save({ grant: "1" });
    for (let used = 0; used < 3; used++) {
      clock.now += SHARED_GRANTS.keepMs - 1;
      expect(await one.load()).toEqual({ grant: "1" });
    }
    clock.now += SHARED_GRANTS.keepMs;
    expect(await one.load()).toBeUndefined();
  });

  it("make a call fail that may be made again while the store cannot be reached", async () => {
    const access: StateAccess = {
      reach: async () => {
        throw new StateError("unreachable", "It is away.");
      },
    };
    const grants = createSharedGrants({
      access,
      seal: new GrantSeal(KEY),
      id: ["crm"],
      owner: "ann",
      alone: NONE,
    });
    await expect(grants.load()).rejects.toMatchObject({ code: "UNAVAILABLE", retryable: true });
    await expect(grants.save({})).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const here: StateAccess = { reach: async () => undefined };
    const alone = { ...NONE, load: async () => ({ grant: "here" }) };
    const own = createSharedGrants({
      access: here,
      seal: new GrantSeal(KEY),
      id: ["crm"],
      owner: "ann",
      alone,
    });
    expect(await own.load()).toEqual({ grant: "here" });
  });
});
