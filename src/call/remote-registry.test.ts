import { Type } from "typebox";
import { describe, expect, it, vi } from "vitest";
import { endsInTime } from "../../test/lateness.ts";
import { collect, query, rejection, stream } from "../../test/make-operation.ts";
import { connect, ids, pair, serve } from "../../test/remote-pair.ts";
import { stopClock } from "../../test/stop-clock.ts";
import { createClient } from "../core/client/client.ts";
import { localEnvelope, toolError } from "../core/envelope/envelope.ts";
import { CallError } from "../core/errors/errors.ts";
import { withCursor } from "../core/operation/with-cursor.ts";
import type { ExecuteOptions } from "../core/registry/executor.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import type { Bus } from "./bus.ts";
import { createMemoryBus } from "./memory-bus.ts";
import { createRemoteRegistry } from "./remote-registry.ts";

describe("RemoteRegistry", () => {
  it("Discovery: answers as the registry behind it does", async () => {
    const { remote, registry } = await pair([
      query("a.add", ({ n }: never) => ({ n: (n as number) + 1 }), {
        inputSchema: Type.Object({ n: Type.Number() }),
      }),
      query("a.no", () => toolError("sorry", { code: "NOPE" })),
      query("a.throws", () => {
        throw new CallError("RATE_LIMITED", "Later.");
      }),
    ]);
    expect((await remote.execute("a.add", { n: 1 })).data).toEqual({ n: 2 });
    expect((await remote.execute("a.no")).meta).toMatchObject({ isError: true, waybill: { code: "NOPE" } });
    for (const [id, input] of [
      ["a.add", { n: "x" }],
      ["a.throws", undefined],
    ] as const) {
      const here = (await rejection(registry.execute(id, input))) as CallError;
      expect(await rejection(remote.execute(id, input))).toMatchObject(here.toJSON());
    }
    expect(remote.services).toEqual([
      { serviceId: expect.any(String), name: "waybill", operationIds: ["a.add", "a.no", "a.throws"] },
    ]);
    expect([remote.unusable, remote.conflicts, remote.counters.forged]).toEqual([[], [], 0]);
  });

  it("Call: refuses options that there are not, and takes those of a bus", async () => {
    const { remote } = await pair([query("a.b", () => 1), stream("a.s", async function* () {})]);
    const message = 'There is no option "timeout"; did you mean "timeoutMs"?';
    const wrong = { timeout: 5 } as never;
    expect(await rejection(remote.execute("a.b", {}, wrong))).toEqual(new TypeError(message));
    expect(() => remote.subscribe("a.s", {}, wrong)).toThrow(new TypeError(message));
    const client = createClient(remote, { retry: { attempts: 2 } } as ExecuteOptions);
    expect(await client.call("a.b", {})).toBe(1);
    expect(await rejection(client.call("a.b", {}, wrong))).toEqual(new TypeError(message));
    const local = new OperationRegistry();
    local.registerAll(remote);
    expect((await local.execute("a.b", {}, { timeoutMs: 60_000, requestId: "one", metadata: {} })).data).toBe(
      1,
    );
  });

  it("RE-21 reads a subscription to its end, with its cursors", async () => {
    const { remote } = await pair([
      stream("a.count", async function* () {
        yield withCursor(1, "one");
        yield 2;
      }),
    ]);
    const found = await collect(remote.subscribe("a.count"));
    expect(found.map(({ data, meta }) => [data, meta.waybill])).toEqual([
      [1, { sequence: 0, cursor: "one" }],
      [2, { sequence: 1 }],
    ]);
  });

  it("RE-21 stops what yields elsewhere when the loop is left", async () => {
    let left = false;
    const { remote } = await pair([
      stream("a.count", async function* () {
        try {
          for (let n = 0; ; n++) yield n;
        } finally {
          left = true;
        }
      }),
    ]);
    for await (const { data } of remote.subscribe("a.count")) if (data === 2) break;
    await vi.waitFor(() => expect(left).toBe(true), 20_000);
  });

  it("Discovery: finds an operation by what was found, and by that found object", async () => {
    // What others publish may hide something.
    const said = { title: "X\u{e0041}\u202e", description: "Says\u200b x." };
    const { remote } = await pair([query("a.x", () => "x", said)]);
    const operation = remote.get("a.x");
    if (operation === undefined) throw new Error("not found");
    expect(operation).toMatchObject({ id: "a.x", title: "X", description: "Says x.", source: "call" });
    expect((await remote.execute(operation)).data).toBe("x");
    expect(remote.get("a.y")).toBeUndefined();
  });

  it("Discovery: does not announce internal operations", async () => {
    const { remote } = await pair([
      query("a.x", () => 1),
      query("a.hidden", () => 1, { visibility: "internal" }),
    ]);
    expect(ids(remote.operations)).toEqual(["a.x"]);
    expect(await rejection(remote.execute("a.hidden"))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
  });

  it.each([
    "",
    "nodot",
    ".x",
    "a.",
    "a b.c",
    "a.b c",
    "a.*",
    "a.>",
    "$SYS.x",
    `a.${"x".repeat(201)}`,
    "a.b\n",
  ])("Discovery: does not send a call of %j, which is no id", async (id) => {
    const { remote, bus } = await pair([query("a.x", () => 1)]);
    const request = vi.spyOn(bus, "request");
    const here = await rejection(new OperationRegistry().execute(id));
    expect(await rejection(remote.execute(id))).toMatchObject((here as CallError).toJSON());
    expect(await rejection(collect(remote.subscribe(id)))).toMatchObject((here as CallError).toJSON());
    expect(request).not.toHaveBeenCalled();
  });

  it("Discovery: says that there is no such operation only where it can know", async () => {
    stopClock();
    const bus = createMemoryBus();
    const remote = await connect(bus);
    expect(await rejection(remote.execute("a.x"))).toMatchObject({ code: "NO_RESPONDER" });
    const first = await serve(bus, [query("a.x", () => 1)]);
    await serve(bus, [query("b.x", () => 1)]);
    expect(await rejection(remote.execute("a.y"))).toMatchObject({
      code: "OPERATION_NOT_FOUND",
      message: 'There is no operation "a.y".',
    });
    expect(await rejection(collect(remote.subscribe("a.y")))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
    await first.leave();
    expect(await rejection(remote.execute("a.x"))).toMatchObject({ code: "NO_RESPONDER" });
    expect(await rejection(collect(remote.subscribe("a.x")))).toMatchObject({ code: "NO_RESPONDER" });
  });

  it("Discovery: looks only at the namespaces it is told to", async () => {
    const { remote } = await pair([query("a.x", () => 1), query("b.x", () => 1)], { namespaces: ["a"] });
    expect(ids(remote.operations)).toEqual(["a.x"]);
    expect((await remote.execute("a.x")).data).toBe(1);
    expect(await rejection(remote.execute("b.x"))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
  });

  it("Discovery: waits for discovery no longer than it may, and goes on behind it", async () => {
    const inner = createMemoryBus();
    let isHeard = () => {};
    const ready = new Promise<void>((resolve) => {
      isHeard = resolve;
    });
    const bus = Object.create(inner, {
      request: { value: inner.request.bind(inner) },
      watch: { value: (watcher: never) => ({ ...inner.watch(watcher), ready }) },
    }) as Bus;
    stopClock();
    const connected = connect(bus, { discoveryTimeoutMs: 20 });
    expect(await endsInTime(20, () => connected, 980)).toBe(true);
    const remote = await connected;
    await serve(inner, [query("a.x", () => 1)]);
    expect(ids(remote.operations)).toEqual(["a.x"]);
    expect(await rejection(remote.execute("a.y"))).toMatchObject({ code: "NO_RESPONDER" });
    isHeard();
    await remote.ready;
    expect(await rejection(remote.execute("a.y"))).toMatchObject({ code: "OPERATION_NOT_FOUND" });
  });

  it("Discovery: fails to start where discovery fails, and takes no option that makes no sense", async () => {
    const failing = {
      watch: () => ({ ready: Promise.reject(new CallError("UNAVAILABLE")), stop: () => {} }),
    };
    expect(await rejection(createRemoteRegistry(failing as never))).toMatchObject({ code: "UNAVAILABLE" });
    for (const discoveryTimeoutMs of [-1, Number.NaN, "5"] as number[]) {
      expect(await rejection(createRemoteRegistry(createMemoryBus(), { discoveryTimeoutMs }))).toBeInstanceOf(
        TypeError,
      );
    }
    for (const namespaces of ["a", [1]] as never[]) {
      expect(await rejection(createRemoteRegistry(createMemoryBus(), { namespaces }))).toBeInstanceOf(
        TypeError,
      );
    }
  });

  it("Discovery: refuses calls and hears of nothing once closed, and leaves the bus open", async () => {
    let end = (_: unknown) => {};
    const running = new Promise((resolve) => {
      end = resolve;
    });
    const { remote, bus, registry } = await pair([query("a.slow", () => running)]);
    const changes: unknown[] = [];
    remote.onChange((change) => changes.push(change));
    const waiting = rejection(remote.execute("a.slow"));
    await remote.close();
    await remote.close();
    expect(await waiting).toMatchObject({ code: "ABORTED" });
    expect(await rejection(remote.execute("a.slow"))).toMatchObject({ code: "UNAVAILABLE" });
    end(undefined);
    registry.remove("a.slow");
    registry.register(query("a.new", () => 1));
    expect(changes).toEqual([]);
    expect((await (await connect(bus)).execute("a.new")).data).toBe(1);
  });

  it("Discovery: calls a durable operation by the way that keeps it, where there is one", async () => {
    const calls: unknown[][] = [];
    const durable = {
      execute: async (id: string, input: unknown, options: ExecuteOptions) => {
        calls.push([id, input, options.metadata]);
        return localEnvelope("kept", id);
      },
    };
    const operations = [query("a.kept", () => "live", { durable: true }), query("a.live", () => "live")];
    const { remote, bus } = await pair(operations, { durable });
    expect((await remote.execute("a.kept", 1, { metadata: { m: 2 } })).data).toBe("kept");
    expect((await remote.execute("a.live", 1)).data).toBe("live");
    expect(calls).toEqual([["a.kept", 1, { m: 2 }]]);
    expect((await (await connect(bus)).execute("a.kept")).data).toBe("live");
  });
});
