import {
  type AuthProvider,
  type FetchLike,
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
  type StreamableHTTPClientTransportOptions,
  type Transport,
} from "@modelcontextprotocol/client";
import { CallError } from "../../core/errors/errors.ts";
import { boundBody } from "./bounded-body.ts";
import { type HttpAuthorizer, SignInError } from "./http-authorizer.ts";
import {
  checkHttpOptions,
  type Given,
  type HttpConnectionOptions,
  resolveGiven,
  toSafeHeaders,
  toServerUrl,
  toToken,
} from "./http-options.ts";
import { createOAuthAuthorizer, isTooNarrow, noteRefusal } from "./oauth-authorizer.ts";
import { toPlainLine } from "./plain-line.ts";

/** What the transport tells beyond its messages. */
export interface HttpTransportWatcher {
  /** A header or a member of a form is sent that may be a credential. */
  onCredential(name: string, value: string): void;
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
  const signals = new RequestSignals();
  return new LeanHttpTransport(url, signals, {
    ...toAuthorized(options, url, createFetch(options, url, maxBytes, watcher, signals)),
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

/** Names the request that a message is sent with, from the transport to its `fetch`; it goes no further. */
const MARK = "waybill-request";

type SendOptions = Parameters<StreamableHTTPClientTransport["send"]>[1] & object;

/** The signals of requests that are being sent, and what ends those under way. */
class RequestSignals {
  readonly #sending = new Map<string, { readonly signal: AbortSignal; isSent: boolean }>();
  readonly #underWay = new Set<AbortController>();
  #lastMark = 0;

  /** Sends a message with options that give its signal away only once `fetch` has been called. */
  async send(
    options: SendOptions,
    signal: AbortSignal,
    send: (options: SendOptions) => Promise<void>,
  ): Promise<void> {
    const mark = String(++this.#lastMark);
    const sending = { signal, isSent: false };
    this.#sending.set(mark, sending);
    try {
      await send({
        ...options,
        headers: { ...options.headers, [MARK]: mark },
        get requestSignal(): AbortSignal {
          return (sending.isSent ? signal : undefined) as AbortSignal;
        },
      });
    } finally {
      this.#sending.delete(mark);
    }
  }

  /** The signal to fetch with, and what to call when the fetch is over. Takes the mark off the headers. */
  start(headers: Headers, given: AbortSignal | null | undefined): { signal?: AbortSignal; end(): void } {
    const sending = this.#sending.get(headers.get(MARK) ?? "");
    headers.delete(MARK);
    if (sending === undefined) return { ...(given && { signal: given }), end: () => {} };
    sending.isSent = true;
    const { signal } = sending;
    const controller = new AbortController();
    const abort = (): void => controller.abort(signal.reason);
    this.#underWay.add(controller);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
    return {
      signal: controller.signal,
      end: () => {
        this.#underWay.delete(controller);
        signal.removeEventListener("abort", abort);
      },
    };
  }

  /** Ends every request that is under way. */
  abort(): void {
    for (const controller of this.#underWay) controller.abort();
    this.#underWay.clear();
  }
}

/**
 * The SDK's transport, without its `AbortSignal.any` of each request's signal and its own: Node 20 and 22 keep something of every signal
 * that is made so for as long as one of its sources lives, so that a connection would hold a little more after every call.
 */
class LeanHttpTransport extends StreamableHTTPClientTransport {
  readonly #signals: RequestSignals;

  constructor(url: URL, signals: RequestSignals, options: StreamableHTTPClientTransportOptions) {
    super(url, options);
    this.#signals = signals;
  }

  override send(message: JSONRPCMessage | JSONRPCMessage[], options?: SendOptions): Promise<void> {
    const { requestSignal } = options ?? {};
    if (options === undefined || requestSignal === undefined) return super.send(message, options);
    return this.#signals.send(options, requestSignal, (lean) => super.send(message, lean));
  }

  override close(): Promise<void> {
    this.#signals.abort();
    return super.close();
  }
}

function toAuthorized(
  { bearer, auth }: HttpConnectionOptions,
  serverUrl: URL,
  fetch: FetchLike,
): { readonly fetch: FetchLike; readonly authProvider?: AuthProvider } {
  if (auth !== undefined) {
    // What gets a token must not wait for one: it goes by the plain way.
    const authorizer = createOAuthAuthorizer(auth, { serverUrl, fetch });
    const authProvider: AuthProvider = {
      token: authorizer.token,
      onUnauthorized: ({ response }) => authorizer.onUnauthorized(response),
    };
    return { fetch: withWiderTokens(fetch, serverUrl, authorizer), authProvider };
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

async function toRefusal(response: Response): Promise<SignInError> {
  const challenge = response.headers.get("www-authenticate") ?? "";
  const body = await response.text().catch(() => "");
  return new SignInError(
    "token_refused",
    toPlainLine(`${challenge} ${body.slice(0, 2_000)}`, REFUSAL_LENGTH),
  );
}

/** Sends a request again that was refused for its scope alone, once there is a token with more. */
function withWiderTokens(fetch: FetchLike, server: URL, authorizer: HttpAuthorizer): FetchLike {
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
  signals: RequestSignals,
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
        watcher.onCredential(name, value);
      });
    }
    const authorization = headers.get("authorization");
    if (authorization !== null) watcher.onCredential("authorization", authorization);
    if (init?.body instanceof URLSearchParams) {
      init.body.forEach((value, name) => {
        watcher.onCredential(name, value);
      });
    }
    const { signal, end } = signals.start(headers, init?.signal);
    const redirect = redirectOf(init);
    const response = await send(target, { ...init, headers, redirect, ...(signal && { signal }) }).catch(
      (failure) => {
        end();
        throw failure;
      },
    );
    const onTooLarge = () => watcher.onTooLarge(isServer ? idOf(init?.body) : undefined);
    const bounded = boundBody(response, maxBytes, onTooLarge, end);
    if (isServer) noteRefusal(bounded, authorization);
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
