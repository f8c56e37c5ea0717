import { describe, expect, it, vi } from "vitest";
import { query, sleep, stream, until } from "../../test/make-operation.ts";
import { localEnvelope, toolError } from "../core/envelope/envelope.ts";
import { CallError } from "../core/errors/errors.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { Executor } from "../core/registry/executor.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import type { AskLine, Delivery } from "./bus.ts";
import type { AnswerEvent, CallRequested } from "./call-events.ts";
import { CallHandler, type CallHandlerOptions, serveCalls } from "./call-handler.ts";
import { createMemoryBus } from "./memory-bus.ts";

/** Serves operations and records every event that is published, call by call. */
async function publish(operations: readonly AnyOperation[], options?: CallHandlerOptions) {
  const bus = createMemoryBus();
  const handler = await serveCalls(new OperationRegistry(operations), bus, options);
  const ask = (fields: Partial<CallRequested> = {}): { events: AnswerEvent[]; line: AskLine } => {
    const events: AnswerEvent[] = [];
    const request: CallRequested = { type: "call.requested", requestId: "r", operationId: "a.x", ...fields };
    const asker = {
      hasFreshId: false,
      receive: (event: AnswerEvent) => void events.push(event),
      lost: (error: CallError) => {
        throw error;
      },
    };
    return { events, line: bus.request(request, asker) };
  };
  return { bus, handler, ask };
}

const types = (events: readonly AnswerEvent[]) => events.map(({ type }) => type);

