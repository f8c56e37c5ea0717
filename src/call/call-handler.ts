import type { Identity } from "../core/access/identity.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { errorTraits } from "../core/errors/error-codes.ts";
import { CallError, isCallError, toCallError } from "../core/errors/errors.ts";
import { endsWithin, LightSignal, monotonicNow, toDeadline } from "../core/execution/cancellation.ts";
import type { AnyOperation } from "../core/operation/operation-types.ts";
import type { ExecuteOptions, Executor, RegistryChange } from "../core/registry/executor.ts";
import { OperationRegistry } from "../core/registry/registry.ts";
import type { Announcement, Answerer, AnswerLine, Bus, Delivery, Membership, Route } from "./bus.ts";
import {
  deadlineError,
  noResponder,
  overLimit,
  repeated,
  toCallErrorPayload,
  unread,
} from "./call-errors.ts";
import type { AbortReason, AnswerEvent, AskerEvent, CallRequested } from "./call-events.ts";
import {
  type CallCounters,
  type CallObservers,
  createCounters,
  type LiveCounters,
  type ObservedCall,
  toolErrorOf,
} from "./call-observer.ts";
import { type CallLimits, readCallLimits } from "./call-options.ts";
import { CreditGate, countedBytes } from "./credit-gate.ts";
import { DeadlineQueue, type Timed } from "./deadline-queue.ts";
import { type ServiceNotice, toOperationNotice } from "./discovery/service-notice.ts";
import { RecentIds } from "./recent-ids.ts";
import { ServiceStats } from "./service-stats.ts";

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

/** What calls under way share with their handler. */
interface RunningHost {
  readonly executor: Executor;
  /** Those of the bus. */
  readonly observers: CallObservers | undefined;
  readonly limits: CallLimits;
  readonly counters: LiveCounters;
  /** Counts how calls went; nothing where nobody is told. */
  readonly stats: ServiceStats | undefined;
  /** Nothing where the bus itself is believed. */
  readonly authenticate: Authenticate | undefined;
  /** Takes a signed call for this member; false when it ran before. */
  claim(key: string, attempt: number): boolean | Promise<boolean>;
  /** The executor is a registry of ours, which knows the light signal; any other gets the platform's. */
  readonly knowsLightSignals: boolean;
  done(call: RunningCall): void;
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
  readonly #running = new DeadlineQueue<RunningCall>();
  readonly #seen: RecentIds;
  readonly #memberships = new Map<string, Promise<Membership>>();
  #announcement: Announcement | undefined;
  #stopFollowing: (() => void) | undefined;
  #whenIdle: (() => void) | undefined;
  #draining: Promise<void> | undefined;
  #isDrained = false;

