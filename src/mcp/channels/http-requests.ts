import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { Identity } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { createLineFeeds } from "../../http/event-stream.ts";
import { createGuardedFetch } from "../../http/oauth/guarded-fetch.ts";
import {
  createOAuthAuthorizer,
  type HttpAuthorizer,
  isTooNarrow,
  noteRefusal,
  readChallenge,
  SignInError,
} from "../../http/oauth/oauth-authorizer.ts";
import type { Fetch } from "../../http/oauth/oauth-discovery.ts";
import { loginIn } from "../../http/oauth/oauth-store.ts";
import {
  type Given,
  type HttpConnectionOptions,
  type McpCredentialRequest,
  resolveGiven,
  toSafeHeaders,
  toToken,
} from "../client/connection-options.ts";
import { toPlainLine } from "../client/plain-line.ts";
import { LEGACY_REVISIONS } from "../protocol/revisions.ts";
import { ChannelError } from "./channel.ts";

/** What HTTP requests to a server are made with. */
export interface HttpRequestsOptions {
  readonly options: HttpConnectionOptions;
  readonly url: URL;
  /** The most bytes of a body that are read. */
  readonly maxBytes: number;
  /** A credential is sent: the value of a header, or of a member of a form. */
  onCredential(name: string, value: string): void;
}

/** One request to the server. */
export interface ChannelRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly headers: Headers;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** Whose it is, for functions that give credentials. @default nobody's */
  readonly identity?: Identity | undefined;
  /** Whether it carries what no answer is waited for: an answer to the server, or a notification. @default false */
  readonly isAside?: boolean;
}

/** Answers and notifications that a server has not taken yet; with one more, it asks without listening, and none is sent. */
const MOST_UNTAKEN = 256;
/** How often one request is tried again with a wider token. */
const WIDER_TRIES = 2;
/** Redirects of one request that are followed. */
const REDIRECTS = 5;
/** Characters of what a server says of a token that are kept. */
const REFUSAL_LENGTH = 300;

/** Requests to one server: credentials for it alone, tokens renewed and widened, redirects within its origin only. */
export class HttpRequests {
  readonly #given: HttpRequestsOptions;
  readonly #fetch: typeof globalThis.fetch;
  readonly #authorizer: HttpAuthorizer | undefined;
  /** For addresses that the server named. */
  readonly #fetchNamed: Fetch;
  readonly #isLogin: boolean;
  #untaken = 0;

  constructor(given: HttpRequestsOptions) {
    const { options, url } = given;
    this.#given = given;
    this.#fetch = options.fetch ?? globalThis.fetch;
    const { oauth2 } = options.auth ?? {};
    this.#isLogin = oauth2 !== undefined && loginIn(oauth2) !== undefined;
    this.#fetchNamed = options.fetch ?? createGuardedFetch(url, [oauth2?.issuer, oauth2?.identityProvider]);
    // What gets a token must not wait for one: it goes by the plain way.
    const fetch = (to: string | URL, init: RequestInit = {}) => this.#fetchPlain(to, withRevision(init));
    this.#authorizer =
      options.auth?.oauth2 === undefined
        ? undefined
        : createOAuthAuthorizer(options.auth.oauth2, { serverUrl: url, fetch });
  }

  /** Sends a request with the credentials there are; rejects with a `SignInError` or a `ChannelError` where they are not enough. */
  async send(to: URL, request: ChannelRequest): Promise<Response> {
    if (request.isAside !== true) return await this.#send(to, request);
    if (this.#untaken >= MOST_UNTAKEN) {
      const message = "The MCP server does not take what it is answered.";
      throw new CallError("RESOURCE_EXHAUSTED", message, { stack: false });
    }
    this.#untaken += 1;
    try {
      return await this.#send(to, request);
    } finally {
      this.#untaken -= 1;
    }
  }

  async #send(to: URL, request: ChannelRequest): Promise<Response> {
    const authorizer = this.#authorizer;
    let isRenewed = false;
    let isProvenAnew = false;
    for (let widened = 0; ; ) {
      const { response, authorization, isNewNonce } = await this.#sendOnce(to, request);
      if (authorizer !== undefined) noteRefusal(response, authorization);
      // Without a token of a login there is nothing to renew.
      const isOpen = authorization === null && (authorizer === undefined || this.#isLogin);
      if (isNewNonce && !isProvenAnew && wantsNonce(response)) {
        isProvenAnew = true;
      } else if (response.status === 401 && authorizer !== undefined && !isOpen && !isRenewed) {
        await authorizer.onUnauthorized(response);
        isRenewed = true;
      } else if (response.status === 401 && this.#given.options.auth?.bearer !== undefined) {
        throw await toRefusal(response);
      } else if (isOpen && wantsSignIn(response)) {
        await discard(response);
        throw new ChannelError("sign-in");
      } else if (isTooNarrow(response)) {
        const isWorthATry =
          authorizer !== undefined && widened < WIDER_TRIES && (await authorizer.widen(response));
        await discard(response);
        if (!isWorthATry) throw new ChannelError("scope");
        widened += 1;
      } else {
        if (widened > 0 && response.ok) authorizer?.noteServed();
        return response;
      }
      await discard(response);
    }
  }

