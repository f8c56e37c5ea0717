import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Consumer, ConsumerMessages, JsMsg } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Identity } from "../../../core/access/identity.ts";
import { CallError, isCallError, toCallError } from "../../../core/errors/errors.ts";
import { endsWithin, monotonicNow, toDeadline } from "../../../core/execution/cancellation.ts";
import { backoffMs } from "../../../core/limits/backoff.ts";
import type { AnyOperation } from "../../../core/operation/operation-types.ts";
import type { Executor } from "../../../core/registry/executor.ts";
import type { CallRequested } from "../../call-events.ts";
import type { CallCounters } from "../../call-observer.ts";
import { namedUser } from "../../wire/subjects.ts";
import { AckPolicy, DeliverPolicy, nanos, ReplayPolicy } from "../nats-packages.ts";
import {
  consumerName,
  decodeRequest,
  type Ending,
  encodeEnding,
  type RequestAddress,
  readRecord,
  requestToken,
  writeRecord,
} from "./durable-codec.ts";
import {
  type AuthenticateStored,
  assertWhole,
  DurableStore,
  type DurableWorkerOptions,
  readDurableOptions,
  toStoreError,
} from "./durable-store.ts";

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
  assertWhole("ackWaitMs", ackWaitMs, [100, 3_600_000]);
  assertWhole("maxDeliver", maxDeliver, [2, 1_000]);
  assertWhole("concurrency", concurrency, [1, 10_000]);
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
  const worker = new Worker(store, executor, { open, stopping });
  await worker.start();
  return worker;
}

interface WorkerOptions {
  /** Makes what takes the calls of one operation. */
  readonly open: (operationId: string) => OperationPuller;
  /** Ends what runs. */
  readonly stopping: AbortController;
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

