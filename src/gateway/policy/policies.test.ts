import { getEventListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, describe, expect, it, vi } from "vitest";
import { collect, deferred, query, rejection, sleep, stream, until } from "../../../test/make-operation.ts";
import { toolError } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import { defineOperation } from "../../core/operation/operation.ts";
import type { AnyOperation, OperationSpec } from "../../core/operation/operation-types.ts";
import type { ExecuteOptions } from "../../core/registry/executor.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { createHttpHandler } from "../../openapi/server/http-handler.ts";
import type { GatewayLimits } from "../config/gateway-config.ts";
import { type CallNotes, callNotesOf } from "./call-notes.ts";
import { createPolicies, type Policies } from "./policies.ts";
import type { OperationPolicy, SourcePolicy } from "./policy.ts";

type Rules = Record<string, OperationPolicy>;

const rulesOf = (policies: Rules, source?: SourcePolicy) => ({
  sources: new Map([["a", source]]),
  sourceOf: (id: string) => (id.startsWith("a.") ? "a" : undefined),
  policies,
});

function mutation(
  id: string,
  handler: OperationSpec["handler"],
  extra: Partial<OperationSpec> = {},
): AnyOperation {
  return defineOperation({
    ...query(id, handler),
    ...extra,
    type: "mutation",
  } as OperationSpec) as AnyOperation;
}

interface Setup {
  readonly registry: OperationRegistry;
  readonly policies: Policies;
  readonly notes: (CallNotes | undefined)[];
}

function setUp(
  operations: AnyOperation[],
  rules: Rules,
  limits?: GatewayLimits,
  source?: SourcePolicy,
): Setup {
  const policies = createPolicies({ rules: rulesOf(rules, source), limits });
  const notes: (CallNotes | undefined)[] = [];
  const registry = new OperationRegistry(
    operations.map((operation) => policies.admit(operation)).filter((operation) => operation !== undefined),
  );
  registry.use((call, next) => next().finally(() => notes.push(callNotesOf(call.context))));
  registry.use(policies.hooks);
  return { registry, policies, notes };
}

const code = (expected: string) => expect.objectContaining({ code: expected });
const ada: ExecuteOptions = { identity: { subject: "ada" } };
const bob: ExecuteOptions = { identity: { subject: "bob" } };

describe("what policies admit", () => {
  const operations = ["a.get", "a.get-env", "a.put", "b.get"].map((id) => query(id, () => 1));

  it("leaves out what is disabled, denied or not allowed, by name within the source", () => {
    const source = { allow: ["get*"], deny: ["get-env"] };
    const { registry } = setUp(operations, { "b.*": { enabled: false } }, undefined, source);
    expect(registry.list().map(({ id }) => id)).toEqual(["a.get"]);
  });

  it("adds scopes to those the operation asks for; the same operation stays the same object", async () => {
    const own = query("a.own", () => 1, { access: { scopes: { allOf: ["own"], anyOf: ["x"] } } });
    const { registry, policies } = setUp([own], { "a.*": { scopes: ["more", "own"] } });
    expect(registry.get("a.own")?.access).toEqual({ scopes: { allOf: ["own", "more"], anyOf: ["x"] } });
    expect(policies.admit(own)).toBe(registry.get("a.own"));
    const identity = { subject: "ada", scopes: ["own", "x"] };
    expect(await rejection(registry.execute("a.own", {}, { identity }))).toEqual(code("ACCESS_DENIED"));
  });

  it("keeps schemas that are worked out when first asked for that way", () => {
    let asked = 0;
    const lazy = Object.freeze({
      ...query("a.lazy", () => 1),
      get inputSchema() {
        asked++;
        return { type: "string" } as const;
      },
    }) as AnyOperation;
    const { registry } = setUp([lazy], { "a.*": { scopes: ["s"] } });
    expect(asked).toBe(0);
    expect(registry.get("a.lazy")?.inputSchema).toEqual({ type: "string" });
  });

  it("tells the budget of results; later patterns win over earlier ones and over the source", () => {
    const rules = { "a.*": { resultBudget: 2 }, "a.g*": { resultBudget: 3 }, "b.*": { timeoutMs: 1 } };
    const { policies } = setUp(operations, rules, undefined, { resultBudget: 1 });
    expect(["a.get", "a.put", "b.get"].map((id) => policies.budgetOf(id))).toEqual([3, 2, undefined]);
    policies.update(rulesOf({}, { resultBudget: 1 }));
    expect(policies.budgetOf("a.get")).toBe(1);
  });

  it("refuses policies under which no call could be made", () => {
    for (const policy of [
      { concurrency: 0 },
      { timeoutMs: -1 },
      { rate: { calls: 0, perMs: 1 } },
      { rate: { calls: 1, perMs: 0 } },
    ]) {
      expect(() => createPolicies({ rules: rulesOf({ "a.*": policy }) })).toThrow(TypeError);
    }
  });
});

