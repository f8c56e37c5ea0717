import { CallError, type CallErrorOptions, isTurnedDown, toCallError } from "../errors/errors.ts";
import { addAbortListener, monotonicNow, removeAbortListener } from "../execution/cancellation.ts";
import type { EndedCall } from "../result/ended-call.ts";
import { decodeEnvelope, encodeEnvelope } from "../wire/wire.ts";
import {
  type HeldKey,
  type IdempotencyStore,
  type KeptOutcome,
  type KeyBounds,
  type KeyEnd,
  type KeyRequest,
  MemoryIdempotencyStore,
} from "./idempotency-store.ts";

/** How much is kept for idempotency keys, and for how long; it may change. */
export interface IdempotencyLimits {
  readonly idempotencyKeys: number;
  readonly idempotencyBytes: number;
  readonly idempotencyMs: number;
}

/** A call that must not run twice. */
export interface KeyedCall extends KeyRequest {
  readonly signal: AbortSignal;
  /** How long the first call of this key is waited for, in milliseconds. */
  readonly patienceMs: number;
}

/** What a call came to, and which call that was. */
export type RepeatedCall = Pick<EndedCall, "requestId" | "durationMs" | "outcome">;

/** What an ended call means for its key: the outcome is repeated, the call may be made again, or nobody knows what it has done. */
export type KeyEnding =
  | { readonly ending: "final"; readonly call: RepeatedCall }
  | { readonly ending: "passing" | "unknown" };

/** What is done for a call: it runs, or it is answered with what the first one of its key came to. */
export interface OnceOrRepeated<T> {
  /** Runs the call; one that throws uses its key up, as nobody knows what it has done. */
  run(): Promise<{ readonly answer: T; readonly end: KeyEnding }>;
  repeat(call: RepeatedCall): Promise<T> | T;
}

/** Of all that is kept, one caller among others may have the fourth part. */
const SHARES = 4;
const LOST = {
  unknown:
    "The first call with this Idempotency-Key did not end in time: its outcome is not known; use a new key.",
  too_long:
    "The first call with this Idempotency-Key ran, but its answer was too long to be kept; use a new key.",
};
const KEY = /^[\x21-\x7e]{1,255}$/;
/** How soon a caller whose key is waited for, or has no room, is told to come again. */
const AGAIN_MS = 1_000;

/** Reads the key of a call; anything that is none is a `CallError`. */
export function readIdempotencyKey(given: unknown): string | undefined {
  if (given === undefined || (typeof given === "string" && KEY.test(given))) return given;
  const message = "The Idempotency-Key must be 1 to 255 printable characters.";
  throw new CallError("VALIDATION_ERROR", message, { stack: false });
}

/**
 * Runs calls with an idempotency key once, and repeats what they came to: the envelope or the error, for the edge that writes it. None is
 * forgotten before its time: a new key is refused instead.
 */
export class IdempotentCalls {
  readonly #limits: IdempotencyLimits;
  readonly #store: IdempotencyStore;
  #shares: number;

  /** Where `isShared`, callers are told apart, and no one of them may take more than a quarter of the room. */
  constructor(
    limits: IdempotencyLimits,
    isShared: boolean,
    store: IdempotencyStore = new MemoryIdempotencyStore(),
  ) {
    this.#limits = limits;
    this.#store = store;
    this.#shares = isShared ? SHARES : 1;
  }

  /** Tells callers apart from now on, or does not. */
  setShared(isShared: boolean): void {
    this.#shares = isShared ? SHARES : 1;
  }

  /** Runs a call, or repeats what the first one of its key came to, once that has ended. */
  async run<T>(call: KeyedCall, { run, repeat }: OnceOrRepeated<T>): Promise<T> {
    const { owner, key, fingerprint } = call;
    const until = monotonicNow() + call.patienceMs;
    for (;;) {
      const found = await this.#store.claim({ owner, key, fingerprint }, this.#bounds());
      if (found.state === "claimed") return this.#runFirst(found.held, run);
      if (found.state === "full") {
        const message = "As many Idempotency-Keys are kept as there is room for; try again later.";
        const details = { reason: "full", retryAfterMs: AGAIN_MS };
        throw new CallError("RESOURCE_EXHAUSTED", message, { details, stack: false });
      }
      if (found.fingerprint !== fingerprint) {
        throw conflict(
          "This Idempotency-Key was used with another input, form of answer or right; take a new one for each call.",
          { details: { reason: "other_input" }, httpStatus: 422 },
        );
      }
      const end =
        found.state === "running"
          ? await waitFor(this.#store.ended({ owner, key }), until - monotonicNow(), call.signal)
          : found;
      // The first call may have come to nothing that is kept; then this one takes its place.
      if (end === undefined) continue;
      if (end.state === "lost") throw conflict(LOST[end.reason], { details: { reason: end.reason } });
      return repeat(fromKept(end.outcome));
    }
  }

  async #runFirst<T>(held: HeldKey, run: OnceOrRepeated<T>["run"]): Promise<T> {
    let end: KeyEnding = { ending: "unknown" };
    try {
      const ran = await run();
      end = ran.end;
      return ran.answer;
    } finally {
      if (end.ending === "passing") await this.#store.release(held);
      else await this.#store.settle(held, toKeyEnd(end), this.#bounds());
    }
  }

