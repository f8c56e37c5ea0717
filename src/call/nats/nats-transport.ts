import type { Msg, NatsConnection } from "@nats-io/transport-node";
import { createInbox, errors } from "@nats-io/transport-node";
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
  const outgoing = new Outgoing(connection);
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
      if (data.length > maxMessageBytes)
        throw new RangeError("The message is larger than the broker carries.");
      outgoing.add(subject, data, replyTo);
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
    flush: () => {
      outgoing.send();
      return new Promise((resolve, reject) => {
        // A connection that closes does not tell those who wait for it.
        const forget = listenIn(closedListeners, () => reject(new errors.ClosedConnectionError()));
        flushAll(connection).finally(forget).then(resolve, reject);
      });
    },
    onReconnect: (listener) => listenIn(reconnectListeners, listener),
    onClosed: (listener) => listenIn(closedListeners, listener),
    async close() {
      outgoing.send();
      if (closesConnection && !connection.isClosed()) await connection.drain();
    },
  };
}

/** A connection that is lost meanwhile is waited for: what it was sent is gone then, and its subscriptions are made again. */
async function flushAll(connection: NatsConnection): Promise<void> {
  for (;;) {
    try {
      return await connection.flush();
    } catch (thrown) {
      if (!(thrown instanceof errors.RequestError) || connection.isClosed()) throw thrown;
    }
  }
}

function toMessage({ subject, data, reply, headers }: Msg): TransportMessage {
  const isUndelivered = data.length === 0 && headers?.code === NO_RESPONDERS;
  return { subject, data, replyTo: reply === "" ? undefined : reply, isUndelivered };
}

function listenIn(listeners: Set<() => void>, listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/**
 * Hands messages to the connection together. It writes to its socket as soon as it is given one, and answers to calls that arrived
 * together become ready one after the other: each would be a write of its own, which costs more than all the rest.
 */
class Outgoing {
  readonly #connection: NatsConnection;
  #waiting: [subject: string, data: Uint8Array, replyTo: string | undefined][] = [];

  constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  add(subject: string, data: Uint8Array, replyTo: string | undefined): void {
    // Runs when no promise that is ready has anything left to do.
    if (this.#waiting.length === 0) process.nextTick(() => this.send());
    this.#waiting.push([subject, data, replyTo]);
  }

  send(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      for (const [subject, data, replyTo] of waiting) {
        this.#connection.publish(subject, data, replyTo === undefined ? undefined : { reply: replyTo });
      }
    } catch {
      // Closed, or about to be: nobody can be told any more, and those who wait notice by themselves.
    }
  }
}
