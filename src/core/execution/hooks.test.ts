import { afterEach, describe, expect, it, vi } from "vitest";
import { collect, query, rejection, sleep, stream } from "../../../test/make-operation.ts";
import { localEnvelope, type ResponseEnvelope } from "../envelope/envelope.ts";
import { CallError } from "../errors/errors.ts";
import { OperationRegistry } from "../registry/registry.ts";
import type { CallHook, HookedCall, SubscribeHook } from "./dispatch.ts";

const code = (expected: string) => expect.objectContaining({ code: expected });
const echo = query("a.echo", (input) => input, { inputSchema: { type: "string" } });
const scoped = query("a.scoped", (input) => input, { access: { scopes: { allOf: ["s"] } } });

afterEach(() => void vi.useRealTimers());

describe("hooks around calls", () => {
  it("RE-10 stand around each call, the first one outermost, and see what it came to", async () => {
    const order: unknown[] = [];
    const registry = new OperationRegistry([echo]);
    for (const name of ["first", "second"]) {
      registry.use(async (_, next) => {
        order.push(`${name} in`);
        const envelope = await next();
        order.push([name, envelope.data]);
        return envelope;
      });
    }
    expect((await registry.execute(echo, "x")).data).toBe("x");
    expect(order).toEqual(["first in", "second in", ["second", "x"], ["first", "x"]]);
  });

  it("RE-10 are told the operation, the input and the context of the call", async () => {
    const calls: HookedCall[] = [];
    const registry = new OperationRegistry([echo]);
    registry.use((call, next) => {
      calls.push(call);
      return next();
    });
    await registry.execute(echo, "x", { requestId: "r1", identity: { subject: "ada" } });
    expect(calls).toEqual([
      { operationId: "a.echo", operation: echo, input: "x", context: expect.anything() },
    ]);
    expect(calls[0]?.context).toMatchObject({
      requestId: "r1",
      operationId: "a.echo",
      identity: { subject: "ada" },
    });
    expect(Object.isFrozen(calls[0])).toBe(true);
  });

  it("RE-10 see every failure: unknown, hidden, denied, invalid, thrown, aborted and late", async () => {
    const fail = query("a.fail", () => {
      throw new CallError("CONFLICT");
    });
    const hidden = query("a.hidden", () => 1, { visibility: "internal" });
    const slow = query("a.slow", () => new Promise<never>(() => {}));
    const registry = new OperationRegistry([echo, scoped, fail, hidden, slow]);
    const seen: unknown[] = [];
    registry.use((call, next) => {
      const known = call.operation?.id;
      return next().catch((error) => {
        seen.push([known, error.code]);
        throw error;
      });
    });
    // Time stands still until it is let pass, however long a busy machine takes.
    vi.useFakeTimers();
    const late = rejection(registry.execute(slow, {}, { timeoutMs: 5 }));
    const thrown = [
      await rejection(registry.execute("a.none")),
      await rejection(registry.execute(hidden)),
      await rejection(registry.execute(scoped)),
      await rejection(registry.execute(echo, 5 as never)),
      await rejection(registry.execute(fail)),
      await rejection(registry.execute(echo, "x", { signal: AbortSignal.abort() })),
    ];
    await vi.advanceTimersByTimeAsync(5);
    thrown.push(await late);
    // A caller whose time is over does not wait for hooks.
    await vi.advanceTimersByTimeAsync(1);
    expect(thrown.map((error) => (error as CallError).code)).toEqual(
      seen.map((entry) => (entry as string[])[1]),
    );
    expect(seen).toEqual([
      [undefined, "OPERATION_NOT_FOUND"],
      [undefined, "OPERATION_NOT_FOUND"],
      ["a.scoped", "UNAUTHENTICATED"],
      ["a.echo", "VALIDATION_ERROR"],
      ["a.fail", "CONFLICT"],
      ["a.echo", "ABORTED"],
      ["a.slow", "TIMEOUT"],
    ]);
  });

  it("RE-10 may answer themselves, but not for a caller who may not call", async () => {
    const handler = vi.fn();
    const cached = localEnvelope("cached", "a.scoped");
    const registry = new OperationRegistry([query("a.scoped", handler, { access: {} })]);
    registry.use(async () => cached);
    expect(await registry.execute("a.scoped", {}, { identity: { subject: "ada" } })).toBe(cached);
    expect(await rejection(registry.execute("a.scoped"))).toEqual(code("UNAUTHENTICATED"));
    expect(await rejection(registry.execute("a.none"))).toEqual(code("OPERATION_NOT_FOUND"));
    expect(handler).not.toHaveBeenCalled();
  });

  it("RE-10 cannot replace a refusal by another error", async () => {
    const registry = new OperationRegistry([scoped]);
    registry.use(async () => {
      throw new CallError("CONFLICT");
    });
    expect(await rejection(registry.execute(scoped))).toEqual(code("UNAUTHENTICATED"));
  });

  it("RE-10 may go on with another input, which is checked and decided about anew", async () => {
    const owned = query("a.owned", (input) => input, {
      access: { resource: { pointer: "/id", type: "doc" } },
    });
    const registry = new OperationRegistry([owned, echo]);
    const inputs: unknown[] = [];
    let replacement: unknown = { id: "theirs" };
    registry.use((_, next) => next(replacement));
    registry.use((call, next) => {
      inputs.push(call.input);
      return next();
    });
    const identity = { subject: "ada", resources: { doc: ["mine"] } };
    expect(await rejection(registry.execute(owned, { id: "mine" }, { identity }))).toEqual(
      code("ACCESS_DENIED"),
    );
    replacement = { id: "mine", more: 1 };
    expect((await registry.execute(owned, { id: "mine" }, { identity })).data).toBe(replacement);
    replacement = undefined;
    expect(await rejection(registry.execute(echo, "x"))).toEqual(code("VALIDATION_ERROR"));
    expect(inputs).toEqual([{ id: "theirs" }, { id: "mine", more: 1 }, undefined]);
  });

  it("RE-10 may retry, within the time of the call, and progress goes on", async () => {
    let runs = 0;
    const onProgress = vi.fn();
    const flaky = query("a.flaky", async (_, { progress }) => {
      runs++;
      progress(runs);
      if (runs < 3) throw new Error("flaky");
      return runs;
    });
    const registry = new OperationRegistry([flaky]);
    registry.use(async (_, next) => {
      for (;;) {
        try {
          return await next();
        } catch (error) {
          if ((error as CallError).code !== "EXECUTION_ERROR") throw error;
        }
      }
    });
    expect((await registry.execute(flaky, {}, { onProgress })).data).toBe(3);
    expect(onProgress.mock.calls).toEqual([[1], [2], [3]]);
    runs = Number.NEGATIVE_INFINITY;
    const stopped = rejection(registry.execute(flaky, {}, { timeoutMs: 5 }));
    expect(await Promise.race([stopped, sleep(1000)])).toEqual(code("TIMEOUT"));
  });

  it("RE-10 cannot hold a call back past its deadline", async () => {
    const registry = new OperationRegistry([echo]);
    registry.use(() => new Promise<never>(() => {}));
    expect(await rejection(registry.execute(echo, "x", { timeoutMs: 5 }))).toEqual(code("TIMEOUT"));
  });

  it.each([undefined, 5, { data: 1, meta: { source: "local", operationId: "a.b", timestamp: 1 } }])(
    "RE-10 must answer with an envelope, which %j is not",
    async (answer) => {
      const registry = new OperationRegistry([echo]);
      registry.use((async () => answer) as never);
      const error = await rejection(registry.execute(echo, "x"));
      expect(error).toMatchObject({
        code: "EXECUTION_ERROR",
        cause: { message: expect.stringContaining("hook") },
      });
    },
  );

  it("RE-10 fail with a CallError whatever they throw, now or later", async () => {
    const hooks: CallHook[] = [
      () => {
        throw new Error("secret");
      },
      async () => Promise.reject("secret"),
    ];
    for (const hook of hooks) {
      const registry = new OperationRegistry([echo]);
      registry.use(hook);
      const error = await rejection(registry.execute(echo, "x"));
      expect(error).toEqual(code("EXECUTION_ERROR"));
      expect(JSON.stringify(error)).not.toContain("secret");
    }
  });

  it("RE-10 meet what an inner hook throws as a rejection of next()", async () => {
    const registry = new OperationRegistry([echo]);
    const seen: unknown[] = [];
    registry.use((_, next) =>
      next().catch((error) => {
        seen.push(error);
        throw error;
      }),
    );
    registry.use(() => {
      throw new CallError("CONFLICT");
    });
    expect(await rejection(registry.execute(echo, "x"))).toEqual(code("CONFLICT"));
    expect(seen).toEqual([code("CONFLICT")]);
  });

  it("RE-10 may be methods of an object with state", async () => {
    class Meter {
      calls = 0;
      execute(_: HookedCall, next: () => Promise<ResponseEnvelope>) {
        this.calls++;
        return next();
      }
      subscribe(_: HookedCall, next: () => AsyncIterable<ResponseEnvelope>) {
        this.calls += 10;
        return next();
      }
    }
    const meter = new Meter();
    const registry = new OperationRegistry([echo, stream("a.s", async function* () {})]);
    registry.use(meter);
    await registry.execute(echo, "x");
    await collect(registry.subscribe("a.s"));
    expect(meter.calls).toBe(11);
  });

  it("RE-10 may call on behalf of whoever asked, even for what is not there", async () => {
    const who = query("a.who", (_, { identity }) => identity?.subject);
    const registry = new OperationRegistry([who]);
    const seen: unknown[] = [];
    registry.use(async (call, next) => {
      if (call.operation === undefined) seen.push((await call.context.execute(who)).data);
      return next();
    });
    const error = await rejection(registry.execute("a.none", {}, { identity: { subject: "ada" } }));
    expect(error).toEqual(code("OPERATION_NOT_FOUND"));
    expect(seen).toEqual(["ada"]);
  });

  it("RE-10 leave the others in place when one is taken out", async () => {
    const registry = new OperationRegistry([echo]);
    const seen: string[] = [];
    const stops = ["first", "second", "third"].map((name) =>
      registry.use((_, next) => {
        seen.push(name);
        return next();
      }),
    );
    stops[1]?.();
    await registry.execute(echo, "x");
    expect(seen).toEqual(["first", "third"]);
  });

  it("RE-10 stand around nested calls too", async () => {
    const outer = query("a.outer", (_, { execute }) => execute(echo, "x"));
    const registry = new OperationRegistry([echo, outer]);
    const seen: string[] = [];
    registry.use((call, next) => {
      seen.push(`${call.context.parent?.operationId} > ${call.operationId}`);
      return next();
    });
    await registry.execute(outer);
    expect(seen).toEqual(["undefined > a.outer", "a.outer > a.echo"]);
  });

  it("RE-10 can be taken out again, each by itself and once", async () => {
    const registry = new OperationRegistry([echo]);
    let runs = 0;
    const count: CallHook = (_, next) => {
      runs++;
      return next();
    };
    const [first, second] = [registry.use(count), registry.use({ execute: count })];
    const runsNow = async () => {
      runs = 0;
      await registry.execute(echo, "x");
      return runs;
    };
    expect(await runsNow()).toBe(2);
    first();
    first();
    expect(await runsNow()).toBe(1);
    second();
    expect(await runsNow()).toBe(0);
  });

  it("RE-10 measure time when the registry is asked to, outside all other hooks", async () => {
    const slow = query("a.slow", async () => {
      await sleep(10);
      return "x";
    });
    const registry = new OperationRegistry([slow], { timing: true });
    registry.use(async (_, next) => {
      await sleep(10);
      return next();
    });
    const start = performance.now();
    const { waybill } = (await registry.execute(slow)).meta;
    const elapsed = performance.now() - start;
    expect(Object.keys(waybill ?? {})).toEqual(["durationMs"]);
    expect(waybill?.durationMs).toBeGreaterThan(15);
    expect(waybill?.durationMs).toBeLessThan(elapsed + 0.001);
    expect(String(waybill?.durationMs)).toMatch(/^\d+(\.\d{1,3})?$/);
  });
});

