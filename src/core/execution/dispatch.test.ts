import { getEventListeners } from "node:events";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { query, rejection, sleep, stream } from "../../../test/make-operation.ts";
import type { OperationContext } from "../operation/operation-context.ts";
import { OperationRegistry } from "../registry/registry.ts";
import { checkExecuteOptions, EXECUTE_OPTIONS } from "./call-context.ts";

const code = (expected: string) => expect.objectContaining({ code: expected });

afterEach(() => void vi.useRealTimers());

describe("looking up", () => {
  const internal = query("a.internal", () => 1, { visibility: "internal" });
  const registry = new OperationRegistry([query("a.b", () => 7), internal]);

  it("RE-10 finds an operation by itself and by its id", async () => {
    expect((await registry.execute("a.b")).data).toBe(7);
    expect((await registry.execute(query("a.b", () => "another object"))).data).toBe(7);
  });

  it.each([
    "a.c",
    "a",
    "",
    ".",
    "a.b ",
    "A.B",
    "__proto__",
    "constructor",
    "a.__proto__",
    "toString",
    "\u0000",
  ])("RE-10 answers OPERATION_NOT_FOUND to the id %j", async (id) => {
    expect(await rejection(registry.execute(id))).toEqual(code("OPERATION_NOT_FOUND"));
  });

  it.each([
    5,
    null,
    undefined,
    true,
    {},
    [],
    { id: 5 },
    { id: null },
    Symbol("a.b"),
    () => 1,
    {
      get id() {
        throw new Error("hostile");
      },
    },
  ])("RE-10 answers OPERATION_NOT_FOUND to what is no id at all", async (target) => {
    expect(await rejection(registry.execute(target as unknown as string))).toMatchObject({
      code: "OPERATION_NOT_FOUND",
      message: "There is no such operation.",
    });
  });

  it("RE-10 answers for a hidden operation, byte for byte, as if it did not exist", async () => {
    const hidden = (await rejection(registry.execute("a.internal"))) as Error;
    const empty = new OperationRegistry();
    const missing = (await rejection(empty.execute("a.internal"))) as Error;
    expect(hidden).toEqual(code("OPERATION_NOT_FOUND"));
    expect(JSON.stringify(hidden)).toBe(JSON.stringify(missing));
    expect(Object.getOwnPropertyNames(hidden)).toEqual(Object.getOwnPropertyNames(missing));
    expect(hidden.message).toBe(missing.message);
    expect(await rejection(registry.execute(internal))).toEqual(hidden);
  });

  it("RE-10 shows at most the first 200 characters of an id", async () => {
    const error = (await rejection(registry.execute("x".repeat(100_000)))) as Error;
    expect(error.message).toBe(`There is no operation "${"x".repeat(200)}".`);
  });

  it("RE-10 sends a subscription to subscribe(), after access", async () => {
    const open = stream("a.open", async function* () {});
    const closed = stream("a.closed", async function* () {}, { access: {} });
    const mixed = new OperationRegistry([open, closed]);
    expect(await rejection(mixed.execute(open))).toMatchObject({
      code: "VALIDATION_ERROR",
      message: '"a.open" is a subscription: use subscribe() instead of execute().',
    });
    expect(await rejection(mixed.execute(closed))).toEqual(code("UNAUTHENTICATED"));
  });
});

describe("access", () => {
  it("RE-10 is decided before validation, and validation before the handler", async () => {
    const handler = vi.fn();
    const operation = query("a.b", handler, {
      access: { scopes: { allOf: ["w"] } },
      inputSchema: { type: "string" },
    });
    const registry = new OperationRegistry([operation]);
    expect(await rejection(registry.execute(operation, 5))).toEqual(code("UNAUTHENTICATED"));
    const identity = { subject: "ada", scopes: [] as string[] };
    expect(await rejection(registry.execute(operation, 5, { identity }))).toEqual(code("ACCESS_DENIED"));
    identity.scopes.push("w");
    expect(await rejection(registry.execute(operation, 5, { identity }))).toEqual(code("VALIDATION_ERROR"));
    expect(handler).not.toHaveBeenCalled();
  });
});

