import type { NatsConnection } from "@nats-io/transport-node";
import { afterAll, beforeAll } from "vitest";
import { type NatsServer, natsSuite, startNats } from "../../../test/nats-server.ts";
import { describeSessionEventLog } from "../../../test/session-event-log-contract.ts";
import { connect } from "../../call/nats/nats-packages.ts";
import { openJetStreamState } from "../state/jetstream-state-store.ts";
import { ReplicaLease } from "../state/replica-lease.ts";
import { StateEventLog } from "./state-event-log.ts";

natsSuite("on JetStream", () => {
  let broker: NatsServer;
  const opened: (() => Promise<void>)[] = [];
  let spaces = 0;

  beforeAll(async () => {
    broker = await startNats({ jetstream: true });
  });
  afterAll(async () => {
    for (const close of opened.reverse()) await close();
    await broker.stop();
  });

  /** The log of one replica, on a connection of its own. */
  const join = async (space: string, replica: string) => {
    const connection: NatsConnection = await connect({ servers: broker.url });
    const store = await openJetStreamState(connection, { space });
    const lease = new ReplicaLease(store, { replica });
    const log = new StateEventLog({ collection: "streams", shared: () => ({ store, lease }) });
    opened.push(async () => {
      await log.close();
      await lease.close();
      await store.close();
      await connection.close();
    });
    return log;
  };

  describeSessionEventLog("JetStream", async () => {
    const space = `space ${++spaces}`;
    return { writer: await join(space, "aaaaaaaa"), reader: await join(space, "bbbbbbbb") };
  });
});
