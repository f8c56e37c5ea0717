import { afterEach, describe, expect, it } from "vitest";
import { query, rejection } from "../../../test/make-operation.ts";
import { CallError } from "../../core/errors/errors.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import type { ObservableBus } from "../bus.ts";
import { serveCalls } from "../call-handler.ts";
import { PendingRequestMap } from "../pending-request-map.ts";
import { QUEUE } from "./subjects.ts";
import { createMemoryTransport, MemoryBroker, type Transport, type TransportMessage } from "./transport.ts";
import { createWireBus } from "./wire-bus.ts";
import { decodeBatch, EMPTY_BATCH, MOST_REQUESTS, toBytes } from "./wire-message.ts";

const CALLS = "waybill.call._.a.x";
const BATCHES = `${CALLS}.batch`;

const busses: ObservableBus[] = [];
afterEach(async () => {
  for (const bus of busses.splice(0)) await bus.close();
});

function busOn(transport: Transport): ObservableBus {
  const bus = createWireBus(transport);
  busses.push(bus);
  return bus;
}

/** A caller, a listener to its requests, and a way to add members. */
function open(maxMessageBytes?: number) {
  const broker = new MemoryBroker();
  const heard: TransportMessage[] = [];
  const asking = createMemoryTransport({ broker, maxMessageBytes });
  const tap = createMemoryTransport({ broker });
  const publish = asking.publish.bind(asking);
  // Nobody else may listen: a message that nobody takes has to come back.
  asking.publish = (subject, data, replyTo) => {
    if (subject.startsWith("waybill.call.")) heard.push({ subject, data });
    publish(subject, data, replyTo);
  };
  const bus = busOn(asking);
  const map = new PendingRequestMap(bus);
  const serve = async (ran: (input: unknown) => unknown = (input) => input) => {
    const member = busOn(createMemoryTransport({ broker }));
    return { member, handler: await serveCalls(new OperationRegistry([query("a.x", ran)]), member) };
  };
  const callAll = async (count: number, input: (n: number) => unknown = (n) => n) =>
    (await Promise.all(Array.from({ length: count }, (_, n) => map.call("a.x", input(n))))).map(
      ({ data }) => data,
    );
  /** Requests by message; those that came by themselves count as one. */
  const sizes = () =>
    heard
      .splice(0)
      .map(({ subject, data }) =>
        subject.endsWith(".batch") ? (decodeBatch(data)?.entries.length ?? -1) : 1,
      );
  return { broker, bus, map, heard, serve, callAll, sizes, tap };
}

