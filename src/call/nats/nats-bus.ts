import type { Msg, NatsConnection, NodeConnectionOptions, Subscription } from "@nats-io/transport-node";
import { Listeners } from "../../core/collections/listeners.ts";
import { endsWithin } from "../../core/execution/cancellation.ts";
import type { ObservableBus } from "../bus.ts";
import type { Transport, TransportMessage, TransportSubscription } from "../wire/transport.ts";
import { createWireBus, type WireBusOptions } from "../wire/wire-bus.ts";
import { connect, createInbox, errors } from "./nats-packages.ts";

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

const NO_RESPONDERS = 503;
const DEFAULT_MESSAGE_BYTES = 1024 * 1024;

/** Milliseconds the broker has to take notice when this side leaves. */
const GOODBYE_MS = 5_000;

interface NatsTransportOptions {
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
  readonly servicePrefix = "$SRV";
  readonly #connection: NatsConnection;
  readonly #closesConnection: boolean;
  readonly #outgoing: Outgoing;
  readonly #incoming = new Incoming<Msg>();
  readonly #status: AsyncIterable<{ readonly type: string }> & { stop?(): void };
  readonly #subscriptions = new Set<Subscription>();
  readonly #disconnectListeners = new Listeners();
  readonly #reconnectListeners = new Listeners();
  readonly #closedListeners = new Listeners();
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
    let isStopped = false;
    const hear = (message: Msg) => {
      if (!isStopped) listener(toMessage(message));
    };
    const subscription = this.#connection.subscribe(subject, {
      ...(queue !== undefined && { queue }),
      callback: (error, message) => {
        if (error === null) this.#incoming.add(message, hear);
        else refusal ??= error;
      },
    });
    this.#subscriptions.add(subscription);
    const stop = () => {
      isStopped = true;
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
      const forget = this.#closedListeners.add(() => reject(new errors.ClosedConnectionError()));
      const end = () => {
        forget();
        this.#incoming.handAll();
      };
      flushAll(this.#connection).finally(end).then(resolve, reject);
    });
  }

  onDisconnect(listener: () => void): () => void {
    return this.#disconnectListeners.add(listener);
  }

  onReconnect(listener: () => void): () => void {
    return this.#reconnectListeners.add(listener);
  }

  onClosed(listener: () => void): () => void {
    return this.#closedListeners.add(listener);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#outgoing.send();
    this.#incoming.clear();
    this.#isClosed = true;
    this.#status.stop?.();
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#subscriptions.clear();
    this.#disconnectListeners.clear();
    this.#reconnectListeners.clear();
    if (this.#connection.isClosed()) return;
    if (this.#closesConnection) await closeInOrder(this.#connection, this.#isUp);
    // Or requests would still come here, where nobody hears them.
    else if (this.#isUp) await endsWithin(GOODBYE_MS, this.#connection.flush());
  }

  async #follow(): Promise<void> {
    for await (const { type } of this.#status) {
      if (type === "disconnect") this.#lose();
      else if (type === "reconnect") this.#regain();
    }
  }

  #lose(): void {
    this.#isUp = false;
    this.#incoming.handAll();
    this.#outgoing.hold();
    this.#disconnectListeners.tell();
  }

  #regain(): void {
    this.#isUp = true;
    this.#outgoing.release();
    this.#reconnectListeners.tell();
  }

  #end(): void {
    this.#isUp = false;
    this.#incoming.handAll();
    this.#closedListeners.tell();
  }

  /** Without a connection there is nothing on its way, and no answer to wait for. */
  async #drain(subscription: Subscription, stop: () => void): Promise<void> {
    if (!this.isConnected || subscription.isClosed()) return stop();
    try {
      await subscription.drain();
      this.#incoming.handAll();
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
  if (isUp) await endsWithin(GOODBYE_MS, connection.drain());
  await connection.close();
}

function toMessage({ subject, data, reply, headers }: Msg): TransportMessage {
  const isUndelivered = data.length === 0 && headers?.code === NO_RESPONDERS;
  return { subject, data, replyTo: reply === "" ? undefined : reply, isUndelivered };
}

