import type { ErrorCode } from "../../core/errors/error-codes.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import type { FailureCause, FailureReason } from "../../core/errors/failure.ts";
import { wordsIn } from "../../core/errors/source-words.ts";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import type { SourceSecrets } from "../../core/secrets/secret-mask.ts";
import { SignInError } from "../../http/oauth/oauth-authorizer.ts";
import { ChannelError } from "../channels/channel.ts";
import { ProtocolError, type RpcError, readError } from "../protocol/messages.ts";
import { UnwritableParams } from "../protocol/peer.ts";
import { toPlainLine } from "./plain-line.ts";

/** Turns what a channel or a handshake threw into a `CallError` that names the method and the server. */
export function fromChannelFailure(error: unknown, asked: AskedOfServer): CallError {
  if (isCallError(error)) return error;
  const rpc = rpcErrorIn(error);
  if (rpc !== undefined) return fromRpcError(rpc, asked);
  if (isFault(error, "stream-ended")) {
    const what = `The stream ended before ${asked.method} was answered; it may have run.`;
    return new CallError("UNAVAILABLE", what, { cause: error });
  }
  const { code, what, details, failure } = describeFailure(error);
  const told = { ...details, ...asked.secrets.saying(wordsOf(error)) };
  return new CallError(code, `${asked.server} could not be asked ${asked.method}: ${what}.`, {
    cause: error,
    failure,
    ...(Object.keys(told).length > 0 && { details: told }),
  });
}

/** Tells whether a failure is that of a channel, for this reason. */
export function isFault(error: unknown, reason: ChannelError["reason"]): error is ChannelError {
  return error instanceof ChannelError && error.reason === reason;
}

/** The codes with which HTTP servers refuse a request before they look at it, that of an unknown session among them. */
const REFUSED_UNSEEN: ReadonlySet<number> = new Set([-32_000, -32_001]);

/** Tells whether an HTTP server says that it does not know the session: what was sent has then not run. */
export function isSessionGone(error: unknown): boolean {
  if (!isFault(error, "status")) return false;
  if (error.status === 404) return true;
  const code = error.status === 400 ? rpcErrorOf(error.body)?.code : undefined;
  return code !== undefined && REFUSED_UNSEEN.has(code);
}

/** The JSON-RPC error that a body holds, if it is one. */
export function rpcErrorOf(body: string): RpcError | undefined {
  const value = body === "" ? undefined : parseJsonTextOrNone(body);
  const error = isPlainObject(value) ? value["error"] : undefined;
  return isPlainObject(error) && typeof error["code"] === "number" ? readError(error) : undefined;
}

interface Described {
  readonly code: ErrorCode;
  readonly what: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly failure?: FailureCause;
}

/** What failed for want of a credential, with a part of the sentence that who knows the config says better. */
function lacking(code: ErrorCode, what: string, reason: FailureReason): Described {
  return { code, what, failure: { reason, advice: what } };
}

function describeFailure(error: unknown): Described {
  if (error instanceof UnwritableParams) {
    return { code: "VALIDATION_ERROR", what: "the params cannot be written as JSON" };
  }
  if (error instanceof SignInError) return describeSignIn(error);
  if (!(error instanceof ChannelError)) return { code: "UNAVAILABLE", what: reasonOf(error) };
  switch (error.reason) {
    case "status":
      return describeStatus(error.status ?? 0);
    case "sign-in":
      return lacking(
        "UNAUTHENTICATED",
        "it wants a sign-in (OAuth), and no auth is set up for it",
        "sign-in",
      );
    case "scope":
      return lacking("ACCESS_DENIED", "the token's scope is not enough", "scope");
    case "content-type":
      return { code: "EXECUTION_ERROR", what: "its answer is neither JSON nor an event stream" };
    case "no-message":
      return { code: "EXECUTION_ERROR", what: "its answer is no JSON-RPC message" };
    case "endpoint":
      return { code: "UNAVAILABLE", what: "it names an address of another origin for messages" };
    case "handshake":
      return { code: "UNAVAILABLE", what: "its answer to the handshake cannot be used" };
    case "too-old":
      return { code: "UNAVAILABLE", what: "it does not speak 2026-07-28" };
    case "stream-ended":
      return { code: "UNAVAILABLE", what: "the connection failed" };
  }
}

function describeSignIn({ reason }: SignInError): Described {
  switch (reason) {
    case "token_refused":
      return { code: "UNAUTHENTICATED", what: "it refused the token; it may be wrong or expired" };
    case "unavailable":
      return { code: "UNAVAILABLE", what: "the connection failed" };
    default:
      return lacking("UNAUTHENTICATED", "it wants an authorization that is missing", "authorization");
  }
}

/** What to look at first, by HTTP status. */
const STATUS_HINTS: Readonly<Record<number, string>> = {
  401: "give it auth, or check the headers",
  404: "check the path of the url",
  405: "check the path of the url",
};

/** What to look at first, by the code of a network failure. */
const NETWORK_HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there; check that the server runs, and the host and port of the url",
  ENOTFOUND: "there is no such host; check the url",
  EAI_AGAIN: "the host could not be looked up; check the url and the network",
};

function describeStatus(status: number): Described {
  const code = codeOfHttpStatus(status);
  const advice = Object.hasOwn(STATUS_HINTS, status) ? STATUS_HINTS[status] : undefined;
  const what = `it answered with HTTP status ${status}${advice === undefined ? "" : `; ${advice}`}`;
  const reason = status === 401 ? "credentials" : "status";
  return { code, what, details: { status }, failure: { reason, value: status, advice } };
}

/** Says in our own words what a network failure is, by its code. */
function reasonOf(error: unknown): string {
  const code = networkCodeOf(error);
  if (code === undefined) return "the connection failed";
  const hint = Object.hasOwn(NETWORK_HINTS, code) ? `: ${NETWORK_HINTS[code]}` : "";
  return `the connection failed (${code})${hint}`;
}

/** The code of a failure of the network, such as ECONNREFUSED, which may be deep in the causes. */
export function networkCodeOf(error: unknown): string | undefined {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const code = (at as NodeJS.ErrnoException).code;
    if (typeof code === "string" && /^[A-Z][A-Z0-9_]{2,40}$/.test(code) && !isCallError(at)) return code;
  }
  return undefined;
}

/** A JSON-RPC error that answers a handshake, or that came with an HTTP status of its own. */
function rpcErrorIn(error: unknown): RpcError | undefined {
  if (error instanceof ProtocolError) return error.toJSON();
  return isFault(error, "status") && error.status === 400 ? rpcErrorOf(error.body) : undefined;
}

/** What the server said in the body of an HTTP error. */
function wordsOf(error: unknown): string | undefined {
  if (error instanceof SignInError && error.reason === "token_refused") return error.message;
  if (!(error instanceof ChannelError) || error.body === "") return undefined;
  return wordsIn(parseJsonTextOrNone(error.body) ?? error.body);
}

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
  return new CallError(code, describeError(code, error, asked), {
    cause: asked.secrets.maskAll(error),
    details: { rpcCode: error.code, ...asked.secrets.saying(error.message) },
    stack: false,
  });
}

function describeError(code: ErrorCode, error: RpcError, { method, params, server }: AskedOfServer): string {
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
export function codeOfHttpStatus(status: number): ErrorCode {
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
