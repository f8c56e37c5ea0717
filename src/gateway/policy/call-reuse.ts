import { createHash } from "node:crypto";
import { ownerOf } from "../../core/access/identity.ts";
import { outcomeOf, type ResponseEnvelope, withFacts } from "../../core/envelope/envelope.ts";
import { CallError, toCallError, turnDown } from "../../core/errors/errors.ts";
import {
  addAbortListener,
  type Cancellation,
  LONGEST_DELAY,
  monotonicNow,
  removeAbortListener,
} from "../../core/execution/cancellation.ts";
import type { HookedCall } from "../../core/execution/dispatch.ts";
import {
  type IdempotentCalls,
  type KeyEnding,
  keyEndingOf,
  type RepeatedCall,
  readIdempotencyKey,
} from "../../core/idempotency/idempotent-calls.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { backoffMs } from "../../core/limits/backoff.ts";
import type { OperationContext } from "../../core/operation/operation-context.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { RETRY_DEFAULTS, type RetryOptions } from "../../core/options/shared-options.ts";
import { decodeEnvelope, encodeEnvelope, toWire } from "../../core/wire/wire.ts";
import { callerDigest } from "../../http/caller.ts";

/** A call that a policy runs once for its key. */
export interface KeyedClaim {
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
export function keyedCall({ operationId, context, input }: HookedCall): KeyedClaim {
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
      fingerprint: JSON.stringify([text, callerDigest(context.identity)]),
    };
  } catch (thrown) {
    throw turnDown(toCallError(thrown), operationId);
  }
}

