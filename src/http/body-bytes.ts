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

  /** Copies them, so that they share memory with nothing else that came over the connection. */
  join(): Uint8Array {
    this.#closePiece();
    const all = new Uint8Array(this.#length);
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
