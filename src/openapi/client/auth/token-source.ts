import {
  type AuthorizationServer,
  allowInsecureRequests,
  type Client,
  type ClientAuth,
  ClientSecretPost,
  clientCredentialsGrantRequest,
  customFetch,
  discoveryRequest,
  None,
  processClientCredentialsResponse,
  processDiscoveryResponse,
  processRefreshTokenResponse,
  ResponseBodyError,
  refreshTokenGrantRequest,
  type TokenEndpointResponse,
} from "oauth4webapi";
import { CallError, isCallError, toCallError } from "../../../core/errors/errors.ts";
import { addAbortListener, monotonicNow, removeAbortListener } from "../../../core/execution/cancellation.ts";
import type { OperationContext } from "../../../core/operation/operation-context.ts";
import { clientSecretBasic } from "../../../http/client-secret-basic.ts";
import type { OutgoingRequest, SendOptions, WholeResponse } from "../http-message.ts";
import { isTokenText } from "./addition.ts";
import { isScope, type OAuthCredential, readAddress, showScheme, unauthenticated } from "./credentials.ts";
import type { TokenAddress } from "./token-address.ts";

/** What a token source works with. */
interface TokenSettings {
  readonly scheme: string;
  readonly credential: OAuthCredential;
  readonly address: TokenAddress;
  readonly send: Send;
  readonly warn: (message: string, cause?: unknown) => void;
}

interface TokenWanted {
  readonly scopes: readonly string[];
  readonly context: OperationContext;
  /** The token that was given to this call before was refused. */
  readonly refused: boolean;
}

/** The token of one set of scopes; times are on the monotonic clock. */
interface HeldToken {
  value: string | undefined;
  renewAt: number;
  expiresAt: number;
  pending: Promise<string> | undefined;
  failure: CallError | undefined;
  failedUntil: number;
}

/** How long before its end a token is renewed, in milliseconds, or a tenth of its life where that is less. */
const RENEW_BEFORE = 60_000;

/** Milliseconds for which a failure answers for the next calls too. */
const FAILURE_HOLDS = 1_000;

/** Milliseconds for which a discovery document is believed. */
const DISCOVERY_HOLDS = 3_600_000;

/** Keeps the tokens of one credential: asked for once however many calls wait, renewed before they end. */
class TokenSource {
  readonly #settings: TokenSettings;
  readonly #tokens = new Map<string, HeldToken>();
  /** Which token each call was given, to know which one was refused. */
  readonly #given = new WeakMap<OperationContext, string>();
  #refreshToken: string | undefined;
  #endpoint: { readonly url: URL; readonly until: number } | undefined;

  constructor(settings: TokenSettings) {
    this.#settings = settings;
    this.#refreshToken = settings.credential.refreshToken;
  }

  /** Gives a token, at once where a good one is held. */
  token(wanted: TokenWanted): string | Promise<string> {
    const { context } = wanted;
    const scopes = this.#scopesFor(wanted.scopes);
    const held = this.#held(scopes.join(" "));
    const now = monotonicNow();
    const refused = wanted.refused && (this.#given.get(context) ?? held.value) === held.value;
    if (held.value !== undefined && !refused && now < held.renewAt) return this.#give(held.value, context);
    if (held.pending === undefined && held.failure !== undefined && now < held.failedUntil) {
      return this.#give(this.#stillGood(held, refused, held.failure), context);
    }
    held.pending ??= this.#renew(held, scopes);
    return waitFor(held.pending, context.signal).then(
      (value) => this.#give(value, context),
      (failure: CallError) =>
        this.#give(this.#stillGood(held, refused || context.signal.aborted, failure), context),
    );
  }

  /** What the refresh token was granted is had in one token, so that there is one renewal at a time and it is never used twice. */
  #scopesFor(asked: readonly string[]): readonly string[] {
    const { scopes, refreshToken } = this.#settings.credential;
    if (scopes !== undefined) return scopes;
    return refreshToken === undefined ? [...new Set(asked.filter(isScope))].sort() : [];
  }

