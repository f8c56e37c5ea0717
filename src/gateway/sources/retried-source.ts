import { Listeners } from "../../core/collections/listeners.ts";
import { CallError, changedError, isCallError } from "../../core/errors/errors.ts";
import { saidIn, withoutSaid } from "../../core/errors/source-words.ts";
import { LONGEST_DELAY } from "../../core/execution/cancellation.ts";
import { Backoff } from "../../core/limits/backoff.ts";
import type { OperationContext } from "../../core/operation/operation-context.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ChangeListener } from "../../core/registry/executor.ts";
import { maskError } from "../../core/secrets/secret-mask.ts";
import { sourceError } from "../missing-operation.ts";
import { type DownCause, toCause, toDownCause } from "./down-cause.ts";
import { rewordError, toReason } from "./shown-text.ts";
import {
  type Backing,
  type BackingFacts,
  type BackingWatcher,
  type FailedCalls,
  operationChanges,
  type Source,
  SourceFault,
  type SourceKind,
  type SourcePlan,
  type SourceReport,
  type SourceState,
} from "./source.ts";
import { wantsLogin } from "./source-login.ts";
import type { SourceProvider } from "./source-provider.ts";

const NO_FACTS: BackingFacts = Object.freeze({ unusable: [], notes: [] });
const CLOSED: SourceState = Object.freeze({ status: "closed" });
/** Milliseconds that calls over a connection have to end when another one takes its place. */
const RECONNECT_DRAIN_MS = 10_000;

/** A backing that a newer one has replaced, while its calls end. */
interface Leaving {
  readonly calls: CallsInFlight;
  readonly done: Promise<void>;
}

/**
 * The state of a source: connecting, up, down with a reason, or closed. It is tried again with backoff until it is there for the first time.
 * What is there then mends itself, as a connection to an MCP server does, and tells when it is down or up.
 */
export class RetriedSource implements Source {
  readonly name: string;
  readonly kind: SourceKind;
  readonly provider?: SourceProvider;
  readonly #plan: SourcePlan;
  /** Calls of the current backing. */
  #calls = this.#createCalls();
  readonly #leaving = new Set<Leaving>();
  readonly #backoff: Backoff;
  readonly #closing = new AbortController();
  readonly #changes = new Listeners<Parameters<ChangeListener>[0]>((cause) => this.#warnOfListener(cause));
  readonly #states = new Listeners<SourceState>((cause) => this.#warnOfListener(cause));
  #state: SourceState = { status: "connecting" };
  #backing: Backing | undefined;
  #known: ReadonlyMap<string, AnyOperation> = new Map();
  #facts = NO_FACTS;
  #attempt: Promise<void> | undefined;
  #again: Promise<void> | undefined;
  #started: Promise<void> | undefined;
  #ended: Promise<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #startMs: number | undefined;
  /** What the last listing failed with that left everything as it was. */
  #stale: string | undefined;

  constructor(plan: SourcePlan) {
    this.#plan = plan;
    this.name = plan.name;
    this.kind = plan.kind;
    this.#backoff = new Backoff(plan.reconnect);
    if (plan.provider !== undefined) this.provider = plan.provider;
  }

  get state(): SourceState {
    return this.#state;
  }

  get failedCalls(): FailedCalls | undefined {
    return this.#backing?.failedCalls;
  }

