import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { expect, it, vi } from "vitest";
import { useBench } from "../../../../test/durable-bench.ts";
import { endsInTime } from "../../../../test/lateness.ts";
import { query, rejection, sleep } from "../../../../test/make-operation.ts";
import { natsSuite } from "../../../../test/nats-server.ts";
import { createClient } from "../../../core/client/client.ts";
import { unwrap } from "../../../core/envelope/envelope.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { createMemoryBus } from "../../memory-bus.ts";
import { createRemoteRegistry } from "../../remote-registry.ts";
import { DurableNames, requestToken } from "./durable-codec.ts";

const durable = { durable: true } as const;
const double = query("math.double", (input) => (input as { n: number }).n * 2, durable);

natsSuite("durable calls", () => {
  const bench = useBench();

  it("Durable: submit resolves with an unguessable id once stored, and the result is fetched by it", async () => {
    const calls = await bench.calls();
    const submitted = await calls.submit("math.double", { n: 21 });
    expect(submitted.duplicate).toBe(false);
    expect(submitted.requestId).toMatch(/^[0-9a-f]{32}$/);
    await bench.serve([double]);
    const envelope = await calls.result(submitted.requestId);
    expect(unwrap(envelope)).toBe(42);
    expect(envelope.meta).toMatchObject({ source: "local", operationId: "math.double" });
    expect(await calls.result(submitted.requestId)).toEqual(envelope);
  });

  it("Durable: execute submits and waits", async () => {
    await bench.serve([double]);
    const calls = await bench.calls();
    expect(unwrap(await calls.execute("math.double", { n: 4 }))).toBe(8);
  });

  it("Durable: a typed client starts a call that goes on at the broker, and finds how it ended", async () => {
    const calls = await bench.calls();
    const remote = await createRemoteRegistry(createMemoryBus(), { durable: calls });
    const client = createClient(remote);
    const task = await client.start(double, { n: 21 });
    expect(task.id).toMatch(/^[0-9a-f]{32}$/);
    expect(await task.status()).toEqual({ id: task.id, operationId: "math.double", status: "working" });
    expect(await rejection(task.result({ timeoutMs: 1 }))).toMatchObject({ code: "TIMEOUT" });
    expect(await rejection(task.cancel())).toMatchObject({ code: "NOT_IMPLEMENTED" });
    await bench.serve([double]);
    const seen: string[] = [];
    for await (const { status } of task) seen.push(status);
    expect(seen.at(-1)).toBe("completed");
    expect(await task.result()).toBe(42);
    expect(await task.result()).toBe(42);
    expect(unwrap(await calls.result(task.id))).toBe(42);
    await remote.close();
  });

  it("Durable: submit takes the operation itself, or its id", async () => {
    await bench.serve([double]);
    const calls = await bench.calls();
    for (const target of [double, "math.double"]) {
      const { requestId } = await calls.submit(target, { n: 3 });
      expect(unwrap(await calls.result(requestId))).toBe(6);
    }
    const error = await rejection(calls.submit({} as typeof double, { n: 3 }));
    expect(error).toMatchObject({ code: "OPERATION_NOT_FOUND" });
  });

  it("Durable: an error is stored and thrown with its code, details and traits", async () => {
    const fail = query(
      "x.fail",
      () => {
        throw new CallError("NOT_FOUND", "No such parcel.", { details: { id: 7 }, httpStatus: 410 });
      },
      durable,
    );
    await bench.serve([fail]);
    const calls = await bench.calls();
    const error = await rejection(calls.execute("x.fail", {}));
    expect(error).toMatchObject({
      code: "NOT_FOUND",
      message: "No such parcel.",
      details: { id: 7 },
      httpStatus: 410,
    });
  });

  it("Durable: what JSON cannot hold goes through both ways", async () => {
    const value = { bytes: Uint8Array.of(1, 2), big: 10n, at: new Date(5), none: undefined, text: "ü€😀" };
    await bench.serve([query("x.echo", (input) => input, durable)]);
    const calls = await bench.calls();
    expect(unwrap(await calls.execute("x.echo", value))).toStrictEqual(value);
    expect(unwrap(await calls.execute("x.echo"))).toBeUndefined();
  });

  it("Durable: metadata, request id, parent and depth reach the handler", async () => {
    const show = query(
      "x.show",
      (_, { requestId, metadata, parent }) => ({ requestId, metadata, parent: parent?.requestId }),
      durable,
    );
    await bench.serve([show]);
    const calls = await bench.calls();
    const origin = { depth: 1, parent: { requestId: "above", operationId: "a.b" } };
    const envelope = await calls.execute(
      "x.show",
      {},
      { requestId: "id:1.*>", metadata: { trace: "t" }, origin },
    );
    expect(unwrap(envelope)).toEqual({ requestId: "id:1.*>", metadata: { trace: "t" }, parent: "above" });
  });

  it("Durable: an unknown request id is NOT_FOUND at once, a malformed one too", async () => {
    const calls = await bench.calls();
    // One that waited for a result would wait for longer than the test may take.
    const options = { timeoutMs: 600_000 };
    expect(await rejection(calls.result("never-was", options))).toMatchObject({ code: "NOT_FOUND" });
    const malformed = rejection(calls.result("has spaces", options));
    expect(await malformed).toMatchObject({ code: "NOT_FOUND" });
  });

  it("Durable: another user does not find the result", async () => {
    await bench.serve([double]);
    const mine = await bench.calls({ user: "ada" });
    const other = await bench.calls({ user: "bob" });
    const { requestId } = await mine.submit("math.double", { n: 1 });
    expect(unwrap(await mine.result(requestId))).toBe(2);
    expect(await rejection(other.result(requestId))).toMatchObject({ code: "NOT_FOUND" });
  });

  it("Durable: a wait that is over is TIMEOUT with the id, an aborted one ABORTED, and the call goes on", async () => {
    let finish = (_: string) => {};
    const done = new Promise<string>((resolve) => (finish = resolve));
    const slow = query("x.slow", () => done, durable);
    await bench.serve([slow]);
    const calls = await bench.calls();
    const { requestId } = await calls.submit("x.slow");
    const late = rejection(calls.result(requestId, { timeoutMs: 100 }));
    expect(await endsInTime(100, () => late)).toBe(true);
    expect(await late).toMatchObject({ code: "TIMEOUT", details: { requestId } });
    const signal = AbortSignal.timeout(50);
    expect(await rejection(calls.result(requestId, { signal }))).toMatchObject({ code: "ABORTED" });
    expect(await rejection(calls.result(requestId, { signal }))).toMatchObject({ code: "ABORTED" });
    finish("done");
    expect(unwrap(await calls.result(requestId))).toBe("done");
  });

  it("Durable: a malformed operation id is OPERATION_NOT_FOUND, a wrong option a TypeError", async () => {
    const calls = await bench.calls();
    expect(await rejection(calls.submit("no-dot"))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
    expect(await rejection(calls.submit("a.*"))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
    expect(await rejection(calls.submit("a.b", {}, { requestId: "a b" }))).toBeInstanceOf(TypeError);
    expect(await rejection(calls.submit("a.b", {}, { idempotencyKey: "" }))).toBeInstanceOf(TypeError);
    expect(await rejection(calls.submit("a.b", {}, { timeoutMs: -1 }))).toBeInstanceOf(TypeError);
    expect(await rejection(calls.submit("a.b", {}, { idempotencyKey: "k".repeat(1_001) }))).toBeInstanceOf(
      TypeError,
    );
    expect(await calls.submit("a.b", {}, { idempotencyKey: "k".repeat(1_000) })).toMatchObject({
      duplicate: false,
    });
  });

  it("Durable: one wait more than pendingCalls is RESOURCE_EXHAUSTED and counted", async () => {
    const calls = await bench.calls({ limits: { pendingCalls: 2 } });
    const { requestId } = await calls.submit("x.nobody");
    const waits = [1, 2].map(() => rejection(calls.result(requestId, { timeoutMs: 300 })));
    expect(await rejection(calls.result(requestId))).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    expect(await Promise.all(waits)).toMatchObject([{ code: "TIMEOUT" }, { code: "TIMEOUT" }]);
    expect(calls.counters.overLimit).toBe(1);
  });

  it("Durable: a forged live result is ignored: only what is stored counts", async () => {
    const calls = await bench.calls();
    const { requestId } = await calls.submit("x.later");
    const waiting = calls.result(requestId);
    const forger = await bench.connect();
    const subject = new DurableNames(bench.prefix).end("_", requestToken("_", requestId));
    await sleep(100);
    // By a path that delivers to whoever listens and stores nothing.
    await jetstream(forger)
      .publish(subject, "+{}", { expect: { lastSubjectSequence: 99 } })
      .catch(() => undefined);
    await sleep(100);
    await bench.serve([query("x.later", () => "real", durable)]);
    expect(unwrap(await waiting)).toBe("real");
  });

  it("Durable: results never change, not even by force", async () => {
    await bench.serve([double]);
    const calls = await bench.calls();
    const { requestId } = await calls.submit("math.double", { n: 1 });
    const envelope = await calls.result(requestId);
    const subject = new DurableNames(bench.prefix).end("_", requestToken("_", requestId));
    await expect(jetstream(await bench.connect()).publish(subject, "+{}")).rejects.toThrow(/per subject/);
    expect(await calls.result(requestId)).toEqual(envelope);
  });

  it("Durable: a stored result that is none is an error, never a crash", async () => {
    const calls = await bench.calls();
    const client = jetstream(await bench.connect());
    for (const body of ["", "+", "+{}", "-", "-{}", "x", "-null", "\xff"]) {
      const { requestId } = await calls.submit("x.nobody");
      await client.publish(
        new DurableNames(bench.prefix).end("_", requestToken("_", requestId)),
        Buffer.from(body, "latin1"),
      );
      expect(await rejection(calls.result(requestId))).toMatchObject({ code: "OUTPUT_INVALID" });
    }
  });

  it("Durable: streams that are there with other settings are an error that names the setting", async () => {
    await bench.calls({ keepMs: 60_000 });
    const error = await rejection(bench.calls({ keepMs: 61_000 }));
    expect(error).not.toBeInstanceOf(CallError);
    expect(String(error)).toMatch(/another max_age/);
    const streams = await jetstreamManager(await bench.connect());
    const { config } = await streams.streams.info(new DurableNames(bench.prefix).calls);
    expect(config).toMatchObject({
      storage: "file",
      retention: "limits",
      max_age: 60_000_000_000,
      duplicate_window: 60_000_000_000,
    });
  });

  it("Durable: many sides may open the same streams at once", async () => {
    for (let round = 0; round < 20; round += 1) {
      const prefix = `race${round}`;
      const opened = await Promise.all(Array.from({ length: 8 }, () => bench.calls({ prefix })));
      expect(opened).toHaveLength(8);
    }
  });

  it("Durable: subjects that another stream holds are an error, after a moment", async () => {
    const manager = await jetstreamManager(await bench.connect());
    await manager.streams.add({ name: "other", subjects: [new DurableNames(bench.prefix).callSubjects] });
    const error = await rejection(bench.calls());
    expect(error).toMatchObject({ code: "UNAVAILABLE" });
    expect((error as Error).cause).toMatchObject({ message: expect.stringContaining("subjects overlap") });
  });

  it("Durable: requests and results are gone when keepMs is over", async () => {
    await bench.serve([double], { keepMs: 3_000 });
    const calls = await bench.calls({ keepMs: 3_000 });
    const { requestId } = await calls.submit("math.double", { n: 3 });
    expect(unwrap(await calls.result(requestId))).toBe(6);
    await sleep(3_000);
    const gone = async () =>
      expect(await rejection(calls.result(requestId))).toMatchObject({ code: "NOT_FOUND" });
    await vi.waitFor(gone, 20_000);
  });

  it.each([
    { prefix: "a.b" },
    { prefix: "" },
    { user: "*" },
    { keepMs: 99 },
    { keepMs: 1_000, duplicateWindowMs: 1_001 },
    { replicas: 0 },
    { storage: "tape" as "file" },
    { limits: { messageBytes: 0 } },
  ])("Durable: options that make no sense are a TypeError: %j", async (options) => {
    expect(await rejection(bench.calls(options))).toBeInstanceOf(TypeError);
  });
});