describe("hooks around subscriptions", () => {
  const count = stream(
    "a.count",
    async function* (input) {
      for (let n = 0; n < (input as number); n++) yield n;
    },
    { inputSchema: { type: "number" } },
  );
  const closed = stream(
    "a.closed",
    async function* () {
      yield "secret";
    },
    { access: {} },
  );
  const dataOf = async (
    registry: OperationRegistry,
    target: Parameters<typeof registry.subscribe>[0],
    input: unknown,
  ) => (await collect(registry.subscribe(target, input as never))).map(({ data }) => data);

  it("RE-14 see the stream and may pass on another one", async () => {
    const registry = new OperationRegistry([count]);
    const seen: unknown[] = [];
    registry.use({
      async *subscribe(call, next) {
        seen.push(call.operationId, call.operation === count, call.input);
        for await (const envelope of next((call.input as number) + 1))
          if (envelope.data !== 1) yield envelope;
      },
    });
    registry.use({
      subscribe(call, next) {
        seen.push(call.input);
        return next();
      },
    });
    expect(await dataOf(registry, count, 3)).toEqual([0, 2, 3]);
    expect(seen).toEqual(["a.count", true, 3, 4]);
  });

  it("RE-14 see the refusals, which stand whatever they yield", async () => {
    const registry = new OperationRegistry([count, closed]);
    const seen: unknown[] = [];
    const replay: SubscribeHook = async function* (_, next) {
      try {
        yield* next();
      } catch (error) {
        seen.push((error as CallError).code);
      }
      yield localEnvelope("replayed", "a.closed");
    };
    registry.use({ subscribe: replay });
    // The very first step fails: nothing a hook yields gets out.
    expect(await rejection(registry.subscribe(closed).next())).toEqual(code("UNAUTHENTICATED"));
    expect(await rejection(registry.subscribe("a.none").next())).toEqual(code("OPERATION_NOT_FOUND"));
    expect(seen).toEqual(["UNAUTHENTICATED", "OPERATION_NOT_FOUND"]);
    expect(await dataOf(registry, count, "x")).toEqual(["replayed"]);
    expect(seen.at(-1)).toBe("VALIDATION_ERROR");
  });

  it("RE-14 cannot make a refused stream end quietly, nor hide behind another error", async () => {
    const empty = new OperationRegistry([closed]);
    empty.use({ async *subscribe() {} });
    expect(await rejection(collect(empty.subscribe(closed)))).toEqual(code("UNAUTHENTICATED"));
    const failing = new OperationRegistry([closed, count]);
    failing.use({
      subscribe() {
        throw new Error("secret");
      },
    });
    expect(await rejection(collect(failing.subscribe(closed)))).toEqual(code("UNAUTHENTICATED"));
    expect(await rejection(collect(failing.subscribe(count, 1)))).toEqual(code("EXECUTION_ERROR"));
  });

  it("RE-14 may leave the stream inside and go on by themselves", async () => {
    const events: string[] = [];
    const ticks = stream("a.ticks", async function* () {
      try {
        for (;;) yield "inside";
      } finally {
        events.push("left");
      }
    });
    const registry = new OperationRegistry([ticks]);
    registry.use({
      async *subscribe(_, next) {
        for await (const envelope of next()) {
          yield envelope;
          break;
        }
        events.push("alone");
        yield localEnvelope("outside", "a.ticks");
      },
    });
    expect(await dataOf(registry, ticks, {})).toEqual(["inside", "outside"]);
    expect(events).toEqual(["left", "alone"]);
  });

  it("RE-14 may pass on an iterable that knows no return(), and can be taken out again", async () => {
    const registry = new OperationRegistry([count]);
    const envelope = localEnvelope("own", "a.count");
    const own = { [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false, value: envelope }) }) };
    const seen: string[] = [];
    registry.use({
      subscribe(_, next) {
        seen.push("outer");
        return next();
      },
    });
    const stop = registry.use({ subscribe: () => own });
    for await (const { data } of registry.subscribe(count, 1)) {
      seen.push(data as string);
      break;
    }
    stop();
    expect(await dataOf(registry, count, 1)).toEqual([0]);
    expect(seen).toEqual(["outer", "own", "outer"]);
  });

  it("RE-14 must yield envelopes", async () => {
    const registry = new OperationRegistry([count]);
    registry.use({
      async *subscribe() {
        yield 5 as never;
      },
    });
    expect(await rejection(collect(registry.subscribe(count, 1)))).toEqual(code("EXECUTION_ERROR"));
  });

  it("RE-14 pass on that the reader has left, and the handler hears of it even while a hook is busy", async () => {
    vi.useFakeTimers();
    const left: string[] = [];
    const ticks = stream("a.ticks", async function* (_, { signal }) {
      signal.addEventListener("abort", () => left.push("signal"));
      try {
        for (;;) yield 1;
      } finally {
        left.push("finally");
      }
    });
    const busy = async function* (_: HookedCall, next: () => AsyncIterable<ResponseEnvelope>) {
      for await (const envelope of next()) {
        yield envelope;
        await sleep(1000);
      }
    };
    const registry = new OperationRegistry([ticks]);
    registry.use({ subscribe: busy });
    for await (const _ of registry.subscribe(ticks)) break;
    expect(left).toEqual(["signal", "finally"]);
    left.length = 0;
    const read = rejection(collect(registry.subscribe(ticks, {}, { timeoutMs: 10 })));
    await vi.advanceTimersByTimeAsync(10);
    expect(await read).toEqual(code("TIMEOUT"));
    await vi.advanceTimersByTimeAsync(1);
    expect(left).toEqual(["signal", "finally"]);
  });

  it("RE-14 leave calls alone, as hooks around calls leave subscriptions", async () => {
    const registry = new OperationRegistry([count, echo]);
    const [execute, subscribe] = [vi.fn((_, next) => next()), vi.fn((_, next) => next())];
    registry.use({ subscribe });
    registry.use(execute as never);
    await registry.execute(echo, "x");
    expect([execute.mock.calls.length, subscribe.mock.calls.length]).toEqual([1, 0]);
    await collect(registry.subscribe(count, 1));
    expect([execute.mock.calls.length, subscribe.mock.calls.length]).toEqual([1, 1]);
  });
});
