// Long: what a policy does to a call stands in the order in which it is done, and is read as one.
import type { AccessControl } from "../../core/access/access.ts";
import { type Identity, ownerOf } from "../../core/access/identity.ts";
import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { CallError, toCallError, turnDown } from "../../core/errors/errors.ts";
import { isNested, signalIfAny, taskOf } from "../../core/execution/call-context.ts";
import {
  addAbortListener,
  Cancellation,
  monotonicNow,
  removeAbortListener,
} from "../../core/execution/cancellation.ts";
import type {
  CallHook,
  HookedCall,
  Hooks,
  NextOptions,
  SubscribeHook,
} from "../../core/execution/dispatch.ts";
import type { IdempotencyStore } from "../../core/idempotency/idempotency-store.ts";
import { IdempotentCalls } from "../../core/idempotency/idempotent-calls.ts";
import { CallSlots } from "../../core/limits/call-slots.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { decodeEnvelope } from "../../core/wire/wire.ts";
import type { Approvals } from "../approvals/approvals.ts";
import { type ApprovePolicy, needsApproval } from "../approvals/approve-policy.ts";
import type { GatewayLimits } from "../config/gateway-config.ts";
import { matchesPattern } from "../glob.ts";
import { createJudge } from "../guard/judge.ts";
import { type GuardPolicy, ResultGuard, withheldFindings } from "../guard/result-guard.ts";
import { noteFindings, takeNote } from "./call-notes.ts";
import {
  callKey,
  copyOf,
  type KeyedClaim,
  keyedCall,
  ResultCache,
  retryCall,
  runKeyed,
  SharedRuns,
  writtenOrNone,
} from "./call-reuse.ts";
import { FairQueue, type GateRules, type Lane } from "./fair-queue.ts";
import type { LeaseSlots, Rate } from "./gates.ts";
import {
  checkPolicy,
  type OperationPolicy,
  type PolicyLimits,
  type SourcePolicy,
  toPolicyLimits,
} from "./policy.ts";
import { compileTemplate } from "./result-template.ts";
import { type ReuseKey, reuseKey, type SharedFlight, type SharedReuse } from "./shared-reuse.ts";

/** What policies are made from. */
export interface PoliciesOptions {
  readonly rules: PolicyRules;
  /** @default those of `GatewayLimits` */
  readonly limits?: GatewayLimits | undefined;
  /** Whether callers are told apart: then no one of them has more than a quarter of the room for idempotency keys. @default true */
  readonly isShared?: boolean | undefined;
  /** Where idempotency keys are kept. @default in this process */
  readonly keys?: IdempotencyStore | undefined;
  /**
   * Names as whom an operation would be called at its source, where callers have accounts of their own there; null where that is not known:
   * then nothing is used again. @default all sources are asked as one
   */
  readonly actsAs?:
    | ((operationId: string, identity: Identity | undefined) => string | null | undefined)
    | undefined;
  /** Results and runs that replicas share. @default none are shared */
  readonly reuse?: SharedReuse | undefined;
  /** Tells what an operation was made from apart, where replicas may have it from elsewhere. @default it is the same everywhere */
  readonly originOf?: ((operationId: string) => string | undefined) | undefined;
  /** Leases the slots of rates and concurrency that replicas share. @default none are shared */
  readonly lease?: LeaseSlots | undefined;
  /** Holds calls that a person has to approve. @default such calls are refused */
  readonly approvals?: Pick<Approvals, "hold"> | undefined;
}

/** Whether what a source offers is there, and for whom. */
export interface SourceRule {
  readonly isEnabled: boolean;
  /** All of these must be held. */
  readonly scopes: readonly string[];
}

