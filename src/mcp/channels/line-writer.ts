import type { Writable } from "node:stream";

interface Batch {
  text: string;
  readonly written: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Writes lines to a stream, those of one tick together. */
export interface LineWriter {
  /** Resolves when the stream has taken the line and is ready for more. */
  write(line: string): Promise<void>;
  /** Writes what waits and ends the stream. */
  end(): void;
  /** Rejects what waits and all that comes. */
  fail(error: Error): void;
}

/** Makes a writer that holds at most so many characters for a reader that does not read. */
export function createLineWriter(stream: Writable, unsentChars: number): LineWriter {
  return new BatchingWriter(stream, unsentChars);
}

class BatchingWriter implements LineWriter {
  readonly #stream: Writable;
  readonly #unsentChars: number;
  /** Not yet handed to the stream. */
  #next: Batch | undefined;
  /** Handed to the stream, which has not drained since. */
  #blocking: Batch | undefined;
  #failure: Error | undefined;

  constructor(stream: Writable, unsentChars: number) {
    this.#stream = stream;
    this.#unsentChars = unsentChars;
    stream.on("drain", this.#drained);
  }

  write(line: string): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure);
    const waiting = (this.#next?.text.length ?? 0) + line.length + 1;
    if (waiting > this.#unsentChars) {
      return Promise.reject(
        new Error(`The message was not sent: more than ${this.#unsentChars} characters wait to be read.`),
      );
    }
    if (!this.#next) {
      this.#next = createBatch();
      // Behind all microtasks of this tick, and before any input or output.
      if (!this.#blocking) queueMicrotask(this.#later);
    }
    this.#next.text += `${line}\n`;
    return this.#next.written;
  }

  end(): void {
    if (this.#failure) return;
    if (this.#next) this.#stream.write(this.#next.text);
    this.#next?.resolve();
    this.#next = undefined;
    this.#stream.end();
    this.fail(new Error("The connection was closed before the message was read."));
  }

  fail(error: Error): void {
    this.#failure ??= error;
    this.#blocking?.reject(error);
    this.#next?.reject(error);
    this.#blocking = undefined;
    this.#next = undefined;
  }

  readonly #later = (): void => process.nextTick(this.#flush);

  readonly #flush = (): void => {
    const batch = this.#next;
    if (!batch || this.#blocking) return;
    this.#next = undefined;
    if (this.#stream.write(batch.text)) batch.resolve();
    else this.#blocking = batch;
  };

  readonly #drained = (): void => {
    this.#blocking?.resolve();
    this.#blocking = undefined;
    this.#flush();
  };
}

function createBatch(): Batch {
  let resolve: Batch["resolve"] = () => {};
  let reject: Batch["reject"] = () => {};
  const written = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { text: "", written, resolve, reject };
}
