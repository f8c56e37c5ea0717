import { connect, type NatsConnection, type QueuedIterator } from "nats";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { query, rejection, stream } from "../../../test/make-operation.ts";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { toolError } from "../../core/envelope/envelope.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { type CallHandlerOptions, serveCalls } from "../call-handler.ts";
import { PendingRequestMap } from "../pending-request-map.ts";
import { SERVICE_LIMITS } from "../wire/service-protocol.ts";
import { connectNatsBus } from "./nats-bus.ts";

natsSuite("NATS's own service protocol", () => {
  let server: NatsServer | undefined;
  let tool: NatsConnection;
  let ends: (() => Promise<unknown>)[] = [];

  beforeAll(async () => {
    server = await startNats();
    tool = await connect({ servers: server.url });
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
    ends = [];
  });
  afterAll(async () => {
    await tool?.close();
    await server?.stop();
  });

  const open = async () => {
    const bus = await connectNatsBus({ servers: server?.url ?? "" });
    ends.push(() => bus.close());
    return bus;
  };

  async function serve(operations: AnyOperation[], options: CallHandlerOptions = {}) {
    const bus = await open();
    const registry = new OperationRegistry(operations);
    const handler = await serveCalls(registry, bus, options);
    return { bus, registry, handler };
  }

  /** All that the client of NATS hears; nothing where it hears that nobody is there. */
  async function all<T>(answers: Promise<QueuedIterator<T>>): Promise<T[]> {
    const heard: T[] = [];
    try {
      for await (const answer of await answers) heard.push(answer);
    } catch (thrown) {
      if ((thrown as { code?: string }).code !== "503") throw thrown;
    }
    return heard;
  }

  it("RE-29 its client pings services: all of them, those of a name, and one", async () => {
    const first = await serve([query("a.x", () => 1)], { name: "parcels" });
    await serve([query("a.x", () => 1)], { name: "parcels" });
    await serve([query("b.y", () => 1)], { name: "An office, upstairs" });
    const client = tool.services.client();
    const { serviceId } = first.handler;
    expect((await all(client.ping())).map(({ name }) => name).sort()).toEqual([
      "An_office__upstairs",
      "parcels",
      "parcels",
    ]);
    expect(await all(client.ping("parcels"))).toHaveLength(2);
    expect(await all(client.ping("parcels", serviceId))).toEqual([
      {
        type: "io.nats.micro.v1.ping_response",
        name: "parcels",
        id: serviceId,
        version: expect.stringMatching(/^\d+\.\d+\.\d+/),
        metadata: { framework: "waybill", operations: "1" },
      },
    ]);
    expect(await all(client.ping("nobody"))).toEqual([]);
    const [office] = await all(client.info("An_office__upstairs"));
    expect(office?.description).toBe("An office, upstairs");
  });

  it("RE-29 its client reads what there is, and follows what comes and goes", async () => {
    const { registry, handler } = await serve(
      [query("a.x.deep", () => 1), stream("a.s", async function* () {})],
      {
        name: "parcels",
      },
    );
    const client = tool.services.client();
    const [info] = await all(client.info("parcels"));
    expect(info?.endpoints).toEqual([
      {
        name: "a_s",
        subject: "waybill.call.*.a.s",
        queue_group: "waybill",
        metadata: { operation: "a.s", version: "1.0.0", type: "subscription" },
      },
      {
        name: "a_x_deep",
        subject: "waybill.call.*.a.x~deep",
        queue_group: "waybill",
        metadata: { operation: "a.x.deep", version: "1.0.0", type: "query" },
      },
    ]);
    registry.remove("a.s");
    registry.register(query("a.late", () => 1));
    await vi.waitFor(async () => {
      const [now] = await all(client.info("parcels"));
      expect(now?.endpoints.map(({ name }) => name).sort()).toEqual(["a_late", "a_x_deep"]);
    }, 20_000);
    await handler.drain();
    expect(await all(client.info("parcels"))).toEqual([]);
  });

  it("RE-29 its client reads how calls went, and no text of a handler", async () => {
    const work = query("a.work", (input) => {
      if (input === "throws") throw new Error("planted");
      return input === "says" ? toolError("planted", { code: "planted" as never }) : input;
    });
    const { handler } = await serve([work, query("a.idle", () => 1)], { name: "counted" });
    const map = new PendingRequestMap(await open());
    const statsOf = async (name: string) => {
      const [stats] = await all(tool.services.client().stats("counted", handler.serviceId));
      return stats?.endpoints?.find((endpoint) => endpoint.name === name);
    };
    for (let n = 0; n < 3; n++) await map.call("a.work", n);
    expect(await statsOf("a_work")).toMatchObject({ num_requests: 3, num_errors: 0, last_error: "" });
    await map.call("a.work", "says");
    expect(await statsOf("a_work")).toMatchObject({ last_error: "The operation reported an error." });
    await rejection(map.call("a.work", "throws"));
    const work5 = await statsOf("a_work");
    expect(work5).toMatchObject({
      num_requests: 5,
      num_errors: 2,
      last_error: expect.stringMatching(/^EXECUTION_ERROR: The /),
      queue_group: "waybill",
    });
    expect(JSON.stringify(work5)).not.toContain("planted");
    const { processing_time: all5 = 0, average_processing_time: average = 0 } = work5 ?? {};
    expect(all5).toBeGreaterThan(0);
    expect(average).toBe(Math.round(all5 / 5));
    expect(await statsOf("a_idle")).toMatchObject({ num_requests: 0, average_processing_time: 0 });
  });

  it("RE-29 an answer holds 1,000 operations, and says of one more that it is cut", async () => {
    const operations = Array.from({ length: SERVICE_LIMITS.endpoints }, (_, n) => query(`a.x${n}`, () => n));
    const { registry } = await serve(operations, { name: "many", group: "namespace" });
    const client = tool.services.client();
    const [whole] = await all(client.info("many"));
    expect([whole?.endpoints.length, whole?.metadata]).toEqual([
      1_000,
      { framework: "waybill", operations: "1000" },
    ]);
    registry.register(query("a.more", () => 1));
    await vi.waitFor(async () => {
      const [cut] = await all(client.info("many"));
      expect([cut?.endpoints.length, cut?.metadata]).toEqual([
        1_000,
        { framework: "waybill", operations: "1001", "operations-shown": "1000" },
      ]);
    }, 20_000);
    const [stats] = await all(client.stats("many"));
    expect(stats?.endpoints).toHaveLength(1_000);
  });

  it("RE-29 an answer has at most 512 KiB, or what the broker carries", async () => {
    const long = "x".repeat(190);
    const operations = Array.from({ length: 1_000 }, (_, n) => query(`a.${long}${n}`, () => n));
    const { bus } = await serve(operations, { name: "long", group: "namespace" });
    const { data } = await bus.connection.request("$SRV.INFO.long", "", { timeout: 20_000 });
    const { endpoints, metadata } = JSON.parse(new TextDecoder().decode(data));
    expect(data.length).toBeLessThanOrEqual(SERVICE_LIMITS.answerBytes);
    expect(data.length).toBeGreaterThan(SERVICE_LIMITS.answerBytes - 4_096);
    expect(metadata["operations-shown"]).toBe(String(endpoints.length));
  });

  it("RE-29 answers nobody where others would take the answer for a message of the bus", async () => {
    const { bus } = await serve([query("a.x", () => 1)], { name: "asked" });
    for (const reply of ["waybill.call._.a.x", "waybill.who", "$SRV.PING"]) {
      tool.publish("$SRV.INFO.asked", "", { reply });
    }
    tool.publish("$SRV.INFO.asked");
    await tool.flush();
    await vi.waitFor(() => expect(bus.counters.malformed).toBe(4), 20_000);
  });
});
