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
  const { maxMessageBytes = 1024 * 1024, broker = new MemoryBroker() } = options;
  const removals = new Set<() => void>();
  const closedListeners = new Set<() => void>();
  let isOpen = true;
  return {
    maxMessageBytes,
    get isConnected() {
      return isOpen;
    },
    inbox: `_inbox.${crypto.randomUUID()}`,
    publish(subject, data, replyTo) {
      if (data.length > maxMessageBytes)
        throw new RangeError("The message is larger than the transport carries.");
      if (isOpen) broker.publish({ subject, data, replyTo });
    },
    subscribe(subject, hear, queue): TransportSubscription {
      const remove = broker.add({ parts: subject.split("."), queue, hear });
      removals.add(remove);
      const stop = () => {
        remove();
        removals.delete(remove);
      };
      return {
        stop,
        async drain() {
          await new Promise((resolve) => setTimeout(resolve));
          stop();
        },
      };
    },
    // Microtasks, so whatever was published has been delivered when a timer fires.
    flush: () => new Promise((resolve) => setTimeout(resolve)),
    onReconnect: () => () => {},
    onClosed(listener) {
      closedListeners.add(listener);
      return () => void closedListeners.delete(listener);
    },
    async close() {
      if (!isOpen) return;
      isOpen = false;
      for (const remove of removals) remove();
      for (const listener of [...closedListeners]) listener();
    },
  };
}

function matches(pattern: readonly string[], parts: readonly string[]): boolean {
  return pattern.length === parts.length && pattern.every((part, at) => part === "*" || part === parts[at]);
}