/** Policies around the calls of a registry. */
export interface Policies {
  /** Stand around every call, nested ones too, inside of observers: `registry.use(policies.hooks)`, last. */
  readonly hooks: Hooks;
  /** Gives an operation of a source as it is registered, with the scopes that policies ask for and what they say about its results; nothing for one that is left out. */
  admit(operation: AnyOperation, source?: string): AnyOperation | undefined;
  /** Whether an operation of a source that has not told of it yet would be left out. */
  leavesOut(operationId: string, source: string): boolean;
  /** The scopes that policies ask for where an operation of a source is called, known or not; all must be held. */
  scopesOf(operationId: string, source: string): readonly string[];
  /** Characters of a result that are sent whole over MCP; nothing where no policy says it. */
  budgetOf(operationId: string): number | undefined;
  /** Who approves calls of an operation, and where they are asked; nothing where nobody has to. */
  approveOf(operationId: string): ApprovePolicy | undefined;
  /** What holds for what a source offers besides operations: resources and prompts. */
  ofSource(source: string): SourceRule;
  /** Asks a source for a resource or prompt, within the time, rate and concurrency that hold for it; `what` names it in errors. */
  runOfSource<T>(asked: SourceRequest, run: (signal: AbortSignal | undefined) => Promise<T>): Promise<T>;
  /** Forgets what holds for an operation, whose source may be another one now. */
  forget(operationId: string): void;
  /** Takes other rules and, unless left out, limits. Calls under way and those that wait go on; results are kept for operations that stay. */
  update(rules: PolicyRules, limits?: GatewayLimits): void;
  /** Tells callers apart from now on, or does not. */
  setShared(isShared: boolean): void;
  /** Turns away calls that wait, ends those that several callers share, and forgets results; no timer is left. */
  close(): void;
}

/** Creates the policies of a gateway; a `TypeError` names a rule that makes no sense. */
export function createPolicies({ rules, limits, isShared = true, ...given }: PoliciesOptions): Policies {
  let book = new PolicyBook(rules);
  const hooks = new PolicyHooks(book, toPolicyLimits(limits), { isShared, ...given });
  return {
    hooks,
    admit(operation, source = book.rules.sourceOf(operation.id)) {
      const policy = book.merge(operation.id, source);
      const ofSource = source === undefined ? undefined : book.rules.sources.get(source);
      return isAdmitted(operation, policy, ofSource) ? withPolicy(operation, policy) : undefined;
    },
    leavesOut(operationId, source) {
      const name = operationId.slice(source.length + 1);
      return !isAdmitted({ name }, book.merge(operationId, source), book.rules.sources.get(source));
    },
    scopesOf: (operationId, source) => book.merge(operationId, source).scopes ?? [],
    budgetOf: (operationId) => book.of(operationId).resultBudget,
    approveOf: (operationId) => book.of(operationId).approve,
    ofSource(source) {
      const { enabled = true, scopes = [] } = book.ofSource(source);
      return { isEnabled: enabled, scopes };
    },
    runOfSource: (asked, run) => hooks.runOfSource(asked, run),
    forget: (operationId) => book.forget(operationId),
    update(rules, limits) {
      book = new PolicyBook(rules);
      hooks.update(book, limits && toPolicyLimits(limits));
    },
    setShared: (isShared) => hooks.setShared(isShared),
    close: () => hooks.close(),
  };
}

/** Tells whether policies leave an operation in: it is enabled, and its source's lists do not leave it out. */
function isAdmitted(
  { name }: Pick<AnyOperation, "name">,
  { enabled }: OperationPolicy,
  { allow, deny }: SourcePolicy = {},
): boolean {
  const fits = (pattern: string): boolean => matchesPattern(pattern, name);
  return enabled !== false && (allow === undefined || allow.some(fits)) && deny?.some(fits) !== true;
}

/** Copies made before, by what they were made of: while policies stay the same an operation stays the same object. */
const COPIES = new WeakMap<AnyOperation, { readonly key: string; readonly copy: AnyOperation }>();

/**
 * Gives an operation that asks for the scopes of a policy too, and says about its results what the policy's template says where the
 * operation itself says nothing; what it works out when first asked stays that way.
 */
