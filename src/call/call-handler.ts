import type { Identity } from "../core/access/identity.ts";
import type { CallError } from "../core/errors/errors.ts";
import { LightSignal } from "../core/execution/abort-listeners.ts";
import { LONGEST_DELAY, toDeadline } from "../core/execution/deadline.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { Executor, RegistryChange } from "../core/registry/executor.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import type { Announcement, Answerer, AnswerLine, Bus, Delivery, Membership, Route } from "./bus.ts";
import { type CallCounters, createCounters, type LiveCounters } from "./call-counters.ts";
import { noResponder, overLimit, repeated, toErrorPayload } from "./call-errors.ts";
import { type CallLimits, readLimits } from "./call-limits.ts";
import type { CallObservers } from "./call-observer.ts";
import { DeadlineQueue } from "./deadline-queue.ts";
import type { ServiceNotice } from "./discovery/service-notice.ts";
import { toOperationNotice } from "./discovery/to-operation-notice.ts";
import { LinkedSet } from "./linked-set.ts";
import { RecentIds } from "./recent-ids.ts";
import { RunningCall } from "./running-call.ts";

/** Tells who sent a request, from what the transport knows; throws a `CallError` for one it does not believe. */
export type Authenticate = (delivery: Delivery) => Identity | undefined | Promise<Identity | undefined>;

/** Remembers which signed calls have run, for all members of a fleet that share it. */
export interface ReplayStore {
  /**
   * Takes a call for this member; false when one has it already. A key must be remembered for as long as its token is believed,
   * which is its lifetime and the tolerance for clocks: 65 seconds unless told otherwise.
   */
  claim(key: string): boolean | Promise<boolean>;
}

/** How operations are answered. */
export interface CallHandlerOptions {
  /** For people who look at what is out there. @default "waybill" */
  readonly name?: string | undefined;
  /** Joins a group for each operation, or one for each namespace it has operations in. @default "operation" */
  readonly group?: "operation" | "namespace" | undefined;
  /** @default what the bus itself vouches for; over a network, nobody */
  readonly authenticate?: Authenticate | undefined;
  /** Refuses calls with a credential that any member of the fleet has run. @default each member remembers its own */
  readonly replays?: ReplayStore | undefined;
  /** Answers operations that were imported from a bus too, which makes this a gateway between buses. @default false */
  readonly forward?: boolean | undefined;
  /** Lets the operations be found. @default true */
  readonly announce?: boolean | undefined;
  readonly limits?: Partial<CallLimits> | undefined;
}

/** What can be served: anything that runs operations; one that knows all of its operations offers those. */
export type Servable = Executor & { readonly operations?: Iterable<AnyOperation> };

/** Stops the handler of one call. */
export interface Stopping {
  readonly signal: AbortSignal;
  abort(reason: CallError): void;
}

/** What calls under way share with their handler. */
export interface RunningHost {
  readonly executor: Executor;
  /** Those of the bus. */
  readonly observers: CallObservers | undefined;
  readonly limits: CallLimits;
  readonly deadlines: DeadlineQueue;
  readonly counters: LiveCounters;
  /** Nothing where the bus itself is believed. */
  readonly authenticate: Authenticate | undefined;
  /** Takes a signed call for this member; false when it ran before. */
  claim(key: string, attempt: number): boolean | Promise<boolean>;
  createStopping(): Stopping;
  done(call: RunningCall): void;
}

/** For a registry of ours, which knows the light signal; any other executor gets the platform's. */
class LightStopping extends LightSignal implements Stopping {
  get signal(): AbortSignal {
    return this as unknown as AbortSignal;
  }
}

/** Less than what is commonly given to a process that is told to end. */
const DRAIN_MS = 20_000;

/** Milliseconds that what was said last may take to leave this process. */
const LAST_WORDS_MS = 5_000;

/**
 * The answering side of a bus. It alone publishes: handlers return or throw, and it turns what they do into events.
 */
