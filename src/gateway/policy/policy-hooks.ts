import { type Identity, ownerOf } from "../../core/access/identity.ts";
import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { CallError, toCallError } from "../../core/errors/errors.ts";
import { addAbortListener, removeAbortListener } from "../../core/execution/abort-listeners.ts";
import { isNested, signalIfAny } from "../../core/execution/call-context.ts";
import { Cancellation } from "../../core/execution/cancellation.ts";
import { monotonicNow } from "../../core/execution/deadline.ts";
import type { CallHook, HookedCall, Hooks, SubscribeHook } from "../../core/execution/hooks.ts";
import { turnDown } from "../../core/execution/turned-down.ts";
import { IdempotentCalls } from "../../core/idempotency/idempotent-calls.ts";
import { CallSlots } from "../../core/limits/call-slots.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { callKey } from "./call-key.ts";
import { takeNote } from "./call-notes.ts";
import { type KeyedCall, keyedCall, runKeyed } from "./keyed-calls.ts";
import type { AppliedPolicy, PolicyBook } from "./policy-book.ts";
import type { PolicyLimits } from "./policy-limits.ts";
import { goOn, isRepeatable, type Next, type Run } from "./policy-run.ts";
import { copyOf, ResultCache } from "./result-cache.ts";
import { retryCall } from "./retry-call.ts";
import { SharedRuns } from "./shared-runs.ts";
import { type Lane, Turns } from "./turns.ts";

/** A request for a resource or prompt of a source. */
export interface SourceRequest {
  readonly source: string;
  /** Names it in errors. */
  readonly what: string;
  /** Who asks. @default nobody in particular */
  readonly identity?: Identity | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Stands around every call. From the outside in:
 *
 * 1. `limits.calls`, of calls from outside alone: a call that a handler makes could not be refused without failing one that was let in.
 * 2. idempotency key: before anything else, so that a repetition costs nothing and is never refused for want of a turn.
 * 3. cache, then single-flight: an answer that is there, or on its way, needs no turn and no time of its own.
 * 4. timeout: of the waiting and all attempts together.
 * 5. concurrency and rate, in one step (see `Turns`). A call counts once however often it is tried: it keeps its place between attempts, which
 *    spares a source in trouble, and it was promised a turn when it got one; the waits between attempts keep them apart.
 * 6. retries.
 *
 * A call that is refused for want of rights passes by all of it. Calls that wait for a place which is held by a handler that waits for
 * them would wait for ever: nested calls take places too, and deadlines end such a circle.
 */
export class PolicyHooks implements Hooks {
  readonly #limits: PolicyLimits;
  readonly #turns: Turns;
  readonly #cache: ResultCache;
  readonly #runs = new SharedRuns();
  readonly #keyedRuns = new SharedRuns();
  readonly #idempotent: IdempotentCalls;
  readonly #slots: CallSlots;
  #book: PolicyBook;

  constructor(book: PolicyBook, limits: PolicyLimits, isShared: boolean) {
    this.#book = book;
    this.#limits = { ...limits };
    this.#turns = new Turns(this.#limits, isShared);
    this.#slots = new CallSlots(this.#limits, isShared);
    this.#cache = new ResultCache(this.#limits);
    this.#idempotent = new IdempotentCalls(this.#limits, isShared);
    this.#turns.change(book.gates());
  }

