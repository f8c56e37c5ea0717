import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, expect, it, vi } from "vitest";
import { endsAtOnce, endsInTime } from "../../../test/lateness.ts";
import { query, rejection } from "../../../test/make-operation.ts";
import { natsSuite, startNats } from "../../../test/nats-server.ts";
import { startProxy } from "../../../test/tcp-proxy.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { serveCalls } from "../call-handler.ts";
import { PendingRequestMap } from "../pending-request-map.ts";
import { connectNatsBus, createNatsBus } from "./nats-bus.ts";

/** Milliseconds a bus that is closed waits for a broker. */
const GOODBYE_MS = 5_000;

/** What ends with a test, the last first. */
const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function open() {
  const broker = await startNats();
  closing.push(() => broker.stop());
  const login = async (): Promise<NatsConnection> => {
    const connection = await connect({
      servers: broker.url,
      reconnectTimeWait: 20,
      maxReconnectAttempts: -1,
    });
    closing.push(() => connection.close());
    return connection;
  };
  return { broker, login };
}

/** What the client keeps of a connection: there is no public way to count it. */
function heldBy(connection: NatsConnection): { readonly subscriptions: number; readonly listeners: number } {
  const { protocol } = connection as unknown as {
    readonly protocol: {
      readonly subscriptions: { size(): number };
      readonly listeners: readonly unknown[];
    };
  };
  return { subscriptions: protocol.subscriptions.size(), listeners: protocol.listeners.length };
}

const registry = () => new OperationRegistry([query("a.x", () => "x")]);

natsSuite("a bus on NATS that is closed", () => {
  it("Call: leaves nothing on a connection that was there before: no subscription, no listener", async () => {
    const { login } = await open();
    const connection = await login();
    await connection.flush();
    const before = heldBy(connection);
    for (let n = 0; n < 20; n++) {
      const bus = createNatsBus(connection);
      const watch = bus.watch({ found: () => {}, gone: () => {} });
      await serveCalls(registry(), bus);
      expect((await new PendingRequestMap(bus).call("a.x")).data).toBe("x");
      expect(heldBy(connection).subscriptions).toBeGreaterThan(before.subscriptions);
      await bus.close();
      await watch.ready;
    }
    await vi.waitFor(() => expect(heldBy(connection)).toEqual(before), 20_000);
  });

  it("Call: an option that makes no sense leaves nothing on the connection either", async () => {
    const { login } = await open();
    const connection = await login();
    const before = heldBy(connection);
    expect(() => createNatsBus(connection, { user: "a.b" })).toThrow(TypeError);
    expect(() => createNatsBus(connection, { beatMs: 0 })).toThrow(TypeError);
    await vi.waitFor(() => expect(heldBy(connection)).toEqual(before), 20_000);
    expect(connection.isClosed()).toBe(false);
  });

  it("Call: asks nothing and answers nothing any more, while the connection goes on", async () => {
    const { login } = await open();
    const connection = await login();
    const [closed, other] = [createNatsBus(connection), createNatsBus(await login())];
    await serveCalls(registry(), closed);
    const [map, others] = [new PendingRequestMap(closed), new PendingRequestMap(other)];
    expect((await others.call("a.x")).data).toBe("x");
    await closed.close();
    for (const asked of [rejection(map.call("a.x")), rejection(map.subscribe("a.x").next())]) {
      expect(await endsAtOnce(asked)).toBe(true);
      expect(await asked).toMatchObject({ code: "UNAVAILABLE" });
    }
    expect(await rejection(others.call("a.x"))).toMatchObject({ code: "NO_RESPONDER" });
    await expect(closed.close()).resolves.toBeUndefined();
    await other.close();
  });

  it("Call: closes while the broker is away, its own connection and one that was there before", async () => {
    const { broker, login } = await open();
    const own = await connectNatsBus({ servers: broker.url, reconnectTimeWait: 20 });
    const borrowed = createNatsBus(await login());
    for (const bus of [own, borrowed]) await serveCalls(registry(), bus);
    await broker.kill();
    await vi.waitFor(async () => {
      for (const bus of [own, borrowed]) {
        const error = await rejection(new PendingRequestMap(bus).call("a.x", 1, { timeoutMs: 500 }));
        expect(error).toMatchObject({ code: "UNAVAILABLE" });
      }
    });
    // Before it would have given up on a broker that says nothing.
    expect(await endsInTime(0, () => Promise.all([own.close(), borrowed.close()]), GOODBYE_MS - 100)).toBe(
      true,
    );
    expect([own.connection.isClosed(), borrowed.connection.isClosed()]).toEqual([true, false]);
  });

  it("Call: closes though the broker says nothing any more", async () => {
    const { broker, login } = await open();
    const own = await connectNatsBus({ servers: broker.url });
    const borrowed = createNatsBus(await login());
    await broker.pause();
    const closed = () => Promise.all([own.close(), borrowed.close()]);
    expect(await endsInTime(GOODBYE_MS, closed, 2_000)).toBe(true);
    expect([own.connection.isClosed(), borrowed.connection.isClosed()]).toEqual([true, false]);
    broker.resume();
  });

  it("Call: is never there for options that make no sense, and neither is its connection", async () => {
    const { broker } = await open();
    const proxy = await startProxy(broker.port);
    closing.push(() => proxy.stop());
    const servers = `nats://127.0.0.1:${proxy.port}`;
    for (const options of [{ user: "a.b" }, { beatMs: 0 }, { prefix: "a b" }]) {
      expect(await rejection(connectNatsBus({ servers }, options))).toBeInstanceOf(TypeError);
    }
    await vi.waitFor(() => expect(proxy.open).toBe(0), 20_000);
    const bus = await connectNatsBus({ servers });
    expect(proxy.open).toBe(1);
    await bus.close();
  });
});
