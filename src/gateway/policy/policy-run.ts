import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { monotonicNow } from "../../core/execution/deadline.ts";
import type { CallHook, HookedCall, NextOptions } from "../../core/execution/hooks.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { AppliedPolicy } from "./policy-book.ts";

/** What goes on with a call. */
export type Next = Parameters<CallHook>[1];

/** A call on its way to the operation, and what it is bound by. */
export interface Run {
  readonly call: HookedCall;
  readonly next: Next;
  readonly policy: AppliedPolicy;
  /** Where several callers share the run: what ends it, in place of whatever ends the call. */
  readonly signal?: AbortSignal;
  readonly onStart?: () => void;
}

/** Calls that may be made again without doing anything twice. */
export function isRepeatable({ type, annotations }: AnyOperation): boolean {
  return type === "query" || annotations?.readOnly === true || annotations?.idempotent === true;
}

/** One attempt, within what is left of its time. */
export function goOn(
  { call, next, signal, onStart }: Run,
  deadline: number | undefined,
): Promise<ResponseEnvelope> {
  onStart?.();
  if (deadline === undefined && signal === undefined) return next();
  const timeoutMs = deadline === undefined ? undefined : Math.max(deadline - monotonicNow(), 0);
  const options: NextOptions = { timeoutMs, signal, detached: signal !== undefined };
  return next(call.input, options);
}
