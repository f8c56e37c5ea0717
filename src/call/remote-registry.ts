import { HeldIdentity } from "../core/access/identity.ts";
import type { StartedTask, StartOptions } from "../core/client/started-task.ts";
import type { ResponseEnvelope } from "../core/envelope/envelope.ts";
import { isCallError } from "../core/errors/errors.ts";
import { CallContext, inheritFrom, taskOf } from "../core/execution/call-context.ts";
import { monotonicNow } from "../core/execution/cancellation.ts";
import { idOf } from "../core/execution/dispatch.ts";
import type { CallerTask } from "../core/operation/caller-side.ts";
import type { Metadata, OperationContext } from "../core/operation/operation-context.ts";
import type { AnyOperation, CallArguments, OutputOf } from "../core/operation/operation-types.ts";
import type {
  ChangeListener,
  ExecuteOptions,
  Executor,
  ListOptions,
  SubscribeOptions,
} from "../core/registry/executor.ts";
import type { Bus } from "./bus.ts";
import type { CallCounters } from "./call-observer.ts";
import {
  type CallLimits,
  type CallOptions,
  type CallRetryOptions,
  type CredentialSource,
  checkCallOptions,
  readCallLimits,
} from "./call-options.ts";
import type { CircuitBreakerOptions } from "./circuits.ts";
import type { OperationConflict } from "./discovery/offer-table.ts";
import { isOperationId, namespaceOf, operationNotFound } from "./discovery/operation-id.ts";
import { type KnownService, readNamespaceFilter, ServiceDirectory } from "./discovery/service-directory.ts";
import type { OperationNotice } from "./discovery/service-notice.ts";
import type { UnusableOffer } from "./discovery/service-offers.ts";
import { PendingRequestMap } from "./pending-request-map.ts";
import type { RetryBudgetOptions } from "./retry-budget.ts";

/** A call as it was given. */
interface GivenOptions {
  readonly options?: CallOptions | undefined;
  /** Whether the operation says that it is durable. @default false */
  readonly isDurable?: boolean;
  readonly task?: CallerTask | undefined;
}

/** How operations behind a bus are found and called. */
export interface RemoteRegistryOptions {
  /** Makes the signed token that says who is asking, on a bus that does not carry identities itself. */
  readonly credentials?: CredentialSource | undefined;
  readonly limits?: Partial<CallLimits> | undefined;
  /** Operations of these namespaces only; others are not there. @default all */
  readonly namespaces?: readonly string[] | undefined;
  /** Milliseconds to wait for the services that are there already. @default 2_000 */
  readonly discoveryTimeoutMs?: number | undefined;
  /** How calls are tried again that do not say otherwise. @default one try */
  readonly retry?: CallRetryOptions | undefined;
  /** How many retries are sent for all calls together; false for as many as calls ask for. @default 20 % of the calls, and 10 a second */
  readonly retryBudget?: RetryBudgetOptions | false | undefined;
  /** When calls of an operation that answers nothing but `UNAVAILABLE` are not sent any more; false for never. @default after 50 in a row */
  readonly circuitBreaker?: CircuitBreakerOptions | false | undefined;
  /** Gives the metadata that a call is sent with, for instance with the trace it belongs to. @default the caller's */
  readonly propagate?: ((metadata: Metadata) => Metadata) | undefined;
  /** Runs operations that are declared durable. @default they are called like any other */
  readonly durable?: DurableCaller | undefined;
}

const DISCOVERY_TIMEOUT_MS = 2_000;
const MOST_DURABLE_IDS = 10_000;
const MOST_POSSIBLE_IDS = 1_000;