  #held(key: string): HeldToken {
    let held = this.#tokens.get(key);
    if (held === undefined) {
      held = {
        value: undefined,
        renewAt: 0,
        expiresAt: 0,
        pending: undefined,
        failure: undefined,
        failedUntil: 0,
      };
      this.#tokens.set(key, held);
    }
    return held;
  }

  #give(value: string, context: OperationContext): string {
    this.#given.set(context, value);
    return value;
  }

  /** A renewal that failed early leaves the token that is held until its end, unless that one was refused. */
  #stillGood(held: HeldToken, refused: boolean, failure: CallError): string {
    if (held.value === undefined || refused || monotonicNow() >= held.expiresAt) throw failure;
    return held.value;
  }

  async #renew(held: HeldToken, scopes: readonly string[]): Promise<string> {
    const { scheme, credential } = this.#settings;
    const asked = monotonicNow();
    try {
      const issued = await this.#request(scopes);
      const life = issued.lifetimeMs ?? Number.POSITIVE_INFINITY;
      held.value = issued.value;
      held.expiresAt = asked + life;
      held.renewAt = asked + life - Math.min(RENEW_BEFORE, life / 10);
      held.failure = undefined;
      return issued.value;
    } catch (thrown) {
      held.failure = tokenFailure(scheme, this.#secrets(credential), thrown);
      held.failedUntil = monotonicNow() + FAILURE_HOLDS;
      throw held.failure;
    } finally {
      held.pending = undefined;
    }
  }

  async #request(scopes: readonly string[]): Promise<IssuedToken> {
    const { credential, address, send } = this.#settings;
    if (this.#endpoint === undefined || monotonicNow() >= this.#endpoint.until) {
      const url = await findEndpoint(address, send);
      this.#endpoint = { url, until: monotonicNow() + DISCOVERY_HOLDS };
    }
    const asked = { refreshToken: this.#refreshToken, scopes, send };
    const issued = await requestToken(this.#endpoint.url, credential, asked);
    if (issued.refreshToken !== undefined) this.#rotate(issued.refreshToken);
    return issued;
  }

  #rotate(refreshToken: string): void {
    this.#refreshToken = refreshToken;
    void this.#tell(refreshToken);
  }

  /** Nobody waits for it; that it failed matters when the process starts again. */
  async #tell(refreshToken: string): Promise<void> {
    const { credential, warn } = this.#settings;
    try {
      await credential.onRefreshToken?.(refreshToken);
    } catch (failure) {
      warn("onRefreshToken failed; the new refresh token is known to this process alone.", failure);
    }
  }

  #secrets(credential: OAuthCredential): OAuthCredential {
    return this.#refreshToken === undefined
      ? credential
      : { ...credential, refreshToken: this.#refreshToken };
  }
}

/** Waits for work that others may share, no longer than a signal allows; the work itself goes on. */
export function waitFor<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const listener = { onAbort: () => reject(stoppedBy(signal)) };
    if (signal.aborted) listener.onAbort();
    else addAbortListener(signal, listener);
    const end = () => removeAbortListener(signal, listener);
    work.then(
      (value) => {
        end();
        resolve(value);
      },
      (failure: unknown) => {
        end();
        reject(failure);
      },
    );
  });
}

function stoppedBy(signal: AbortSignal): CallError {
  const reason: unknown = signal.reason;
  if (isCallError(reason)) return toCallError(reason);
  const timedOut = reason instanceof Error && reason.name === "TimeoutError";
  return timedOut
    ? new CallError("TIMEOUT", "The time was up before credentials were there.", {
        cause: reason,
        stack: false,
      })
    : new CallError("ABORTED", "The call was aborted before credentials were there.", {
        cause: reason,
        stack: false,
      });
}

/** A token as an authorization server gave it. */
interface IssuedToken {
  readonly value: string;
  /** Milliseconds; nothing where the server does not say. */
  readonly lifetimeMs: number | undefined;
  /** The one that replaces the one before. */
  readonly refreshToken: string | undefined;
}

const WELL_KNOWN = "/.well-known/openid-configuration";