  #bounds(): KeyBounds {
    const { idempotencyKeys: keys, idempotencyBytes: bytes, idempotencyMs: keepMs } = this.#limits;
    const ownKeys = Math.ceil(keys / this.#shares);
    return { keys, bytes, ownKeys, ownBytes: Math.ceil(bytes / this.#shares), keepMs };
  }
}

/** Codes of calls that a registry elsewhere may have turned down: what it says of them does not tell. */
const MAY_NOT_HAVE_RUN = new Set(["NO_RESPONDER", "OPERATION_NOT_FOUND", "UNAUTHENTICATED"]);

/** Tells what the end of a call means for its key: what a handler did before it failed is done, whatever it failed with; what the runtime turned down never ran. */
export function keyEndingOf(operationId: string, call: RepeatedCall): KeyEnding {
  if ("envelope" in call.outcome) return { ending: "final", call };
  const { error } = call.outcome;
  if (error.code === "TIMEOUT" || error.code === "ABORTED") return { ending: "unknown" };
  const isPassing =
    error.code !== "OUTPUT_INVALID" && (isTurnedDown(error, operationId) || MAY_NOT_HAVE_RUN.has(error.code));
  return isPassing ? { ending: "passing" } : { ending: "final", call };
}

function toKeyEnd(end: KeyEnding): KeyEnd {
  if (end.ending !== "final") return { state: "lost", reason: "unknown" };
  return { state: "kept", outcome: toKept(end.call) };
}

/** Gives an outcome as text; a result that cannot be written down is kept as the error that says so. */
export function toKept({ requestId, durationMs, outcome }: RepeatedCall): KeptOutcome {
  try {
    if ("envelope" in outcome) {
      return { kind: "envelope", text: encodeEnvelope(outcome.envelope), requestId, durationMs };
    }
  } catch (thrown) {
    return toKept({ requestId, durationMs, outcome: { error: toCallError(thrown) } });
  }
  const { error } = outcome;
  const text = JSON.stringify({ ...error.toJSON(), httpStatus: error.httpStatus });
  return { kind: "error", text, requestId, durationMs };
}

/** Gives the call that was kept; every caller gets a copy of its own. */
export function fromKept({ kind, text, requestId, durationMs }: KeptOutcome): RepeatedCall {
  if (kind === "envelope") return { requestId, durationMs, outcome: { envelope: decodeEnvelope(text) } };
  const { code, message, retryable, correctable, httpStatus, details } = JSON.parse(text);
  const options = { retryable, correctable, httpStatus, details, stack: false };
  return { requestId, durationMs, outcome: { error: new CallError(code, message, options) } };
}

/** Says in `details.reason` why there is no answer for a key, for programs. */
function conflict(message: string, options: Pick<CallErrorOptions, "details" | "httpStatus">): CallError {
  return new CallError("CONFLICT", message, { ...options, stack: false });
}

/** Waits for the first call of a key; a caller that will wait no longer is told that it still runs. */
function waitFor<T>(ended: Promise<T>, ms: number, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const listener = {
      onAbort: () => stop(() => reject(new CallError("ABORTED", undefined, { stack: false }))),
    };
    const late = (): void =>
      reject(
        conflict("The first call with this Idempotency-Key still runs; try again later.", {
          details: { reason: "running", retryAfterMs: AGAIN_MS },
        }),
      );
    const timer = setTimeout(() => stop(late), Math.max(ms, 0));
    const stop = (settle: () => void): void => {
      clearTimeout(timer);
      removeAbortListener(signal, listener);
      settle();
    };
    if (signal.aborted) listener.onAbort();
    else addAbortListener(signal, listener);
    ended.then(
      (end) => stop(() => resolve(end)),
      (thrown) => stop(() => reject(thrown)),
    );
  });
}