/** How a keyed call is run. */
interface KeyedRun {
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
  call: KeyedClaim,
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

/** Longer texts are told apart by their hash. */
const LONGEST_PLAIN = 100;

const NUMBERS = new WeakMap<AnyOperation, number>();
let lastNumber = 0;

/**
 * Names what a call asks for: this very operation, this caller with all they may do, as whom its source is asked, this input. Nothing where
 * the input cannot be compared. An operation that took the place of another has other keys.
 */
export function callKey(
  operation: AnyOperation,
  context: OperationContext,
  { input, as = "" }: { readonly input: unknown; readonly as?: string | undefined },
): string | undefined {
  const text = inputText(input);
  return text && `${numberOf(operation)} ${callerDigest(context.identity)} ${as} ${text}`;
}

/** Writes an input so that equal ones are written the same, whatever the order of their members; nothing where that cannot be done. */
export function inputText(input: unknown): string | undefined {
  try {
    const text = canonical(toWire(input));
    return text.length <= LONGEST_PLAIN ? text : createHash("sha256").update(text).digest("base64");
  } catch {
    return undefined;
  }
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isPlainObject(value)) return JSON.stringify(value);
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join()}}`;
}

function numberOf(operation: AnyOperation): number {
  const known = NUMBERS.get(operation);
  if (known !== undefined) return known;
  NUMBERS.set(operation, ++lastNumber);
  return lastNumber;
}

/** How much is kept. */
interface CacheLimits {
  readonly cacheEntries: number;
  /** Of results written as JSON, and of their keys. */
  readonly cacheCharacters: number;
}

interface Kept {
  readonly text: string;
  readonly at: number;
}

/** Results by key; the one that was asked for longest ago goes first. They are kept as text: a caller may change the one it gets. */
export class ResultCache {
  readonly #limits: CacheLimits;
  readonly #kept = new Map<string, Kept>();
  #characters = 0;

  constructor(limits: CacheLimits) {
    this.#limits = limits;
  }

  /** A copy of what is kept, unless it is older than asked for. */
  get(key: string, maxAgeMs: number): ResponseEnvelope | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    this.#drop(key, kept);
    if (monotonicNow() - kept.at >= maxAgeMs) return undefined;
    this.#put(key, kept);
    return decodeEnvelope(kept.text);
  }

  /** Keeps an ok result, where it can be written down and is not too long; as it is written. */
  set(key: string, envelope: ResponseEnvelope): string | undefined {
    const text = outcomeOf(envelope) === "ok" ? writtenOrNone(envelope) : undefined;
    this.keep(key, text, 0);
    return text;
  }

  /** The same for one that was written before, so many milliseconds ago; nothing is kept in its place where there is no text. */
  keep(key: string, text: string | undefined, ageMs: number): void {
    const { cacheEntries, cacheCharacters } = this.#limits;
    const old = this.#kept.get(key);
    if (old !== undefined) this.#drop(key, old);
    if (text === undefined || cacheEntries < 1 || key.length + text.length > cacheCharacters) return;
    this.#put(key, { text, at: monotonicNow() - ageMs });
    for (const [oldest, kept] of this.#kept) {
      if (this.#kept.size <= cacheEntries && this.#characters <= cacheCharacters) break;
      this.#drop(oldest, kept);
    }
  }

  clear(): void {
    this.#kept.clear();
    this.#characters = 0;
  }

  #put(key: string, kept: Kept): void {
    this.#kept.set(key, kept);
    this.#characters += key.length + kept.text.length;
  }

  #drop(key: string, kept: Kept): void {
    this.#kept.delete(key);
    this.#characters -= key.length + kept.text.length;
  }
}

/** A copy of an envelope, for one more reader; the envelope itself where it holds what cannot be written down. */
export function copyOf(envelope: ResponseEnvelope): ResponseEnvelope {
  const text = writtenOrNone(envelope);
  return text === undefined ? envelope : decodeEnvelope(text);
}

/** Writes an envelope, or gives nothing where it cannot be read back as it is. */
export function writtenOrNone(envelope: ResponseEnvelope): string | undefined {
  try {
    return encodeEnvelope(envelope);
  } catch {
    return undefined;
  }
}

/** What a call that is tried again is bound by. */
interface RetryBounds {
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
  retry: RetryOptions,
  bounds: RetryBounds,
): Promise<ResponseEnvelope> {
  const { attempts = RETRY_DEFAULTS.attempts } = retry;
  const { delayMs = RETRY_DEFAULTS.delayMs, maxDelayMs = RETRY_DEFAULTS.maxDelayMs } = retry;
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
      const wait = Math.max(asked, backoffMs(attempt, delayMs, maxDelayMs));
      if (monotonicNow() + wait >= bounds.deadline) throw error;
      await sleep(wait, bounds.cancellation);
      bounds.onAttempt(attempt + 1);
    }
  }
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

/** A run that several calls wait for. */
interface SharedRun {
  readonly controller: AbortController;
  readonly result: Promise<ResponseEnvelope>;
  waiting: number;
}

/** One wait for a run. */
interface SharedWait {
  /** Whether the run was under way already. */
  readonly joined: boolean;
  readonly result: Promise<ResponseEnvelope>;
}

/** Runs that are under way, by key: who asks for one of them waits for it, and it is aborted when everybody has left. */
export class SharedRuns {
  readonly #runs = new Map<string, SharedRun>();

  /** Joins a run, or starts one, which is given the signal that ends it; a caller who leaves is told at once. */
  run(
    key: string,
    signal: AbortSignal | undefined,
    start: (signal: AbortSignal) => Promise<ResponseEnvelope>,
  ): SharedWait {
    const known = this.#runs.get(key);
    const run = known ?? this.#start(key, start);
    return { joined: known !== undefined, result: this.#wait(key, run, signal) };
  }

  /** Ends all of them. */
  abort(error: CallError): void {
    for (const { controller } of this.#runs.values()) controller.abort(error);
    this.#runs.clear();
  }

  #start(key: string, start: (signal: AbortSignal) => Promise<ResponseEnvelope>): SharedRun {
    const controller = new AbortController();
    const run: SharedRun = { controller, result: start(controller.signal), waiting: 0 };
    this.#runs.set(key, run);
    const forget = (): void => this.#forget(key, run);
    run.result.then(forget, forget);
    return run;
  }

  #wait(key: string, run: SharedRun, signal: AbortSignal | undefined): Promise<ResponseEnvelope> {
    run.waiting++;
    if (signal === undefined) return run.result;
    return new Promise((resolve, reject) => {
      const listener = {
        onAbort: ({ reason }: AbortSignal): void => {
          reject(toCallError(reason));
          run.waiting--;
          if (run.waiting > 0) return;
          this.#forget(key, run);
          run.controller.abort(reason);
        },
      };
      run.result.then(resolve, reject).finally(() => removeAbortListener(signal, listener));
      if (signal.aborted) listener.onAbort(signal);
      else addAbortListener(signal, listener);
    });
  }

  /** Calls from now on start a new run. */
  #forget(key: string, run: SharedRun): void {
    if (this.#runs.get(key) === run) this.#runs.delete(key);
  }
}
