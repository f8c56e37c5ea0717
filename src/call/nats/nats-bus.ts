import { connect, type NatsConnection, type NodeConnectionOptions } from "@nats-io/transport-node";
import type { ObservableBus } from "../bus.ts";
import { createWireBus, type WireBusOptions } from "../wire/wire-bus.ts";
import { createNatsTransport } from "./nats-transport.ts";

/** A bus on NATS, and the connection it uses. */
export interface NatsBus extends ObservableBus {
  readonly connection: NatsConnection;
}

/** How a bus uses NATS. */
export interface NatsBusOptions extends WireBusOptions {
  /** What the subjects of replies begin with; one for each user where permissions keep users apart. @default "_INBOX" */
  readonly inboxPrefix?: string | undefined;
}

/** Makes a bus of a connection that is there already; closing the bus leaves the connection open. */
export function createNatsBus(connection: NatsConnection, options: NatsBusOptions = {}): NatsBus {
  return busOn(connection, options, false);
}

/**
 * Connects to NATS, with the options of its own client; closing the bus closes the connection. A connection that is lost is made
 * again however long that takes, unless `maxReconnectAttempts` says otherwise.
 */
export async function connectNatsBus(
  connectionOptions: NodeConnectionOptions = {},
  options: NatsBusOptions = {},
): Promise<NatsBus> {
  const { inboxPrefix } = connectionOptions;
  const connection = await connect({ maxReconnectAttempts: -1, ...connectionOptions });
  try {
    return busOn(connection, { inboxPrefix, ...options }, true);
  } catch (thrown) {
    await connection.close();
    throw thrown;
  }
}

function busOn(connection: NatsConnection, options: NatsBusOptions, closesConnection: boolean): NatsBus {
  const { inboxPrefix } = options;
  const transport = createNatsTransport(connection, { closesConnection, inboxPrefix });
  try {
    return Object.assign(createWireBus(transport, options), { connection });
  } catch (thrown) {
    void transport.close();
    throw thrown;
  }
}
