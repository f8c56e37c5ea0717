import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runs } from "../../../test/runs.ts";
import { CallError } from "../../core/errors/errors.ts";
import { Cancellation } from "../../core/execution/cancellation.ts";
import { FairQueue } from "./fair-queue.ts";

const unbounded = () => new Cancellation("a.b", [], Number.POSITIVE_INFINITY, 0);
const ASKED = { operationId: "a.b", owner: "" };
const closing = new CallError("UNAVAILABLE");

function turnsOf(
  rates: Record<string, { calls: number; perMs: number }>,
  places: Record<string, number>,
  { queue = 1_000, isShared = false } = {},
): FairQueue {
  const turns = new FairQueue({ queue }, isShared);
  turns.change({ rates: new Map(Object.entries(rates)), places: new Map(Object.entries(places)) });
  return turns;
}

describe("turns", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  it("lets no more in at a time, and no more start in any period, than is allowed; everybody settles once, in order", async () => {
    const call = fc.record({
      at: fc.nat(300),
      runs: fc.nat(60),
      leavesAfter: fc.option(fc.nat(200)),
      lane: fc.constantFrom(["r", "p"], ["r", undefined], [undefined, "p"], ["s", "p"]),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(call, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 4 }),
        async (calls, places, rate) => {
          const rates = { r: { calls: rate, perMs: 50 }, s: { calls: 1, perMs: 20 } };
          const turns = turnsOf(rates, { p: places });
          const starts: { at: number; order: number; lane: string; rate: string | undefined }[] = [];
          const ends: string[] = [];
          let running = 0;
          const begin = performance.now();
          const sorted = calls.toSorted((a, b) => a.at - b.at);
          sorted.forEach(({ at, runs, leavesAfter, lane: [rateOwner, placesOwner] }, order) => {
            setTimeout(async () => {
              const leaving = new AbortController();
              const bounds = new Cancellation("a.b", [leaving.signal], Number.POSITIVE_INFINITY, 0);
              if (leavesAfter !== null) setTimeout(() => leaving.abort(), leavesAfter);
              const lane = turns.laneOf(rateOwner, placesOwner);
              if (lane === undefined) throw new Error("no lane");
              try {
                await turns.enter(lane, ASKED, bounds);
              } catch {
                ends.push("left");
                return;
              } finally {
                bounds.release();
              }
              starts.push({
                at: performance.now() - begin,
                order,
                lane: `${rateOwner} ${placesOwner}`,
                rate: rateOwner,
              });
              if (placesOwner !== undefined) expect(++running).toBeLessThanOrEqual(places);
              setTimeout(() => {
                if (placesOwner !== undefined) running--;
                turns.leave(lane);
                ends.push("ran");
              }, runs);
            }, at);
          });
          await vi.runAllTimersAsync();
          expect(ends).toHaveLength(calls.length);
          expect(turns.waiting).toBe(0);
          expect(vi.getTimerCount()).toBe(0);
          for (const [owner, { calls: most, perMs }] of Object.entries(rates)) {
            const at = starts.filter((start) => start.rate === owner).map((start) => start.at);
            at.forEach((time, index) => {
              const after = at[index + most];
              if (after !== undefined) expect(after - time).toBeGreaterThanOrEqual(perMs);
            });
          }
          for (const lane of new Set(starts.map((start) => start.lane))) {
            const orders = starts.filter((start) => start.lane === lane).map((start) => start.order);
            expect(orders).toEqual(orders.toSorted((a, b) => a - b));
          }
        },
      ),
      runs(60),
    );
  });

  it("lets as many wait as may, and refuses one more with an error that may pass", async () => {
    const turns = turnsOf({}, { p: 1 }, { queue: 2 });
    const lane = turns.laneOf(undefined, "p");
    if (lane === undefined) throw new Error("no lane");
    expect(await turns.enter(lane, ASKED, unbounded())).toBe(0);
    const waiting = [turns.enter(lane, ASKED, unbounded()), turns.enter(lane, ASKED, unbounded())];
    await expect(turns.enter(lane, ASKED, unbounded())).rejects.toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      retryable: true,
    });
    turns.leave(lane);
    await waiting[0];
    turns.leave(lane);
    await waiting[1];
    expect(turns.waiting).toBe(0);
  });

  it("gives a free place to whoever can start, not to one that waits for a rate", async () => {
    const turns = turnsOf({ slow: { calls: 1, perMs: 1_000 } }, { p: 1 });
    const slow = turns.laneOf("slow", "p");
    const quick = turns.laneOf(undefined, "p");
    if (slow === undefined || quick === undefined) throw new Error("no lane");
    await turns.enter(slow, ASKED, unbounded());
    const order: string[] = [];
    const later = turns.enter(slow, ASKED, unbounded()).then(() => order.push("slow"));
    const soon = turns.enter(quick, ASKED, unbounded()).then(() => order.push("quick"));
    turns.leave(slow);
    await soon;
    turns.leave(quick);
    await vi.advanceTimersByTimeAsync(999);
    expect(order).toEqual(["quick"]);
    await vi.advanceTimersByTimeAsync(1);
    await later;
    expect(vi.getTimerCount()).toBe(0);
  });

  it("lets those who wait go on under new rules, and all of them when a rule goes", async () => {
    const turns = turnsOf({ r: { calls: 1, perMs: 1_000 } }, { p: 1 });
    const [byRate, byPlace] = [turns.laneOf("r", undefined), turns.laneOf(undefined, "p")];
    if (byRate === undefined || byPlace === undefined) throw new Error("no lane");
    const all = [byRate, byRate, byRate, byPlace, byPlace].map((lane) =>
      turns.enter(lane, ASKED, unbounded()),
    );
    await Promise.resolve();
    expect(turns.waiting).toBe(3);
    turns.change({ rates: new Map([["r", { calls: 2, perMs: 1_000 }]]), places: new Map([["p", 2]]) });
    expect(turns.waiting).toBe(1);
    turns.change({ rates: new Map(), places: new Map() });
    await Promise.all(all);
    expect(vi.getTimerCount()).toBe(0);
    expect(turns.laneOf("r", undefined)).toBeUndefined();
  });

  it("turns everybody away when it closes, and leaves no timer", async () => {
    const turns = turnsOf({ r: { calls: 1, perMs: 1_000 } }, {});
    const lane = turns.laneOf("r", undefined);
    if (lane === undefined) throw new Error("no lane");
    await turns.enter(lane, ASKED, unbounded());
    const waiting = turns.enter(lane, ASKED, unbounded());
    turns.close(closing);
    await expect(waiting).rejects.toBe(closing);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("keeps the order of twenty thousand who wait", async () => {
    const turns = turnsOf({}, { p: 1 }, { queue: 20_000 });
    const lane = turns.laneOf(undefined, "p");
    if (lane === undefined) throw new Error("no lane");
    await turns.enter(lane, ASKED, unbounded());
    const order: number[] = [];
    const all = Array.from({ length: 20_000 }, (_, index) =>
      turns.enter(lane, ASKED, unbounded()).then(() => {
        order.push(index);
        turns.leave(lane);
      }),
    );
    turns.leave(lane);
    await Promise.all(all);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  });

  /** Lets calls of owners wait in lanes, and then one after the other run; gives the order they did in. */
  async function orderOf(
    turns: FairQueue,
    waiting: readonly (readonly [owner: string, rate?: string])[],
  ): Promise<string[]> {
    const first = turns.laneOf(undefined, "p");
    if (first === undefined) throw new Error("no lane");
    await turns.enter(first, ASKED, unbounded());
    const order: string[] = [];
    const all = waiting.map(async ([owner, rate]) => {
      const lane = turns.laneOf(rate, "p");
      if (lane === undefined) throw new Error("no lane");
      await turns.enter(lane, { operationId: "a.b", owner }, unbounded());
      order.push(owner);
      turns.leave(lane);
    });
    turns.leave(first);
    await Promise.all(all);
    return order;
  }

  it("gives callers turns in turn, however many calls one of them has made before", async () => {
    const many = Array.from({ length: 100 }, () => ["ann"] as const);
    const order = await orderOf(turnsOf({}, { p: 1 }), [...many, ["ben"], ["cid"], ["ben"]]);
    expect(order.slice(0, 6)).toEqual(["ann", "ben", "cid", "ann", "ben", "ann"]);
    expect(order).toHaveLength(103);
  });

  it("does so too where callers come by different lanes to the same gate", async () => {
    const wide = { calls: 1_000, perMs: 1_000 };
    const many = Array.from({ length: 50 }, () => ["ann", "r"] as const);
    const order = await orderOf(turnsOf({ r: wide, s: wide }, { p: 1 }), [...many, ["ben", "s"], ["cid"]]);
    expect(order.slice(0, 4)).toEqual(["ann", "ben", "cid", "ann"]);
  });

  it("holds nobody up at one gate for the rounds that have passed at another", async () => {
    const turns = turnsOf({ r: { calls: 100, perMs: 10 } }, { p: 1 });
    const elsewhere = turns.laneOf("r", undefined);
    if (elsewhere === undefined) throw new Error("no lane");
    const busy = { operationId: "a.busy", owner: "dot" };
    const passed = Array.from({ length: 300 }, () => turns.enter(elsewhere, busy, unbounded()));
    await vi.advanceTimersByTimeAsync(100);
    await Promise.all(passed);
    const many = Array.from({ length: 50 }, () => [["ann"], ["cid"]] as const).flat();
    const order = await orderOf(turns, [...many, ["ben", "r"], ["ben", "r"]]);
    expect(order.slice(0, 6)).toEqual(["ann", "cid", "ben", "ann", "cid", "ben"]);
    expect(order).toHaveLength(102);
  });

  it("owes nobody anything for calls that left before their turn", async () => {
    const turns = turnsOf({}, { p: 1 });
    const lane = turns.laneOf(undefined, "p");
    if (lane === undefined) throw new Error("no lane");
    await turns.enter(lane, ASKED, unbounded());
    const leaving = new AbortController();
    const left = Array.from({ length: 50 }, () => {
      const bounds = new Cancellation("a.b", [leaving.signal], Number.POSITIVE_INFINITY, 0);
      return turns.enter(lane, { operationId: "a.b", owner: "ann" }, bounds);
    });
    leaving.abort();
    await Promise.allSettled(left);
    expect(turns.waiting).toBe(0);
    const order: string[] = [];
    const all = ["ann", "ben", "ann", "ben"].map(async (owner) => {
      await turns.enter(lane, { operationId: "a.b", owner }, unbounded());
      order.push(owner);
      turns.leave(lane);
    });
    turns.leave(lane);
    await Promise.all(all);
    expect(order).toEqual(["ann", "ben", "ann", "ben"]);
  });

  it("lets any callers through in rounds, whoever leaves meanwhile, and each one's calls in the order they came", async () => {
    const call = fc.record({ owner: fc.constantFrom("a", "b", "c"), leaves: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 60 }), async (calls) => {
        const turns = turnsOf({}, { p: 1 });
        const lane = turns.laneOf(undefined, "p");
        if (lane === undefined) throw new Error("no lane");
        await turns.enter(lane, ASKED, unbounded());
        const order: { owner: string; index: number }[] = [];
        const leaving = new AbortController();
        const all = calls.map(async ({ owner, leaves }, index) => {
          const signals = leaves ? [leaving.signal] : [];
          const bounds = new Cancellation("a.b", signals, Number.POSITIVE_INFINITY, 0);
          await turns.enter(lane, { operationId: "a.b", owner }, bounds);
          order.push({ owner, index });
          turns.leave(lane);
        });
        leaving.abort();
        turns.leave(lane);
        await Promise.allSettled(all);
        const stayed = calls.filter(({ leaves }) => !leaves);
        expect(order).toHaveLength(stayed.length);
        for (const owner of ["a", "b", "c"]) {
          const own = order.filter((start) => start.owner === owner).map(({ index }) => index);
          expect(own).toEqual(own.toSorted((x, y) => x - y));
        }
        expect(turns.waiting).toBe(0);
      }),
      runs(60),
    );
  });

  it("lets one caller among others be three quarters of those who wait, and no more", async () => {
    const turns = turnsOf({}, { p: 1 }, { queue: 8, isShared: true });
    const lane = turns.laneOf(undefined, "p");
    if (lane === undefined) throw new Error("no lane");
    await turns.enter(lane, ASKED, unbounded());
    const enter = (owner: string) => turns.enter(lane, { operationId: "a.b", owner }, unbounded());
    const waiting = [enter("ben"), ...Array.from({ length: 6 }, () => enter("ann"))];
    await expect(enter("ann")).rejects.toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      message: expect.stringContaining("As many of your calls wait"),
    });
    waiting.push(enter("ben"));
    await expect(enter("cid")).rejects.toMatchObject({ message: expect.stringContaining("As many calls") });
    turns.close(closing);
    expect((await Promise.allSettled(waiting)).every(({ status }) => status === "rejected")).toBe(true);
  });
});
