import { Listeners } from "../../core/collections/listeners.ts";

/** One message as a transport delivers it. */
export interface TransportMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  /** Where an answer is expected. */
  readonly replyTo?: string | undefined;
  /**
   * Not a message at all: the transport itself says, on the subject a message named as its `replyTo`, that nobody took that message.
   * Calls that nobody answers fail at once by it; a transport that cannot tell lets them run into their deadline.
   */
  readonly isUndelivered?: boolean | undefined;
}

/** Listening to a subject. */
export interface TransportSubscription {
  /** Why the broker does not let this side listen; known after a flush. */
  readonly refusal?: Error | undefined;
  /** Hears nothing more, at once. */
  stop(): void;
  /** Takes no more messages; resolves when those on their way have been heard. */
  drain(): Promise<void>;
}

/**
 * Carries bytes between subjects, which are names in parts divided by dots; when subscribing, a part may be `*`. Everybody who
 * subscribes gets a copy of a message, except that of those in a queue one does. Messages from one sender to one receiver keep their
 * order, and none arrives twice.
 *
 * A transport that loses its connection makes it again by itself, and its subscriptions with it.
 */
export interface Transport {
  /** Bytes one message may hold. */
  readonly maxMessageBytes: number;
  /** Whether messages can be sent right now. */
  readonly isConnected: boolean;
  /**
   * A subject that only this side listens to, with one part to be added. Its own last part is unique to this connection: others know
   * this side by it. (`{inbox}-services.*` is listened to as well.)
   */
  readonly inbox: string;
  /** What the subjects of the broker's own service protocol begin with: services answer it. @default there is none */
  readonly servicePrefix?: string | undefined;
  /** Throws a `RangeError` for more than `maxMessageBytes`, and nothing else; what is sent without a connection is kept for a while or lost. */
  publish(subject: string, data: Uint8Array, replyTo?: string): void;
  subscribe(
    subject: string,
    listener: (message: TransportMessage) => void,
    queue?: string,
  ): TransportSubscription;
  /** Resolves when everything published or subscribed so far is known to the broker. */
  flush(): Promise<void>;
  /** Hears when messages cannot be sent any more; returns how to stop listening. */
  onDisconnect(listener: () => void): () => void;
  /** Hears when they can again; returns how to stop listening. */
  onReconnect(listener: () => void): () => void;
  /** Hears when the connection is gone for good; returns how to stop listening. */
  onClosed(listener: () => void): () => void;
  /** Stops listening and sending, for good. */
  close(): Promise<void>;
}

interface Subscriber {
  readonly parts: readonly string[];
  readonly queue: string | undefined;
  readonly hear: (message: TransportMessage) => void;
}

/** What the transports of one process share: the same thing as a broker, without one. */
export class MemoryBroker {
  readonly #subscribers = new Set<Subscriber>();
  #turn = 0;

  add(subscriber: Subscriber): () => void {
    this.#subscribers.add(subscriber);
    return () => void this.#subscribers.delete(subscriber);
  }

  /** Delivers later, as a network does; a copy, so that nobody sees what a sender does to its buffer afterwards. */
  publish(message: TransportMessage): void {
    const copy = { ...message, data: message.data.slice() };
    queueMicrotask(() => this.#deliver(copy));
  }

  #deliver(message: TransportMessage): void {
    const parts = message.subject.split(".");
    const matching = [...this.#subscribers].filter((subscriber) => matches(subscriber.parts, parts));
    const queues = new Map<string, Subscriber[]>();
    for (const subscriber of matching) {
      if (subscriber.queue === undefined) subscriber.hear(message);
      else queues.set(subscriber.queue, [...(queues.get(subscriber.queue) ?? []), subscriber]);
    }
    for (const members of queues.values()) members[this.#turn++ % members.length]?.hear(message);
    if (matching.length === 0 && message.replyTo !== undefined) {
      this.publish({ subject: message.replyTo, data: new Uint8Array(), isUndelivered: true });
    }
  }
}

/** How a transport within one process behaves. */
export interface MemoryTransportOptions {
  /** Bytes one message may hold. @default 1 MiB */
  readonly maxMessageBytes?: number | undefined;
  /** @default one of its own */
  readonly broker?: MemoryBroker | undefined;
}

/** Makes one connection to a broker within this process. */
export function createMemoryTransport(options: MemoryTransportOptions = {}): Transport {
  return new MemoryTransport(options);
}

class MemoryTransport implements Transport {
  readonly inbox = `_inbox.${crypto.randomUUID()}`;
  readonly maxMessageBytes: number;
  readonly #broker: MemoryBroker;
  readonly #removals = new Set<() => void>();
  readonly #closedListeners = new Listeners();
  #isOpen = true;

  constructor({ maxMessageBytes = 1024 * 1024, broker = new MemoryBroker() }: MemoryTransportOptions) {
    this.maxMessageBytes = maxMessageBytes;
    this.#broker = broker;
  }

  get isConnected(): boolean {
    return this.#isOpen;
  }

  publish(subject: string, data: Uint8Array, replyTo?: string): void {
    if (data.length > this.maxMessageBytes) {
      throw new RangeError("The message is larger than the transport carries.");
    }
    if (this.#isOpen) this.#broker.publish({ subject, data, replyTo });
  }

  subscribe(
    subject: string,
    hear: (message: TransportMessage) => void,
    queue?: string,
  ): TransportSubscription {
    const remove = this.#broker.add({ parts: subject.split("."), queue, hear });
    this.#removals.add(remove);
    const stop = () => {
      remove();
      this.#removals.delete(remove);
    };
    const drain = async () => {
      await this.flush();
      stop();
    };
    return { stop, drain };
  }

  /** Messages are delivered by microtasks, so that all have been when a timer fires. */
  flush(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve));
  }

  onDisconnect(): () => void {
    return () => {};
  }

  onReconnect(): () => void {
    return () => {};
  }

  onClosed(listener: () => void): () => void {
    return this.#closedListeners.add(listener);
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const remove of this.#removals) remove();
    this.#closedListeners.tell();
  }
}

function matches(pattern: readonly string[], parts: readonly string[]): boolean {
  return pattern.length === parts.length && pattern.every((part, at) => part === "*" || part === parts[at]);
}