  update(book: PolicyBook, limits: PolicyLimits | undefined): void {
    this.#book = book;
    Object.assign(this.#limits, limits);
    this.#turns.change(book.gates());
  }

  setShared(isShared: boolean): void {
    for (const part of [this.#turns, this.#slots, this.#idempotent]) part.setShared(isShared);
  }

  close(): void {
    const error = new CallError("UNAVAILABLE", "The gateway is closing.", { stack: false });
    this.#turns.close(error);
    this.#runs.abort(error);
    this.#keyedRuns.abort(error);
    this.#cache.clear();
  }

  readonly execute: CallHook = (call, next) => {
    const { operation, context, refusal } = call;
    if (operation === undefined || refusal !== undefined) return next();
    if (isNested(context)) return this.#execute(operation, call, next, undefined);
    return this.#executeOuter(operation, call, next);
  };

  readonly subscribe: SubscribeHook = (call, next) => {
    if (call.operation === undefined || call.refusal !== undefined) return next();
    return this.#stream(call, next);
  };

  /** Runs what is no call of an operation: it has a turn and a time of its own like one, and is neither kept, shared nor tried again. */
  async runOfSource<T>(
    { source, what, identity, signal }: SourceRequest,
    run: (signal: AbortSignal | undefined) => Promise<T>,
  ): Promise<T> {
    const policy = this.#book.ofSource(source);
    const lane = this.#laneOf(policy);
    const now = monotonicNow();
    const bounds = new Cancellation(what, signals(signal), now + (policy.timeoutMs ?? INFINITE), now);
    const owner = ownerOf(identity);
    this.#enter(what, owner);
    try {
      if (lane !== undefined) await this.#turns.enter(lane, { operationId: what, owner }, bounds);
      try {
        return await bounds.race(run(policy.timeoutMs === undefined ? signal : bounds.signal));
      } finally {
        if (lane !== undefined) this.#turns.leave(lane);
      }
    } finally {
      this.#slots.giveBack(owner);
      bounds.release();
    }
  }

  async #executeOuter(operation: AnyOperation, call: HookedCall, next: Next): Promise<ResponseEnvelope> {
    const owner = ownerOf(call.context.identity);
    this.#enter(call.operationId, owner);
    try {
      // A handler's calls inherit its metadata; the key is for the call it was given for.
      const hasKey = operation.type === "mutation" && call.context.metadata["idempotencyKey"] !== undefined;
      const keyed = hasKey ? keyedCall(call) : undefined;
      return await this.#execute(operation, call, next, keyed);
    } finally {
      this.#slots.giveBack(owner);
    }
  }

  #execute(
    operation: AnyOperation,
    call: HookedCall,
    next: Next,
    keyed: KeyedCall | undefined,
  ): Promise<ResponseEnvelope> {
    const policy = this.#book.of(operation.id);
    if (keyed !== undefined) return this.#executeOnce({ call, next, policy }, keyed);
    const isShareable = (policy.cacheMs ?? 0) > 0 || policy.singleFlight === true;
    const isRead = operation.type === "query" || operation.annotations?.readOnly === true;
    if (!isShareable || !isRead) return this.#run({ call, next, policy }, operation);
    return this.#executeShared({ call, next, policy }, operation);
  }

  /** The first call of a key goes on while anybody waits for it. */
  #executeOnce(run: Run, keyed: KeyedCall): Promise<ResponseEnvelope> {
    const { context, operation } = run.call;
    const key = JSON.stringify([keyed.owner, keyed.key, keyed.fingerprint]);
    const start = (signal: AbortSignal): Promise<ResponseEnvelope> =>
      runKeyed(this.#idempotent, keyed, {
        signal,
        run: (onStart) => this.#run({ ...run, signal, onStart }, operation as AnyOperation),
        onRepeat: () => takeNote(context, { repeated: true }),
      });
    const { joined, result } = this.#keyedRuns.run(key, signalIfAny(context), start);
    if (!joined) return result;
    takeNote(context, { repeated: true });
    return result.then(copyOf);
  }

