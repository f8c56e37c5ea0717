import type { Transport, TransportMessage, TransportSubscription } from "./transport.ts";

interface Listener {
  readonly parts: readonly string[];
  readonly queue: string | undefined;
  readonly hear: (message: TransportMessage) => void;
}

/** What the transports of one process share: the same thing as a broker, without one. */
export class MemoryBroker {
  readonly #listeners = new Set<Listener>();
  #turn = 0;

  add(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Delivers later, as a network does; a copy, so that nobody sees what a sender does to its buffer afterwards. */
  publish(message: TransportMessage): void {
    const copy = { ...message, data: message.data.slice() };
    queueMicrotask(() => this.#deliver(copy));
  }

  #deliver(message: TransportMessage): void {
    const parts = message.subject.split(".");
    const matching = [...this.#listeners].filter((listener) => matches(listener.parts, parts));
    const queues = new Map<string, Listener[]>();
    for (const listener of matching) {
      if (listener.queue === undefined) listener.hear(message);
      else queues.set(listener.queue, [...(queues.get(listener.queue) ?? []), listener]);
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
  readonly #closedListeners = new Set<() => void>();
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
    this.#closedListeners.add(listener);
    return () => void this.#closedListeners.delete(listener);
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const remove of this.#removals) remove();
    for (const listener of [...this.#closedListeners]) listener();
  }
}

function matches(pattern: readonly string[], parts: readonly string[]): boolean {
  return pattern.length === parts.length && pattern.every((part, at) => part === "*" || part === parts[at]);
}