  constructor(store: DurableStore, executor: Executor, { open, stopping }: WorkerOptions) {
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
    if (await endsWithin(timeoutMs, idle)) return;
    this.#stopping.abort();
    await endsWithin(LAST_WORDS_MS, idle);
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

/** Everything external and durable, for all callers: access is checked when it runs. */
function durableOperations(
  executor: Executor & { readonly operations?: Iterable<AnyOperation> },
): Set<string> {
  const ids = new Set<string>();
  for (const { id, durable, type, visibility } of executor.operations ?? executor.list()) {
    if (durable === true && visibility !== "internal" && type !== "subscription") ids.add(id);
  }
  return ids;
}

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
class OperationPuller {
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
    let failures = 0;
    while (!this.#stopped && !this.#store.connection.isClosed()) {
      try {
        await this.#pullOnce();
        failures = 0;
      } catch {
        // The broker is away, or the consumer is: either is looked for again.
        this.#consumer = undefined;
        failures += 1;
        if (!this.#stopped) await pause(backoffMs(failures, FIRST_PAUSE_MS, LONGEST_PAUSE_MS));
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

/** What the answering side knows. */
export interface RunnerOptions {
  readonly executor: Executor;
  readonly authenticate: AuthenticateStored | undefined;
  readonly ackWaitMs: number;
  readonly maxDeliver: number;
  /** Aborts when handlers have to stop. */
  readonly stopping: AbortSignal;
}

/** How a delivery is answered: it is done, never to come again, or has to come again. */
type Answer = "ack" | "term" | "nak";

/** Milliseconds before a request that could not be dealt with comes again. */
const AGAIN_AFTER_MS = 1_000;

/** Sees stored requests to their stored end. */
class RequestRunner {
  readonly #store: DurableStore;
  readonly #options: RunnerOptions;
  readonly #marks: StartMarks;
  readonly #running = new Map<string, Promise<Answer>>();

  constructor(store: DurableStore, options: RunnerOptions) {
    this.#store = store;
    this.#options = options;
    this.#marks = new StartMarks(store);
  }

  /** Deals with one delivery and answers the broker, only once the ending is stored; never throws. */
  async run(message: JsMsg): Promise<void> {
    const beat = setInterval(() => attempt(() => message.working()), this.#options.ackWaitMs / 3);
    let answer: Answer = "nak";
    try {
      answer = await this.#settle(message);
    } catch {
      // Nothing was stored; the next delivery finds out how far this one came.
    } finally {
      clearInterval(beat);
    }
    attempt(() => {
      if (answer === "nak") message.nak(AGAIN_AFTER_MS);
      else message[answer]();
    });
  }

  /** A request that came again while it runs here waits for that run instead of making a second one. */
  async #settle(message: JsMsg): Promise<Answer> {
    const address = this.#store.names.parseRequest(message.subject);
    if (address === undefined) return "term";
    const { subject } = message;
    let again = message.info.deliveryCount > 1;
    for (let before = this.#running.get(subject); before !== undefined; before = this.#running.get(subject)) {
      await before.catch(() => undefined);
      again = true;
    }
    const work = this.#conclude(message, address, again);
    this.#running.set(subject, work);
    try {
      return await work;
    } finally {
      this.#running.delete(subject);
    }
  }

  async #conclude(message: JsMsg, address: RequestAddress, again: boolean): Promise<Answer> {
    const { executor, maxDeliver } = this.#options;
    if (again && (await this.#marks.hasEnded(address, this.#until()))) return "ack";
    if (message.info.deliveryCount >= maxDeliver) return this.#end(address, gaveUp(maxDeliver));
    const request = await this.#read(message, address);
    if (request === undefined) {
      await this.#end(address, unreadable());
      return "term";
    }
    const operation = executor.get(address.operationId);
    // Taken away a moment ago: somebody else may have it.
    if (operation?.durable !== true) return "nak";
    const who = await this.#authenticate(request, address, message.time);
    if ("error" in who) return this.#end(address, who.error);
    const idempotent = operation.annotations?.idempotent === true;
    if (!idempotent) {
      const mark = await this.#marks.start(address, message.seq, this.#until());
      if (mark === "ended") return "ack";
      if (mark === "lost") return this.#end(address, lost());
      if (mark === "foreign") return "term";
    }
    return this.#execute(request, address, { identity: who.identity, idempotent });
  }

  async #read(
    message: JsMsg,
    { user, operationId, token }: RequestAddress,
  ): Promise<CallRequested | undefined> {
    const store = this.#store;
    const { names, counters } = store;
    const { headers, data } = message;
    const head = { stream: names.calls, headers, data, partSubject: names.requestParts(user, token) };
    const body = await readRecord(store, head, this.#until());
    if (typeof body === "string") {
      counters[body] += 1;
      return undefined;
    }
    const request = decodeRequest(body);
    if (request === undefined) {
      counters.malformed += 1;
      return undefined;
    }
    // What the broker has checked is the subject; a body that says something else does not count.
    if (request.operationId === operationId && requestToken(user, request.requestId) === token)
      return request;
    counters.forged += 1;
    return undefined;
  }

  async #authenticate(
    request: CallRequested,
    { user }: RequestAddress,
    at: Date,
  ): Promise<{ readonly identity: Identity | undefined } | { readonly error: CallError }> {
    try {
      return { identity: await this.#options.authenticate?.({ request, user: namedUser(user) }, at) };
    } catch (thrown) {
      if (!isCallError(thrown))
        return { error: new CallError("UNAUTHENTICATED", undefined, { cause: thrown }) };
      if (thrown.retryable) throw thrown;
      return { error: thrown };
    }
  }

  async #execute(
    request: CallRequested,
    address: RequestAddress,
    { identity, idempotent }: { readonly identity: Identity | undefined; readonly idempotent: boolean },
  ): Promise<Answer> {
    const { executor, stopping } = this.#options;
    const { requestId, operationId, metadata, depth, parent } = request;
    let ending: Ending;
    try {
      const envelope = await executor.execute(operationId, request.input, {
        identity,
        requestId,
        metadata,
        signal: stopping,
        timeoutMs: this.#store.settings.limits.deadlineMs,
        ...(depth !== undefined && { origin: { depth, parent } }),
      });
      ending = { envelope };
    } catch (thrown) {
      if (stopping.aborted && idempotent) return "nak";
      ending = { error: stopping.aborted ? lost() : toCallError(thrown) };
    }
    return this.#storeEnding(ending, address);
  }

  #end(address: RequestAddress, error: CallError): Promise<Answer> {
    return this.#storeEnding({ error }, address);
  }

  async #storeEnding(ending: Ending, { user, token }: RequestAddress): Promise<Answer> {
    const { names, settings, counters } = this.#store;
    const data = encodeEnding(ending, settings.limits.messageBytes);
    const place = { stream: names.results, subject: names.end(user, token), nonce: randomUUID() };
    const head = { ...place, data, partSubject: names.resultParts(user, token) };
    // For as long as it takes: the handler has run, and only this tells.
    const put = await writeRecord(this.#store, head, Number.POSITIVE_INFINITY);
    if (put.kind === "taken") counters.late += 1;
    return "ack";
  }

  #until(): number {
    return monotonicNow() + this.#options.ackWaitMs;
  }
}

/** A connection that has closed throws; the broker then delivers again by itself. */
function attempt(answer: () => void): void {
  try {
    answer();
  } catch {
    // Nobody is there to be answered.
  }
}

function gaveUp(deliveries: number): CallError {
  const message = `The call was given up after ${deliveries} deliveries; no worker could see it through.`;
  return new CallError("UNAVAILABLE", message, { retryable: false, stack: false });
}

function unreadable(): CallError {
  return new CallError("VALIDATION_ERROR", "What was stored as a request is not one.", { stack: false });
}

function lost(): CallError {
  const message = "The worker was lost while running the call; whether it took effect is unknown.";
  return new CallError("UNAVAILABLE", message, { retryable: false, stack: false });
}

/**
 * Whether a handler may start: it may, the call has ended, somebody started it and was not heard of again, or the mark belongs to
 * another request under the same id.
 */
export type StartMark = "started" | "ended" | "lost" | "foreign";

/** Starts whose mark may or may not be stored. */
const MAX_UNSURE = 10_000;

/** Marks what has been started, so that no handler runs twice. */
export class StartMarks {
  readonly #store: DurableStore;
  /** Nonces of marks that were not acknowledged: found in the store later, they are ours and nothing ran. */
  readonly #unsure = new Map<string, string>();

  constructor(store: DurableStore) {
    this.#store = store;
  }

  /** Tells whether a call has its ending. */
  async hasEnded({ user, token }: RequestAddress, until: number): Promise<boolean> {
    const { names } = this.#store;
    return (await this.#store.last(names.results, names.end(user, token), until)) !== undefined;
  }

  /** Stores that a request is started; throws when that is not certain, and nothing may run then. */
  async start(address: RequestAddress, sequence: number, until: number): Promise<StartMark> {
    const { names } = this.#store;
    const subject = names.start(address.user, address.token);
    const nonce = this.#unsure.get(subject) ?? randomUUID();
    this.#remember(subject, nonce);
    const data = new TextEncoder().encode(String(sequence));
    const put = await this.#store.put({ stream: names.results, subject, data, nonce }, until);
    this.#unsure.delete(subject);
    if (put.kind !== "taken") return "started";
    if (put.by.string() !== String(sequence)) {
      this.#store.counters.forged += 1;
      return "foreign";
    }
    return (await this.hasEnded(address, until)) ? "ended" : "lost";
  }

  #remember(subject: string, nonce: string): void {
    this.#unsure.set(subject, nonce);
    if (this.#unsure.size <= MAX_UNSURE) return;
    const [oldest] = this.#unsure.keys();
    if (oldest !== undefined) this.#unsure.delete(oldest);
  }
}