  async #sendOnce(to: URL, request: ChannelRequest) {
    const { options, onCredential } = this.#given;
    const headers = new Headers(request.headers);
    const { identity } = request;
    const token = await this.#token({ identity });
    const key = token === undefined ? undefined : await this.#authorizer?.dpopKey?.();
    if (token !== undefined) headers.set("authorization", `${key ? "DPoP" : "Bearer"} ${token}`);
    if (options.headers !== undefined) {
      const own = toSafeHeaders(await resolveGiven(options.headers, { identity }));
      own.forEach((value, name) => {
        headers.set(name, value);
        onCredential(name, value);
      });
    }
    const authorization = headers.get("authorization");
    if (authorization !== null) onCredential("authorization", authorization);
    request.signal.throwIfAborted();
    const prove = key && ((url: URL) => key.prove({ method: request.method, url, token }));
    const response = await this.#fetchWithinOrigin(to, { ...request, headers }, prove);
    return { response, authorization, isNewNonce: key?.noteNonce(to, response) ?? false };
  }

  async #token(request: McpCredentialRequest): Promise<string | undefined> {
    const { bearer } = this.#given.options.auth ?? {};
    if (bearer !== undefined) return await askForToken(bearer, request);
    return await this.#authorizer?.token();
  }

  /** A redirect that leads elsewhere, or would change the method, is the answer. */
  async #fetchWithinOrigin(
    to: URL,
    init: RequestInit & { readonly method: string; readonly headers: Headers },
    prove?: (url: URL) => Promise<string>,
  ): Promise<Response> {
    let target = to;
    for (let hops = 0; ; hops++) {
      // A proof is for one request to one address.
      if (prove !== undefined) init.headers.set("dpop", await prove(target));
      const response = await this.#fetch(target, { ...init, redirect: "manual" });
      const location = response.headers.get("location");
      const isRedirect = response.status >= 300 && response.status <= 399 && location !== null;
      const next = isRedirect ? parseUrl(location, target) : undefined;
      const keepsMethod = init.method === "GET" || response.status === 307 || response.status === 308;
      const isWithin = next?.origin === to.origin && next.username === "" && next.password === "";
      if (next === undefined || !keepsMethod || !isWithin || hops >= REDIRECTS) return response;
      await discard(response);
      target = next;
    }
  }

  async #fetchPlain(to: string | URL, init: RequestInit = {}): Promise<Response> {
    const { maxBytes, onCredential } = this.#given;
    const authorization = new Headers(init.headers).get("authorization");
    if (authorization !== null) onCredential("authorization", authorization);
    if (init.body instanceof URLSearchParams) {
      init.body.forEach((value, name) => {
        onCredential(name, value);
      });
    }
    const response = await this.#fetchNamed(new URL(String(to)), init);
    return boundBody(response, maxBytes, () => {});
  }
}

/** Metadata of an authorization is asked for with the revision that it follows. */
function withRevision(init: RequestInit): RequestInit {
  const headers = new Headers(init.headers);
  if ((init.method ?? "GET") === "GET") headers.set("mcp-protocol-version", LEGACY_REVISIONS[0] ?? "");
  return { ...init, headers };
}

/** Bytes of a body nobody wants that are read all the same, so that its connection can be used again. */
const UNWANTED_BYTES = 65_536;

/** Lets go of an answer whose body nobody wants. */
export async function discard(response: Response): Promise<void> {
  const isEndless = mediaTypeOf(response) === "text/event-stream";
  await (isEndless ? response.body?.cancel() : readText(response, UNWANTED_BYTES))?.catch(() => {});
}