function withPolicy(
  operation: AnyOperation,
  { scopes = [], render }: Pick<OperationPolicy, "scopes" | "render">,
): AnyOperation {
  const template = operation.render === undefined ? render : undefined;
  if (scopes.length === 0 && template === undefined) return operation;
  const key = JSON.stringify([scopes, template]);
  const known = COPIES.get(operation);
  if (known?.key === key) return known.copy;
  const members = {
    ...Object.getOwnPropertyDescriptors(operation),
    ...(scopes.length > 0 && { access: { value: accessWith(operation.access, scopes), enumerable: true } }),
    ...(template && { render: { value: compileTemplate("render", template), enumerable: true } }),
  };
  const copy = Object.freeze(Object.defineProperties({}, members)) as AnyOperation;
  COPIES.set(operation, { key, copy });
  return copy;
}

function accessWith(access: AccessControl = {}, scopes: readonly string[]): AccessControl {
  const allOf = [...new Set([...(access.scopes?.allOf ?? []), ...scopes])];
  return Object.freeze({
    ...access,
    scopes: Object.freeze({ ...access.scopes, allOf: Object.freeze(allOf) }),
  });
}

/** Which policies there are, and for what. */
export interface PolicyRules {
  /** By the name of the source. */
  readonly sources: ReadonlyMap<string, SourcePolicy | undefined>;
  /** The name of the source an operation belongs to; nothing where no policy of a source holds for it. */
  sourceOf(operationId: string): string | undefined;
  /** By pattern of operation id. @default none */
  readonly policies?: Readonly<Record<string, OperationPolicy>> | undefined;
}

/** The policy of one operation, put together from all that hold for it. */
export interface AppliedPolicy extends OperationPolicy {
  /** The rule whose rate it is. */
  readonly rateOwner?: string;
  /** The rule whose concurrency it is. */
  readonly placesOwner?: string;
}

const FIELDS = [
  ...(["enabled", "scopes", "timeoutMs", "retry", "rate", "concurrency"] as const),
  ...(["cacheMs", "singleFlight", "resultBudget", "render", "guard"] as const),
  "approve" as const,
];
/** A name that no operation has: only wildcards match it. */
export const ANY_NAME = "\u{10FFFF}";
const MOST_KEPT = 100_000;

/**
 * Puts policies together: that of the source, then every pattern that fits the id, in the order of the config; later ones win field by
 * field. A rate or a concurrency is counted by the rule that says it: over all operations of a source, or all that a pattern fits and
 * for which no later rule says another.
 */
class PolicyBook {
  readonly rules: PolicyRules;
  readonly #patterns: readonly (readonly [pattern: string, policy: OperationPolicy])[];
  readonly #known = new Map<string, AppliedPolicy>();