  get operations(): readonly AnyOperation[] {
    return [...this.#known.values()];
  }

  start(): Promise<void> {
    this.#started ??= this.#try();
    return this.#started;
  }

  async retry(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    if (this.#attempt !== undefined) return await this.#joinAttempt(this.#attempt);
    const backing = this.#backing;
    if (backing !== undefined && this.#state.status === "up") return await this.#renew(backing);
    this.#backing = undefined;
    const attempt = this.#try(backing);
    this.#started ??= attempt;
    await attempt;
  }

  /** What an attempt reads may have changed since it did: modules are read once more behind it, however often that is asked for. */
  #joinAttempt(attempt: Promise<void>): Promise<void> {
    if (this.#plan.kind !== "local") return attempt;
    this.#again ??= attempt.then(() => {
      this.#again = undefined;
      return this.retry();
    });
    return this.#again;
  }

  report(): SourceReport {
    const { name, kind, target } = this.#plan;
    this.#facts = this.#backing?.facts() ?? this.#facts;
    const { notes, ...facts } = this.#facts;
    const wantsLogin = this.#state.status === "down" && this.#state.wants === "login";
    return {
      name,
      kind,
      target,
      state: this.#state,
      operations: this.#known.size,
      offered: this.#known.size,
      ...facts,
      notes: this.#stale === undefined ? notes : [...notes, { name, note: this.#stale }],
      ...(wantsLogin && { login: "wanted" }),
      ...(this.#startMs !== undefined && { startMs: this.#startMs }),
    };
  }

  onChange(listener: ChangeListener): () => void {
    return this.#changes.add(listener);
  }

  onState(listener: (state: SourceState) => void): () => void {
    return this.#states.add(listener);
  }

  close({ timeoutMs = 0 }: { readonly timeoutMs?: number } = {}): Promise<void> {
    this.#ended ??= this.#close(timeoutMs);
    return this.#ended;
  }

  async #close(timeoutMs: number): Promise<void> {
    clearTimeout(this.#timer);
    this.#closing.abort(new CallError("UNAVAILABLE", `The source "${this.name}" is closed.`));
    await Promise.all([this.#attempt, this.#calls.idle(timeoutMs), this.#endLeaving(timeoutMs)]);
    const backing = this.#backing;
    this.#backing = undefined;
    await this.#end(backing);
    this.#calls.release();
    this.#setState(CLOSED);
    this.#states.clear();
    this.#changes.clear();
  }

  #createCalls(): CallsInFlight {
    return new CallsInFlight(
      () => this.#refusal(),
      // What one source says may hold a secret of another.
      (thrown, context) => this.#toldError(maskError(thrown, this.#plan.secrets), context),
    );
  }

  #toldError(thrown: unknown, context: OperationContext): unknown {
    const { wording = {}, said, review = (given: unknown) => given } = this.#plan;
    const told = rewordError(review(thrown, context), wording);
    if (said !== false || !isCallError(told) || saidIn(told.details) === undefined) return told;
    return changedError(told, { details: withoutSaid(told.details) });
  }

  /** Why no call can be made: the backing of the operations is being connected, or has gone for good. */
  #refusal(): CallError | undefined {
    if (this.#backing !== undefined && !this.#closing.signal.aborted) return undefined;
    const why = this.#closing.signal.aborted ? "it is closed." : "it starts.";
    return sourceError(this, "cannot be called", why);
  }

  /** Reconnects after the previous connection has closed. */
  #try(before?: Backing): Promise<void> {
    clearTimeout(this.#timer);
    this.#attempt ??= this.#open(before).finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  async #open(before: Backing | undefined): Promise<void> {
    await this.#end(before);
    try {
      await this.#make();
    } catch (thrown) {
      if (!this.#closing.signal.aborted) this.#fail(thrown);
    }
  }

  /** Connects, and puts the new backing in use, after `onMade`. */
  async #make(onMade: () => void = () => {}): Promise<void> {
    const { signal } = this.#closing;
    const startedAt = performance.now();
    signal.throwIfAborted();
    let made: Backing | undefined;
    let lost: { readonly reason: unknown; readonly retryAt: number | undefined } | undefined;
    // What it tells counts from when it is in use until another takes its place.
    const tell = (): void => {
      if (made === undefined || this.#backing !== made || signal.aborted) return;
      if (lost === undefined) this.#setUp();
      else this.#setDown(lost.reason, lost.retryAt);
    };
    const watcher: BackingWatcher = {
      down: (reason, retryAt) => {
        lost = { reason, retryAt };
        tell();
      },
      up: () => {
        lost = undefined;
        tell();
      },
      idle: (timeoutMs) => this.#calls.idle(timeoutMs),
    };
    const backing = await this.#plan.open(signal, watcher);
    if (signal.aborted) return await this.#end(backing);
    onMade();
    this.#adopt(backing);
    this.#startMs = Math.round(performance.now() - startedAt);
    made = backing;
    tell();
  }

  #renew(backing: Backing): Promise<void> {
    if (this.#plan.isMadeAnew !== true) return this.#refresh(backing);
    this.#attempt ??= this.#replace(backing).finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  /** Makes it once more, and leaves what was there when that works; calls under way end there. */
  async #replace(before: Backing): Promise<void> {
    // However often this is asked for, there are never more than two.
    await this.#leftEnded();
    try {
      await this.#make(() => {
        this.#calls.handOver((id) => this.#known.get(id));
        this.#leave(this.#calls, before);
        this.#calls = this.#createCalls();
        this.#setState({ status: "up", since: Date.now() });
      });
    } catch (thrown) {
      if (this.#closing.signal.aborted) return;
      this.#tellStale("It could not be connected to anew, and stays as it was", thrown);
    }
  }

  /** Closes a replaced backing once its calls have ended, or their time is up. */
  #leave(calls: CallsInFlight, before: Backing): void {
    const done = calls
      .idle(RECONNECT_DRAIN_MS)
      .then(() => this.#end(before))
      .finally(() => this.#leaving.delete(leaving));
    const leaving: Leaving = { calls, done };
    this.#leaving.add(leaving);
  }

  async #leftEnded(): Promise<void> {
    await Promise.all([...this.#leaving].map(({ done }) => done));
  }

  async #endLeaving(timeoutMs: number): Promise<void> {
    await Promise.all([...this.#leaving].map(({ calls }) => calls.idle(timeoutMs)));
    for (const { calls } of this.#leaving) calls.release();
    await this.#leftEnded();
  }

  async #end(backing: Backing | undefined): Promise<void> {
    await backing?.close().catch((cause: unknown) => this.#plan.warn("It could not be ended.", cause));
  }

  #adopt(backing: Backing): void {
    this.#backing = backing;
    this.#stale = undefined;
    backing.onChange(() => {
      // Where operations are the same, what is reported of them is not.
      if (this.#backing === backing && !this.#follow(backing)) this.#states.tell(this.#state);
    });
    this.#follow(backing);
  }

  async #refresh(backing: Backing): Promise<void> {
    try {
      await backing.refresh();
      this.#stale = undefined;
    } catch (thrown) {
      this.#tellStale("It could not be listed again, and stays as it was", thrown);
    }
  }

  #tellStale(what: string, thrown: unknown): void {
    this.#stale = `${what}: ${toReason(thrown, this.#plan.secrets, this.#plan.wording)}`;
    this.#plan.warn(this.#stale, thrown);
  }

  /** Tells what is other than before, and gives whether anything is; operations that are the same stay the same. */
  #follow(backing: Backing): boolean {
    const before = this.#known;
    const now = new Map(backing.operations.map((given) => [given.id as string, this.#calls.count(given)]));
    this.#known = now;
    const changes = operationChanges(before, now);
    if (changes.length > 0) this.#changes.tell(changes);
    return changes.length > 0;
  }

  #fail(thrown: unknown): void {
    if (thrown instanceof SourceFault) {
      this.#setDown(thrown, undefined);
      return;
    }
    const delay = this.#backoff.next(0);
    this.#timer = setTimeout(() => void this.#try(), delay);
    // A server keeps the process alive by itself; one that only waits for this may end.
    this.#timer.unref();
    this.#setDown(thrown, Date.now() + delay);
  }

  #setUp(): void {
    if (this.#state.status !== "up") this.#setState({ status: "up", since: Date.now() });
  }

  #setDown(thrown: unknown, retryAt: number | undefined): void {
    const before = this.#state;
    const why: DownCause | undefined =
      thrown instanceof SourceFault ? { kind: "config" } : toDownCause(thrown);
    this.#setState({
      status: "down",
      since: before.status === "down" ? before.since : Date.now(),
      reason: toReason(thrown, this.#plan.secrets, this.#plan.wording),
      cause: toCause(why),
      ...(why !== undefined && { why }),
      ...(retryAt !== undefined && { retryAt }),
      ...(wantsLogin(thrown) && { wants: "login" }),
    });
  }

  #setState(state: SourceState): void {
    this.#state = Object.freeze(state);
    this.#plan.onState?.(this.#state);
    this.#states.tell(this.#state);
  }

  #warnOfListener(cause: unknown): void {
    this.#plan.warn("A listener threw.", cause);
  }
}

type Handler = AnyOperation["handler"];

/** Counts the calls of a source's operations that are under way; a subscription counts until it ends. */
export class CallsInFlight {
  readonly #refusal: () => CallError | undefined;
  readonly #reword: (thrown: unknown, context: OperationContext) => unknown;
  /** The same operation is always given the same copy. */
  readonly #counted = new WeakMap<AnyOperation, AnyOperation>();
  readonly #waiting = new Set<() => void>();
  #running = 0;
  #heir: ((id: string) => AnyOperation | undefined) | undefined;

