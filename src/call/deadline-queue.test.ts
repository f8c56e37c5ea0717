import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runNode } from "../../test/run-node.ts";
import { DeadlineQueue, type Timed } from "./deadline-queue.ts";

const GRAIN_MS = 10;

/** Something that ends at a time, and remembers when it was told. */
function timed(inMs: number): Timed & { toldAt: number | undefined } {
  return {
    deadline: performance.now() + inMs,
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
    for (let n = 0; n < count; n++) queue.add({ deadline: start + 20 + n * GRAIN_MS, expire });
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

/** Everything stays open: the map, the bus, a stream that was left, deadlines that lie far ahead. */
const IDLE = `
const { createMemoryBus, createMemoryTransport, createWireBus, PendingRequestMap } = await import(process.argv[1]);
const { localEnvelope } = await import(process.argv[2]);
const answer = ({ request }, line) => {
  const { requestId, operationId } = request;
  queueMicrotask(() => line.reply({ type: "call.responded", requestId, output: localEnvelope(1, operationId) }));
  return { receive() {}, lost() {} };
};
for (const bus of [createMemoryBus(), createWireBus(createMemoryTransport())]) {
  await bus.join({ operationId: "a.b" }, answer);
  const map = new PendingRequestMap(bus);
  for (let n = 0; n < 10; n++) console.log((await map.call("a.b", n, { timeoutMs: 60_000 + n * 100 })).data);
}
console.log("idle");
`;

describe("an idle process", () => {
  it("Call: ends although its buses and maps are open", async () => {
    const folder = mkdtempSync(join(tmpdir(), "waybill-idle-"));
    try {
      const parts = ["index.ts", "../core/envelope/envelope.ts"].map(
        (path) => new URL(path, import.meta.url),
      );
      const files = parts.map((_, n) => join(folder, `${n}.mjs`));
      for (const [n, part] of parts.entries()) {
        const bundle = await rolldown({ input: fileURLToPath(part), platform: "node", logLevel: "silent" });
        await bundle.write({ file: files[n] as string, format: "esm" });
      }
      const urls = files.map((file) => pathToFileURL(file).href);
      const start = performance.now();
      const ran = await runNode(["--input-type=module", "-e", IDLE, ...urls]);
      expect(ran).toMatchObject({ code: 0, stderr: "", stdout: `${"1\n".repeat(20)}idle\n` });
      expect(performance.now() - start).toBeLessThan(10_000);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 30_000);
});
