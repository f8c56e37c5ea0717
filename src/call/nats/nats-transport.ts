import type { Msg, NatsConnection, Subscription } from "@nats-io/transport-node";
import { createInbox, errors } from "@nats-io/transport-node";
import type { Transport, TransportMessage, TransportSubscription } from "../wire/transport.ts";
import { Outgoing } from "./outgoing.ts";

const NO_RESPONDERS = 503;
const DEFAULT_MESSAGE_BYTES = 1024 * 1024;

/** Milliseconds the broker has to take notice when this side leaves. */
const GOODBYE_MS = 5_000;

/** How a connection is used. */
export interface NatsTransportOptions {
  /** Closing the transport closes the connection. */
  readonly closesConnection: boolean;
  /** What the subjects of replies begin with. @default "_INBOX" */
  readonly inboxPrefix?: string | undefined;
}

/** Makes a connection to NATS carry a bus. */
export function createNatsTransport(connection: NatsConnection, options: NatsTransportOptions): Transport {
  return new NatsTransport(connection, options);
}

class NatsTransport implements Transport {
  readonly inbox: string;
  readonly #connection: NatsConnection;
  readonly #closesConnection: boolean;
  readonly #outgoing: Outgoing;
  readonly #status: AsyncIterable<{ readonly type: string }> & { stop?(): void };
  readonly #subscriptions = new Set<Subscription>();
  readonly #disconnectListeners = new Set<() => void>();
  readonly #reconnectListeners = new Set<() => void>();
  readonly #closedListeners = new Set<() => void>();
  #isUp = true;
  #isClosed = false;

  constructor(connection: NatsConnection, { closesConnection, inboxPrefix }: NatsTransportOptions) {
    this.#connection = connection;
    this.#closesConnection = closesConnection;
    this.#outgoing = new Outgoing(connection);
    this.inbox = createInbox(inboxPrefix);
    this.#status = connection.status();
    void this.#follow();
    void connection.closed().then(() => this.#end());
  }

  /** A broker that was restarted may say something else. */
  get maxMessageBytes(): number {
    return this.#connection.info?.max_payload ?? DEFAULT_MESSAGE_BYTES;
  }

  get isConnected(): boolean {
    return this.#isUp && !this.#isClosed && !this.#connection.isClosed();
  }

  publish(subject: string, data: Uint8Array, replyTo?: string): void {
    if (data.length > this.maxMessageBytes)
      throw new RangeError("The message is larger than the broker carries.");
    if (!this.#isClosed) this.#outgoing.add(subject, data, replyTo);
  }

  subscribe(
    subject: string,
    listener: (message: TransportMessage) => void,
    queue?: string,
  ): TransportSubscription {
    let refusal: Error | undefined;
    const subscription = this.#connection.subscribe(subject, {
      ...(queue !== undefined && { queue }),
      callback: (error, message) => {
        if (error === null) listener(toMessage(message));
        else refusal ??= error;
      },
    });
    this.#subscriptions.add(subscription);
    const stop = () => {
      this.#subscriptions.delete(subscription);
      subscription.unsubscribe();
    };
    return {
      get refusal() {
        return refusal;
      },
      stop,
      drain: () => this.#drain(subscription, stop),
    };
  }

  flush(): Promise<void> {
    this.#outgoing.send();
    return new Promise((resolve, reject) => {
      // A connection that closes does not tell those who wait for it.
      const forget = listenIn(this.#closedListeners, () => reject(new errors.ClosedConnectionError()));
      flushAll(this.#connection).finally(forget).then(resolve, reject);
    });
  }

  onDisconnect(listener: () => void): () => void {
    return listenIn(this.#disconnectListeners, listener);
  }

  onReconnect(listener: () => void): () => void {
    return listenIn(this.#reconnectListeners, listener);
  }

  onClosed(listener: () => void): () => void {
    return listenIn(this.#closedListeners, listener);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#outgoing.send();
    this.#isClosed = true;
    this.#status.stop?.();
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#subscriptions.clear();
    this.#disconnectListeners.clear();
    this.#reconnectListeners.clear();
    if (this.#connection.isClosed()) return;
    if (this.#closesConnection) await closeInOrder(this.#connection, this.#isUp);
    // Or requests would still come here, where nobody hears them.
    else if (this.#isUp) await withoutHanging(this.#connection.flush());
  }

  async #follow(): Promise<void> {
    for await (const { type } of this.#status) {
      if (type === "disconnect") this.#lose();
      else if (type === "reconnect") this.#regain();
    }
  }

  #lose(): void {
    this.#isUp = false;
    this.#outgoing.hold();
    for (const listener of [...this.#disconnectListeners]) listener();
  }

  #regain(): void {
    this.#isUp = true;
    this.#outgoing.release();
    for (const listener of [...this.#reconnectListeners]) listener();
  }

  #end(): void {
    this.#isUp = false;
    for (const listener of [...this.#closedListeners]) listener();
  }

  /** Without a connection there is nothing on its way, and no answer to wait for. */
  async #drain(subscription: Subscription, stop: () => void): Promise<void> {
    if (!this.isConnected || subscription.isClosed()) return stop();
    try {
      await subscription.drain();
    } catch {
      stop();
    }
    this.#subscriptions.delete(subscription);
  }
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

/** A broker that is not there cannot be said goodbye to. */
async function closeInOrder(connection: NatsConnection, isUp: boolean): Promise<void> {
  if (isUp) await withoutHanging(connection.drain());
  await connection.close();
}

/** Waits for a broker, whatever it says; one that says nothing is not waited for. */
async function withoutHanging(answer: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, GOODBYE_MS);
  });
  await Promise.race([answer.catch(() => {}), late]);
  clearTimeout(timer);
}

function toMessage({ subject, data, reply, headers }: Msg): TransportMessage {
  const isUndelivered = data.length === 0 && headers?.code === NO_RESPONDERS;
  return { subject, data, replyTo: reply === "" ? undefined : reply, isUndelivered };
}

function listenIn(listeners: Set<() => void>, listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}
