import { connect } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { query, rejection, sleep } from "../../../test/make-operation.ts";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { serveCalls } from "../call-handler.ts";
import { fromBrokerUser } from "../credentials/token-verifier.ts";
import { PendingRequestMap } from "../pending-request-map.ts";
import { connectNatsBus, createNatsBus, type NatsBus } from "./nats-bus.ts";

/** Seldom enough for a busy machine: nobody counts as gone who merely did not get to run. */
const BEAT_MS = 500;

/** Ada may ask as herself and nobody else; the service may do anything. */
const CONFIG = `authorization { users: [
  { user: service, password: s }
  { user: ada, password: a, permissions: {
    publish: ["waybill.call.ada.>", "waybill.stop.ada.>", "waybill.beat.ada.*", "waybill.peer.*.*", "waybill.who"]
    subscribe: ["_INBOX_ada.>", "waybill.beat.*.*", "waybill.service.*.*"]
  } }
] }`;

natsSuite("a bus on NATS", () => {
  let server: NatsServer | undefined;
  const open: NatsBus[] = [];
  const keep = (bus: NatsBus): NatsBus => {
    open.push(bus);
    return bus;
  };
  beforeAll(async () => {
    server = await startNats({ config: CONFIG });
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((bus) => bus.close()));
  });
  afterAll(async () => {
    await server?.stop();
  });
  const servers = () => server?.url ?? "";
  const service = async () =>
    keep(await connectNatsBus({ servers: servers(), user: "service", pass: "s" }, { beatMs: BEAT_MS }));
  const ada = async (user: string) =>
    keep(
      await connectNatsBus(
        { servers: servers(), user: "ada", pass: "a", inboxPrefix: "_INBOX_ada" },
        { user, beatMs: BEAT_MS },
      ),
    );
  const who = query("a.who", (_, { identity }) => identity?.subject ?? "nobody");
  const authenticate = fromBrokerUser((user) => ({ subject: user }));

  it("Call: the broker's permissions bind a caller to its user, and nobody can ask as another", async () => {
    await serveCalls(new OperationRegistry([who]), await service(), { authenticate });
    const own = new PendingRequestMap(await ada("ada"));
    expect((await own.call("a.who")).data).toBe("ada");
    const asBob = new PendingRequestMap(await ada("bob"));
    expect(await rejection(asBob.call("a.who", 1, { timeoutMs: 200 }))).toMatchObject({
      code: expect.stringMatching(/TIMEOUT|ACCESS_DENIED|UNAVAILABLE/),
    });
  });

  it("Call: a service that the broker does not let listen is not started, and says which operation", async () => {
    const registry = new OperationRegistry([who]);
    const [own, other] = [await ada("ada"), await service()];
    for (const options of [{}, { group: "namespace" }] as const) {
      expect(await rejection(serveCalls(registry, own, options))).toMatchObject({
        code: "ACCESS_DENIED",
        message: expect.stringContaining(options.group === "namespace" ? '"a"' : '"a.who"'),
      });
    }
    const error = await rejection(new PendingRequestMap(other).call("a.who"));
    expect(error).toMatchObject({ code: "NO_RESPONDER" });
  });

  it("Call: closing a bus leaves a connection open that was there before", async () => {
    const connection = await connect({ servers: servers(), user: "service", pass: "s" });
    const bus = createNatsBus(connection);
    expect(bus.connection).toBe(connection);
    await bus.close();
    expect(connection.isClosed()).toBe(false);
    await connection.close();
    const own = await connectNatsBus({ servers: servers(), user: "service", pass: "s" });
    await own.close();
    expect(own.connection.isClosed()).toBe(true);
  });

  it("Call: a broker that goes makes calls UNAVAILABLE, and one that comes back makes them work", async () => {
    const broker = await startNats();
    try {
      const options = { servers: broker.url, reconnectTimeWait: 50, maxReconnectAttempts: -1 };
      const [asking, answering] = [
        keep(await connectNatsBus(options, { beatMs: BEAT_MS })),
        keep(await connectNatsBus(options, { beatMs: BEAT_MS })),
      ];
      await serveCalls(new OperationRegistry([query("a.x", () => "x")]), answering);
      const map = new PendingRequestMap(asking);
      expect((await map.call("a.x")).data).toBe("x");
      await broker.kill();
      await sleep(50);
      expect(await rejection(map.call("a.x"))).toMatchObject({ code: "UNAVAILABLE" });
      await broker.restart();
      await vi.waitFor(async () => expect((await map.call("a.x")).data).toBe("x"), 20_000);
      expect(map.size).toBe(0);
    } finally {
      await Promise.all(open.splice(0).map((bus) => bus.connection.close()));
      await broker.stop();
    }
  });

  it("Call: a connection that is closed for good loses the calls under way", async () => {
    const [asking, answering] = [await service(), await service()];
    const stopped = vi.fn();
    const hang = query(
      "a.hang",
      (_, { signal }) => new Promise(() => signal.addEventListener("abort", stopped)),
    );
    const handler = await serveCalls(new OperationRegistry([hang]), answering);
    const map = new PendingRequestMap(asking);
    const lost = rejection(map.call("a.hang"));
    await vi.waitFor(() => expect(handler.running).toBe(1), 20_000);
    await asking.connection.close();
    expect(await lost).toMatchObject({ code: "UNAVAILABLE" });
    await vi.waitFor(() => expect(stopped).toHaveBeenCalled(), 20_000);
  });
});
