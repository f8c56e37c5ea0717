import { createParser } from "eventsource-parser";
import { createLineFeeds } from "../../../http/event-stream.ts";
import type { BodyKind } from "../../media-types.ts";

/** One piece of a stream, not yet looked into. */
export interface StreamFrame {
  readonly text: string;
  readonly id?: string | undefined;
  readonly event?: string | undefined;
}

/** Takes text however it was cut, and gives the pieces that are complete. */
interface Splitter {
  /** Pieces found so far; the reader takes them out. */
  readonly found: StreamFrame[];
  /** Characters that wait for more. */
  readonly waiting: number;
  /** Whether what came last is not complete, and never will be. */
  readonly isOpen: boolean;
  feed(text: string): void;
  end(): void;
}

/** A piece of a stream that is larger than allowed. */
export class FrameTooLarge extends Error {
  override readonly name = "FrameTooLarge";
}

/** A stream that ended within a piece. */
export class FrameCut extends Error {
  override readonly name = "FrameCut";
}

/** How a body is split. */
export interface FrameOptions {
  readonly kind: BodyKind;
  /** Bytes of one piece. */
  readonly eventBytes: number;
  /** Whether the body says that it ended: one that does not may have been cut, and must show that it was not. */
  readonly delimited: boolean;
}

/** Names and blanks around the data of an event, which do not count as its size. */
const ROOM_FOR_NAMES = 1_024;
const RECORD_SEPARATOR = "\u001E";

/** Splits a body into its pieces; however it arrives, they are the same. */
export async function* readFrames(
  body: AsyncIterable<Uint8Array>,
  { kind, eventBytes, delimited }: FrameOptions,
): AsyncGenerator<StreamFrame, undefined> {
  const decoder = new TextDecoder();
  const splitter = createSplitter(kind, eventBytes);
  for await (const chunk of body) {
    splitter.feed(decoder.decode(chunk, { stream: true }));
    yield* checked(splitter, eventBytes);
  }
  splitter.feed(decoder.decode());
  yield* checked(splitter, eventBytes);
  if (!delimited && splitter.isOpen) throw new FrameCut();
  splitter.end();
  yield* checked(splitter, eventBytes);
}

/** What was complete before something too large came is still given. */
function* checked(splitter: Splitter, eventBytes: number): Generator<StreamFrame, undefined> {
  for (const frame of splitter.found.splice(0)) {
    if (isLarger(frame.text, eventBytes)) throw new FrameTooLarge();
    yield frame;
  }
  if (splitter.waiting > eventBytes + ROOM_FOR_NAMES) throw new FrameTooLarge();
}

/** No character takes more than three bytes for each of its units, so that most text need not be measured. */
function isLarger(text: string, bytes: number): boolean {
  return text.length > bytes || (text.length * 3 > bytes && Buffer.byteLength(text) > bytes);
}

function createSplitter(kind: BodyKind, eventBytes: number): Splitter {
  switch (kind) {
    case "events":
      return splitEvents(eventBytes);
    case "records":
      return splitAt(RECORD_SEPARATOR, (rest) => rest.endsWith("\n") || endsItself(rest));
    case "json":
      return splitJson();
    case "lines":
      return splitAt("\n", endsItself);
    case "wire":
    case "text":
    case "bytes":
      return splitAt("\n", () => false);
  }
}

function splitEvents(eventBytes: number): Splitter {
  const found: StreamFrame[] = [];
  const bounds = new EventBounds();
  let isOver = false;
  const toLineFeeds = createLineFeeds();
  const parser = createParser({
    maxBufferSize: eventBytes + ROOM_FOR_NAMES,
    onEvent: ({ data, id, event }) => void found.push({ text: data, id, event }),
    onError: ({ type }) => {
      if (type === "max-buffer-size-exceeded") isOver = true;
    },
  });
  // Its own look at what comes first would depend on how the body was cut; the decoder has taken the mark out.
  parser.feed("");
  return {
    found,
    get waiting() {
      return isOver ? Number.POSITIVE_INFINITY : 0;
    },
    get isOpen() {
      return bounds.isWithin;
    },
    feed(text) {
      if (isOver || text === "") return;
      const lines = toLineFeeds(text);
      bounds.feed(lines);
      parser.feed(lines);
    },
    end() {},
  };
}

/** `isWhole` tells of what is left at the end whether it can have been cut. */
function splitAt(
  separator: string,
  isWhole: (rest: string) => boolean,
): Splitter & { readonly rest: string } {
  const found: StreamFrame[] = [];
  let rest = "";
  const push = (text: string) => {
    if (text.trim() !== "") found.push({ text });
  };
  return {
    found,
    get waiting() {
      return rest.length;
    },
    get rest() {
      return rest;
    },
    get isOpen() {
      return rest.trim() !== "" && !isWhole(rest);
    },
    feed(text) {
      let start = 0;
      for (let at = text.indexOf(separator); at !== -1; at = text.indexOf(separator, start)) {
        push(rest + text.slice(start, at));
        rest = "";
        start = at + separator.length;
      }
      rest += text.slice(start);
    },
    end() {
      push(rest);
      rest = "";
    },
  };
}

/** For what calls itself JSON: a value on each line, or where the first line is none, one value in all. */
function splitJson(): Splitter {
  const lines = splitAt("\n", endsItself);
  let whole: string | undefined;
  let isDecided = false;
  const decide = () => {
    const first = lines.found[0];
    if (isDecided || first === undefined) return;
    isDecided = true;
    if (!isJsonText(first.text))
      whole = lines.found.splice(0).reduce((all, { text }) => `${all}${text}\n`, "");
  };
  return {
    found: lines.found,
    get waiting() {
      return lines.waiting + (whole?.length ?? 0);
    },
    get isOpen() {
      return whole === undefined ? lines.isOpen : !endsItself(whole + lines.rest);
    },
    feed(text) {
      lines.feed(text);
      if (whole === undefined) decide();
      else whole += lines.found.splice(0).reduce((all, line) => `${all}${line.text}\n`, "");
    },
    end() {
      lines.end();
      if (whole === undefined) decide();
      if (whole === undefined) return;
      const rest = lines.found.splice(0).reduce((all, { text }) => `${all}${text}\n`, "");
      lines.found.push({ text: whole + rest });
      whole = undefined;
    },
  };
}

/** An object, a list and a string end with a character of their own: one that was cut is no JSON. */
function endsItself(text: string): boolean {
  return /^\s*[{["]/.test(text) && isJsonText(text);
}

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Follows a stream of events, however it is cut, to tell whether it is between two of them. Its lines end with line feeds. */
class EventBounds {
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