  constructor(executor: Servable, bus: Bus, options: CallHandlerOptions = {}) {
    const limits = readCallLimits(options.limits);
    this.#executor = executor;
    this.#bus = bus;
    this.#options = options;
    this.#seen = new RecentIds(limits.rememberedRequests);
    this.#host = {
      executor,
      observers: bus.observers,
      limits,
      counters: createCounters(),
      stats: bus.tellsStats === true ? new ServiceStats() : undefined,
      authenticate: options.authenticate,
      // A first try is looked at when it arrives.
      claim: (key, attempt) =>
        (attempt === 1 || this.#seen.add(key)) && (options.replays?.claim(key) ?? true),
      knowsLightSignals: executor instanceof OperationRegistry,
      done: (call) => {
        this.#running.remove(call);
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
      if (this.#options.announce !== false)
        this.#announcement = await this.#bus.announce(this.#notice(), this.#host.stats);
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
    this.#running.clear();
    // Or the last answers would go down with a process that ends now. A connection that is lost is not waited for.
    await endsWithin(LAST_WORDS_MS, this.#bus.flush());
  }

  async #idle(timeoutMs: number): Promise<void> {
    if (this.#running.size === 0) return;
    const idle = new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
    });
    await endsWithin(timeoutMs, idle);
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
    const offered = this.#offered();
    this.#host.stats?.keep(new Set(offered.map(({ id }) => id)));
    return { serviceId: this.serviceId, name, operations: offered.map(toOperationNotice) };
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
      const error = toCallErrorPayload(refusal);
      // An earlier try of a request that was repeated may have run.
      const notRun = refusal.code === "CONFLICT" ? undefined : ({ notRun: true } as const);
      line.reply({ type: "call.error", requestId, error, ...notRun });
      observed?.failed(refusal.code, line.sentBytes);
      this.#host.stats?.add(delivery.request.operationId, 0, refusal.code);
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

/** Reports of progress that may wait to be sent. */
const UNSENT_REPORTS = 1_000;

/** One call from the answering side: runs it, and publishes what comes of it. It is the signal of its handler, too. */
class RunningCall extends LightSignal implements Answerer, Timed {
  readonly deadline: number;
  before: Timed | undefined;
  after: Timed | undefined;
  /** 0 where nobody wants to know, and no deadline follows from it. */
  readonly #startedAt: number;
  readonly #host: RunningHost;
  readonly #delivery: Delivery;
  readonly #line: AnswerLine;
  readonly #credit: CreditGate | undefined;
  readonly #observed: ObservedCall | undefined;
  #over = false;
  #unsentReports = 0;

  constructor(host: RunningHost, delivery: Delivery, line: AnswerLine, observed?: ObservedCall) {
    super();
    const { credit, creditBytes, timeLeftMs } = delivery.request;
    const { deadlineMs } = host.limits;
    this.#host = host;
    this.#delivery = delivery;
    this.#line = line;
    this.#observed = observed;
    // A caller who is gone without a word must not keep a handler running for ever; streams are watched by the bus, and a caller
    // in this process never goes without a word.
    const isEndless = credit !== undefined || delivery.isLocal === true;
    const longest = isEndless ? Number.POSITIVE_INFINITY : deadlineMs;
    const left = Math.min(timeLeftMs ?? longest, longest);
    const isTimed = left !== Number.POSITIVE_INFINITY || host.stats !== undefined;
    this.#startedAt = isTimed ? monotonicNow() : 0;
    this.deadline = this.#startedAt + left;
    this.#credit = credit === undefined ? undefined : new CreditGate(credit, creditBytes);
  }

  run(): void {
    const { authenticate } = this.#host;
    if (authenticate === undefined) this.#start(this.#delivery.identity);
    else this.#authenticate(authenticate);
  }

  #authenticate(authenticate: Authenticate): void {
    const refuse = (thrown: unknown) => {
      this.#host.counters.unauthenticated++;
      this.#fail(
        isCallError(thrown) ? thrown : new CallError("UNAUTHENTICATED", undefined, { cause: thrown }),
      );
    };
    try {
      const identity = authenticate(this.#delivery);
      if (identity instanceof Promise) identity.then((known) => this.#claim(known), refuse);
      else this.#claim(identity);
    } catch (thrown) {
      refuse(thrown);
    }
  }

  /** A credential is good for one run, of this member or of all that share what they remember. */
  #claim(identity: Identity | undefined): void {
    const { operationId, requestId, credential, attempt = 1 } = this.#request;
    if (this.#over) return;
    const settle = (isOurs: boolean) => {
      if (isOurs) this.#start(identity);
      else {
        this.#host.counters.duplicate++;
        this.#fail(repeated(operationId));
      }
    };
    const fail = (cause: unknown) => {
      const message = "Whether the call has run already cannot be found out; try again later.";
      this.#fail(new CallError("UNAVAILABLE", message, { cause, stack: false }));
    };
    try {
      const key = [operationId, requestId, attempt, identity?.subject].join(" ");
      const isOurs = credential === undefined || this.#host.claim(key, attempt);
      if (typeof isOurs === "boolean") settle(isOurs);
      else isOurs.then(settle, fail);
    } catch (thrown) {
      fail(thrown);
    }
  }

  receive(event: AskerEvent): void {
    if (this.#over) this.#host.counters.late++;
    else if (event.requestId !== this.#request.requestId) this.#host.counters.forged++;
    else if (event.type === "call.aborted") {
      const { reason = "aborted" } = event;
      this.#stop(
        reason === "deadline"
          ? deadlineError(this.#request.operationId)
          : new CallError("ABORTED", undefined, { stack: false }),
        reason,
      );
    } else if (this.#credit === undefined) this.#host.counters.unexpected++;
    else this.#credit.grant(event.credit, event.bytes);
  }

  lost(): void {
    this.#stop(new CallError("ABORTED", "The caller is gone.", { stack: false }), "disconnected");
  }

  expire(): void {
    const error = deadlineError(this.#request.operationId);
    this.#fail(error);
    this.abort(error);
  }

  /** Tells the caller that nobody goes on with the call. */
  giveUp(): void {
    const error = new CallError("ABORTED", "The service was stopped.", { stack: false });
    this.#fail(error);
    this.abort(error);
  }

  get #request(): CallRequested {
    return this.#delivery.request;
  }

  #start(identity: Identity | undefined): void {
    if (this.#over) return;
    try {
      if (this.#credit === undefined) this.#execute(this.#options(identity));
      else this.#stream(this.#options(identity), this.#credit).catch((thrown) => this.#fail(thrown));
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #execute(options: ExecuteOptions): void {
    const { operationId, input, requestId } = this.#request;
    this.#host.executor.execute(operationId, input, options).then(
      (output) => this.#finish({ type: "call.responded", requestId, output }),
      (thrown) => this.#fail(thrown),
    );
  }

  async #stream(options: ExecuteOptions, credit: CreditGate): Promise<void> {
    const { operationId, input, requestId } = this.#request;
    const { streamBuffer, streamBytes } = this.#host.limits;
    const yields = this.#host.executor.subscribe(operationId, input, options)[Symbol.asyncIterator]();
    let unsentBytes = 0;
    try {
      for (let sequence = 0; ; sequence++) {
        await credit.take();
        if (this.#over) return;
        const step: IteratorResult<ResponseEnvelope> = await yields.next();
        if (step.done === true) return this.#finish({ type: "call.completed", requestId, count: sequence });
        if (this.#over) return;
        this.#line.reply({ type: "call.responded", requestId, output: step.value, sequence });
        const bytes = countedBytes(this.#line.sentBytes);
        credit.spend(bytes);
        unsentBytes += bytes;
        this.#observed?.responded(step.value, this.#line.sentBytes);
        // However much was granted, no more than this waits to be sent.
        if ((sequence + 1) % streamBuffer === 0 || unsentBytes >= streamBytes) {
          await this.#line.flush();
          unsentBytes = 0;
        }
      }
    } catch (thrown) {
      // The reader hears of it now, however long the handler takes to clean up.
      this.#fail(thrown);
      throw thrown;
    } finally {
      // Does nothing at the end of a stream; before it, this is what runs the handler's `finally`.
      await yields.return?.();
    }
  }

  #options(identity: Identity | undefined): ExecuteOptions {
    const { requestId, metadata, depth, parent, progress, timeLeftMs } = this.#request;
    return {
      requestId,
      signal: this.#host.knowsLightSignals ? (this as unknown as AbortSignal) : this.platform,
      identity,
      timeoutMs: timeLeftMs,
      metadata,
      origin: depth === undefined ? undefined : { depth, parent },
      onProgress: progress === true ? (value) => this.#progress(value) : undefined,
    };
  }

  #progress(value: unknown): void {
    // Reports are information: more than leave this process are not kept.
    if (this.#over || this.#unsentReports >= UNSENT_REPORTS) return;
    this.#line.reply({ type: "call.progress", requestId: this.#request.requestId, value });
    if (++this.#unsentReports < UNSENT_REPORTS) return;
    const sent = () => {
      this.#unsentReports = 0;
    };
    this.#line.flush().then(sent, sent);
  }

  #fail(thrown: unknown): void {
    const error = this.#explain(toCallError(thrown));
    const { requestId } = this.#request;
    if (errorTraits(error.code).callEvent === "call.aborted")
      this.#finish({ type: "call.aborted", requestId });
    else this.#finish({ type: "call.error", requestId, error: toCallErrorPayload(error) });
  }

  /** A caller whose credential nobody looked at would search at the wrong end. */
  #explain(error: CallError): CallError {
    const { credential, operationId } = this.#request;
    const isUnread = credential !== undefined && this.#host.authenticate === undefined;
    return isUnread && error.code === "UNAUTHENTICATED" ? unread(operationId) : error;
  }

  /** The last word to the caller; what the bus cannot carry is told as an error. */
  #finish(event: AnswerEvent): void {
    if (this.#over) return;
    let sent = event;
    try {
      this.#line.reply(event);
    } catch (thrown) {
      const { requestId } = this.#request;
      sent = { type: "call.error", requestId, error: toCallErrorPayload(toCallError(thrown)) };
      this.#line.reply(sent);
    }
    this.#end(this.#host.stats === undefined ? undefined : errorCodeOf(sent));
    if (this.#observed !== undefined) reportSent(this.#observed, sent, this.#line.sentBytes);
  }

  /** The caller does not wait any more: nothing is sent, and the handler hears why. */
  #stop(error: CallError, reason: AbortReason): void {
    this.#end(reason === "left" ? undefined : error.code);
    this.#observed?.aborted(reason, reason === "left" ? undefined : error.code);
    this.abort(error);
  }

  #end(code: string | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#host.stats?.add(this.#request.operationId, monotonicNow() - this.#startedAt, code);
    this.#line.close();
    this.#host.done(this);
    this.#credit?.open();
  }
}

/** The code of the error that the last word to a caller tells of. */
function errorCodeOf(event: AnswerEvent): string | undefined {
  if (event.type === "call.error") return event.error.code;
  if (event.type === "call.aborted") return "ABORTED";
  if (event.type !== "call.responded") return undefined;
  const { isError, code = "other" } = toolErrorOf(event.output);
  return isError ? code : undefined;
}

/** Reports the last word to the caller. */
function reportSent(observed: ObservedCall, event: AnswerEvent, bytes: number | undefined): void {
  switch (event.type) {
    case "call.responded":
      observed.responded(event.output, bytes);
      break;
    case "call.completed":
      observed.completed(bytes);
      break;
    case "call.error":
      observed.failed(event.error.code, bytes);
      break;
    case "call.aborted":
      observed.aborted(event.reason ?? "aborted", "ABORTED", bytes);
      break;
    case "call.progress":
  }
}