export class CallHandler {
  readonly serviceId = crypto.randomUUID();
  readonly #executor: Servable;
  readonly #bus: Bus;
  readonly #options: CallHandlerOptions;
  readonly #host: RunningHost;
  readonly #running = new LinkedSet<RunningCall>();
  readonly #seen: RecentIds;
  readonly #memberships = new Map<string, Promise<Membership>>();
  #announcement: Announcement | undefined;
  #stopFollowing: (() => void) | undefined;
  #whenIdle: (() => void) | undefined;
  #draining: Promise<void> | undefined;
  #isDrained = false;

  constructor(executor: Servable, bus: Bus, options: CallHandlerOptions = {}) {
    const limits = readLimits(options.limits);
    this.#executor = executor;
    this.#bus = bus;
    this.#options = options;
    this.#seen = new RecentIds(limits.rememberedRequests);
    this.#host = {
      executor,
      observers: bus.observers,
      limits,
      deadlines: new DeadlineQueue(),
      counters: createCounters(),
      authenticate: options.authenticate,
      // A first try is looked at when it arrives.
      claim: (key, attempt) =>
        (attempt === 1 || this.#seen.add(key)) && (options.replays?.claim(key) ?? true),
      createStopping:
        executor instanceof OperationRegistry ? () => new LightStopping() : () => new AbortController(),
      done: (call) => {
        this.#running.delete(call);
        if (this.#running.size === 0) this.#whenIdle?.();
      },
    };
  }

  /** Calls and subscriptions under way. */
  get running(): number {
    return this.#running.size;
  }

  /** What was asked and dropped or refused, and why. */
  get counters(): CallCounters {
    return { ...this.#host.counters };
  }

  /** Joins those who answer; resolves once requests can arrive. */
  async start(): Promise<void> {
    const isUsed = this.#stopFollowing !== undefined || this.#draining !== undefined;
    if (isUsed) throw new Error("A handler is started once; make another one.");
    this.#stopFollowing = this.#executor.onChange((changes) => this.#follow(changes));
    try {
      this.#joinAll();
      await Promise.all(this.#memberships.values());
      if (this.#options.announce !== false) this.#announcement = await this.#bus.announce(this.#notice());
    } catch (thrown) {
      await this.drain({ timeoutMs: 0 });
      throw thrown;
    }
  }

  /** Leaves: takes no more requests, lets those under way finish, and aborts what is left when time is up. */
  drain({ timeoutMs = DRAIN_MS }: { readonly timeoutMs?: number } = {}): Promise<void> {
    toDeadline(timeoutMs, 0);
    this.#draining ??= this.#drain(timeoutMs);
    return this.#draining;
  }

  async #drain(timeoutMs: number): Promise<void> {
    this.#stopFollowing?.();
    await this.#announcement?.withdraw();
    const joined = await Promise.allSettled(this.#memberships.values());
    this.#memberships.clear();
    const leaving = joined.map((result) =>
      result.status === "fulfilled" ? result.value.leave() : undefined,
    );
    await Promise.allSettled(leaving);
    await this.#idle(timeoutMs);
    this.#isDrained = true;
    for (const call of this.#running.toArray()) call.giveUp();
    this.#host.deadlines.clear();
    // Or the last answers would go down with a process that ends now. A connection that is lost is not waited for.
    await within(LAST_WORDS_MS, this.#bus.flush());
  }

  async #idle(timeoutMs: number): Promise<void> {
    if (this.#running.size === 0) return;
    const idle = new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
    });
    await within(timeoutMs, idle);
  }

  #offered(): AnyOperation[] {
    return [...(this.#executor.operations ?? this.#executor.list())].filter((one) => this.#isOffered(one));
  }

  /** What this process would only pass on stays with those who run it, or a call could go in circles. */
  #isOffered({ visibility, source }: AnyOperation): boolean {
    return visibility !== "internal" && (source !== "call" || this.#options.forward === true);
  }

  #notice(): ServiceNotice {
    const { name = "waybill" } = this.#options;
    return { serviceId: this.serviceId, name, operations: this.#offered().map(toOperationNotice) };
  }

  #follow(changes: readonly RegistryChange[]): void {
    // What was replaced or removed may have been offered before.
    if (!changes.some(({ type, operation }) => type !== "added" || this.#isOffered(operation))) return;
    this.#joinAll();
    this.#announcement?.update(this.#notice());
  }

  /** Joins what is new and leaves what is gone. */
  #joinAll(): void {
    const routes = new Map(this.#offered().map((operation) => this.#route(operation)));
    for (const [key, route] of routes) {
      if (this.#memberships.has(key)) continue;
      const facts = { hasRun: (requestId: string) => this.#seen.has(requestId) };
      const joining = this.#bus.join(route, (delivery, line) => this.#take(delivery, line), facts);
      this.#memberships.set(key, joining);
      joining.catch(() => this.#memberships.delete(key));
    }
    for (const [key, joining] of this.#memberships) {
      if (routes.has(key)) continue;
      this.#memberships.delete(key);
      joining.then((membership) => membership.leave()).catch(() => {});
    }
  }

  #route({ id, namespace }: AnyOperation): [string, Route] {
    return this.#options.group === "namespace" ? [`${namespace}.`, { namespace }] : [id, { operationId: id }];
  }

  #take(delivery: Delivery, line: AnswerLine): Answerer | undefined {
    const { observers } = this.#host;
    const observed =
      observers !== undefined && observers.size > 0 ? observers.observeDelivery(delivery) : undefined;
    const refusal = this.#refusal(delivery);
    if (refusal !== undefined) {
      const { requestId } = delivery.request;
      line.reply({ type: "call.error", requestId, error: toErrorPayload(refusal) });
      observed?.failed(refusal.code, line.sentBytes);
      line.close();
      return undefined;
    }
    const call = new RunningCall(this.#host, delivery, line, observed);
    this.#running.add(call);
    call.run();
    return call;
  }

  #refusal({ request, hasFreshId }: Delivery): CallError | undefined {
    const { requestId, operationId, attempt = 1 } = request;
    const { counters, limits } = this.#host;
    if (this.#running.size >= limits.runningCalls) {
      counters.overLimit++;
      const message = `The service runs ${limits.runningCalls} calls already; try "${operationId}" again later.`;
      return overLimit(message, { limit: "runningCalls", allowed: limits.runningCalls });
    }
    // Its input may still have been on its way when the service left, or it came for a namespace: another may be asked.
    const isAnswered = !this.#isDrained && this.#answers(operationId);
    const isRepeated = hasFreshId !== true && (attempt > 1 || this.#hasSeen(requestId, isAnswered));
    if (isRepeated && !(attempt > 1 && this.#isIdempotent(operationId))) {
      counters.duplicate++;
      return repeated(operationId);
    }
    if (!isAnswered) return noResponder(operationId);
    if (attempt > 1) this.#seen.add(requestId);
    return undefined;
  }

  /** What will not run is not remembered. */
  #hasSeen(requestId: string, isAnswered: boolean): boolean {
    return isAnswered ? !this.#seen.add(requestId) : this.#seen.has(requestId);
  }

  /** An operation that is not here at all is for the executor to refuse. */
  #answers(operationId: string): boolean {
    if (this.#options.group !== "namespace") return true;
    const operation = this.#executor.get(operationId);
    return operation === undefined || operation.visibility === "internal" || this.#isOffered(operation);
  }

  #isIdempotent(operationId: string): boolean {
    return this.#executor.get(operationId)?.annotations?.idempotent === true;
  }
}

/** Serves operations on a bus; resolves once they can be called. */
export async function serveCalls(
  executor: Servable,
  bus: Bus,
  options?: CallHandlerOptions,
): Promise<CallHandler> {
  const handler = new CallHandler(executor, bus, options);
  await handler.start();
  return handler;
}

/** Waits for something, whatever comes of it, but not for longer than this. */
async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => {
    if (ms !== Number.POSITIVE_INFINITY) timer = setTimeout(resolve, Math.min(ms, LONGEST_DELAY));
  });
  await Promise.race([work.catch(() => {}), late]);
  clearTimeout(timer);
}