  constructor(rules: PolicyRules) {
    this.rules = rules;
    this.#patterns = Object.entries(rules.policies ?? {});
    for (const [name, policy] of rules.sources) checkPolicy(`The policy of "${name}"`, policy);
    for (const [pattern, policy] of this.#patterns) checkPolicy(`policies["${pattern}"]`, policy);
  }

  /** The policy of an operation. */
  of(operationId: string): AppliedPolicy {
    const known = this.#known.get(operationId);
    if (known !== undefined) return known;
    const applied = this.merge(operationId, this.rules.sourceOf(operationId));
    if (this.#known.size >= MOST_KEPT) this.#known.clear();
    this.#known.set(operationId, applied);
    return applied;
  }

  /** The same for an operation of this source. */
  merge(operationId: string, source: string | undefined): AppliedPolicy {
    const applied: Record<string, unknown> = {};
    if (source !== undefined) add(applied, this.rules.sources.get(source), sourceOwner(source));
    for (const [pattern, policy] of this.#patterns) {
      if (matchesPattern(pattern, operationId)) add(applied, policy, patternOwner(pattern));
    }
    return applied;
  }

  /** What holds for a source as a whole: its own policy, and patterns that leave none of its operations out. */
  ofSource(source: string): AppliedPolicy {
    return this.merge(`${source}.${ANY_NAME}`, source);
  }

  /** Forgets what it knows of an operation, whose source may be another one now. */
  forget(operationId: string): void {
    this.#known.delete(operationId);
  }

  /** Every rate and concurrency, by the rule that says it. */
  gates(): GateRules {
    const rates = new Map<string, Rate>();
    const places = new Map<string, number>();
    const take = (owner: string, policy: OperationPolicy | undefined): void => {
      if (policy?.rate !== undefined) rates.set(owner, policy.rate);
      if (policy?.concurrency !== undefined) places.set(owner, policy.concurrency);
    };
    for (const [name, policy] of this.rules.sources) take(sourceOwner(name), policy);
    for (const [pattern, policy] of this.#patterns) take(patternOwner(pattern), policy);
    return { rates, places };
  }
}

function add(applied: Record<string, unknown>, policy: OperationPolicy | undefined, owner: string): void {
  if (policy === undefined) return;
  for (const field of FIELDS) if (policy[field] !== undefined) applied[field] = policy[field];
  if (policy.rate !== undefined) applied["rateOwner"] = owner;
  if (policy.concurrency !== undefined) applied["placesOwner"] = owner;
}

function sourceOwner(name: string): string {
  return `source ${name}`;
}

function patternOwner(pattern: string): string {
  return `pattern ${pattern}`;
}

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
 * 2. idempotency key: before anything else, so that a repetition costs nothing, asks nobody and is never refused for want of a turn.
 * 3. approval: of a call that may be made and whose input is right. A call that waits for a person takes no turn and none of its own time,
 *    and neither gets the answer of another one nor gives its own: what was approved is one run.
 * 4. cache, then single-flight: an answer that is there, or on its way, needs no turn and no time of its own.
 * 5. timeout: of the waiting and all attempts together.
 * 6. concurrency and rate, in one step (see `FairQueue`). A call counts once however often it is tried: it keeps its place between attempts, which
 *    spares a source in trouble, and it was promised a turn when it got one; the waits between attempts keep them apart.
 * 7. retries.
 *
 * A call that is refused for want of rights passes by all of it. Calls that wait for a place which is held by a handler that waits for
 * them would wait for ever: nested calls take places too, and deadlines end such a circle.
 */
class PolicyHooks implements Hooks {
  readonly #limits: PolicyLimits;
  readonly #turns: FairQueue;
  readonly #cache: ResultCache;
  readonly #runs = new SharedRuns();
  readonly #keyedRuns = new SharedRuns();
  readonly #idempotent: IdempotentCalls;
  readonly #slots: CallSlots;
  readonly #actsAs: PoliciesOptions["actsAs"];
  readonly #approvals: PoliciesOptions["approvals"];
  readonly #reuse: PoliciesOptions["reuse"];
  readonly #originOf: PoliciesOptions["originOf"];
  #isShared: boolean;
  #book: PolicyBook;

  constructor(
    book: PolicyBook,
    limits: PolicyLimits,
    {
      isShared = true,
      keys,
      actsAs,
      reuse,
      originOf,
      lease,
      approvals,
    }: Omit<PoliciesOptions, "rules" | "limits">,
  ) {
    this.#approvals = approvals;
    this.#book = book;
    this.#limits = { ...limits };
    this.#actsAs = actsAs;
    this.#reuse = reuse;
    this.#originOf = originOf;
    this.#isShared = isShared;
    this.#turns = new FairQueue(this.#limits, isShared, lease);
    this.#slots = new CallSlots(this.#limits, isShared);
    this.#cache = new ResultCache(this.#limits);
    this.#idempotent = new IdempotentCalls(this.#limits, isShared, keys);
    this.#turns.change(book.gates());
  }

  update(book: PolicyBook, limits: PolicyLimits | undefined): void {
    this.#book = book;
    Object.assign(this.#limits, limits);
    this.#turns.change(book.gates());
  }

  setShared(isShared: boolean): void {
    this.#isShared = isShared;
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
    if (isNested(context)) return this.#execute(operation, { call, next }, undefined);
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
        const found = await bounds.race(run(policy.timeoutMs === undefined ? signal : bounds.signal));
        return (await guardOf(policy)?.object(what, found, signal)) ?? found;
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
      return await this.#execute(operation, { call, next }, keyed);
    } finally {
      this.#slots.giveBack(owner);
    }
  }

  #execute(
    operation: AnyOperation,
    { call, next }: Pick<Run, "call" | "next">,
    keyed: KeyedClaim | undefined,
  ): Promise<ResponseEnvelope> {
    const policy = this.#book.of(operation.id);
    const approve = heldBy(policy, operation, call);
    if (keyed !== undefined) return this.#executeOnce({ call, next, policy, approve }, keyed);
    if (approve !== undefined) return this.#run({ call, next, policy, approve }, operation);
    const isShareable = (policy.cacheMs ?? 0) > 0 || policy.singleFlight === true;
    const isRead = operation.type === "query" || operation.annotations?.readOnly === true;
    if (!isShareable || !isRead) return this.#run({ call, next, policy }, operation);
    return this.#executeShared({ call, next, policy }, operation);
  }

  /** The first call of a key goes on while anybody waits for it. */
  #executeOnce(run: Run, keyed: KeyedClaim): Promise<ResponseEnvelope> {
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
    const as = this.#actsAs?.(operation.id, context.identity);
    const key = as === null ? undefined : callKey(operation, context, { input: call.input, as });
    if (key === undefined) return this.#run(run, operation);
    const kept = cacheMs > 0 ? this.#cache.get(key, cacheMs) : undefined;
    if (kept !== undefined) {
      takeNote(context, { cached: true });
      return kept;
    }
    const named = this.#reuse && this.#sharedKey(run, operation, as ?? undefined);
    const start = async (signal?: AbortSignal): Promise<ResponseEnvelope> => {
      if (named !== undefined)
        return this.#runForAll(signal === undefined ? run : { ...run, signal }, operation, { key, named });
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

  #sharedKey({ call, policy }: Run, operation: AnyOperation, as: string | undefined): ReuseKey | undefined {
    const origin = this.#originOf?.(operation.id);
    return reuseKey({ operation, context: call.context, input: call.input, as, origin, guard: policy.guard });
  }

  /** Runs a call whose result other replicas may have, wait for, or use. */
  async #runForAll(
    run: Run,
    operation: AnyOperation,
    { key, named }: { readonly key: string; readonly named: ReuseKey },
  ): Promise<ResponseEnvelope> {
    const reuse = this.#reuse as SharedReuse;
    const { cacheMs = 0, singleFlight = false, timeoutMs } = run.policy;
    const kept = cacheMs > 0 ? await reuse.get(named, cacheMs) : undefined;
    if (kept !== undefined) {
      takeNote(run.call.context, { cached: true });
      this.#cache.keep(key, kept.text, kept.ageMs);
      return decodeEnvelope(kept.text);
    }
    if (!singleFlight) return this.#runAndKeep(run, operation, { key, named });
    const startedAt = monotonicNow();
    const flight = await this.#joinFlight(run, named);
    if (flight.state === "landed") {
      takeNote(run.call.context, { shared: true });
      if (cacheMs > 0) this.#cache.keep(key, flight.text, 0);
      return decodeEnvelope(flight.text);
    }
    // What was waited for others is part of its time.
    const left = timeoutMs === undefined ? undefined : Math.max(timeoutMs - (monotonicNow() - startedAt), 0);
    const rest = left === undefined ? run : { ...run, policy: { ...run.policy, timeoutMs: left } };
    let text: string | undefined;
    try {
      const envelope = await this.#runAndKeep(rest, operation, { key, named });
      if (flight.state === "leading") text = writtenOrNone(envelope);
      return envelope;
    } finally {
      if (flight.state === "leading") flight.end(text);
    }
  }

  async #runAndKeep(
    run: Run,
    operation: AnyOperation,
    { key, named }: { readonly key: string; readonly named: ReuseKey },
  ): Promise<ResponseEnvelope> {
    const envelope = await this.#run(run, operation);
    const { cacheMs: keepMs = 0 } = run.policy;
    const text = keepMs > 0 ? this.#cache.set(key, envelope) : undefined;
    if (text !== undefined) {
      const { cacheEntries: entries, cacheCharacters: characters } = this.#limits;
      const share = this.#isShared ? SHARED_PART : 1;
      this.#reuse?.set(named, text, { keepMs, entries, characters, share });
    }
    return envelope;
  }

