import { CallError } from "../core/errors/errors.ts";

/** Chunks from this size on are kept as they came, where they fill what they lie in; others cost more to keep than to copy. */
const LARGE = 1_024;
const BLOCK = 16_384;

/** The bytes of one body, gathered in about as much memory as they take, however small the chunks they come in. */
export class BodyBytes {
  #length = 0;
  readonly #pieces: Uint8Array[] = [];
  /** The part of the last block that waits for small chunks. */
  #block: Uint8Array | undefined;
  #used = 0;

  get length(): number {
    return this.#length;
  }

  add(chunk: Uint8Array): void {
    const { byteLength } = chunk;
    const isFirst = this.#length === 0;
    this.#length += byteLength;
    const fills = byteLength * 2 >= chunk.buffer.byteLength;
    if (isFirst || (byteLength >= LARGE && fills)) {
      this.#closePiece();
      this.#pieces.push(chunk);
      return;
    }
    if (this.#block === undefined || this.#block.byteLength - this.#used < byteLength) {
      this.#closePiece();
      this.#block = new Uint8Array(Math.max(BLOCK, byteLength));
    }
    this.#block.set(chunk, this.#used);
    this.#used += byteLength;
  }

  /** Copies them, so that they share memory with nothing else that came over the connection, or into the memory that is given. */
  join(all = new Uint8Array(this.#length)): Uint8Array {
    this.#closePiece();
    let at = 0;
    for (const piece of this.#pieces) {
      all.set(piece, at);
      at += piece.byteLength;
    }
    return all;
  }

  /** The rest of the block is for what comes after. */
  #closePiece(): void {
    if (this.#block === undefined || this.#used === 0) return;
    this.#pieces.push(this.#block.subarray(0, this.#used));
    this.#block = this.#block.subarray(this.#used);
    this.#used = 0;
  }
}

/** Throws where a body says of itself that it is longer than allowed. */
export function checkLength(contentLength: string | undefined, limit: number): void {
  if (contentLength !== undefined && Number(contentLength) > limit) throw tooLarge(limit);
}

/** The error for a body that is longer than allowed. */
export function tooLarge(limit: number): CallError {
  const message = `The body of the request is longer than ${limit} bytes.`;
  return new CallError("TOO_LARGE", message, { details: { limit }, stack: false });
}

/** The error for a body that ended early, or whose client left. */
export function unreadable(cause: unknown): CallError {
  return new CallError("VALIDATION_ERROR", "The body of the request could not be read.", {
    cause,
    stack: false,
  });
}
