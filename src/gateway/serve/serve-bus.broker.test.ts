import { type AddressInfo, createServer, type Socket } from "node:net";
import type { Msg } from "@nats-io/transport-node";
import { afterEach, expect, it } from "vitest";
import { endsInTime } from "../../../test/lateness.ts";
import { query, until } from "../../../test/make-operation.ts";
import { natsSuite, startNats } from "../../../test/nats-server.ts";
import { handGateway, loadedConfig } from "../../../test/served-gateway.ts";
import { createTokenSigner } from "../../call/credentials/token-signer.ts";
import { type CallObservation, createRemoteRegistry } from "../../call/index.ts";
import { connectNatsBus } from "../../call/nats/index.ts";
import { connect } from "../../call/nats/nats-packages.ts";
import { defineOperation } from "../../index.ts";
import { createGateway } from "../gateway.ts";
import { type CallRecord, createObserver } from "./observe/observer.ts";
import { serveBus } from "./serve-bus.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of open.splice(0).reverse()) await end();
});

natsSuite("serveBus", () => {
  it("RE-30 serves the gateway's operations on a bus once the broker is there, and leaves it", async () => {
    const broker = await startNats();
    open.push(() => broker.stop());
    await broker.kill();
    const records: CallRecord[] = [];
    const observer = createObserver();
    observer.listen({ end: (record) => void records.push(record) });
    const gateway = handGateway([query("desk.ask", () => ({ yes: true }))], [observer]);
    const warnings: string[] = [];
    const observed: CallObservation[] = [];
    const served = serveBus(
      gateway,
      { nats: broker.url, serveAs: "desk" },
      { onCall: (call) => void observed.push(call), onWarning: (message) => warnings.push(message) },
    );
    if (served === undefined) throw new Error("not served");
    open.push(() => served.close({ timeoutMs: 0 }));
    await until(() => warnings.length > 0);
    expect([served.state, warnings[0]]).toEqual(["connecting", expect.stringContaining("tried again")]);
    await broker.restart();
    await until(() => served.state === "up");
    const bus = await connectNatsBus({ servers: broker.url });
    open.push(() => bus.close());
    const remote = await createRemoteRegistry(bus);
    open.push(() => remote.close());
    await until(() => remote.get("desk.ask") !== undefined);
    expect((await remote.execute("desk.ask")).data).toEqual({ yes: true });
    expect(records).toMatchObject([{ operation: "desk.ask", entry: "bus" }]);
    expect(observed).toMatchObject([
      { end: "handler", type: "requested", operationId: "desk.ask", receivedBytes: expect.any(Number) },
      { end: "handler", type: "responded", outcome: "ok", sentBytes: expect.any(Number) },
    ]);
    await served.close({ timeoutMs: 60_000 });
    expect(served.state).toBe("closed");
    await until(() => remote.get("desk.ask") === undefined);
  });

  it("RE-30 is given up at once, without a word, while a broker accepts and says nothing", async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as AddressInfo;
    open.push(() => silent.close());
    const accepted = new Promise<Socket>((resolve) => silent.once("connection", resolve));
    const warnings: string[] = [];
    const served = serveBus(
      handGateway([]),
      { nats: `nats://127.0.0.1:${port}`, serveAs: "desk" },
      { onWarning: (message) => warnings.push(message) },
    );
    const socket = await accepted;
    open.push(() => socket.destroy());
    expect(await endsInTime(0, async () => served?.close(), 1_000)).toBe(true);
    expect(warnings).toEqual([]);
  });

  it("RE-30 can be given up while the broker is away, and is nothing where it is not wanted", async () => {
    const gateway = handGateway([]);
    expect(serveBus(gateway, undefined)).toBeUndefined();
    expect(serveBus(gateway, { nats: "127.0.0.1:1" })).toBeUndefined();
    const served = serveBus(gateway, { nats: "127.0.0.1:1", serveAs: "desk" });
    expect(await endsInTime(0, async () => served?.close(), 5_000)).toBe(true);
    expect(served?.state).toBe("closed");
  });

  it("RE-29 runs a signed mutation at one of several replicas, however often somebody sends it again", async () => {
    const broker = await startNats({ jetstream: true });
    open.push(() => broker.stop());
    const config = { nats: broker.url, serveAs: "desk", secret: "the-secret-of-the-bus-0000000000" };
    let runs = 0;
    const shared = { namespace: "desk", version: "1.0.0", type: "mutation", description: "" } as const;
    const write = defineOperation({ ...shared, name: "write", handler: () => ++runs });
    const replicas = await Promise.all(
      [1, 2, 3].map(async () => {
        const loaded = { ...loadedConfig({ name: "desk", bus: config }), localOperations: [write] };
        const gateway = await createGateway(loaded);
        open.push(() => gateway.close());
        await gateway.state.replicas();
        const served = serveBus(gateway, config);
        if (served === undefined) throw new Error("not served");
        open.push(() => served.close({ timeoutMs: 0 }));
        await until(() => served.state === "up");
        return served;
      }),
    );
    const connection = await connect({ servers: broker.url });
    open.push(() => connection.close());
    const sent: Msg[] = [];
    connection.subscribe("waybill.call.>", { callback: (_, message) => void sent.push(message) });
    await connection.flush();
    const bus = await connectNatsBus({ servers: broker.url });
    open.push(() => bus.close());
    const sign = createTokenSigner({ key: Buffer.from(config.secret), issuer: "waybill" });
    const remote = await createRemoteRegistry(bus, { credentials: sign });
    open.push(() => remote.close());
    await until(() => remote.get("desk.write") !== undefined);
    await remote.execute("desk.write", {}, { identity: { subject: "ann" } });
    const [copied] = sent;
    if (copied === undefined) throw new Error("nothing was sent");
    const refused = (): number => replicas.reduce((sum, { counters }) => sum + (counters?.duplicate ?? 0), 0);
    for (let at = 0; at < 30; at++) {
      const { subject, data, reply, headers } = copied;
      connection.publish(subject, data, { ...(reply && { reply }), ...(headers && { headers }) });
    }
    await until(() => refused() === 30);
    expect(runs).toBe(1);
  });
});
