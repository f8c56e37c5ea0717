import {
  type AuthProvider,
  type FetchLike,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import { CallError } from "../../core/errors/errors.ts";
import { boundBody } from "./bounded-body.ts";
import {
  checkHttpOptions,
  type Given,
  type HttpConnectionOptions,
  resolveGiven,
  toSafeHeaders,
  toServerUrl,
  toToken,
} from "./http-options.ts";
import { createOAuthAuthorizer, isTooNarrow, noteRefusal, type OAuthAuthorizer } from "./oauth-authorizer.ts";
import { toPlainLine } from "./plain-line.ts";
import { TokenRefused } from "./sdk-error.ts";

/** What the transport tells beyond its messages. */
export interface HttpTransportWatcher {
  /** The answer to this request is larger than allowed; without an id it came unasked. */
  onTooLarge(id: number | string | undefined): void;
}

/** A transport over HTTP. */
export interface HttpTransport extends Transport {
  /** Tells the server that the session is over, where there is one. */
  terminateSession(): Promise<void>;
}

/** The shortest and longest wait before a broken stream is taken up again, whatever the server asks for. */
const RESUME_MS = { min: 250, max: 30_000 } as const;
/** How often one request is tried again with a wider token. */
const WIDER_TRIES = 2;

/** Makes a transport over streamable HTTP: bounded bodies, credentials for this server alone, redirects within the origin only. */
export function createHttpTransport(
  options: HttpConnectionOptions,
  maxBytes: number,
  watcher: HttpTransportWatcher,
): HttpTransport {
  const url = toServerUrl(options);
  checkHttpOptions(options);
  return new StreamableHTTPClientTransport(url, {
    ...toAuthorized(options, url, createFetch(options, url, maxBytes, watcher)),
    redirectPolicy: "same-origin",
    reconnectionOptions: {
      initialReconnectionDelay: 500,
      maxReconnectionDelay: RESUME_MS.max,
      reconnectionDelayGrowFactor: 2,
      maxRetries: 3,
    },
    reconnectionScheduler: (reconnect, delay) => {
      const timer = setTimeout(reconnect, Math.min(Math.max(delay, RESUME_MS.min), RESUME_MS.max));
      return () => clearTimeout(timer);
    },
  });
}

function toAuthorized(
  { bearer, auth }: HttpConnectionOptions,
  serverUrl: URL,
  fetch: FetchLike,
): { readonly fetch: FetchLike; readonly authProvider?: AuthProvider } {
  if (auth !== undefined) {
    // What gets a token must not wait for one: it goes by the plain way.
    const authorizer = createOAuthAuthorizer(auth, { serverUrl, fetch });
    return { fetch: withWiderTokens(fetch, serverUrl, authorizer), authProvider: authorizer };
  }
  if (bearer === undefined) return { fetch };
  const onUnauthorized = async ({ response }: { readonly response: Response }) => {
    throw await toRefusal(response);
  };
  return { fetch, authProvider: { token: () => askForToken(bearer), onUnauthorized } };
}

async function askForToken(bearer: Given<string>): Promise<string> {
  const token: unknown = await resolveGiven(bearer);
  try {
    return toToken(token);
  } catch (cause) {
    const what = cause instanceof Error ? cause.message : "bearer gives no token.";
    throw new CallError("UNAUTHENTICATED", what, { cause });
  }
}

/** Characters of what a server says of a token that are kept. */
const REFUSAL_LENGTH = 300;

async function toRefusal(response: Response): Promise<TokenRefused> {
  const challenge = response.headers.get("www-authenticate") ?? "";
  const body = await response.text().catch(() => "");
  return new TokenRefused(toPlainLine(`${challenge} ${body.slice(0, 2_000)}`, REFUSAL_LENGTH));
}

/** Sends a request again that was refused for its scope alone, once there is a token with more. */
function withWiderTokens(fetch: FetchLike, server: URL, authorizer: OAuthAuthorizer): FetchLike {
  return async (to, init) => {
    let response = await fetch(to, init);
    if (!isAt(new URL(String(to)), server)) return response;
    for (let tries = 0; tries < WIDER_TRIES && isTooNarrow(response); tries++) {
      if (!(await authorizer.widen(response))) return response;
      await response.body?.cancel().catch(() => {});
      const headers = new Headers(init?.headers);
      headers.set("authorization", `Bearer ${await authorizer.token()}`);
      response = await fetch(to, { ...init, headers });
      if (response.ok) authorizer.noteServed();
    }
    return response;
  };
}

function isAt(target: URL, server: URL): boolean {
  return target.origin === server.origin && target.pathname === server.pathname;
}

function createFetch(
  options: HttpConnectionOptions,
  server: URL,
  maxBytes: number,
  watcher: HttpTransportWatcher,
): FetchLike {
  const send = options.fetch ?? globalThis.fetch;
  return async (to, init) => {
    const target = new URL(String(to));
    const isServer = isAt(target, server);
    const headers = new Headers(init?.headers);
    if (isServer && options.headers !== undefined) {
      const own = toSafeHeaders(await resolveGiven(options.headers));
      own.forEach((value, name) => {
        headers.set(name, value);
      });
    }
    const response = await send(target, { ...init, headers, redirect: redirectOf(init) });
    const onTooLarge = () => watcher.onTooLarge(isServer ? idOf(init?.body) : undefined);
    const bounded = boundBody(response, maxBytes, onTooLarge);
    if (isServer) noteRefusal(bounded, headers.get("authorization"));
    return bounded;
  };
}

/** What is not read is not sent on: a redirected POST would carry a secret or a message elsewhere. */
function redirectOf(init: RequestInit | undefined): RequestRedirect {
  if (init?.redirect !== undefined) return init.redirect;
  return (init?.method ?? "GET").toUpperCase() === "GET" ? "follow" : "error";
}

/** The id stands first in what this side sends. */
function idOf(body: unknown): number | string | undefined {
  if (typeof body !== "string") return undefined;
  const match = /^\{"jsonrpc":"2\.0","id":(\d{1,15})[,}]/.exec(body.slice(0, 64));
  return match?.[1] === undefined ? undefined : Number(match[1]);
}
