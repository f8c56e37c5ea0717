import { HeldIdentity, type Identity } from "../../core/access/identity.ts";
import type { ErrorCode } from "../../core/errors/error-codes.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { type BearerCheck, createBearerCheck } from "../../http/bearer.ts";
import type { AnswerHeaders, HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import { type CorsRules, createHostGuard, type HostGuard } from "../../http/host-guard.ts";
import type { Refuse, RequestHead } from "../../http/refusal.ts";
import { type ApiKeyCheck, createApiKeyCheck } from "./api-keys.ts";
import { isDocsPage } from "./docs-page.ts";
import type { HttpHandlerOptions } from "./http-handler-options.ts";
import { problemAnswer } from "./problem-answer.ts";

const CORS: CorsRules = {
  methods: ["GET", "HEAD", "POST"],
  requestHeaders: [
    "accept",
    "authorization",
    "content-type",
    "idempotency-key",
    "if-none-match",
    "last-event-id",
    "request-timeout",
    "traceparent",
    "tracestate",
    "waybill-timeout-ms",
    "x-request-id",
  ],
  exposedHeaders: [
    "etag",
    "idempotency-replayed",
    "link",
    "retry-after",
    "traceparent",
    "waybill-facts",
    "waybill-violations",
    "waybill-operation",
    "waybill-source",
    "www-authenticate",
    "x-request-id",
  ],
};

/** What a refusal is called in its problem, by its status. */
export const REFUSAL_CODES: Readonly<Record<number, ErrorCode>> = {
  400: "VALIDATION_ERROR",
  401: "UNAUTHENTICATED",
  403: "ACCESS_DENIED",
  404: "NOT_FOUND",
  405: "NOT_IMPLEMENTED",
  503: "UNAVAILABLE",
};

/** Who is asking, or why they are not heard. */
export type Admitted = { readonly identity: Identity | undefined } | { readonly refusal: HttpAnswer };

/** Decides which requests are heard, and as whose. */
export class Admission {
  readonly #guard: HostGuard;
  readonly #bearer: BearerCheck | undefined;
  readonly #apiKeys: ApiKeyCheck | undefined;
  readonly #authenticate: HttpHandlerOptions["authenticate"];
  readonly #hasOrigins: boolean;
  readonly #refused = new WeakMap<Response, Parameters<Refuse>>();
  /** Whether every caller is asked who they are. */
  readonly decides: boolean;
  /** How clients are told to authenticate. */
  readonly challenge: string;

  constructor(options: HttpHandlerOptions) {
    const { auth, authenticate, origins = [] } = options;
    const isGiven = auth?.bearer !== undefined || auth?.apiKeys !== undefined;
    if (isGiven && authenticate !== undefined) {
      throw new TypeError("Give auth or authenticate, not both: it would not be clear which one decides.");
    }
    if (auth !== undefined && !isGiven) {
      throw new TypeError("auth must say which bearer tokens or apiKeys are believed.");
    }
    const refuse: Refuse = (...refusal) => {
      const response = new Response(null, { status: refusal[0] });
      this.#refused.set(response, refusal);
      return response;
    };
    this.#apiKeys = auth?.apiKeys && createApiKeyCheck(auth.apiKeys);
    this.#bearer = auth?.bearer && createBearerCheck(auth.bearer, refuse, "auth.bearer");
    const own = this.#apiKeys === undefined ? [] : [this.#apiKeys.header];
    const rules = { ...CORS, requestHeaders: [...CORS.requestHeaders, ...own] };
    this.#guard = createHostGuard(options, rules, refuse);
    this.#authenticate = authenticate;
    this.#hasOrigins = origins.length > 0;
    this.decides = isGiven || authenticate !== undefined;
    this.challenge = this.#bearer === undefined && this.#apiKeys !== undefined ? "ApiKey" : "Bearer";
  }

  /** Refuses a request for where it comes from or goes to, or lets it pass by returning nothing. */
  check(request: HttpRequest, requestId: string): HttpAnswer | undefined {
    const refusal = this.#guard.check(new Head(request), isDocsPage(request.path));
    return refusal && this.#toAnswer(refusal, requestId);
  }

  /** Answers what browsers ask in advance; nothing where this is no such question, or not for this origin. */
  preflight(request: HttpRequest): HttpAnswer | undefined {
    const isAsked = this.#hasOrigins && request.header("access-control-request-method") !== undefined;
    const response = isAsked ? this.#guard.preflight(new Head(request)) : undefined;
    return response && { status: 204, headers: Object.fromEntries(response.headers), body: undefined };
  }

  /** What a page of an allowed origin needs in order to read an answer; nothing for anybody else. */
  corsHeaders(request: HttpRequest): AnswerHeaders | undefined {
    if (!this.#hasOrigins || request.header("origin") === undefined) return undefined;
    return Object.fromEntries(this.#guard.mark(new Head(request), new Response(null)).headers);
  }

  /** Answers a request for what clients need to know to get a token; nothing where it is for something else. */
  async describe(request: HttpRequest, requestId: string): Promise<HttpAnswer | undefined> {
    if (this.#bearer === undefined || !request.path.startsWith("/.well-known/")) return undefined;
    const response = this.#bearer.describe(new Head(request));
    if (response === undefined) return undefined;
    if (this.#refused.has(response)) return this.#toAnswer(response, requestId);
    const headers = Object.fromEntries(response.headers);
    return { status: response.status, headers, body: await response.text() };
  }

  async identify(request: HttpRequest, requestId: string): Promise<Admitted> {
    if (this.#authenticate !== undefined) return this.#askHost(this.#authenticate, request, requestId);
    const key = this.#apiKeys && request.header(this.#apiKeys.header);
    if (key !== undefined) {
      const identity = await this.#apiKeys?.find(key);
      if (identity !== undefined) return { identity };
      return { refusal: this.#unauthenticated("The API key is not valid.", requestId) };
    }
    if (this.#bearer === undefined) {
      const message = `An API key is needed, in the header ${this.#apiKeys?.header}.`;
      return { refusal: this.#unauthenticated(message, requestId) };
    }
    const found = await this.#bearer.check(new Head(request));
    return "refusal" in found ? { refusal: this.#toAnswer(found.refusal, requestId) } : found;
  }

  async #askHost(
    authenticate: NonNullable<HttpHandlerOptions["authenticate"]>,
    request: HttpRequest,
    requestId: string,
  ): Promise<Admitted> {
    try {
      const identity = await authenticate(request.toRequest());
      return {
        identity: identity === undefined || identity === null ? undefined : HeldIdentity.of(identity),
      };
    } catch (thrown) {
      if (!isCallError(thrown)) throw thrown;
      const headers = thrown.httpStatus === 401 ? { "www-authenticate": this.challenge } : {};
      return { refusal: problemAnswer(thrown, requestId, headers) };
    }
  }

  #unauthenticated(message: string, requestId: string): HttpAnswer {
    const error = new CallError("UNAUTHENTICATED", message, { stack: false });
    return problemAnswer(error, requestId, { "www-authenticate": this.challenge });
  }

  #toAnswer(response: Response, requestId: string): HttpAnswer {
    const [status, message, options] = this.#refused.get(response) ?? [response.status, ""];
    const error = new CallError(REFUSAL_CODES[status] ?? "UNKNOWN_ERROR", message, {
      httpStatus: status,
      stack: false,
    });
    return problemAnswer(error, requestId, { ...options?.headers });
  }
}

/** What the guard and the token check see of a request. */
class Head implements RequestHead {
  readonly method: string;
  readonly headers: RequestHead["headers"];
  readonly #request: HttpRequest;

  constructor(request: HttpRequest) {
    this.method = request.method;
    this.headers = { get: (name) => request.header(name) ?? null };
    this.#request = request;
  }

  get url(): string {
    return this.#request.origin + this.#request.path;
  }
}
