import { expect, it } from "vitest";
import { atEnd, loadedConfig, makeSource } from "../../../test/gateway-sources.ts";
import { natsSuite, startNats } from "../../../test/nats-server.ts";
import { serveCalls } from "../../call/call-handler.ts";
import { serveDurableCalls } from "../../call/nats/index.ts";
import { connectNatsBus } from "../../call/nats/nats-bus.ts";
import { localEnvelope } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import { defineOperation } from "../../core/operation/operation.ts";
import type { Executor } from "../../core/registry/executor.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { endCall } from "../../core/result/ended-call.ts";
import type { TaskOutcome, TaskWork } from "../../core/tasks/running-task.ts";
import { endedCallOf, type TaskRecord } from "../../core/tasks/task.ts";
import { Tasks } from "../../core/tasks/tasks.ts";
import { createBusVerifier } from "../sources/bus-source.ts";
import type { FailedCalls } from "../sources/source.ts";
import { GatewayState } from "./gateway-state.ts";

const ANN = { owner: "ann", identity: undefined };
const ASKED = { ...ANN, operationId: "jobs.long", requestId: "r1" };
const ok = (data: unknown): TaskOutcome => ({
  call: { outcome: { envelope: localEnvelope(data, "jobs.long") }, requestId: "r1", durationMs: 5 },
});

