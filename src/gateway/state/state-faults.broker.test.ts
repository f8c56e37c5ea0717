import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { createKeys } from "../../../test/state-keys.ts";
import { connect, headers, jetstreamManager } from "../../call/nats/nats-packages.ts";
import { openJetStreamState } from "./jetstream-state-store.ts";
import type { StateIdempotencyStore } from "./state-idempotency.ts";
import { LONGEST_KEEP_MS, type StateStore } from "./state-store.ts";

const WIDE = { records: 1e6, bytes: 1e9, ownRecords: 1e6, ownBytes: 1e9 };
const KEYS = { keys: 100, bytes: 1e6, ownKeys: 100, ownBytes: 1e6, keepMs: 60_000 };
const KEPT = {
  state: "kept",
  outcome: { kind: "envelope", text: "{}", requestId: "r", durationMs: 1 },
} as const;
const name = (key: string) => ({ collection: "keys", owner: "ann", key });
const ask = (key: string) => ({ owner: "ann", key, fingerprint: "f" });

natsSuite("the state of replicas on JetStream", () => {
  let broker: NatsServer;
  let spaces = 0;
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    broker = await startNats({ jetstream: true });
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  afterAll(() => broker.stop());

  const open = async (space: string, faults: string[] = [], timeoutMs = 2_000) => {
    const connection = await connect({
      servers: broker.url,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 50,
      reconnectJitter: 10,
    });
    closing.push(() => connection.close());
    const onFault = (fault: string): void => void faults.push(fault);
    const store = await openJetStreamState(connection, { space, timeoutMs, onFault });
    closing.push(() => store.close());
    return { connection, store };
  };
  const openKeys = async (space: string, replica: string, leaseMs = 600, timeoutMs = 1_000) => {
    const events: string[] = [];
    const opened = await open(space, events, timeoutMs);
    const keys = createKeys(opened.store, replica, leaseMs, {
      onLate: () => void events.push("late"),
      onUnknown: () => void events.push("unknown"),
    });
    closing.push(() => keys.close());
    return { ...opened, keys: keys.keys, leave: () => keys.close(), events };
  };
  const write = (store: StateStore) => ({ expiresAt: store.now() + 60_000, bounds: WIDE });
  const put = (store: StateStore, key: string, value = key) =>
    store.create(name(key), Buffer.from(value), write(store));
  const newSpace = () => `space ${++spaces}`;
  const claimed = async (keys: StateIdempotencyStore, key: string) => {
    const claim = await keys.claim(ask(key), KEYS);
    if (claim.state !== "claimed") throw new Error(claim.state);
    return claim.held;
  };
  const streams = async (connection: NatsConnection) =>
    (await jetstreamManager(connection, { checkAPI: false })).streams;

  it("shows a second replica what there is from the start, and what comes", async () => {
    const space = newSpace();
    const { store: one } = await open(space);
    const bounds = { ...WIDE, records: 2 };
    await one.create(name("a"), Buffer.from("1"), { ...write(one), bounds });
    const { store: two } = await open(space);
    expect(Buffer.from((await two.get(name("a")))?.value ?? []).toString()).toBe("1");
    await new Promise<void>((resolve) => {
      two.watch(name("b"), resolve);
      void one.create(name("b"), Buffer.from("2"), { ...write(one), bounds });
    });
    expect(await two.create(name("c"), Buffer.from("3"), { ...write(two), bounds })).toEqual({
      state: "full",
    });
    const found = await two.get(name("a"));
    await new Promise<void>((resolve) => {
      one.watch(name("a"), resolve);
      void two.delete(name("a"), found?.revision ?? 0);
    });
    expect((await one.create(name("c"), Buffer.from("3"), { ...write(one), bounds })).state).toBe("created");
    const { store: other } = await open(newSpace());
    expect(await other.get(name("b"))).toBeUndefined();
  });

  it("waits for a broker that restarts, and has what was acknowledged before", {
    timeout: 60_000,
  }, async () => {
    const { store } = await open(newSpace(), [], 20_000);
    await put(store, "a");
    await broker.kill();
    const writing = put(store, "b");
    await broker.restart();
    expect((await writing).state).toBe("created");
    expect(Buffer.from((await store.get(name("a")))?.value ?? []).toString()).toBe("a");
  });

  it("says in time that the broker is away, or does not answer, and whether a change may be stored all the same", {
    timeout: 60_000,
  }, async () => {
    const faults: string[] = [];
    const { store } = await open(newSpace(), faults, 500);
    const created = await put(store, "a");
    await broker.pause();
    await expect(put(store, "b")).rejects.toMatchObject({ fault: "slow", isUncertain: true });
    broker.resume();
    await broker.kill();
    await expect
      .poll(() => put(store, "c").catch(({ fault, isUncertain }) => [fault, isUncertain]))
      .toEqual(["unreachable", false]);
    await broker.restart();
    await expect
      .poll(() =>
        store.get(name("a")).then(
          (found) => found?.revision,
          () => "away",
        ),
      )
      .toBe(created.state === "created" && created.revision);
    expect(new Set(faults)).toEqual(new Set(["slow", "unreachable"]));
  });

  it("tells of a stream that was emptied or removed, counts from nothing, and goes on", {
    timeout: 60_000,
  }, async () => {
    const faults: string[] = [];
    const { store, connection } = await open(newSpace(), faults);
    await put(store, "a");
    await (await streams(connection)).delete("WAYBILL_STATE");
    const bounds = { ...WIDE, records: 2 };
    expect((await store.create(name("b"), Buffer.from("2"), { ...write(store), bounds })).state).toBe(
      "created",
    );
    expect((await store.create(name("c"), Buffer.from("3"), { ...write(store), bounds })).state).toBe(
      "created",
    );
    expect((await store.create(name("d"), Buffer.from("4"), { ...write(store), bounds })).state).toBe("full");
    expect(faults.splice(1)).toEqual(["full"]);
    expect(faults).toEqual(["wiped"]);
    expect(await store.get(name("a"))).toBeUndefined();
    await (await streams(connection)).purge("WAYBILL_STATE");
    await expect.poll(() => faults, { timeout: 20_000 }).toEqual(["wiped", "wiped"]);
    expect((await put(store, "a")).state).toBe("created");
  });

  it("is not taken for one that was emptied when its first message is as old as the broker keeps any", async () => {
    const space = newSpace();
    const { store, connection } = await open(space);
    await put(store, "a");
    const all = await streams(connection);
    const subjects = (await all.info("WAYBILL_STATE", { subjects_filter: "waybill.state.*.meta" })).state
      .subjects as Readonly<Record<string, number>>;
    const marks = async () =>
      await Promise.all(
        Object.keys(subjects).map((subject) => all.getMessage("WAYBILL_STATE", { last_by_subj: subject })),
      );
    const before = await marks();
    const faults: string[] = [];
    const later = await openJetStreamState(connection, {
      space,
      now: () => Date.now() + LONGEST_KEEP_MS / 2 + 1_000,
      onFault: (fault) => void faults.push(fault),
    });
    closing.push(() => later.close());
    const after = await marks();
    const renewed = after.filter((mark, index) => mark?.seq !== before[index]?.seq);
    expect(renewed).toHaveLength(1);
    expect(after.map((mark) => mark?.header.get("Waybill-Nonce"))).toEqual(
      before.map((mark) => mark?.header.get("Waybill-Nonce")),
    );
    expect(faults).toEqual([]);
  });

  it("lists at every replica what any of them has written", async () => {
    const space = newSpace();
    const { store: one } = await open(space);
    const listed = (store: StateStore) => ({ ...write(store), listed: true });
    await one.create(name("a"), Buffer.from("1"), listed(one));
    const { store: two } = await open(space);
    expect(await two.list("keys", "ann", { limit: 10 })).toEqual(["a"]);
    await two.create(name("b"), Buffer.from("2"), listed(two));
    await expect.poll(() => one.list("keys", "ann", { limit: 10 })).toEqual(["a", "b"]);
    const found = await one.get(name("a"));
    await one.delete(name("a"), found?.revision ?? 0);
    await expect.poll(() => two.list("keys", "ann", { limit: 10 })).toEqual(["b"]);
    await broker.kill();
    try {
      const list = (): Promise<unknown> =>
        two.list("keys", "ann", { limit: 10 }).catch((thrown: { fault?: string }) => thrown.fault);
      // Until it notices that its connection is gone, it tells what it knows.
      await expect.poll(list, { timeout: 20_000 }).toBe("unreachable");
    } finally {
      await broker.restart();
    }
    await expect.poll(() => two.list("keys", "ann", { limit: 10 }).catch(String)).toEqual(["b"]);
  }, 60_000);

  it("keeps records for as long as it says in a stream that an earlier version made", async () => {
    const { connection, store } = await open(newSpace());
    const all = await streams(connection);
    const { config } = await all.info("WAYBILL_STATE");
    expect(config.max_age).toBe(LONGEST_KEEP_MS * 1e6);
    await put(store, "a");
    await all.update("WAYBILL_STATE", { max_age: 25 * 3_600_000 * 1e6 });
    const { store: later } = await open(newSpace());
    expect((await all.info("WAYBILL_STATE")).config.max_age).toBe(LONGEST_KEEP_MS * 1e6);
    await put(later, "b");
    expect(Buffer.from((await store.get(name("a")))?.value ?? []).toString()).toBe("a");
  });

  it("takes what has expired away at the broker, with its parts", async () => {
    const { connection } = await open(newSpace());
    let ahead = 0;
    const store = await openJetStreamState(connection, {
      space: newSpace(),
      lingerMs: 0,
      now: () => Date.now() + ahead,
    });
    closing.push(() => store.close());
    const all = await streams(connection);
    await all.purge("WAYBILL_STATE", { filter: "waybill.state.*.*.>" });
    const count = async () =>
      Object.keys(
        (await all.info("WAYBILL_STATE", { subjects_filter: "waybill.state.*.*.>" })).state.subjects ?? {},
      ).length;
    await store.create(name("small"), Buffer.from("1"), write(store));
    await store.create(name("large"), Buffer.alloc(3_000_000), write(store));
    const later = { ...write(store), expiresAt: store.now() + 120_000 };
    await store.create(name("later"), Buffer.from("2"), later);
    expect(await count()).toBe(6);
    ahead = 61_000;
    await expect.poll(count, { timeout: 20_000 }).toBe(1);
    expect((await store.get(name("later")))?.revision).toBeGreaterThan(0);
  }, 30_000);

  it("takes parts away that a replica left when it was killed, and none of a record", async () => {
    const space = newSpace();
    const { connection } = await open(newSpace());
    const all = await streams(connection);
    await all.purge("WAYBILL_STATE", { filter: "waybill.state.*.part.>" });
    const { store: other } = await open(space);
    await other.create(name("whole"), Buffer.alloc(3_000_000, "w"), write(other));
    const count = async (filter = "waybill.state.*.part.>") =>
      Object.keys((await all.info("WAYBILL_STATE", { subjects_filter: filter })).state.subjects ?? {}).length;
    expect(await count()).toBe(3);
    // What is there of a value before its record is written.
    const { subjects = {} } = (await all.info("WAYBILL_STATE", { subjects_filter: "waybill.state.*.part.>" }))
      .state;
    const [root] = Object.keys(subjects)[0]?.split(".part.") ?? [];
    for (const index of [0, 1]) connection.publish(`${root}.part.orphan.${index}`, "left");
    await connection.flush();
    const store = await openJetStreamState(connection, { space, sweepMs: 0 });
    closing.push(() => store.close());
    await expect.poll(() => count(`${root}.part.orphan.>`), { timeout: 30_000 }).toBe(0);
    expect(await count()).toBe(3);
    expect((await store.get(name("whole")))?.value.length).toBe(3_000_000);
  }, 60_000);

  it("leaves records of another version alone", async () => {
    const faults: string[] = [];
    const { store, connection } = await open(newSpace(), faults);
    await put(store, "a");
    const all = await streams(connection);
    const seq = (await store.get(name("a")))?.revision ?? 0;
    const { subject = "" } = (await all.getMessage("WAYBILL_STATE", { seq })) ?? {};
    const head = headers();
    head.set("Waybill-Version", "2");
    connection.publish(subject, "what a later version writes", { headers: head });
    await connection.flush();
    await expect(store.get(name("a"))).rejects.toThrow(/version 2, and this gateway reads version 1/);
    await expect(put(store, "a")).rejects.toMatchObject({ fault: "version" });
    expect(new Set(faults)).toEqual(new Set(["version"]));
    await all.purge("WAYBILL_STATE", { filter: subject });
  });

  it("needs no more rights at the broker than docs/fleet.md names", async () => {
    const permissions = `{ publish: ["waybill.state.>", "$JS.API.>"], subscribe: "_INBOX_w.>" }`;
    const config = `authorization { users: [{ user: "w", password: "w", permissions: ${permissions} }] }`;
    const strict = await startNats({ jetstream: true, config });
    closing.push(() => strict.stop());
    const options = { servers: strict.url, user: "w", pass: "w", inboxPrefix: "_INBOX_w" };
    const connection = await connect(options);
    closing.push(() => connection.close());
    const store = await openJetStreamState(connection, { space: "s" });
    closing.push(() => store.close());
    expect((await put(store, "a", "x".repeat(2_000_000))).state).toBe("created");
    const found = await store.get(name("a"));
    expect(await store.delete(name("a"), found?.revision ?? 0)).toBe(true);
  });

  it("says that a stream is full", async () => {
    const faults: string[] = [];
    const { store, connection } = await open(newSpace(), faults);
    const all = await streams(connection);
    const { config } = await all.info("WAYBILL_STATE");
    await all.update("WAYBILL_STATE", { ...config, max_bytes: 100_000 });
    expect(await put(store, "big", "x".repeat(200_000))).toEqual({ state: "full" });
    expect(faults).toEqual(["full"]);
    await all.update("WAYBILL_STATE", config);
    expect((await put(store, "big", "x".repeat(200_000))).state).toBe("created");
  });

  it("repeats at one replica what another one ran, and tells those who wait there", async () => {
    const space = newSpace();
    const [one, two] = [await openKeys(space, "one"), await openKeys(space, "two")];
    const held = await claimed(one.keys, "a");
    expect((await two.keys.claim(ask("a"), KEYS)).state).toBe("running");
    const waiting = two.keys.ended(held);
    await one.keys.settle(held, KEPT, KEYS);
    expect(await waiting).toEqual(KEPT);
    expect(await two.keys.claim(ask("a"), KEYS)).toEqual({ fingerprint: "f", ...KEPT });
    const released = await claimed(two.keys, "b");
    await two.keys.release(released);
    expect((await one.keys.claim(ask("b"), KEYS)).state).toBe("claimed");
  });

  it("says that it is unknown what a replica ran that is gone, after its lease and not while it lives", {
    timeout: 60_000,
  }, async () => {
    const space = newSpace();
    const [one, two] = [await openKeys(space, "one"), await openKeys(space, "two")];
    const held = await claimed(one.keys, "a");
    expect((await two.keys.claim(ask("a"), KEYS)).state).toBe("running");
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect((await two.keys.claim(ask("a"), KEYS)).state).toBe("running");
    const waiting = two.keys.ended(held);
    // As a crash would, without a word.
    await one.connection.close();
    expect(await waiting).toEqual({ state: "lost", reason: "unknown" });
    expect(two.events).toEqual(["unknown"]);
    const three = await openKeys(space, "three");
    expect(await three.keys.claim(ask("a"), KEYS)).toMatchObject({ state: "lost", reason: "unknown" });
  });

  it("says so at once where the replica has left in order", async () => {
    const space = newSpace();
    const [one, two] = [await openKeys(space, "one", 60_000), await openKeys(space, "two", 60_000)];
    await claimed(one.keys, "a");
    await one.leave();
    expect(await two.keys.claim(ask("a"), KEYS)).toMatchObject({ state: "lost", reason: "unknown" });
  });

  it("stores how a call ended when the broker is back that was killed between claim and answer", {
    timeout: 60_000,
  }, async () => {
    const space = newSpace();
    const [one, two] = [await openKeys(space, "one", 3_000), await openKeys(space, "two", 3_000)];
    const held = await claimed(one.keys, "a");
    await broker.kill();
    await one.keys.settle(held, KEPT, KEYS);
    expect(one.events).toContain("late");
    await expect(one.keys.claim(ask("b"), KEYS)).rejects.toMatchObject({ fault: "unreachable" });
    await broker.restart();
    await expect
      .poll(() => two.keys.claim(ask("a"), KEYS).catch(() => "away"), { timeout: 20_000 })
      .toEqual({ fingerprint: "f", ...KEPT });
    expect(two.events).not.toContain("unknown");
  });

  it("takes a claim back that was stored although nobody was told so", { timeout: 60_000 }, async () => {
    const space = newSpace();
    const [one, two] = [await openKeys(space, "one"), await openKeys(space, "two")];
    await claimed(one.keys, "first");
    await broker.pause();
    await expect(one.keys.claim(ask("a"), KEYS)).rejects.toMatchObject({ fault: "slow", isUncertain: true });
    broker.resume();
    await expect
      .poll(
        () =>
          two.keys.claim(ask("a"), KEYS).then(
            ({ state }) => state,
            () => "away",
          ),
        { timeout: 20_000 },
      )
      .toBe("claimed");
  });

  it("keeps ten thousand keys within the bound of their caller, and leaves room for others", {
    timeout: 120_000,
  }, async () => {
    // Hundreds of claims at once take a busy machine more than a second, which is not what is tried here.
    const { keys } = await openKeys(newSpace(), "one", 60_000, 60_000);
    const bounds = { keys: 10_000, bytes: 1e7, ownKeys: 2_500, ownBytes: 1e7, keepMs: 60_000 };
    const states = { claimed: 0, full: 0 };
    for (let from = 0; from < 10_000; from += 500) {
      const all = await Promise.all(
        Array.from({ length: 500 }, (_, at) => keys.claim(ask(`key ${from + at}`), bounds)),
      );
      for (const { state } of all) states[state as "claimed" | "full"] += 1;
    }
    expect(states).toEqual({ claimed: 2_500, full: 7_500 });
    expect((await keys.claim({ ...ask("key"), owner: "bob" }, bounds)).state).toBe("claimed");
  });
});
