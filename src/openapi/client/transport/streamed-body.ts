import type { CallError } from "../../../core/errors/errors.ts";
import { LONGEST_DELAY } from "../../../core/execution/deadline.ts";

/** The exchange behind a body. */
export interface BodySource {
  /** The reader can take more. */
  flow(): void;
  /** The reader has gone. */
  leave(): void;
  /** Nothing came for too long. */
  expireIdle(): void;
}

interface Waiting {
  resolve(result: IteratorResult<Uint8Array, undefined>): void;
  reject(error: CallError): void;
}

/** A body that is read as it arrives, once, and no faster than its reader wants it. */
export class StreamedBody implements AsyncIterableIterator<Uint8Array, undefined> {
  readonly #source: BodySource;
  readonly #idleTimeoutMs: number;
  readonly #chunks: Uint8Array[] = [];
  readonly #waiting: Waiting[] = [];
  #end: { readonly error: CallError | undefined } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(source: BodySource, idleTimeoutMs: number) {
    this.#source = source;
    this.#idleTimeoutMs = idleTimeoutMs;
  }

  /** Returns false where nobody waits for more. */
  push(chunk: Buffer): boolean {
    const bytes = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const waiting = this.#waiting.shift();
    if (waiting === undefined) {
      this.#chunks.push(bytes);
      return false;
    }
    if (this.#waiting.length === 0) clearTimeout(this.#timer);
    waiting.resolve({ value: bytes, done: false });
    return this.#waiting.length > 0;
  }

  /** What has arrived is read before the end; an error for whoever does not want it any more comes at once. */
  end(error: CallError | undefined, isSudden = false): void {
    if (this.#end !== undefined) return;
    this.#end = { error };
    clearTimeout(this.#timer);
    if (isSudden) this.#chunks.length = 0;
    for (const waiting of this.#waiting.splice(0)) {
      if (error === undefined) waiting.resolve({ value: undefined, done: true });
      else waiting.reject(error);
      this.#end = { error: undefined };
    }
  }

  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const value = this.#chunks.shift();
    if (value !== undefined) return Promise.resolve({ value, done: false });
    if (this.#end !== undefined) return this.#last(this.#end.error);
    const result = new Promise<IteratorResult<Uint8Array, undefined>>((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
    if (this.#waiting.length === 1 && this.#idleTimeoutMs <= LONGEST_DELAY) {
      this.#timer = setTimeout(expire, this.#idleTimeoutMs, this.#source);
    }
    this.#source.flow();
    return result;
  }

  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.end(undefined, true);
    this.#end = { error: undefined };
    this.#source.leave();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** An error is thrown once; an iterator is at its end after that. */
  #last(error: CallError | undefined): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#end = { error: undefined };
    return error === undefined ? Promise.resolve({ value: undefined, done: true }) : Promise.reject(error);
  }
}

function expire(source: BodySource): void {
  source.expireIdle();
}
