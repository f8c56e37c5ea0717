import type { ErrorCode } from "../../core/errors/error-codes.ts";
import { CallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { SourceSecrets } from "../../core/secrets/source-secrets.ts";
import type { RpcError } from "../protocol/messages.ts";
import { toPlainLine } from "./plain-line.ts";

/** What was asked, of whom: it is named in every error. */
export interface AskedOfServer {
  readonly method: string;
  readonly params?: Readonly<Record<string, unknown>> | undefined;
  /** How people know the server. */
  readonly server: string;
  /** What of its words is passed on. */
  readonly secrets: SourceSecrets;
}

/** JSON-RPC codes that say more than "it failed"; every other one is an `EXECUTION_ERROR`. */
const RPC_CODES: Readonly<Record<string, ErrorCode>> = {
  "-32601": "OPERATION_NOT_FOUND",
  "-32602": "VALIDATION_ERROR",
  "-32002": "NOT_FOUND",
  // The 2026-07-28 revision: the client lacks a capability that the server needs for this request.
  "-32021": "NOT_IMPLEMENTED",
};

/** What the 2026-07-28 revision answers with -32602 and older ones with -32002. */
const MISSING: Readonly<Record<string, string>> = { "resources/read": "uri", "prompts/get": "name" };

/** Turns a JSON-RPC error into a `CallError`: a sentence of ours, and the server's message as its words in `details.said`. */
export function fromRpcError(error: RpcError, asked: AskedOfServer): CallError {
  const code = codeOf(error, asked);
  return new CallError(code, describe(code, error, asked), {
    cause: asked.secrets.maskAll(error),
    details: { rpcCode: error.code, ...asked.secrets.saying(error.message) },
    stack: false,
  });
}

function describe(code: ErrorCode, error: RpcError, { method, params, server }: AskedOfServer): string {
  const tool = method === "tools/call" ? toPlainLine(params?.["name"], 200) : "";
  if (tool === "") return `${server} answered ${method} with an error (${error.code}).`;
  switch (code) {
    case "OPERATION_NOT_FOUND":
      return `${server} does not know the tool "${tool}".`;
    case "VALIDATION_ERROR":
      return `${server} does not take this input for the tool "${tool}".`;
    default:
      return `${server} answered a call of the tool "${tool}" with an error (${error.code}).`;
  }
}

function codeOf(error: RpcError, asked: AskedOfServer): ErrorCode {
  const marked = isPlainObject(error.data) ? error.data["waybill"] : undefined;
  // Written by our own transport in place of an answer it had to drop.
  if (marked === "TOO_LARGE" || marked === "OUTPUT_INVALID") return marked;
  if (error.code === -32602 && asked.method === "tools/call") {
    return isUnknownTool(error, asked.params?.["name"]) ? "OPERATION_NOT_FOUND" : "VALIDATION_ERROR";
  }
  if (error.code === -32602 && isMissing(error, asked)) return "NOT_FOUND";
  const key = String(error.code);
  return Object.hasOwn(RPC_CODES, key) ? (RPC_CODES[key] as ErrorCode) : "EXECUTION_ERROR";
}

function isMissing(error: RpcError, { method, params }: AskedOfServer): boolean {
  const key = Object.hasOwn(MISSING, method) ? MISSING[method] : undefined;
  const sought = key === undefined ? undefined : params?.[key];
  if (key === undefined || typeof sought !== "string") return false;
  if (isPlainObject(error.data) && error.data[key] === sought) return true;
  const text = error.message.slice(0, 2_000);
  return text.includes(sought) && /\b(?:not found|unknown|no such|does not exist)\b/i.test(text);
}

/** What can be said of a failure that came with no JSON-RPC error, by HTTP status; see `codeOfStatus`. */
const STATUS_CODES: Readonly<Record<string, ErrorCode>> = {
  401: "UNAUTHENTICATED",
  402: "UPGRADE_REQUIRED",
  403: "ACCESS_DENIED",
  404: "UNAVAILABLE",
  405: "UNAVAILABLE",
  407: "UNAUTHENTICATED",
  408: "TIMEOUT",
  410: "UNAVAILABLE",
  413: "TOO_LARGE",
  429: "RATE_LIMITED",
};

/** Gives the code for an HTTP status: redirects that lead elsewhere and 5xx are `UNAVAILABLE`, the rest `EXECUTION_ERROR`. */
export function codeOfStatus(status: number): ErrorCode {
  const key = String(status);
  if (Object.hasOwn(STATUS_CODES, key)) return STATUS_CODES[key] as ErrorCode;
  return status >= 500 || (status >= 300 && status < 400) ? "UNAVAILABLE" : "EXECUTION_ERROR";
}

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
