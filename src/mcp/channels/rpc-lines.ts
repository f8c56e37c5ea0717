import type { Writable } from "node:stream";
import { countOpenings, isPlainObject, MAX_JSON_DEPTH, parseJsonText } from "../../core/json/json-value.ts";
import { toVisibleText } from "../client/plain-line.ts";

/** An object of JSON-RPC 2.0, of which nothing else is known. */
type Message = Readonly<Record<string, unknown>>;

/** What one line of standard output held. */
interface RpcLine {
  /** As they came: only known to be objects of JSON-RPC 2.0. */
  readonly messages: readonly Message[];
  /** Why the line, or a part of it, is no message. */
  readonly odd?: "is not JSON" | "is nested too deeply" | "is not a JSON-RPC message";
}

/** From this size on, the depth is looked at before the text is parsed: parsing deep text takes seconds. */
const LARGE_BYTES = 65_536;

const NOTHING: RpcLine = { messages: [] };

/** Reads one line of standard output; never throws. */
export function readRpcLine(line: Buffer): RpcLine {
  const isLarge = line.length >= LARGE_BYTES;
  if (isLarge && isDeeper(line, MAX_JSON_DEPTH)) return readDeepLine(line);
  let text = "";
  let value: unknown;
  try {
    text = line.toString("utf8");
    const bare = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    value = isLarge ? JSON.parse(bare) : parseJsonText(bare, countOpenings(line));
  } catch {
    if (text !== "" && text.trim() === "") return NOTHING;
    return isDeeper(line, MAX_JSON_DEPTH) ? readDeepLine(line) : { messages: [], odd: "is not JSON" };
  }
  return toMessages(value);
}

/**
 * Reads a list of tools although it is nested too deeply: one bad definition must not hide the others. Whatever lies deeper is left out, one
 * level past what is read, so that the reader of a definition finds it too deep. Nothing else is passed on with a part of it missing.
 */
function readDeepLine(line: Buffer): RpcLine {
  try {
    const value: unknown = JSON.parse(cutDeep(line, MAX_JSON_DEPTH + 1).toString("utf8"));
    if (isMessage(value) && isToolList((value as { readonly result?: unknown }).result)) {
      return { messages: [value] };
    }
  } catch {
    // It is no JSON either.
  }
  return { messages: [], odd: "is nested too deeply" };
}

function isToolList(result: unknown): boolean {
  if (!isPlainObject(result) || !Array.isArray(result["tools"])) return false;
  return !["content", "contents", "messages", "structuredContent"].some((name) => name in result);
}

function toMessages(value: unknown): RpcLine {
  if (isMessage(value)) return { messages: [value] };
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  const messages = items.filter(isMessage);
  if (messages.length > 0 && messages.length === items.length) return { messages };
  return { messages, odd: "is not a JSON-RPC message" };
}

function isMessage(value: unknown): value is Message {
  return isPlainObject(value) && value["jsonrpc"] === "2.0";
}

const VERSION = '"jsonrpc"\\s*:\\s*"2\\.0"';
const ID = '"id"\\s*:\\s*(-?\\d{1,15}|"[^"\\\\]{0,150}")';
const ID_IN_FRONT = new RegExp(
  `^\\s*\\{\\s*(?:${VERSION}\\s*,\\s*)?${ID}\\s*,\\s*(?:${VERSION}\\s*,\\s*)?"(?:result|error)"\\s*:`,
);
const ANSWER_IN_FRONT = new RegExp(`^\\s*\\{\\s*(?:${VERSION}\\s*,\\s*)?"(?:result|error)"\\s*:`);
const ID_AT_END = new RegExp(`,\\s*(?:${VERSION}\\s*,\\s*)?${ID}\\s*(?:,\\s*${VERSION}\\s*)?\\}\\s*$`);

/**
 * Finds whose answer a dropped line is from either of its ends, where it evidently is one. The last braces and quotes of JSON
 * cannot stand in a string, so that the end is as good a witness as the front.
 */
export function readAnswerId(front: Buffer, tail: Buffer | undefined): string | number | undefined {
  // `\s` takes a byte order mark too.
  const start = front.toString("utf8");
  const found = ID_IN_FRONT.exec(start) ?? (tail && ANSWER_IN_FRONT.test(start) ? atEnd(tail) : undefined);
  const id = found?.[1];
  if (id === undefined) return undefined;
  return id.startsWith('"') ? id.slice(1, -1) : Number(id);
}

function atEnd(tail: Buffer): RegExpExecArray | undefined {
  return ID_AT_END.exec(tail.toString("utf8")) ?? undefined;
}

/** Makes the answer that stands for one that could not be read. */
export function toLostAnswer(
  id: string | number,
  message: string,
  waybill: "TOO_LARGE" | "OUTPUT_INVALID",
): Message {
  return { jsonrpc: "2.0", id, error: { code: -32603, message, data: { waybill } } };
}

const QUOTE = 34;
const BACKSLASH = 92;
const CURLY = 32;
const OPENING = 123;
const CLOSING = 125;

/** Empties the objects and arrays that are nested so many levels deep; the bytes need not be JSON. */
function cutDeep(bytes: Buffer, levels: number): Buffer {
  const kept: Buffer[] = [];
  let depth = 0;
  let from = 0;
  for (let i = 0; i < bytes.length; i++) {
    const code = bytes[i] as number;
    if (code === QUOTE) {
      for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    } else if ((code | CURLY) === OPENING) {
      depth += 1;
      if (depth === levels) kept.push(bytes.subarray(from, i + 1));
    } else if ((code | CURLY) === CLOSING) {
      if (depth === levels) from = i;
      depth -= 1;
    }
  }
  kept.push(bytes.subarray(from));
  return Buffer.concat(kept);
}

