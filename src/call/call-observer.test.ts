import fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { around } from "../../test/call-model/watched-bus.ts";
import { collect, deferred, query, rejection, stream, until } from "../../test/make-operation.ts";
import { runs } from "../../test/runs.ts";
import { localEnvelope, toolError } from "../core/envelope/envelope.ts";
import { CallError } from "../core/errors/errors.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { Executor } from "../core/registry/executor.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import type { AnswerLine, Bus, ObservableBus, Take } from "./bus.ts";
import type { CallErrorPayload } from "./call-events.ts";
import { type CallHandlerOptions, serveCalls } from "./call-handler.ts";
import type { CallObservation } from "./call-observer.ts";
import { createMemoryBus } from "./memory-bus.ts";
import { PendingRequestMap, type PendingRequestMapOptions } from "./pending-request-map.ts";
import { createMemoryTransport } from "./wire/transport.ts";
import { createWireBus } from "./wire/wire-bus.ts";

const UNAVAILABLE: CallErrorPayload = {
  code: "UNAVAILABLE",
  message: "",
  retryable: true,
  correctable: false,
};

function open(bus: ObservableBus = createMemoryBus()) {
  onTestFinished(() => bus.close());
  const heard: CallObservation[] = [];
  const stop = bus.onCall((call) => void heard.push(call));
  const map = (options?: PendingRequestMapOptions) => new PendingRequestMap(bus, options);
  const serve = (operations: readonly AnyOperation[], options?: CallHandlerOptions) =>
    serveCalls(new OperationRegistry(operations), bus, options);
  /** Answers an operation by hand. */
  const take = (operationId: string, how: Take) => bus.join({ operationId }, how);
  return { bus, heard, stop, map, serve, take };
}

/** What was heard, each step in a few words. */
const steps = (heard: readonly CallObservation[]) =>
  heard.map(({ end, type, attempt, code }) => [end, type, attempt, code].filter(Boolean).join(" "));

const wire = () => createWireBus(createMemoryTransport());

