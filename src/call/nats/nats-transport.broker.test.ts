import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterEach, expect, it } from "vitest";
import { rejection } from "../../../test/make-operation.ts";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { createNatsTransport } from "./nats-bus.ts";

natsSuite("the transport on NATS", () => {
  let server: NatsServer | undefined;
  let connection: NatsConnection | undefined;
  afterEach(async () => {
    await connection?.close();
    await server?.stop();
  });

  async function open(): Promise<{ readonly broker: NatsServer; readonly own: NatsConnection }> {
    server = await startNats();
    connection = await connect({ servers: server.url, maxReconnectAttempts: -1, reconnectTimeWait: 20 });
    return { broker: server, own: connection };
  }

  it("RE-21 a flush outlasts a broker that is away for a while", async () => {
    const { broker, own } = await open();
    const transport = createNatsTransport(own, { closesConnection: false });
    await broker.pause();
    const heard = new Promise((resolve) => transport.subscribe("a", ({ data }) => resolve([...data])));
    const flushed = transport.flush();
    await broker.kill();
    await broker.restart();
    await flushed;
    transport.publish("a", Uint8Array.of(7));
    expect(await heard).toEqual([7]);
  });

  it("RE-21 a flush that waits when its connection closes rejects", async () => {
    const { broker, own } = await open();
    const transport = createNatsTransport(own, { closesConnection: false });
    await broker.pause();
    const flushed = rejection(transport.flush());
    await own.close();
    expect(await flushed).toBeInstanceOf(Error);
    broker.resume();
  });

  it("RE-21 a flush of a connection that is closed rejects", async () => {
    const { own } = await open();
    const transport = createNatsTransport(own, { closesConnection: false });
    await own.close();
    expect(await rejection(transport.flush())).toBeInstanceOf(Error);
  });
});