  /** `refusal` says why nothing can be called right now; `reword` gives what a call failed with as it is told. */
  constructor(
    refusal: () => CallError | undefined,
    reword: (thrown: unknown, context: OperationContext) => unknown = (thrown) => thrown,
  ) {
    this.#refusal = refusal;
    this.#reword = reword;
  }

  get running(): number {
    return this.#running;
  }

  /** A copy whose calls are counted; schemas that are worked out when first asked for stay so. */
  count(operation: AnyOperation): AnyOperation {
    const known = this.#counted.get(operation);
    if (known !== undefined) return known;
    const handler = operation.type === "subscription" ? this.#streaming(operation) : this.#calling(operation);
    const counted = Object.defineProperties(
      {},
      { ...Object.getOwnPropertyDescriptors(operation), handler: { value: handler, enumerable: true } },
    );
    Object.freeze(counted);
    this.#counted.set(operation, counted as AnyOperation);
    return counted as AnyOperation;
  }

  /** Sends calls that begin from now on, such as those that waited for their turn, to what has taken the place of their operation. */
  handOver(find: (id: string) => AnyOperation | undefined): void {
    this.#heir = find;
  }

  /** Resolves once nothing runs, or when the time is up. */
  idle(timeoutMs: number): Promise<void> {
    if (this.#running === 0 || timeoutMs <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(timeoutMs, LONGEST_DELAY));
      this.#waiting.add(done);
    });
  }

