import { afterEach, describe, expect, it, vi } from "vitest";
import { query, rejection, sleep, stream } from "../../../test/make-operation.ts";
import type { OperationContext } from "../operation/operation-context.ts";
import type { ExecuteOptions } from "../registry/executor.ts";
import { OperationRegistry, type RegistryOptions } from "../registry/registry.ts";

/** Runs something with the context of a call. */
async function within<T>(
  use: (context: OperationContext) => T | Promise<T>,
  options?: ExecuteOptions,
  settings?: RegistryOptions,
): Promise<T> {
  const operation = query("a.b", async (_, context) => ({ found: await use(context) }));
  const registry = new OperationRegistry([operation], settings);
  return ((await registry.execute(operation, {}, options)).data as { found: T }).found;
}

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe("requestId", () => {
  it("RE-10 is the caller's when it is short and printable", async () => {
    expect(await within(({ requestId }) => requestId, { requestId: "req-1" })).toBe("req-1");
    expect(await within(({ requestId }) => requestId, { requestId: "x".repeat(200) })).toHaveLength(200);
  });

  it.each(["", "x".repeat(201), "a b", "a\nb", "ä", 5, null, {}])(
    "RE-10 is a fresh one instead of %s",
    async (given) => {
      const requestId = await within((context) => context.requestId, { requestId: given as never });
      expect(requestId).toMatch(/^[0-9a-f]{32}$/);
    },
  );

  it("RE-10 stays the same within a call and differs between calls", async () => {
    const twice = (context: OperationContext) => [context.requestId, context.requestId];
    const [first, second] = [await within(twice), await within(twice)];
    expect(first[0]).toBe(first[1]);
    expect(first[0]).not.toBe(second[0]);
  });

  it("CS-3 is another one each time, however many are made", async () => {
    const ids = new Set<string>();
    for (let i = 0; i < 2_000; i++) ids.add(await within((context) => context.requestId));
    expect(ids.size).toBe(2_000);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/);
  });
});

describe("parent", () => {
  it("RE-10 names every call above, and nothing for a call from outside", async () => {
    const parentOf = (_: unknown, { parent }: OperationContext) => ({ parent });
    const inner = query("a.inner", parentOf);
    const middle = query("a.middle", (_, { execute }) => execute(inner));
    const outer = query("a.outer", (_, { execute }) => execute(middle, undefined, { requestId: "two" }));
    const registry = new OperationRegistry([inner, middle, outer]);
    expect((await registry.execute(outer, {}, { requestId: "one" })).data).toEqual({
      parent: {
        requestId: "two",
        operationId: "a.middle",
        parent: { requestId: "one", operationId: "a.outer", parent: undefined },
      },
    });
    expect((await registry.execute(inner)).data).toEqual({ parent: undefined });
  });
});