/** Finds the token endpoint: the address itself, or what the discovery document there names. */
async function findEndpoint(address: TokenAddress, send: Send): Promise<URL> {
  if (address.kind === "endpoint") return address.url;
  const { url } = address;
  const response = await discoveryRequest(toIssuer(url), {
    [customFetch]: toOAuthFetch(send, true),
    [allowInsecureRequests]: url.protocol === "http:",
  });
  const { token_endpoint: declared } = await readDiscovery(toIssuer(url), response);
  const endpoint = typeof declared === "string" ? readAddress(declared) : undefined;
  if (endpoint === undefined) throw new Error("The discovery document names no token endpoint.");
  // Plain http only where the discovery document itself came from: a machine's own.
  if (endpoint.protocol === "https:" || endpoint.origin === url.origin) return endpoint;
  throw new Error("The discovery document names a token endpoint that is not https.");
}

/** Asks for a token: with the refresh token where there is one, else with the client's own credentials. */
async function requestToken(
  endpoint: URL,
  credential: OAuthCredential,
  asked: {
    readonly refreshToken: string | undefined;
    readonly scopes: readonly string[];
    readonly send: Send;
  },
): Promise<IssuedToken> {
  const { refreshToken, scopes, send } = asked;
  const server: AuthorizationServer = { issuer: endpoint.origin, token_endpoint: endpoint.href };
  const client: Client = { client_id: credential.clientId };
  const parameters = new URLSearchParams(credential.parameters);
  if (scopes.length > 0) parameters.set("scope", scopes.join(" "));
  const auth = clientAuthOf(credential);
  const options = {
    // A refresh token may be good for one use only; sent twice, it may end the whole grant.
    [customFetch]: toOAuthFetch(send, refreshToken === undefined),
    [allowInsecureRequests]: endpoint.protocol === "http:",
  };
  if (refreshToken === undefined) {
    const response = await clientCredentialsGrantRequest(server, client, auth, parameters, options);
    return toIssuedToken(await processClientCredentialsResponse(server, client, response), undefined);
  }
  const response = await refreshTokenGrantRequest(server, client, auth, refreshToken, {
    ...options,
    additionalParameters: parameters,
  });
  return toIssuedToken(await processRefreshTokenResponse(server, client, response), refreshToken);
}

function toIssuedToken(response: TokenEndpointResponse, sent: string | undefined): IssuedToken {
  const { access_token: value, token_type: type, expires_in: seconds, refresh_token: next } = response;
  if (type !== "bearer") throw new Error("The authorization server gave a token that is not a bearer token.");
  if (!isTokenText(value)) throw new Error("The authorization server gave a token that no header can hold.");
  return {
    value,
    lifetimeMs: seconds === undefined ? undefined : seconds * 1_000,
    refreshToken: sent === undefined || next === sent ? undefined : next,
  };
}

function clientAuthOf({ clientSecret, clientAuth }: OAuthCredential): ClientAuth {
  if (clientSecret === undefined) return None();
  if (clientAuth === "post") return ClientSecretPost(clientSecret);
  return (_server, client, _body, headers) => {
    headers.set("authorization", clientSecretBasic(client.client_id, clientSecret));
  };
}

function toIssuer(url: URL): URL {
  const issuer = new URL(url);
  if (issuer.pathname.endsWith(WELL_KNOWN)) issuer.pathname = issuer.pathname.slice(0, -WELL_KNOWN.length);
  return issuer;
}

/** An issuer may end with a slash or not, which its well-known address does not show. */
async function readDiscovery(issuer: URL, response: Response): Promise<AuthorizationServer> {
  const slashed = new URL(issuer);
  if (!slashed.pathname.endsWith("/")) slashed.pathname += "/";
  const again = response.clone();
  try {
    return await processDiscoveryResponse(issuer, response);
  } catch (failure) {
    if (slashed.href === issuer.href) throw failure;
    return await processDiscoveryResponse(slashed, again);
  }
}

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

