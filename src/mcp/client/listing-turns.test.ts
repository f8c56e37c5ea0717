import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LISTING_WAITS, ListingTurns } from "./listing-turns.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Turns over a list that takes this long to read, and how often it was. */
function createTurns(takesMs: number, failure?: Error) {
  const failures: unknown[] = [];
  const seen = { begun: 0, ended: 0, most: 0, failures };
  const list = async () => {
    seen.begun += 1;
    seen.most = Math.max(seen.most, seen.begun - seen.ended);
    await new Promise((resolve) => setTimeout(resolve, takesMs));
    seen.ended += 1;
    if (failure !== undefined) throw failure;
  };
  return { turns: new ListingTurns(list, (cause) => failures.push(cause)), seen };
}

describe("ListingTurns", () => {
  it("RE-22 shares one waiting reading among all who ask while one is running", async () => {
    const { turns, seen } = createTurns(100);
    const first = turns.now();
    const [second, third] = [turns.now(), turns.now()];
    expect(second).toBe(third);
    await vi.advanceTimersByTimeAsync(100);
    await first;
    expect(seen).toMatchObject({ begun: 2, ended: 1 });
    const fourth = turns.now();
    expect(fourth).not.toBe(second);
    await vi.advanceTimersByTimeAsync(200);
    await Promise.all([second, fourth]);
    expect(seen).toMatchObject({ begun: 3, ended: 3, most: 1 });
  });

  it("X-6 reads ever more rarely where changes are told of without end, and asking still works", async () => {
    const { turns, seen } = createTurns(300);
    const storm = setInterval(() => turns.soon(), 10);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(seen.begun).toBeGreaterThan(8);
    expect(seen.begun).toBeLessThan(22);
    expect(seen.most).toBe(1);
    let isDone = false;
    void turns.now().then(() => {
      isDone = true;
    });
    await vi.advanceTimersByTimeAsync(601);
    expect(isDone).toBe(true);
    clearInterval(storm);
    turns.stop();
  });

  it("RE-22 reads soon again once it has been calm", async () => {
    const { turns, seen } = createTurns(1);
    for (let i = 0; i < 10; i++) {
      turns.soon();
      turns.soon();
      await vi.advanceTimersByTimeAsync(LISTING_WAITS.most + 1);
    }
    const before = seen.begun;
    expect(before).toBe(10);
    await vi.advanceTimersByTimeAsync(2 * LISTING_WAITS.most);
    turns.soon();
    await vi.advanceTimersByTimeAsync(LISTING_WAITS.first - 1);
    expect(seen.begun).toBe(before);
    await vi.advanceTimersByTimeAsync(1);
    expect(seen.begun).toBe(before + 1);
  });

  it("RE-22 goes on after a reading that failed, and tells of it where nobody waits", async () => {
    const failure = new Error("down");
    const { turns, seen } = createTurns(10, failure);
    const asked = [turns.now(), turns.now()].map((each) => each.catch((error: unknown) => error));
    await vi.advanceTimersByTimeAsync(20);
    expect(await Promise.all(asked)).toEqual([failure, failure]);
    expect(seen.failures).toEqual([]);
    turns.soon();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(seen.failures).toEqual([failure]);
    turns.soon();
    turns.stop();
    turns.soon();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(seen.begun).toBe(3);
  });
});
