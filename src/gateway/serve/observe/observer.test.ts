import { describe, expect, it, vi } from "vitest";
import { query, rejection, stream } from "../../../../test/make-operation.ts";
import { toolError } from "../../../core/envelope/envelope.ts";
import { CallError } from "../../../core/errors/errors.ts";
import type { Hooks, NextOptions } from "../../../core/execution/dispatch.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { takeNote } from "../../policy/call-notes.ts";
import { type CallRecord, createObserver, withEntry } from "./observer.ts";

function watched() {
  const records: CallRecord[] = [];
  const logged: unknown[] = [];
  const observer = createObserver({
    log: { info: (message, fields) => void logged.push([message, fields]) },
  });
  observer.listen({ end: (record) => void records.push(record) });
  const registry = new OperationRegistry([
    query("desk.ok", (_, context) => {
      takeNote(context, { attempts: 3, cached: true });
      return "secret output";
    }),
    query("desk.no", () => toolError("It is gone.", { code: "NOT_FOUND" })),
    query("desk.broken", () => {
      throw new CallError("UNAVAILABLE", "The desk is closed.");
    }),
    query("desk.private", () => 1, { access: { scopes: { allOf: ["x"] } } }),
    query("desk.outer", (_, context) => context.execute("desk.ok", undefined, { metadata: { own: 1 } })),
    stream("desk.watch", async function* () {
      yield 1;
      yield 2;
      yield 3;
    }),
    stream("desk.cut", async function* () {
      yield 1;
      throw new CallError("UNAVAILABLE", "The line is cut.");
    }),
    stream("desk.stall", async function* (_, { signal }) {
      yield 1;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    }),
  ]);
  registry.use(observer);
  return { records, logged, observer, registry, http: withEntry(registry, "http") };
}

