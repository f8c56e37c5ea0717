import { HeldIdentity, type Identity } from "../access/identity.ts";
import { undeclared } from "../access/tier.ts";
import { CallError } from "../errors/errors.ts";
import type { CallerSide, CallerTask } from "../operation/caller-side.ts";
import type { CallOrigin, LogLine, Metadata, OperationContext } from "../operation/operation-context.ts";
import type { OperationEnv } from "../operation/operation-env-types.ts";
import { checkOptionsObject, refuseName } from "../options/check-options.ts";
import type { CallAbove, ExecuteOptions } from "../registry/executor.ts";
import type { OperationEntry } from "../registry/operation-entry.ts";
import { type EnvExecute, operationEnv } from "../registry/operation-env.ts";
import { notify, type RegistryHost } from "../registry/registry-host.ts";
import { Cancellation, isAbortSignal, monotonicNow, toDeadline } from "./cancellation.ts";
import type { NextOptions } from "./dispatch.ts";

/** The data that nested calls inherit from this context; not a member, so that handlers cannot reach it. */
export let inheritFrom: (context: CallContext) => Inheritance;

/** Marks a call as ended, after which progress is no longer reported, or as running again. */
export let closeContext: (context: CallContext, over?: boolean) => void;

/** Tells whether a context belongs to a call of this registry. */
export let belongsTo: (context: CallContext, host: RegistryHost) => boolean;

/** Returns whether the call has ended for its caller. */
export let isOver: (context: CallContext) => boolean;

let isNestedCall: (context: CallContext) => boolean;
let cancellationSignalOf: (context: CallContext) => AbortSignal | undefined;
let outermostIdentity: (context: CallContext) => Identity | undefined;
let firstOf: (context: CallContext) => CallContext | undefined;
let lightSignalOf: (context: CallContext) => AbortSignal | undefined;

/** Gives the signal of a call that somebody can abort, and nothing for others: a signal costs more than most of a call. */
export function signalIfAny(context: OperationContext): AbortSignal | undefined {
  return context instanceof CallContext ? cancellationSignalOf(context) : context.signal;
}

/** The same as a light signal, for internal code only. */
export function lightSignalIfAny(context: OperationContext): AbortSignal | undefined {
  return context instanceof CallContext ? lightSignalOf(context) : context.signal;
}

/** Returns whether a handler of this process made the call; a call from outside can have a `parent` too, in another process. */
export function isNested(context: OperationContext): boolean {
  return context instanceof CallContext && isNestedCall(context);
}

/** The context that a call started with: hooks that set limits run the inner part with another context. */
export function firstContextOf(context: object): object {
  return context instanceof CallContext ? (firstOf(context) ?? context) : context;
}

/** The task that a call is; nothing for a call within another one, and for one that is no task. */
export function taskOf(context: OperationContext): CallerTask | undefined {
  if (!(context instanceof CallContext) || isNestedCall(context)) return undefined;
  return inheritFrom(context).caller?.task;
}

/** The caller of the outermost call, whatever `authority` the operations in between have. */
export function callerOf(context: OperationContext): Identity | undefined {
  return context instanceof CallContext ? outermostIdentity(context) : context.identity;
}

type CallNames = Pick<OperationContext, "operationId" | "requestId">;

/** The context of one call; members are created when a handler first reads them. */
export class CallContext implements OperationContext {
  readonly #host: RegistryHost;
  readonly #entry: OperationEntry | undefined;
  readonly #operationId: string;
  readonly #scope: CallScope;
  #requestId: unknown;
  #hasOwnId = false;
  #quietSignal: AbortSignal | undefined;
  #over = false;

