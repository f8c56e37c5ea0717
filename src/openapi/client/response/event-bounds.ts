const LINE_END = /[\r\n]/g;

/** Follows a stream of events, however it is cut, to tell whether it is between two of them. */
export class EventBounds {
  /** Something of an event came, and the blank line that ends it did not. */
  isWithin = false;
  #isLineStart = true;
  #isAfterReturn = false;

  feed(text: string): void {
    let at = 0;
    while (at < text.length) {
      const character = text.charAt(at);
      const isSecondHalf = this.#isAfterReturn && character === "\n";
      this.#isAfterReturn = false;
      if (isSecondHalf) at += 1;
      else at = this.#isLineStart ? this.#startLine(character, at) : this.#endLine(text, at);
    }
  }

  /** A blank line ends an event; a comment is none of one. */
  #startLine(character: string, at: number): number {
    if (character !== "\r" && character !== "\n") {
      this.#isLineStart = false;
      this.isWithin ||= character !== ":";
      return at;
    }
    this.isWithin = false;
    this.#isAfterReturn = character === "\r";
    return at + 1;
  }

  #endLine(text: string, from: number): number {
    LINE_END.lastIndex = from;
    const end = LINE_END.exec(text);
    if (end === null) return text.length;
    this.#isLineStart = true;
    this.#isAfterReturn = end[0] === "\r";
    return end.index + 1;
  }
}
