import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DeadlineQueue, type Timed } from "./deadline-queue.ts";

const GRAIN_MS = 10;

/** Something that ends at a time, and remembers when it was told. */
function timed(inMs: number): Timed & { toldAt: number | undefined } {
  return {
    deadline: performance.now() + inMs,
    before: undefined,
    after: undefined,
    toldAt: undefined,
    expire() {
      this.toldAt = performance.now();
    },
  };
}

describe("DeadlineQueue", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("Call: ends nothing before its time, and nothing later than a grain after it", () => {
    const queue = new DeadlineQueue();
    const all = [0, 1, 9, 10, 11, 500, 501, 12_345, 86_400_000].map(timed);
    for (const one of all) queue.add(one);
    vi.advanceTimersByTime(86_500_000);
    for (const { toldAt = Number.NaN, deadline } of all) {
      expect(toldAt).toBeGreaterThanOrEqual(deadline);
      expect(toldAt).toBeLessThanOrEqual(deadline + GRAIN_MS + 1);
    }
    expect([queue.size, vi.getTimerCount()]).toEqual([0, 0]);
  });

  it("Call: a later, nearer deadline is not kept waiting by a far one", () => {
    const queue = new DeadlineQueue();
    queue.add(timed(100_000));
    const near = timed(20);
    queue.add(near);
    vi.advanceTimersByTime(31);
    expect(near.toldAt).toBeDefined();
    expect(queue.size).toBe(1);
  });

  it("Call: what was removed is never told, and removing twice is removing once", () => {
    const queue = new DeadlineQueue();
    const [one, other] = [timed(20), timed(20)];
    queue.add(one);
    queue.add(other);
    queue.remove(one);
    queue.remove(one);
    queue.remove(timed(20));
    expect(queue.size).toBe(1);
    vi.advanceTimersByTime(50);
    expect([one.toldAt, other.toldAt !== undefined, queue.size]).toEqual([undefined, true, 0]);
  });

  it("Call: what expires may add and remove others", () => {
    const queue = new DeadlineQueue();
    const [removed, added] = [timed(20), timed(60)];
    const first: Timed = {
      deadline: performance.now() + 20,
      before: undefined,
      after: undefined,
      expire() {
        queue.remove(removed);
        queue.add(added);
      },
    };
    queue.add(first);
    queue.add(removed);
    vi.advanceTimersByTime(100);
    expect([removed.toldAt, added.toldAt !== undefined, queue.size]).toEqual([undefined, true, 0]);
  });

  it("Call: 200,000 entries at as many times use one timer, and all end", () => {
    const queue = new DeadlineQueue();
    const count = 200_000;
    let told = 0;
    const start = performance.now();
    const expire = () => {
      told++;
    };
    for (let n = 0; n < count; n++)
      queue.add({ deadline: start + 20 + n * GRAIN_MS, before: undefined, after: undefined, expire });
    expect([queue.size, vi.getTimerCount()]).toEqual([count, 1]);
    vi.advanceTimersByTime(31);
    expect(told).toBeGreaterThan(0);
    expect(vi.getTimerCount()).toBe(1);
    queue.clear();
    expect([queue.size, vi.getTimerCount()]).toEqual([0, 0]);
  });

  it("Call: 100,000 entries of one second end together", () => {
    const queue = new DeadlineQueue();
    const all = Array.from({ length: 100_000 }, (_, n) => timed(n % 1_000));
    for (const one of all) queue.add(one);
    vi.advanceTimersByTime(1_020);
    expect([all.filter(({ toldAt }) => toldAt === undefined).length, queue.size]).toEqual([0, 0]);
  });

  it("Call: clear forgets everything, and the queue goes on afterwards", () => {
    const queue = new DeadlineQueue();
    const gone = timed(20);
    queue.add(gone);
    queue.clear();
    const next = timed(30);
    queue.add(next);
    vi.advanceTimersByTime(50);
    expect([gone.toldAt, next.toldAt !== undefined]).toEqual([undefined, true]);
  });
});
