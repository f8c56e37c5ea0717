import { createHash } from "node:crypto";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { expect, it } from "vitest";
import { useBench } from "../../../../test/durable-bench.ts";
import { query, rejection } from "../../../../test/make-operation.ts";
import { natsSuite } from "../../../../test/nats-server.ts";
import { unwrap } from "../../../core/envelope/envelope.ts";
import { DurableNames, encodeRequest, requestToken } from "./durable-codec.ts";

const MAX_PAYLOAD = 4_096;
const REQUEST_ID = "0".repeat(32);

/** Bytes of a request around a text. */
const request = (input: string) =>
  ({ type: "call.requested", requestId: REQUEST_ID, operationId: "x.size", input }) as const;
const AROUND = encodeRequest(request(""), 1_000).length;

natsSuite("bodies of any size", () => {
  const bench = useBench(`max_payload: ${MAX_PAYLOAD}`);
  const size = query("x.size", (input) => (input as string).length, { durable: true });
  const make = query("x.make", (input) => "x".repeat(input as number), { durable: true });

  it.each([-1, 0, 1])(
    "Durable: a request of what one message holds and %d bytes more arrives whole",
    async (more) => {
      await bench.serve([size]);
      const calls = await bench.calls();
      const length = MAX_PAYLOAD - 1_024 - AROUND + more;
      expect(unwrap(await calls.execute("x.size", "x".repeat(length)))).toBe(length);
      const manager = await jetstreamManager(await bench.connect());
      const { state } = await manager.streams.info(new DurableNames(bench.prefix).calls);
      expect(state.messages).toBe(more > 0 ? 3 : 1);
    },
  );

  it("Durable: a result of many parts arrives whole", async () => {
    await bench.serve([make]);
    const calls = await bench.calls();
    expect(unwrap(await calls.execute("x.make", 200_000))).toBe("x".repeat(200_000));
  });

  it("Durable: a request of messageBytes is stored, one more is RESOURCE_EXHAUSTED before anything is sent", async () => {
    const limits = { messageBytes: 10_000 };
    await bench.serve([size], { limits });
    const calls = await bench.calls({ limits });
    const fits = "x".repeat(10_000 - AROUND);
    expect(unwrap(await calls.execute("x.size", fits))).toBe(fits.length);
    const manager = await jetstreamManager(await bench.connect());
    const before = (await manager.streams.info(new DurableNames(bench.prefix).calls)).state.messages;
    expect(await rejection(calls.submit("x.size", `${fits}x`))).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    expect((await manager.streams.info(new DurableNames(bench.prefix).calls)).state.messages).toBe(before);
  });

  it("Durable: a result of messageBytes is stored, one more ends the call in RESOURCE_EXHAUSTED", async () => {
    const calls = await bench.calls();
    const measure = await bench.serve([make]);
    const empty = JSON.stringify(await calls.execute("x.make", 0)).length + 1;
    await measure.drain();
    const limits = { messageBytes: 10_000 };
    await bench.serve([make], { limits });
    const fits = 10_000 - empty;
    expect(unwrap(await calls.execute("x.make", fits))).toHaveLength(fits);
    expect(await rejection(calls.execute("x.make", fits + 1))).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
  });

  it("Durable: parts that are missing, changed or too many are counted and end the call", async () => {
    const worker = await bench.serve([size], { limits: { messageBytes: 10_000 } });
    const calls = await bench.calls();
    const client = jetstream(await bench.connect());
    const hash = createHash("sha256").update("abc").digest("base64url");
    const forged: readonly (readonly [string, string, keyof typeof worker.counters])[] = [
      ["1 3", "", "gaps"],
      ["1 10001", "abc", "oversized"],
      ["1 4", "abc", "malformed"],
      ["1 2", "abc", "malformed"],
      ["4 3", "abc", "malformed"],
      ["0 0", "abc", "malformed"],
      ["x", "abc", "malformed"],
      ["1 3", "abd", "malformed"],
      ["1 3", "abc", "malformed"],
    ];
    for (const [index, [parts, content, reason]] of forged.entries()) {
      const token = requestToken("_", `id-${index}`);
      if (content !== "")
        await client.publish(new DurableNames(bench.prefix).requestParts("_", token)("s", 0), content);
      const head = headers();
      head.set("Waybill-Parts", `${parts} ${hash} s`);
      const before = worker.counters[reason];
      await client.publish(
        new DurableNames(bench.prefix).request({ user: "_", operationId: "x.size", token }),
        "",
        {
          headers: head,
        },
      );
      expect(await rejection(calls.result(`id-${index}`))).toMatchObject({ code: "VALIDATION_ERROR" });
      expect(worker.counters[reason]).toBe(before + 1);
    }
  });
});
