import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createLocalStateStore } from "./local-state-store.ts";
import { ReplicaLease } from "./replica-lease.ts";
import type { StateStore } from "./state-store.ts";

const LEASE_MS = 10_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A store that several replicas use, and the replicas, which may stop without a word. */
function openFleet() {
  const base = createLocalStateStore();
  const names: string[] = [];
  const open = (replica: string) => {
    let isDead = false;
    let resume: (() => void) | undefined;
    let paused: Promise<void> | undefined;
    const alive = async <T>(run: () => Promise<T>): Promise<T> => {
      await paused;
      return isDead ? await new Promise<never>(() => {}) : await run();
    };
    const store: StateStore = {
      isExclusive: false,
      isUp: true,
      now: () => base.now(),
      get: (name) => {
        names.push(name.key);
        return alive(() => base.get(name));
      },
      create: (...args) => alive(() => base.create(...args)),
      update: (...args) => alive(() => base.update(...args)),
      delete: (...args) => alive(() => base.delete(...args)),
      mayHave: (name) => base.mayHave(name),
      list: (...args) => alive(() => base.list(...args)),
      watch: (...args) => base.watch(...args),
      close: async () => {},
    };
    const lease = new ReplicaLease(store, { replica, leaseMs: LEASE_MS });
    const die = (): void => {
      isDead = true;
    };
    const pause = (): void => {
      paused = new Promise((resolve) => {
        resume = resolve;
      });
    };
    return { lease, die, pause, resume: () => resume?.() };
  };
  return { open, names };
}

it("a replica that is gone is known to be at once, by those who were there for a lease, and nobody before", async () => {
  const { open, names } = openFleet();
  const [one, two] = [open("one"), open("two")];
  await Promise.all([one.lease.hold(), two.lease.hold()]);
  await vi.advanceTimersByTimeAsync(LEASE_MS);
  one.die();
  await vi.advanceTimersByTimeAsync(LEASE_MS / 4);
  expect(await two.lease.isGone("one")).toBe(false);
  const three = open("three");
  await three.lease.hold();
  await vi.advanceTimersByTimeAsync(LEASE_MS);
  // Nobody had asked before.
  expect(await two.lease.isGone("one")).toBe(true);
  expect(await three.lease.isGone("one")).toBe(true);
  expect(await three.lease.isGone("two")).toBe(false);
  // Whoever is gone is looked at no more.
  names.length = 0;
  await vi.advanceTimersByTimeAsync(LEASE_MS / 4);
  expect(names.filter((name) => name === "one")).toEqual([]);
  for (const { lease } of [two, three]) await lease.close();
});

it("a replica that is gone is known to be, though nobody is there for a whole lease to see it", async () => {
  const { open } = openFleet();
  const [one, two] = [open("one"), open("two")];
  await Promise.all([one.lease.hold(), two.lease.hold()]);
  one.die();
  let last = two;
  let next = two;
  // Each of them is there for half a lease, and the next one begins before it is gone.
  for (let turn = 0; turn < 4; turn++) {
    await vi.advanceTimersByTimeAsync(LEASE_MS / 2);
    last = next;
    next = open(`next ${turn}`);
    await next.lease.hold();
    await vi.advanceTimersByTimeAsync(1);
    last.die();
    if (turn === 0) expect(await next.lease.isGone("one")).toBe(false);
  }
  expect(await next.lease.isGone("one")).toBe(true);
  expect(await next.lease.isGone("two")).toBe(true);
  const living = open("living");
  await living.lease.hold();
  await vi.advanceTimersByTimeAsync(LEASE_MS / 4);
  expect(await living.lease.isGone("one")).toBe(true);
  for (const { lease } of [next, living]) {
    expect(await lease.isGone("living")).toBe(false);
    await lease.close();
  }
});

it("what another replica says of one that has given a sign of life since counts for nothing", async () => {
  const { open } = openFleet();
  const [one, two] = [open("one"), open("two")];
  await Promise.all([one.lease.hold(), two.lease.hold()]);
  one.pause();
  await vi.advanceTimersByTimeAsync((LEASE_MS * 3) / 4);
  two.die();
  one.resume();
  await vi.advanceTimersByTimeAsync(LEASE_MS / 4);
  const three = open("three");
  await three.lease.hold();
  await vi.advanceTimersByTimeAsync(LEASE_MS / 2);
  expect(await three.lease.isGone("one")).toBe(false);
  for (const { lease } of [one, three]) await lease.close();
});
