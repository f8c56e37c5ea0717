import { afterAll, beforeAll, expect, it } from "vitest";
import { approve, BOB, pay, replica, requested } from "../../../test/approval-replicas.ts";
import { rejection, until } from "../../../test/make-operation.ts";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { connect } from "../../call/nats/nats-packages.ts";
import { openJetStreamState } from "../state/jetstream-state-store.ts";

natsSuite("approvals on JetStream", () => {
  let broker: NatsServer;
  const opened: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    broker = await startNats({ jetstream: true });
  });
  afterAll(async () => {
    for (const close of opened) await close();
    await broker.stop();
  });

  /** A replica with a connection and a store of its own. */
  async function open(holdMs = 0) {
    const connection = await connect({ servers: broker.url });
    const store = await openJetStreamState(connection, { space: "approvals" });
    opened.push(async () => {
      await store.close();
      await connection.close();
    });
    return replica(store, { policy: { holdMs } });
  }

  it("are shown, decided and used at every replica, once", async () => {
    const [one, two] = [await open(), await open()];
    const id = await requested(one);
    let seen = 0;
    const look = async (): Promise<void> => {
      seen = (await two.approvals.list(BOB)).length;
    };
    await until(() => {
      void look();
      return seen === 1;
    });
    await approve(two, id);
    const calls = await Promise.allSettled([one, two, one, two].map((at) => pay(at, { amount: 5 })));
    expect(calls.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(one.ran.length + two.ran.length).toBe(1);
    expect(await rejection(approve(one, id))).toMatchObject({ code: "NOT_FOUND" });
  });

  it("wake a call that is held at another replica", async () => {
    const [one, two] = [await open(60_000), await open()];
    const running = pay(one, { amount: 6 });
    await until(() => one.asked.length === 1);
    await approve(two, one.asked[0]?.[0].id ?? "");
    expect((await running).data).toEqual({ amount: 6 });
  });
});
