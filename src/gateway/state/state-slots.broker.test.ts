import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { type Replica, startReplica } from "../../../test/replica-gateway.ts";
import { connect } from "../../call/nats/nats-packages.ts";
import { Cancellation, monotonicNow } from "../../core/execution/cancellation.ts";
import { defineOperation } from "../../index.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { FairQueue, type Lane } from "../policy/fair-queue.ts";
import { openJetStreamState } from "./jetstream-state-store.ts";
import { ReplicaLease } from "./replica-lease.ts";
import { StateSlots } from "./state-slots.ts";

natsSuite("limits of replicas at a broker", () => {
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

  /** An operation whose calls, in all replicas, run until they are let go. */
  const createWork = () => {
    const seen = { running: 0, most: 0, done: 0 };
    const waiting: (() => void)[] = [];
    const operation = defineOperation({
      namespace: "shop",
      name: "work",
      type: "query",
      handler: async () => {
        seen.running++;
        seen.most = Math.max(seen.most, seen.running);
        await new Promise<void>((resolve) => void waiting.push(resolve));
        seen.running--;
        seen.done++;
        return {};
      },
    });
    const letGo = (): void => void waiting.shift()?.();
    const letAllGo = async (count: number): Promise<void> => {
      await expect
        .poll(
          () => {
            letGo();
            return seen.done;
          },
          { timeout: 30_000, interval: 2 },
        )
        .toBe(count);
    };
    return { seen, operation, letGo, letAllGo };
  };
  const start = async (work: ReturnType<typeof createWork>, name: string, config: GatewayConfig) => {
    const replica = await startReplica([work.operation], { name, bus: { nats: broker.url }, ...config });
    closing.push(() => replica.close());
    return replica;
  };
  const newName = () => `limits ${++names}`;
  /** Replicas that count alone where the broker is too slow for them, as on a busy machine, hold no limit together. */
  const STRICT = { lost: { limits: "refuse" } } as const;
  const callPatiently = async ({ call }: Replica): ReturnType<Replica["call"]> => {
    for (;;) {
      const answer = await call("shop/work");
      if (answer.status !== 503) return answer;
    }
  };

  it("let so many calls run at a time as the config says, at all replicas together, and everybody in turn", {
    timeout: 60_000,
  }, async () => {
    const work = createWork();
    const name = newName();
    const policies = { "shop.*": { concurrency: 4 } };
    const replicas = await Promise.all([1, 2, 3].map(() => start(work, name, { policies, state: STRICT })));
    const calls = replicas.flatMap((one) => Array.from({ length: 10 }, () => callPatiently(one)));
    await expect.poll(() => work.seen.running, { timeout: 20_000 }).toBe(4);
    await work.letAllGo(30);
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(30).fill(200));
    expect(work.seen.most).toBe(4);
  });

  it("let so many calls start in a period, at all replicas together", { timeout: 60_000 }, async () => {
    const work = createWork();
    const name = newName();
    const policies = { "shop.*": { rate: { calls: 5, perMs: 3_600_000 }, timeoutMs: 3_000 } };
    const replicas = await Promise.all([1, 2, 3].map(() => start(work, name, { policies, state: STRICT })));
    const calls = replicas.flatMap((one) => Array.from({ length: 4 }, () => callPatiently(one)));
    await expect.poll(() => work.seen.running, { timeout: 20_000 }).toBe(5);
    const ended = Promise.all(calls);
    await work.letAllGo(5);
    const statuses = (await ended).map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(5).fill(200), ...Array(7).fill(504)]);
    // Those of a replica that has left count for as long as those of others.
    await replicas[0]?.close();
    const late = await Promise.all(replicas.slice(1).map(callPatiently));
    expect(late.map(({ status }) => status)).toEqual([504, 504]);
  });

  it("give the places of a replica that has left to those that stay", { timeout: 60_000 }, async () => {
    const work = createWork();
    const name = newName();
    const policies = { "shop.*": { concurrency: 2 } };
    const [one, two] = [await start(work, name, { policies }), await start(work, name, { policies })];
    const first = [one.call("shop/work"), one.call("shop/work")];
    await expect.poll(() => work.seen.running).toBe(2);
    const second = [two.call("shop/work"), two.call("shop/work")];
    await work.letAllGo(2);
    await Promise.all(first);
    await one.close();
    await expect.poll(() => work.seen.running).toBe(2);
    await work.letAllGo(4);
    expect((await Promise.all(second)).map(({ status }) => status)).toEqual([200, 200]);
    expect(work.seen.most).toBe(2);
  });

  it.each(["refuse", "alone"] as const)(
    "%s what is more than was leased while the broker is away, and say so",
    { timeout: 60_000 },
    async (limits) => {
      const work = createWork();
      const state = { lost: { limits } };
      const policies = { "shop.*": { concurrency: 16, timeoutMs: 20_000 } };
      const one = await start(work, newName(), { policies, state });
      const before = one.call("shop/work");
      await expect.poll(() => work.seen.running).toBe(1);
      await broker.kill();
      try {
        await expect.poll(() => one.gateway.state.report().status).toBe("lost");
        const settled: unknown[] = [];
        const calls = Array.from({ length: 16 }, () =>
          one.call("shop/work").then((answer) => {
            settled.push(answer);
            return answer;
          }),
        );
        if (limits === "refuse") {
          // A block of what there is was leased with the first call.
          await expect.poll(() => [work.seen.running, settled.length]).toEqual([3, 14]);
          for (const refused of settled) expect(refused).toMatchObject({ status: 503 });
          expect(JSON.stringify(settled[0])).toContain("counted over all replicas");
          await work.letAllGo(3);
        } else {
          await expect.poll(() => work.seen.running).toBe(16);
          await work.letAllGo(17);
          expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(16).fill(200));
          expect(one.metrics()).toMatch(/^waybill_state_events_total\{event="alone"\} [1-9]/m);
        }
        expect((await before).status).toBe(200);
        const said = limits === "refuse" ? "refused" : "alone";
        expect(await one.ready()).toMatchObject({ status: "ok", state: { keys: "refused", limits: said } });
        expect(one.metrics()).toMatch(
          new RegExp(`^waybill_state_lost_info\\{setting="limits",lost="${limits}"\\} 1$`, "m"),
        );
      } finally {
        await broker.restart();
      }
      await expect.poll(() => one.gateway.state.report().status, { timeout: 20_000 }).toBe("up");
      const done = work.seen.done;
      const after = one.call("shop/work");
      await work.letAllGo(done + 1);
      expect((await after).status).toBe(200);
    },
  );

  it("are each replica's own where the broker has no JetStream", { timeout: 60_000 }, async () => {
    const plain = await startNats();
    closing.unshift(() => plain.stop());
    const work = createWork();
    const policies = { "shop.*": { concurrency: 1, singleFlight: false } };
    const name = newName();
    const config = { policies, bus: { nats: plain.url } };
    const [one, two] = [await start(work, name, config), await start(work, name, config)];
    const calls = [one, one, two, two].map(({ call }) => call("shop/work"));
    await expect.poll(() => work.seen.running).toBe(2);
    await work.letAllGo(4);
    expect((await Promise.all(calls)).map(({ status }) => status)).toEqual(Array(4).fill(200));
    expect(work.seen.most).toBe(2);
  });

  const open = async (space: string, replica: string) => {
    const connection = await connect({ servers: broker.url });
    closing.push(() => connection.close());
    const store = await openJetStreamState(connection, { space });
    closing.push(() => store.close());
    const lease = new ReplicaLease(store, { replica, leaseMs: 900 });
    const slots = new StateSlots({
      access: { reach: async () => ({ store, lease }) },
      goesOnAlone: () => false,
      onLost: () => {},
      lookMs: 100,
    });
    closing.push(async () => {
      await slots.close();
      await lease.close();
    });
    const queue = new FairQueue({ queue: 100 }, true, (limit, use) => slots.lease(limit, use));
    queue.change({ rates: new Map(), places: new Map([["p", 8]]) });
    const lane = queue.laneOf(undefined, "p") as Lane;
    const enter = () => {
      const cancellation = new Cancellation("a.b", [], Number.POSITIVE_INFINITY, monotonicNow());
      return queue.enter(lane, { operationId: "a.b", owner: "ann" }, cancellation);
    };
    const held = async () => {
      const found = await store.get({ collection: "limits", owner: "", key: "places p" });
      return (JSON.parse(Buffer.from(found?.value ?? []).toString() || "{}") as { held?: object }).held;
    };
    return { connection, enter, leave: () => queue.leave(lane), held };
  };

  it("have the places of a replica again that is cut off, after its lease and not while it lives", {
    timeout: 60_000,
  }, async () => {
    const space = newName();
    const [one, two] = [await open(space, "one"), await open(space, "two")];
    await Promise.all(Array.from({ length: 8 }, () => one.enter()));
    let entered = 0;
    const waiting = Array.from({ length: 8 }, () => two.enter().then(() => entered++));
    await expect.poll(two.held).toEqual({ one: 8 });
    one.leave();
    await expect.poll(() => entered).toBe(1);
    // It lives for longer than a lease, and keeps what it uses.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect([entered, await two.held()]).toEqual([1, { one: 7, two: 1 }]);
    await one.connection.close();
    await Promise.all(waiting);
    expect(await two.held()).toEqual({ two: 8 });
  });

  it("are given back by a replica that does not need them any more, though nobody asks", {
    timeout: 60_000,
  }, async () => {
    const { enter, leave, held } = await open(newName(), "one");
    await Promise.all(Array.from({ length: 4 }, enter));
    expect(await held()).toEqual({ one: 5 });
    for (let count = 0; count < 4; count++) leave();
    await expect.poll(held, { timeout: 10_000 }).toEqual({});
    await enter();
    expect(await held()).toEqual({ one: 2 });
  });
});