describe("onCall", () => {
  it("RE-17 hears of calls until it is told to stop", async () => {
    const { heard, stop, map, serve } = open();
    await serve([query("a.x", () => 1)]);
    await map().call("a.x");
    stop();
    await map().call("a.x");
    expect(steps(heard)).toEqual([
      ...["caller requested", "handler requested"],
      ...["caller responded", "handler responded"],
    ]);
  });

  it("RE-17 says nothing of a call that nobody observed when it was sent, however it ends", async () => {
    const bus = createMemoryBus();
    const { promise: gate, resolve: go } = deferred();
    await serveCalls(new OperationRegistry([query("a.slow", () => gate)]), bus);
    const slow = new PendingRequestMap(bus).call("a.slow");
    const heard: CallObservation[] = [];
    bus.onCall((call) => void heard.push(call));
    go();
    await slow;
    expect(heard).toEqual([]);
    await bus.close();
  });

  it("RE-17 reports an observer that throws or rejects once, and neither calls nor other observers notice", async () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    onTestFinished(() => warn.mockRestore());
    const bus = createMemoryBus();
    bus.onCall(() => {
      throw new Error("observer");
    });
    bus.onCall(async () => {
      throw new Error("async observer");
    });
    const { heard, map, serve } = open(bus);
    await serve([
      query("a.x", () => 1),
      stream("a.two", async function* () {
        yield* [1, 2];
      }),
    ]);
    expect((await map().call("a.x")).data).toBe(1);
    expect(await collect(map().subscribe("a.two"))).toHaveLength(2);
    expect(heard).toHaveLength(12);
    expect(warn).toHaveBeenCalledTimes(2);
  });

  it("RE-17 an observer that was added twice hears twice, and leaves once", async () => {
    const bus = createMemoryBus();
    const observer = vi.fn();
    const stops = [bus.onCall(observer), bus.onCall(observer)];
    stops[0]?.();
    stops[0]?.();
    await rejection(new PendingRequestMap(bus).call("a.none"));
    expect(observer).toHaveBeenCalledTimes(2);
  });

  it("RE-17 numbers the tries of a call, each with its own end", async () => {
    const { heard, map, take } = open();
    await take("a.busy", ({ request: { requestId } }, line) => {
      line.reply({ type: "call.error", requestId, error: UNAVAILABLE });
      return undefined;
    });
    await rejection(map().call("a.busy", 1, { retry: { attempts: 2 } }));
    expect(steps(heard)).toEqual([
      ...["caller requested", "caller error UNAVAILABLE"],
      ...["caller requested 2", "caller error 2 UNAVAILABLE"],
    ]);
  });

  it("RE-17 hears what a service refuses to run, and why", async () => {
    const { heard, map, serve } = open();
    const { promise: gate, resolve: go } = deferred();
    await serve([query("a.x", () => gate)], { limits: { runningCalls: 1 } });
    const [one, other] = [map(), map()];
    const running = one.call("a.x", 1, { requestId: "same" });
    await rejection(other.call("a.x", 1, { requestId: "other" }));
    go();
    await running;
    await rejection(other.call("a.x", 1, { requestId: "same" }));
    const refused = heard.filter(({ end, type }) => end === "handler" && type === "error");
    expect(refused.map(({ requestId, code }) => [requestId, code])).toEqual([
      ["other", "RESOURCE_EXHAUSTED"],
      ["same", "CONFLICT"],
    ]);
  });

  it("RE-17 says nothing of what was never handed to the bus", async () => {
    const { heard, map, serve } = open(wire());
    await serve([query("a.x", () => 1)]);
    const identity = { subject: "ada" };
    const credentials = () => Promise.reject(new CallError("UNAUTHENTICATED"));
    await rejection(map({ credentials }).call("a.x", 1, { identity }));
    await rejection(map().call("a.x", 1, { identity }));
    await rejection(map().call("a.x", 1, { signal: AbortSignal.abort() }));
    await rejection(map({ limits: { deadlineMs: 1 } }).call("a.x", 1, { timeoutMs: 2 }));
    expect(heard).toEqual([]);
  });

  it("RE-17 hears of a deadline by the caller's own clock, and of a service that is stopped", async () => {
    const { heard, map, serve, take } = open();
    await take("a.silent", () => undefined);
    await rejection(map().call("a.silent", 1, { timeoutMs: 5 }));
    await rejection(map().subscribe("a.silent", 1, { timeoutMs: 5 }).next());
    expect(heard.map((call) => call.type === "aborted" && [call.reason, call.code])).toEqual([
      ...[false, ["deadline", "TIMEOUT"]],
      ...[false, ["deadline", "TIMEOUT"]],
    ]);
    const handler = await serve([query("a.hang", () => new Promise(() => {}))]);
    const stopped = rejection(map().call("a.hang"));
    await handler.drain({ timeoutMs: 0 });
    await stopped;
    expect(steps(heard.slice(4))).toEqual([
      ...["caller requested", "handler requested"],
      ...["caller aborted ABORTED", "handler aborted ABORTED"],
    ]);
  });

  it("RE-17 hears at both ends that the bus was closed under a call", async () => {
    const { bus, heard, map, serve } = open();
    await serve([query("a.hang", () => new Promise(() => {}))]);
    const lost = rejection(map().call("a.hang"));
    await bus.close();
    await lost;
    expect(heard.slice(2)).toMatchObject([
      { end: "handler", type: "aborted", reason: "disconnected", outcome: "call_error", code: "ABORTED" },
      { end: "caller", type: "error", outcome: "call_error", code: "UNAVAILABLE" },
    ]);
    await rejection(map().call("a.hang"));
    expect(steps(heard.slice(4))).toEqual(["caller requested", "caller error UNAVAILABLE"]);
  });

  it("RE-17 RE-21 a stream that lost a value, or got too many, is an error with the values that came", async () => {
    const { heard, map, take } = open();
    const lines: AnswerLine[] = [];
    await take("a.count", (_, line) => {
      lines.push(line);
      return undefined;
    });
    const output = localEnvelope(1, "a.count");
    for (const sequences of [
      [0, 2],
      [0, 1, 2, 3],
    ]) {
      const [requestId, limits] = [`r-${sequences.length}`, { streamBuffer: 2 }];
      const values = map({ limits }).subscribe("a.count", 1, { requestId });
      const first = values.next();
      await until(() => lines.length > 0);
      const line = lines.pop() as AnswerLine;
      for (const sequence of sequences) line.reply({ type: "call.responded", requestId, output, sequence });
      await first.then(() => rejection(values.next()));
    }
    const ends = heard.filter(({ outcome }) => outcome !== undefined);
    expect(ends).toMatchObject([
      { type: "error", code: "UNAVAILABLE", values: 1 },
      { type: "error", code: "RESOURCE_EXHAUSTED", values: 3 },
    ]);
  });

  it.each([
    ["the memory bus", createMemoryBus],
    ["a wire bus", wire],
  ])("RE-17 on %s an observer may give up the call that it hears of", async (_, create) => {
    const bus = create();
    let controller = new AbortController();
    bus.onCall(({ type, end }) => {
      if (type === "requested" && end === "caller") controller.abort();
    });
    const { heard, map, serve } = open(bus);
    const handler = await serve([query("a.x", () => 1)]);
    expect(await rejection(map().call("a.x", 1, { signal: controller.signal }))).toMatchObject({
      code: "ABORTED",
    });
    controller = new AbortController();
    expect(await rejection(map().subscribe("a.x", 1, { signal: controller.signal }).next())).toMatchObject({
      code: "ABORTED",
    });
    await handler.drain();
    const caller = heard.filter(({ end }) => end === "caller");
    expect(caller.map(({ type }) => type).sort()).toEqual(["aborted", "aborted", "requested", "requested"]);
    const ends = heard.filter(({ outcome }) => outcome !== undefined).length;
    expect(heard.filter(({ type }) => type === "requested")).toHaveLength(ends);
  });

  it("RE-17 RE-19 an executor that gives no envelope is an error, and observing it changes nothing", async () => {
    const { heard, bus, map } = open();
    const registry = new OperationRegistry([query("a.x", () => 1)]);
    const raw = executorLike(registry, { execute: async () => "raw" as never });
    await serveCalls(raw, bus);
    expect(await rejection(map().call("a.x"))).toBeInstanceOf(CallError);
    expect(steps(heard).sort()).toEqual([
      ...["caller error EXECUTION_ERROR", "caller requested"],
      ...["handler error EXECUTION_ERROR", "handler requested"],
    ]);
  });

  it("RE-17 a bus that cannot be observed carries calls like any other", async () => {
    const { bus, heard } = open();
    const plain: Bus = around(bus, {});
    await serveCalls(new OperationRegistry([query("a.x", () => 1)]), plain);
    expect((await new PendingRequestMap(plain).call("a.x")).data).toBe(1);
    expect(heard).toEqual([]);
  });

  it("RE-17 keeps names that callers and handlers make up short", async () => {
    const { heard, map, take } = open();
    await rejection(map().call(`a.${"x".repeat(10_000)}`));
    const { data, meta } = toolError(1, { code: "NO" });
    const output = { data, meta: { ...meta, waybill: { code: "C".repeat(10_000) } } };
    await take("a.no", ({ request: { requestId } }, line) => {
      line.reply({ type: "call.responded", requestId, output });
      return undefined;
    });
    await map().call("a.no");
    expect(JSON.stringify(heard).length).toBeLessThan(3_000);
  });
});

