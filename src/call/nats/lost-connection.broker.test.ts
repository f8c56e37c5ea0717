import { afterEach, expect, it, vi } from "vitest";
import { endsInTime } from "../../../test/lateness.ts";
import { query, rejection, sleep, stream } from "../../../test/make-operation.ts";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { startProxy, type TcpProxy } from "../../../test/tcp-proxy.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { serveCalls } from "../call-handler.ts";
import { PendingRequestMap } from "../pending-request-map.ts";
import { connectNatsBus, type NatsBus } from "./nats-bus.ts";

/** Seldom enough for a busy machine: nobody counts as gone who merely did not get to run. */
const BEAT_MS = 500;

const LOST_CONNECTION = {
  code: "UNAVAILABLE",
  message: expect.stringContaining("The connection to the bus was lost"),
};
const NOT_HEARD_OF = { code: "UNAVAILABLE", message: expect.stringContaining("has not been heard of") };

/** What ends with a test, the last first. */
const closing: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function join(port: number, beatMs: number): Promise<NatsBus> {
  const servers = `nats://127.0.0.1:${port}`;
  const bus = await connectNatsBus({ servers, reconnectTimeWait: 20, reconnectJitter: 0 }, { beatMs });
  closing.push(() => bus.close());
  return bus;
}

/** A service with something that hangs, something that can be finished, and a stream; all tell how they ended. */
async function serve(bus: NatsBus) {
  const told = { aborted: vi.fn(), streamEnded: vi.fn() };
  let finish: (value: string) => void = () => {};
  const registry = new OperationRegistry([
    query("a.x", () => "x"),
    query("a.hang", (_, { signal }) => new Promise(() => signal.addEventListener("abort", told.aborted))),
    query("a.slow", () => new Promise((resolve) => (finish = resolve))),
    stream("a.count", async function* () {
      try {
        for (let n = 0; ; n++) {
          yield n;
          await sleep(5);
        }
      } finally {
        told.streamEnded();
      }
    }),
  ]);
  const handler = await serveCalls(registry, bus);
  return { ...told, handler, finish: (value: string) => finish(value) };
}

/** Reads a stream until it fails, and gives the error. */
async function readOut(map: PendingRequestMap): Promise<unknown> {
  return rejection(
    (async () => {
      for await (const _ of map.subscribe("a.count"));
    })(),
  );
}

natsSuite("a connection to NATS that is lost", () => {
  async function open(): Promise<NatsServer> {
    const broker = await startNats();
    closing.push(() => broker.stop());
    return broker;
  }

  async function behindProxy(beatMs: number) {
    const broker = await open();
    const proxy: TcpProxy = await startProxy(broker.port);
    closing.push(() => proxy.stop());
    const service = await serve(await join(proxy.port, beatMs));
    return { proxy, service, map: new PendingRequestMap(await join(broker.port, beatMs)) };
  }

  it("RE-29 a broker that is killed ends what is under way, on both sides, and everything works when it is back", async () => {
    const broker = await open();
    const service = await serve(await join(broker.port, BEAT_MS));
    const map = new PendingRequestMap(await join(broker.port, BEAT_MS));
    const lost = [rejection(map.call("a.hang")), rejection(map.call("a.hang", 2)), readOut(map)];
    await vi.waitFor(() => expect(service.handler.running).toBe(3), 20_000);
    await sleep(1.5 * BEAT_MS);
    await broker.kill();
    // By the connection, which says so at once, and not by beats that are missed.
    for (const error of await Promise.all(lost)) expect(error).toMatchObject(LOST_CONNECTION);
    expect(map.size).toBe(0);
    await vi.waitFor(() => expect(service.streamEnded).toHaveBeenCalledOnce(), 20_000);
    expect(service.aborted).not.toHaveBeenCalled();
    await broker.restart();
    await vi.waitFor(async () => expect((await map.call("a.x")).data).toBe("x"), 20_000);
    await vi.waitFor(() => expect(service.aborted).toHaveBeenCalledTimes(2), 20_000);
    expect([map.size, service.handler.running]).toEqual([0, 0]);
  });

  it("RE-21 a service that is cut off for a moment ends its streams, and gives the answers it has afterwards", async () => {
    const { proxy, service, map } = await behindProxy(5_000);
    const answer = map.call("a.slow");
    const read = readOut(map);
    await vi.waitFor(() => expect(service.handler.running).toBe(2), 20_000);
    proxy.cut();
    await vi.waitFor(() => expect(service.streamEnded).toHaveBeenCalledOnce(), 20_000);
    service.finish("kept");
    await vi.waitFor(() => expect(service.handler.running).toBe(0), 20_000);
    expect(map.size).toBe(2);
    proxy.restore();
    expect((await answer).data).toBe("kept");
    expect(await read).toMatchObject({ code: "UNAVAILABLE" });
    expect(map.size).toBe(0);
    expect((await map.call("a.x")).data).toBe("x");
  });

  it("RE-21 a service that stays cut off loses its calls and streams at the caller after a few beats", async () => {
    const { proxy, service, map } = await behindProxy(BEAT_MS);
    const lost = [rejection(map.call("a.hang")), readOut(map)];
    await vi.waitFor(() => expect(service.handler.running).toBe(2), 20_000);
    proxy.cut();
    // By the beats that are missed: their deadlines lie far ahead. A beat that is late here forgives the others theirs.
    expect(await endsInTime(0, () => Promise.all(lost), 60 * BEAT_MS)).toBe(true);
    for (const error of await Promise.all(lost)) expect(error).toMatchObject(NOT_HEARD_OF);
    expect(map.size).toBe(0);
    proxy.restore();
    await vi.waitFor(() => expect(service.aborted).toHaveBeenCalledOnce(), 20_000);
    await vi.waitFor(() => expect(service.handler.running).toBe(0), 20_000);
  });
});