describe("origin", () => {
  const parent = { requestId: "far-1", operationId: "far.away" };

  it("RE-10 is the call above one from another process, and those below name it too", async () => {
    const inner = query("a.inner", (_, context) => ({ parent: context.parent }));
    const outer = query("a.outer", async (_, context) => ({
      own: context.parent,
      below: (await context.execute(inner)).data,
    }));
    const registry = new OperationRegistry([inner, outer]);
    const above = { ...parent, parent: undefined };
    const options = { requestId: "one", origin: { depth: 1, parent: { ...parent, parent: "forged" } } };
    expect((await registry.execute(outer, {}, options)).data).toStrictEqual({
      own: above,
      below: { parent: { requestId: "one", operationId: "a.outer", parent: above } },
    });
    const read = (context: OperationContext) => context.parent;
    expect(Object.isFrozen(await within(read, { origin: { depth: 1, parent } }))).toBe(true);
    expect(await within(read, { origin: { depth: 1 } })).toBeUndefined();
  });

  it("RE-10 counts towards the calls within calls, at the limit and one over it", async () => {
    const leaf = query("a.leaf", () => 1);
    const nest = query("a.nest", (_, { execute }) => execute(leaf));
    const ticks = stream("a.ticks", async function* () {
      yield 1;
    });
    const registry = new OperationRegistry([leaf, nest, ticks], { limits: { callDepth: 3 } });
    const at = (depth: number) => ({ origin: { depth, parent } });
    const tooDeep = {
      code: "RESOURCE_EXHAUSTED",
      retryable: false,
      message: expect.stringContaining("3 calls deep"),
    };
    expect((await registry.execute(leaf, {}, at(3))).data).toBe(1);
    expect(await rejection(registry.execute(leaf, {}, at(4)))).toMatchObject(tooDeep);
    expect((await registry.execute(nest, {}, at(2))).data).toBe(1);
    expect(await rejection(registry.execute(nest, {}, at(3)))).toMatchObject(tooDeep);
    expect(() => registry.subscribe(ticks, {}, at(3))).not.toThrow();
    expect(() => registry.subscribe(ticks, {}, at(4))).toThrow(expect.objectContaining(tooDeep));
  });

  it("RE-10 makes no call from outside one from inside: internal operations and access stay as they are", async () => {
    const hidden = query("a.hidden", () => 1, { visibility: "internal" });
    const guarded = query("a.guarded", () => 1, { access: {} });
    const registry = new OperationRegistry([hidden, guarded]);
    const options = { origin: { depth: 1, parent } };
    expect(await rejection(registry.execute(hidden, {}, options))).toMatchObject({
      code: "OPERATION_NOT_FOUND",
    });
    expect(await rejection(registry.execute(guarded, {}, options))).toMatchObject({
      code: "UNAUTHENTICATED",
    });
  });

  it("RE-10 is not for handlers to give", async () => {
    const inner = query("a.inner", (_, context) => ({ above: context.parent?.operationId }));
    const options = { origin: { depth: 1_000, parent } } as object;
    const outer = query("a.outer", (_, { execute }) => execute(inner, {}, options));
    expect((await new OperationRegistry([inner, outer]).execute(outer)).data).toEqual({ above: "a.outer" });
  });

  it.each([
    [null, "origin must be an object with a depth."],
    ["far", "origin must be an object with a depth."],
    [{}, "origin.depth must be a whole number, 0 or more."],
    [{ depth: -1 }, "origin.depth must be"],
    [{ depth: 1.5 }, "origin.depth must be"],
    [{ depth: "1" }, "origin.depth must be"],
    [{ depth: Number.POSITIVE_INFINITY }, "origin.depth must be"],
    [{ depth: 1, parent: null }, "origin.parent must be an object with a requestId and an operationId."],
    [{ depth: 1, parent: "x" }, "origin.parent must be"],
    [{ depth: 1, parent: { requestId: "a b", operationId: "a.b" } }, "origin.parent must be"],
    [{ depth: 1, parent: { requestId: "x".repeat(201), operationId: "a.b" } }, "origin.parent must be"],
    [{ depth: 1, parent: { requestId: "a" } }, "origin.parent must be"],
  ])("RE-10 is a programmer's mistake when it is %j", async (origin, message) => {
    const error = await rejection(within(() => 1, { origin: origin as never }));
    expect(error).toBeInstanceOf(TypeError);
    expect(String(error)).toContain(message);
  });
});

describe("identity", () => {
  const identity = { subject: "ada", scopes: ["a"] };

  it("RE-10 is a frozen copy of the caller's, or nothing", async () => {
    const held = await within((context) => context.identity, { identity });
    expect(held).toEqual({ ...identity, resources: {} });
    expect(held).not.toBe(identity);
    expect(Object.isFrozen(held)).toBe(true);
    expect(await within((context) => context.identity)).toBeUndefined();
  });

  it("RE-10 cannot be exchanged by the handler", async () => {
    await within((context) => {
      expect(() => Object.assign(context, { identity: { subject: "root" } })).toThrow(TypeError);
    });
  });

  it.each([null, "ada", {}, { subject: 1 }])(
    "RE-10 rejects the identity %j with a TypeError",
    async (wrong) => {
      expect(await rejection(within(() => 1, { identity: wrong as never }))).toBeInstanceOf(TypeError);
    },
  );
});

describe("signal and deadline", () => {
  it("RE-10 gives one quiet signal when nothing can end the call", async () => {
    await within((context) => {
      expect(context.signal).toBe(context.signal);
      expect(context.signal.aborted).toBe(false);
      expect(context.deadline).toBeUndefined();
    });
  });

  it("RE-10 gives the deadline on the clock of performance.now()", async () => {
    const before = performance.now();
    const deadline = await within((context) => context.deadline, { timeoutMs: 60_000 });
    expect(deadline).toBeGreaterThanOrEqual(before + 60_000);
    expect(deadline).toBeLessThanOrEqual(performance.now() + 60_000);
  });

  it("RE-10 takes Infinity for no deadline, and the registry's when the caller names none", async () => {
    const { POSITIVE_INFINITY } = Number;
    expect(await within((context) => context.deadline, { timeoutMs: POSITIVE_INFINITY })).toBeUndefined();
    const settings = { defaultTimeoutMs: 60_000 };
    expect(await within((context) => context.deadline, undefined, settings)).toBeTypeOf("number");
    expect(
      await within((context) => context.deadline, { timeoutMs: POSITIVE_INFINITY }, settings),
    ).toBeUndefined();
  });
});

