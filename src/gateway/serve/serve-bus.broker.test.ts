import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { endsInTime } from "../../../test/lateness.ts";
import { query, until } from "../../../test/make-operation.ts";
import { natsSuite, startNats } from "../../../test/nats-server.ts";
import { handGateway } from "../../../test/served-gateway.ts";
import { type CallObservation, createRemoteRegistry } from "../../call/index.ts";
import { connectNatsBus } from "../../call/nats/index.ts";
import type { CallRecord } from "./observe/call-record.ts";
import { createObserver } from "./observe/observer.ts";
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
});
