import { setTimeout as pause } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { LONGEST_DELAY, toDeadline } from "../../../core/execution/deadline.ts";
import type { AnyOperation } from "../../../core/operation/operation-types.ts";
import type { Executor } from "../../../core/registry/executor.ts";
import type { CallCounters } from "../../call-counters.ts";
import { assertWhole, type DurableWorkerOptions, readDurableOptions } from "./durable-options.ts";
import { DurableStore } from "./durable-store.ts";
import { OperationPuller } from "./operation-puller.ts";
import { RequestRunner } from "./request-runner.ts";
import { toStoreError } from "./store-error.ts";

/** How a worker leaves. */
export interface DrainOptions {
  /** Milliseconds that what runs may still take; its signal aborts then. @default 20,000 */
  readonly timeoutMs?: number | undefined;
}

/** The answering side of durable calls. */
export interface DurableWorker {
  /** What was dropped, and why; `late` counts results that came after another was stored. */
  readonly counters: CallCounters;
  /**
   * Takes no more requests, gives back what has not started, and waits for what runs. When time is up handlers are aborted:
   * an idempotent call goes to another worker, any other ends as lost.
   */
  drain(options?: DrainOptions): Promise<void>;
}

const DRAIN_MS = 20_000;
/** Milliseconds that aborted handlers have to store how they ended. */
const LAST_WORDS_MS = 5_000;

/** Serves the durable operations of an executor, those that come later too; resolves once requests are taken. */
export async function serveDurableCalls(
  connection: NatsConnection,
  executor: Executor,
  options: DurableWorkerOptions = {},
): Promise<DurableWorker> {
  const { ackWaitMs = 30_000, maxDeliver = 10, concurrency = 16, authenticate } = options;
  assertWhole("ackWaitMs", ackWaitMs, 100, 3_600_000);
  assertWhole("maxDeliver", maxDeliver, 2, 1_000);
  assertWhole("concurrency", concurrency, 1, 10_000);
  const store = await DurableStore.open(connection, readDurableOptions(options));
  const stopping = new AbortController();
  const runner = new RequestRunner(store, {
    executor,
    authenticate,
    ackWaitMs,
    maxDeliver,
    stopping: stopping.signal,
  });
  const open = (operationId: string): OperationPuller =>
    new OperationPuller(store, {
      operationId,
      ackWaitMs,
      concurrency,
      run: (message) => runner.run(message),
    });
  const worker = new Worker(store, executor, open, stopping);
  await worker.start();
  return worker;
}

class Worker implements DurableWorker {
  readonly #store: DurableStore;
  readonly #executor: Executor;
  readonly #open: (operationId: string) => OperationPuller;
  readonly #stopping: AbortController;
  readonly #pullers = new Map<string, OperationPuller>();
  /** Of operations that are gone: what they run is still waited for. */
  readonly #leaving = new Set<OperationPuller>();
  readonly #status: AsyncIterable<{ readonly type: string }> & { stop?(): void };
  #unfollow: () => void = () => {};
  #draining: Promise<void> | undefined;

  constructor(
    store: DurableStore,
    executor: Executor,
    open: (operationId: string) => OperationPuller,
    stopping: AbortController,
  ) {
    this.#store = store;
    this.#executor = executor;
    this.#open = open;
    this.#stopping = stopping;
    this.#status = store.connection.status();
  }

  get counters(): CallCounters {
    return { ...this.#store.counters };
  }

  async start(): Promise<void> {
    try {
      const starting = [...durableOperations(this.#executor)].map((id) => this.#add(id).start());
      this.#unfollow = this.#executor.onChange(() => this.#follow());
      await Promise.all(starting);
    } catch (thrown) {
      await this.drain({ timeoutMs: 0 });
      throw toStoreError(thrown);
    }
    this.#follow();
    void this.#watchConnection();
  }

  drain({ timeoutMs = DRAIN_MS }: DrainOptions = {}): Promise<void> {
    toDeadline(timeoutMs, 0);
    this.#draining ??= this.#drain(timeoutMs);
    return this.#draining;
  }

  async #drain(timeoutMs: number): Promise<void> {
    this.#unfollow();
    this.#status.stop?.();
    for (const id of [...this.#pullers.keys()]) this.#remove(id);
    const leaving = [...this.#leaving];
    const idle = Promise.all(leaving.map((puller) => puller.stop().then(() => puller.idle())));
    if (await endsWithin(idle, timeoutMs)) return;
    this.#stopping.abort();
    await endsWithin(idle, LAST_WORDS_MS);
  }

  #follow(): void {
    if (this.#draining !== undefined) return;
    const wanted = durableOperations(this.#executor);
    for (const id of [...this.#pullers.keys()]) if (!wanted.has(id)) this.#remove(id);
    for (const id of wanted) if (!this.#pullers.has(id)) this.#add(id).keepStarting();
  }

  #add(id: string): OperationPuller {
    const puller = this.#open(id);
    this.#pullers.set(id, puller);
    return puller;
  }

  #remove(id: string): void {
    const puller = this.#pullers.get(id);
    if (puller === undefined) return;
    this.#pullers.delete(id);
    this.#leaving.add(puller);
    const forget = (): void => void this.#leaving.delete(puller);
    puller.stop().then(() => puller.idle().then(forget), forget);
  }

  async #watchConnection(): Promise<void> {
    for await (const { type } of this.#status) {
      if (type === "reconnect") for (const puller of this.#pullers.values()) puller.refresh();
    }
  }
}

/** Everything external and durable, whoever may call it: access is checked when it runs. */
function durableOperations(
  executor: Executor & { readonly operations?: Iterable<AnyOperation> },
): Set<string> {
  const ids = new Set<string>();
  for (const { id, durable, type, visibility } of executor.operations ?? executor.list()) {
    if (durable === true && visibility !== "internal" && type !== "subscription") ids.add(id);
  }
  return ids;
}

async function endsWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const timer = new AbortController();
  const late = pause(Math.min(timeoutMs, LONGEST_DELAY), false, { signal: timer.signal }).catch(() => false);
  const ended = await Promise.race([work.then(() => true), late]);
  timer.abort();
  return ended;
}
