import { describe, expect, it, onTestFinished, vi } from "vitest";
import { query, rejection, stream, until } from "../../test/make-operation.ts";
import { connect, ids, pair, serve } from "../../test/remote-pair.ts";
import { stopClock } from "../../test/stop-clock.ts";
import type { OperationContext } from "../core/operation/operation-context.ts";
import { withCursor } from "../core/operation/with-cursor.ts";
import type { RegistryChange } from "../core/registry/executor.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import { CallHandler } from "./call-handler.ts";
import { createMemoryBus } from "./memory-bus.ts";

describe("registerAll(remote)", () => {
  it("Discovery: imports everything, and follows what joins, changes and leaves", async () => {
    stopClock();
    const { remote, registry, bus } = await pair([query("a.x", () => "x")]);
    const local = new OperationRegistry([query("local.y", () => "y")]);
    const heard: RegistryChange["type"][] = [];
    local.onChange((changes) => heard.push(...changes.map(({ type }) => type)));
    const stop = local.registerAll(remote);
    expect([(await local.execute("a.x")).data, (await local.execute("local.y")).data]).toEqual(["x", "y"]);
    registry.register(query("a.z", () => "z"));
    expect((await local.execute("a.z")).data).toBe("z");
    registry.register(
      query("a.x", () => "new x", { version: "2.0.0" }),
      { replace: true },
    );
    expect(local.get("a.x")?.version).toBe("2.0.0");
    registry.remove("a.z");
    expect(await rejection(local.execute("a.z"))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
    const other = await serve(bus, [query("b.x", () => "b")]);
    expect((await local.execute("b.x")).data).toBe("b");
    await other.leave();
    expect(ids(local.operations)).toEqual(["a.x", "local.y"]);
    expect(heard).toEqual(["added", "added", "replaced", "removed", "added", "removed"]);
    stop();
    registry.remove("a.x");
    expect(local.has("a.x")).toBe(true);
  });

  it("Discovery: passes on who asks, what is known of the call, and how long it may take", async () => {
    let seen: OperationContext | undefined;
    const { remote } = await pair([
      query(
        "a.x",
        (_, context) => {
          seen = context;
          context.progress("half");
          const seenAt = performance.now();
          return { seenAt, left: (context.deadline ?? 0) - seenAt };
        },
        { access: { scopes: { allOf: ["read"] } } },
      ),
    ]);
    const local = new OperationRegistry();
    local.registerAll(remote);
    const progress: unknown[] = [];
    const start = performance.now();
    const envelope = await local.execute("a.x", undefined, {
      identity: { subject: "me", scopes: ["read"] },
      requestId: "outer",
      metadata: { trace: 7 },
      timeoutMs: 20_000,
      onProgress: (value) => progress.push(value),
    });
    const { left, seenAt } = envelope.data as { left: number; seenAt: number };
    expect(left).toBeGreaterThan(20_000 - (seenAt - start) - 1);
    expect(left).toBeLessThanOrEqual(20_000);
    expect(seen?.identity).toMatchObject({ subject: "me", scopes: ["read"] });
    expect(seen?.metadata).toEqual({ trace: 7 });
    expect(seen?.requestId).not.toBe("outer");
    expect(seen?.parent).toMatchObject({ requestId: "outer", operationId: "a.x" });
    expect(progress).toEqual(["half"]);
    expect(await rejection(local.execute("a.x"))).toMatchObject({ code: "UNAUTHENTICATED" });
  });

  it("Discovery: stops what runs elsewhere when the caller gives up or time is over", async () => {
    let begun = 0;
    const ended: unknown[] = [];
    const { remote } = await pair([
      query(
        "a.wait",
        (_, { signal }) =>
          new Promise((_resolve, reject) => {
            begun++;
            const end = (): void => {
              ended.push(signal.aborted);
              reject(signal.reason);
            };
            // On a busy machine its time may be over before it begins.
            if (signal.aborted) end();
            else signal.addEventListener("abort", end);
          }),
      ),
    ]);
    const local = new OperationRegistry();
    local.registerAll(remote);
    const controller = new AbortController();
    const aborted = rejection(local.execute("a.wait", undefined, { signal: controller.signal }));
    await until(() => begun === 1);
    controller.abort();
    expect(await aborted).toMatchObject({ code: "ABORTED" });
    // Until the machine is quick enough for it to get there.
    for (let timeoutMs = 10; begun === 1; timeoutMs *= 2) {
      expect(await rejection(local.execute("a.wait", undefined, { timeoutMs }))).toMatchObject({
        code: "TIMEOUT",
      });
    }
    await vi.waitFor(() => expect(ended).toEqual([true, true]), 20_000);
  });

  it("RE-21 yields the envelopes of a subscription elsewhere with their cursors, and leaving stops it", async () => {
    let left = false;
    const { remote } = await pair([
      stream("a.count", async function* () {
        try {
          for (let n = 0; ; n++) yield withCursor(n, `c${n}`);
        } finally {
          left = true;
        }
      }),
    ]);
    const local = new OperationRegistry();
    local.registerAll(remote);
    const found: unknown[] = [];
    for await (const { data, meta } of local.subscribe("a.count")) {
      found.push([data, meta.waybill?.cursor, meta.waybill?.sequence]);
      if (found.length === 3) break;
    }
    expect(found).toEqual([
      [0, "c0", 0],
      [1, "c1", 1],
      [2, "c2", 2],
    ]);
    await vi.waitFor(() => expect(left).toBe(true), 20_000);
  });

  it("Discovery: ends operations that call each other in a circle across registries", async () => {
    const bus = createMemoryBus();
    let runs = 0;
    const ping = query("here.ping", (_, { execute }) => {
      runs++;
      return execute("there.pong");
    });
    const local = new OperationRegistry([ping]);
    const there = new OperationRegistry([query("there.pong", (_, { execute }) => execute("here.ping"))]);
    for (const registry of [local, there]) {
      const handler = new CallHandler(registry, bus);
      await handler.start();
      onTestFinished(() => handler.drain());
    }
    local.registerAll(await connect(bus, { namespaces: ["there"] }));
    there.registerAll(await connect(bus, { namespaces: ["here"] }));
    const failed = await rejection(local.execute("here.ping", undefined, { timeoutMs: 60_000 }));
    expect(failed).toMatchObject({ code: "RESOURCE_EXHAUSTED", message: expect.stringContaining("circle") });
    // Each time round is four calls at least, two in a registry and two over the bus, of the 64 there may be.
    expect(runs).toBeGreaterThan(1);
    expect(runs).toBeLessThanOrEqual(17);
  });

  it("Discovery: gives handlers that work in a context of somebody else's, too", async () => {
    const { remote } = await pair([query("a.x", (_, { parent }) => parent?.operationId)]);
    const context = {
      requestId: "r",
      operationId: "test.it",
      signal: new AbortController().signal,
      metadata: {},
    };
    const result = await remote.get("a.x")?.handler(undefined as never, context as OperationContext);
    expect(result).toMatchObject({ data: "test.it" });
  });
});