describe("what onCall never says", () => {
  const FIELDS = [
    ...["attempt", "code", "durationMs", "end", "isError", "operationId", "outcome", "reason"],
    ...["receivedBytes", "requestId", "sentBytes", "type", "values"],
  ];
  const SECRET = "sentinel";
  const secretive = fc
    .anything({ maxDepth: 2, withDate: true })
    .map((value) => [SECRET, { [SECRET]: value }]);
  const operations = [
    query("a.echo", (input) => input),
    query("a.no", (input) => toolError({ input }, { code: "NO", message: SECRET, details: { SECRET } })),
    query("a.bad", (input) => {
      throw new CallError("CONFLICT", SECRET, { details: { input: String(input), SECRET } });
    }),
    query("a.broken", () => {
      throw new Error(SECRET);
    }),
    stream("a.many", async function* (input) {
      yield input;
      yield toolError(input);
      throw new Error(SECRET);
    }),
  ];

  it.each([
    ["the memory bus", createMemoryBus],
    ["a wire bus", wire],
  ])("RE-29 on %s: data, words, identities, credentials, metadata or a reply path", async (_, create) => {
    const paths: string[] = [];
    const bus = create();
    const { heard } = open(bus);
    const authenticate = () => ({ subject: SECRET });
    await serveCalls(new OperationRegistry(operations), bus, { authenticate });
    const spied = around(bus, {
      observers: bus.observers,
      request(request, asker, identity) {
        const line = bus.request(request, asker, identity);
        paths.push(String((line as { token?: unknown }).token ?? SECRET));
        return line;
      },
    });
    const map = new PendingRequestMap(spied, { credentials: () => `${SECRET}-token` });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...operations), secretive, async ({ id }, input) => {
        const options = { identity: { subject: SECRET }, metadata: { SECRET }, onProgress: () => {} };
        if (id === "a.many") await collect(map.subscribe(id, input, options)).catch(() => {});
        else await map.call(id, input, options).catch(() => {});
      }),
      runs(200),
    );
    expect(heard.filter(({ outcome }) => outcome !== undefined).length).toBeGreaterThan(10);
    const fields = new Set(heard.flatMap((call) => Object.keys(call)));
    expect([...fields].filter((field) => !FIELDS.includes(field))).toEqual([]);
    const said = JSON.stringify(heard);
    for (const hidden of [SECRET, ...paths]) expect(said).not.toContain(hidden);
  });
});

/** An executor that does some things differently from a registry. */
function executorLike(registry: OperationRegistry, changes: Partial<Executor>): Executor {
  return {
    execute: registry.execute.bind(registry) as Executor["execute"],
    subscribe: registry.subscribe.bind(registry) as Executor["subscribe"],
    list: (options) => registry.list(options),
    get: (id) => registry.get(id),
    onChange: (listener) => registry.onChange(listener),
    ...changes,
  };
}