describe("CallHandler", () => {
  it("RE-18 publishes exactly one event for what a handler returns, and the envelope in it", async () => {
    const made = localEnvelope({ n: 1 }, "other.op");
    for (const [returned, data] of [
      [1, 1],
      [undefined, undefined],
      [made, made.data],
      [Promise.resolve("later"), "later"],
    ]) {
      const { ask } = await publish([query("a.x", () => returned)]);
      const { events } = ask();
      await until(() => events.length > 0);
      await sleep(1);
      expect(events).toMatchObject([
        { type: "call.responded", requestId: "r", output: { meta: { source: "local" } } },
      ]);
      expect((events[0] as { output: { data: unknown } }).output.data).toEqual(data);
    }
  });

  it("RE-18 gives handlers no way to publish: neither in the context nor by what they return", async () => {
    const contexts: object[] = [];
    const event = {
      type: "call.error",
      requestId: "r",
      error: { code: "X", message: "", retryable: false, correctable: false },
    };
    const handler = (_: unknown, context: object) => {
      contexts.push(context);
      return event;
    };
    const { ask } = await publish([query("a.x", handler)]);
    const { events } = ask();
    await until(() => events.length > 0);
    await sleep(1);
    expect(events).toMatchObject([{ type: "call.responded", output: { data: event } }]);
    const names = contexts.flatMap((context) => {
      const members: string[] = [];
      for (
        let at: object | null = context;
        at !== null && at !== Object.prototype;
        at = Object.getPrototypeOf(at)
      ) {
        members.push(...Object.getOwnPropertyNames(at));
      }
      return members;
    });
    expect(names.filter((name) => /publish|reply|respond|emit|^line|bus/i.test(name))).toEqual([]);
  });

  it("RE-18 RE-20 a thrown exception is one call.error, a tool error one call.responded, an abort one call.aborted", async () => {
    const throws = (thrown: unknown) => () => {
      throw thrown;
    };
    const { ask } = await publish([
      query("a.throws", throws(new Error("secret"))),
      query("a.rejects", async () => Promise.reject(undefined)),
      query("a.no", () => toolError("no")),
      query("a.aborts", throws(new CallError("ABORTED"))),
    ]);
    const published: Record<string, AnswerEvent[]> = {};
    for (const name of ["throws", "rejects", "no", "aborts"]) {
      published[name] = ask({ operationId: `a.${name}`, requestId: name }).events;
    }
    await until(() => Object.values(published).every((events) => events.length > 0));
    await sleep(1);
    expect(Object.values(published).map(types)).toEqual([
      ["call.error"],
      ["call.error"],
      ["call.responded"],
      ["call.aborted"],
    ]);
    expect(published["no"]).toMatchObject([{ output: { meta: { isError: true } } }]);
    expect(JSON.stringify(published)).not.toContain("secret");
  });

  it("RE-18 publishes nothing once the caller has given up, whatever the handler does", async () => {
    const { ask, handler } = await publish([
      query("a.x", async (_, { progress }) => {
        await sleep(10);
        progress(1);
        return "late";
      }),
    ]);
    const { events, line } = ask({ progress: true });
    line.send({ type: "call.aborted", requestId: "r" });
    expect(handler.running).toBe(0);
    await sleep(30);
    expect(events).toEqual([]);
  });

  it("RE-18 RE-28 numbers the yields of a stream and counts them at its end", async () => {
    const { ask } = await publish([
      stream("a.x", async function* () {
        yield "a";
        yield "b";
      }),
    ]);
    const { events } = ask({ credit: 10 });
    await until(() => events.length === 3);
    expect(events).toMatchObject([
      { type: "call.responded", sequence: 0, output: { data: "a" } },
      { type: "call.responded", sequence: 1, output: { data: "b" } },
      { type: "call.completed", count: 2 },
    ]);
  });

  it("Call: yields as many as were granted, and counts credit for what is no stream", async () => {
    const count = async function* () {
      for (let n = 0; ; n++) yield n;
    };
    const hang = query("a.hang", () => new Promise(() => {}));
    const { ask, handler } = await publish([stream("a.x", count), hang]);
    const { events, line } = ask({ credit: 3 });
    await until(() => events.length >= 3);
    await sleep(5);
    expect(events).toHaveLength(3);
    line.send({ type: "call.credit", requestId: "r", credit: 2 });
    await until(() => events.length >= 5);
    await sleep(5);
    expect(events).toHaveLength(5);
    line.send({ type: "call.credit", requestId: "other", credit: 2 });
    line.send({ type: "call.aborted", requestId: "other" });
    expect([handler.running, handler.counters.forged]).toEqual([1, 2]);
    ask({ operationId: "a.hang", requestId: "h" }).line.send({
      type: "call.credit",
      requestId: "h",
      credit: 1,
    });
    expect(handler.counters.unexpected).toBe(1);
    await handler.drain({ timeoutMs: 0 });
    expect(types(events).at(-1)).toBe("call.aborted");
  });

  it("Call: remembers so many request ids, so that none of them runs twice", async () => {
    const ran = vi.fn();
    const { ask, handler } = await publish([query("a.x", ran)], { limits: { rememberedRequests: 2 } });
    for (const requestId of ["1", "2", "2", "1"]) ask({ requestId });
    expect([ran.mock.calls.length, handler.counters.duplicate]).toEqual([2, 2]);
  });

  it("Call: whoever is not believed is refused, and nothing runs", async () => {
    const ran = vi.fn();
    const refusals: CallHandlerOptions["authenticate"][] = [
      () => {
        throw new CallError("UNAUTHENTICATED", "No.");
      },
      () => Promise.reject(new CallError("UNAUTHENTICATED", "No.")),
    ];
    for (const authenticate of refusals) {
      const { ask } = await publish([query("a.x", ran)], { authenticate });
      const { events } = ask();
      await until(() => events.length > 0);
      await sleep(1);
      expect(events).toMatchObject([{ type: "call.error", error: { code: "UNAUTHENTICATED" } }]);
    }
    expect(ran).not.toHaveBeenCalled();
  });

  it("Call: a call that is given up while its caller is being looked up never runs", async () => {
    const ran = vi.fn();
    const authenticate = (_: Delivery) => sleep(10).then(() => undefined);
    const { ask } = await publish([query("a.x", ran)], { authenticate });
    ask().line.send({ type: "call.aborted", requestId: "r" });
    await sleep(30);
    expect(ran).not.toHaveBeenCalled();
  });

  it("Call: serves any executor, with a signal of the platform", async () => {
    const bus = createMemoryBus();
    const seen: unknown[] = [];
    const executor = {
      execute: async (id: string, _input: unknown, { signal }: { signal: AbortSignal }) => {
        seen.push(signal instanceof AbortSignal);
        return localEnvelope(id, id);
      },
      list: () => [query("a.x", () => 1)],
      get: () => undefined,
      onChange: () => () => {},
    } as unknown as Executor;
    await serveCalls(executor, bus);
    const events: AnswerEvent[] = [];
    bus.request(
      { type: "call.requested", requestId: "r", operationId: "a.x" },
      { hasFreshId: true, receive: (event) => void events.push(event), lost: () => {} },
    );
    await until(() => events.length > 0);
    await sleep(1);
    expect([seen, types(events)]).toEqual([[true], ["call.responded"]]);
  });

  it("Call: cannot be started twice, and does not serve internal operations", async () => {
    const { handler, ask } = await publish([
      query("a.x", () => 1),
      query("a.hidden", () => 1, { visibility: "internal" }),
    ]);
    await expect(handler.start()).rejects.toThrow("started once");
    expect(() => ask({ operationId: "a.hidden" })).toThrow(expect.objectContaining({ code: "NO_RESPONDER" }));
    expect(
      () => new CallHandler(new OperationRegistry(), createMemoryBus(), { limits: { runningCalls: 0 } }),
    ).toThrow(TypeError);
  });
});
