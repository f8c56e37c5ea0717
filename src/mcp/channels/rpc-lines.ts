import { countOpenings, MAX_JSON_DEPTH } from "../../core/json/json-depth.ts";
import { parseJsonText } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { toVisibleText } from "../client/visible-text.ts";
import { createLineReader, type LineReader } from "./line-reader.ts";

/** An object of JSON-RPC 2.0, of which nothing else is known. */
type Message = Readonly<Record<string, unknown>>;

/** What one line of standard output held. */
export interface RpcLine {
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
 * level past what is read, so that whoever reads a definition finds it too deep. Nothing else is passed on with a part of it missing.
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

/** How much of either end of a line is searched for an id, in bytes. */
const END_BYTES = 200;

/** Settings of `createRpcReader`; neither listener may throw. */
export interface RpcReaderOptions {
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