  async #executeShared(run: Run, operation: AnyOperation): Promise<ResponseEnvelope> {
    const { call, policy } = run;
    const { cacheMs = 0, singleFlight = false } = policy;
    const { context } = call;
    const key = callKey(operation, context, call.input);
    if (key === undefined) return this.#run(run, operation);
    const kept = cacheMs > 0 ? this.#cache.get(key, cacheMs) : undefined;
    if (kept !== undefined) {
      takeNote(context, { cached: true });
      return kept;
    }
    const start = async (signal?: AbortSignal): Promise<ResponseEnvelope> => {
      const envelope = await this.#run(signal === undefined ? run : { ...run, signal }, operation);
      if (cacheMs > 0) this.#cache.set(key, envelope);
      return envelope;
    };
    if (!singleFlight) return start();
    const { joined, result } = this.#runs.run(key, signalIfAny(context), start);
    if (!joined) return result;
    takeNote(context, { shared: true });
    return copyOf(await result);
  }

  #run(run: Run, operation: AnyOperation): Promise<ResponseEnvelope> {
    const { policy } = run;
    const lane = this.#laneOf(policy);
    const retries = isRepeatable(operation) ? policy.retries : undefined;
    if (lane !== undefined || retries !== undefined) return this.#runInTurn(run, lane, retries);
    return goOn(run, policy.timeoutMs === undefined ? undefined : monotonicNow() + policy.timeoutMs);
  }

  async #runInTurn(
    run: Run,
    lane: Lane | undefined,
    retries: AppliedPolicy["retries"],
  ): Promise<ResponseEnvelope> {
    const { call, policy, signal } = run;
    const { context, operationId } = call;
    const now = monotonicNow();
    const own = policy.timeoutMs === undefined ? undefined : now + policy.timeoutMs;
    const bounds = new Cancellation(
      operationId,
      signals(signal ?? signalIfAny(context)),
      own ?? INFINITE,
      now,
    );
    try {
      if (lane !== undefined) await this.#takeTurn(lane, call, bounds);
      try {
        if (retries === undefined) return await goOn(run, own);
        const caller = signal === undefined ? context.deadline : undefined;
        const deadline = Math.min(own ?? INFINITE, caller ?? INFINITE);
        const onAttempt = (attempts: number): void => takeNote(context, { attempts });
        return await retryCall(() => goOn(run, own), retries, { cancellation: bounds, deadline, onAttempt });
      } finally {
        if (lane !== undefined) this.#turns.leave(lane);
      }
    } finally {
      bounds.release();
    }
  }

  async #takeTurn(lane: Lane, { operationId, context }: HookedCall, bounds: Cancellation): Promise<void> {
    const asked = { operationId, owner: ownerOf(context.identity) };
    const waitedMs = await this.#turns.enter(lane, asked, bounds);
    if (waitedMs > 0) takeNote(context, { waitedMs });
  }

  /**
   * A stream holds its place until it ends, and has its turn when it starts; the timeout bounds the wait for that alone. The place is given
   * back when the reader leaves, whatever the handler makes of it.
   */
  async *#stream(
    call: HookedCall,
    next: Parameters<SubscribeHook>[1],
  ): AsyncGenerator<ResponseEnvelope, undefined> {
    const { context, operationId } = call;
    const policy = this.#book.of(operationId);
    const lane = this.#laneOf(policy);
    const isOuter = !isNested(context);
    const owner = ownerOf(context.identity);
    if (isOuter) this.#enter(operationId, owner);
    let isIn = false;
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      if (isOuter) this.#slots.giveBack(owner);
      if (isIn && lane !== undefined) this.#turns.leave(lane);
    };
    const listener = { onAbort: end };
    const { signal } = context;
    try {
      if (lane !== undefined) {
        await this.#waitForStream(lane, call, policy.timeoutMs);
        isIn = true;
      }
      if (signal.aborted) return;
      addAbortListener(signal, listener);
      yield* next();
    } finally {
      removeAbortListener(signal, listener);
      end();
    }
  }

  async #waitForStream(lane: Lane, call: HookedCall, timeoutMs = INFINITE): Promise<void> {
    const now = monotonicNow();
    const bounds = new Cancellation(call.operationId, [call.context.signal], now + timeoutMs, now);
    try {
      await this.#takeTurn(lane, call, bounds);
    } finally {
      bounds.release();
    }
  }

  #laneOf({ rateOwner, placesOwner }: AppliedPolicy): Lane | undefined {
    if (rateOwner === undefined && placesOwner === undefined) return undefined;
    return this.#turns.laneOf(rateOwner, placesOwner);
  }

  #enter(operationId: string, owner: string): void {
    try {
      this.#slots.take(owner);
    } catch (thrown) {
      throw turnDown(toCallError(thrown), operationId);
    }
  }
}

const INFINITE = Number.POSITIVE_INFINITY;

function signals(signal: AbortSignal | undefined): readonly AbortSignal[] {
  return signal === undefined ? [] : [signal];
}
