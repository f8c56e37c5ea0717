import { ownerOf } from "../../core/access/identity.ts";
import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { CallError, toCallError } from "../../core/errors/errors.ts";
import { LONGEST_DELAY, monotonicNow } from "../../core/execution/deadline.ts";
import type { HookedCall } from "../../core/execution/hooks.ts";
import { turnDown } from "../../core/execution/turned-down.ts";
import {
  type IdempotentCalls,
  type KeyEnding,
  keyEndingOf,
  type RepeatedCall,
  readIdempotencyKey,
} from "../../core/idempotency/idempotent-calls.ts";
import { digestOf } from "../../http/caller-digest.ts";
import { inputText } from "./call-key.ts";

/** A call that a policy runs once for its key. */
export interface KeyedCall {
  readonly operationId: string;
  readonly requestId: string;
  /** Whose it is. */
  readonly owner: string;
  /** The operation and the key. */
  readonly key: string;
  /** What tells it from another call with the same key. */
  readonly fingerprint: string;
}

/** Reads the key that a caller gave for a mutation, in its metadata; one that is none fails the call. */
export function keyedCall({ operationId, context, input }: HookedCall): KeyedCall {
  try {
    const key = readIdempotencyKey(context.metadata["idempotencyKey"]);
    const text = inputText(input);
    if (text === undefined) {
      throw new CallError(
        "VALIDATION_ERROR",
        "With an Idempotency-Key the input must be one that can be compared.",
      );
    }
    return {
      operationId,
      requestId: context.requestId,
      owner: ownerOf(context.identity),
      key: JSON.stringify([operationId, key]),
      fingerprint: JSON.stringify([text, digestOf(context.identity)]),
    };
  } catch (thrown) {
    throw turnDown(toCallError(thrown), operationId);
  }
}

/** How a keyed call is run. */
export interface KeyedRun {
  readonly signal: AbortSignal;
  /** Runs the call, and calls back when it comes to the operation. */
  run(onStart: () => void): Promise<ResponseEnvelope>;
  /** Hears that the call is answered with what another one came to. */
  onRepeat(): void;
}

/**
 * Runs a call once for its key. Results, tool errors and errors that would be the same again are repeated; a call that never came to its
 * operation or may be made again is forgotten.
 */
export async function runKeyed(
  calls: IdempotentCalls,
  call: KeyedCall,
  { signal, run, onRepeat }: KeyedRun,
): Promise<ResponseEnvelope> {
  const { operationId, requestId } = call;
  const keyed = { ...call, signal, patienceMs: LONGEST_DELAY };
  const outcome = await calls
    .run<RepeatedCall["outcome"]>(keyed, {
      async run() {
        let hasStarted = false;
        const startedAt = monotonicNow();
        const answer = await settled(() =>
          run(() => {
            hasStarted = true;
          }),
        );
        const ended = { requestId, durationMs: monotonicNow() - startedAt, outcome: answer };
        return { answer, end: hasStarted ? endingOf(operationId, ended) : { ending: "passing" } };
      },
      repeat(repeated) {
        onRepeat();
        return repeated.outcome;
      },
    })
    .catch((thrown) => {
      // It never ran: the key was used for something else, or there is no room for it.
      throw turnDown(toCallError(thrown), operationId);
    });
  if ("error" in outcome) throw outcome.error;
  return outcome.envelope;
}

async function settled(run: () => Promise<ResponseEnvelope>): Promise<RepeatedCall["outcome"]> {
  try {
    return { envelope: await run() };
  } catch (thrown) {
    return { error: toCallError(thrown) };
  }
}

/** An error that passes is not repeated: the caller of a gateway is told to try again. */
function endingOf(operationId: string, call: RepeatedCall): KeyEnding {
  const end = keyEndingOf(operationId, call);
  const passes = "error" in call.outcome && call.outcome.error.retryable;
  return passes && end.ending === "final" ? { ending: "passing" } : end;
}
