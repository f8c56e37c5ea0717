import { describe, expect, it, vi } from "vitest";
import { CallError, withCursor } from "../src/index.ts";
import type { Bench } from "./bus-contract.ts";
import { endsInTime } from "./lateness.ts";
import { collect, query, rejection, sleep, stream, until } from "./make-operation.ts";

/** Counts up for ever and tells how far it came. */
function counter(told: { yielded: number; ended: boolean }, pause?: () => Promise<void>) {
  return stream("a.count", async function* () {
    try {
      for (;;) {
        yield told.yielded++;
        await pause?.();
      }
    } finally {
      told.ended = true;
    }
  });
}

const progressOf = () => ({ yielded: 0, ended: false });

/** Row: stream. */
export function describeStreams(bench: () => Bench): void {
  describe("stream", () => {
    describeYields(bench);
    describeLeaving(bench);
    describeFlow(bench);
  });
}

function describeYields(bench: () => Bench): void {
  it("RE-21 RE-28 yields envelopes in order, with sequence and cursor, and ends with the handler", async () => {
    await bench().serve([
      stream("a.three", async function* () {
        yield withCursor("a", "c0");
        yield "b";
        yield withCursor({ n: 3n }, "c2");
      }),
    ]);
    const found = await collect(bench().ask().subscribe("a.three"));
    expect(found.map(({ data, meta }) => [data, meta.waybill])).toEqual([
      ["a", { sequence: 0, cursor: "c0" }],
      ["b", { sequence: 1 }],
      [{ n: 3n }, { sequence: 2, cursor: "c2" }],
    ]);
  });

  it("RE-21 RE-28 a stream of 10,000 arrives whole and in order", async () => {
    await bench().serve([
      stream("a.many", async function* () {
        for (let n = 0; n < 10_000; n++) yield n;
      }),
    ]);
    const map = bench().ask();
    let next = 0;
    for await (const { data, meta } of map.subscribe("a.many")) {
      if (data !== next || meta.waybill?.sequence !== next) throw new Error(`${data} instead of ${next}`);
      next++;
    }
    expect([next, map.size, map.counters.gaps, map.counters.duplicate]).toEqual([10_000, 0, 0, 0]);
  });

  it("RE-21 an empty stream ends at once, and nothing is sent before the first value is asked for", async () => {
    const ran = vi.fn();
    await bench().serve([
      stream("a.none", async function* () {
        ran();
        yield* [];
      }),
    ]);
    const map = bench().ask();
    const values = map.subscribe("a.none");
    await sleep(20);
    expect([ran.mock.calls.length, map.size]).toEqual([0, 0]);
    expect(await values.next()).toEqual({ done: true, value: undefined });
    expect(ran).toHaveBeenCalledOnce();
  });

  it("RE-20 RE-21 an error mid-stream comes after what was yielded, once", async () => {
    await bench().serve([
      stream("a.breaks", async function* () {
        yield 1;
        yield 2;
        throw new CallError("CONFLICT", "Stop.", { details: { at: 2 } });
      }),
    ]);
    const map = bench().ask();
    const values = map.subscribe("a.breaks");
    expect([(await values.next()).value?.data, (await values.next()).value?.data]).toEqual([1, 2]);
    expect(await rejection(values.next())).toMatchObject({ code: "CONFLICT", details: { at: 2 } });
    expect(await values.next()).toEqual({ done: true, value: undefined });
    expect(map.size).toBe(0);
  });

  it("RE-21 a stream that is called, and a call that is streamed, fail the same as at home", async () => {
    const { registry } = await bench().serve([counter(progressOf()), query("a.x", () => 1)]);
    const map = bench().ask();
    const called = (await rejection(registry.execute("a.count"))) as CallError;
    expect(await rejection(map.call("a.count"))).toMatchObject({ code: called.code });
    const streamed = (await rejection(collect(registry.subscribe("a.x")))) as CallError;
    expect(await rejection(collect(map.subscribe("a.x")))).toMatchObject({ code: streamed.code });
  });
}

