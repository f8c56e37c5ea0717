import { afterEach, describe, expect, it, vi } from "vitest";
import type { CallListener, CallRecord } from "../serve/observe/observer.ts";
import { createLocalStateStore } from "../state/local-state-store.ts";
import { ReplicaSummaries, type ReplicaSummary, readSummary } from "./replica-summaries.ts";

const opened: ReplicaSummaries[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
  vi.useRealTimers();
});

/** Replicas with one store; each has its own calls. */
function openFleet() {
  const store = createLocalStateStore();
  return (replica: string, { isLost = false } = {}) => {
    let isDead = isLost;
    const listeners = new Set<CallListener>();
    const records = async () => {
      if (isDead) throw new Error("Planted.");
      return store;
    };
    const report = () => ({ store: "nats", status: isLost ? "lost" : "up", replica }) as never;
    const summaries = new ReplicaSummaries({
      state: { replica, report, records },
      observer: {
        listen: (listener) => {
          listeners.add(listener);
          return () => void listeners.delete(listener);
        },
      },
      reports: () => [{ state: { status: "up" } }, { state: { status: "closed" } }] as never,
    });
    opened.push(summaries);
    const call = (operation: string, record: Partial<CallRecord> = {}): void => {
      const ended = { requestId: "r", operation, isKnown: true, outcome: "ok", durationMs: 1, ...record };
      for (const { end } of listeners) end?.(ended as CallRecord, undefined as never, {});
    };
    const die = (): void => {
      isDead = true;
    };
    return { summaries, call, listeners, die };
  };
}

const byName = (all: readonly ReplicaSummary[]) => Object.fromEntries(all.map((one) => [one.replica, one]));

describe("summaries of replicas", () => {
  it("tell at every replica of all, each by its name, with its last calls", async () => {
    vi.useFakeTimers();
    const open = openFleet();
    const [one, two] = [open("one"), open("two")];
    one.call("a.x", { subject: "ann" });
    one.call("a.x", { outcome: "call_error", code: "TIMEOUT" });
    two.call("b.y");
    one.call("made.up", { isKnown: false, outcome: "call_error" });
    await vi.advanceTimersByTimeAsync(5_000);
    for (const { summaries } of [one, two]) {
      const found = byName(await summaries.read());
      expect(Object.keys(found)).toEqual(["one", "two"]);
      expect(found["one"]).toMatchObject({
        calls: 3,
        errors: 2,
        callsPerSecond: 0.6,
        sources: { up: 1, all: 2 },
        state: "up",
      });
      expect(found["one"]?.recent).toMatchObject([
        { operation: "a.x", outcome: "call_error", code: "TIMEOUT" },
        { operation: "a.x", outcome: "ok", subject: "ann" },
      ]);
      expect(found["two"]?.recent).toMatchObject([{ operation: "b.y" }]);
      expect(summaries.size).toBe(2);
    }
  });

  it("forget a replica that has left, and one that was not heard of for fifteen seconds", async () => {
    vi.useFakeTimers();
    const open = openFleet();
    const [one, two, three] = [open("one"), open("two"), open("three")];
    await vi.advanceTimersByTimeAsync(5_000);
    await two.summaries.close();
    expect(two.listeners.size).toBe(0);
    const names = async () => (await one.summaries.read()).map(({ replica }) => replica);
    expect(await names()).toEqual(["one", "three"]);
    three.die();
    await vi.advanceTimersByTimeAsync(14_000);
    expect(await names()).toEqual(["one", "three"]);
    await vi.advanceTimersByTimeAsync(6_000);
    expect(await names()).toEqual(["one"]);
    expect(one.summaries.size).toBe(1);
  });

  it("tell of this replica alone while the store is away", async () => {
    const alone = openFleet()("one", { isLost: true });
    alone.call("a.x");
    expect(await alone.summaries.read()).toMatchObject([{ replica: "one", calls: 1, state: "lost" }]);
    expect(alone.summaries.size).toBe(1);
  });

  it("hold twenty calls at most, and texts of two hundred characters", async () => {
    const { summaries, call } = openFleet()("one");
    for (let n = 0; n < 21; n++) call(`a.n${n}`, { subject: "s".repeat(201) });
    const [own] = await summaries.read();
    expect(own?.recent).toHaveLength(20);
    expect(own?.recent[0]?.operation).toBe("a.n20");
    expect(own?.recent[0]?.subject).toHaveLength(200);
    const largest = JSON.stringify({
      ...own,
      recent: own?.recent.map((one) => ({ ...one, operation: "é".repeat(200), code: "é".repeat(200) })),
    });
    expect(readSummary(Buffer.from(largest))).toBeDefined();
  });

  it("are left out where they are none: another shape, too many calls, too long", async () => {
    const { summaries, call } = openFleet()("one");
    for (let n = 0; n < 20; n++) call("a.x");
    const [own] = (await summaries.read()) as [ReplicaSummary];
    const read = (value: unknown) => readSummary(Buffer.from(JSON.stringify(value)));
    expect(read(own)).toEqual(own);
    const bad: readonly unknown[] = [
      null,
      [],
      { ...own, replica: 1 },
      { ...own, host: "h".repeat(201) },
      { ...own, state: "toString" },
      { ...own, calls: -1 },
      { ...own, sources: [] },
      { ...own, recent: [...own.recent, own.recent[0]] },
      { ...own, recent: [{ ...own.recent[0], outcome: "fine" }] },
    ];
    for (const one of bad) expect(read(one)).toBeUndefined();
    expect(readSummary(Buffer.from(" ".repeat(32_769)))).toBeUndefined();
    expect(readSummary(Buffer.from("no JSON"))).toBeUndefined();
  });
});