async function until<T>(read: () => Promise<T> | T, isRight: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read();
    if (isRight(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

natsSuite("tasks at a broker", () => {
  const openReplica = (url: string, executor?: Executor) => {
    const state = new GatewayState(loadedConfig({ bus: { nats: url }, state: { store: "nats" } }), {
      onWarning: () => {},
    });
    const tasks = new Tasks({ store: state.tasks(), executor });
    let closing: Promise<void> | undefined;
    const close = (): Promise<void> => {
      closing ??= tasks.close({ timeoutMs: 2_000 }).then(() => state.close());
      return closing;
    };
    atEnd(close);
    return { tasks, close };
  };

  it("are seen, asked, answered and cancelled at every replica, and answer the same at each", async () => {
    const broker = await startNats({ jetstream: true });
    atEnd(() => broker.stop());
    const [one, other] = [openReplica(broker.url), openReplica(broker.url)];
    const { id } = await one.tasks.start(ASKED, async ({ ask, signal }) =>
      ok(await ask({ kind: "roots" }, signal, "q")),
    );
    const asked = (task: TaskRecord): boolean => task.status === "input_required";
    await until(() => other.tasks.get(ANN, id), asked);
    await other.tasks.answer(ANN, id, { q: "yes" });
    const settled = await other.tasks.result(ANN, id);
    expect(JSON.stringify(await one.tasks.result(ANN, id))).toBe(JSON.stringify(settled));
    expect(await other.tasks.written(settled, "http", async () => "first")).toBe("first");
    expect(await one.tasks.written(settled, "http", async () => "second")).toBe("first");
    const strange = { owner: "ben", identity: undefined };
    for (const { tasks } of [one, other])
      await expect(tasks.get(strange, id)).rejects.toMatchObject({ code: "NOT_FOUND" });
    const aborted: unknown[] = [];
    const never: TaskWork = ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          aborted.push(signal.reason);
          reject(signal.reason);
        });
      });
    const second = await one.tasks.start(ASKED, never);
    await other.tasks.cancel(ANN, second.id);
    await until(
      () => aborted.length,
      (length) => length === 1,
    );
    expect((await one.tasks.get(ANN, second.id)).status).toBe("cancelled");
    const listed = await until(
      async () => (await other.tasks.list(ANN)).tasks,
      ({ length }) => length === 2,
    );
    expect(listed.map((task) => task.id)).toEqual([second.id, id]);
  });

  it("that a replica leaves are lost, and those that follow a durable call go on at another, which runs once", async () => {
    const broker = await startNats({ jetstream: true });
    atEnd(() => broker.stop());
    const bus = await connectNatsBus({ servers: broker.url });
    atEnd(() => bus.close());
    let runs = 0;
    const service = new OperationRegistry([
      defineOperation({
        namespace: "jobs",
        name: "long",
        durable: true,
        handler: () => {
          runs += 1;
          return { runs };
        },
      }),
    ]);
    const served = await serveCalls(service, bus, { name: "service" });
    atEnd(() => served.drain({ timeoutMs: 0 }));
    const worker = await serveDurableCalls(bus.connection, service);
    // Its consumer stays: what is submitted now waits for the next worker.
    await worker.drain();
    const { source } = makeSource(loadedConfig({ bus: { nats: broker.url, mount: ["jobs"] } }), {});
    await source.start();
    const here = new OperationRegistry();
    here.registerAll(source);
    const [one, other] = [openReplica(broker.url, here), openReplica(broker.url, here)];
    const follow: TaskWork = async ({ signal, link }) => ({
      call: await endCall(here, "jobs.long", {}, { signal, requestId: "r1", caller: { task: link } }),
    });
    const held = await one.tasks.start({ ...ASKED, input: {} }, follow);
    const lost = await one.tasks.start(
      ASKED,
      ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason));
        }),
    );
    await until(
      () => other.tasks.get(ANN, held.id),
      ({ resumption }) => resumption !== undefined,
    );
    expect(runs).toBe(0);
    await one.close();
    const { outcome } = endedCallOf((await other.tasks.result(ANN, lost.id)).result);
    expect("error" in outcome && outcome.error.details).toEqual({ reason: "task_lost_by_restart" });
    const waiting = other.tasks.result(ANN, held.id);
    const again = await serveDurableCalls(bus.connection, service);
    atEnd(() => again.drain());
    const result = endedCallOf((await waiting).result).outcome;
    expect("envelope" in result && result.envelope.data).toEqual({ runs: 1 });
    expect(runs).toBe(1);
  });

  it("whose durable call has failed for good is shown to the operator, who sends it again, for whom it was of", async () => {
    const broker = await startNats({ jetstream: true });
    atEnd(() => broker.stop());
    const secret = "the-secret-of-the-bus-of-this-test";
    const bus = await connectNatsBus({ servers: broker.url });
    atEnd(() => bus.close());
    const seen: unknown[] = [];
    let isBroken = true;
    const service = new OperationRegistry([
      defineOperation({
        namespace: "jobs",
        name: "long",
        durable: true,
        handler: (input, { identity }) => {
          seen.push([input, identity?.subject]);
          if (isBroken) throw new CallError("CONFLICT", "Broken.");
          return "mended";
        },
      }),
    ]);
    const trusted = await createBusVerifier({ nats: broker.url, secret });
    const served = await serveCalls(service, bus, { name: "service", ...trusted });
    atEnd(() => served.drain({ timeoutMs: 0 }));
    const worker = await serveDurableCalls(bus.connection, service, trusted);
    atEnd(() => worker.drain());
    const { source } = makeSource(loadedConfig({ bus: { nats: broker.url, mount: ["jobs"], secret } }), {});
    await source.start();
    const here = new OperationRegistry();
    here.registerAll(source);
    const identity = { subject: "ann" };
    await expect(here.execute("jobs.long", { n: 1 }, { identity })).rejects.toMatchObject({
      code: "CONFLICT",
    });
    isBroken = false;
    expect((await here.execute("jobs.long", { n: 2 }, { identity })).data).toBe("mended");
    const operator = source.failedCalls as FailedCalls;
    const { calls } = await operator.list();
    expect(calls).toMatchObject([
      { operationId: "jobs.long", error: { code: "CONFLICT", message: "Broken." } },
    ]);
    const [{ requestId } = { requestId: "" }] = calls;
    const again = await operator.resend(requestId);
    expect(await operator.resend(requestId)).toMatchObject({ requestId: again.requestId });
    await until(
      () => seen.length,
      (length) => length === 3,
    );
    expect(seen).toEqual([
      [{ n: 1 }, "ann"],
      [{ n: 2 }, "ann"],
      [{ n: 1 }, "ann"],
    ]);
    for (const wrong of ["", "nobody", again.requestId])
      await expect(operator.resend(wrong)).rejects.toMatchObject({ code: "NOT_FOUND" });
  });
});
