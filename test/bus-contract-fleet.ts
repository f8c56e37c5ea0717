import { describe, expect, it, vi } from "vitest";
import type { Bus, CallHandler } from "../src/call/index.ts";
import { CallError } from "../src/index.ts";
import type { Bench } from "./bus-contract.ts";
import { endsAtOnce } from "./lateness.ts";
import { query, rejection, sleep, stream } from "./make-operation.ts";

/** Rows: fleet, retry, limits. */
export function describeFleet(bench: () => Bench): void {
  describe("fleet", () => describeMembers(bench));
  describe("retry", () => describeRetry(bench));
  describe("sick members", () => describeSick(bench));
  describe("limits", () => describeLimits(bench));
}

function describeMembers(bench: () => Bench): void {
  it.each(["operation", "namespace"] as const)(
    "Call: calls are spread over three members of a group by %s",
    async (group) => {
      const counts = [0, 0, 0];
      for (const member of counts.keys()) {
        const bus = await bench().pair.more();
        await bench().serve(
          [query("a.x", () => (counts[member] = (counts[member] ?? 0) + 1))],
          { group },
          bus,
        );
      }
      const map = bench().ask();
      for (let n = 0; n < 90; n++) await map.call("a.x");
      expect(counts.reduce((sum, count) => sum + count)).toBe(90);
      for (const count of counts) expect(count).toBeGreaterThan(5);
    },
  );

  it("Call: 200 calls under way while members join and leave: none lost, none run twice", async () => {
    const runs = new Map<number, number>();
    const work = query("a.work", async (input) => {
      const n = input as number;
      runs.set(n, (runs.get(n) ?? 0) + 1);
      await sleep(20 + (n % 7));
      return n;
    });
    const join = async (bus: Bus) => (await bench().serve([work], {}, bus)).handler;
    const buses = await Promise.all([0, 1, 2, 3].map(() => bench().pair.more()));
    const [first, second] = await Promise.all(buses.slice(0, 2).map(join));
    const map = bench().ask();
    const answers: Promise<unknown>[] = [];
    const send = (count: number) => {
      for (let n = 0; n < count; n++)
        answers.push(map.call("a.work", answers.length).then(({ data }) => data));
    };
    send(100);
    const third = join(buses[2] as Bus);
    send(50);
    await first?.drain();
    send(25);
    await Promise.all([third, join(buses[3] as Bus)]);
    const left = second?.drain();
    send(25);
    await left;
    expect(await Promise.all(answers)).toEqual(Array.from({ length: 200 }, (_, n) => n));
    expect([...runs.values()].filter((count) => count !== 1)).toEqual([]);
    expect(runs.size).toBe(200);
  });

  it("Call: whoever leaves finishes what it runs, then is asked no more", async () => {
    let finish = (_: string) => {};
    const slow = () => new Promise<string>((resolve) => (finish = resolve));
    const { handler } = await bench().serve([query("a.slow", slow)]);
    const map = bench().ask();
    const answer = map.call("a.slow");
    await vi.waitFor(() => expect(handler.running).toBe(1), 20_000);
    const drained = handler.drain();
    await sleep(60);
    finish("done");
    await drained;
    expect((await answer).data).toBe("done");
    expect(await rejection(map.call("a.slow"))).toMatchObject({ code: "NO_RESPONDER" });
  });

  it("Call: an abort reaches the one of three members that runs the call, while it leaves too", async () => {
    const heard = vi.fn();
    const hang = query(
      "a.hang",
      (_, { signal }) => new Promise((_, no) => signal.addEventListener("abort", () => no(heard()))),
    );
    const handlers: CallHandler[] = [];
    for (let n = 0; n < 3; n++)
      handlers.push((await bench().serve([hang], {}, await bench().pair.more())).handler);
    const controller = new AbortController();
    const aborted = rejection(bench().ask().call("a.hang", 1, { signal: controller.signal }));
    await vi.waitFor(() => expect(handlers.filter(({ running }) => running === 1)).toHaveLength(1), 20_000);
    const leaving = handlers.map((handler) => handler.drain());
    await sleep(20);
    controller.abort();
    await aborted;
    await Promise.all(leaving);
    expect(heard).toHaveBeenCalledOnce();
  });

  it("Call: operations that come and go while a service runs can be called, and no more", async () => {
    const { registry } = await bench().serve([query("a.x", () => 1)]);
    const map = bench().ask();
    const late = query("a.late", () => "late");
    registry.register(late);
    await vi.waitFor(async () => expect((await map.call("a.late")).data).toBe("late"), 20_000);
    registry.remove("a.late");
    await vi.waitFor(
      async () => expect(await rejection(map.call("a.late"))).toMatchObject({ code: "NO_RESPONDER" }),
      20_000,
    );
  });
}

/** Milliseconds of one try: the last has to be answered within them, on a machine that is busy too. */
const ATTEMPT_MS = 2_000;

