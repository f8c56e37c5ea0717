import { CallError, changedError, isCallError } from "../../core/errors/errors.ts";
import { saidIn, withoutSaid } from "../../core/errors/source-words.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ChangeListener } from "../../core/registry/executor.ts";
import { maskError } from "../../core/secrets/mask-value.ts";
import { Backoff } from "../../mcp/client/backoff.ts";
import { sourceError } from "../source-error.ts";
import { CallsInFlight } from "./calls-in-flight.ts";
import { rewordError, toReason } from "./shown-text.ts";
import {
  operationChanges,
  type Source,
  type SourceKind,
  type SourceReport,
  type SourceState,
} from "./source.ts";
import { SourceFault } from "./source-fault.ts";
import type { Backing, BackingFacts, BackingWatcher, SourcePlan } from "./source-plan.ts";
import type { SourceProvider } from "./source-provider.ts";
import { toCause } from "./told-cause.ts";

const NO_FACTS: BackingFacts = Object.freeze({ unusable: [], notes: [] });
const CLOSED: SourceState = Object.freeze({ status: "closed" });
/** Milliseconds that calls over a connection have to end when another one takes its place. */
const RECONNECT_DRAIN_MS = 10_000;

/** What stood behind a source until something newer took its place, while its calls end. */
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
  /** Calls of what stands behind it now. */
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
    return {
      name,
      kind,
      target,
      state: this.#state,
      operations: this.#known.size,
      ...facts,
      notes: this.#stale === undefined ? notes : [...notes, { name, note: this.#stale }],
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
      (thrown) => this.#toldError(maskError(thrown, this.#plan.secrets)),
    );
  }

  #toldError(thrown: unknown): unknown {
    const { wording = [], said } = this.#plan;
    const told = rewordError(thrown, wording);
    if (said !== false || !isCallError(told) || saidIn(told.details) === undefined) return told;
    return changedError(told, { details: withoutSaid(told.details) });
  }

  /** Why no call can be made: what stands behind the operations is being made, or gone for good. */
  #refusal(): CallError | undefined {
    if (this.#backing !== undefined && !this.#closing.signal.aborted) return undefined;
    const why = this.#closing.signal.aborted ? "it is closed." : "it starts.";
    return sourceError(this, "cannot be called", why);
  }

  /** Tries to make what stands behind it, once what stood there is gone. */
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

  /** Makes what stands behind it, and puts it in use, after `onMade`. */
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

  /** Ends what stood there once its calls have ended, or their time is up. */
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
    // Whoever serves keeps the process alive; one that only waits for this may end.
    this.#timer.unref();
    this.#setDown(thrown, Date.now() + delay);
  }

  #setUp(): void {
    if (this.#state.status !== "up") this.#setState({ status: "up", since: Date.now() });
  }

  #setDown(thrown: unknown, retryAt: number | undefined): void {
    const before = this.#state;
    this.#setState({
      status: "down",
      since: before.status === "down" ? before.since : Date.now(),
      reason: toReason(thrown, this.#plan.secrets, this.#plan.wording),
      cause: toCause(thrown),
      ...(retryAt !== undefined && { retryAt }),
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

/** Those who hear of something; one that throws keeps nobody else from it. */
class Listeners<T> {
  readonly #listeners = new Set<(told: T) => void>();
  readonly #onFault: (cause: unknown) => void;

  /** `onFault` must not throw. */
  constructor(onFault: (cause: unknown) => void) {
    this.#onFault = onFault;
  }

  /** Adds a listener as one of its own, so that one added twice hears twice and leaves once. */
  add(listener: (told: T) => void): () => void {
    const own = (told: T): void => listener(told);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  tell(told: T): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(told);
      } catch (cause) {
        this.#onFault(cause);
      }
    }
  }

  clear(): void {
    this.#listeners.clear();
  }
}
