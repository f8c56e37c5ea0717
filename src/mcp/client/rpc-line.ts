import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { countOpenings, MAX_JSON_DEPTH } from "../../core/json/json-depth.ts";
import { parseJsonText } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";

/** What one line of standard output held. */
export interface RpcLine {
  /** As they came: only known to be objects of JSON-RPC 2.0. */
  readonly messages: readonly JSONRPCMessage[];
  /** Why the line, or a part of it, is no message. */
  readonly odd?: "is not JSON" | "is nested too deeply" | "is not a JSON-RPC message";
}

/** From this size on, the depth is looked at before the text is parsed: parsing deep text takes seconds. */
const LARGE_BYTES = 65_536;

const NOTHING: RpcLine = { messages: [] };

/** Reads one line of standard output; never throws. */
export function readRpcLine(line: Buffer): RpcLine {
  const isLarge = line.length >= LARGE_BYTES;
  if (isLarge && isDeeper(line, MAX_JSON_DEPTH)) return { messages: [], odd: "is nested too deeply" };
  let text = "";
  let value: unknown;
  try {
    text = line.toString("utf8");
    const bare = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    value = isLarge ? JSON.parse(bare) : parseJsonText(bare, countOpenings(line));
  } catch {
    if (text !== "" && text.trim() === "") return NOTHING;
    return { messages: [], odd: isDeeper(line, MAX_JSON_DEPTH) ? "is nested too deeply" : "is not JSON" };
  }
  return toMessages(value);
}

function toMessages(value: unknown): RpcLine {
  if (isMessage(value)) return { messages: [value] };
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  const messages = items.filter(isMessage);
  if (messages.length > 0 && messages.length === items.length) return { messages };
  return { messages, odd: "is not a JSON-RPC message" };
}

function isMessage(value: unknown): value is JSONRPCMessage {
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
): JSONRPCMessage {
  return { jsonrpc: "2.0", id, error: { code: -32603, message, data: { waybill } } };
}

const QUOTE = 34;
const BACKSLASH = 92;
const CURLY = 32;
const OPENING = 123;
const CLOSING = 125;

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