function describeRetry(bench: () => Bench): void {
  const failing = (runs: { count: number }, idempotent: boolean) =>
    query(
      "a.flaky",
      async (_, { requestId }) => {
        if (++runs.count < 3) await new Promise(() => {});
        return requestId;
      },
      { annotations: { idempotent } },
    );

  it("Call: an idempotent operation runs again under the same request id", async () => {
    const runs = { count: 0 };
    await bench().serve([failing(runs, true)]);
    const retry = { attempts: 3, attemptTimeoutMs: ATTEMPT_MS };
    const { data } = await bench().ask().call("a.flaky", 1, { retry, requestId: "same" });
    expect([data, runs.count]).toEqual(["same", 3]);
  });

  it("Call: an operation that is not idempotent does not run again, and the caller is told", async () => {
    const runs = { count: 0 };
    const { handler } = await bench().serve([failing(runs, false)]);
    const retry = { attempts: 3, attemptTimeoutMs: ATTEMPT_MS };
    expect(await rejection(bench().ask().call("a.flaky", 1, { retry }))).toMatchObject({ code: "TIMEOUT" });
    expect([runs.count, handler.counters.duplicate]).toEqual([1, 1]);
  });

  it("Call: the same request id twice runs once", async () => {
    const ran = vi.fn();
    await bench().serve([query("a.x", ran)]);
    const map = bench().ask();
    await map.call("a.x", 1, { requestId: "r" });
    expect(await rejection(map.call("a.x", 1, { requestId: "r" }))).toMatchObject({ code: "CONFLICT" });
    expect(ran).toHaveBeenCalledOnce();
  });

  it("Call: a call that finds nobody is tried again until a service joins", async () => {
    const map = bench().ask();
    const answer = map.call("a.x", 1, { retry: { attempts: 20 } });
    await sleep(60);
    await bench().serve([query("a.x", () => "here")]);
    expect((await answer).data).toBe("here");
  });

  it("Call: an abort ends the tries", async () => {
    const controller = new AbortController();
    const options = { retry: { attempts: 100 }, signal: controller.signal };
    const error = rejection(bench().ask().call("a.nobody", 1, options));
    await sleep(50);
    controller.abort();
    expect(await endsAtOnce(error)).toBe(true);
    expect(await error).toMatchObject({ code: "ABORTED" });
  });
}

/** Milliseconds of a try that a member which hangs takes away. */
const HUNG_MS = 1_000;

function describeSick(bench: () => Bench): void {
  it.each(["answers UNAVAILABLE", "hangs"] as const)(
    "Call: one of three members %s: a retry goes to another, which is left out for a while, and every call succeeds",
    async (how) => {
      const counts = [0, 0, 0];
      for (const member of counts.keys()) {
        const handler = async () => {
          counts[member] = (counts[member] ?? 0) + 1;
          if (member !== 1) return member;
          if (how === "hangs") await new Promise(() => {});
          throw new CallError("UNAVAILABLE", "Sick.");
        };
        const work = query("a.work", handler, { annotations: { idempotent: true } });
        await bench().serve([work], {}, await bench().pair.more());
      }
      const map = bench().ask();
      const attemptTimeoutMs = how === "hangs" ? HUNG_MS : ATTEMPT_MS;
      const call = () => map.call("a.work", 1, { retry: { attempts: 3, attemptTimeoutMs } });
      const first = Array.from({ length: 30 }, call);
      for (const { data } of await Promise.all(first)) expect(data).not.toBe(1);
      const before = counts[1];
      expect(before).toBeGreaterThan(0);
      for (let n = 0; n < 20; n++) expect((await call()).data).not.toBe(1);
      // Who is ready is asked for once a second; until it is known, the broker chooses.
      expect((counts[1] ?? 0) - (before ?? 0)).toBeLessThanOrEqual(2);
      expect(Math.min(counts[0] ?? 0, counts[2] ?? 0)).toBeGreaterThan(0);
    },
  );

  it("Call: where every member fails, calls are still tried", async () => {
    let isSick = true;
    const work = query(
      "a.work",
      () => {
        if (isSick) throw new CallError("UNAVAILABLE", "Sick.");
        return "well";
      },
      { annotations: { idempotent: true } },
    );
    for (let n = 0; n < 2; n++) await bench().serve([work], {}, await bench().pair.more());
    const map = bench().ask();
    for (let n = 0; n < 4; n++)
      expect(await rejection(map.call("a.work", 1, { retry: { attempts: 2 } }))).toMatchObject({
        code: "UNAVAILABLE",
      });
    isSick = false;
    expect((await map.call("a.work")).data).toBe("well");
  });
}

function describeLimits(bench: () => Bench): void {
  const hang = () =>
    query("a.hang", (_, { signal }) => new Promise((_, no) => signal.addEventListener("abort", no)));

  it("Call: pendingCalls wait, one more is refused at once and counted", async () => {
    await bench().serve([hang(), stream("a.none", async function* () {})]);
    const map = bench().ask({ limits: { pendingCalls: 3 } });
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = [1, 2, 3].map(() => rejection(map.call("a.hang", 1, { signal })));
    const full = { code: "RESOURCE_EXHAUSTED", details: { limit: "pendingCalls", allowed: 3 } };
    expect(await rejection(map.call("a.hang"))).toMatchObject(full);
    expect(await rejection(map.subscribe("a.none").next())).toMatchObject(full);
    expect([map.size, map.counters.overLimit]).toEqual([3, 2]);
    controller.abort();
    await Promise.all(waiting);
    expect((await map.subscribe("a.none").next()).done).toBe(true);
  });

  it("Call: runningCalls run, one more is refused at once and counted", async () => {
    const { handler } = await bench().serve([hang(), query("a.x", () => 1)], { limits: { runningCalls: 2 } });
    const map = bench().ask();
    const controller = new AbortController();
    const waiting = [1, 2].map(() => rejection(map.call("a.hang", 1, { signal: controller.signal })));
    await vi.waitFor(() => expect(handler.running).toBe(2), 20_000);
    expect(await rejection(map.call("a.x"))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      retryable: true,
      details: { limit: "runningCalls", allowed: 2 },
    });
    expect(handler.counters.overLimit).toBe(1);
    controller.abort();
    await Promise.all(waiting);
    await vi.waitFor(() => expect(handler.running).toBe(0), 20_000);
    expect((await map.call("a.x")).data).toBe(1);
  });
}
