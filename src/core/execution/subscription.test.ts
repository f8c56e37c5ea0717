import { getEventListeners } from "node:events";
import { Type } from "typebox";
import { afterEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { collect, deferred, query, rejection, sleep, stream, until } from "../../../test/make-operation.ts";
import { localEnvelope, mcpEnvelope, toolError } from "../envelope/envelope.ts";
import { CallError } from "../errors/errors.ts";
import type { OperationContext } from "../operation/operation-context.ts";
import { withCursor } from "../operation/with-cursor.ts";
import { OperationRegistry } from "../registry/registry.ts";

const code = (expected: string) => expect.objectContaining({ code: expected });

afterEach(() => void vi.useRealTimers());

const yielding = (...values: unknown[]) =>
  stream("a.s", async function* () {
    yield* values;
  });

const envelopesOf = (...values: unknown[]) => {
  const operation = yielding(...values);
  return collect(new OperationRegistry([operation]).subscribe(operation));
};

/** A stream that counts for ever and tells what happened to it. */
function ticking(events: string[] = []) {
  const operation = stream("a.ticks", async function* (_, { signal }) {
    signal.addEventListener("abort", () => events.push(`signal ${signal.reason.code}`));
    try {
      for (let n = 0; ; n++) {
        yield n;
        await sleep(1);
      }
    } finally {
      events.push("finally");
    }
  });
  return { events, operation, registry: new OperationRegistry([operation]) };
}

describe("yields", () => {
  it("RE-14 are wrapped one by one, each with the time it was wrapped", async () => {
    const operation = stream("a.s", async function* () {
      yield "one";
      await sleep(5);
      yield "two";
    });
    const envelopes = await collect(new OperationRegistry([operation]).subscribe(operation));
    expect(envelopes.map(({ data }) => data)).toEqual(["one", "two"]);
    const [first, second] = envelopes.map(({ meta }) => (meta as { timestamp: number }).timestamp);
    expect(second).toBeGreaterThan(first as number);
    expect(envelopes[0]?.meta).toMatchObject({ source: "local", operationId: "a.s" });
  });

  it("RE-28 carry a sequence number from 0, whatever they hold", async () => {
    const own = mcpEnvelope("mcp", {
      isError: false,
      content: [],
      waybill: { sequence: 99, cursor: "theirs" },
    });
    const envelopes = await envelopesOf("plain", own, toolError("no"), undefined);
    expect(envelopes.map(({ meta }) => meta.waybill?.sequence)).toEqual([0, 1, 2, 3]);
    expect(envelopes[1]?.meta.waybill?.cursor).toBe("theirs");
    expect(own.meta.waybill?.sequence).toBe(99);
  });

  it("RE-28 carry a cursor where the handler gives one", async () => {
    const inside = localEnvelope("b", "x.y");
    const envelopes = await envelopesOf(withCursor("a", "c1"), withCursor(inside, "c2"), "c");
    expect(envelopes.map(({ data }) => data)).toEqual(["a", "b", "c"]);
    expect(envelopes.map(({ meta }) => meta.waybill)).toEqual([
      { sequence: 0, cursor: "c1" },
      { sequence: 1, cursor: "c2" },
      { sequence: 2 },
    ]);
    expect(() => withCursor("a", 5 as never)).toThrow(TypeError);
  });

  it("RE-14 pass envelopes through with their own meta", async () => {
    const content = [{ type: "text", text: "hi" }] as const;
    const [envelope] = await envelopesOf(mcpEnvelope({ a: 1 }, { isError: false, content }));
    expect(envelope?.meta).toEqual({ source: "mcp", isError: false, content, waybill: { sequence: 0 } });
    const forged = { data: 1, meta: { source: "mcp", isError: false, content: [] } };
    expect((await envelopesOf(forged))[0]).toMatchObject({ data: forged, meta: { source: "local" } });
  });

  it("RE-14 are checked and normalised like the results of calls", async () => {
    const onWarning = vi.fn();
    const outputSchema = Type.Object({ n: Type.Integer() });
    const operation = stream(
      "a.s",
      async function* () {
        yield { n: "1", extra: true };
        yield "wrong";
      },
      { outputSchema },
    );
    const [fixed, wrong] = await collect(
      new OperationRegistry([operation], { onWarning }).subscribe(operation),
    );
    expect(fixed?.data).toEqual({ n: 1 });
    expect(fixed?.meta.waybill).toMatchObject({ sequence: 0, normalization: { stripped: ["/extra"] } });
    expect(wrong?.data).toBe("wrong");
    expect(wrong?.meta.waybill).toMatchObject({ sequence: 1, violations: [{ pointer: "" }] });
    expect(onWarning).toHaveBeenCalledTimes(1);
  });

  it("RE-14 end a strict subscription when one misses its schema, and stop its handler", async () => {
    const events: string[] = [];
    const operation = stream(
      "a.s",
      async function* (_, { signal }) {
        signal.addEventListener("abort", () => events.push("signal"));
        try {
          yield 1;
          yield "wrong";
          yield 2;
        } finally {
          events.push("finally");
        }
      },
      { outputSchema: Type.Integer(), outputPolicy: "strict" },
    );
    const iterator = new OperationRegistry([operation]).subscribe(operation);
    expect((await iterator.next()).value?.data).toBe(1);
    expect(await rejection(iterator.next())).toEqual(code("OUTPUT_INVALID"));
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(events).toEqual(["signal", "finally"]);
  });

  it("RE-14 may come from any async iterable, now or later", async () => {
    const values = {
      [Symbol.asyncIterator]: () => {
        let n = 0;
        return { next: async () => (n < 2 ? { done: false, value: n++ } : { done: true, value: undefined }) };
      },
    };
    const [now, later] = [
      stream("a.now", () => values as never),
      stream("a.later", async () => values as never),
    ];
    const registry = new OperationRegistry([now, later]);
    for (const operation of [now, later]) {
      expect((await collect(registry.subscribe(operation))).map(({ data }) => data)).toEqual([0, 1]);
    }
  });

  it.each([5, null, undefined, [1], { next() {} }])("RE-14 cannot come from %j", async (value) => {
    const operation = stream("a.s", () => value as never);
    const error = await rejection(collect(new OperationRegistry([operation]).subscribe(operation)));
    expect(error).toMatchObject({
      code: "EXECUTION_ERROR",
      cause: { name: "TypeError", message: expect.stringContaining("must return an async iterable") },
    });
  });
});

describe("starting", () => {
  it("RE-14 waits until the first value is asked for", async () => {
    const handler = vi.fn(async function* () {
      yield 1;
    });
    const operation = stream("a.s", handler);
    const iterator = new OperationRegistry([operation]).subscribe(operation);
    await sleep(1);
    expect(handler).not.toHaveBeenCalled();
    await iterator.next();
    expect(handler).toHaveBeenCalledTimes(1);
    await iterator.return?.();
  });

  it("RE-14 decides about access and validates on the path of calls", async () => {
    const handler = vi.fn(async function* () {});
    const operation = stream("a.s", handler, {
      access: { scopes: { allOf: ["s"] } },
      inputSchema: { type: "string" },
    });
    const registry = new OperationRegistry([operation, query("a.q", () => 1)]);
    const failure = (target: string, input?: unknown, options?: object) =>
      rejection(collect(registry.subscribe(target, input, options)));
    const identity = { subject: "ada", scopes: ["s"] };
    expect(await failure("a.none")).toEqual(code("OPERATION_NOT_FOUND"));
    expect(await failure(undefined as never)).toEqual(code("OPERATION_NOT_FOUND"));
    expect(await failure("a.s", 5)).toEqual(code("UNAUTHENTICATED"));
    expect(await failure("a.s", 5, { identity: { subject: "eve" } })).toEqual(code("ACCESS_DENIED"));
    expect(await failure("a.s", 5, { identity })).toEqual(code("VALIDATION_ERROR"));
    expect(await failure("a.s", "x", { identity, signal: AbortSignal.abort() })).toEqual(code("ABORTED"));
    expect(await failure("a.s", "x", { identity, timeoutMs: 0 })).toEqual(code("TIMEOUT"));
    expect(handler).not.toHaveBeenCalled();
    expect(await failure("a.q")).toMatchObject({
      code: "VALIDATION_ERROR",
      message: '"a.q" is not a subscription: use execute() instead of subscribe().',
    });
  });

  it("RE-14 hides internal subscriptions from outside and shows them to handlers", async () => {
    const hidden = stream(
      "a.hidden",
      async function* () {
        yield "seen";
      },
      { visibility: "internal" },
    );
    const outer = query("a.outer", async (_, { subscribe }) => (await collect(subscribe(hidden)))[0]);
    const registry = new OperationRegistry([hidden, outer]);
    expect(await rejection(collect(registry.subscribe(hidden)))).toEqual(code("OPERATION_NOT_FOUND"));
    expect((await registry.execute(outer)).data).toBe("seen");
  });

  it("RE-14 does not run the handler when the reader left while the input was parsed", async () => {
    const handler = vi.fn(async function* () {});
    const parsed = deferred<boolean>();
    const inputSchema = z.string().refine(() => parsed.promise);
    const operation = stream("a.s", handler, { inputSchema });
    const iterator = new OperationRegistry([operation]).subscribe(operation, "x");
    const pending = iterator.next();
    await sleep(1);
    await iterator.return?.();
    expect(await pending).toEqual({ done: true, value: undefined });
    parsed.resolve(true);
    await sleep(1);
    expect(handler).not.toHaveBeenCalled();
  });

  it("RE-14 reads identity and options when it is made, not when it is read", async () => {
    const operation = stream(
      "a.s",
      async function* (_, { identity, metadata }) {
        yield [identity?.scopes, metadata];
      },
      { access: {} },
    );
    const identity = { subject: "ada", scopes: ["s"] };
    const iterator = new OperationRegistry([operation]).subscribe(
      operation,
      {},
      { identity, metadata: { m: 1 } },
    );
    identity.scopes.push("admin");
    expect((await iterator.next()).value?.data).toEqual([["s"], { m: 1 }]);
    await iterator.return?.();
  });

  it.each([
    ["timeoutMs", Number.NaN],
    ["timeoutMs", -5],
    ["signal", {}],
    ["identity", {}],
  ])("RE-14 throws at once when %s makes no sense", (option, value) => {
    const { registry, operation } = ticking();
    expect(() => registry.subscribe(operation, {}, { [option]: value } as never)).toThrow(TypeError);
  });

  it("RE-14 fills defaults and hands parsed values over, as calls do", async () => {
    const echo = async function* (input: unknown) {
      yield input;
    };
    const filled = stream("a.filled", echo, {
      inputSchema: Type.Object({ a: Type.Optional(Type.Number({ default: 1 })) }),
    });
    const parsed = stream("a.parsed", echo, { inputSchema: z.string().transform(Number) });
    const registry = new OperationRegistry([filled, parsed]);
    expect((await collect(registry.subscribe("a.filled", {})))[0]?.data).toEqual({ a: 1 });
    expect((await collect(registry.subscribe("a.parsed", "7")))[0]?.data).toBe(7);
    expect(await rejection(collect(registry.subscribe("a.parsed", 7)))).toEqual(code("VALIDATION_ERROR"));
  });
});

describe("leaving", () => {
  it("RE-14 aborts the handler's signal and runs its finally before the loop is left", async () => {
    const { events, operation, registry } = ticking();
    for await (const { data } of registry.subscribe(operation)) if (data === 2) break;
    expect(events).toEqual(["signal ABORTED", "finally"]);
  });

  it("RE-14 ends the iterator for good, and may be repeated", async () => {
    const { events, operation, registry } = ticking();
    const iterator = registry.subscribe(operation);
    await iterator.next();
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(events).toEqual(["signal ABORTED", "finally"]);
  });

  it("RE-14 starts nothing when it comes before the first value", async () => {
    const handler = vi.fn(async function* () {});
    const operation = stream("a.s", handler);
    const iterator = new OperationRegistry([operation]).subscribe(operation);
    await iterator.return?.();
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expect(handler).not.toHaveBeenCalled();
  });

  it("RE-14 does not wait for a handler that is busy, whose last step then ends quietly", async () => {
    const stuck = stream("a.stuck", async function* () {
      yield 1;
      await new Promise(() => {});
    });
    const iterator = new OperationRegistry([stuck]).subscribe(stuck);
    await iterator.next();
    const pending = iterator.next();
    await sleep(1);
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
    expect(await pending).toEqual({ done: true, value: undefined });
  });

  it("RE-14 reaches an iterator that only its return() can wake", async () => {
    let wake: (result: IteratorResult<number>) => void = () => {};
    const ended = vi.fn(async () => {
      wake({ done: true, value: undefined });
      return { done: true as const, value: undefined };
    });
    const source = {
      [Symbol.asyncIterator]: () => ({
        next: () =>
          new Promise<IteratorResult<number>>((resolve) => {
            wake = resolve;
          }),
        return: ended,
      }),
    };
    const operation = stream("a.s", () => source);
    const iterator = new OperationRegistry([operation]).subscribe(operation);
    const pending = iterator.next();
    await sleep(1);
    await iterator.return?.();
    expect(await pending).toEqual({ done: true, value: undefined });
    expect(ended).toHaveBeenCalledTimes(1);
  });

  it("RE-14 closes a stream that only comes after the reader has left", async () => {
    const ended = vi.fn(async () => ({ done: true as const, value: undefined }));
    const opened = deferred();
    const operation = stream("a.s", async () => {
      await opened.promise;
      return { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}), return: ended }) };
    });
    const iterator = new OperationRegistry([operation]).subscribe(operation);
    const pending = iterator.next();
    await sleep(1);
    await iterator.return?.();
    await pending;
    expect(ended).not.toHaveBeenCalled();
    opened.resolve();
    await sleep(1);
    expect(ended).toHaveBeenCalledTimes(1);
  });

  it("RE-14 needs no return() on the iterator of a handler", async () => {
    const source = {
      [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false as const, value: 1 }) }),
    };
    const opened = deferred();
    const [now, later] = [
      stream("a.now", () => source),
      stream("a.later", async () => {
        await opened.promise;
        return source;
      }),
    ];
    const registry = new OperationRegistry([now, later]);
    for await (const _ of registry.subscribe(now)) break;
    const iterator = registry.subscribe(later);
    const pending = iterator.next();
    await sleep(1);
    await iterator.return?.();
    expect(await pending).toEqual({ done: true, value: undefined });
    opened.resolve();
    await sleep(1);
  });

  it("RE-14 fails with a CallError when the handler's finally throws", async () => {
    const operation = stream("a.s", async function* () {
      try {
        yield 1;
      } finally {
        // biome-ignore lint/correctness/noUnsafeFinally: what a handler may do
        throw new Error("cleanup");
      }
    });
    const read = async () => {
      for await (const _ of new OperationRegistry([operation]).subscribe(operation)) break;
    };
    expect(await rejection(read())).toEqual(code("EXECUTION_ERROR"));
  });

  it("RE-14 reaches the calls the handler made", async () => {
    const seen: string[] = [];
    const inner = query("a.inner", (_, { signal }) => {
      signal.addEventListener("abort", () => seen.push("inner"));
      return new Promise<never>(() => {});
    });
    const outer = stream("a.outer", async function* (_, { execute }) {
      execute(inner).catch((error) => seen.push(error.code));
      yield 1;
      yield 2;
    });
    const registry = new OperationRegistry([inner, outer]);
    for await (const _ of registry.subscribe(outer)) break;
    await sleep(1);
    expect(seen).toEqual(["inner", "ABORTED"]);
  });
});

