import { expect, it } from "vitest";
import { RequestSlots } from "./request-slots.ts";

const SENT = { host: "api.test", attempts: 1 };
const NEVER = new AbortController().signal;

it("RE-25 gives slots in the order they were asked for", async () => {
  const slots = new RequestSlots({ concurrency: 2, queue: 100, rate: undefined });
  expect([slots.take(NEVER, SENT), slots.take(NEVER, SENT)]).toEqual([undefined, undefined]);
  const order: number[] = [];
  const waiting = Array.from({ length: 20 }, async (_, index) => {
    await slots.take(NEVER, SENT);
    order.push(index);
    await Promise.resolve();
    slots.release();
  });
  expect(order).toEqual([]);
  slots.release();
  await Promise.all(waiting);
  expect(order).toEqual(Array.from({ length: 20 }, (_, index) => index));
});

it("RE-25 takes as many waiting as the queue holds and not one more", async () => {
  for (const queue of [0, 1, 5]) {
    const slots = new RequestSlots({ concurrency: 1, queue, rate: undefined });
    slots.take(NEVER, SENT);
    const waiting = Array.from({ length: queue }, () => slots.take(NEVER, SENT));
    expect(() => slots.take(NEVER, SENT)).toThrow(
      expect.objectContaining({ code: "RESOURCE_EXHAUSTED", details: SENT }),
    );
    for (let round = 0; round < queue; round++) slots.release();
    await Promise.all(waiting);
  }
});

it("RE-25 lets whoever gives up leave, and whoever is behind move up", async () => {
  const slots = new RequestSlots({ concurrency: 1, queue: 2, rate: undefined });
  slots.take(NEVER, SENT);
  const controller = new AbortController();
  const first = slots.take(controller.signal, SENT);
  const second = slots.take(NEVER, SENT);
  controller.abort();
  await expect(first).rejects.toMatchObject({ code: "ABORTED" });
  slots.release();
  await second;
  expect(() => slots.take(controller.signal, SENT)).toThrow(expect.objectContaining({ code: "ABORTED" }));
});

it("RE-25 lets N begin in a period and no more, over many periods", async () => {
  const slots = new RequestSlots({ concurrency: 1_000, queue: 1_000, rate: { calls: 10, perMs: 30 } });
  const times: number[] = [];
  const started = performance.now();
  await Promise.all(
    Array.from({ length: 55 }, async () => {
      await slots.take(NEVER, SENT);
      times.push(performance.now() - started);
      slots.release();
    }),
  );
  // A busy machine may be late, and never early.
  for (const [index, time] of times.entries()) {
    expect(time).toBeGreaterThanOrEqual(Math.floor(index / 10) * 29);
  }
  slots.close();
});

it("RE-25 turns away whoever waits when it is closed", async () => {
  const slots = new RequestSlots({ concurrency: 1, queue: 5, rate: undefined });
  slots.take(NEVER, SENT);
  const waiting = slots.take(NEVER, SENT);
  slots.close();
  await expect(waiting).rejects.toMatchObject({ code: "UNAVAILABLE" });
});