/** Finds the operations behind a bus; resolves once discovery is ready, or has taken too long and goes on behind it. */
export async function createRemoteRegistry(
  bus: Bus,
  options: RemoteRegistryOptions = {},
): Promise<RemoteRegistry> {
  const { discoveryTimeoutMs = DISCOVERY_TIMEOUT_MS } = options;
  if (typeof discoveryTimeoutMs !== "number" || !(discoveryTimeoutMs >= 0)) {
    throw new TypeError("discoveryTimeoutMs must be a number of milliseconds, 0 or more.");
  }
  const registry = new RemoteRegistry(bus, options);
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.min(discoveryTimeoutMs, 2 ** 31 - 1));
  });
  try {
    await Promise.race([registry.ready, late]);
    return registry;
  } catch (thrown) {
    await registry.close();
    throw thrown;
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The operations behind a bus, called like local ones. A local registry imports them with `registerAll(remote)` and follows
 * what joins and leaves. `list()` shows what the services say a caller may call; each decides again where the operation runs.
 */
export class RemoteRegistry implements Executor {
  readonly #calls: PendingRequestMap;
  readonly #directory: ServiceDirectory;
  readonly #namespaces: ReadonlySet<string> | undefined;
  readonly #durable: DurableCaller | undefined;
  readonly #durableIds = new Set<string>();
  /** Ids that have been called and that some operation could have. */
  readonly #possibleIds = new Set<string>();
  readonly #retry: CallRetryOptions | undefined;
  readonly #propagate: RemoteRegistryOptions["propagate"];
  readonly #ceilingMs: number;

  constructor(bus: Bus, options: RemoteRegistryOptions = {}) {
    const { credentials, limits, namespaces, durable, retry, retryBudget, circuitBreaker } = options;
    this.#calls = new PendingRequestMap(bus, { credentials, limits, retryBudget, circuitBreaker });
    this.#namespaces = readNamespaceFilter(namespaces);
    this.#durable = durable;
    this.#retry = retry;
    this.#propagate = options.propagate;
    this.#ceilingMs = readCallLimits(limits).deadlineMs;
    this.#directory = new ServiceDirectory(bus, {
      limits,
      namespaces,
      handlerFor: (notice) => this.#handlerFor(notice),
    });
  }

  /** Resolves once every service that was there at the start has been heard. */
  get ready(): Promise<void> {
    return this.#directory.ready;
  }

  /** Everything that was found, for all callers, sorted by id. */
  get operations(): readonly AnyOperation[] {
    return this.#directory.operations;
  }

  /** By service id. */
  get services(): readonly KnownService[] {
    return this.#directory.services;
  }

  /** What cannot be used of what services offer, and why. */
  get unusable(): readonly UnusableOffer[] {
    return this.#directory.unusable;
  }

  /** Ids that mean different things to those who offer them. */
  get conflicts(): readonly OperationConflict[] {
    return this.#directory.conflicts;
  }

  /** What came back for calls and was dropped, and why. */
  get counters(): CallCounters {
    return this.#calls.counters;
  }

  /** Operations whose circuit is open: calls are refused, but for one now and then that tries it. */
  get openCircuits(): readonly string[] {
    return this.#calls.openCircuits;
  }

  get(id: string): AnyOperation | undefined {
    return this.#directory.get(id);
  }

  /** What this caller, anonymous unless given, can call with some input; sorted by id. */
  list({ identity }: ListOptions = {}): AnyOperation[] {
    return this.#directory.list(identity === undefined ? undefined : HeldIdentity.of(identity));
  }

  onChange(listener: ChangeListener): () => void {
    return this.#directory.onChange(listener);
  }

  /** Hears of services that come, change and go; returns how to stop listening. */
  onServicesChange(listener: (services: readonly KnownService[]) => void): () => void {
    return this.#directory.onServicesChange(listener);
  }

  /** Calls an operation, found yet or not, and resolves with its envelope; rejects with a `CallError`. */
  execute<const T extends AnyOperation | string>(
    target: T,
    ...rest: CallArguments<T, CallOptions>
  ): Promise<ResponseEnvelope<OutputOf<T>>>;
  execute(target: unknown, input?: unknown, options?: CallOptions): Promise<ResponseEnvelope> {
    const isDurable = (target as Partial<AnyOperation> | null)?.durable === true;
    const id = typeof target === "string" ? target : idOf(target);
    return this.#execute(id, input, { options, isDurable });
  }

  /** Starts a durable call, which goes on without this process; nothing for one that is not durable. */
  async start(
    target: AnyOperation | string,
    input: unknown,
    options: StartOptions,
  ): Promise<StartedTask | undefined> {
    const id = idOf(target);
    if (!this.#mayExist(id)) throw operationNotFound(id);
    const isSaid = typeof target !== "string" && target.durable === true;
    if (!this.#isDurable(id, isSaid) || this.#durable?.start === undefined) return undefined;
    return await this.#durable.start(id, input, this.#withMetadata(options));
  }

  /** Reads a subscription: nothing is sent before the first value is asked for, and leaving the loop stops the handler. */
  subscribe<const T extends AnyOperation | string>(
    target: T,
    ...rest: CallArguments<T, SubscribeOptions>
  ): AsyncIterableIterator<ResponseEnvelope<OutputOf<T>>, undefined>;
  subscribe(
    target: unknown,
    input?: unknown,
    options?: SubscribeOptions,
  ): AsyncIterableIterator<ResponseEnvelope, undefined> {
    return this.#subscribe(idOf(target), input, options);
  }

  /** Stops listening for services and aborts the calls under way; the bus stays open. */
  async close(): Promise<void> {
    this.#directory.stop();
    await this.#calls.close();
  }

  async #execute(
    id: string,
    input: unknown,
    { options: given = {}, isDurable = false, task }: GivenOptions,
  ): Promise<ResponseEnvelope> {
    if (!this.#mayExist(id)) throw operationNotFound(id);
    const told = this.#retry === undefined ? given : { retry: this.#retry, ...given };
    const options = this.#withMetadata(told);
    const durable = this.#isDurable(id, isDurable) ? await this.#durableFor(id) : undefined;
    // Other calls have theirs checked where they are made.
    if (durable !== undefined) checkCallOptions(options);
    try {
      if (durable !== undefined)
        return await durable.execute(id, input, task ? { ...options, task } : options);
      return await this.#calls.call(id, input, options);
    } catch (thrown) {
      throw this.#explain(id, thrown);
    }
  }

  #subscribe(
    id: string,
    input: unknown,
    options: SubscribeOptions = {},
  ): AsyncIterableIterator<ResponseEnvelope, undefined> {
    if (!this.#mayExist(id)) return new FailedStream(operationNotFound(id));
    const values = this.#calls.subscribe(id, input, this.#withMetadata(options));
    return new ExplainedStream(values, (thrown) => this.#explain(id, thrown));
  }

  #withMetadata<T extends SubscribeOptions>(options: T): T {
    if (this.#propagate === undefined) return options;
    return { ...options, metadata: this.#propagate(options.metadata ?? {}) };
  }

  /** Once known to be durable an operation stays it: its service may be away just when that matters. */
  #isDurable(id: string, isSaid: boolean): boolean {
    if (this.#durable === undefined) return false;
    const isDurable = isSaid || this.#directory.get(id)?.durable === true || this.#durableIds.has(id);
    if (isDurable && this.#durableIds.size < MOST_DURABLE_IDS) this.#durableIds.add(id);
    return isDurable;
  }

  /** What runs a durable operation, unless nobody takes such calls of it. */
  async #durableFor(id: string): Promise<DurableCaller | undefined> {
    const durable = this.#durable;
    return durable?.serves === undefined || (await durable.serves(id)) ? durable : undefined;
  }

  #mayExist(id: string): boolean {
    if (this.#possibleIds.has(id)) return true;
    const mayExist = isOperationId(id) && this.#namespaces?.has(namespaceOf(id)) !== false;
    if (mayExist && this.#possibleIds.size < MOST_POSSIBLE_IDS) this.#possibleIds.add(id);
    return mayExist;
  }

  /** Where all services are known and none has ever had an operation, nobody answering means that there is no such thing. */
  #explain(id: string, thrown: unknown): unknown {
    if (!isCallError(thrown) || thrown.code !== "NO_RESPONDER") return thrown;
    const { isReady, serviceCount } = this.#directory;
    const isKnown = !isReady || serviceCount === 0 || this.#directory.mayHaveOffered(id);
    return isKnown ? thrown : operationNotFound(id);
  }

  #handlerFor({ namespace, name, type }: OperationNotice): AnyOperation["handler"] {
    const id = `${namespace}.${name}`;
    if (type === "subscription") {
      return (input, context) => this.#subscribe(id, input, optionsOfContext(context));
    }
    return (input, context) =>
      this.#execute(id, input, {
        options: optionsOfContext(context, this.#ceilingMs),
        task: taskOf(context),
      });
  }
}

/** Runs operations that must not be lost: a call it has accepted is run even when the process that was running it dies. */
export interface DurableCaller {
  /** With a `task` it waits for as long as that may run, and goes on from what was noted with it. */
  execute(
    operationId: string,
    input: unknown,
    options: CallOptions & { readonly task?: CallerTask | undefined },
  ): Promise<ResponseEnvelope>;
  /** Whether somebody takes such calls of an operation; others are called like any other. @default somebody does */
  serves?(operationId: string): Promise<boolean>;
  /** Stores a call, and gives a handle on it. @default such calls cannot be left alone */
  start?(operationId: string, input: unknown, options: StartOptions): Promise<StartedTask>;
}

type Step = IteratorResult<ResponseEnvelope, undefined>;
type Envelopes = AsyncIterableIterator<ResponseEnvelope, undefined>;

const DONE: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/**
 * Passes a subscription on, with its errors put in other words.
 *
 * Not a generator: leaving one waits for its pending step, and what it reads may be waiting for exactly that.
 */
export class ExplainedStream implements Envelopes {
  readonly #values: Envelopes;
  readonly #explain: (thrown: unknown) => unknown;

  constructor(values: Envelopes, explain: (thrown: unknown) => unknown) {
    this.#values = values;
    this.#explain = explain;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<Step> {
    try {
      return await this.#values.next();
    } catch (thrown) {
      throw this.#explain(thrown);
    }
  }

  async return(): Promise<Step> {
    return (await this.#values.return?.()) ?? DONE;
  }
}

/** A subscription that fails when it is first asked for a value, as those of a local registry do. */
export class FailedStream implements Envelopes {
  readonly #error: unknown;
  #over = false;

  constructor(error: unknown) {
    this.#error = error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<Step> {
    if (this.#over) return DONE;
    this.#over = true;
    throw this.#error;
  }

  async return(): Promise<Step> {
    this.#over = true;
    return DONE;
  }
}

/** What a call over a bus takes over from the call whose handler makes it: who asks, until when, and how deep it is. */
function optionsOfContext(context: OperationContext, ceilingMs = Number.POSITIVE_INFINITY): ExecuteOptions {
  const { requestId, operationId, identity, signal, deadline, metadata, progress } = context;
  return {
    signal,
    identity,
    metadata,
    // What is left to the call above is no wish of this one, so that it is cut rather than refused.
    timeoutMs:
      deadline === undefined ? undefined : Math.min(Math.max(0, deadline - monotonicNow()), ceilingMs),
    onProgress: progress,
    origin: { parent: { requestId, operationId }, depth: depthOf(context) + 1 },
  };
}

/** A context that is not ours, in a test of a handler say, starts at the top. */
function depthOf(context: OperationContext): number {
  return context instanceof CallContext ? inheritFrom(context).depth : 0;
}