  static {
    inheritFrom = (context) => ({
      identity: context.#entry?.authority ?? context.#scope.identity,
      cancellation: context.#scope.cancellation,
      depth: context.#scope.depth,
      metadata: context.#scope.metadata,
      caller: context.#scope.caller,
    });
    closeContext = (context, over = true) => {
      context.#over = over;
    };
    isNestedCall = (context) => context.#scope.parent !== undefined;
    cancellationSignalOf = (context) => context.#scope.cancellation?.signal;
    outermostIdentity = (context) => {
      let outer = context;
      while (outer.#scope.parent !== undefined) outer = outer.#scope.parent;
      return outer.#scope.identity;
    };
    firstOf = (context) => context.#scope.first;
    lightSignalOf = (context) => context.#scope.cancellation?.lightSignal;
    belongsTo = (context, host) => context.#host === host;
    isOver = (context) => context.#over || context.#scope.cancellation?.ended === true;
  }

  constructor(host: RegistryHost, entry: OperationEntry | undefined, operationId: string, scope: CallScope) {
    this.#host = host;
    this.#entry = entry;
    this.#operationId = operationId;
    this.#scope = scope;
    this.#requestId = scope.requestId;
  }

  get requestId(): string {
    if (!this.#hasOwnId) {
      this.#hasOwnId = true;
      if (!isRequestId(this.#requestId)) this.#requestId = randomId();
    }
    return this.#requestId as string;
  }

  get operationId(): string {
    return this.#operationId;
  }

  get parent(): CallOrigin | undefined {
    const { parent, origin } = this.#scope;
    return parent === undefined ? origin : parent.#origin();
  }

  get identity(): Identity | undefined {
    return this.#scope.identity;
  }

  get signal(): AbortSignal {
    const { cancellation } = this.#scope;
    if (cancellation !== undefined) return cancellation.signal;
    this.#quietSignal ??= new AbortController().signal;
    return this.#quietSignal;
  }

  get deadline(): number | undefined {
    const deadline = this.#scope.cancellation?.deadline;
    return deadline === Number.POSITIVE_INFINITY ? undefined : deadline;
  }

  get metadata(): Metadata {
    return this.#scope.metadata;
  }

  get env(): OperationEnv {
    const { identity } = inheritFrom(this);
    const { execute } = this;
    return operationEnv(this.#host.table, execute as EnvExecute, (entry) => entry.admits(identity));
  }

  get execute(): OperationContext["execute"] {
    const call = (target: unknown, input: unknown, options: ExecuteOptions | undefined) =>
      this.#host.execute(target, input, options, this);
    return call as OperationContext["execute"];
  }

  get subscribe(): OperationContext["subscribe"] {
    const call = (target: unknown, input: unknown, options: ExecuteOptions | undefined) =>
      this.#host.subscribe(target, input, options, this);
    return call as OperationContext["subscribe"];
  }

  get progress(): OperationContext["progress"] {
    return (value) => {
      if (isOver(this)) return;
      notify(this.#host, this.#scope.onProgress, value);
      this.#tell(this.#host.onProgress, { value });
    };
  }

  get requireFeature(): OperationContext["requireFeature"] {
    return (feature) => {
      const { tiers } = this.#entry ?? {};
      if (tiers === undefined) throw undeclared(this.#operationId, feature);
      const refusal = tiers.refusalOf(feature, this.#scope.identity);
      if (refusal !== undefined) throw refusal;
    };
  }

  get log(): OperationContext["log"] {
    return (level, message, data) => {
      notify(this.#host, this.#scope.onLog, { level, message, data });
      this.#tell(this.#host.onLog, { level, message, data });
    };
  }

  get elicit(): OperationContext["elicit"] {
    return (request, options) =>
      this.#ask("elicit", (caller, signal) => caller.elicit?.(request, signal, options?.key));
  }

  get sample(): OperationContext["sample"] {
    return (request, options) =>
      this.#ask("sample", (caller, signal) => caller.sample?.(request, signal, options?.key));
  }

  get roots(): OperationContext["roots"] {
    return (options) => this.#ask("roots", (caller, signal) => caller.roots?.(signal, options?.key));
  }

  async #ask<A>(
    what: "elicit" | "sample" | "roots",
    ask: (caller: CallerSide, signal: AbortSignal) => Promise<A> | undefined,
  ): Promise<A> {
    const { caller } = this.#scope;
    const asked = caller && ask(caller, this.signal);
    if (asked !== undefined) return await asked;
    const message = `The caller of "${this.#operationId}" cannot be asked (${what}): its side does not offer it.`;
    throw new CallError("NOT_IMPLEMENTED", message);
  }

  /** Adds which call it was; an id is made only where somebody listens. */
  #tell<T>(listener: ((record: T & CallNames) => void) | undefined, record: T): void {
    if (listener === undefined) return;
    const { operationId, requestId } = this;
    notify(this.#host, listener, { ...record, operationId, requestId });
  }

  #origin(): CallOrigin {
    const { requestId, operationId, parent } = this;
    return Object.freeze({ requestId, operationId, parent });
  }
}

/** The options of a call, read once. */
export interface CallScope {
  readonly identity: HeldIdentity | undefined;
  /** Absent when nothing can end the call early. */
  readonly cancellation: Cancellation | undefined;
  /** The context of the handler that made the call; absent when it came from outside. */
  readonly parent: CallContext | undefined;
  /** The call above one that came from another process; it says nothing about what the call may do. */
  readonly origin: CallOrigin | undefined;
  readonly depth: number;
  /** As the caller gave it; looked at when it is first read. */
  readonly requestId: unknown;
  readonly metadata: Metadata;
  readonly onProgress: ((value: unknown) => void) | undefined;
  readonly onLog: ((line: LogLine) => void) | undefined;
  readonly caller: CallerSide | undefined;
  /** The context that the call began with; absent where it is the only one. */
  readonly first: CallContext | undefined;
}

/** A scope that something can always end early. */
export interface CancellableScope extends CallScope {
  readonly cancellation: Cancellation;
}

/** What a nested call takes over from the call above it. */
export type Inheritance = Pick<CallScope, "identity" | "cancellation" | "depth" | "metadata" | "caller">;

const NO_METADATA: Metadata = Object.freeze({});
const NO_SIGNALS: readonly AbortSignal[] = Object.freeze([]);

const BARE: CallScope = Object.freeze({
  identity: undefined,
  cancellation: undefined,
  parent: undefined,
  origin: undefined,
  depth: 0,
  requestId: undefined,
  metadata: NO_METADATA,
  onProgress: undefined,
  onLog: undefined,
  caller: undefined,
  first: undefined,
});

const NO_OPTIONS: ExecuteOptions = Object.freeze({});

const NAMES: Readonly<Record<keyof ExecuteOptions, true>> = {
  identity: true,
  signal: true,
  timeoutMs: true,
  requestId: true,
  metadata: true,
  onProgress: true,
  onLog: true,
  origin: true,
  caller: true,
};

/** The names of what a call may be told. A nested call takes those that say who asks as well, and does not go by them. */
export const EXECUTE_OPTIONS: readonly string[] = Object.keys(NAMES);

/** Tells whether a call may be told something of this name; a `switch`, because a look-up in a set shows in the time of a call. */
export function isExecuteOption(name: string): boolean {
  switch (name) {
    case "identity":
    case "signal":
    case "timeoutMs":
    case "requestId":
    case "metadata":
    case "onProgress":
    case "onLog":
    case "origin":
    case "caller":
      return true;
    default:
      return false;
  }
}

/** Throws a `TypeError` for an option of a call that there is not, or for options that are no object. */
export function checkExecuteOptions(options: object): void {
  if (typeof options !== "object") checkOptionsObject(options, EXECUTE_OPTIONS);
  for (const name in options) if (!isExecuteOption(name)) refuseName(options, name, EXECUTE_OPTIONS);
}

/** Reads the options of a call once; a `TypeError` says which of them makes no sense, or does not exist. */
export function openScope(
  host: RegistryHost,
  operationId: string,
  options: ExecuteOptions | undefined,
  parent: CallContext | undefined,
): CallScope {
  if (options === undefined && parent === undefined && host.defaultTimeoutMs === undefined) return BARE;
  const above = parent === undefined ? undefined : inheritFrom(parent);
  if (options !== undefined) checkExecuteOptions(options);
  const { identity, signal, timeoutMs, requestId, metadata, onProgress, onLog, origin, caller } =
    options ?? NO_OPTIONS;
  const limit = timeoutMs === undefined && above === undefined ? host.defaultTimeoutMs : timeoutMs;
  return {
    identity: above === undefined ? held(identity) : above.identity,
    cancellation: join(operationId, signal, limit, above?.cancellation),
    parent,
    origin: above === undefined ? parentOf(origin) : undefined,
    depth: within(host.maxDepth, above === undefined ? depthOf(origin) : above.depth + 1, operationId),
    requestId,
    metadata: metadata ?? above?.metadata ?? NO_METADATA,
    onProgress,
    onLog,
    caller: above === undefined ? caller : above.caller,
    first: undefined,
  };
}

/** A scope like another one, with one more signal that can end the call. */
export function withSignal(scope: CallScope, operationId: string, signal: AbortSignal): CancellableScope {
  const {
    signals = NO_SIGNALS,
    deadline = Number.POSITIVE_INFINITY,
    startedAt = 0,
  } = scope.cancellation ?? {};
  return { ...scope, cancellation: new Cancellation(operationId, [...signals, signal], deadline, startedAt) };
}

/** A scope like another one, for what runs inside a hook that sets bounds to it; it stays the same call. */
export function boundedScope(
  scope: CallScope,
  { operationId, requestId, ...rest }: CallNames & { readonly first: CallContext },
  { signal, timeoutMs, detached = false }: NextOptions,
): CancellableScope {
  const first = scope.first ?? rest.first;
  const { cancellation: above, onProgress } = scope;
  const cancellation =
    join(operationId, signal, timeoutMs, detached ? undefined : above) ??
    new Cancellation(operationId, NO_SIGNALS, Number.POSITIVE_INFINITY, 0);
  // A caller that has left hears no more of it.
  const report = (value: unknown) => (above?.ended === true ? undefined : onProgress?.(value));
  return {
    ...scope,
    first,
    requestId,
    cancellation,
    onProgress: detached && onProgress ? report : onProgress,
  };
}

function held(identity: ExecuteOptions["identity"]): HeldIdentity | undefined {
  return identity === undefined ? undefined : HeldIdentity.of(identity);
}

function join(
  operationId: string,
  signal: AbortSignal | undefined,
  timeoutMs: number | undefined,
  above: Cancellation | undefined,
): Cancellation | undefined {
  if (signal === undefined && timeoutMs === undefined && above === undefined) return undefined;
  if (signal !== undefined && !isAbortSignal(signal)) throw new TypeError("signal must be an AbortSignal.");
  const { signals = NO_SIGNALS, deadline = Number.POSITIVE_INFINITY } = above ?? {};
  // The clock is read for those who have a deadline.
  const isTimed = timeoutMs !== undefined || deadline !== Number.POSITIVE_INFINITY;
  const now = isTimed ? monotonicNow() : 0;
  const own = timeoutMs === undefined ? Number.POSITIVE_INFINITY : toDeadline(timeoutMs, now);
  const joined = signal === undefined || signals.includes(signal) ? signals : [...signals, signal];
  return new Cancellation(operationId, joined, Math.min(own, deadline), now);
}

function within(maxDepth: number, depth: number, operationId: string): number {
  if (depth <= maxDepth) return depth;
  const message = `The call of "${operationId}" is nested more than ${maxDepth} calls deep; do the operations call each other in a circle?`;
  throw new CallError("RESOURCE_EXHAUSTED", message, { retryable: false });
}

/** Reads how many calls are above one that came from outside; a `TypeError` says what is wrong with it. */
function depthOf(origin: CallAbove | undefined): number {
  if (origin === undefined) return 0;
  if (typeof origin !== "object" || origin === null)
    throw new TypeError("origin must be an object with a depth.");
  const { depth } = origin;
  if (!Number.isSafeInteger(depth) || depth < 0) {
    throw new TypeError("origin.depth must be a whole number, 0 or more.");
  }
  return depth;
}

/** Copies the call above one that came from outside; the calls above that one are not known here. */
function parentOf(origin: CallAbove | undefined): CallOrigin | undefined {
  const parent = origin?.parent;
  if (parent === undefined) return undefined;
  const { requestId, operationId } = parent ?? {};
  if (!isRequestId(requestId) || typeof operationId !== "string") {
    throw new TypeError("origin.parent must be an object with a requestId and an operationId.");
  }
  return Object.freeze({ requestId, operationId, parent: undefined });
}

const MAX_REQUEST_ID = 200;

/** Tells whether a request id is short and printable, so that it is safe in a header or a log line. */
export function isRequestId(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_REQUEST_ID && /^[\x21-\x7e]+$/.test(value);
}

const HEX_DIGITS = Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0));

/** Random bytes had in one go and used once: asking for 16 at a time costs twice as much as making a UUID. */
const pool = new Uint8Array(4_096);
let used = pool.length;

/** Where the digits of one text are put together. */
const CODES = { 16: Array<number>(16).fill(0), 32: Array<number>(32).fill(0) };

/**
 * Makes so many hex digits that nobody can guess, never the same ones twice. In one flat text: one that is put together piece by piece is
 * copied once more wherever it is looked at or sent.
 */
export function randomHex(digits: keyof typeof CODES): string {
  const codes = CODES[digits];
  if (used + digits / 2 > pool.length) {
    crypto.getRandomValues(pool);
    used = 0;
  }
  for (let at = 0; at < digits; at += 2) {
    const byte = pool[used++] as number;
    codes[at] = HEX_DIGITS[byte >> 4] as number;
    codes[at + 1] = HEX_DIGITS[byte & 15] as number;
  }
  return String.fromCharCode(...codes);
}

/** Makes a request id: 32 hex digits that nobody can guess. */
export function randomId(): string {
  return randomHex(32);
}
