import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { startReplica } from "../../../test/replica-gateway.ts";
import { defineOperation } from "../../index.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";

/** Half of a surrogate pair cannot be written as UTF-8. */
const LONG = `${"ä€😀 ".repeat(2_000)}\ud83d`;

natsSuite("long results of replicas", () => {
  let broker: NatsServer;
  let names = 0;
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    broker = await startNats({ jetstream: true });
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  afterAll(() => broker.stop());

  const report = defineOperation({
    namespace: "book",
    name: "report",
    type: "query",
    handler: ({ rows = 0 }: { rows?: number }) =>
      rows === 0
        ? { text: LONG }
        : Array.from({ length: rows }, (_, row) => ({ row, text: "x".repeat(1_000) })),
  });
  const start = async (name: string, config: GatewayConfig = {}) => {
    const policies = { "book.*": { resultBudget: 1_000 } };
    const replica = await startReplica([report], { name, bus: { nats: broker.url }, policies, ...config });
    closing.push(() => replica.close());
    return replica;
  };
  const newName = () => `book ${++names}`;
  const linkOf = async ({ ask }: Awaited<ReturnType<typeof start>>, args: object = {}) => {
    const { content } = await ask("tools/call", { name: "book_report", arguments: args });
    const link = (content as { type: string; uri?: string }[]).find(({ type }) => type === "resource_link");
    return link?.uri ?? "none";
  };

  it("are read at every replica by whoever made the call, and by nobody else", async () => {
    const name = newName();
    const [one, two] = [await start(name), await start(name)];
    const uri = await linkOf(one);
    const read = await two.ask("resources/read", { uri });
    expect(read).toEqual(await one.ask("resources/read", { uri }));
    const [{ text }] = read["contents"] as [{ text: string }];
    expect(JSON.parse(text)).toEqual({ text: LONG });
    const part = await two.ask("resources/read", { uri: `${uri}?offset=10&length=20` });
    expect(part["contents"]).toMatchObject([{ text: text.slice(10, 30) }]);
    for (const replica of [one, two])
      expect(await replica.ask("resources/read", { uri }, "bob")).toMatchObject({ code: -32602 });
    // Another gateway at the same broker knows nothing of it.
    const other = await start(newName());
    expect(await other.ask("resources/read", { uri })).toMatchObject({ code: -32602 });
  });

  it("are read by those alone who may make the call now", async () => {
    const name = newName();
    const one = await start(name);
    const uri = await linkOf(one);
    const policies = { "book.*": { scopes: ["auditor"] } };
    const two = await start(name, { policies });
    expect(await two.ask("resources/read", { uri })).toMatchObject({ code: -32602 });
    const three = await start(name);
    expect(await three.ask("resources/read", { uri })).toHaveProperty("contents");
  });

  it("are read when the replica is gone that gave the link, however long they are", {
    timeout: 60_000,
  }, async () => {
    const name = newName();
    const [one, two] = [await start(name), await start(name)];
    const uri = await linkOf(one, { rows: 3_000 });
    await one.close();
    const { contents } = await two.ask("resources/read", { uri });
    const [{ text }] = contents as [{ text: string }];
    expect(JSON.parse(text)).toHaveLength(3_000);
  });

  it("stay with their replica while the broker is away; others say that they cannot tell", {
    timeout: 60_000,
  }, async () => {
    const name = newName();
    const [one, two] = [await start(name), await start(name)];
    const before = await linkOf(one);
    expect(await two.ask("resources/read", { uri: before })).toHaveProperty("contents");
    await broker.kill();
    try {
      await expect.poll(() => one.gateway.state.report().status).toBe("lost");
      await expect.poll(() => two.gateway.state.report().status).toBe("lost");
      const uri = await linkOf(one);
      expect(await one.ask("resources/read", { uri })).toHaveProperty("contents");
      expect(one.metrics()).toMatch(/^waybill_state_events_total\{event="alone"\} [1-9]/m);
      const refused = await two.ask("resources/read", { uri });
      expect(refused).not.toHaveProperty("contents");
      expect(JSON.stringify(refused)).toContain("Another replica may keep the result");
      expect(await two.ready()).toMatchObject({ state: { status: "lost", results: "alone" } });
    } finally {
      await broker.restart();
    }
    await expect.poll(() => two.gateway.state.report().status, { timeout: 20_000 }).toBe("up");
    expect(await two.ask("resources/read", { uri: before })).toHaveProperty("contents");
  });
});
