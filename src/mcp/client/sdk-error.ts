import {
  InsufficientScopeError,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import type { ErrorCode } from "../../core/errors/error-codes.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { wordsIn } from "../../core/errors/source-words.ts";
import { parseJsonTextOrNone } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { SignInError } from "./http-authorizer.ts";
import { type AskedOfServer, codeOfStatus, fromRpcError, toRpcError } from "./rpc-error.ts";

/** Turns what the SDK or its transport threw into a `CallError` that names the method and the server. */
export function fromSdkError(error: unknown, asked: AskedOfServer): CallError {
  const own = callErrorIn(error);
  if (own !== undefined) return own;
  const rpc = rpcErrorIn(error);
  if (rpc !== undefined) return fromRpcError(rpc, asked);
  const { code, what, details } = describe(error);
  const told = { ...details, ...asked.secrets.saying(wordsOf(error)) };
  return new CallError(code, `${asked.server} could not be asked ${asked.method}: ${what}.`, {
    cause: error,
    ...(Object.keys(told).length > 0 && { details: told }),
  });
}

/** Tells whether an HTTP server says that it does not know the session: what was sent has then not run. */
export function isSessionGone(error: unknown): boolean {
  if (!(error instanceof SdkHttpError)) return false;
  if (error.status === 404) return true;
  const text = textOf(error);
  return error.status === 400 && /\bsession\b/i.test(text.slice(0, 2_000));
}

/** What our own side threw may come wrapped. */
function callErrorIn(error: unknown): CallError | undefined {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (isCallError(at)) return at;
  }
  return undefined;
}

interface Described {
  readonly code: ErrorCode;
  readonly what: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

const AUTHENTICATE: Described = {
  code: "UNAUTHENTICATED",
  what: "it wants an authorization that is missing",
};

function describe(error: unknown): Described {
  if (error instanceof InsufficientScopeError)
    return { code: "ACCESS_DENIED", what: "the token's scope is not enough" };
  if (error instanceof SignInError) return describeSignIn(error);
  if (error instanceof SdkHttpError) return describeStatus(error.status);
  if (error instanceof UnauthorizedError) return AUTHENTICATE;
  if (error instanceof SdkError) return describeSdk(error);
  if (error instanceof SyntaxError || isNamed(error, "ZodError")) {
    return { code: "EXECUTION_ERROR", what: "its answer is no JSON-RPC message" };
  }
  if (error instanceof TypeError && /circular|BigInt|toJSON/.test(error.message)) {
    return { code: "VALIDATION_ERROR", what: "the params cannot be written as JSON" };
  }
  return { code: "UNAVAILABLE", what: reasonOf(error) };
}

function describeSignIn({ reason }: SignInError): Described {
  if (reason === "token_refused")
    return { code: "UNAUTHENTICATED", what: "it refused the token; it may be wrong or expired" };
  return reason === "unavailable" ? { code: "UNAVAILABLE", what: "the connection failed" } : AUTHENTICATE;
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

function describeSdk(error: SdkError): Described {
  switch (error.code) {
    case SdkErrorCode.MethodNotSupportedByProtocolVersion:
      return { code: "NOT_IMPLEMENTED", what: "the revision it speaks has no such method" };
    case SdkErrorCode.ClientHttpUnexpectedContent:
      return { code: "EXECUTION_ERROR", what: "its answer is neither JSON nor an event stream" };
    case SdkErrorCode.RequestTimeout:
      return { code: "TIMEOUT", what: "it did not answer in time" };
    default:
      return { code: "UNAVAILABLE", what: reasonOf(error) };
  }
}

/** Says in our own words what a network failure is, by its code. */
function reasonOf(error: unknown): string {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const code = (at as NodeJS.ErrnoException).code;
    if (typeof code === "string" && /^[A-Z][A-Z0-9_]{2,40}$/.test(code) && !(at instanceof SdkError)) {
      const hint = Object.hasOwn(NETWORK_HINTS, code) ? `: ${NETWORK_HINTS[code]}` : "";
      return `the connection failed (${code})${hint}`;
    }
  }
  return "the connection failed";
}

/** A JSON-RPC error that the SDK has read, such as the answer to a handshake, or one that came with an HTTP status of its own. */
function rpcErrorIn(error: unknown): ReturnType<typeof toRpcError> | undefined {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (at instanceof ProtocolError) return toRpcError({ ...at, message: at.message });
  }
  if (!(error instanceof SdkHttpError) || error.status !== 400) return undefined;
  try {
    const body: unknown = JSON.parse(textOf(error));
    const inner = isPlainObject(body) ? body["error"] : undefined;
    return isPlainObject(inner) && typeof inner["code"] === "number" ? toRpcError(inner) : undefined;
  } catch {
    return undefined;
  }
}

/** What the server said in the body of an HTTP error. */
function wordsOf(error: unknown): string | undefined {
  if (error instanceof SignInError && error.reason === "token_refused") return error.message;
  const text = error instanceof SdkHttpError ? textOf(error) : "";
  return text === "" ? undefined : wordsIn(parseJsonTextOrNone(text) ?? text);
}

function textOf(error: SdkHttpError): string {
  const { text } = (error.data ?? {}) as { text?: unknown };
  return typeof text === "string" ? text : "";
}

function isNamed(error: unknown, name: string): boolean {
  return error instanceof Error && (error.name === name || error.constructor.name === name);
}
