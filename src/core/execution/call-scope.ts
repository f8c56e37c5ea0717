import { HeldIdentity } from "../access/identity.ts";
import { CallError } from "../errors/errors.ts";
import type { CallerSide } from "../operation/caller-side.ts";
import type { CallOrigin, LogLine, Metadata } from "../operation/operation-context.ts";
import { checkOptionsObject, refuseName } from "../options/check-options.ts";
import type { CallAbove, ExecuteOptions } from "../registry/executor.ts";
import type { RegistryHost } from "../registry/registry-host.ts";
import { isAbortSignal } from "./abort-listeners.ts";
import { type CallContext, inheritFrom } from "./call-context.ts";
import { Cancellation } from "./cancellation.ts";
import { monotonicNow, toDeadline } from "./deadline.ts";
import type { NextOptions } from "./hooks.ts";
import { isRequestId } from "./request-id.ts";

/** What a call is given by whoever made it, read once. */
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
  operationId: string,
  requestId: string,
  { signal, timeoutMs, detached = false }: NextOptions,
): CancellableScope {
  const { cancellation: above, onProgress } = scope;
  const cancellation =
    join(operationId, signal, timeoutMs, detached ? undefined : above) ??
    new Cancellation(operationId, NO_SIGNALS, Number.POSITIVE_INFINITY, monotonicNow());
  // Whoever has left hears no more of it.
  const report = (value: unknown) => (above?.ended === true ? undefined : onProgress?.(value));
  return { ...scope, requestId, cancellation, onProgress: detached && onProgress ? report : onProgress };
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
  const now = monotonicNow();
  const own = timeoutMs === undefined ? Number.POSITIVE_INFINITY : toDeadline(timeoutMs, now);
  const { signals = NO_SIGNALS, deadline = Number.POSITIVE_INFINITY } = above ?? {};
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
