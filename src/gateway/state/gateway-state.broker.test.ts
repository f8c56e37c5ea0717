import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { loadedConfig } from "../../../test/served-gateway.ts";
import { connect, DiscardPolicy, jetstreamManager, nanos } from "../../call/nats/nats-packages.ts";
import { defineOperation, unwrap } from "../../index.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { createGateway } from "../gateway.ts";
import { Metrics } from "../serve/observe/metrics.ts";
import { serveGateway } from "../serve/serve-gateway.ts";

const ADA = "0123456789abcdef-ada";
const BOB = "0123456789abcdef-bob";

natsSuite("replicas of a gateway", () => {
  let broker: NatsServer;
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => {
    broker = await startNats({ jetstream: true });
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });
  afterAll(() => broker.stop());

  /** Operations that tell how often they ran, in all replicas. */
  let shops = 0;
  const createShop = () => {
    const name = `shop ${++shops}`;
    const ran: string[] = [];
    let release: () => void = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const shared = { namespace: "shop", version: "1.0.0", type: "mutation", description: "" } as const;
    const operationsOf = (replica: string) => [
      defineOperation({
        ...shared,
        name: "order",
        handler: (input) => {
          ran.push(`${replica} ${JSON.stringify(input)}`);
          return { order: ran.length };
        },
      }),
      defineOperation({
        ...shared,
        name: "slow",
        handler: async () => {
          ran.push(`${replica} slow`);
          await held;
          return { order: ran.length };
        },
      }),
    ];
    return { name, ran, release: () => release(), operationsOf };
  };

  const open = async (shop: ReturnType<typeof createShop>, replica: string, config: GatewayConfig = {}) => {
    const warnings: string[] = [];
    const tokens = { ada: { token: ADA }, bob: { token: BOB } };
    const loaded = {
      ...loadedConfig({ name: shop.name, bus: { nats: broker.url }, serve: { auth: { tokens } }, ...config }),
      localOperations: shop.operationsOf(replica),
    };
    const onWarning = (message: string): void => void warnings.push(message);
    const gateway = await createGateway(loaded, { onWarning });
    const metrics = new Metrics({ state: () => gateway.state.report() });
    const server = await serveGateway(gateway, loaded, { metrics, onWarning });
    const close = async (): Promise<void> => {
      await server.close({ timeoutMs: 0 });
      await gateway.close();
      metrics.close();
    };
    closing.push(close);
    const order = async (key: string | undefined, token = ADA, name = "order", body = "{}") => {
      const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
      const answer = await fetch(`${server.url}/api/shop/${name}`, {
        method: "POST",
        headers: { ...headers, ...(key !== undefined && { "idempotency-key": key }) },
        body,
      });
      const replayed = answer.headers.get("idempotency-replayed");
      return { status: answer.status, body: await answer.json(), ...(replayed && { replayed }) };
    };
    const ready = async () => (await fetch(`${server.url}/ready`)).json();
    const text = () => metrics.text();
    return { gateway, order, ready, text, close, warnings };
  };

  it("run a mutation with a key once, and answer it alike, over HTTP and in the gateway itself", async () => {
    const shop = createShop();
    const [one, two] = [await open(shop, "one"), await open(shop, "two")];
    expect(await one.order("k")).toEqual({ status: 200, body: { order: 1 } });
    expect(await two.order("k")).toEqual({ status: 200, body: { order: 1 }, replayed: "true" });
    expect((await two.order("k", ADA, "order", '{"other":1}')).status).toBe(422);
    const options = { metadata: { idempotencyKey: "inner" } };
    const first = unwrap(await one.gateway.executor.execute("shop.order", {}, options));
    expect(unwrap(await two.gateway.executor.execute("shop.order", {}, options))).toEqual(first);
    expect(shop.ran).toEqual(["one {}", "one {}"]);
    // A key belongs to its caller.
    expect(await two.order("k", BOB)).toMatchObject({ body: { order: 3 } });
    expect(await one.order(undefined)).toMatchObject({ body: { order: 4 } });
    expect(await one.ready()).toEqual({ status: "ok", state: { store: "nats", status: "up" } });
    expect(one.text()).toMatch(/^waybill_state_up\{store="nats",replica="[0-9a-f]{8}"\} 1$/m);
  });

  it("are not ready before they have reached what they share", async () => {
    const late = await startNats({ jetstream: true });
    await late.kill();
    const gateway = await open(createShop(), "one", { bus: { nats: late.url } });
    await gateway.gateway.ready;
    expect(await gateway.ready()).toMatchObject({ status: "starting", state: { status: "connecting" } });
    // Whoever asks it all the same is answered.
    expect(await gateway.order(undefined)).toMatchObject({ status: 200 });
    await late.restart();
    await expect.poll(gateway.ready).toMatchObject({ status: "ok", state: { status: "up" } });
    await gateway.close();
    await late.stop();
  });

  it("wait for a call that runs elsewhere, and tell a caller who will not that it still runs", async () => {
    const shop = createShop();
    const [one, two] = [await open(shop, "one"), await open(shop, "two")];
    const running = one.order("k", ADA, "slow");
    await expect.poll(() => shop.ran).toEqual(["one slow"]);
    const waiting = two.order("k", ADA, "slow");
    shop.release();
    expect(await running).toMatchObject({ status: 200, body: { order: 1 } });
    expect(await waiting).toEqual({ status: 200, body: { order: 1 }, replayed: "true" });
    expect(shop.ran).toEqual(["one slow"]);
  });

  it("say that it is unknown what a replica ran that has left, and run nothing again", async () => {
    const shop = createShop();
    const [one, two] = [await open(shop, "one"), await open(shop, "two")];
    const running = one.order("k", ADA, "slow").catch(() => "cut off");
    await expect.poll(() => shop.ran).toEqual(["one slow"]);
    await one.close();
    await running;
    const answer = await two.order("k", ADA, "slow");
    expect(answer).toMatchObject({ status: 409, body: { code: "CONFLICT" } });
    expect(JSON.stringify(answer.body)).toContain("its outcome is not known");
    expect(shop.ran).toEqual(["one slow"]);
  });

  it("see nothing of another gateway on the same broker", async () => {
    const shop = createShop();
    const one = await open(shop, "one");
    const other = await open(shop, "other", { name: "other" });
    await one.order("k");
    expect(await other.order("k")).toMatchObject({ body: { order: 2 } });
  });

  it.each(["refuse", "alone"] as const)(
    "%s calls with a key while the broker is away, and say so",
    {
      timeout: 60_000,
    },
    async (lost) => {
      const shop = createShop();
      const one = await open(shop, "one", { state: { lost } });
      await one.order("before");
      const running = one.order("running", ADA, "slow");
      await expect.poll(() => shop.ran.length).toBe(2);
      await broker.kill();
      try {
        await expect
          .poll(() => one.ready())
          .toEqual({
            status: "ok",
            state: {
              store: "nats",
              status: "lost",
              keys: lost === "refuse" ? "refused" : "alone",
              limits: lost === "refuse" ? "refused" : "alone",
              cache: "alone",
              results: "alone",
            },
          });
        expect(one.text()).toMatch(/^waybill_state_up\{.*\} 0$/m);
        shop.release();
        expect(await running).toMatchObject({ status: 200, body: { order: 2 } });
        expect(one.text()).toMatch(/^waybill_state_events_total\{event="late"\} [1-9]/m);
        // The replica that ran it knows, whether it can ask the store or not.
        expect(await one.order("running", ADA, "slow")).toMatchObject({
          body: { order: 2 },
          replayed: "true",
        });
        expect(shop.ran).toHaveLength(2);
        expect(await one.order(undefined)).toMatchObject({ status: 200, body: { order: 3 } });
        const [first, again] = [await one.order("k"), await one.order("k")];
        if (lost === "refuse") {
          expect([first.status, again.status]).toEqual([503, 503]);
          expect(JSON.stringify(first.body)).toContain("The call did not run");
          expect(one.text()).toMatch(/^waybill_state_events_total\{event="unreachable"\} [1-9]/m);
        } else {
          expect(first).toMatchObject({ status: 200, body: { order: 4 } });
          expect(again).toMatchObject({ status: 200, body: { order: 4 }, replayed: "true" });
          expect(one.text()).toMatch(/^waybill_state_events_total\{event="alone"\} [1-9]/m);
        }
      } finally {
        await broker.restart();
      }
      await expect
        .poll(() => one.order("before").then(({ replayed }) => replayed), { timeout: 20_000 })
        .toBe("true");
      // What could not be stored then is by now, or will be with the next sign of life.
      const repeated = { status: 200, body: { order: 2 }, replayed: "true" };
      await expect.poll(() => one.order("running", ADA, "slow"), { timeout: 20_000 }).toEqual(repeated);
      if (lost === "alone") expect((await one.order("k")).replayed).toBe("true");
    },
  );

  it("keep keys to themselves where the broker has no JetStream, unless the config asks for it", {
    timeout: 60_000,
  }, async () => {
    const plain = await startNats();
    closing.unshift(() => plain.stop());
    const shop = createShop();
    const one = await open(shop, "one", { bus: { nats: plain.url } });
    expect(await one.order("k")).toMatchObject({ status: 200 });
    expect(await one.order("k")).toMatchObject({ replayed: "true" });
    expect(one.warnings).toEqual([expect.stringContaining("known to this replica alone")]);
    expect(await one.ready()).toEqual({ status: "ok" });
    const asking = await open(shop, "two", { bus: { nats: plain.url }, state: { store: "nats" } });
    expect(await asking.order("k")).toMatchObject({ status: 503 });
  });

  it("wait for a stream that takes no messages yet, and are not on their own because of it", {
    timeout: 60_000,
  }, async () => {
    const fresh = await startNats({ jetstream: true });
    closing.unshift(() => fresh.stop());
    const connection = await connect({ servers: fresh.url });
    closing.push(() => connection.close());
    const { streams } = await jetstreamManager(connection);
    // As it is for a moment while another replica makes it.
    const made = { max_msgs_per_subject: 1, discard: DiscardPolicy.New, max_age: nanos(8 * 86_400_000) };
    await streams.add({ name: "WAYBILL_STATE", subjects: ["elsewhere.>"], ...made });
    const one = await open(createShop(), "one", { bus: { nats: fresh.url } });
    expect(await one.order("k")).toMatchObject({ status: 503 });
    await expect.poll(() => one.warnings.join(), { timeout: 20_000 }).toContain("WAYBILL_STATE");
    await streams.update("WAYBILL_STATE", { subjects: ["waybill.state.>"] });
    await expect.poll(async () => (await one.order("k")).status, { timeout: 30_000 }).toBe(200);
    expect(await one.order("k")).toMatchObject({ replayed: "true" });
    expect(one.warnings.join()).not.toContain("known to this replica alone");
  });
});
