import { createHash } from "node:crypto";
import { CallError } from "../../core/errors/errors.ts";
import { addAbortListener, removeAbortListener } from "../../core/execution/abort-listeners.ts";
import type { HttpAnswer } from "./http-exchange.ts";
import { requestError } from "./problem-answer.ts";

/** What is kept of answers, and for how long. */
export interface IdempotencyLimits {
  readonly idempotencyKeys: number;
  readonly idempotencyBytes: number;
  readonly idempotencyMs: number;
}

/** A call that may be the repetition of another. */
export interface RepeatableCall {
  /** Who calls what under which key. */
  readonly key: string;
  /** What tells one input from another. */
  readonly fingerprint: string;
  readonly signal: AbortSignal;
  /** How long the first call of this key is waited for, in milliseconds. */
  readonly patienceMs: number;
}

/** An answer, and whether the same call would give it again. */
export interface Ran {
  readonly answer: HttpAnswer;
  readonly isFinal: boolean;
}

interface Entry {
  readonly fingerprint: string;
  readonly startedAt: number;
  /** Settles when the first call is over. */
  readonly ended: Promise<void>;
  answer: HttpAnswer | undefined;
  bytes: number;
}

const KEY = /^[\x21-\x7e]{1,255}$/;

/** Reads the key of a request; one that is none is a `CallError`. */
export function readIdempotencyKey(header: string | undefined): string | undefined {
  if (header === undefined || KEY.test(header)) return header;
  throw requestError("VALIDATION_ERROR", "The Idempotency-Key must be 1 to 255 printable characters.");
}

/** Tells one input from another, however long they are. */
export function fingerprint(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("base64");
}

/** Answers to calls that must not run twice, by key; the oldest are forgotten first. */
export class IdempotentAnswers {
  readonly #limits: IdempotencyLimits;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(limits: IdempotencyLimits) {
    this.#limits = limits;
  }

  /** Runs a call, or gives the answer it has been given before. */
  async run(call: RepeatableCall, run: () => Promise<Ran>): Promise<HttpAnswer> {
    const until = performance.now() + call.patienceMs;
    for (;;) {
      this.#forgetOld();
      const entry = this.#entries.get(call.key);
      if (entry === undefined) return this.#runFirst(call, run);
      if (entry.fingerprint !== call.fingerprint) {
        const message = "This Idempotency-Key was used with another input; take a new one for each call.";
        throw requestError("CONFLICT", message, { httpStatus: 422 });
      }
      if (entry.answer !== undefined) return replayed(entry.answer);
      await waitFor(entry.ended, until - performance.now(), call.signal);
      // The first call may have come to nothing that is kept; then this one takes its place.
      if (entry.answer !== undefined) return replayed(entry.answer);
    }
  }

  async #runFirst({ key, fingerprint }: RepeatableCall, run: () => Promise<Ran>): Promise<HttpAnswer> {
    this.#makeRoom(1, 0);
    if (this.#entries.size >= this.#limits.idempotencyKeys) throw new CallError("RESOURCE_EXHAUSTED");
    let end: () => void = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const entry: Entry = { fingerprint, startedAt: performance.now(), ended, answer: undefined, bytes: 0 };
    this.#entries.set(key, entry);
    try {
      const { answer, isFinal } = await run();
      if (isFinal) this.#keep(key, entry, answer);
      return answer;
    } finally {
      if (entry.answer === undefined) this.#entries.delete(key);
      end();
    }
  }

  #keep(key: string, entry: Entry, answer: HttpAnswer): void {
    const bytes = sizeOf(answer) + key.length;
    if (bytes > this.#limits.idempotencyBytes) return;
    this.#makeRoom(0, bytes);
    entry.answer = answer;
    entry.bytes = bytes;
    this.#bytes += bytes;
  }

  #forgetOld(): void {
    const before = performance.now() - this.#limits.idempotencyMs;
    for (const [key, entry] of this.#entries) {
      if (entry.startedAt > before) return;
      if (entry.answer !== undefined) this.#forget(key, entry);
    }
  }

  #makeRoom(entries: number, bytes: number): void {
    const { idempotencyKeys, idempotencyBytes } = this.#limits;
    for (const [key, entry] of this.#entries) {
      const fits = this.#entries.size + entries <= idempotencyKeys && this.#bytes + bytes <= idempotencyBytes;
      if (fits) return;
      if (entry.answer !== undefined) this.#forget(key, entry);
    }
  }

  #forget(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
  }
}

function sizeOf({ headers, body }: HttpAnswer): number {
  const size =
    typeof body === "string" ? Buffer.byteLength(body) : body instanceof Uint8Array ? body.length : 0;
  return size + JSON.stringify(headers).length;
}

function replayed(answer: HttpAnswer): HttpAnswer {
  return { ...answer, headers: { ...answer.headers, "idempotency-replayed": "true" } };
}

/** Waits for the first call of a key; whoever will wait no longer is told that it still runs. */
function waitFor(ended: Promise<void>, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const listener = {
      onAbort: () => stop(() => reject(new CallError("ABORTED", undefined, { stack: false }))),
    };
    const late = (): void =>
      reject(
        requestError("CONFLICT", "The first call with this Idempotency-Key still runs; try again later."),
      );
    const timer = setTimeout(() => stop(late), Math.max(ms, 0));
    const stop = (settle: () => void): void => {
      clearTimeout(timer);
      removeAbortListener(signal, listener);
      settle();
    };
    if (signal.aborted) listener.onAbort();
    else addAbortListener(signal, listener);
    ended.then(() => stop(resolve));
  });
}
