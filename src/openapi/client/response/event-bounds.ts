/** Follows a stream of events, however it is cut, to tell whether it is between two of them. Its lines end with line feeds. */
export class EventBounds {
  #isWithin = false;
  #isLineStart = true;

  /** Something of an event came, and the blank line that ends it did not. */
  get isWithin(): boolean {
    return this.#isWithin;
  }

  feed(text: string): void {
    let at = 0;
    while (at < text.length) {
      if (this.#isLineStart) this.#startLine(text.charAt(at));
      const end = text.indexOf("\n", at);
      this.#isLineStart = end !== -1;
      at = end === -1 ? text.length : end + 1;
    }
  }

  /** A blank line ends an event; a comment is none of one. */
  #startLine(first: string): void {
    if (first === "\n") this.#isWithin = false;
    else if (first !== ":") this.#isWithin = true;
  }
}
