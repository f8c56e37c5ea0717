import { HeldIdentity } from "../core/access/identity.ts";
import type { ResponseEnvelope } from "../core/envelope/envelope.ts";
import { isCallError } from "../core/errors/errors.ts";
import { idOf } from "../core/execution/lookup.ts";
import type { AnyOperation, CallArguments, OutputOf } from "../core/operation/operation-types.ts";
import type { ChangeListener, Executor, ListOptions, SubscribeOptions } from "../core/registry/executor.ts";
import type { Bus } from "./bus.ts";
import type { CallCounters } from "./call-counters.ts";
import { type CallLimits, readLimits } from "./call-limits.ts";
import {
  type CallOptions,
  type CredentialSource,
  checkCallOptions,
  type RetryOptions,
} from "./call-options.ts";
import { ExplainedStream, FailedStream } from "./discovery/explained-stream.ts";
import type { OperationConflict } from "./discovery/offer-table.ts";
import { type KnownService, OperationDirectory, readNamespaces } from "./discovery/operation-directory.ts";
import { isOperationId, namespaceOf, operationNotFound } from "./discovery/operation-id.ts";
import { optionsOfContext } from "./discovery/options-of-context.ts";
import type { OperationNotice } from "./discovery/service-notice.ts";
import type { UnusableOffer } from "./discovery/service-offers.ts";
import type { DurableCaller } from "./durable-caller.ts";
import { PendingRequestMap } from "./pending-request-map.ts";

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
  readonly retry?: RetryOptions | undefined;
  /** Runs operations that are declared durable. @default they are called like any other */
  readonly durable?: DurableCaller | undefined;
}

const DISCOVERY_TIMEOUT_MS = 2_000;
const MOST_DURABLE_IDS = 10_000;

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
  readonly #directory: OperationDirectory;
  readonly #namespaces: ReadonlySet<string> | undefined;
  readonly #durable: DurableCaller | undefined;
  readonly #durableIds = new Set<string>();
  readonly #retry: RetryOptions | undefined;
  readonly #ceilingMs: number;

  constructor(bus: Bus, options: RemoteRegistryOptions = {}) {
    const { credentials, limits, namespaces, durable, retry } = options;
    this.#calls = new PendingRequestMap(bus, { credentials, limits });
    this.#namespaces = readNamespaces(namespaces);
    this.#durable = durable;
    this.#retry = retry;
    this.#ceilingMs = readLimits(limits).deadlineMs;
    this.#directory = new OperationDirectory(bus, {
      limits,
      namespaces,
      handlerFor: (notice) => this.#handlerFor(notice),
    });
  }

  /** Resolves once every service that was there at the start has been heard. */
  get ready(): Promise<void> {
    return this.#directory.ready;
  }

  /** Everything that was found, whoever may call it, sorted by id. */
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
    return this.#execute(idOf(target), input, options, isDurable);
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
    given: CallOptions = {},
    isDurable = false,
  ): Promise<ResponseEnvelope> {
    if (!this.#mayExist(id)) throw operationNotFound(id);
    const options = this.#retry === undefined ? given : { retry: this.#retry, ...given };
    const durable = this.#isDurable(id, isDurable) ? this.#durable : undefined;
    // Other calls have theirs checked where they are made.
    if (durable !== undefined) checkCallOptions(options);
    try {
      return await (durable?.execute(id, input, options) ?? this.#calls.call(id, input, options));
    } catch (thrown) {
      throw this.#explain(id, thrown);
    }
  }

  #subscribe(
    id: string,
    input: unknown,
    options?: SubscribeOptions,
  ): AsyncIterableIterator<ResponseEnvelope, undefined> {
    if (!this.#mayExist(id)) return new FailedStream(operationNotFound(id));
    const values = this.#calls.subscribe(id, input, options);
    return new ExplainedStream(values, (thrown) => this.#explain(id, thrown));
  }

  /** Once known to be durable an operation stays it: its service may be away just when that matters. */
  #isDurable(id: string, isSaid: boolean): boolean {
    if (this.#durable === undefined) return false;
    const isDurable = isSaid || this.#directory.get(id)?.durable === true || this.#durableIds.has(id);
    if (isDurable && this.#durableIds.size < MOST_DURABLE_IDS) this.#durableIds.add(id);
    return isDurable;
  }

  #mayExist(id: string): boolean {
    return isOperationId(id) && this.#namespaces?.has(namespaceOf(id)) !== false;
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
    return (input, context) => this.#execute(id, input, optionsOfContext(context, this.#ceilingMs));
  }
}
