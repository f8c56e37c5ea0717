import { errors } from "undici";
import type { ErrorCode } from "../../../core/errors/error-codes.ts";
import { CallError, isCallError } from "../../../core/errors/errors.ts";
import { shownHost, withPort } from "../../../http/address-guard.ts";

/** What an error of the transport speaks of. */
export interface Sent {
  readonly host: string;
  /** Told where no connection could be made, which a wrong one is often the cause of. */
  readonly port?: string | undefined;
  /** How often it was sent, the last time included. */
  readonly attempts: number;
}

interface Failure {
  readonly code: ErrorCode;
  /** Goes after the name of the host. */
  readonly says: string;
  /** The same again would fail again. @default false */
  readonly lasting?: true;
  /** No connection was made. @default false */
  readonly unconnected?: true;
}

const UNREACHABLE: Failure = { code: "UNAVAILABLE", says: "cannot be reached", unconnected: true };
const CUT: Failure = { code: "UNAVAILABLE", says: "ended the connection: the response was cut off" };
const UNKNOWN: Failure = { code: "UNAVAILABLE", says: "cannot be reached" };
const INSECURE: Failure = { code: "UNAVAILABLE", says: "cannot be reached securely", lasting: true };
const MALFORMED: Failure = { code: "OUTPUT_INVALID", says: "did not answer in valid HTTP" };
const GARBLED: Failure = { code: "OUTPUT_INVALID", says: "sent a body that cannot be decoded" };
const UNSENDABLE: Failure = {
  code: "VALIDATION_ERROR",
  says: "cannot be sent a request with this path or header",
};
const CLOSED: Failure = {
  code: "UNAVAILABLE",
  says: "is not called any more: the source is closed",
  lasting: true,
};

/** By the code of what was thrown, or its beginning. */
const FAILURES: Readonly<Record<string, Failure>> = {
  ECONNREFUSED: UNREACHABLE,
  EHOSTUNREACH: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  ENOTFOUND: UNKNOWN,
  EAI_AGAIN: UNKNOWN,
  ETIMEDOUT: UNREACHABLE,
  EPROTO: INSECURE,
  UND_ERR_CONNECT_TIMEOUT: {
    code: "TIMEOUT",
    says: "did not accept a connection in time",
    unconnected: true,
  },
  UND_ERR_HEADERS_OVERFLOW: { code: "TOO_LARGE", says: "sent more headers than limits.headerBytes allows" },
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: CUT,
  UND_ERR_SOCKET: CUT,
  ECONNRESET: CUT,
  WAYBILL_RESET: CUT,
  EPIPE: CUT,
  Z_BUF_ERROR: CUT,
  UND_ERR_INVALID_ARG: UNSENDABLE,
  UND_ERR_NOT_SUPPORTED: UNSENDABLE,
  UND_ERR_DESTROYED: CLOSED,
  UND_ERR_CLOSED: CLOSED,
};

const FAMILIES: readonly (readonly [RegExp, Failure])[] = [
  [/^(?:Z_|ERR_BROTLI|ERR__ERROR)/, GARBLED],
  [/^(?:ERR_TLS|ERR_SSL|CERT_|CRL_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|INVALID_CA|HOSTNAME_MISMATCH)/, INSECURE],
];

const LASTING = new WeakSet<CallError>();

/** Turns what went wrong on the way into a `CallError`, by table; the words of others stay in `cause`. */
export function toTransportError(thrown: unknown, sent: Sent): CallError {
  if (isCallError(thrown)) return thrown;
  return transportError(failureOf(thrown), sent, thrown);
}

/** The error of a source that was closed. */
export function closedError(sent: Sent): CallError {
  return transportError(CLOSED, sent);
}

/** Makes an error about a host; one that is `lasting` is not tried again. */
export function transportError(failure: Failure, sent: Sent, cause?: unknown): CallError {
  const host = shownHost(sent.host);
  const place = failure.unconnected && sent.port !== undefined ? withPort(host, sent.port) : host;
  const error = new CallError(failure.code, `${place} ${failure.says}.`, {
    details: { host, attempts: sent.attempts },
    stack: false,
    ...(cause === undefined ? {} : { cause }),
  });
  if (failure.lasting) LASTING.add(error);
  return error;
}

/** Tells whether the same request may fare better in a moment. */
export function mayPass(error: unknown): boolean {
  if (!isCallError(error) || LASTING.has(error)) return false;
  return error.code === "UNAVAILABLE" || error.code === "TIMEOUT";
}

/** What a signal says: its reason where that is a `CallError`, else `TIMEOUT` or `ABORTED`. */
export function abortError(signal: AbortSignal, sent: Sent): CallError {
  const reason: unknown = signal.reason;
  if (isCallError(reason)) return reason;
  const isTimeout = reason instanceof Error && reason.name === "TimeoutError";
  const host = shownHost(sent.host);
  const message = isTimeout ? `${host} did not answer in time.` : `The request to ${host} was aborted.`;
  const details = { host, attempts: sent.attempts };
  return new CallError(isTimeout ? "TIMEOUT" : "ABORTED", message, { cause: reason, details, stack: false });
}

function failureOf(thrown: unknown): Failure {
  if (thrown instanceof errors.HTTPParserError) return isEarlyEnd(thrown) ? CUT : MALFORMED;
  const code: unknown = thrown instanceof Error ? (thrown as NodeJS.ErrnoException).code : undefined;
  if (typeof code !== "string") return UNKNOWN;
  if (Object.hasOwn(FAILURES, code)) return FAILURES[code] as Failure;
  return FAMILIES.find(([pattern]) => pattern.test(code))?.[1] ?? UNKNOWN;
}

/** What the parser says when the connection ends within a body; it has no code for it. */
function isEarlyEnd(error: Error): boolean {
  return error.message.includes("Invalid EOF state");
}
