import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { expect, it, vi } from "vitest";
import { useBench } from "../../../../test/durable-bench.ts";
import { query, rejection, sleep } from "../../../../test/make-operation.ts";
import { natsSuite } from "../../../../test/nats-server.ts";
import { localEnvelope, unwrap } from "../../../core/envelope/envelope.ts";
import { CallError } from "../../../core/errors/errors.ts";
import type { Delivery } from "../../bus.ts";
import { consumerName, DurableNames, encodeEnding, requestToken } from "./durable-codec.ts";

const durable = { durable: true } as const;
const idempotent = { durable: true, annotations: { idempotent: true } } as const;

natsSuite("requests and how they end", () => {
  const bench = useBench();

  it("Durable: identity is read at the time the request was stored, from token and user", async () => {
    const seen: { delivery: Delivery; at: Date }[] = [];
    const who = query("x.who", (_, { identity }) => identity?.subject, {
      ...durable,
      access: { scopes: { allOf: ["run"] } },
    });
    const calls = await bench.calls({ user: "ada", credentials: ({ subject }) => `token of ${subject}` });
    const before = Date.now();
    const { requestId } = await calls.submit("x.who", {}, { identity: { subject: "ada@example" } });
    const after = Date.now();
    await sleep(100);
    await bench.serve([who], {
      authenticate: (delivery, at) => {
        seen.push({ delivery, at });
        return { subject: String(delivery.request.credential), scopes: ["run"] };
      },
    });
    expect(unwrap(await calls.result(requestId))).toBe("token of ada@example");
    expect(seen).toHaveLength(1);
    expect(seen[0]?.delivery.user).toBe("ada");
    expect(seen[0]?.delivery.identity).toBeUndefined();
    expect(seen[0]?.at.getTime()).toBeGreaterThanOrEqual(before - 1);
    expect(seen[0]?.at.getTime()).toBeLessThanOrEqual(after + 1);
  });

  it("Durable: access is checked where it runs", async () => {
    const guarded = query("x.guarded", () => 1, { ...durable, access: { scopes: { allOf: ["run"] } } });
    await bench.serve([guarded], { authenticate: () => ({ subject: "ada", scopes: ["other"] }) });
    const calls = await bench.calls();
    expect(await rejection(calls.execute("x.guarded"))).toMatchObject({ code: "ACCESS_DENIED" });
  });

  it("Durable: a credential that is refused ends the call, one that cannot be checked now is asked again", async () => {
    let asked = 0;
    await bench.serve([query("x.a", () => "in", durable)], {
      authenticate: ({ request }) => {
        asked += 1;
        if (request.input === "bad") throw new Error("secret reason");
        if (request.input === "denied") throw new CallError("ACCESS_DENIED", "Not you.");
        if (asked < 4) throw new CallError("UNAVAILABLE", "No keys right now.");
        return undefined;
      },
    });
    const calls = await bench.calls();
    const bad = await rejection(calls.execute("x.a", "bad"));
    expect(bad).toMatchObject({ code: "UNAUTHENTICATED" });
    expect(JSON.stringify(bad)).not.toContain("secret");
    expect(await rejection(calls.execute("x.a", "denied"))).toMatchObject({
      code: "ACCESS_DENIED",
      message: "Not you.",
    });
    expect(unwrap(await calls.execute("x.a"))).toBe("in");
    expect(asked).toBe(4);
  });

  it("Durable: what was never dealt with is given up after maxDeliver deliveries, with a stored error", async () => {
    let asked = 0;
    await bench.serve([query("x.a", () => 1, durable)], {
      maxDeliver: 3,
      authenticate: () => {
        asked += 1;
        throw new CallError("UNAVAILABLE");
      },
    });
    const calls = await bench.calls();
    const error = await rejection(calls.execute("x.a"));
    expect(error).toMatchObject({
      code: "UNAVAILABLE",
      retryable: false,
      message: expect.stringContaining("given up after 3 deliveries"),
    });
    expect(asked).toBe(2);
  });

  it("Durable: a request delivered again after its result was stored is not run again", async () => {
    const runs: unknown[] = [];
    const deliveries: unknown[] = [];
    const client = jetstream(await bench.connect());
    const work = query("x.work", () => void runs.push("run"), idempotent);
    await bench.serve([work], {
      // Another worker is quicker, and dies before it can acknowledge the request.
      authenticate: async ({ request, user = "_" }) => {
        if (deliveries.push(request) > 1) return undefined;
        const body = encodeEnding({ envelope: localEnvelope("stored", "x.work") }, 1_000);
        await client.publish(
          new DurableNames(bench.prefix).end(user, requestToken(user, request.requestId)),
          body,
        );
        throw new CallError("UNAVAILABLE");
      },
    });
    const calls = await bench.calls();
    expect(unwrap(await calls.execute("x.work"))).toBe("stored");
    const manager = await jetstreamManager(await bench.connect());
    await vi.waitFor(async () => {
      const info = await manager.consumers.info(new DurableNames(bench.prefix).calls, consumerName("x.work"));
      expect(info).toMatchObject({ num_ack_pending: 0, num_pending: 0, delivered: { consumer_seq: 2 } });
    }, 20_000);
    await sleep(500);
    expect(runs).toEqual([]);
  });

  it("Durable: malformed and forged requests are counted, end in an error and never come again", async () => {
    const inputs: unknown[] = [];
    const take = query("x.take", (input) => void inputs.push(input), durable);
    const worker = await bench.serve([take], { ackWaitMs: 2_000 });
    const calls = await bench.calls();
    const client = jetstream(await bench.connect());
    const event = { type: "call.requested", requestId: "a", operationId: "x.take" };
    const bodies = [
      "",
      "null",
      "{",
      "[".repeat(10_000),
      '{"type":"call.requested"}',
      JSON.stringify({ ...event, type: "call.error" }),
      JSON.stringify({ ...event, input: { $waybill: ["x"] } }),
      "\xff\xfe",
      JSON.stringify({ ...event, operationId: "x.other" }),
      JSON.stringify({ ...event, requestId: "of-somebody-else" }),
    ];
    for (const [index, body] of bodies.entries()) {
      const requestId = `bad-${index}`;
      const address = { user: "_", operationId: "x.take", token: requestToken("_", requestId) };
      await client.publish(new DurableNames(bench.prefix).request(address), Buffer.from(body, "latin1"));
      expect(await rejection(calls.result(requestId))).toMatchObject({ code: "VALIDATION_ERROR" });
    }
    expect(worker.counters).toMatchObject({ malformed: 8, forged: 2 });
    await calls.execute("x.take", "good");
    await sleep(3_000);
    expect(inputs).toEqual(["good"]);
    const manager = await jetstreamManager(await bench.connect());
    await vi.waitFor(async () => {
      const info = await manager.consumers.info(new DurableNames(bench.prefix).calls, consumerName("x.take"));
      expect(info).toMatchObject({ num_ack_pending: 0, num_pending: 0 });
    }, 20_000);
    expect(worker.counters).toMatchObject({ malformed: 8, forged: 2 });
  });
});