  /** Waits for a run of another replica, for as long as the call may take. */
  async #joinFlight({ call, policy, signal }: Run, named: ReuseKey): Promise<SharedFlight> {
    const { context, operationId } = call;
    const now = monotonicNow();
    const deadline = now + (policy.timeoutMs ?? INFINITE);
    const bounds = new Cancellation(operationId, signals(signal ?? signalIfAny(context)), deadline, now);
    const leaving = new AbortController();
    const joining = (this.#reuse as SharedReuse).join(named, leaving.signal);
    try {
      return await bounds.race(joining);
    } catch (thrown) {
      // It may be this one's turn by now, and others would wait for it.
      void joining.then(
        (flight) => flight.state === "leading" && flight.end(undefined),
        () => {},
      );
      throw thrown;
    } finally {
      leaving.abort();
      bounds.release();
    }
  }

  #run(run: Run, operation: AnyOperation): Promise<ResponseEnvelope> {
    return run.approve === undefined ? this.#runAllowed(run) : this.#runApproved(run, operation);
  }

  async #runApproved(run: Run, operation: AnyOperation): Promise<ResponseEnvelope> {
    await this.#hold(run, operation);
    return this.#runAllowed(run);
  }

  /** Waits until a person has approved a call that one has to approve. */
  async #hold(
    { call, approve, signal }: Pick<Run, "call" | "approve" | "signal">,
    operation: AnyOperation,
  ): Promise<void> {
    if (approve === undefined) return;
    if (this.#approvals === undefined)
      throw turnDown(new CallError("APPROVAL_REQUIRED", NOBODY_ASKED, { retryable: false }), operation.id);
    const isPatient = taskOf(call.context) !== undefined;
    await this.#approvals.hold({ call, operation, policy: approve, signal, isPatient });
  }

  #runAllowed(run: Run): Promise<ResponseEnvelope> {
    const guard = guardOf(run.policy);
    const running = this.#runUnguarded(run);
    return guard === undefined ? running : guardResult(guard, run, running);
  }

  #runUnguarded(run: Run): Promise<ResponseEnvelope> {
    const { policy } = run;
    const lane = this.#laneOf(policy);
    const retry = isRepeatable(run.call.operation) ? policy.retry : undefined;
    if (lane !== undefined || retry !== undefined) return this.#runInTurn(run, lane, retry);
    return goOn(run, policy.timeoutMs === undefined ? undefined : monotonicNow() + policy.timeoutMs);
  }

  async #runInTurn(
    run: Run,
    lane: Lane | undefined,
    retry: AppliedPolicy["retry"],
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
        if (retry === undefined) return await goOn(run, own);
        const caller = signal === undefined ? context.deadline : undefined;
        const deadline = Math.min(own ?? INFINITE, caller ?? INFINITE);
        const onAttempt = (attempts: number): void => takeNote(context, { attempts });
        return await retryCall(() => goOn(run, own), retry, { cancellation: bounds, deadline, onAttempt });
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
    // In steps of a microsecond, as the time of the whole call.
    if (waitedMs > 0) takeNote(context, { waitedMs: Math.ceil(waitedMs * 1_000) / 1_000 });
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
      const { operation } = call;
      const approve = operation && heldBy(policy, operation, call);
      if (operation !== undefined && approve !== undefined)
        await this.#hold({ call, approve, signal }, operation);
      if (lane !== undefined) {
        await this.#waitForStream(lane, call, policy.timeoutMs);
        isIn = true;
      }
      if (signal.aborted) return;
      addAbortListener(signal, listener);
      const guard = guardOf(policy);
      if (guard === undefined) yield* next();
      else yield* guardStream(guard, call, next());
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
/** Of the results that replicas share, one caller among others may have this part. */
const SHARED_PART = 1 / 4;