describe("cancelling", () => {
  /** A handler that never answers and tells what its signal said. */
  function stubborn() {
    const reasons: unknown[] = [];
    const handler = (_: unknown, { signal }: OperationContext) => {
      signal.addEventListener("abort", () => reasons.push(signal.reason));
      return new Promise<never>(() => {});
    };
    return { reasons, operation: query("a.stubborn", handler) };
  }

  it("RE-10 rejects at the deadline though the handler goes on, and tells it", async () => {
    const { reasons, operation } = stubborn();
    vi.useFakeTimers();
    const pending = rejection(new OperationRegistry([operation]).execute(operation, {}, { timeoutMs: 5 }));
    await vi.advanceTimersByTimeAsync(5);
    const error = await pending;
    expect(error).toMatchObject({
      code: "TIMEOUT",
      message: '"a.stubborn" did not answer before its deadline.',
    });
    expect(reasons).toEqual([error]);
  });

  it("RE-10 rejects on an abort though the handler goes on, and tells it", async () => {
    const { reasons, operation } = stubborn();
    const controller = new AbortController();
    const pending = new OperationRegistry([operation]).execute(operation, {}, { signal: controller.signal });
    controller.abort("bye");
    const error = await rejection(pending);
    expect(error).toMatchObject({ code: "ABORTED", cause: "bye" });
    expect(reasons).toEqual([error]);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  it.each([
    ["an aborted signal", { signal: AbortSignal.abort() }, "ABORTED"],
    ["no time at all", { timeoutMs: 0 }, "TIMEOUT"],
  ])("RE-10 does not run the handler with %s", async (_, options, expected) => {
    const handler = vi.fn();
    const operation = query("a.b", handler, { inputSchema: { type: "string" } });
    const registry = new OperationRegistry([operation]);
    expect(await rejection(registry.execute(operation, "x", options))).toEqual(code(expected));
    expect(await rejection(registry.execute("a.none", "x", options))).toEqual(code("OPERATION_NOT_FOUND"));
    expect(handler).not.toHaveBeenCalled();
  });

  it.each([
    ["timeoutMs", Number.NaN],
    ["timeoutMs", -1],
    ["timeoutMs", "50"],
    ["timeoutMs", null],
    ["signal", null],
    ["signal", {}],
    ["signal", new AbortController()],
  ])("RE-10 rejects %s %s as a mistake of the programmer", async (option, value) => {
    const handler = vi.fn();
    const registry = new OperationRegistry([query("a.b", handler)]);
    const error = await rejection(registry.execute("a.b", {}, { [option]: value }));
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toContain(option);
    expect(handler).not.toHaveBeenCalled();
  });

  it("RE-10 drops the answer of a synchronous handler that is late or aborts its own call", async () => {
    const slow = query("a.slow", () => {
      const end = performance.now() + 10;
      while (performance.now() < end);
      return 1;
    });
    const controller = new AbortController();
    const own = query("a.own", (_, { signal }) => {
      controller.abort();
      return signal.aborted;
    });
    const registry = new OperationRegistry([slow, own]);
    expect(await rejection(registry.execute(slow, {}, { timeoutMs: 5 }))).toEqual(code("TIMEOUT"));
    expect(await rejection(registry.execute(own, {}, controller))).toEqual(code("ABORTED"));
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  it("RE-10 keeps the error of a handler that fails in time", async () => {
    const fail = () => {
      throw new Error("x");
    };
    const operations = [query("a.now", fail), query("a.later", async () => fail())];
    const registry = new OperationRegistry(operations);
    const { signal } = new AbortController();
    for (const operation of operations) {
      const options = { timeoutMs: 60_000, signal };
      expect(await rejection(registry.execute(operation, {}, options))).toEqual(code("EXECUTION_ERROR"));
    }
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("RE-10 makes no timer for a handler that answers at once", async () => {
    const timers = vi.spyOn(globalThis, "setTimeout");
    onTestFinished(() => timers.mockRestore());
    const registry = new OperationRegistry([query("a.b", () => ({ then: 1 }))]);
    await registry.execute("a.b", {}, { timeoutMs: 60_000 });
    expect(timers).not.toHaveBeenCalled();
  });

  it("RE-10 joins a caller's signal and a deadline, whichever comes first", async () => {
    const { operation } = stubborn();
    const registry = new OperationRegistry([operation]);
    const controller = new AbortController();
    const options = { signal: controller.signal, timeoutMs: 5 };
    expect(await rejection(registry.execute(operation, {}, options))).toEqual(code("TIMEOUT"));
    const again = registry.execute(operation, {}, { ...options, timeoutMs: 60_000 });
    controller.abort();
    expect(await rejection(again)).toEqual(code("ABORTED"));
  });
});

describe("nested calls", () => {
  it("RE-10 reaches everything a handler called, with no waiting for it", async () => {
    const seen: string[] = [];
    const leaf = query("a.leaf", (_, { signal }) => {
      signal.addEventListener("abort", () => seen.push("leaf"));
      return new Promise<never>(() => {});
    });
    const branch = query("a.branch", async (_, { execute, signal }) => {
      signal.addEventListener("abort", () => seen.push("branch"));
      await execute(leaf).catch((error) => seen.push(error.code));
    });
    const registry = new OperationRegistry([leaf, branch]);
    const controller = new AbortController();
    const pending = registry.execute(branch, {}, { signal: controller.signal });
    await sleep(1);
    controller.abort();
    expect(await rejection(pending)).toEqual(code("ABORTED"));
    await sleep(1);
    expect(seen.toSorted()).toEqual(["ABORTED", "branch", "leaf"]);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  it("RE-10 gives a nested call what is left of the time, and never more", async () => {
    const deadlineOf = query("a.inner", (_, { deadline }) => deadline);
    const outer = query("a.outer", async (_, { execute, deadline }) => ({
      outer: deadline,
      same: (await execute(deadlineOf)).data,
      longer: (await execute(deadlineOf, {}, { timeoutMs: 1e9 })).data,
      shorter: (await execute(deadlineOf, {}, { timeoutMs: 60_000 })).data,
    }));
    const registry = new OperationRegistry([deadlineOf, outer]);
    const { data } = await registry.execute(outer, {}, { timeoutMs: 1_000_000 });
    const found = data as Record<"outer" | "same" | "longer" | "shorter", number>;
    expect(found.same).toBe(found.outer);
    expect(found.longer).toBe(found.outer);
    expect(found.shorter).toBeLessThan(found.outer);
  });

  it("RE-10 gives a nested call the default of the registry only through its parent", async () => {
    const inner = query("a.inner", (_, { deadline }) => deadline ?? "none");
    const outer = query("a.outer", (_, { execute }) => execute(inner));
    const registry = new OperationRegistry([inner, outer], { defaultTimeoutMs: 60_000 });
    expect((await registry.execute(outer, {}, { timeoutMs: Number.POSITIVE_INFINITY })).data).toBe("none");
    expect((await registry.execute(outer)).data).toBeTypeOf("number");
  });

  it("RE-10 ends a nested call at once when its parent's time is over", async () => {
    const handler = vi.fn();
    const inner = query("a.inner", handler);
    let late: Promise<unknown> = Promise.resolve();
    const outer = query("a.outer", async (_, { execute }) => {
      await sleep(20);
      late = rejection(execute(inner));
    });
    const registry = new OperationRegistry([inner, outer]);
    vi.useFakeTimers();
    const ended = rejection(registry.execute(outer, {}, { timeoutMs: 5 }));
    await vi.advanceTimersByTimeAsync(5);
    await ended;
    await vi.advanceTimersByTimeAsync(15);
    expect(await late).toEqual(code("TIMEOUT"));
    expect(handler).not.toHaveBeenCalled();
  });

  it("RE-10 aborts one nested call by its own signal and leaves the rest alone", async () => {
    const inner = query("a.inner", () => new Promise<never>(() => {}));
    const outer = query("a.outer", async (_, { execute, signal }) => {
      const own = new AbortController();
      const pending = execute(inner, {}, { signal: own.signal });
      own.abort();
      return [await rejection(pending), signal.aborted];
    });
    const registry = new OperationRegistry([inner, outer]);
    const { data } = await registry.execute(outer, {}, { timeoutMs: 60_000 });
    expect(data).toEqual([code("ABORTED"), false]);
  });

  it("RE-10 takes no identity from the options of a nested call", async () => {
    const who = query("a.who", (_, { identity }) => identity?.subject ?? "nobody");
    const identity = { subject: "root", scopes: ["admin"] };
    const outer = query("a.outer", (_, { execute }) => execute(who, {}, { identity } as never));
    const registry = new OperationRegistry([who, outer]);
    expect((await registry.execute(outer)).data).toBe("nobody");
    expect((await registry.execute(outer, {}, { identity: { subject: "ada" } })).data).toBe("ada");
  });

  it("RE-10 stops operations that call each other in a circle", async () => {
    let runs = 0;
    const circle = query("a.circle", (_, { execute }) => {
      runs++;
      return execute("a.circle");
    });
    expect(await rejection(new OperationRegistry([circle]).execute(circle))).toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      retryable: false,
      message: expect.stringContaining("64 calls deep"),
    });
    expect(runs).toBe(65);
    runs = 0;
    const shallow = new OperationRegistry([circle], { limits: { callDepth: 2 } });
    await rejection(shallow.execute(circle));
    expect(runs).toBe(3);
  });
});

describe("options that there are not", () => {
  const message = 'There is no option "timeout"; did you mean "timeoutMs"?';

  it("RE-10 are refused before anything runs", async () => {
    const handler = vi.fn(() => 1);
    const registry = new OperationRegistry([query("a.b", handler)]);
    const options = { timeout: 5 } as never;
    expect(await rejection(registry.execute("a.b", {}, options))).toEqual(new TypeError(message));
    expect(() => registry.subscribe("a.b", {}, options)).toThrow(new TypeError(message));
    expect(await rejection(registry.execute("a.b", {}, 5 as never))).toBeInstanceOf(TypeError);
    expect(handler).not.toHaveBeenCalled();
  });

  it("RE-10 are refused in nested calls and in calls of an env", async () => {
    const inner = query("a.inner", () => 1);
    const options = { timeout: 5 } as never;
    const outer = query("a.outer", async (_, context) => [
      await rejection(context.execute(inner, {}, options)),
      await rejection(context.env["a"]?.["inner"]?.({}, options) as Promise<unknown>),
      await rejection((async () => context.subscribe(inner, {}, options))()),
    ]);
    const registry = new OperationRegistry([inner, outer]);
    const { data } = await registry.execute(outer);
    expect(data).toEqual([new TypeError(message), new TypeError(message), new TypeError(message)]);
  });

  it("RE-10 are none of those there are", () => {
    for (const name of EXECUTE_OPTIONS) expect(() => checkExecuteOptions({ [name]: 1 })).not.toThrow();
    for (const options of [5, true, "text", () => 5]) {
      expect(() => checkExecuteOptions(options as unknown as object)).toThrow(
        "The options must be an object with any of: identity, signal,",
      );
    }
  });

  it("RE-10 may be undefined, or offered by a prototype", async () => {
    const registry = new OperationRegistry([query("a.b", (_, { metadata }) => metadata)]);
    const inherited = Object.create({ timeout: 5, metadata: { from: "prototype" } });
    expect((await registry.execute("a.b", {}, inherited)).data).toEqual({ from: "prototype" });
    expect(
      (await registry.execute("a.b", {}, { signal: undefined, timeout: undefined } as never)).data,
    ).toEqual({});
    expect((await registry.execute("a.b", {}, null as never)).data).toEqual({});
  });
});
