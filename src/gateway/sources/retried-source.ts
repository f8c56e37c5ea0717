import { CallError } from "../../core/errors/errors.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ChangeListener } from "../../core/registry/executor.ts";
import { Backoff } from "../../mcp/client/backoff.ts";
import type { ReconnectOptions } from "../../mcp/client/connection-options.ts";
import type { McpProvider } from "../../mcp/provider.ts";
import type { SecretMask } from "../config/secret-mask.ts";
import { sourceError } from "../source-error.ts";
import type { Backing, BackingFacts, BackingWatcher } from "./backing.ts";
import { CallsInFlight } from "./calls-in-flight.ts";
import { operationChanges } from "./operation-changes.ts";
import { rewordError, toReason, type Wording } from "./shown-text.ts";
import type { Source, SourceKind, SourceReport, SourceState } from "./source.ts";
import { SourceFault } from "./source-fault.ts";
import { toCause } from "./told-cause.ts";

export { SourceFault } from "./source-fault.ts";

/** What a source is made of. */
export interface SourcePlan {
  readonly name: string;
  readonly kind: SourceKind;
  readonly target: string;
  readonly secrets: SecretMask;
  /** Times between attempts. @default 500 ms, doubled up to 30 s */
  readonly reconnect?: ReconnectOptions | undefined;
  readonly provider?: McpProvider | undefined;
  /** What is said of it and of its calls in better words. @default nothing */
  readonly wording?: Wording | undefined;
  /** Never throws. */
  warn(message: string, cause?: unknown): void;
  /** Makes what stands behind it; leaves nothing behind where that fails, or soon after the signal. */
  open(signal: AbortSignal, watcher: BackingWatcher): Promise<Backing>;
  /** Hears of every change of the source's state, before anybody else. */
  onState?(state: SourceState): void;
}

const NO_FACTS: BackingFacts = Object.freeze({ unusable: [], notes: [] });
const CLOSED: SourceState = Object.freeze({ status: "closed" });

/** A source that is tried again with backoff until it is there; what is there then mends itself. */
export class RetriedSource implements Source {
  readonly name: string;
  readonly kind: SourceKind;
  readonly provider?: McpProvider;
  readonly #plan: SourcePlan;
  readonly #calls = new CallsInFlight(
    () => this.#refusal(),
    (thrown) => rewordError(thrown, this.#plan.wording ?? []),
  );
  readonly #backoff: Backoff;
  readonly #closing = new AbortController();
  readonly #changeListeners = new Set<ChangeListener>();
  readonly #stateListeners = new Set<(state: SourceState) => void>();
  #state: SourceState = { status: "connecting" };
  #backing: Backing | undefined;
  #known: ReadonlyMap<string, AnyOperation> = new Map();
  #facts = NO_FACTS;
  #attempt: Promise<void> | undefined;
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
    if (this.#attempt !== undefined) return await this.#attempt;
    const backing = this.#backing;
    if (backing !== undefined && this.#state.status === "up") return await this.#refresh(backing);
    this.#backing = undefined;
    const attempt = this.#try(backing);
    this.#started ??= attempt;
    await attempt;
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
    return listenIn(this.#changeListeners, listener);
  }

  onState(listener: (state: SourceState) => void): () => void {
    return listenIn(this.#stateListeners, listener);
  }

  close({ timeoutMs = 0 }: { readonly timeoutMs?: number } = {}): Promise<void> {
    this.#ended ??= this.#close(timeoutMs);
    return this.#ended;
  }

  async #close(timeoutMs: number): Promise<void> {
    clearTimeout(this.#timer);
    this.#closing.abort(new CallError("UNAVAILABLE", `The source "${this.name}" is closed.`));
    await Promise.all([this.#attempt, this.#calls.idle(timeoutMs)]);
    const backing = this.#backing;
    this.#backing = undefined;
    await this.#end(backing);
    this.#calls.release();
    this.#setState(CLOSED);
    this.#stateListeners.clear();
    this.#changeListeners.clear();
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
    const { signal } = this.#closing;
    const watch = this.#watch();
    await this.#end(before);
    const startedAt = performance.now();
    try {
      signal.throwIfAborted();
      const backing = await this.#plan.open(signal, watch.watcher);
      if (signal.aborted) return await this.#end(backing);
      this.#adopt(backing);
      this.#startMs = Math.round(performance.now() - startedAt);
      watch.begin(backing);
    } catch (thrown) {
      if (!signal.aborted) this.#fail(thrown);
    }
  }

  async #end(backing: Backing | undefined): Promise<void> {
    await backing?.close().catch((cause: unknown) => this.#plan.warn("It could not be ended.", cause));
  }

  /** Passes on what a backing tells, from when it is in use until another takes its place. */
  #watch() {
    let own: Backing | undefined;
    let lost: { readonly reason: unknown; readonly retryAt: number | undefined } | undefined;
    const tell = (): void => {
      if (own === undefined || this.#backing !== own || this.#closing.signal.aborted) return;
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
    const begin = (backing: Backing): void => {
      own = backing;
      tell();
    };
    return { watcher, begin };
  }

  #adopt(backing: Backing): void {
    this.#backing = backing;
    this.#stale = undefined;
    backing.onChange(() => {
      if (this.#backing === backing) this.#follow(backing);
    });
    this.#follow(backing);
  }

  async #refresh(backing: Backing): Promise<void> {
    try {
      await backing.refresh();
      this.#stale = undefined;
    } catch (thrown) {
      this.#stale = `It could not be listed again, and stays as it was: ${toReason(thrown, this.#plan.secrets)}`;
      this.#plan.warn(this.#stale, thrown);
    }
  }

  /** Tells what is other than before; operations that are the same stay the same. */
  #follow(backing: Backing): void {
    const before = this.#known;
    const now = new Map(backing.operations.map((given) => [given.id as string, this.#calls.count(given)]));
    this.#known = now;
    const changes = operationChanges(before, now);
    if (changes.length > 0) this.#tell(this.#changeListeners, changes);
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
    this.#tell(this.#stateListeners, this.#state);
  }

  #tell<T>(listeners: ReadonlySet<(told: T) => void>, told: T): void {
    for (const listener of [...listeners]) {
      try {
        listener(told);
      } catch (cause) {
        this.#plan.warn("A listener threw.", cause);
      }
    }
  }
}

/** Adds a listener as one of its own, so that one added twice hears twice and leaves once. */
function listenIn<T>(listeners: Set<(told: T) => void>, listener: (told: T) => void): () => void {
  const own = (told: T): void => listener(told);
  listeners.add(own);
  return () => void listeners.delete(own);
}
