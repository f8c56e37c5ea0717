import { createHash } from "node:crypto";
import { CallError } from "../../core/errors/errors.ts";
import { addAbortListener, removeAbortListener } from "../../core/execution/abort-listeners.ts";
import type { HttpAnswer } from "../../http/exchange.ts";
import { requestError } from "./problem-answer.ts";
import type { CallEnding } from "./replayed-call.ts";

/** What is kept of answers, and for how long. */
export interface IdempotencyLimits {
  readonly idempotencyKeys: number;
  readonly idempotencyBytes: number;
  readonly idempotencyMs: number;
}

/** A call that may be the repetition of another. */
export interface RepeatableCall {
  /** Whose it is. */
  readonly owner: string;
  /** Who calls what under which key. */
  readonly key: string;
  /** What tells this call from another one with the same key. */
  readonly fingerprint: string;
  readonly signal: AbortSignal;
  /** How long the first call of this key is waited for, in milliseconds. */
  readonly patienceMs: number;
  /** Hears that it is answered as another one was, and how that one ended where that is known. */
  readonly onRepeat?: ((ended: CallEnding | undefined) => void) | undefined;
}

/** How a call ended: the same would be answered again, it may be made again, or nobody knows what it has done. */
export type Ending = "final" | "passing" | "unknown";

/** An answer, and what it means for the same call. */
export interface Ran {
  readonly answer: HttpAnswer;
  readonly ending: Ending;
  /** How the call ended, for those who hear of repetitions. */
  readonly ended?: CallEnding | undefined;
}

interface Entry {
  readonly owner: string;
  readonly fingerprint: string;
  readonly startedAt: number;
  /** Settles when the first call is over. */
  readonly over: Promise<void>;
  answer: HttpAnswer | undefined;
  /** Why there is no answer to repeat, although the call may have run. */
  lost: string | undefined;
  ended: CallEnding | undefined;
  bytes: number;
}

interface Room {
  entries: number;
  bytes: number;
}

/** Of all that is kept, one caller among others may have the fourth part. */
const SHARES = 4;
const UNKNOWN =
  "The first call with this Idempotency-Key did not end in time: its outcome is not known; use a new key.";
const TOO_LONG =
  "The first call with this Idempotency-Key ran, but its answer was too long to be kept; use a new key.";
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

/** Answers to calls that must not run twice, by key. None is forgotten before its time: rather, a new key is refused. */
export class IdempotentAnswers {
  readonly #limits: IdempotencyLimits;
  #shares: number;
  readonly #entries = new Map<string, Entry>();
  readonly #rooms = new Map<string, Room>();
  #bytes = 0;

  /** Where `isShared`, callers are told apart, and no one of them may take all the room. */
  constructor(limits: IdempotencyLimits, isShared: boolean) {
    this.#limits = limits;
    this.#shares = isShared ? SHARES : 1;
  }

  /** Tells callers apart from now on, or does not. */
  setShared(isShared: boolean): void {
    this.#shares = isShared ? SHARES : 1;
  }

  /** Runs a call, or gives the answer it has been given before. */
  async run(call: RepeatableCall, run: () => Promise<Ran>): Promise<HttpAnswer> {
    const until = performance.now() + call.patienceMs;
    for (;;) {
      this.#forgetOld();
      const entry = this.#entries.get(call.key);
      if (entry === undefined) return this.#runFirst(call, run);
      if (entry.fingerprint !== call.fingerprint) {
        const message =
          "This Idempotency-Key was used with another input, form of answer or right; take a new one for each call.";
        throw requestError("CONFLICT", message, { httpStatus: 422 });
      }
      if (!isOver(entry)) await waitFor(entry.over, until - performance.now(), call.signal);
      // The first call may have come to nothing that is kept; then this one takes its place.
      if (!isOver(entry)) continue;
      const answer = repeat(entry);
      call.onRepeat?.(entry.ended);
      return answer;
    }
  }

  async #runFirst(call: RepeatableCall, run: () => Promise<Ran>): Promise<HttpAnswer> {
    const { owner, key, fingerprint } = call;
    this.#checkRoom(owner);
    let end: () => void = () => {};
    const over = new Promise<void>((resolve) => {
      end = resolve;
    });
    const startedAt = performance.now();
    const entry: Entry = {
      ...{ owner, fingerprint, startedAt, over },
      ...{ answer: undefined, lost: undefined, ended: undefined, bytes: 0 },
    };
    this.#entries.set(key, entry);
    this.#count(entry, 1, 0);
    try {
      const { answer, ending, ended } = await run();
      entry.ended = ended;
      if (ending === "final") this.#keep(key, entry, answer);
      else if (ending === "unknown") entry.lost = UNKNOWN;
      return answer;
    } catch (thrown) {
      entry.lost = UNKNOWN;
      throw thrown;
    } finally {
      if (!isOver(entry)) this.#forget(key, entry);
      end();
    }
  }

  #keep(key: string, entry: Entry, answer: HttpAnswer): void {
    const bytes = sizeOf(answer) + key.length;
    const most = this.#limits.idempotencyBytes;
    const own = this.#rooms.get(entry.owner)?.bytes ?? 0;
    if (this.#bytes + bytes > most || own + bytes > this.#shareOf(most)) {
      entry.lost = TOO_LONG;
      return;
    }
    // A copy: whoever sends the answer adds what is true of the first request alone.
    entry.answer = { ...answer, headers: { ...answer.headers } };
    entry.bytes = bytes;
    this.#count(entry, 0, bytes);
  }

  #checkRoom(owner: string): void {
    const { idempotencyKeys, idempotencyBytes } = this.#limits;
    const own = this.#rooms.get(owner) ?? { entries: 0, bytes: 0 };
    const isFull =
      this.#entries.size >= idempotencyKeys ||
      this.#bytes >= idempotencyBytes ||
      own.entries >= this.#shareOf(idempotencyKeys) ||
      own.bytes >= this.#shareOf(idempotencyBytes);
    if (!isFull) return;
    const message = "As many Idempotency-Keys are kept as there is room for; try again later.";
    throw new CallError("RESOURCE_EXHAUSTED", message, { stack: false });
  }

  #shareOf(most: number): number {
    return Math.ceil(most / this.#shares);
  }

  #forgetOld(): void {
    const before = performance.now() - this.#limits.idempotencyMs;
    for (const [key, entry] of this.#entries) {
      if (entry.startedAt > before) return;
      if (isOver(entry)) this.#forget(key, entry);
    }
  }

  #forget(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#count(entry, -1, -entry.bytes);
  }

  #count({ owner }: Entry, entries: number, bytes: number): void {
    const room = this.#rooms.get(owner) ?? { entries: 0, bytes: 0 };
    room.entries += entries;
    room.bytes += bytes;
    this.#bytes += bytes;
    if (room.entries === 0) this.#rooms.delete(owner);
    else this.#rooms.set(owner, room);
  }
}

function isOver({ answer, lost }: Entry): boolean {
  return answer !== undefined || lost !== undefined;
}

/** Gives the answer again, or says why there is none. */
function repeat({ answer, lost }: Entry): HttpAnswer {
  if (answer === undefined) throw requestError("CONFLICT", lost ?? UNKNOWN);
  return { ...answer, headers: { ...answer.headers, "idempotency-replayed": "true" } };
}

function sizeOf({ headers, body }: HttpAnswer): number {
  const size =
    typeof body === "string" ? Buffer.byteLength(body) : body instanceof Uint8Array ? body.length : 0;
  return size + JSON.stringify(headers).length;
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
