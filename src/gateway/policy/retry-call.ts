import { type ResponseEnvelope, withFacts } from "../../core/envelope/envelope.ts";
import { type CallError, toCallError } from "../../core/errors/errors.ts";
import type { Cancellation } from "../../core/execution/cancellation.ts";
import { LONGEST_DELAY, monotonicNow } from "../../core/execution/deadline.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { RetryPolicy } from "./policy.ts";

/** What a call that is tried again is bound by. */
export interface RetryBounds {
  /** Ends the waiting in between. */
  readonly cancellation: Cancellation;
  /** On the monotonic clock: no attempt begins later. */
  readonly deadline: number;
  /** Hears of each further attempt, by its number. */
  onAttempt(attempt: number): void;
}

/**
 * Tries until an attempt answers, fails for good, or was the last. What the other side asks to be left in peace for (`details.retryAfterMs`)
 * is waited for, unless that is longer than `maxDelayMs`: then its error stands, as it does where the deadline comes first.
 */
export async function retryCall(
  run: () => Promise<ResponseEnvelope>,
  { attempts = 3, delayMs = 200, maxDelayMs = 10_000 }: RetryPolicy,
  bounds: RetryBounds,
): Promise<ResponseEnvelope> {
  for (let attempt = 1; ; attempt++) {
    try {
      const envelope = await run();
      if (attempt === 1) return envelope;
      // The last attempt may have been several, where the adapter tried again by itself.
      return withFacts(envelope, { attempts: attempt - 1 + (envelope.meta.waybill?.attempts ?? 1) });
    } catch (thrown) {
      const error = toCallError(thrown);
      if (!error.retryable || attempt >= attempts || bounds.cancellation.check() !== undefined) throw error;
      const asked = askedDelay(error);
      if (asked > maxDelayMs) throw error;
      const wait = Math.max(asked, variedDelay(attempt, delayMs, maxDelayMs));
      if (monotonicNow() + wait >= bounds.deadline) throw error;
      await sleep(wait, bounds.cancellation);
      bounds.onAttempt(attempt + 1);
    }
  }
}

/** Twice as long after each attempt, and between half and all of that, so that callers do not come back together. */
function variedDelay(attempt: number, delayMs: number, maxDelayMs: number): number {
  const most = Math.min(delayMs * 2 ** (attempt - 1), maxDelayMs);
  return most * (0.5 + Math.random() / 2);
}

function askedDelay({ details }: CallError): number {
  const asked = isPlainObject(details) ? details["retryAfterMs"] : undefined;
  return typeof asked === "number" && asked > 0 ? asked : 0;
}

/** Waits, and stops waiting at once when the call ends: no timer is left behind. */
async function sleep(ms: number, cancellation: Cancellation): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const slept = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.min(ms, LONGEST_DELAY));
  });
  try {
    await cancellation.race(slept);
  } finally {
    clearTimeout(timer);
  }
}