/** Tells whether bytes open more objects and arrays than that, one in another; they need not be JSON. */
function isDeeper(bytes: Buffer, levels: number): boolean {
  let depth = 0;
  for (let i = 0; i < bytes.length; i++) {
    const code = bytes[i] as number;
    if (code === QUOTE) {
      for (i++; i < bytes.length && bytes[i] !== QUOTE; i++) if (bytes[i] === BACKSLASH) i++;
    } else if ((code | CURLY) === OPENING) {
      depth += 1;
      if (depth > levels) return true;
    } else if ((code | CURLY) === CLOSING) depth -= 1;
  }
  return false;
}

/** How much of an odd line is shown, in characters. */
const SHOWN_CHARS = 200;

/** How much of either end of a dropped line is kept and searched for an id, in bytes. */
const END_BYTES = 200;

/** Settings of `createRpcReader`; neither listener may throw. */
interface RpcReaderOptions {
  /** The longest line, in bytes and without its newline. */
  readonly lineBytes: number;
  /** What a line is called where it is odd. @default "A line on standard output" */
  readonly what?: string;
  /** Hears each message as it came, and an error in place of an answer that could not be read. */
  readonly onMessage: (message: Message) => void;
  /** Hears what was dropped, and why. */
  readonly onOddity: (message: string) => void;
}

/** Makes a reader of the messages that a process writes, a line each, among whatever else it writes. */
export function createRpcReader({
  lineBytes,
  what = "A line on standard output",
  onMessage,
  onOddity,
}: RpcReaderOptions): LineReader {
  /** That of a dropped line whose id may yet come at its end. */
  let longFront: Buffer | undefined;
  const failAsLarge = (id: string | number): void =>
    onMessage(toLostAnswer(id, `The answer is larger than ${lineBytes} bytes.`, "TOO_LARGE"));

  return createLineReader({
    lineBytes,
    onLine(line) {
      const { messages, odd } = readRpcLine(line);
      if (odd) {
        onOddity(`${what} ${odd}: ${show(line)}`);
        const lost = toLost(line, odd);
        if (lost) onMessage(lost);
      }
      for (const message of messages) onMessage(message);
    },
    onLong(front) {
      onOddity(`${what} is longer than ${lineBytes} bytes and was dropped: ${show(front)}`);
      const id = readAnswerId(front, undefined);
      if (id === undefined) longFront = front;
      else failAsLarge(id);
    },
    onLongEnd(tail) {
      const id = longFront && readAnswerId(longFront, tail);
      longFront = undefined;
      if (id !== undefined) failAsLarge(id);
    },
  });
}

/** The error that stands for a line which evidently was an answer. */
function toLost(line: Buffer, odd: NonNullable<RpcLine["odd"]>): Message | undefined {
  const id = readAnswerId(line.subarray(0, END_BYTES), line.subarray(-END_BYTES));
  if (id === undefined) return undefined;
  return odd === "is nested too deeply"
    ? toLostAnswer(id, `The answer is nested more than ${MAX_JSON_DEPTH} levels deep.`, "TOO_LARGE")
    : toLostAnswer(id, `The answer ${odd}.`, "OUTPUT_INVALID");
}

function show(line: Buffer): string {
  // A character takes four bytes at most.
  const text = toVisibleText(line.toString("utf8", 0, SHOWN_CHARS * 4).trim());
  return JSON.stringify([...text].slice(0, SHOWN_CHARS).join(""));
}

const NEWLINE = 10;

/** Where the first piece of a line that comes in pieces goes. */
const FIRST_CAPACITY = 65_536;

interface LineReaderOptions {
  /** The longest line, in bytes and without its newline. */
  readonly lineBytes: number;
  /** Hears each line; the bytes are only good until it returns. */
  readonly onLine: (line: Buffer) => void;
  /** Hears the front of a line that is dropped, as soon as it is too long. */
  readonly onLong: (front: Buffer) => void;
  /** Hears how the same line ended, when it does. */
  readonly onLongEnd: (tail: Buffer) => void;
}

/** Makes a reader that never holds more than one line of the size allowed. */
export function createLineReader(options: LineReaderOptions): LineReader {
  return new LineReader(options);
}

/** Cuts bytes into lines, however they are cut into chunks. */
export class LineReader {
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

  /** Tells that no more bytes come: what is left is a line too. */
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

interface Batch {
  text: string;
  readonly written: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** Makes a writer that holds at most so many characters for a reader that does not read. */
export function createLineWriter(stream: Writable, unsentChars: number): LineWriter {
  return new LineWriter(stream, unsentChars);
}

/** Writes lines to a stream, those of one turn of the event loop together. */
export class LineWriter {
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

  /** Resolves when the stream has taken the line and is ready for more. */
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
      // Behind all input of this turn: requests of other connections come in ticks of their own, and each write is a call of the system.
      if (!this.#blocking) setImmediate(this.#flush);
    }
    this.#next.text += `${line}\n`;
    return this.#next.written;
  }

  /** Writes what waits and ends the stream. */
  end(): void {
    if (this.#failure) return;
    if (this.#next) this.#stream.write(this.#next.text);
    this.#next?.resolve();
    this.#next = undefined;
    this.#stream.end();
    this.fail(new Error("The connection was closed before the message was read."));
  }

  /** Rejects what waits and all that comes. */
  fail(error: Error): void {
    this.#failure ??= error;
    this.#blocking?.reject(error);
    this.#next?.reject(error);
    this.#blocking = undefined;
    this.#next = undefined;
  }

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