describe("metadata", () => {
  it("RE-10 is what the caller gave, inherited by nested calls that name none", async () => {
    const inner = query("a.inner", (_, { metadata }) => ({ metadata }));
    const outer = query("a.outer", async (_, { execute, metadata }) => [
      metadata,
      (await execute(inner)).data,
      (await execute(inner, {}, { metadata: { own: 1 } })).data,
    ]);
    const registry = new OperationRegistry([inner, outer]);
    expect((await registry.execute(outer, {}, { metadata: { trace: "t" } })).data).toEqual([
      { trace: "t" },
      { metadata: { trace: "t" } },
      { metadata: { own: 1 } },
    ]);
    expect((await registry.execute(inner)).data).toEqual({ metadata: {} });
  });
});

describe("progress and log", () => {
  it("RE-10 reach whoever listens, taken out of the context", async () => {
    const [onProgress, allProgress, onLog] = [vi.fn(), vi.fn(), vi.fn()];
    await within(
      ({ progress, log }) => {
        progress({ done: 1, of: 2 });
        log("info", "half way", { n: 1 });
        log("debug", "bare");
      },
      { onProgress, requestId: "r1" },
      { onProgress: allProgress, onLog },
    );
    const call = { operationId: "a.b", requestId: "r1" };
    expect(onProgress.mock.calls).toEqual([[{ done: 1, of: 2 }]]);
    expect(allProgress.mock.calls).toEqual([[{ value: { done: 1, of: 2 }, ...call }]]);
    expect(onLog.mock.calls).toEqual([
      [{ level: "info", message: "half way", data: { n: 1 }, ...call }],
      [{ level: "debug", message: "bare", data: undefined, ...call }],
    ]);
  });

  it("RE-10 do nothing when nobody listens, and survive a listener that throws", async () => {
    const quiet = vi.fn();
    await within(
      ({ progress, log }) => {
        progress(1);
        log("info", "x");
      },
      {},
      { onWarning: quiet },
    );
    expect(quiet).not.toHaveBeenCalled();
    const onWarning = vi.fn();
    const fail = () => {
      throw new Error("listener");
    };
    const settings = { onWarning, onLog: fail, onProgress: fail };
    await within(
      ({ progress, log }) => {
        progress(1);
        log("info", "x");
      },
      { onProgress: fail },
      settings,
    );
    const message = "A listener of the registry threw.";
    const warning = { type: "listener-failed", message, cause: new Error("listener") };
    expect(onWarning.mock.calls).toEqual([[warning], [warning], [warning]]);
  });

  it.each([
    ["returned", () => 1],
    ["answered later", async () => 1],
    [
      "thrown",
      () => {
        throw new Error("x");
      },
    ],
    ["failed later", () => Promise.reject(new Error("x"))],
  ])("RE-10 stop once the handler has %s", async (_, end) => {
    const onProgress = vi.fn();
    let report: (value: unknown) => void = () => {};
    const operation = query("a.b", (_, { progress }) => {
      report = progress;
      progress("in time");
      return end();
    });
    await new OperationRegistry([operation]).execute(operation, {}, { onProgress }).catch(() => {});
    report("late");
    expect(onProgress.mock.calls).toEqual([["in time"]]);
  });

  it("RE-10 stop once the caller has left", async () => {
    const onProgress = vi.fn();
    let reported = false;
    const operation = query("a.b", async (_, { progress }) => {
      await sleep(20);
      progress("late");
      reported = true;
    });
    const registry = new OperationRegistry([operation]);
    vi.useFakeTimers();
    const ended = registry.execute(operation, {}, { onProgress, timeoutMs: 5 }).catch(() => {});
    await vi.advanceTimersByTimeAsync(5);
    await ended;
    await vi.advanceTimersByTimeAsync(15);
    expect(reported).toBe(true);
    expect(onProgress).not.toHaveBeenCalled();
  });

  it("RE-10 tell the caller of a nested call nothing of the calls below it", async () => {
    const onProgress = vi.fn();
    const inner = query("a.inner", (_, { progress }) => progress("inner"));
    const outer = query("a.outer", (_, { execute }) => execute(inner));
    await new OperationRegistry([inner, outer]).execute(outer, {}, { onProgress });
    expect(onProgress).not.toHaveBeenCalled();
  });
});