/** Bytes of messages that are handed over at a time, and of those that may wait. */
const HANDED_BYTES = 24 * 1024;
const WAITING_BYTES = 64 * 1024;

/** What a message counts beside its data. */
const AROUND_BYTES = 64;

interface Received<M> {
  readonly message: M;
  readonly bytes: number;
  hear(message: M): void;
}

/**
 * Hands over messages that arrived together in several goes, in their order, and lets what comes of one go leave before the next one.
 * Otherwise one end of many calls waits while the other works on all of them, and two processors do no more than one.
 */
export class Incoming<M extends Pick<Msg, "data">> {
  readonly #waiting: Received<M>[] = [];
  #waitingBytes = 0;
  /** Bytes that were handed over since the last promise went on. */
  #handed = 0;
  #isScheduled = false;

  add(message: M, hear: (message: M) => void): void {
    const bytes = message.data.length + AROUND_BYTES;
    if (this.#waiting.length === 0 && this.#handed < HANDED_BYTES) {
      // What arrived together is added before any promise goes on.
      if (this.#handed === 0) queueMicrotask(this.#forgetHanded);
      this.#handed += bytes;
      hear(message);
      return;
    }
    this.#waiting.push({ message, bytes, hear });
    this.#waitingBytes += bytes;
    if (this.#waitingBytes > WAITING_BYTES) this.handAll();
    else this.#schedule();
  }

  /** Hands over what waits, now. */
  handAll(): void {
    this.#hand(Number.POSITIVE_INFINITY);
  }

  /** Drops what waits. */
  clear(): void {
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
  }

  #hand(most: number): void {
    for (let handed = 0; handed < most; ) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      handed += next.bytes;
      this.#waitingBytes -= next.bytes;
      next.hear(next.message);
    }
    if (this.#waiting.length > 0) this.#schedule();
  }

  /** An immediate comes after ticks and promises, and after messages that can be read by now. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#handNext);
  }

  readonly #forgetHanded = () => {
    this.#handed = 0;
  };

  readonly #handNext = () => {
    this.#isScheduled = false;
    this.#hand(HANDED_BYTES);
  };
}

type Message = readonly [subject: string, data: Uint8Array, replyTo: string | undefined];

/** Messages and bytes that are kept for a connection to come back; what is over that is dropped, the newest first. */
const HELD_MESSAGES = 50_000;
const HELD_BYTES = 64 * 1024 * 1024;

/**
 * Hands messages to a connection together. It writes to its socket as soon as it is given one, and answers to calls that arrived
 * together become ready one after the other: each would be a write of its own, which costs more than all the rest.
 *
 * While the connection is lost they are kept here, for it would forget them.
 */
export class Outgoing {
  readonly #connection: Pick<NatsConnection, "publish">;
  #waiting: Message[] = [];
  #bytes = 0;
  #isHeld = false;

  constructor(connection: Pick<NatsConnection, "publish">) {
    this.#connection = connection;
  }

  add(subject: string, data: Uint8Array, replyTo: string | undefined): void {
    if (this.#isHeld) {
      if (this.#waiting.length >= HELD_MESSAGES || this.#bytes + data.length > HELD_BYTES) return;
    } else if (this.#waiting.length === 0) {
      // Runs when no promise that is ready has anything left to do.
      process.nextTick(() => this.send());
    }
    this.#waiting.push([subject, data, replyTo]);
    this.#bytes += data.length;
  }

  /** Sends nothing until released. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    this.send();
  }

  send(): void {
    if (this.#isHeld) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    for (const message of waiting) this.#publish(message);
  }

  #publish([subject, data, replyTo]: Message): void {
    try {
      this.#connection.publish(subject, data, replyTo === undefined ? undefined : { reply: replyTo });
    } catch {
      // Closed or about to be, or a broker that takes less than before: those who wait notice by themselves.
    }
  }
}
