import { expect, it } from "vitest";
import { collect, query, rejection, stream } from "../../../../test/make-operation.ts";
import { serveCalls } from "../../../call/call-handler.ts";
import { PendingRequestMap } from "../../../call/pending-request-map.ts";
import { createMemoryTransport } from "../../../call/wire/transport.ts";
import { createWireBus } from "../../../call/wire/wire-bus.ts";
import { toolError } from "../../../core/envelope/envelope.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import { createObserver } from "../../../gateway/serve/observe/observer.ts";
import { CallLog } from "./call-log.ts";
import { BusTally, statsBySource } from "./call-views.ts";

const ALL = { identity: undefined, isOperator: true, isAuthOn: false, isCurrent: () => true };

it("counts what failed and what reported an error as errors, and not what its caller gave up", async () => {
  const observer = createObserver();
  const registry = new OperationRegistry([
    query("desk.ok", () => 1),
    query("desk.no", () => toolError(0, { code: "ABORTED" })),
    query("desk.broken", () => {
      throw new CallError("NOT_FOUND", "There is none.");
    }),
    query("desk.slow", (_, { signal }) => new Promise((resolve) => (signal.onabort = resolve))),
  ]);
  registry.use(observer);
  const log = new CallLog(observer);
  const stop = new AbortController();
  const slow = rejection(registry.execute("desk.slow", undefined, { signal: stop.signal }));
  await registry.execute("desk.ok");
  await registry.execute("desk.no");
  await rejection(registry.execute("desk.broken"));
  stop.abort();
  await slow;
  expect(statsBySource(log, ALL).get("desk")).toMatchObject({ count: 4, errors: 2 });
  log.close();
});

it("RE-17 tallies what crosses a bus at each end, and takes what was given up for no error", async () => {
  const bus = createWireBus(createMemoryTransport());
  const observer = createObserver();
  bus.onCall(observer.busCall);
  const tally = new BusTally();
  const stop = observer.listen({ bus: (call) => tally.take(call) });
  const operations = [
    query("desk.say", (input) => input),
    query("desk.no", () => toolError(0)),
    query("desk.slow", () => new Promise(() => {})),
    stream("desk.two", async function* () {
      yield* [1, 2];
    }),
  ];
  const service = await serveCalls(new OperationRegistry(operations), bus);
  const map = new PendingRequestMap(bus);
  await map.call("desk.say", "x".repeat(1_000));
  await map.call("desk.no");
  await collect(map.subscribe("desk.two"));
  await rejection(map.call("desk.nobody"));
  const controller = new AbortController();
  const slow = rejection(map.call("desk.slow", 1, { signal: controller.signal }));
  controller.abort();
  await slow;
  await service.drain();
  const [caller, handler] = tally.traffic();
  expect(caller).toMatchObject({ end: "caller", calls: 5, errors: 2, values: 2 });
  expect(handler).toMatchObject({ end: "handler", errors: 1, values: 2 });
  expect(caller?.receivedBytes).toBe(handler?.sentBytes);
  expect(handler?.sentBytes).toBeGreaterThan(1_000);
  expect(caller?.sentBytes).toBeGreaterThan(handler?.receivedBytes ?? 0);
  stop();
  await rejection(map.call("desk.nobody"));
  expect(tally.traffic()[0]).toEqual(caller);
  await bus.close();
});
