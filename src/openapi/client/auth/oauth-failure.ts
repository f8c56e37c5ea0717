import { ResponseBodyError } from "oauth4webapi";
import { type CallError, isCallError } from "../../../core/errors/errors.ts";
import type { OAuthCredential } from "./credentials.ts";
import { showScheme, unauthenticated } from "./unauthenticated.ts";

/** The errors of RFC 6749, which may be shown; anything else a server says is foreign text. */
const KNOWN = new Set([
  "invalid_request",
  "invalid_client",
  "invalid_grant",
  "unauthorized_client",
  "unsupported_grant_type",
  "invalid_scope",
]);

const LONGEST_DESCRIPTION = 500;

/** Shorter values are found in any text. */
const SHORTEST_SECRET = 4;

/** What an authorization server did wrong or said no with, for the `cause` of a `CallError`; holds no secrets. */
class OAuthFailure extends Error {
  /** The library's word for it, or the server's `error`. */
  readonly code: string | undefined;
  readonly status: number | undefined;

  constructor(message: string, code: string | undefined, status: number | undefined) {
    super(message);
    this.name = "OAuthFailure";
    this.code = code;
    this.status = status;
  }
}

/** Turns what went wrong on the way to a token into a `CallError`. */
export function tokenFailure(scheme: string, credential: OAuthCredential, thrown: unknown): CallError {
  const start = `No token could be had for ${showScheme(scheme)}`;
  // What the transport says is our own text, and may name the option that helps.
  if (isCallError(thrown)) return unauthenticated(`${start}: ${thrown.message}`, thrown, thrown.retryable);
  const failure = toOAuthFailure(credential, thrown);
  const { code, status = 0 } = failure;
  if (status >= 500 || status === 429) {
    return unauthenticated(`${start}: the authorization server answered ${status}.`, failure, true);
  }
  const said =
    code !== undefined && KNOWN.has(code) ? `refused with ${code}` : "gave an answer that is no token";
  return unauthenticated(`${start}: the authorization server ${said}.`, failure);
}

/** The library keeps whole answers in its errors, tokens included; only what says what is wrong is taken over. */
function toOAuthFailure(credential: OAuthCredential, thrown: unknown): OAuthFailure {
  if (thrown instanceof ResponseBodyError) {
    const said = redact(credential, `${thrown.error}: ${thrown.error_description ?? ""}`);
    return new OAuthFailure(said, redact(credential, thrown.error), thrown.status);
  }
  if (!(thrown instanceof Error)) return new OAuthFailure("unknown", undefined, undefined);
  const { code } = thrown as { code?: unknown };
  const status = thrown.cause instanceof Response ? thrown.cause.status : undefined;
  return new OAuthFailure(
    redact(credential, thrown.message),
    typeof code === "string" ? code : undefined,
    status,
  );
}

/** A server may repeat what it was sent. */
function redact({ clientSecret, refreshToken, parameters }: OAuthCredential, text: string): string {
  let shown = text.slice(0, LONGEST_DESCRIPTION * 4);
  for (const secret of [clientSecret, refreshToken, ...Object.values(parameters ?? {})]) {
    if (secret !== undefined && secret.length >= SHORTEST_SECRET) shown = shown.replaceAll(secret, "***");
  }
  return shown.slice(0, LONGEST_DESCRIPTION);
}