  /** Releases those who wait, though calls may still run. */
  release(): void {
    for (const done of [...this.#waiting]) done();
  }

  #calling(operation: AnyOperation): Handler {
    return async (input, context) => {
      const heir = this.#heirOf(operation);
      if (heir !== undefined) return await heir.handler(input, context);
      this.#begin();
      try {
        return await operation.handler(input, context);
      } catch (thrown) {
        throw this.#reword(thrown, context);
      } finally {
        this.#end();
      }
    };
  }

  #streaming(operation: AnyOperation): Handler {
    return async (input, context) => {
      const heir = this.#heirOf(operation);
      if (heir !== undefined) return await heir.handler(input, context);
      const leave = this.#enter();
      try {
        const values: unknown = await operation.handler(input, context);
        const stream = new CountedStream(values as AsyncIterable<unknown>, leave, (thrown) =>
          this.#reword(thrown, context),
        );
        // A caller who has left already may never begin to read.
        context.signal.addEventListener("abort", () => stream.abandon(), { once: true });
        if (context.signal.aborted) stream.abandon();
        return stream;
      } catch (thrown) {
        leave();
        throw this.#reword(thrown, context);
      }
    };
  }

  /** One of another type would give what nobody asked for. */
  #heirOf({ id, type }: AnyOperation): AnyOperation | undefined {
    const heir = this.#heir?.(id);
    return heir?.type === type ? heir : undefined;
  }

  /** Counts a call in; returns how to count it out once, however often that is called. */
  #enter(): () => void {
    this.#begin();
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#end();
    };
  }

  #begin(): void {
    const refusal = this.#refusal();
    if (refusal !== undefined) throw refusal;
    this.#running += 1;
  }

  #end(): void {
    this.#running -= 1;
    if (this.#running === 0) this.release();
  }
}

/** A stream that tells once when it is over. */
class CountedStream implements AsyncIterable<unknown> {
  readonly #values: AsyncIterable<unknown>;
  readonly #leave: () => void;
  readonly #reword: (thrown: unknown) => unknown;
  #isRead = false;

  constructor(values: AsyncIterable<unknown>, leave: () => void, reword: (thrown: unknown) => unknown) {
    this.#values = values;
    this.#leave = leave;
    this.#reword = reword;
  }

  /** Ends what nobody has begun to read. */
  abandon(): void {
    if (!this.#isRead) this.#leave();
  }

  [Symbol.asyncIterator](): AsyncIterator<unknown> {
    this.#isRead = true;
    const [leave, reword] = [this.#leave, this.#reword];
    const iterator = this.#values[Symbol.asyncIterator]();
    const step = async (take: () => Promise<IteratorResult<unknown>>): Promise<IteratorResult<unknown>> => {
      try {
        const taken = await take();
        if (taken.done === true) leave();
        return taken;
      } catch (thrown) {
        leave();
        throw reword(thrown);
      }
    };
    return {
      next: () => step(() => iterator.next()),
      return: async (value?: unknown) => {
        try {
          return (await iterator.return?.(value)) ?? { done: true, value };
        } finally {
          leave();
        }
      },
    };
  }
}