/** Joins as a member of an earlier version does, in the group of a namespace; gives the inputs that it ran. */
function joinAsBefore(broker: MemoryBroker): unknown[] {
  const ran: unknown[] = [];
  const member = createMemoryTransport({ broker });
  const answer = ({ data, replyTo = "" }: TransportMessage) => {
    const { event } = JSON.parse(new TextDecoder().decode(data)) as {
      event: { requestId: string; input: unknown };
    };
    ran.push(event.input);
    const output = { data: event.input, meta: { source: "local", operationId: "a.x", timestamp: 1 } };
    const answer = { type: "call.responded", requestId: event.requestId, output };
    member.publish(replyTo, toBytes(JSON.stringify({ v: 1, event: answer })));
  };
  member.subscribe("waybill.call.*.a.*", answer, QUEUE);
  return ran;
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

describe("requests that become ready together", () => {
  it("Call: go one by one until a member has said that it takes several, then at most 16 in a message", async () => {
    const { callAll, serve, sizes } = open();
    await serve();
    expect(await callAll(300)).toEqual(numbers(300));
    expect(sizes()).toEqual([0, ...Array.from({ length: 300 }, () => 1)]);
    expect(await callAll(300)).toEqual(numbers(300));
    const sent = sizes();
    expect(sent.reduce((sum, size) => sum + size)).toBe(300);
    expect([Math.max(...sent), sent.length]).toEqual([MOST_REQUESTS, Math.ceil(300 / MOST_REQUESTS)]);
  });

  it("Call: go in at least eight messages, so that members share them, and a lone one goes by its own subject", async () => {
    const { callAll, heard, serve, sizes } = open();
    await serve();
    await callAll(20);
    await callAll(20);
    sizes();
    await callAll(40);
    const sent = sizes();
    expect([Math.max(...sent), sent.length]).toEqual([5, 8]);
    await callAll(15);
    expect(sizes()).toEqual(Array.from({ length: 15 }, () => 1));
    await callAll(1);
    expect(heard.map(({ subject }) => subject)).toEqual([CALLS]);
  });

  it("Call: go one by one while a member of their operation is left out, and together where another operation's is", async () => {
    const { broker, callAll, map, serve, sizes } = open();
    await serve();
    const sick = query("b.sick", () => {
      throw new CallError("UNAVAILABLE");
    });
    await serveCalls(new OperationRegistry([sick]), busOn(createMemoryTransport({ broker })));
    await callAll(16);
    expect(await rejection(map.call("b.sick"))).toMatchObject({ code: "UNAVAILABLE" });
    sizes();
    expect(await callAll(160)).toEqual(numbers(160));
    expect(sizes()).toEqual(Array.from({ length: 10 }, () => MOST_REQUESTS));
    // Members are asked whether they take several when the first of these are ready; the others would go together.
    for (let round = 0; round < 2; round++)
      await Promise.allSettled(Array.from({ length: 16 }, () => map.call("b.sick")));
    expect(sizes().filter((size) => size > 0)).toEqual(Array.from({ length: 32 }, () => 1));
  });

  it.each(["UNAVAILABLE", "RESOURCE_EXHAUSTED"] as const)(
    "Call: tell with %s which member did not do what it was asked, which is left out",
    async (code) => {
      const { bus, callAll, map, serve, sizes } = open();
      let isSick = false;
      await serve((input) => {
        if (isSick) throw new CallError(code);
        return input;
      });
      await callAll(16);
      sizes();
      isSick = true;
      await Promise.allSettled(Array.from({ length: 16 }, (_, n) => map.call("a.x", n)));
      expect(sizes()).toEqual(Array.from({ length: 8 }, () => 2));
      expect(bus.leftOut).toEqual([{ operationId: "a.x", member: expect.any(String) }]);
    },
  );

  it("Call: that were refused for want of room run at a later try, though their operation is not idempotent", async () => {
    const { broker, callAll, map, serve, sizes } = open();
    const { handler } = await serve();
    await callAll(16);
    const ran: unknown[] = [];
    const registry = new OperationRegistry([query("a.x", async (input) => ran.push(input))]);
    const limits = { runningCalls: 1 };
    const small = await serveCalls(registry, busOn(createMemoryTransport({ broker })), { limits });
    await handler.drain();
    sizes();
    const retry = { attempts: 20, delayMs: 1 };
    await Promise.all(numbers(16).map((n) => map.call("a.x", n, { retry })));
    expect(sizes().filter((size) => size === 2)).toHaveLength(8);
    expect(small.counters.overLimit).toBeGreaterThan(0);
    expect(ran.sort((one, other) => Number(one) - Number(other))).toEqual(numbers(16));
  });

  it("Call: reach each its own answer and no other, whatever they hold", async () => {
    const { callAll, serve, sizes } = open();
    await serve((input) => ({ input }));
    await callAll(16);
    const inputs = [1, "ü\n\u2028\ud800", new Date(0), undefined, [[[]]], { $waybill: 1 }, -0, 10n];
    sizes();
    const answers = await callAll(200, (n) => inputs[n % inputs.length]);
    expect(answers).toEqual(numbers(200).map((n) => ({ input: inputs[n % inputs.length] })));
    expect(Math.max(...sizes())).toBe(MOST_REQUESTS);
  });

  it.each([2_000, 3_000, 10_000])(
    "Call: no message is larger than the %i bytes that a broker carries",
    async (most) => {
      const { callAll, heard, serve } = open(most);
      await serve(() => 1);
      await callAll(16);
      await callAll(300, (n) => "€".repeat(n));
      expect(Math.max(...heard.map(({ data }) => data.length))).toBeLessThanOrEqual(most);
      expect(heard.some(({ subject, data }) => subject === BATCHES && data.length > EMPTY_BATCH.length)).toBe(
        true,
      );
    },
  );

  it("Call: are not sent together to members that do not listen for it", async () => {
    const { broker, callAll, sizes } = open();
    joinAsBefore(broker);
    for (let round = 0; round < 3; round++) expect(await callAll(100)).toEqual(numbers(100));
    // The question is asked once, and heard by nobody.
    expect(sizes().filter((size) => size !== 1)).toEqual([0]);
  });

  it("Call: go again, one by one, when nobody is left who takes several, and none runs twice", async () => {
    const { broker, bus, callAll, serve, sizes } = open();
    const { handler } = await serve();
    await callAll(100);
    await handler.drain();
    const ran = joinAsBefore(broker);
    sizes();
    expect(await callAll(100)).toEqual(numbers(100));
    expect(sizes()).toEqual([
      ...[12, 12, 12, 12, 12, 12, 12, 12, 4],
      ...Array.from({ length: 100 }, () => 1),
    ]);
    expect(ran).toEqual(numbers(100));
    expect(await callAll(100)).toEqual(numbers(100));
    expect(sizes()).toEqual(Array.from({ length: 100 }, () => 1));
    expect(bus.counters).toMatchObject({ forged: 0, late: 0, malformed: 0 });
  });

  it("Call: fail at once where nobody is left at all", async () => {
    const { callAll, map, serve } = open();
    const { handler } = await serve();
    await callAll(100);
    await handler.drain();
    const ended = await Promise.all(numbers(100).map((n) => rejection(map.call("a.x", n))));
    expect(new Set(ended.map((error) => (error as { code?: string }).code))).toEqual(
      new Set(["NO_RESPONDER"]),
    );
    expect(map.size).toBe(0);
  });

  it("Call: one that is given up before it is sent is not sent, and the others are", async () => {
    const { map, callAll, serve, sizes } = open();
    const ran: unknown[] = [];
    await serve((input) => ran.push(input));
    await callAll(100);
    ran.length = 0;
    sizes();
    const controllers = numbers(100).map(() => new AbortController());
    const calls = controllers.map(({ signal }, n) => map.call("a.x", n, { signal }));
    for (const controller of controllers.slice(10, 60)) controller.abort();
    const ended = await Promise.allSettled(calls);
    expect(ended.filter(({ status }) => status === "rejected")).toHaveLength(50);
    expect(ran).toHaveLength(50);
    expect(sizes().reduce((sum, size) => sum + size)).toBe(50);
  });
});

describe("several requests in one message", () => {
  const event = (n: number, more: object = {}) => ({
    ...{ type: "call.requested", requestId: `r${n}`, operationId: "a.x", input: n },
    ...more,
  });
  const batchOf = (entries: readonly unknown[]) =>
    toBytes(JSON.stringify({ v: 1, beats: true, batch: entries }));

  /** A member, and somebody who sends it messages by hand. */
  async function attack() {
    const { broker, serve, tap } = open();
    const ran: unknown[] = [];
    const { member } = await serve((input) => ran.push(input));
    const heard: string[] = [];
    const hand = createMemoryTransport({ broker });
    hand.subscribe(
      "me.here.*",
      ({ subject, data }) => void heard.push(`${subject} ${new TextDecoder().decode(data)}`),
    );
    const send = async (
      entries: readonly unknown[],
      replyTo: string | undefined = "me.here.now",
      subject = BATCHES,
    ) => {
      tap.publish(subject, batchOf(entries), replyTo);
      await tap.flush();
      await tap.flush();
    };
    return { member, ran, heard, send };
  }

  it("Call: one that cannot be read, is forged, repeated or another's spoils no other", async () => {
    const { member, ran, heard, send } = await attack();
    await send([
      { line: "t1", event: event(1) },
      { line: "t2", event: event(2, { operationId: 5 }) },
      { line: "t3", event: event(3, { operationId: "a.y" }) },
      { line: "*", event: event(4) },
      { event: event(5) },
      null,
      "text",
      { line: "t1", event: event(6) },
      { line: "t7", event: { type: "call.aborted", requestId: "r7" } },
      { line: "t8", event: event(8) },
    ]);
    expect(ran).toEqual([1, 8]);
    expect(member.counters).toMatchObject({ malformed: 5, forged: 1, duplicate: 1, unexpected: 1 });
    expect(heard.join("\n")).toMatch(/me\.here\.t2 .*VALIDATION_ERROR/);
  });

  it("Call: at most 16 are taken, and a message with more is dropped whole", async () => {
    const { member, ran, send } = await attack();
    const entries = (count: number, from: number) =>
      numbers(count).map((n) => ({ line: `t${from + n}`, event: event(from + n) }));
    await send(entries(MOST_REQUESTS, 0));
    expect([ran.length, member.counters.oversized]).toEqual([MOST_REQUESTS, 0]);
    await send(entries(MOST_REQUESTS + 1, 100));
    expect([ran.length, member.counters.oversized]).toEqual([MOST_REQUESTS, 1]);
  });

  it("Call: are never answered by a path that is the protocol's own, or by none", async () => {
    const { member, ran, send } = await attack();
    for (const replyTo of ["waybill.who", "$SYS.x", "waybill.call._.a.x", "nodot"])
      await send([{ line: "t1", event: event(1) }], replyTo);
    expect([ran.length, member.counters.malformed]).toEqual([0, 4]);
  });
});
