import { CallError } from "../../core/errors/errors.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { type HttpAuthorizer, SignInError } from "../client/http-authorizer.ts";
import {
  type Given,
  type HttpConnectionOptions,
  resolveGiven,
  toSafeHeaders,
  toToken,
} from "../client/http-options.ts";
import { createOAuthAuthorizer, isTooNarrow, noteRefusal } from "../client/oauth-authorizer.ts";
import { toPlainLine } from "../client/plain-line.ts";
import { boundBody, readText } from "./bounded-body.ts";
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
export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE";
  readonly headers: Headers;
  readonly body?: string;
  readonly signal: AbortSignal;
}

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

  constructor(given: HttpRequestsOptions) {
    const { options, url } = given;
    this.#given = given;
    this.#fetch = options.fetch ?? globalThis.fetch;
    // What gets a token must not wait for one: it goes by the plain way.
    const fetch = (to: string | URL, init?: RequestInit) => this.#fetchPlain(to, init);
    this.#authorizer =
      options.auth === undefined ? undefined : createOAuthAuthorizer(options.auth, { serverUrl: url, fetch });
  }

  /** Sends a request with the credentials there are; rejects with a `SignInError` or a `ChannelError` where they are not enough. */
  async send(to: URL, request: HttpRequest): Promise<Response> {
    const authorizer = this.#authorizer;
    let isRenewed = false;
    for (let widened = 0; ; ) {
      const { response, authorization } = await this.#sendOnce(to, request);
      if (authorizer !== undefined) noteRefusal(response, authorization);
      if (response.status === 401 && authorizer !== undefined && !isRenewed) {
        await authorizer.onUnauthorized(response);
        isRenewed = true;
      } else if (response.status === 401 && this.#given.options.bearer !== undefined) {
        throw await toRefusal(response);
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

  async #sendOnce(to: URL, request: HttpRequest) {
    const { options, onCredential } = this.#given;
    const headers = new Headers(request.headers);
    const token = await this.#token();
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    if (options.headers !== undefined) {
      const own = toSafeHeaders(await resolveGiven(options.headers));
      own.forEach((value, name) => {
        headers.set(name, value);
        onCredential(name, value);
      });
    }
    const authorization = headers.get("authorization");
    if (authorization !== null) onCredential("authorization", authorization);
    request.signal.throwIfAborted();
    return { response: await this.#fetchWithinOrigin(to, { ...request, headers }), authorization };
  }

  async #token(): Promise<string | undefined> {
    const { bearer } = this.#given.options;
    if (bearer !== undefined) return await askForToken(bearer);
    return await this.#authorizer?.token();
  }

  /** A redirect that leads elsewhere, or would change the method, is the answer. */
  async #fetchWithinOrigin(to: URL, init: RequestInit & { readonly method: string }): Promise<Response> {
    let target = to;
    for (let hops = 0; ; hops++) {
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
    // A redirected POST would carry a secret elsewhere.
    const isRead = (init.method ?? "GET").toUpperCase() === "GET";
    const redirect = init.redirect ?? (isRead ? "follow" : "error");
    const response = await this.#fetch(new URL(String(to)), { ...init, redirect });
    return boundBody(response, maxBytes, () => {});
  }
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

async function askForToken(bearer: Given<string>): Promise<string> {
  const token: unknown = await resolveGiven(bearer);
  try {
    return toToken(token);
  } catch (cause) {
    const what = cause instanceof Error ? cause.message : "bearer gives no token.";
    throw new CallError("UNAUTHENTICATED", what, { cause });
  }
}

async function toRefusal(response: Response): Promise<SignInError> {
  const challenge = response.headers.get("www-authenticate") ?? "";
  const body = await readText(response, 1_000_000).catch(() => "");
  const said = toPlainLine(`${challenge} ${body.slice(0, 2_000)}`, REFUSAL_LENGTH);
  return new SignInError("token_refused", said);
}
