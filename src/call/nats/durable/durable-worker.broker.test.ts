import { jetstreamManager } from "@nats-io/jetstream";
import { expect, it, vi } from "vitest";
import { useBench } from "../../../../test/durable-bench.ts";
import { query, rejection, sleep, until } from "../../../../test/make-operation.ts";
import { natsSuite } from "../../../../test/nats-server.ts";
import { unwrap } from "../../../core/envelope/envelope.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { consumerName, DurableNames } from "./durable-codec.ts";
import { serveDurableCalls } from "./durable-worker.ts";

const durable = { durable: true } as const;
const idempotent = { durable: true, annotations: { idempotent: true } } as const;

/** Holds whoever waits for it until it is opened. */
function gate(): { readonly opens: Promise<void>; open(): void } {
  let open = () => {};
  const opens = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opens, open: () => open() };
}

natsSuite("durable workers", () => {
  const bench = useBench();

  it("Durable: requests are spread over workers, each runs once", async () => {
    const runs: string[] = [];
    const make = (name: string) =>
      query(
        "x.work",
        async (input) => {
          runs.push(`${name}${input}`);
          await until(() => ["a", "b"].every((worker) => runs.some((run) => run.startsWith(worker))));
        },
        durable,
      );
    await bench.serve([make("a")], { concurrency: 2 });
    await bench.serve([make("b")], { concurrency: 2 });
    const calls = await bench.calls();
    await Promise.all(Array.from({ length: 40 }, (_, i) => calls.execute("x.work", i)));
    expect(new Set(runs.map((run) => run.slice(1))).size).toBe(40);
    expect(runs).toHaveLength(40);
    expect(runs.some((run) => run.startsWith("a")) && runs.some((run) => run.startsWith("b"))).toBe(true);
  });

  it("Durable: never more than concurrency run at a time, and one more waits", async () => {
    let running = 0;
    let most = 0;
    const work = query(
      "x.work",
      async () => {
        running += 1;
        most = Math.max(most, running);
        await until(() => most >= 3);
        await sleep(20);
        running -= 1;
      },
      durable,
    );
    await bench.serve([work], { concurrency: 3 });
    const calls = await bench.calls();
    await Promise.all(Array.from({ length: 12 }, () => calls.execute("x.work")));
    expect(most).toBe(3);
  });

  it("Durable: a handler that takes longer than ackWaitMs keeps its request", async () => {
    let runs = 0;
    const slow = query(
      "x.slow",
      () => {
        runs += 1;
        return sleep(5_000).then(() => "done");
      },
      idempotent,
    );
    const options = { ackWaitMs: 2_000 };
    await bench.serve([slow], options);
    await bench.serve([slow], options);
    const calls = await bench.calls();
    expect(unwrap(await calls.execute("x.slow"))).toBe("done");
    expect(runs).toBe(1);
  });

  it("Durable: the first stored result wins, a later one is dropped and counted", async () => {
    let runs = 0;
    const { opens, open } = gate();
    const hang = query(
      "x.race",
      async () => {
        runs += 1;
        const own = runs;
        if (own === 1) await opens;
        return own;
      },
      idempotent,
    );
    const first = await bench.serve([hang], { ackWaitMs: 60_000 });
    const calls = await bench.calls();
    const { requestId } = await calls.submit("x.race");
    await until(() => runs === 1);
    // The consumer is made anew, and with it everything is delivered again: two workers run the same request.
    const manager = await jetstreamManager(await bench.connect());
    await manager.consumers.delete(new DurableNames(bench.prefix).calls, consumerName("x.race"));
    const second = await bench.serve([hang]);
    expect(unwrap(await calls.result(requestId))).toBe(2);
    open();
    await until(() => first.counters.late + second.counters.late > 0);
    await sleep(200);
    expect(first.counters.late + second.counters.late).toBe(1);
    expect(unwrap(await calls.result(requestId))).toBe(2);
  });

  it("Durable: what is not idempotent runs once even when everything is delivered again", async () => {
    let runs = 0;
    const { opens, open } = gate();
    const once = query(
      "x.once",
      async () => {
        runs += 1;
        if (runs > 1) await opens;
        return "once";
      },
      durable,
    );
    await bench.serve([once]);
    const calls = await bench.calls();
    const ended = await calls.submit("x.once");
    expect(unwrap(await calls.result(ended.requestId))).toBe("once");
    const under = await calls.submit("x.once");
    await until(() => runs === 2);
    const manager = await jetstreamManager(await bench.connect());
    await manager.consumers.delete(new DurableNames(bench.prefix).calls, consumerName("x.once"));
    await bench.serve([once]);
    expect(await rejection(calls.result(under.requestId))).toMatchObject({
      code: "UNAVAILABLE",
      retryable: false,
      message: expect.stringContaining("whether it took effect is unknown"),
    });
    open();
    await sleep(500);
    expect(unwrap(await calls.result(ended.requestId))).toBe("once");
    expect(runs).toBe(2);
  });

  it("Durable: only external operations that ask for it are served, and changes are followed", async () => {
    const registry = new OperationRegistry([
      query("x.a", () => "a", durable),
      query("x.plain", () => "plain"),
      query("x.hidden", () => "hidden", { ...durable, visibility: "internal" }),
      query("x.guarded", () => "guarded", { ...durable, access: { scopes: { allOf: ["s"] } } }),
    ]);
    const worker = await serveDurableCalls(await bench.connect(), registry, { prefix: bench.prefix });
    const manager = await jetstreamManager(await bench.connect());
    const consumers = await manager.consumers.list(new DurableNames(bench.prefix).calls).next();
    expect(consumers.map((info) => info.name).sort()).toEqual(["x~a", "x~guarded"]);
    registry.register(query("x.late", () => "late", durable));
    const calls = await bench.calls();
    expect(unwrap(await calls.execute("x.late"))).toBe("late");
    registry.remove("x.a");
    const asking = async () =>
      (await manager.consumers.info(new DurableNames(bench.prefix).calls, "x~a")).num_waiting;
    await vi.waitFor(async () => expect(await asking()).toBe(0), 20_000);
    const { requestId } = await calls.submit("x.a", 1);
    const late = await rejection(calls.result(requestId, { timeoutMs: 300 }));
    expect(late).toMatchObject({ code: "TIMEOUT" });
    registry.register(query("x.a", () => "back", durable));
    expect(unwrap(await calls.execute("x.a"))).toBe("back");
    await worker.drain();
  });

  it("Durable: drain finishes what runs, takes nothing new, and leaves the rest to others", async () => {
    const runs: unknown[] = [];
    const { opens, open } = gate();
    const work = query(
      "x.work",
      async (input) => {
        runs.push(input);
        await opens;
        return input;
      },
      durable,
    );
    const worker = await bench.serve([work], { concurrency: 1 });
    const calls = await bench.calls();
    const submitted = await Promise.all([1, 2, 3].map((n) => calls.submit("x.work", n)));
    await until(() => runs.length === 1);
    const drained = worker.drain();
    await sleep(100);
    open();
    await drained;
    expect(runs).toHaveLength(1);
    await sleep(300);
    expect(runs).toHaveLength(1);
    await bench.serve([work]);
    const results = await Promise.all(submitted.map(({ requestId }) => calls.result(requestId)));
    expect(results.map(unwrap).sort()).toEqual([1, 2, 3]);
    expect(runs).toHaveLength(3);
  });

  it("Durable: drain aborts what takes too long: idempotent calls run again elsewhere, others end as lost", async () => {
    let begun = 0;
    let aborts = 0;
    const hang = (extra: object) => (id: string) =>
      query(
        id,
        (_, { signal }) =>
          new Promise((_resolve, reject) => {
            begun += 1;
            signal.addEventListener("abort", () => {
              aborts += 1;
              reject(signal.reason);
            });
          }),
        extra,
      );
    const worker = await bench.serve([hang(idempotent)("x.again"), hang(durable)("x.once")]);
    const calls = await bench.calls();
    const [again, once] = await Promise.all([calls.submit("x.again"), calls.submit("x.once")]);
    await until(() => begun === 2);
    await worker.drain({ timeoutMs: 100 });
    expect(aborts).toBe(2);
    expect(await rejection(calls.result(once.requestId))).toMatchObject({
      code: "UNAVAILABLE",
      retryable: false,
    });
    await bench.serve([
      query("x.again", () => "elsewhere", idempotent),
      query("x.once", () => "twice", durable),
    ]);
    expect(unwrap(await calls.result(again.requestId))).toBe("elsewhere");
    expect(await rejection(calls.result(once.requestId))).toMatchObject({ code: "UNAVAILABLE" });
  });

  it.each([{ ackWaitMs: 99 }, { maxDeliver: 1 }, { concurrency: 0 }, { concurrency: 1.5 }])(
    "Durable: worker options that make no sense are a TypeError: %j",
    async (options) => {
      expect(await rejection(bench.serve([], options))).toBeInstanceOf(TypeError);
    },
  );

  it("Durable: a drain without end waits for what runs, and does not abort it", async () => {
    const [aborted, begun] = [vi.fn(), vi.fn()];
    const { opens, open } = gate();
    const slow = query(
      "x.slow",
      async (_, { signal }) => {
        signal.addEventListener("abort", aborted);
        begun();
        await opens;
        return "done";
      },
      durable,
    );
    const worker = await bench.serve([slow]);
    const calls = await bench.calls();
    const answer = calls.execute("x.slow");
    await until(() => begun.mock.calls.length === 1);
    const drained = worker.drain({ timeoutMs: Number.POSITIVE_INFINITY });
    await sleep(250);
    open();
    await drained;
    expect(unwrap(await answer)).toBe("done");
    expect(aborted).not.toHaveBeenCalled();
  });

  it.each([-1, Number.NaN, "5"])(
    "Durable: a drain of %s ms is a mistake, and work goes on",
    async (timeoutMs) => {
      const worker = await bench.serve([query("x.quick", () => 1, durable)]);
      expect(() => worker.drain({ timeoutMs: timeoutMs as number })).toThrow(TypeError);
      expect(unwrap(await (await bench.calls()).execute("x.quick"))).toBe(1);
    },
  );
});