describe("ending early", () => {
  it.each(["while the handler works", "between two values"])(
    "RE-14 is an ABORTED error, %s",
    async (when) => {
      const { events, operation, registry } = ticking();
      const controller = new AbortController();
      const iterator = registry.subscribe(operation, {}, { signal: controller.signal });
      await iterator.next();
      const pending = when === "between two values" ? undefined : iterator.next();
      controller.abort("bye");
      expect(await rejection(pending ?? iterator.next())).toMatchObject({ code: "ABORTED", cause: "bye" });
      expect(await iterator.next()).toEqual({ done: true, value: undefined });
      await until(() => events.length > 1);
      expect(events).toEqual(["signal ABORTED", "finally"]);
      expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    },
  );

  it("RE-14 is a TIMEOUT error at the deadline of the whole", async () => {
    const { events, operation, registry } = ticking();
    const seen: unknown[] = [];
    const read = async () => {
      for await (const { data } of registry.subscribe(operation, {}, { timeoutMs: 20 })) seen.push(data);
    };
    vi.useFakeTimers();
    const ended = rejection(read());
    await vi.advanceTimersByTimeAsync(20);
    expect(await ended).toEqual(code("TIMEOUT"));
    expect(seen.slice(0, 2)).toEqual([0, 1]);
    await vi.advanceTimersByTimeAsync(5);
    expect(events).toEqual(["signal TIMEOUT", "finally"]);
  });

  it("RE-14 reaches an idle handler at the deadline, before its reader comes back", async () => {
    vi.useFakeTimers();
    const { events, operation, registry } = ticking();
    const iterator = registry.subscribe(operation, {}, { timeoutMs: 10 });
    await iterator.next();
    await vi.advanceTimersByTimeAsync(10);
    expect(events).toEqual(["signal TIMEOUT", "finally"]);
    expect(await rejection(iterator.next())).toEqual(code("TIMEOUT"));
  });

  it("RE-14 abandons at once a handler that ignores its signal", async () => {
    const stuck = stream("a.stuck", async function* () {
      await new Promise(() => {});
      yield 1;
    });
    const registry = new OperationRegistry([stuck]);
    expect(await rejection(collect(registry.subscribe(stuck, {}, { timeoutMs: 5 })))).toEqual(
      code("TIMEOUT"),
    );
  });

  it("RE-14 gives what the handler throws as a CallError, after the values before it", async () => {
    const onProgress = vi.fn();
    let late: OperationContext["progress"] = () => {};
    const operation = stream(
      "a.s",
      async function* (_, { progress }) {
        late = progress;
        progress("in time");
        yield 1;
        throw new CallError("SOLD_OUT", "Nothing left.", { details: { left: 0 } });
      },
      { errors: [{ code: "SOLD_OUT" }] },
    );
    const iterator = new OperationRegistry([operation]).subscribe(operation, {}, { onProgress });
    expect((await iterator.next()).value?.data).toBe(1);
    expect(await rejection(iterator.next())).toMatchObject({ code: "SOLD_OUT", details: { left: 0 } });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    late("late");
    expect(onProgress.mock.calls).toEqual([["in time"]]);
  });

  it("RE-14 leaves no timer and no listener after a normal end", async () => {
    vi.useFakeTimers();
    const { signal } = new AbortController();
    const registry = new OperationRegistry([yielding(1, 2)]);
    expect(await collect(registry.subscribe("a.s", {}, { signal, timeoutMs: 60_000 }))).toHaveLength(2);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("reading", () => {
  it("RE-14 answers steps asked for together in order", async () => {
    const registry = new OperationRegistry([yielding("a", "b")]);
    const iterator = registry.subscribe("a.s");
    const steps = await Promise.all([iterator.next(), iterator.next(), iterator.next(), iterator.next()]);
    expect(steps.map(({ done, value }) => [done, value?.data])).toEqual([
      [false, "a"],
      [false, "b"],
      [true, undefined],
      [true, undefined],
    ]);
  });

  it("RE-14 works from within a handler, on behalf of the caller", async () => {
    const inner = stream("a.inner", async function* (_, { identity, parent }) {
      yield [identity?.subject, parent?.operationId];
    });
    const outer = query("a.outer", async (_, { subscribe }) =>
      (await collect(subscribe(inner))).map(({ data }) => data),
    );
    const registry = new OperationRegistry([inner, outer]);
    const { data } = await registry.execute(outer, {}, { identity: { subject: "ada" } });
    expect(data).toEqual([["ada", "a.outer"]]);
  });
});
