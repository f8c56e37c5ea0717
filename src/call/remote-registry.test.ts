import { Type } from "typebox";
import { afterEach, describe, expect, it, vi } from "vitest";
import { collect, query, rejection, sleep, stream } from "../../test/make-operation.ts";
import type { AccessControl } from "../core/access/access.ts";
import type { Identity } from "../core/access/identity.ts";
import { localEnvelope, toolError } from "../core/envelope/envelope.ts";
import { CallError } from "../core/errors/errors.ts";
import type { OperationContext } from "../core/operation/operation-context.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import { withCursor } from "../core/operation/with-cursor.ts";
import type { ExecuteOptions, RegistryChange } from "../core/registry/executor.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import type { Bus } from "./bus.ts";
import { CallHandler } from "./call-handler.ts";
import { createMemoryBus } from "./memory-bus.ts";
import { createRemoteRegistry, type RemoteRegistryOptions } from "./remote-registry.ts";

const ids = (operations: Iterable<AnyOperation>) => [...operations].map(({ id }) => id);
const closing: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Serves operations on a bus, as a process of its own would. */
async function serve(bus: Bus, operations: readonly AnyOperation[]) {
  const registry = new OperationRegistry(operations);
  const handler = new CallHandler(registry, bus);
  await handler.start();
  let left: Promise<void> | undefined;
  const leave = () => {
    left ??= handler.drain();
    return left;
  };
  closing.push(leave);
  return { registry, leave };
}

async function connect(bus: Bus, options?: RemoteRegistryOptions) {
  const remote = await createRemoteRegistry(bus, options);
  closing.push(() => remote.close());
  return remote;
}

async function pair(operations: readonly AnyOperation[], options?: RemoteRegistryOptions) {
  const bus = createMemoryBus();
  const service = await serve(bus, operations);
  return { bus, ...service, remote: await connect(bus, options) };
}

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
    await vi.waitFor(() => expect(left).toBe(true));
  });

  it("Discovery: finds an operation by what was found, and by that found object", async () => {
    const { remote } = await pair([query("a.x", () => "x", { title: "X" })]);
    const operation = remote.get("a.x");
    if (operation === undefined) throw new Error("not found");
    expect(operation).toMatchObject({ id: "a.x", title: "X", source: "call" });
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
    const started = performance.now();
    const remote = await connect(bus, { discoveryTimeoutMs: 20 });
    expect(performance.now() - started).toBeLessThan(1_000);
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

describe("RemoteRegistry.list", () => {
  const rules: Record<string, AccessControl | undefined> = {
    open: undefined,
    known: {},
    read: { scopes: { allOf: ["read"] } },
    both: { scopes: { allOf: ["read", "write"] } },
    either: { scopes: { anyOf: ["write", "admin"] } },
    project: { resource: { pointer: "/id", type: "project" } },
    mixed: { scopes: { allOf: ["read"] }, resource: [{ pointer: "/id", type: "project" }] },
  };
  const identities: (Identity | undefined)[] = [
    undefined,
    ...[[], ["read"], ["write"], ["read", "write"], ["admin"]].flatMap((scopes) =>
      [undefined, {}, { project: [] }, { project: ["p1"] }, { project: "*" as const }].map((resources) => ({
        subject: "s",
        scopes,
        ...(resources && { resources }),
      })),
    ),
  ];

  it("Discovery: shows every caller exactly what the registry behind it would", async () => {
    const { remote, registry } = await pair(
      Object.entries(rules).map(([name, access]) => query(`a.${name}`, () => 1, access && { access })),
    );
    for (const identity of identities) {
      expect([identity, ids(remote.list({ identity }))]).toEqual([
        identity,
        ids(registry.list({ identity })),
      ]);
    }
    expect(ids(remote.list())).toEqual(["a.open"]);
    expect(() => remote.list({ identity: { subject: "" } })).toThrow(TypeError);
  });

  it("Discovery: gives the same objects each time", async () => {
    const { remote } = await pair([query("a.x", () => 1), query("a.y", () => 1)]);
    const [x, y] = remote.list();
    expect(remote.list().map((operation) => operation === x || operation === y)).toEqual([true, true]);
    expect(remote.get("a.x")).toBe(x);
    expect(remote.operations).toBe(remote.operations);
  });
});

describe("registerAll(remote)", () => {
  it("Discovery: imports everything, and follows what joins, changes and leaves", async () => {
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
          return (context.deadline ?? 0) - performance.now();
        },
        { access: { scopes: { allOf: ["read"] } } },
      ),
    ]);
    const local = new OperationRegistry();
    local.registerAll(remote);
    const progress: unknown[] = [];
    const envelope = await local.execute("a.x", undefined, {
      identity: { subject: "me", scopes: ["read"] },
      requestId: "outer",
      metadata: { trace: 7 },
      timeoutMs: 5_000,
      onProgress: (value) => progress.push(value),
    });
    expect(envelope.data).toBeGreaterThan(1_000);
    expect(envelope.data).toBeLessThanOrEqual(5_000);
    expect(seen?.identity).toMatchObject({ subject: "me", scopes: ["read"] });
    expect(seen?.metadata).toEqual({ trace: 7 });
    expect(seen?.requestId).not.toBe("outer");
    expect(seen?.parent).toMatchObject({ requestId: "outer", operationId: "a.x" });
    expect(progress).toEqual(["half"]);
    expect(await rejection(local.execute("a.x"))).toMatchObject({ code: "UNAUTHENTICATED" });
  });

  it("Discovery: stops what runs elsewhere when the caller gives up or time is over", async () => {
    const ended: unknown[] = [];
    const { remote } = await pair([
      query(
        "a.wait",
        (_, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => {
              ended.push(signal.aborted);
              reject(signal.reason);
            });
          }),
      ),
    ]);
    const local = new OperationRegistry();
    local.registerAll(remote);
    const controller = new AbortController();
    const aborted = rejection(local.execute("a.wait", undefined, { signal: controller.signal }));
    await sleep(5);
    controller.abort();
    expect(await aborted).toMatchObject({ code: "ABORTED" });
    expect(await rejection(local.execute("a.wait", undefined, { timeoutMs: 10 }))).toMatchObject({
      code: "TIMEOUT",
    });
    await vi.waitFor(() => expect(ended).toEqual([true, true]));
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
    await vi.waitFor(() => expect(left).toBe(true));
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
      closing.push(() => handler.drain());
    }
    local.registerAll(await connect(bus, { namespaces: ["there"] }));
    there.registerAll(await connect(bus, { namespaces: ["here"] }));
    const failed = await rejection(local.execute("here.ping", undefined, { timeoutMs: 5_000 }));
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
