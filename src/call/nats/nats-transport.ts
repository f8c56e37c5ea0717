import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { createInbox } from "@nats-io/transport-node";
import type { Transport, TransportMessage } from "../wire/transport.ts";

const NO_RESPONDERS = 503;

/** How a connection is used. */
export interface NatsTransportOptions {
  /** Closing the transport closes the connection. */
  readonly closesConnection: boolean;
  /** What the subjects of replies begin with. @default "_INBOX" */
  readonly inboxPrefix?: string | undefined;
}

/** Makes a connection to NATS carry a bus. */
export function createNatsTransport(
  connection: NatsConnection,
  { closesConnection, inboxPrefix }: NatsTransportOptions,
): Transport {
  const { max_payload: maxMessageBytes = 1024 * 1024 } = connection.info ?? {};
  const reconnectListeners = new Set<() => void>();
  const closedListeners = new Set<() => void>();
  let isConnected = true;

  void (async () => {
    for await (const { type } of connection.status()) {
      if (type === "disconnect") isConnected = false;
      if (type !== "reconnect") continue;
      isConnected = true;
      for (const listener of [...reconnectListeners]) listener();
    }
  })();
  void connection.closed().then(() => {
    isConnected = false;
    for (const listener of [...closedListeners]) listener();
  });

  return {
    maxMessageBytes,
    get isConnected() {
      return isConnected && !connection.isClosed();
    },
    inbox: createInbox(inboxPrefix),
    publish(subject, data, replyTo) {
      if (connection.isClosed()) return;
      connection.publish(subject, data, replyTo === undefined ? undefined : { reply: replyTo });
    },
    subscribe(subject, listener, queue) {
      const subscription = connection.subscribe(subject, {
        ...(queue !== undefined && { queue }),
        callback: (error, message) => {
          if (error === null) listener(toMessage(message));
        },
      });
      return {
        stop: () => subscription.unsubscribe(),
        drain: async () => {
          if (!connection.isClosed()) await subscription.drain();
        },
      };
    },
    flush: () => connection.flush(),
    onReconnect: (listener) => listenIn(reconnectListeners, listener),
    onClosed: (listener) => listenIn(closedListeners, listener),
    async close() {
      if (closesConnection && !connection.isClosed()) await connection.drain();
    },
  };
}

function toMessage({ subject, data, reply, headers }: Msg): TransportMessage {
  const isUndelivered = data.length === 0 && headers?.code === NO_RESPONDERS;
  return { subject, data, replyTo: reply === "" ? undefined : reply, isUndelivered };
}

function listenIn(listeners: Set<() => void>, listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