describe("timeouts and retries", () => {
  it("end the handler, whatever the caller would wait", async () => {
    const heard: unknown[] = [];
    const slow = query("a.slow", async (_, { signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      heard.push(signal.reason.code);
    });
    const { registry } = setUp([slow], { "a.*": { timeoutMs: 100 } });
    expect(await rejection(registry.execute(slow, {}, { timeoutMs: 60_000 }))).toEqual(code("TIMEOUT"));
    expect(heard).toEqual(["TIMEOUT"]);
  });

  const failing = (type: "query" | "mutation", error: CallError, succeedsAt = 99, extra = {}) => {
    let runs = 0;
    const make = type === "query" ? query : mutation;
    const operation = make(
      "a.fail",
      () => {
        if (++runs >= succeedsAt) return runs;
        throw error;
      },
      extra,
    );
    return { operation, runs: () => runs };
  };
  const retry = { attempts: 3, delayMs: 1 };

  it("try again what may pass, say how often, and only where nothing is done twice", async () => {
    const passing = new CallError("UNAVAILABLE");
    const rows = [
      [failing("query", passing, 3), 3],
      [failing("query", passing), 3],
      [failing("query", new CallError("CONFLICT")), 1],
      [failing("mutation", passing), 1],
      [failing("mutation", passing, 99, { annotations: { idempotent: true } }), 3],
    ] as const;
    for (const [{ operation, runs }, expected] of rows) {
      const { registry } = setUp([operation], { "a.*": { retry } });
      await registry.execute(operation).catch(() => {});
      expect(runs()).toBe(expected);
    }
    const { operation } = failing("query", passing, 3);
    const { registry, notes } = setUp([operation], { "a.*": { retry } });
    expect((await registry.execute(operation)).meta.waybill?.attempts).toBe(3);
    expect(notes).toEqual([{ attempts: 3 }]);
  });

  it("wait as long as the other side asks, unless that is too long or past the deadline", async () => {
    const later = failing("query", new CallError("RATE_LIMITED", "", { details: { retryAfterMs: 30 } }), 2);
    const { registry } = setUp([later.operation], { "a.*": { retry } });
    const started = performance.now();
    await registry.execute(later.operation);
    expect(performance.now() - started).toBeGreaterThanOrEqual(28);
    for (const policy of [
      { retry: { ...retry, maxDelayMs: 3_599_999 } },
      { retry: { ...retry, maxDelayMs: 3_600_000 }, timeoutMs: 60_000 },
    ]) {
      const { operation, runs } = failing(
        "query",
        new CallError("RATE_LIMITED", "", { details: { retryAfterMs: 3_600_000 } }),
      );
      const setup = setUp([operation], { "a.*": policy });
      expect(await rejection(setup.registry.execute(operation))).toEqual(code("RATE_LIMITED"));
      expect(runs()).toBe(1);
    }
  });

  it("stop when the caller leaves", async () => {
    const leaving = new AbortController();
    let runs = 0;
    const operation = query("a.fail", () => {
      runs++;
      setTimeout(() => leaving.abort(new DOMException("It is late.", "TimeoutError")), 5);
      throw new CallError("UNAVAILABLE");
    });
    const { registry } = setUp([operation], { "a.*": { retry: { attempts: 9, delayMs: 10_000 } } });
    const { signal } = leaving;
    expect(await rejection(registry.execute(operation, {}, { signal }))).toEqual(code("TIMEOUT"));
    expect(runs).toBe(1);
  });
});

describe("rate and concurrency", () => {
  it("hold over all operations of a source, and over all that a pattern fits", async () => {
    let running = 0;
    let most = 0;
    const busy = async () => {
      most = Math.max(most, ++running);
      await delay(2);
      running--;
    };
    const operations = ["a.x", "a.y", "b.x"].map((id) => query(id, busy));
    for (const [rules, source, expected] of [
      [{}, { concurrency: 2 }, 2],
      [{ "?.*": { concurrency: 1 } }, { concurrency: 2 }, 1],
    ] as const) {
      most = 0;
      const { registry, notes } = setUp(operations, rules, undefined, source);
      const called = Array.from({ length: 10 }, (_, n) => registry.execute(n % 2 ? "a.x" : "a.y"));
      await Promise.all(called);
      expect(most).toBe(expected);
      const waits = notes.flatMap((note) => note?.waitedMs ?? []);
      expect(waits.filter((ms) => ms > 0)).toHaveLength(10 - expected);
      expect(waits.filter((ms) => !/^\d+(\.\d{1,3})?$/.test(String(ms)))).toEqual([]);
    }
  });

  it("turn away one more than may wait; who waits is told of its deadline", async () => {
    const hang = query(
      "a.hang",
      (_, { signal }) => new Promise((resolve) => signal.addEventListener("abort", resolve)),
    );
    const { registry } = setUp([hang], { "a.*": { concurrency: 1, timeoutMs: 500 } }, { queue: 2 });
    const all = await Promise.all(Array.from({ length: 4 }, () => rejection(registry.execute(hang))));
    expect(all.map((error) => (error as CallError).code).sort()).toEqual([
      "RESOURCE_EXHAUSTED",
      ...["TIMEOUT", "TIMEOUT", "TIMEOUT"],
    ]);
  });

  it("keep the place of a subscription until it ends, also when its handler hears nothing", async () => {
    const ticks = stream("a.ticks", async function* () {
      yield 1;
      await new Promise(() => {});
    });
    const { registry } = setUp([ticks], { "a.*": { concurrency: 1 } });
    const first = registry.subscribe(ticks, {});
    expect((await first.next()).value?.data).toBe(1);
    const second = registry.subscribe(ticks, {});
    let isIn = false;
    const entered = second.next().then(() => {
      isIn = true;
    });
    await sleep(5);
    expect(isIn).toBe(false);
    const stuck = first.next();
    await first.return?.();
    await Promise.all([stuck, entered]);
    await second.return?.();
    const short = stream("a.short", async function* () {
      yield 1;
    });
    const { registry: other } = setUp([short], { "a.*": { concurrency: 1 } });
    for (let n = 0; n < 3; n++) expect(await collect(other.subscribe(short, {}))).toHaveLength(1);
  });

  it("let as many calls run as the gateway may, those of handlers not counted, and refuse one more", async () => {
    const inner = query("a.inner", () => 1);
    const outer = query("a.outer", async (_, { execute }) => {
      await delay(5);
      return (await execute(inner)).data;
    });
    const { registry } = setUp([inner, outer], {}, { calls: 2 });
    const all = await Promise.allSettled([1, 2, 3].map(() => registry.execute(outer)));
    expect(all.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
    expect((all[2] as PromiseRejectedResult).reason).toEqual(code("RESOURCE_EXHAUSTED"));
    expect((await registry.execute(outer)).data).toBe(1);
  });

  it("leave a quarter of the calls that may run to others than the caller who makes most", async () => {
    const slow = query("a.slow", () => delay(20));
    const { registry } = setUp([slow], {}, { calls: 8 });
    await registry.execute(slow, {}, bob);
    const many = Promise.allSettled(Array.from({ length: 8 }, () => registry.execute(slow, {}, ada)));
    const others = Promise.allSettled(Array.from({ length: 3 }, () => registry.execute(slow, {}, bob)));
    const statuses = async (all: typeof many) => (await all).map(({ status }) => status === "fulfilled");
    expect(await statuses(many)).toEqual([true, true, true, true, true, true, false, false]);
    expect(await statuses(others)).toEqual([true, true, false]);
    expect((await many)[6]).toMatchObject({ reason: code("RESOURCE_EXHAUSTED") });
    await registry.execute(slow, {}, ada);
  });

  it("give callers turns in turn where calls wait for a place", async () => {
    const order: string[] = [];
    const busy = query("a.busy", async (_, { identity }) => {
      order.push(identity?.subject ?? "");
      await delay(1);
    });
    const { registry } = setUp([busy], { "a.*": { concurrency: 1 } });
    const many = Array.from({ length: 20 }, () => registry.execute(busy, {}, ada));
    await Promise.all([...many, registry.execute(busy, {}, bob)]);
    // The first one runs, and the next one has come before.
    expect(order.indexOf("bob")).toBeLessThanOrEqual(2);
  });

  it("pass by calls that are refused: they take no turn", async () => {
    const scoped = query("a.scoped", () => 1, { access: {} });
    const { registry } = setUp([scoped], { "a.*": { rate: { calls: 1, perMs: 60_000 } } });
    for (let n = 0; n < 3; n++)
      expect(await rejection(registry.execute(scoped))).toEqual(code("UNAUTHENTICATED"));
    expect((await registry.execute(scoped, {}, ada)).data).toBe(1);
  });
});

describe("kept and shared results", () => {
  afterEach(() => void vi.useRealTimers());

  const counting = (make = query) => {
    let runs = 0;
    return make("a.count", (input) => ({ run: ++runs, input }));
  };

  it("are kept for the same caller and input, whatever the order of its members, until they are too old", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const count = counting();
    const { registry, notes } = setUp([count], { "a.*": { cacheMs: 40 } });
    const run = async (input: unknown, options?: ExecuteOptions) =>
      ((await registry.execute("a.count", input, options)).data as { run: number }).run;
    expect([await run({ x: 1, y: 2 }), await run({ y: 2, x: 1 }), await run({ x: 1 })]).toEqual([1, 1, 2]);
    expect([await run({ x: 1 }, ada), await run({ x: 1 }, bob), await run({ x: 1 }, ada)]).toEqual([3, 4, 3]);
    expect(notes.map((note) => note?.cached)).toEqual([
      undefined,
      true,
      undefined,
      undefined,
      undefined,
      true,
    ]);
    vi.advanceTimersByTime(39);
    expect(await run({ x: 1 })).toBe(2);
    vi.advanceTimersByTime(1);
    expect(await run({ x: 1 })).toBe(5);
    registry.register(counting(), { replace: true });
    expect(await run({ x: 1 })).toBe(1);
  });

  it("can be changed by who gets one without harm to the next", async () => {
    const { registry } = setUp([counting()], { "a.*": { cacheMs: 60_000 } });
    for (let n = 0; n < 3; n++) {
      const { data } = (await registry.execute("a.count", {})) as { data: { run: number } };
      expect(data.run).toBe(1);
      data.run = 99;
    }
  });

  it("are no errors, and none of operations that change something", async () => {
    let runs = 0;
    const no = query("a.no", () => toolError(++runs));
    const { registry } = setUp([no, counting(mutation)], { "a.*": { cacheMs: 60_000, singleFlight: true } });
    await registry.execute(no);
    expect((await registry.execute(no)).data).toBe(2);
    await Promise.all([registry.execute("a.count"), registry.execute("a.count")]);
    expect((await registry.execute("a.count")).data).toMatchObject({ run: 3 });
  });

  it("make room: as many entries and characters as may be kept, the one not asked for longest goes", async () => {
    const { registry } = setUp([counting()], { "a.*": { cacheMs: 60_000 } }, { cacheEntries: 2 });
    const run = async (input: unknown) =>
      ((await registry.execute("a.count", input)).data as { run: number }).run;
    expect([await run(1), await run(2), await run(1), await run(3), await run(1), await run(2)]).toEqual([
      1, 2, 1, 3, 1, 4,
    ]);
    const small = setUp([counting()], { "a.*": { cacheMs: 60_000 } }, { cacheCharacters: 400 });
    const long = "x".repeat(500);
    await small.registry.execute("a.count", long);
    expect((await small.registry.execute("a.count", long)).data).toMatchObject({ run: 2 });
  });

  it("count the characters of all that is kept, and of each only once", async () => {
    const keeps = async (cacheCharacters: number, inputs: readonly unknown[]) => {
      const { registry, notes } = setUp(
        [query("a.same", () => "same")],
        { "a.*": { cacheMs: 60_000 } },
        { cacheCharacters },
      );
      // Twice each: what is kept again takes the place of what was.
      for (const input of [...inputs, ...inputs]) await registry.execute("a.same", input);
      notes.length = 0;
      for (const input of inputs) await registry.execute("a.same", input);
      return notes.filter((note) => note?.cached).length;
    };
    let one = 1;
    while ((await keeps(one, ["x"])) === 0) one += 1;
    expect([await keeps(3 * one, ["x", "y", "z"]), await keeps(3 * one - 1, ["x", "y", "z"])]).toEqual([
      3, 0,
    ]);
    expect([await keeps(2 * one, ["x", "x", "x", "y"]), await keeps(0, ["x"])]).toEqual([4, 0]);
    const { registry, notes } = setUp(
      [query("a.same", () => 1)],
      { "a.*": { cacheMs: 60_000 } },
      { cacheEntries: 1 },
    );
    for (const input of [1, 1, 2, 1]) await registry.execute("a.same", input);
    expect(notes.map((note) => note?.cached)).toEqual([undefined, true, undefined, undefined]);
  });

  it("tell inputs apart that are written alike, long ones too, and keep nothing for one that cannot be compared", async () => {
    const { registry } = setUp([counting()], { "a.*": { cacheMs: 60_000, singleFlight: true } });
    const run = async (input: unknown) =>
      ((await registry.execute("a.count", input)).data as { run: number }).run;
    const long = "x".repeat(1_000);
    const inputs = [
      ["a", "b"],
      ["a,b"],
      [["a"], "b"],
      { 0: "a", 1: "b" },
      `${long}y`,
      `${long}z`,
      "x".repeat(98),
      "x".repeat(99),
    ];
    const first = await Promise.all(inputs.map(run));
    expect(new Set(first).size).toBe(inputs.length);
    expect(await Promise.all(inputs.map(run))).toEqual(first);
    const circle: unknown[] = [];
    circle.push(circle);
    const odd = setUp([query("a.odd", () => 1)], { "a.*": { cacheMs: 60_000, singleFlight: true } });
    for (let n = 0; n < 2; n++) await registry.execute("a.count", circle).catch(() => {});
    for (let n = 0; n < 2; n++) await odd.registry.execute("a.odd", circle).catch(() => {});
    expect(odd.notes.some((note) => note?.cached || note?.shared)).toBe(false);
  });

  it("are gone, and those that wait are told, when the policies are closed", async () => {
    const { promise, resolve } = deferred();
    const slow = query("a.slow", () => promise);
    const { registry, policies, notes } = setUp([slow, counting()], {
      "a.*": { singleFlight: true, cacheMs: 60_000 },
    });
    await registry.execute("a.count");
    const waiting = [rejection(registry.execute(slow)), rejection(registry.execute(slow))];
    await sleep(1);
    policies.close();
    expect(await Promise.all(waiting)).toEqual([code("ABORTED"), code("ABORTED")]);
    resolve();
    notes.length = 0;
    await registry.execute("a.count");
    expect(notes[0]?.cached).toBeUndefined();
  });

  it("give everybody who shared a run a copy, or the result itself where it cannot be written down", async () => {
    const inner = { deep: 1 };
    const { registry } = setUp(
      [query("a.plain", async () => ({ inner })), query("a.live", async () => ({ call: () => 1 }))],
      { "a.*": { singleFlight: true } },
    );
    const run = (id: string) =>
      Promise.all([1, 2].map(async () => (await registry.execute(id)).data as { inner: object }));
    const [one, two] = await run("a.plain");
    expect([one, one?.inner === two?.inner]).toEqual([{ inner }, false]);
    const live = await Promise.allSettled([1, 2].map(() => registry.execute("a.live")));
    expect(new Set(live.map(({ status }) => status)).size).toBe(1);
  });

  it("share one run, which ends when everybody has left; each keeps its own deadline", async () => {
    const running: { readonly end: () => void }[] = [];
    const ends: unknown[] = [];
    const slow = query("a.slow", async (_, { signal }) => {
      const { promise, resolve } = deferred();
      running.push({ end: resolve });
      signal.addEventListener("abort", () => {
        ends.push("aborted");
        resolve();
      });
      await promise;
    });
    const { registry, notes } = setUp([slow], { "a.*": { singleFlight: true } });
    const [first, second, third] = [
      registry.execute(slow, {}, { timeoutMs: 100 }),
      registry.execute(slow, {}),
      registry.execute(slow, {}, { timeoutMs: 200 }),
    ];
    expect((await Promise.allSettled([first, third])).map(({ status }) => status)).toEqual([
      "rejected",
      "rejected",
    ]);
    running[0]?.end();
    await second;
    expect([running.length, ends]).toEqual([1, []]);
    expect(notes.filter((note) => note?.shared)).toHaveLength(2);
    await Promise.allSettled([1, 2].map(() => registry.execute(slow, {}, { timeoutMs: 100 })));
    await until(() => ends.length > 0);
    expect([running.length, ends]).toEqual([2, ["aborted"]]);
    const others = [registry.execute(slow, {}, ada), registry.execute(slow, {}, bob)];
    await until(() => running.length === 4);
    for (const { end } of running) end();
    await Promise.all(others);
    expect(running).toHaveLength(4);
  });
});

describe("idempotency keys", () => {
  const keyed = (idempotencyKey: unknown, options: ExecuteOptions = ada): ExecuteOptions => ({
    ...options,
    metadata: { idempotencyKey },
  });

  it("run a call once: its answer, a no, and an error that would be the same again are repeated", async () => {
    for (const [answer, expected] of [
      [(n: number) => n, 1],
      [(n: number) => toolError(n, { code: "NO" }), 1],
      [() => Promise.reject(new CallError("CONFLICT", "Taken.")), 1],
      [() => Promise.reject(new CallError("UNAVAILABLE")), 2],
    ] as const) {
      let runs = 0;
      const put = mutation("a.put", () => answer(++runs));
      const { registry, notes } = setUp([put], {});
      const came = await Promise.allSettled([registry.execute(put, {}, keyed("k"))]);
      const again = await Promise.allSettled([registry.execute(put, {}, keyed("k"))]);
      expect(JSON.stringify(again)).toBe(JSON.stringify(came));
      expect(again[0]?.status === "rejected" ? again[0].reason : 0).toEqual(
        came[0]?.status === "rejected" ? came[0].reason : 0,
      );
      expect(runs).toBe(expected);
      expect(notes[1]?.repeated).toBe(expected === 1 ? true : undefined);
      await Promise.allSettled([
        registry.execute(put, {}, keyed("k", bob)),
        registry.execute(put, {}, keyed("l")),
      ]);
      expect(runs).toBe(expected + 2);
    }
  });

  it("share a call that is under way, and refuse another input and what is no key", async () => {
    let runs = 0;
    const put = mutation("a.put", async () => {
      await delay(10);
      return ++runs;
    });
    const { registry } = setUp([put], {});
    const all = Promise.all([1, 2, 3].map(() => registry.execute(put, { x: 1 }, keyed("k"))));
    expect(await rejection(registry.execute(put, { x: 2 }, keyed("k")))).toEqual(code("CONFLICT"));
    expect((await all).map(({ data }) => data)).toEqual([1, 1, 1]);
    for (const bad of ["", "x".repeat(256), 5, "ä"]) {
      expect(await rejection(registry.execute(put, {}, keyed(bad)))).toEqual(code("VALIDATION_ERROR"));
    }
    expect((await registry.execute(put, {}, keyed("x".repeat(255)))).data).toBe(2);
  });

  it("are used up by a call that nobody knows the end of, and not by one that never ran", async () => {
    let runs = 0;
    const put = mutation("a.put", async (_, { signal }) => {
      runs++;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    });
    const { registry } = setUp([put], { "a.*": { concurrency: 1 } });
    const first = rejection(registry.execute(put, {}, { ...keyed("k"), timeoutMs: 1_000 }));
    expect(await rejection(registry.execute(put, {}, { ...keyed("l"), timeoutMs: 5 }))).toEqual(
      code("TIMEOUT"),
    );
    expect(await first).toEqual(code("TIMEOUT"));
    await sleep(2);
    expect(await rejection(registry.execute(put, {}, keyed("k")))).toEqual(code("CONFLICT"));
    expect(runs).toBe(1);
    expect(await rejection(registry.execute(put, {}, { ...keyed("l"), timeoutMs: 200 }))).toEqual(
      code("TIMEOUT"),
    );
    expect(runs).toBe(2);
  });

  it("are used up by calls that were aborted, and repeat an error with all that it says", async () => {
    const leaving = new AbortController();
    let runs = 0;
    const put = mutation("a.put", async (input, { signal }) => {
      runs++;
      if (input === "wait") await new Promise((resolve) => signal.addEventListener("abort", resolve));
      throw new CallError("CONFLICT", "Taken.", { details: { by: "bob" }, httpStatus: 423 });
    });
    const { registry } = setUp([put], {});
    const first = rejection(registry.execute(put, "wait", { ...keyed("k"), signal: leaving.signal }));
    await until(() => runs === 1);
    leaving.abort();
    expect(await first).toEqual(code("ABORTED"));
    await sleep(2);
    expect(await rejection(registry.execute(put, "wait", keyed("k")))).toMatchObject({
      code: "CONFLICT",
      message: expect.stringContaining("not known"),
    });
    for (let n = 0; n < 2; n++) {
      expect(await rejection(registry.execute(put, "go", keyed("l")))).toMatchObject({
        ...{ code: "CONFLICT", message: "Taken.", details: { by: "bob" } },
        ...{ httpStatus: 423, retryable: false },
      });
    }
    expect(runs).toBe(2);
  });

  it("need an input that can be compared, and use up the key of a result that cannot be kept", async () => {
    let runs = 0;
    const put = mutation("a.put", () => {
      runs++;
      return { call: () => 1 };
    });
    const { registry } = setUp([put], {});
    const circle: unknown[] = [];
    circle.push(circle);
    expect(await rejection(registry.execute(put, circle, keyed("k")))).toEqual(code("VALIDATION_ERROR"));
    expect(runs).toBe(0);
    await registry.execute(put, {}, keyed("l")).catch(() => {});
    await registry.execute(put, {}, keyed("l")).catch(() => {});
    expect(runs).toBe(1);
  });

  it("are shared out among callers from when they are told apart", async () => {
    const put = mutation("a.put", () => 1);
    const { registry, policies } = setUp([put], {}, { idempotencyKeys: 8 });
    policies.setShared(false);
    for (const key of ["1", "2", "3"]) await registry.execute(put, {}, keyed(key));
    policies.setShared(true);
    expect(await rejection(registry.execute(put, {}, keyed("4")))).toEqual(code("RESOURCE_EXHAUSTED"));
  });

  it("are not those of calls that a handler makes", async () => {
    const put = mutation("a.put", (input) => input);
    const both = mutation("a.both", async (_, { execute }) => [
      (await execute(put, 1)).data,
      (await execute(put, 2)).data,
    ]);
    const { registry } = setUp([put, both], {});
    expect((await registry.execute(both, {}, keyed("k"))).data).toEqual([1, 2]);
  });

  it("are kept as many as there is room for, a quarter of it for one caller; none is forgotten early", async () => {
    const put = mutation("a.put", () => 1);
    const { registry } = setUp([put], {}, { idempotencyKeys: 8 });
    for (const key of ["1", "2"]) await registry.execute(put, {}, keyed(key));
    expect(await rejection(registry.execute(put, {}, keyed("3")))).toEqual(code("RESOURCE_EXHAUSTED"));
    await registry.execute(put, {}, keyed("3", bob));
    await registry.execute(put, {}, keyed("1"));
  });
});

describe("as a whole", () => {
  it("ends calls that wait for each other's places by their deadline", async () => {
    const outer: AnyOperation = query("a.outer", (input, { execute }) =>
      input === 0 ? 0 : execute("a.outer", 0),
    );
    const { registry } = setUp([outer], { "a.*": { concurrency: 1, timeoutMs: 1_000 } });
    expect(await rejection(registry.execute(outer, 1))).toEqual(code("TIMEOUT"));
    expect((await registry.execute(outer, 0)).data).toBe(0);
  });

  it("does no harm behind a server that keeps answers by key itself", async () => {
    let runs = 0;
    const { promise: mayEnd, resolve: end } = deferred();
    const put = mutation("a.put", async () => {
      runs++;
      const run = runs;
      await mayEnd;
      return run;
    });
    const { registry } = setUp([put], { "a.*": { concurrency: 1 } }, { queue: 0 });
    const handler = createHttpHandler(registry);
    const send = async (key: string) => {
      const headers = { "content-type": "application/json", "idempotency-key": key };
      const request = new Request("http://localhost/api/a/put", { method: "POST", headers, body: "{}" });
      const response = await handler.fetch(request);
      return [response.status, await response.text()];
    };
    const running = send("k");
    await until(() => runs === 1);
    const refused = await send("l");
    end();
    const first = await running;
    expect(first).toEqual([200, "1"]);
    expect(refused[0]).toBe(503);
    expect(await send("k")).toEqual(first);
    // What was turned away for want of a turn never ran, and may be made with the same key.
    expect(await send("l")).toEqual([200, "2"]);
  });

  it("takes other rules while calls wait, and turns away who waits when it closes", async () => {
    const running: (() => void)[] = [];
    const hold = query("a.hold", () => new Promise<void>((resolve) => running.push(resolve)));
    const { registry, policies } = setUp([hold], { "a.*": { concurrency: 1 } });
    const first = registry.execute(hold);
    const second = registry.execute(hold);
    await until(() => running.length > 0);
    await sleep(1);
    expect(running).toHaveLength(1);
    policies.update(rulesOf({ "a.*": { concurrency: 2 } }));
    await until(() => running.length === 2);
    const third = rejection(registry.execute(hold));
    await sleep(1);
    policies.close();
    expect(await third).toEqual(code("UNAVAILABLE"));
    for (const end of running) end();
    await Promise.all([first, second]);
  });

  it("leaves no timer and no listener behind after ten thousand mixed calls with aborts", async () => {
    const work = query("a.work", async (input) => {
      if ((input as number) % 3 === 0) await delay(1);
      if ((input as number) % 7 === 0) throw new CallError("UNAVAILABLE");
      return input;
    });
    const put = mutation("a.put", async () => delay(1, 1));
    const retry = { attempts: 2, delayMs: 1 };
    const { registry } = setUp([work, put], {
      "a.*": { concurrency: 50, rate: { calls: 1_000, perMs: 20 }, timeoutMs: 5_000 },
      "a.work": { retry, cacheMs: 5, singleFlight: true },
    });
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const before = timers();
    const shared = new AbortController();
    let settled = 0;
    const calls = Array.from({ length: 10_000 }, async (_, n) => {
      const own = new AbortController();
      if (n % 50 === 0) setTimeout(() => own.abort(), n % 20);
      const options: ExecuteOptions = {
        signal: n % 2 ? own.signal : shared.signal,
        ...(n % 60 === 1 && { timeoutMs: 3 }),
        ...(n % 5 === 0 && { metadata: { idempotencyKey: `k${n % 1000}` } }),
      };
      await registry.execute(n % 5 === 0 ? put : work, n % 5 === 0 ? 1 : n % 500, options).catch(() => {});
      settled++;
    });
    await Promise.all(calls);
    expect(settled).toBe(10_000);
    await until(() => timers() <= before);
    expect(getEventListeners(shared.signal, "abort")).toEqual([]);
  });
});