describe("createObserver", () => {
  it("RE-30 tells of every call once, how it ended and who made it, and not what was in it", async () => {
    const { records, logged, http, observer } = watched();
    const startedAt = performance.now();
    const identity = { subject: "ann", scopes: ["y"] };
    const requestId = "r-1";
    await http.execute("desk.ok", "secret input" as never, { identity, requestId });
    await http.execute("desk.no");
    await rejection(http.execute("desk.broken"));
    await rejection(http.execute("desk.private", undefined, { identity }));
    await rejection(http.execute(`desk.${"x".repeat(500)}`));
    const both = { entry: "http", source: "desk", type: "query" };
    expect(records).toMatchObject([
      { operation: "desk.ok", ...both, requestId, subject: "ann", outcome: "ok", attempts: 3, cached: true },
      { operation: "desk.no", ...both, outcome: "tool_error", code: "NOT_FOUND" },
      { operation: "desk.broken", ...both, outcome: "call_error", code: "UNAVAILABLE" },
      { operation: "desk.private", outcome: "call_error", code: "ACCESS_DENIED" },
      { isKnown: false, outcome: "call_error", code: "OPERATION_NOT_FOUND" },
    ]);
    expect(records.at(-1)?.operation).toHaveLength(200);
    const most = performance.now() - startedAt;
    expect(records.every(({ durationMs }) => durationMs >= 0 && durationMs <= most)).toBe(true);
    expect(logged).toHaveLength(5);
    expect(logged[0]).toEqual(["call", expect.objectContaining({ event: "call", operation: "desk.ok" })]);
    expect(JSON.stringify([records, logged])).not.toContain("secret");
    expect(observer.running).toBe(0);
  });

  it("RE-30 tells which call made another, and that it came in at the same place", async () => {
    const { records, http } = watched();
    await http.execute("desk.outer", undefined, { requestId: "above" });
    expect(records).toMatchObject([
      { operation: "desk.ok", entry: "http", parent: "above" },
      { operation: "desk.outer", entry: "http", requestId: "above" },
    ]);
    expect(records[1]).not.toHaveProperty("parent");
  });

  it.each<readonly [string, NextOptions]>([
    ["a timeout", { timeoutMs: 60_000 }],
    ["a signal", { signal: new AbortController().signal }],
    ["a life of its own", { detached: true, timeoutMs: 60_000 }],
  ])("RE-30 tells what was noted inside of a hook that gave the call %s", async (_, bounds) => {
    const { records, registry } = watched();
    const bounded: Hooks = { execute: (call, next) => next(call.input, bounds) };
    registry.use(bounded);
    registry.use(bounded);
    registry.register(
      query("desk.signed", (_, context) => {
        takeNote(context, { upstream: { as: "caller", subject: "ada", grant: "g-1" } });
        return context.execute("desk.ok");
      }),
    );
    await registry.execute("desk.signed");
    expect(records).toMatchObject([{ operation: "desk.ok", attempts: 3 }, { operation: "desk.signed" }]);
    expect(records[0]).not.toHaveProperty("upstream");
    expect(records[1]).toMatchObject({ upstream: { as: "caller", subject: "ada", grant: "g-1" } });
    expect(records[1]).not.toHaveProperty("attempts");
  });

  it("RE-30 says nothing about where a call came in that nobody marked", async () => {
    const { records, registry } = watched();
    await registry.execute("desk.ok");
    expect(records[0]).not.toHaveProperty("entry");
  });

  it("RE-30 tells of a subscription when it ends, whichever way, with the number of its values", async () => {
    const { records, http, observer } = watched();
    for await (const _ of http.subscribe("desk.watch")) expect(observer.running).toBe(1);
    for await (const _ of http.subscribe("desk.watch")) break;
    const read = async () => {
      for await (const _ of http.subscribe("desk.cut"));
    };
    await rejection(read());
    const stall = async (options: { timeoutMs?: number; signal?: AbortSignal }, onValue = () => {}) => {
      for await (const _ of http.subscribe("desk.stall", {}, options)) onValue();
    };
    await rejection(stall({ timeoutMs: 1_000 }));
    const leaving = new AbortController();
    // Once the next value is waited for.
    const leave = () => void setImmediate(() => leaving.abort());
    await rejection(stall({ signal: leaving.signal }, leave));
    await vi.waitFor(() => expect(observer.running).toBe(0), 20_000);
    expect(records).toMatchObject([
      { operation: "desk.watch", type: "subscription", outcome: "ok", values: 3 },
      { operation: "desk.watch", outcome: "ok", values: 1 },
      { operation: "desk.cut", outcome: "call_error", code: "UNAVAILABLE", values: 1 },
      { operation: "desk.stall", outcome: "call_error", code: "TIMEOUT", values: 1 },
      { operation: "desk.stall", outcome: "ok", code: "ABORTED", values: 1 },
    ]);
    expect(observer.running).toBe(0);
  });

  it("RE-30 lets a hundred listen and not one more, and bears with those who throw", async () => {
    const { observer, registry } = watched();
    const fail = () => {
      throw new Error("not my day");
    };
    const stops = Array.from({ length: 99 }, () => observer.listen({ begin: fail, value: fail, end: fail }));
    expect(() => observer.listen({})).toThrow("At most 100");
    expect((await registry.execute("desk.ok")).data).toBe("secret output");
    for (const stop of stops) stop();
    expect(() => observer.listen({})).not.toThrow();
  });

  it("RE-30 tells listeners of the beginning, the values and the end of one and the same call", async () => {
    const { observer, http } = watched();
    const told: unknown[] = [];
    const calls = new Set<unknown>();
    const note = (call: unknown, what: readonly unknown[]): void => {
      calls.add(call);
      told.push(what);
    };
    const stop = observer.listen({
      begin: (head, call) => note(call, ["begin", head.operation, head.entry]),
      value: ({ data }, call) => note(call, ["value", data]),
      end: (record, call, { envelope, error }) =>
        note(call, ["end", record.outcome, envelope?.data, error?.code]),
    });
    for await (const _ of http.subscribe("desk.watch"));
    expect(calls.size).toBe(1);
    await http.execute("desk.ok");
    await rejection(http.execute("desk.broken"));
    expect(calls.size).toBe(3);
    stop();
    await http.execute("desk.ok");
    expect(told).toEqual([
      ["begin", "desk.watch", "http"],
      ["value", 1],
      ["value", 2],
      ["value", 3],
      ["end", "ok", undefined, undefined],
      ["begin", "desk.ok", "http"],
      ["end", "ok", "secret output", undefined],
      ["begin", "desk.broken", "http"],
      ["end", "call_error", undefined, "UNAVAILABLE"],
    ]);
  });
});
