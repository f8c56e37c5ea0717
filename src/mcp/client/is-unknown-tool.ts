import { isPlainObject } from "../../core/json/json-value.ts";
import type { RpcError } from "../protocol/messages.ts";

const BEFORE = ["unknown tool", "no such tool", "tool not found", "tool does not exist", "invalid tool name"];
const AFTER = [
  "not found",
  "is not found",
  "was not found",
  "does not exist",
  "is unknown",
  "unknown",
  "not registered",
];
const QUOTES = "\"'`“”‘’:( )";

/**
 * Tells whether an error says of this very tool that there is none. Servers use -32602 for that and for bad arguments alike, so
 * the words right before or after the name decide, or a `tool` or `name` in its data beside such words.
 */
export function isUnknownTool(error: RpcError, name: unknown): boolean {
  if (typeof name !== "string" || name === "") return false;
  const text = error.message.slice(0, 2_000);
  const lower = text.toLowerCase();
  if (isNamedInData(error.data, name) && BEFORE.some((words) => lower.includes(words))) return true;
  const at = text.indexOf(name);
  if (at < 0) return false;
  const before = trimEnd(lower.slice(0, at));
  if (BEFORE.some((words) => before.endsWith(words))) return true;
  const after = trimStart(text.slice(at + name.length).toLowerCase());
  return isToolWord(before) && AFTER.some((words) => startsWithWords(after, words));
}

function isNamedInData(data: unknown, name: string): boolean {
  return isPlainObject(data) && (data["tool"] === name || data["name"] === name || data["toolName"] === name);
}

function isToolWord(before: string): boolean {
  return before === "" || before === "tool" || /[^a-z0-9_]tool$/.test(before.slice(-8));
}

function startsWithWords(text: string, words: string): boolean {
  return text.startsWith(words) && !/^[a-z0-9_]/.test(text.slice(words.length));
}

function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && QUOTES.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

function trimStart(text: string): string {
  let start = 0;
  while (start < text.length && `${QUOTES})`.includes(text.charAt(start))) start++;
  return text.slice(start);
}