const GUARDS = new WeakMap<GuardPolicy, ResultGuard>();

/** The guard of a policy, made once; nothing where nothing is looked for. */
function guardOf({ guard }: OperationPolicy): ResultGuard | undefined {
  if (guard === undefined) return undefined;
  let made = GUARDS.get(guard);
  if (made === undefined) {
    made = new ResultGuard(guard, guard.judge && createJudge(guard.judge));
    GUARDS.set(guard, made);
  }
  return made;
}

async function guardResult(
  guard: ResultGuard,
  { call, signal }: Run,
  running: Promise<ResponseEnvelope>,
): Promise<ResponseEnvelope> {
  const envelope = await running.catch((thrown: unknown) => {
    throw guard.error(thrown);
  });
  return await guardOne(guard, envelope, { call, signal: signal ?? signalIfAny(call.context) });
}

/** Looks through one envelope, and notes what was found in it, withheld or not. */
async function guardOne(
  guard: ResultGuard,
  envelope: ResponseEnvelope,
  { call, signal }: { readonly call: HookedCall; readonly signal: AbortSignal | undefined },
): Promise<ResponseEnvelope> {
  try {
    const guarded = await guard.envelope(call.operationId, envelope, signal);
    if (guarded !== envelope) noteFindings(call.context, guarded.meta.waybill?.findings ?? []);
    return guarded;
  } catch (thrown) {
    noteFindings(call.context, withheldFindings(thrown));
    throw thrown;
  }
}

