import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeIdempotencyStore } from "../../../test/idempotency-store-contract.ts";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { createKeys } from "../../../test/state-keys.ts";
import { describeStateStore } from "../../../test/state-store-contract.ts";
import { connect } from "../../call/nats/nats-packages.ts";
import { openJetStreamState } from "./jetstream-state-store.ts";
import type { StateStore } from "./state-store.ts";

natsSuite("on JetStream", () => {
  let broker: NatsServer;
  let store: StateStore;
  let ahead = 0;
  let connection: NatsConnection;
  let spaces = 0;
  const opened: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    broker = await startNats({ jetstream: true });
    connection = await connect({ servers: broker.url });
    store = await openJetStreamState(connection, { space: "contract", now: () => Date.now() + ahead });
    opened.push(() => store.close());
  });
  afterAll(async () => {
    for (const close of opened) await close();
    await connection.close();
    await broker.stop();
  });

  describeStateStore("JetStream", async () => ({
    store,
    advance: (ms) => {
      ahead += ms;
    },
  }));

  it("is open when it knows what was there, however much is replaced meanwhile", async () => {
    const write = {
      expiresAt: Date.now() + 60_000,
      bounds: { records: 1e6, bytes: 1e9, ownRecords: 1e6, ownBytes: 1e9 },
    };
    const nameOf = (n: number) => ({ collection: "busy", owner: "ann", key: String(n % 50) });
    let isOver = false;
    const replace = async (): Promise<void> => {
      for (let n = 0; !isOver; n++) {
        const found = await store.get(nameOf(n));
        if (found === undefined) await store.create(nameOf(n), new Uint8Array(1), write);
        else await store.update(nameOf(n), found.revision, new Uint8Array(1), write);
      }
    };
    const writers = Array.from({ length: 8 }, replace);
    for (let opens = 0; opens < 10; opens++) {
      const other = await openJetStreamState(connection, { space: "contract" });
      opened.push(() => other.close());
    }
    isOver = true;
    // What is replaced once more is delivered; nothing is from now on, and who opens waits for nothing.
    await Promise.all(writers);
    const last = await openJetStreamState(connection, { space: "contract" });
    opened.push(() => last.close());
    expect(await last.get(nameOf(0))).toBeDefined();
  });

  describeIdempotencyStore("JetStream", async () => {
    const now = (): number => performance.timeOrigin + performance.now();
    const state = await openJetStreamState(connection, { space: `keys ${++spaces}`, now });
    const keys = createKeys(state, "a");
    opened.push(async () => {
      await keys.close();
      await state.close();
    });
    return keys.keys;
  });
});
