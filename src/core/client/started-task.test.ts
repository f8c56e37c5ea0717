import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { query, rejection, until } from "../../../test/make-operation.ts";
import { localEnvelope, toolError } from "../envelope/envelope.ts";
import { CallError } from "../errors/errors.ts";
import type { AnyOperation } from "../operation/operation-types.ts";
import { OperationRegistry } from "../registry/registry.ts";
import { Tasks } from "../tasks/tasks.ts";
import { createClient } from "./client.ts";
import type { TaskState } from "./started-task.ts";
import { ToolResultError } from "./tool-result-error.ts";

const clientOf = (...operations: AnyOperation[]) => createClient(new OperationRegistry(operations));

/** An operation that goes on until it is let go, or told to stop. */
function held() {
  const stopped: unknown[] = [];
  let go = (_: unknown): void => {};
  const operation = query("a.held", (input, { signal, progress }) => {
    progress({ done: 1, of: 2, message: "half" });
    return new Promise((resolve, reject) => {
      go = resolve;
      signal.addEventListener("abort", () => {
        stopped.push(signal.reason);
        reject(signal.reason);
      });
      if (input === "at once") resolve(1);
    });
  });
  return { operation, stopped, go: (value: unknown) => go(value) };
}

describe("a call that is started and left alone", () => {
  it("RE-27 goes on, tells how it is doing, and gives its result as often as it is asked", async () => {
    const { operation, go } = held();
    const task = await clientOf(operation).start("a.held");
    const states: TaskState[] = [];
    const watching = (async () => {
      for await (const state of task) states.push(state);
    })();
    await until(() => states.length > 0);
    expect(await rejection(task.result({ timeoutMs: 1 }))).toMatchObject({ code: "TIMEOUT" });
    expect(await rejection(task.result({ signal: AbortSignal.abort() }))).toMatchObject({ code: "ABORTED" });
    expect(await task.status()).toMatchObject({ id: task.id, operationId: "a.held", status: "working" });
    await until(() => states.some(({ message }) => message === "half"));
    go({ pages: 12 });
    await watching;
    expect(states.at(-1)).toMatchObject({ status: "completed" });
    for (const wait of [{}, { timeoutMs: 1_000 }, {}]) expect(await task.result(wait)).toEqual({ pages: 12 });
    const after: TaskState[] = [];
    for await (const state of task) after.push(state);
    expect(after).toMatchObject([{ status: "completed" }]);
  });

  it("RE-27 is cancelled for good, and its handler hears it", async () => {
    const { operation, stopped } = held();
    const task = await clientOf(operation).start("a.held");
    const seen: string[] = [];
    for await (const { status } of task) {
      seen.push(status);
      if (seen.length === 1) await task.cancel();
    }
    expect(seen.at(-1)).toBe("cancelled");
    await until(() => stopped.length === 1);
    await task.cancel();
    expect(await rejection(task.result())).toMatchObject({
      code: "ABORTED",
      details: { reason: "task_cancelled" },
    });
  });

  it("RE-27 throws what the call threw, and an answer that says no with its envelope", async () => {
    const client = clientOf(
      query("a.no", () => toolError({ why: 1 }, { summary: "No." })),
      query("a.broken", () => {
        throw new CallError("NOT_FOUND", "No such parcel.");
      }),
    );
    const no = await client.start("a.no");
    expect(await rejection(no.result())).toBeInstanceOf(ToolResultError);
    expect(await no.status()).toMatchObject({ status: "failed" });
    const broken = await client.start("a.broken");
    expect(await rejection(broken.result())).toMatchObject({ code: "NOT_FOUND", message: "No such parcel." });
    const missing = await client.start("a.missing");
    expect(await rejection(missing.result())).toMatchObject({ code: "OPERATION_NOT_FOUND" });
  });

  it("RE-27 is kept where the client is told to, with its own bounds and defaults", async () => {
    const tasks = new Tasks({ limits: { running: 1 } });
    const { operation, go } = held();
    const identity = { subject: "ada" };
    const registry = new OperationRegistry([
      operation,
      query("a.who", (_, { identity: who }) => who?.subject),
    ]);
    const client = createClient(registry, { tasks, identity, signal: AbortSignal.abort() });
    const task = await client.start("a.held");
    expect(tasks.running).toBe(1);
    expect(await rejection(client.start("a.held"))).toMatchObject({ code: "RESOURCE_EXHAUSTED" });
    go(1);
    expect(await task.result()).toBe(1);
    const who = await client.start("a.who", undefined, { ttlMs: 5_000 });
    expect(await who.result()).toBe("ada");
    const { createdAt = 0, expiresAt = 0 } = await who.status();
    expect(expiresAt - createdAt).toBe(5_000);
  });

  it("RE-27 tells nobody any more once it has expired", async () => {
    const { operation } = held();
    const task = await clientOf(operation).start("a.held", undefined, { ttlMs: 1 });
    const iterate = async () => {
      for await (const _ of task) await delay(1);
    };
    expect(await rejection(iterate())).toMatchObject({ code: "NOT_FOUND" });
    expect(await rejection(task.status())).toMatchObject({ code: "NOT_FOUND" });
  });

  it("RE-27 goes where the executor takes it, and by name only what is no operation of its own", async () => {
    const asked: unknown[] = [];
    const registry = new OperationRegistry([query("start.x", () => 7)]);
    const elsewhere = {
      id: "far",
      status: async () => ({ id: "far", operationId: "a.far", status: "completed" as const }),
      result: async () => localEnvelope(5, "a.far"),
      cancel: async () => {},
      async *[Symbol.asyncIterator]() {},
    };
    const start = async (target: unknown, input: unknown) => {
      asked.push([target, input]);
      return target === "a.far" ? elsewhere : undefined;
    };
    const client = createClient(Object.assign(registry, { start }));
    const far = await client.start("a.far", 1);
    expect([far.id, await far.result()]).toEqual(["far", 5]);
    expect(await (await client.start("start.x")).result()).toBe(7);
    expect(await client.call("start.x")).toBe(7);
    expect(asked).toEqual([
      ["a.far", 1],
      ["start.x", undefined],
    ]);
  });
});
