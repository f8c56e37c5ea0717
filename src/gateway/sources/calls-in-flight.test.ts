import { describe, expect, it, vi } from "vitest";
import { collect, deferred, query, rejection, stream, until } from "../../../test/make-operation.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { CallsInFlight } from "./retried-source.ts";

const open = () => new CallsInFlight(() => undefined);

describe("calls in flight", () => {
  it("count while a call runs, and whoever waits goes on when the last has ended, failed ones included", async () => {
    const calls = open();
    let end: (value: unknown) => void = () => {};
    const registry = new OperationRegistry([
      calls.count(query("a.slow", () => new Promise((resolve) => (end = resolve)))),
      calls.count(query("a.bad", () => Promise.reject(new Error("no")))),
      calls.count(query("a.now", () => 1)),
    ]);
    const running = registry.execute("a.slow");
    await vi.waitFor(() => expect(calls.running).toBe(1), 20_000);
    await rejection(registry.execute("a.bad"));
    expect((await registry.execute("a.now")).data).toBe(1);
    expect(calls.running).toBe(1);
    const idle = calls.idle(10_000);
    end("done");
    await idle;
    expect((await running).data).toBe("done");
    expect(calls.running).toBe(0);
  });

  it("are waited for no longer than said", async () => {
    const calls = open();
    const registry = new OperationRegistry([calls.count(query("a.hang", () => new Promise(() => {})))]);
    const leaving = new AbortController();
    const left = rejection(registry.execute("a.hang", undefined, { signal: leaving.signal }));
    await until(() => calls.running === 1);
    await calls.idle(30);
    await calls.idle(0);
    expect(calls.running).toBe(1);
    leaving.abort();
    await left;
  });

  it("count a subscription until it has ended, was left, failed, or was aborted before anybody read it", async () => {
    const calls = open();
    const { promise: mayAnswer, resolve: answer } = deferred();
    const registry = new OperationRegistry([
      calls.count(
        stream("a.three", async function* () {
          yield 1;
          yield 2;
          yield 3;
        }),
      ),
      calls.count(
        stream("a.bad", async function* () {
          yield 1;
          throw new CallError("CONFLICT", "no");
        }),
      ),
      calls.count(
        stream("a.late", async () => {
          await mayAnswer;
          return (async function* () {
            yield 1;
          })();
        }),
      ),
    ]);
    expect((await collect(registry.subscribe("a.three"))).map(({ data }) => data)).toEqual([1, 2, 3]);
    expect(calls.running).toBe(0);
    for await (const _ of registry.subscribe("a.three")) {
      expect(calls.running).toBe(1);
      break;
    }
    await vi.waitFor(() => expect(calls.running).toBe(0), 20_000);
    expect(await rejection(collect(registry.subscribe("a.bad")))).toMatchObject({ code: "CONFLICT" });
    expect(calls.running).toBe(0);
    const leaving = new AbortController();
    const left = rejection(collect(registry.subscribe("a.late", undefined, { signal: leaving.signal })));
    await vi.waitFor(() => expect(calls.running).toBe(1), 20_000);
    leaving.abort();
    await left;
    answer();
    await vi.waitFor(() => expect(calls.running).toBe(0), 20_000);
  });

  it("leave schemas lazy, the operation frozen and the same copy for the same operation", async () => {
    const read = vi.fn(() => ({ type: "object", required: ["x"] }));
    const lazy = Object.freeze({
      ...query("a.lazy", () => 1),
      get inputSchema() {
        return read();
      },
    }) as AnyOperation;
    const calls = open();
    const counted = calls.count(lazy);
    const registry = new OperationRegistry([counted]);
    expect(registry.list()).toEqual([counted]);
    expect(read).not.toHaveBeenCalled();
    expect(Object.isFrozen(counted)).toBe(true);
    expect(calls.count(lazy)).toBe(counted);
    expect(registry.get("a.lazy")).toBe(counted);
    expect(await rejection(registry.execute("a.lazy", {}))).toMatchObject({ code: "VALIDATION_ERROR" });
    expect(read).toHaveBeenCalled();
  });

  it("are made to what has taken the place of their operation, streams too, unless it is of another type or gone", async () => {
    const calls = open();
    const values = (value: string) =>
      async function* () {
        yield value;
      };
    const registry = new OperationRegistry([
      ...["a.one", "a.gone"].map((id) => calls.count(query(id, () => "old"))),
      ...["a.many", "a.turned"].map((id) => calls.count(stream(id, values("old")))),
    ]);
    const heirs = [
      query("a.one", () => "new"),
      stream("a.many", values("new")),
      query("a.turned", () => "new"),
    ];
    calls.handOver((id) => heirs.find((heir) => heir.id === id));
    const allOf = async (id: string) => (await collect(registry.subscribe(id))).map(({ data }) => data);
    expect((await registry.execute("a.one")).data).toBe("new");
    expect((await registry.execute("a.gone")).data).toBe("old");
    expect(await allOf("a.many")).toEqual(["new"]);
    expect(await allOf("a.turned")).toEqual(["old"]);
    expect(calls.running).toBe(0);
  });

  it("are refused with the reason there is, and not counted then", async () => {
    const calls = new CallsInFlight(() => new CallError("UNAVAILABLE", "It is away."));
    const ran = vi.fn();
    const registry = new OperationRegistry([calls.count(query("a.x", ran))]);
    expect(await rejection(registry.execute("a.x"))).toMatchObject({
      code: "UNAVAILABLE",
      message: "It is away.",
    });
    expect(ran).not.toHaveBeenCalled();
    expect(calls.running).toBe(0);
  });
});