function describeLeaving(bench: () => Bench): void {
  it("RE-21 leaving the loop stops the producer and runs its finally", async () => {
    const told = progressOf();
    const { handler } = await bench().serve([counter(told, () => sleep(1))]);
    const map = bench().ask();
    for await (const { data } of map.subscribe("a.count")) if (data === 3) break;
    await vi.waitFor(() => expect([told.ended, handler.running, map.size]).toEqual([true, 0, 0]), 20_000);
  });

  it("RE-21 leaving reaches a producer that waits for its signal alone", async () => {
    const heard = vi.fn();
    let isWaiting = false;
    const { handler } = await bench().serve([
      stream("a.waits", async function* (_, { signal }) {
        yield 1;
        isWaiting = true;
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        heard();
      }),
    ]);
    for await (const _ of bench().ask().subscribe("a.waits")) {
      await until(() => isWaiting);
      break;
    }
    await vi.waitFor(() => expect([heard.mock.calls.length, handler.running]).toEqual([1, 0]), 20_000);
  });

  it("RE-21 an abort is not a normal end, and what waits is not delivered any more", async () => {
    const told = progressOf();
    await bench().serve([counter(told, () => sleep(1))]);
    const controller = new AbortController();
    const values = bench().ask().subscribe("a.count", 1, { signal: controller.signal });
    await values.next();
    await sleep(30);
    controller.abort(new Error("enough"));
    expect(await rejection(values.next())).toMatchObject({ code: "ABORTED" });
    await vi.waitFor(() => expect(told.ended).toBe(true), 20_000);
  });

  it("RE-21 a subscription ends at its deadline", async () => {
    const told = progressOf();
    await bench().serve([counter(told, () => sleep(1))]);
    const inTime = await endsInTime(60, async () => {
      const error = await rejection(collect(bench().ask().subscribe("a.count", 1, { timeoutMs: 60 })));
      expect(error).toMatchObject({ code: "TIMEOUT" });
    });
    expect(inTime).toBe(true);
    await vi.waitFor(() => expect(told.ended).toBe(true), 20_000);
  });

  it("RE-21 a service that leaves aborts its streams, which is not a normal end", async () => {
    const { handler } = await bench().serve([counter(progressOf(), () => sleep(1))]);
    const read = rejection(collect(bench().ask().subscribe("a.count")));
    await vi.waitFor(() => expect(handler.running).toBe(1), 20_000);
    await handler.drain({ timeoutMs: 10 });
    expect(await read).toMatchObject({ code: "ABORTED" });
  });
}

function describeFlow(bench: () => Bench): void {
  it.each([1, 2, 8])(
    "Call: a producer runs ahead of a slow reader by the window of %i, no more",
    async (window) => {
      const told = progressOf();
      await bench().serve([counter(told)]);
      const values = bench()
        .ask({ limits: { streamBuffer: window } })
        .subscribe("a.count");
      for (let read = 1; read <= 20; read++) {
        expect((await values.next()).value?.data).toBe(read - 1);
        if (read % 5 === 0) await sleep(15);
        expect(told.yielded).toBeLessThanOrEqual(read + window);
      }
      await values.return?.();
      await vi.waitFor(() => expect(told.ended).toBe(true), 20_000);
    },
  );

  it("Call: a producer that never waits leaves room for others", async () => {
    const told = progressOf();
    await bench().serve([counter(told), query("a.x", () => "x")]);
    const map = bench().ask();
    const controller = new AbortController();
    const reading = rejection(collect(map.subscribe("a.count", 1, { signal: controller.signal })));
    expect((await map.call("a.x")).data).toBe("x");
    setTimeout(() => controller.abort(), 20);
    expect(await reading).toMatchObject({ code: "ABORTED" });
    await vi.waitFor(() => expect(told.ended).toBe(true), 20_000);
  });

  it("Call: several readers of one stream each get a value, in order", async () => {
    await bench().serve([counter(progressOf())]);
    const values = bench().ask().subscribe("a.count");
    const steps = await Promise.all(Array.from({ length: 200 }, () => values.next()));
    expect(steps.map(({ value }) => value?.data)).toEqual(Array.from({ length: 200 }, (_, n) => n));
    await values.return?.();
  });
}