async function* guardStream(
  guard: ResultGuard,
  call: HookedCall,
  values: AsyncIterable<ResponseEnvelope>,
): AsyncGenerator<ResponseEnvelope, undefined> {
  try {
    for await (const value of values)
      yield await guardOne(guard, value, { call, signal: call.context.signal });
  } catch (thrown) {
    throw guard.error(thrown);
  }
}

function signals(signal: AbortSignal | undefined): readonly AbortSignal[] {
  return signal === undefined ? [] : [signal];
}

const NOBODY_ASKED = "A person has to approve this call, and nobody can be asked here.";

/** How a call is approved that a person has to approve; nothing for others, and for a task that has begun in a process that is gone. */
function heldBy(
  { approve }: OperationPolicy,
  operation: AnyOperation,
  { input, context }: HookedCall,
): ApprovePolicy | undefined {
  if (approve === undefined || taskOf(context)?.handle !== undefined) return undefined;
  return needsApproval(approve, operation, input) ? approve : undefined;
}

/** What goes on with a call. */
export type Next = Parameters<CallHook>[1];

/** A call on its way to the operation, and what it is bound by. */
export interface Run {
  readonly call: HookedCall;
  readonly next: Next;
  readonly policy: AppliedPolicy;
  /** How a person approves it first, where one has to. */
  readonly approve?: ApprovePolicy | undefined;
  /** Where several callers share the run: what ends it, in place of whatever ends the call. */
  readonly signal?: AbortSignal;
  readonly onStart?: () => void;
}

/** Calls that may be made again without doing anything twice. */
function isRepeatable(operation: AnyOperation | undefined): boolean {
  if (operation === undefined) return false;
  const { type, annotations } = operation;
  return type === "query" || annotations?.readOnly === true || annotations?.idempotent === true;
}

/** One attempt, within what is left of its time. */
function goOn({ call, next, signal, onStart }: Run, deadline: number | undefined): Promise<ResponseEnvelope> {
  onStart?.();
  if (deadline === undefined && signal === undefined) return next();
  const timeoutMs = deadline === undefined ? undefined : Math.max(deadline - monotonicNow(), 0);
  const options: NextOptions = { timeoutMs, signal, detached: signal !== undefined };
  return next(call.input, options);
}
