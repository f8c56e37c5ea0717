import { afterEach, describe, expect, it, vi } from "vitest";
import { describeSessionEventLog } from "../../../../test/session-event-log-contract.ts";
import { type LoggedStream, MemoryEventLog } from "./session-event-log.ts";

describeSessionEventLog("memory", async () => {
  const log = new MemoryEventLog();
  return { writer: log, reader: log };
});

const stream = (name: string, owner = "ann"): LoggedStream => ({ owner, session: "s", stream: name });
const here = new AbortController().signal;
const TEN = "x".repeat(10);

describe("MemoryEventLog", () => {
  afterEach(() => void vi.useRealTimers());

  /** Keeps a stream of one message of ten bytes. */
  const keep = async (log: MemoryEventLog, name: string, owner?: string): Promise<void> => {
    await log.open(stream(name, owner), [1]);
    await log.append(stream(name, owner), { place: 1, json: TEN });
    await log.end(stream(name, owner));
  };
  const isKept = async (log: MemoryEventLog, name: string, owner?: string): Promise<boolean> =>
    (await log.find(stream(name, owner), 0, here)) !== undefined;

  /** What a stream of one message of ten bytes takes. */
  const BYTES = 266;

  it("Mcp: keeps as many bytes as allowed, and one more drives the oldest out of whoever has most", async () => {
    const log = new MemoryEventLog({ maxBytes: 4 * BYTES });
    await keep(log, "b", "bob");
    for (const name of ["1", "2", "3"]) await keep(log, name);
    expect([await isKept(log, "b", "bob"), await isKept(log, "1"), log.bytes]).toEqual([
      true,
      true,
      4 * BYTES,
    ]);
    await keep(log, "c", "bob");
    expect(log.bytes).toBe(4 * BYTES);
    const kept = [await isKept(log, "b", "bob"), await isKept(log, "1"), await isKept(log, "2")];
    expect(kept).toEqual([true, false, true]);
  });

  it("Mcp: keeps no part of a stream of which a message was too long, or had to go", async () => {
    const log = new MemoryEventLog({ maxBytes: 2 * BYTES });
    await log.open(stream("a"), [1]);
    await keep(log, "b");
    const found = await log.find(stream("a"), 0, here);
    const next = found?.events[Symbol.asyncIterator]().next();
    await expect(log.append(stream("a"), { place: 1, json: "x".repeat(2 * BYTES) })).rejects.toThrow(
      "too long",
    );
    expect(await next).toMatchObject({ done: false, value: { place: 1 } });
    expect([await isKept(log, "a"), await isKept(log, "b"), log.bytes]).toEqual([false, true, BYTES]);
    await expect(log.append(stream("a"), { place: 2, json: "x" })).rejects.toThrow("no such stream");
  });

  it("Mcp: forgets streams some time after their end, with all they hold", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const log = new MemoryEventLog({ keepMs: 1_000 });
    await keep(log, "a");
    await log.open(stream("open"), [1]);
    vi.advanceTimersByTime(999);
    expect(await isKept(log, "a")).toBe(true);
    vi.advanceTimersByTime(1);
    expect([await isKept(log, "a"), await isKept(log, "open"), log.bytes]).toEqual([false, true, 256]);
  });
});
