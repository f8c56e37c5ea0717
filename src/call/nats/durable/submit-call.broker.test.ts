import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { expect, it, vi } from "vitest";
import { useBench } from "../../../../test/durable-bench.ts";
import { query, rejection, sleep } from "../../../../test/make-operation.ts";
import { natsSuite } from "../../../../test/nats-server.ts";
import { unwrap } from "../../../core/envelope/envelope.ts";
import type { AnyOperation } from "../../../core/operation/operation-types.ts";
import { DurableNames, hashOf, requestToken } from "./durable-codec.ts";

function counting(id: string): { readonly operation: AnyOperation; readonly inputs: unknown[] } {
  const inputs: unknown[] = [];
  const operation = query(
    id,
    (input) => {
      inputs.push(input);
      return inputs.length;
    },
    { durable: true },
  );
  return { operation, inputs };
}

natsSuite("submitting", () => {
  const bench = useBench();

  it("Durable: 50 submits with one key at once are one call that runs once", async () => {
    const { operation, inputs } = counting("shop.order");
    await bench.serve([operation]);
    await bench.serve([operation]);
    const sides = await Promise.all([bench.calls(), bench.calls()]);
    const submitted = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        sides[i % 2]?.submit("shop.order", { n: 1 }, { idempotencyKey: "k" }),
      ),
    );
    expect(new Set(submitted.map((call) => call?.requestId)).size).toBe(1);
    expect(submitted.filter((call) => call?.duplicate === false)).toHaveLength(1);
    expect(
      unwrap((await sides[0]?.result(submitted[0]?.requestId ?? "")) ?? { data: 0, meta: {} as never }),
    ).toBe(1);
    await sleep(200);
    expect(inputs).toEqual([{ n: 1 }]);
  });

  it("Durable: without a key every submit is its own call", async () => {
    const { operation, inputs } = counting("shop.order");
    await bench.serve([operation]);
    const calls = await bench.calls();
    await Promise.all([calls.execute("shop.order", 1), calls.execute("shop.order", 1)]);
    expect(inputs).toEqual([1, 1]);
  });

  it("Durable: a key counts per operation, user and identity", async () => {
    const options = { credentials: () => "token" };
    const calls = await bench.calls(options);
    const other = await bench.calls({ ...options, user: "bob" });
    const key = { idempotencyKey: "k" };
    const submitted = [
      await calls.submit("shop.order", 1, key),
      await calls.submit("shop.refund", 1, key),
      await other.submit("shop.order", 1, key),
      await calls.submit("shop.order", 1, { ...key, identity: { subject: "ada" } }),
      await calls.submit("shop.order", 1, { ...key, identity: { subject: "eve" } }),
    ];
    expect(submitted.map((call) => call.duplicate)).toEqual([false, false, false, false, false]);
    const again = await calls.submit("shop.order", 1, { ...key, identity: { subject: "eve" } });
    expect(again).toEqual({ requestId: submitted[4]?.requestId, duplicate: true });
  });

  it("Durable: the same key with another input is CONFLICT, with the keys in another order it is not", async () => {
    const calls = await bench.calls();
    const key = { idempotencyKey: "k" };
    await calls.submit("shop.order", { a: 1, b: { c: 2, d: 3 } }, key);
    expect(await calls.submit("shop.order", { b: { d: 3, c: 2 }, a: 1 }, key)).toMatchObject({
      duplicate: true,
    });
    expect(await rejection(calls.submit("shop.order", { a: 2 }, key))).toMatchObject({ code: "CONFLICT" });
  });

  it("Durable: a key stands for its call within the duplicate window only", async () => {
    const calls = await bench.calls({ duplicateWindowMs: 500 });
    const first = await calls.submit("shop.order", 1, { idempotencyKey: "k" });
    await sleep(500);
    const second = await vi.waitFor(async () => {
      const again = await calls.submit("shop.order", 1, { idempotencyKey: "k" });
      expect(again.duplicate).toBe(false);
      return again;
    }, 20_000);
    expect(second.requestId).not.toBe(first.requestId);
  });

  it("Durable: a key that somebody else has taken on the broker is CONFLICT and counted as forged", async () => {
    const calls = await bench.calls({ user: "ada" });
    const head = headers();
    head.set("Nats-Msg-Id", hashOf("key", "ada", null, "shop.order", "k"));
    const subject = new DurableNames(bench.prefix).request({
      user: "bob",
      operationId: "shop.order",
      token: "x",
    });
    await jetstream(await bench.connect()).publish(subject, "{}", { headers: head });
    const error = await rejection(calls.submit("shop.order", 1, { idempotencyKey: "k" }));
    expect(error).toMatchObject({ code: "CONFLICT" });
    expect(calls.counters.forged).toBe(1);
  });

  it("Durable: a chosen request id already used is CONFLICT, whatever the operation and however it was made", async () => {
    const calls = await bench.calls();
    expect(await calls.submit("a.b", 1, { requestId: "mine" })).toEqual({
      requestId: "mine",
      duplicate: false,
    });
    expect(await rejection(calls.submit("a.b", 1, { requestId: "mine" }))).toMatchObject({
      code: "CONFLICT",
    });
    expect(await rejection(calls.submit("c.d", 1, { requestId: "mine" }))).toMatchObject({
      code: "CONFLICT",
    });
    const { requestId } = await calls.submit("a.b", 1);
    expect(await rejection(calls.submit("c.d", 1, { requestId }))).toMatchObject({ code: "CONFLICT" });
    const other = await bench.calls({ user: "bob" });
    expect(await other.submit("a.b", 1, { requestId: "mine" })).toMatchObject({ duplicate: false });
  });

  it.each([
    ["without keys", () => undefined],
    ["each with its own key", (i: number) => `key ${i}`],
  ])(
    "Durable: of many submits at once with one chosen id over two operations, %s, one is stored",
    async (_, keyOf) => {
      const calls = await bench.calls();
      const outcomes = await Promise.allSettled(
        Array.from({ length: 20 }, (_, i) =>
          calls.submit(i % 2 === 0 ? "a.b" : "c.d", i, { requestId: "mine", idempotencyKey: keyOf(i) }),
        ),
      );
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      const manager = await jetstreamManager(await bench.connect());
      const { state } = await manager.streams.info(new DurableNames(bench.prefix).calls);
      // The call, and the claim on its id.
      expect(state.messages).toBe(2);
    },
  );

  it("Durable: a chosen id and a key together may be submitted again", async () => {
    const calls = await bench.calls();
    const both = { requestId: "mine", idempotencyKey: "k" };
    expect(await calls.submit("a.b", 1, both)).toEqual({ requestId: "mine", duplicate: false });
    expect(await calls.submit("a.b", 1, both)).toEqual({ requestId: "mine", duplicate: true });
    const otherId = await calls.submit("a.b", 1, { ...both, requestId: "other" });
    expect(otherId).toEqual({ requestId: "mine", duplicate: true });
    const otherKey = rejection(calls.submit("a.b", 1, { ...both, idempotencyKey: "l" }));
    expect(await otherKey).toMatchObject({ code: "CONFLICT" });
  });

  it("Durable: an identity without a way to prove it is UNAUTHENTICATED before anything is stored", async () => {
    const calls = await bench.calls();
    const error = await rejection(calls.submit("a.b", 1, { identity: { subject: "ada" } }));
    expect(error).toMatchObject({ code: "UNAUTHENTICATED" });
    const manager = await jetstreamManager(await bench.connect());
    expect((await manager.streams.info(new DurableNames(bench.prefix).calls)).state.messages).toBe(0);
  });

  it("Durable: credentials that hang end in UNAVAILABLE within the timeout, an abort in ABORTED", async () => {
    const calls = await bench.calls({ credentials: () => new Promise<string>(() => {}) });
    const options = { identity: { subject: "ada" }, timeoutMs: 100 };
    expect(await rejection(calls.submit("a.b", 1, options))).toMatchObject({ code: "UNAVAILABLE" });
    const aborted = calls.submit("a.b", 1, {
      ...options,
      timeoutMs: 60_000,
      signal: AbortSignal.timeout(50),
    });
    expect(await rejection(aborted)).toMatchObject({ code: "ABORTED" });
  });

  it("Durable: what cannot cross a wire is refused before anything is stored", async () => {
    const calls = await bench.calls();
    expect(await rejection(calls.submit("a.b", () => 1))).toMatchObject({ code: "VALIDATION_ERROR" });
    const manager = await jetstreamManager(await bench.connect());
    expect((await manager.streams.info(new DurableNames(bench.prefix).calls)).state.messages).toBe(0);
  });

  it("Durable: the subject of a request tells user, operation and id", async () => {
    const calls = await bench.calls({ user: "ada" });
    await calls.submit("shop.order/v1.new", 1, { requestId: "r" });
    const manager = await jetstreamManager(await bench.connect());
    const found = await manager.streams.getMessage(new DurableNames(bench.prefix).calls, {
      last_by_subj: `${bench.prefix}.durable.ada.shop.*.*`,
    });
    expect(found?.subject).toBe(`${bench.prefix}.durable.ada.shop.order/v1~new.${requestToken("ada", "r")}`);
  });
});
