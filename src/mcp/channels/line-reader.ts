const NEWLINE = 10;

/** How much of either end of a dropped line is kept, in bytes. */
const END_BYTES = 200;

/** Where the first piece of a line that comes in pieces goes. */
const FIRST_CAPACITY = 65_536;

/** Settings of `createLineReader`. */
export interface LineReaderOptions {
  /** The longest line, in bytes and without its newline. */
  readonly lineBytes: number;
  /** Hears each line; the bytes are only good until it returns. */
  readonly onLine: (line: Buffer) => void;
  /** Hears the front of a line that is dropped, as soon as it is too long. */
  readonly onLong: (front: Buffer) => void;
  /** Hears how the same line ended, when it does. */
  readonly onLongEnd: (tail: Buffer) => void;
}

/** Cuts bytes into lines, however they are cut into chunks. */
export interface LineReader {
  push(chunk: Buffer): void;
  /** Tells that no more bytes come: what is left is a line too. */
  end(): void;
}

/** Makes a reader that never holds more than one line of the size allowed. */
export function createLineReader(options: LineReaderOptions): LineReader {
  return new BoundedLineReader(options);
}

class BoundedLineReader implements LineReader {
  readonly #options: LineReaderOptions;
  /** The line so far, in a buffer that doubles: bytes that come one by one cost no object each. */
  #held: Buffer = Buffer.alloc(0);
  #length = 0;
  /** The end so far of a line that is dropped. */
  #tail: Buffer | undefined;

  constructor(options: LineReaderOptions) {
    this.#options = options;
  }

  push(chunk: Buffer): void {
    let from = 0;
    for (let to = chunk.indexOf(NEWLINE); to !== -1; to = chunk.indexOf(NEWLINE, from)) {
      this.#endLine(chunk.subarray(from, to));
      from = to + 1;
    }
    if (from < chunk.length) this.#hold(from === 0 ? chunk : chunk.subarray(from));
  }

  end(): void {
    if (this.#length > 0 || this.#tail) this.#endLine(Buffer.alloc(0));
  }

  #endLine(piece: Buffer): void {
    if (this.#length === 0 && !this.#tail && piece.length <= this.#options.lineBytes) {
      if (piece.length > 0) this.#options.onLine(piece);
      return;
    }
    this.#hold(piece);
    const tail = this.#tail;
    const line = this.#held.subarray(0, this.#length);
    this.#tail = undefined;
    this.#length = 0;
    // One long line is no reason to keep its memory.
    if (this.#held.length > FIRST_CAPACITY) this.#held = Buffer.alloc(0);
    if (tail) this.#options.onLongEnd(tail);
    else this.#options.onLine(line);
  }

  #hold(piece: Buffer): void {
    if (this.#tail) {
      this.#tail = lastBytes(this.#tail, piece);
      return;
    }
    const length = this.#length + piece.length;
    if (length > this.#options.lineBytes) {
      this.#drop(piece);
      return;
    }
    if (length > this.#held.length) this.#grow(length);
    piece.copy(this.#held, this.#length);
    this.#length = length;
  }

  #grow(length: number): void {
    const capacity = Math.max(length, Math.min(this.#held.length * 2, this.#options.lineBytes));
    // On memory of its own: `countOpenings` wants bytes that lie on a word.
    const grown = Buffer.allocUnsafeSlow(Math.max(capacity, FIRST_CAPACITY));
    this.#held.copy(grown, 0, 0, this.#length);
    this.#held = grown;
  }

  #drop(piece: Buffer): void {
    const held = this.#held.subarray(0, this.#length);
    const front = Buffer.concat([held.subarray(0, END_BYTES), piece.subarray(0, END_BYTES)]);
    this.#tail = lastBytes(held, piece);
    this.#held = Buffer.alloc(0);
    this.#length = 0;
    this.#options.onLong(front.subarray(0, END_BYTES));
  }
}

/** The last bytes of two buffers, in memory of their own. */
function lastBytes(a: Buffer, b: Buffer): Buffer {
  return Buffer.concat([a.subarray(-END_BYTES), b.subarray(-END_BYTES)]).subarray(-END_BYTES);
}
