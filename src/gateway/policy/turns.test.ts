import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CallError } from "../../core/errors/errors.ts";
import { Cancellation } from "../../core/execution/cancellation.ts";
import { Turns } from "./turns.ts";

const unbounded = () => new Cancellation("a.b", [], Number.POSITIVE_INFINITY, 0);
const closing = new CallError("UNAVAILABLE");

function turnsOf(
  rates: Record<string, { calls: number; perMs: number }>,
  places: Record<string, number>,
  queue = 1_000,
): Turns {
  const turns = new Turns({ queue });
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
                await turns.enter(lane, "a.b", bounds);
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
      { numRuns: 60 },
    );
  });

  it("lets as many wait as may, and refuses one more with an error that may pass", async () => {
    const turns = turnsOf({}, { p: 1 }, 2);
    const lane = turns.laneOf(undefined, "p");
    if (lane === undefined) throw new Error("no lane");
    expect(await turns.enter(lane, "a.b", unbounded())).toBe(0);
    const waiting = [turns.enter(lane, "a.b", unbounded()), turns.enter(lane, "a.b", unbounded())];
    await expect(turns.enter(lane, "a.b", unbounded())).rejects.toMatchObject({
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
    await turns.enter(slow, "a.slow", unbounded());
    const order: string[] = [];
    const later = turns.enter(slow, "a.slow", unbounded()).then(() => order.push("slow"));
    const soon = turns.enter(quick, "a.quick", unbounded()).then(() => order.push("quick"));
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
      turns.enter(lane, "a.b", unbounded()),
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
    await turns.enter(lane, "a.b", unbounded());
    const waiting = turns.enter(lane, "a.b", unbounded());
    turns.close(closing);
    await expect(waiting).rejects.toBe(closing);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("keeps the order of twenty thousand who wait", async () => {
    const turns = turnsOf({}, { p: 1 }, 20_000);
    const lane = turns.laneOf(undefined, "p");
    if (lane === undefined) throw new Error("no lane");
    await turns.enter(lane, "a.b", unbounded());
    const order: number[] = [];
    const all = Array.from({ length: 20_000 }, (_, index) =>
      turns.enter(lane, "a.b", unbounded()).then(() => {
        order.push(index);
        turns.leave(lane);
      }),
    );
    turns.leave(lane);
    await Promise.all(all);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  });
});
