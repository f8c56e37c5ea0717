import { setTimeout as pause } from "node:timers/promises";
import {
  AckPolicy,
  type Consumer,
  type ConsumerMessages,
  DeliverPolicy,
  type JsMsg,
  ReplayPolicy,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { consumerName } from "./durable-names.ts";
import type { DurableStore } from "./durable-store.ts";

/** How requests of one operation are taken. */
export interface PullerOptions {
  readonly operationId: string;
  readonly ackWaitMs: number;
  /** Requests under way at a time. */
  readonly concurrency: number;
  /** Sees a request to its end, and never throws. */
  readonly run: (message: JsMsg) => Promise<void>;
}

/** Milliseconds one request for messages stays with the broker. */
const PULL_MS = 30_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/** Requests that all workers of an operation may hold at a time. */
const MAX_ACK_PENDING = 100_000;

/** Takes the stored requests of one operation, never more than it has room for. */
export class OperationPuller {
  readonly #store: DurableStore;
  readonly #options: PullerOptions;
  readonly #running = new Set<Promise<void>>();
  #consumer: Consumer | undefined;
  #batch: ConsumerMessages | undefined;
  #stopped = false;
  #pulling: Promise<void> | undefined;

  constructor(store: DurableStore, options: PullerOptions) {
    this.#store = store;
    this.#options = options;
  }

  /** Resolves once requests are taken, and rejects when the broker does not let them be. */
  async start(): Promise<void> {
    this.#consumer = await this.#openConsumer();
    this.keepStarting();
  }

  /** Starts without waiting, however often it takes. */
  keepStarting(): void {
    this.#pulling ??= this.#pullAll();
  }

  /** Asks the broker anew: it has forgotten what was asked before a reconnect. */
  refresh(): void {
    this.#batch?.stop();
  }

  /** Takes no more; what has not been started goes back. Resolves once that is done. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.refresh();
    await this.#pulling;
  }

  /** Resolves when nothing runs any more. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async #pullAll(): Promise<void> {
    let wait = FIRST_PAUSE_MS;
    while (!this.#stopped && !this.#store.connection.isClosed()) {
      try {
        await this.#pullOnce();
        wait = FIRST_PAUSE_MS;
      } catch {
        // The broker is away, or the consumer is: either is looked for again.
        this.#consumer = undefined;
        if (!this.#stopped) await pause(wait);
        wait = Math.min(2 * wait, LONGEST_PAUSE_MS);
      }
    }
  }

  async #pullOnce(): Promise<void> {
    const { concurrency } = this.#options;
    while (this.#running.size >= concurrency) await Promise.race(this.#running);
    this.#consumer ??= await this.#openConsumer();
    if (this.#stopped) return;
    const room = concurrency - this.#running.size;
    const batch = await this.#consumer.fetch({ max_messages: room, expires: PULL_MS });
    this.#batch = batch;
    if (this.#stopped) batch.stop();
    for await (const message of batch) this.#take(message);
  }

  #take(message: JsMsg): void {
    if (this.#stopped) {
      message.nak();
      return;
    }
    const work = this.#options.run(message).finally(() => this.#running.delete(work));
    this.#running.add(work);
  }

  async #openConsumer(): Promise<Consumer> {
    const { client, manager, names } = this.#store;
    const { operationId, ackWaitMs } = this.#options;
    const info = await manager.consumers.add(names.calls, {
      durable_name: consumerName(operationId),
      filter_subject: names.requestsOf(operationId),
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(ackWaitMs),
      deliver_policy: DeliverPolicy.All,
      replay_policy: ReplayPolicy.Instant,
      max_ack_pending: MAX_ACK_PENDING,
      // Workers give up themselves, and store that they did; a broker that gives up tells nobody.
      max_deliver: -1,
    });
    return client.consumers.getConsumerFromInfo(info);
  }
}