/** The media type of an answer, without its parameters. */
export function mediaTypeOf(response: Response): string {
  return (response.headers.get("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

async function askForToken(bearer: Given<string>, request: McpCredentialRequest): Promise<string> {
  const token: unknown = await resolveGiven(bearer, request);
  try {
    return toToken(token);
  } catch (cause) {
    const what = cause instanceof Error ? cause.message : "auth.bearer gives no token.";
    throw new CallError("UNAUTHENTICATED", what, { cause });
  }
}

/** Whether a server takes proofs of the key with the nonce that it gives alone (RFC 9449, 9). */
function wantsNonce(response: Response): boolean {
  return response.status === 401 && readChallenge(response).get("error") === "use_dpop_nonce";
}

/** Whether the server names where a client signs in, as MCP servers with OAuth do (RFC 9728). */
function wantsSignIn({ status, headers }: Response): boolean {
  return status === 401 && /\bresource_metadata\s*=/i.test(headers.get("www-authenticate") ?? "");
}

async function toRefusal(response: Response): Promise<SignInError> {
  const challenge = response.headers.get("www-authenticate") ?? "";
  const body = await readText(response, 1_000_000).catch(() => "");
  const said = toPlainLine(`${challenge} ${body.slice(0, 2_000)}`, REFUSAL_LENGTH);
  return new SignInError("token_refused", said);
}

const LF = 10;
const CR = 13;
const BYTE_ORDER_MARK = 0xfeff;

/** Told once when a body is larger than allowed; the body then ends with an error. */
type OnTooLarge = () => void;

/** What a body that is too large ends with. */
class BodyTooLarge extends Error {
  override readonly name = "BodyTooLarge";
}

/** Hears the events of a stream; neither may throw. */
interface EventListeners {
  onEvent(event: EventSourceMessage): void;
  /** The server says how many milliseconds to wait before the stream is opened again. */
  onRetry?(ms: number): void;
}

/** Reads a body as text; rejects with `TOO_LARGE` where it holds more bytes than that. */
export async function readText(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of bytesOf(response)) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  const text = Buffer.concat(chunks).toString("utf8");
  return text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text;
}

/** Reads an event stream to its end; rejects with `TOO_LARGE` where one event holds more bytes than that. */
export async function readEvents(
  response: Response,
  maxBytes: number,
  listeners: EventListeners,
): Promise<void> {
  const parser = createParser({
    onEvent: (event) => listeners.onEvent(event),
    onRetry: (ms) => listeners.onRetry?.(ms),
  });
  const decoder = new TextDecoder();
  const toLineFeeds = createLineFeeds();
  const counter = countEvent();
  for await (const chunk of bytesOf(response)) {
    if (counter(chunk, maxBytes) > maxBytes) throw tooLarge(maxBytes);
    parser.feed(toLineFeeds(decoder.decode(chunk, { stream: true })));
  }
}

function bytesOf({ body }: Response): AsyncIterable<Uint8Array> | readonly Uint8Array[] {
  return (body as AsyncIterable<Uint8Array> | null) ?? [];
}

function tooLarge(maxBytes: number): CallError {
  return new CallError("TOO_LARGE", `The answer of the MCP server is larger than ${maxBytes} bytes.`);
}

/** Copies a response whose body may hold so many bytes, or, for an event stream, so many in each event. */
export function boundBody(response: Response, maxBytes: number, onTooLarge: OnTooLarge): Response {
  if (response.body === null) return response;
  const isEvents = /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "");
  const counter = isEvents ? countEvent() : countAll();
  const reader: ReadableStreamDefaultReader<Uint8Array> = response.body.getReader();
  const bounded = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          controller.close();
        } else if (counter(value, maxBytes) <= maxBytes) {
          controller.enqueue(value);
        } else {
          onTooLarge();
          const failure = new BodyTooLarge(`The answer is larger than ${maxBytes} bytes.`);
          controller.error(failure);
          reader.cancel(failure).catch(() => {});
        }
      } catch (failure) {
        controller.error(failure);
      }
    },
    cancel(reason) {
      return reader.cancel(reason);
    },
  });
  const { status, statusText, headers, url } = response;
  const copy = new Response(bounded, { status, statusText, headers });
  // A copy has no address of its own, and redirects are told by it.
  Object.defineProperty(copy, "url", { value: url });
  return copy;
}

/** Gives the largest number of bytes that belong together so far. */
type Counter = (chunk: Uint8Array, maxBytes: number) => number;

function countAll(): Counter {
  let bytes = 0;
  return (chunk) => {
    bytes += chunk.length;
    return bytes;
  };
}

/** An empty line ends an event: two line ends with nothing between, a CR and LF counting as one. */
function countEvent(): Counter {
  let bytes = 0;
  let isLineEmpty = true;
  let wasCr = false;
  return (chunk, maxBytes) => {
    let largest = 0;
    let from = 0;
    while (from < chunk.length) {
      const end = nextLineEnd(chunk, from);
      if (end > from) isLineEmpty = false;
      bytes += end - from;
      largest = Math.max(largest, bytes);
      if (end === chunk.length || largest > maxBytes) {
        if (end > from) wasCr = false;
        break;
      }
      const isSecondHalf = chunk[end] === LF && wasCr && end === from;
      wasCr = chunk[end] === CR;
      if (!isSecondHalf) {
        bytes = isLineEmpty ? 0 : bytes + 1;
        isLineEmpty = true;
      }
      from = end + 1;
    }
    return Math.max(largest, bytes);
  };
}

function nextLineEnd(chunk: Uint8Array, from: number): number {
  const lf = chunk.indexOf(LF, from);
  const end = lf < 0 ? chunk.length : lf;
  const cr = chunk.subarray(from, end).indexOf(CR);
  return cr < 0 ? end : from + cr;
}
