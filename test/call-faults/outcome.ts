import type { DurableCalls } from "../../src/call/nats/index.ts";
import { toCallError } from "../../src/index.ts";
import type { Outcome } from "./history.ts";

/** Waits for an envelope, or for the error instead of it. */
export async function outcomeOf(answer: Promise<{ readonly data: unknown }>): Promise<Outcome> {
  try {
    return { ok: true, value: (await answer).data };
  } catch (thrown) {
    const { code, retryable } = toCallError(thrown);
    return { ok: false, code, retryable };
  }
}

/** Asks how a stored call ended, and waits for that if need be. */
export function fetchEnd(calls: DurableCalls, id: string, timeoutMs: number): Promise<Outcome> {
  return outcomeOf(calls.result(id, { timeoutMs }));
}
