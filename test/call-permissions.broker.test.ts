import { connect, type NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import {
  type CallHandler,
  createRemoteRegistry,
  fromBrokerUser,
  PendingRequestMap,
  serveCalls,
} from "../src/call/index.ts";
import { connectNatsBus, type NatsBus } from "../src/call/nats/index.ts";
import { defineOperation, OperationRegistry } from "../src/index.ts";
import { type NatsServer, natsSuite, startNats } from "./nats-server.ts";

/** The permissions that docs/call.md shows, for two callers and two services; the second has those of earlier versions. */
const caller = (user: string) => `{ user: ${user}, password: ${user}, permissions: {
  publish: ["waybill.call.${user}.>", "waybill.stop.${user}.>", "waybill.beat.${user}.*", "waybill.peer.*.*", "waybill.who"]
  subscribe: ["_INBOX_${user}.>", "waybill.beat.*.*", "waybill.service.*.*"] } }`;

const provider = (user: string, requests: string) => `{ user: ${user}, password: ${user}, permissions: {
  publish: ["_INBOX_alice.>", "_INBOX_mallory.>", "waybill.beat.${user}.*", "waybill.service.${user}.*"]
  subscribe: ["${requests}", "waybill.stop.*.${user}.*", "waybill.peer.${user}.*", "waybill.beat.*.*", "waybill.who", "_INBOX_${user}.>"] } }`;

const CONFIG = `authorization { users = [
  ${caller("alice")}
  ${caller("mallory")}
  ${provider("billing", "waybill.call.*.billing.>")}
  ${provider("shipping", "waybill.call.*.shipping.*")}
] }`;

natsSuite("permissions of a broker", () => {
  let server: NatsServer;
  let service: CallHandler;
  const buses: Record<string, NatsBus> = {};
  let raw: NatsConnection;
  const seen: unknown[] = [];

  const join = async (user: string) => {
    const bus = await connectNatsBus(
      { servers: server.url, user, pass: user, inboxPrefix: `_INBOX_${user}` },
      { user, beatMs: 500 },
    );
    buses[user] = bus;
    return bus;
  };

  beforeAll(async () => {
    server = await startNats({ config: CONFIG });
    const whoami = defineOperation({
      namespace: "billing",
      name: "whoami",
      version: "1.0.0",
      type: "query",
      description: "Says who asks.",
      access: { scopes: { allOf: ["billing"] } },
      handler: (input, { identity }) => {
        seen.push(input);
        return identity?.subject;
      },
    });
    const ticks = defineOperation({
      namespace: "billing",
      name: "ticks",
      version: "1.0.0",
      type: "subscription",
      description: "Counts.",
      async *handler() {
        for (let n = 0; ; n++) yield n;
      },
    });
    const authenticate = fromBrokerUser((user) => ({
      subject: user,
      scopes: user === "alice" ? ["billing"] : [],
    }));
    service = await serveCalls(new OperationRegistry([whoami, ticks]), await join("billing"), {
      authenticate,
    });
    await join("alice");
    await join("mallory");
    raw = await connect({
      servers: server.url,
      user: "mallory",
      pass: "mallory",
      inboxPrefix: "_INBOX_mallory",
    });
  });

  afterAll(async () => {
    await service?.drain();
    for (const bus of Object.values(buses)) await bus.close();
    await raw?.close();
    await server?.stop();
  });

  /** On a busy machine a service may answer after the one who looks for it has stopped waiting. */
  const findAll = async () => {
    const remote = await createRemoteRegistry(buses["alice"] as NatsBus);
    await vi.waitFor(() => expect(remote.services).not.toEqual([]), 20_000);
    return remote;
  };

  it.each([
    ["together to a service that may listen for that", "billing", 80],
    ["one by one to a service that may not", "shipping", 200],
  ] as const)("Call: requests that are ready together go %s", async (_, user, messages) => {
    const count = defineOperation({
      namespace: user,
      name: "count",
      handler: (n, { identity }) => [n, identity?.subject],
    });
    const authenticate = fromBrokerUser((subject) => ({ subject, scopes: [] }));
    const bus = buses[user] ?? (await join(user));
    const counting = await serveCalls(new OperationRegistry([count]), bus, { authenticate, announce: false });
    const asking = buses["alice"] as NatsBus;
    const map = new PendingRequestMap(asking);
    const callAll = async () => {
      const calls = Array.from({ length: 200 }, (_, n) => map.call(`${user}.count`, n));
      return (await Promise.all(calls)).map(({ data }) => data);
    };
    const answers = Array.from({ length: 200 }, (_, n) => [n, "alice"]);
    expect(await callAll()).toEqual(answers);
    const { outMsgs: before } = asking.connection.stats();
    expect(await callAll()).toEqual(answers);
    const sent = asking.connection.stats().outMsgs - before;
    if (user === "billing") expect(sent).toBeLessThan(messages);
    else expect(sent).toBeGreaterThanOrEqual(messages);
    await counting.drain();
  });

  it("RE-29 let callers find and call what is theirs to call, streams included", async () => {
    const remote = await findAll();
    expect(remote.operations.map(({ id }) => id)).toEqual(["billing.ticks", "billing.whoami"]);
    expect((await remote.execute("billing.whoami")).data).toBe("alice");
    const read: unknown[] = [];
    for await (const { data } of remote.subscribe("billing.ticks")) {
      read.push(data);
      if (read.length === 500) break;
    }
    expect(read.at(-1)).toBe(499);
    await remote.close();
  });

  it("Identity: is the broker's word, so that nobody calls in another's name", async () => {
    const mallory = new PendingRequestMap(buses["mallory"] as NatsBus);
    await expect(mallory.call("billing.whoami")).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    await mallory.close();
    const event = {
      type: "call.requested",
      requestId: "forged",
      operationId: "billing.whoami",
      input: "forged",
    };
    const text = JSON.stringify({ v: 1, event });
    raw.publish("waybill.call.alice.billing.whoami", text, { reply: "_INBOX_mallory.x.y" });
    await raw.flush();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(seen).not.toContain("forged");
  });

  it.each([
    "_INBOX_alice.>",
    "waybill.call.*.billing.*",
    "waybill.peer.billing.*",
    "waybill.stop.*.billing.*",
  ])("RE-29 keep others from listening to %s", async (subject) => {
    const subscription = raw.subscribe(subject);
    const heard = (async () => {
      for await (const message of subscription) seen.push(message.subject);
    })();
    await expect(heard).rejects.toThrow(/permission/i);
  });

  it("RE-29 keep others from announcing or withdrawing a service in its name", async () => {
    const remote = await findAll();
    const [{ serviceId } = { serviceId: "" }] = remote.services;
    const gone = JSON.stringify({ v: 1, service: { serviceId, gone: true } });
    raw.publish(`waybill.service.billing.${serviceId}`, gone);
    raw.publish(`waybill.service.mallory.${serviceId}`, gone);
    await raw.flush();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(remote.services).toHaveLength(1);
    await remote.close();
  });

  it("RE-29 keep a service from speaking for another one on a subject of its own", async () => {
    const alice = buses["alice"] as NatsBus;
    const remote = await findAll();
    const [known] = remote.services;
    const before = [remote.services, remote.operations.map(({ id }) => id)];
    const forged = alice.counters.forged;
    const shipping = await connect({
      servers: server.url,
      user: "shipping",
      pass: "shipping",
      inboxPrefix: "_INBOX_shipping",
    });
    expect(known?.serviceId).toMatch(/^billing\./);
    const serviceId = known?.serviceId.slice("billing.".length) ?? "";
    const say = (message: object) =>
      shipping.publish(`waybill.service.shipping.${serviceId}`, JSON.stringify({ v: 1, ...message }));
    const notice = { serviceId, name: "billing", operations: [] };
    say({ service: notice, peer: "shipping.me" });
    say({ service: notice, peer: "billing.me" });
    say({ service: { ...notice, serviceId: `billing.${serviceId}` }, peer: "shipping.me" });
    say({ service: { serviceId, gone: true } });
    say({ service: { ...notice, serviceId: "another" }, peer: "billing.me" });
    await shipping.flush();
    await vi.waitFor(() => expect(alice.counters.forged).toBe(forged + 2), 20_000);
    expect([remote.services, remote.operations.map(({ id }) => id)]).toEqual(before);
    expect(remote.services).toHaveLength(1);
    expect((await remote.execute("billing.whoami")).data).toBe("alice");
    await shipping.close();
    await remote.close();
  });
});
