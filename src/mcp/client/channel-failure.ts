import type { ErrorCode } from "../../core/errors/error-codes.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { wordsIn } from "../../core/errors/source-words.ts";
import { parseJsonTextOrNone } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { ChannelError } from "../channels/channel.ts";
import { ProtocolError, type RpcError, readError } from "../protocol/messages.ts";
import { UnwritableParams } from "../protocol/peer.ts";
import { SignInError } from "./http-authorizer.ts";
import { type AskedOfServer, codeOfStatus, fromRpcError } from "./rpc-error.ts";

/** Turns what a channel or a handshake threw into a `CallError` that names the method and the server. */
export function fromChannelFailure(error: unknown, asked: AskedOfServer): CallError {
  if (isCallError(error)) return error;
  const rpc = rpcErrorIn(error);
  if (rpc !== undefined) return fromRpcError(rpc, asked);
  if (isFault(error, "stream-ended")) {
    const what = `The stream ended before ${asked.method} was answered; it may have run.`;
    return new CallError("UNAVAILABLE", what, { cause: error });
  }
  const { code, what, details } = describe(error);
  const told = { ...details, ...asked.secrets.saying(wordsOf(error)) };
  return new CallError(code, `${asked.server} could not be asked ${asked.method}: ${what}.`, {
    cause: error,
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
}

function describe(error: unknown): Described {
  if (error instanceof UnwritableParams) {
    return { code: "VALIDATION_ERROR", what: "the params cannot be written as JSON" };
  }
  if (error instanceof SignInError) return describeSignIn(error);
  if (!(error instanceof ChannelError)) return { code: "UNAVAILABLE", what: reasonOf(error) };
  switch (error.reason) {
    case "status":
      return describeStatus(error.status ?? 0);
    case "scope":
      return { code: "ACCESS_DENIED", what: "the token's scope is not enough" };
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
      return { code: "UNAUTHENTICATED", what: "it wants an authorization that is missing" };
  }
}

/** What to look at first, by HTTP status. */
const STATUS_HINTS: Readonly<Record<number, string>> = {
  401: "give it a bearer or auth, or check the headers",
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
  const code = codeOfStatus(status);
  const hint = Object.hasOwn(STATUS_HINTS, status) ? `; ${STATUS_HINTS[status]}` : "";
  return { code, what: `it answered with HTTP status ${status}${hint}`, details: { status } };
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
