import { LineCursor } from "./line-cursor.ts";

/** A fenced block that is still open. */
export interface OpenFence {
  /** Where the line with the opening marker begins. */
  readonly start: number;
  /** Where the line behind the opening marker begins. */
  readonly contentStart: number;
  /** A line that closes the block, in the quotes and list items it stands in. */
  readonly closing: string;
  readonly marker: string;
}

/** A place to cut Markdown at, and the fenced block that is open there. */
export interface FenceSeam {
  readonly place: number;
  readonly open: OpenFence | undefined;
}

/** Quotes and list items followed into each other; what lies deeper is read as text. */
const MAX_CONTAINERS = 32;

const LINE_END = /\r\n|\n|\r/g;
const QUOTE = / {0,3}>[ \t]?/y;
const ITEM = / {0,3}([-+*]|(\d{1,9})[.)])(?=[ \t]|$)/y;
const HEADING = / {0,3}#{1,6}(?=[ \t]|$)/y;

/** A list item by the columns its contents are indented by; undefined is a quote. */
type Container = number | undefined;

/**
 * Finds where Markdown may be cut, at a place or a little before it: never inside a line that opens or closes a fenced
 * block. Follows CommonMark for fences, quotes, list items and paragraphs; HTML blocks are read as text.
 */
export function fenceSeam(text: string, place: number): FenceSeam {
  const blocks = new Blocks();
  for (let start = 0; start < place; ) {
    LINE_END.lastIndex = start;
    const found = LINE_END.exec(text);
    const end = found?.index ?? text.length;
    const next = found === null ? end : LINE_END.lastIndex;
    if (end > place) {
      const part = text.slice(start, place);
      if (blocks.isFence(text.slice(start, end)) || blocks.isFence(part))
        return { place: start, open: blocks.open };
      blocks.read(part, start, place);
      break;
    }
    blocks.read(text.slice(start, end), start, next);
    start = next;
  }
  return { place, open: blocks.open };
}

/** What is open between two lines of Markdown. */
class Blocks {
  open: OpenFence | undefined;
  #containers: Container[] = [];
  #inParagraph = false;

  /** Tells whether a line would open or close a fenced block. */
  isFence(line: string): boolean {
    const trial = new Blocks();
    trial.open = this.open;
    trial.#containers = [...this.#containers];
    trial.#inParagraph = this.#inParagraph;
    trial.read(line, -1, -1);
    return trial.open !== this.open;
  }

  read(line: string, start: number, next: number): void {
    const cursor = new LineCursor(line);
    const entered = this.#enter(cursor);
    if (entered < this.#containers.length) {
      if (this.#isLazy(cursor)) return;
      this.#containers.length = entered;
      this.open = undefined;
      this.#inParagraph = false;
    }
    if (this.open === undefined) this.#readOutside(cursor, start, next);
    else if (closes(this.open.marker, cursor)) this.open = undefined;
  }

  /** Counts the containers of the line before that this line continues. */
  #enter(cursor: LineCursor): number {
    for (const [index, container] of this.#containers.entries()) {
      const isInside = container === undefined ? cursor.take(QUOTE) !== null : cursor.takeIndent(container);
      if (!isInside) return index;
    }
    return this.#containers.length;
  }

  /** A paragraph goes on without the marks of its containers, as long as nothing else begins. */
  #isLazy(cursor: LineCursor): boolean {
    if (!this.#inParagraph || this.open !== undefined || cursor.isBlank()) return false;
    if (isBreakOrHeading(cursor) || cursor.fence() !== undefined) return false;
    return cursor.match(QUOTE) === null && cursor.match(ITEM) === null;
  }

  #readOutside(cursor: LineCursor, start: number, next: number): void {
    while (this.#containers.length < MAX_CONTAINERS && this.#openContainer(cursor)) this.#inParagraph = false;
    const fence = cursor.fence();
    if (fence !== undefined && !(fence.marker.startsWith("`") && cursor.has("`", fence.end))) {
      const { marker } = fence;
      this.open = { start, contentStart: next, closing: this.#prefix() + marker, marker };
      this.#inParagraph = false;
    } else {
      const isText = !cursor.isBlank() && !isBreakOrHeading(cursor);
      this.#inParagraph = isText && (this.#inParagraph || cursor.indent() < 4);
    }
  }

  #openContainer(cursor: LineCursor): boolean {
    if (cursor.take(QUOTE) !== null) {
      this.#containers.push(undefined);
      return true;
    }
    if (isBreakOrHeading(cursor)) return false;
    const item = cursor.match(ITEM);
    if (item === null || (this.#inParagraph && !mayInterrupt(item, cursor))) return false;
    cursor.take(ITEM);
    const spaces = cursor.isBlank() || cursor.indent() > 4 ? 1 : cursor.indent();
    cursor.takeIndent(spaces);
    this.#containers.push(item[0].length + spaces);
    return true;
  }

  #prefix(): string {
    return this.#containers.map((indent) => (indent === undefined ? "> " : " ".repeat(indent))).join("");
  }
}

function closes(opening: string, cursor: LineCursor): boolean {
  const fence = cursor.fence();
  if (fence === undefined || fence.marker[0] !== opening[0]) return false;
  return fence.marker.length >= opening.length && cursor.isBlankFrom(fence.end);
}

function isBreakOrHeading(cursor: LineCursor): boolean {
  return cursor.match(HEADING) !== null || cursor.isThematicBreak();
}

/** Within a paragraph only an item with text, numbered 1 if at all, begins a list. */
function mayInterrupt(item: RegExpExecArray, cursor: LineCursor): boolean {
  return (item[2] === undefined || Number(item[2]) === 1) && !cursor.isBlankFrom(item.index + item[0].length);
}