/** What an authorization server did wrong or refused with, for the `cause` of a `CallError`; holds no secrets. */
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
function tokenFailure(scheme: string, credential: OAuthCredential, thrown: unknown): CallError {
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

/** Credentials that functions gave for whose tokens are kept; the one not used for longest goes first. */
const MOST_SOURCES = 1_000;

/** Keeps one token source for each credential and place, so that nobody is given a token of somebody else. */
export class TokenSources {
  readonly #send: Send;
  readonly #warn: (message: string, cause?: unknown) => void;
  readonly #sources = new Map<string, TokenSource>();

  constructor(send: Send, warn: (message: string, cause?: unknown) => void) {
    this.#send = send;
    this.#warn = warn;
  }

  /** Gives the source of a credential, the same one for equal credentials. */
  get(scheme: string, credential: OAuthCredential, address: TokenAddress): TokenSource {
    const key = keyOf(credential, address);
    const known = this.#sources.get(key);
    const source =
      known ?? new TokenSource({ scheme, credential, address, send: this.#send, warn: this.#warn });
    this.#sources.delete(key);
    this.#sources.set(key, source);
    const [oldest] = this.#sources.keys();
    if (this.#sources.size > MOST_SOURCES && oldest !== undefined) this.#sources.delete(oldest);
    return source;
  }
}

function keyOf(credential: OAuthCredential, { kind, url }: TokenAddress): string {
  const { clientId, clientSecret, refreshToken, scopes, clientAuth, parameters } = credential;
  return JSON.stringify([
    kind,
    url.href,
    clientId,
    clientSecret ?? null,
    refreshToken ?? null,
    scopes ?? null,
    clientAuth ?? "basic",
    Object.entries(parameters ?? {}).sort(([one], [other]) => (one < other ? -1 : 1)),
  ]);
}

/** Sends a request through the guard of a source. */
export type Send = (request: OutgoingRequest, options: SendOptions) => Promise<WholeResponse>;

/** What the OAuth library asks of a `fetch`. */
interface OAuthFetchOptions {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: URLSearchParams | string | undefined;
}

/** Bytes of an answer of an authorization server. */
const MOST_BYTES = 1_048_576;

/** Statuses that `Response` takes no body with. */
const EMPTY = new Set([204, 205, 304]);

/** Makes a `fetch` for the OAuth library of what sends requests; answers from another origin than was asked are refused. */
function toOAuthFetch(
  send: Send,
  repeatable: boolean,
): (url: string, options: OAuthFetchOptions) => Promise<Response> {
  return async (address, { method, headers, body }) => {
    const url = new URL(address);
    // Never aborted: a renewal given up midway may lose the refresh token that the server has already replaced.
    const { signal } = new AbortController();
    const answer = await send(
      {
        method,
        origin: url.origin,
        path: url.pathname + url.search,
        headers: withoutUserAgent(headers),
        body: body?.toString(),
      },
      { signal, repeatable },
    );
    if (new URL(answer.url).origin !== url.origin) {
      throw new Error("The authorization server redirected to another origin.");
    }
    if (answer.body.length > MOST_BYTES) {
      throw new Error(`The answer of the authorization server is larger than ${MOST_BYTES} bytes.`);
    }
    return toResponse(answer, method === "POST");
  };
}

function withoutUserAgent(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name !== "user-agent"));
}

/** Only what the library reads: a challenge would hide the error that the body names. */
function toResponse({ status, headers, body }: WholeResponse, isGrant: boolean): Response {
  const type = headers["content-type"];
  const shown = typeof type === "string" ? type : type?.[0];
  return new Response(EMPTY.has(status) ? null : isGrant ? withoutIdToken(body) : new Uint8Array(body), {
    status,
    headers: shown === undefined ? {} : { "content-type": shown },
  });
}

/** An id token is of no use here, and cannot be checked where the issuer is not known. */
function withoutIdToken(body: Uint8Array): Uint8Array<ArrayBuffer> | string {
  try {
    const parsed: unknown = JSON.parse(new TextDecoder().decode(body));
    if (typeof parsed !== "object" || parsed === null || !Object.hasOwn(parsed, "id_token")) {
      return new Uint8Array(body);
    }
    const { id_token: _unused, ...rest } = parsed as Readonly<Record<string, unknown>>;
    return JSON.stringify(rest);
  } catch {
    return new Uint8Array(body);
  }
}
