/** A run of backticks or tildes at the beginning of a line. */
export interface FenceMark {
  readonly marker: string;
  /** Where in the line the run ends. */
  readonly end: number;
}

/** Reads one line of Markdown from left to right, each character a few times; tabs reach to multiples of four columns. */
export class LineCursor {
  readonly #line: string;
  #at = 0;
  #column = 0;

  constructor(line: string) {
    this.#line = line;
  }

  /** Tries a sticky pattern here; it must not loop, for lines may be megabytes long. */
  match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#line);
  }

  /** Tries a sticky pattern and steps over what it matched. */
  take(pattern: RegExp): RegExpExecArray | null {
    const found = this.match(pattern);
    if (found !== null) this.#advance(this.#at + found[0].length);
    return found;
  }

  /** Steps over the indentation of a list item; a blank line needs none. */
  takeIndent(columns: number): boolean {
    if (this.isBlank()) return true;
    if (this.indent() < columns) return false;
    const target = this.#column + columns;
    while (this.#column < target) this.#advance(this.#at + 1);
    return true;
  }

  /** Columns of white space ahead, up to 32. */
  indent(): number {
    let column = this.#column;
    for (let at = this.#at; this.#isSpace(at) && column - this.#column < 32; at++) {
      column += this.#line[at] === "\t" ? 4 - (column % 4) : 1;
    }
    return column - this.#column;
  }

  /** The run of three or more backticks or tildes ahead, indented by less than four columns. */
  fence(): FenceMark | undefined {
    const start = this.#textStart();
    const letter = this.#line[start];
    if (letter !== "`" && letter !== "~") return undefined;
    let end = start;
    while (this.#line[end] === letter) end++;
    return end - start < 3 ? undefined : { marker: this.#line.slice(start, end), end };
  }

  /** Tells whether nothing but three or more of `*`, `-` or `_` is ahead. */
  isThematicBreak(): boolean {
    const start = this.#textStart();
    const letter = this.#line[start];
    if (letter !== "*" && letter !== "-" && letter !== "_") return false;
    let count = 0;
    for (let at = start; at < this.#line.length; at++) {
      if (this.#line[at] === letter) count++;
      else if (!this.#isSpace(at)) return false;
    }
    return count >= 3;
  }

  /** Tells whether nothing but white space is ahead. */
  isBlank(): boolean {
    return this.isBlankFrom(this.#at);
  }

  /** Tells whether nothing but white space follows a place in the line. */
  isBlankFrom(place: number): boolean {
    let at = place;
    while (this.#isSpace(at)) at++;
    return at >= this.#line.length;
  }

  /** Tells whether a letter follows anywhere behind a place in the line. */
  has(letter: string, place: number): boolean {
    return this.#line.includes(letter, place);
  }

  #textStart(): number {
    let at = this.#at;
    while (this.#line[at] === " " && at - this.#at < 3) at++;
    return at;
  }

  #isSpace(at: number): boolean {
    return this.#line[at] === " " || this.#line[at] === "\t";
  }

  #advance(to: number): void {
    for (; this.#at < to; this.#at++) {
      this.#column += this.#line[this.#at] === "\t" ? 4 - (this.#column % 4) : 1;
    }
  }
}
