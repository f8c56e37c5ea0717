import { HeldIdentity, type Identity } from "../../core/access/identity.ts";
import type { ErrorCode } from "../../core/errors/error-codes.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { type BearerCheck, createBearerCheck } from "../../http/bearer.ts";
import type { AnswerHeaders, HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import { type CorsRules, createHostGuard, type HostGuard } from "../../http/host-guard.ts";
import type { Refusal } from "../../http/refusal.ts";
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
const REFUSAL_CODES: Readonly<Record<number, ErrorCode>> = {
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
    this.#apiKeys = auth?.apiKeys && createApiKeyCheck(auth.apiKeys);
    this.#bearer = auth?.bearer && createBearerCheck(auth.bearer, "auth.bearer");
    const own = this.#apiKeys === undefined ? [] : [this.#apiKeys.header];
    const rules = { ...CORS, requestHeaders: [...CORS.requestHeaders, ...own] };
    this.#guard = createHostGuard(options, rules);
    this.#authenticate = authenticate;
    this.#hasOrigins = origins.length > 0;
    this.decides = isGiven || authenticate !== undefined;
    this.challenge = this.#bearer === undefined && this.#apiKeys !== undefined ? "ApiKey" : "Bearer";
  }

  /** Refuses a request for where it comes from or goes to, or lets it pass by returning nothing. */
  check(request: HttpRequest, requestId: string): HttpAnswer | undefined {
    const refusal = this.#guard.check(request, isDocsPage(request.path));
    return refusal && refusalAnswer(refusal, requestId);
  }

  /** Answers what browsers ask in advance; nothing where this is no such question, or not for this origin. */
  preflight(request: HttpRequest): HttpAnswer | undefined {
    const isAsked = this.#hasOrigins && request.header("access-control-request-method") !== undefined;
    return isAsked ? this.#guard.preflight(request) : undefined;
  }

  /** What a page of an allowed origin needs in order to read an answer; nothing for anybody else. */
  corsHeaders(request: HttpRequest): AnswerHeaders | undefined {
    return this.#hasOrigins ? this.#guard.corsHeaders(request) : undefined;
  }

  /** Answers a request for what clients need to know to get a token; nothing where it is for something else. */
  describe(request: HttpRequest, requestId: string): HttpAnswer | undefined {
    const described = this.#bearer?.describe(request);
    if (described === undefined) return undefined;
    return "refusal" in described ? refusalAnswer(described.refusal, requestId) : described.answer;
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
    const found = await this.#bearer.check(request);
    return "refusal" in found ? { refusal: refusalAnswer(found.refusal, requestId) } : found;
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
}

/** Writes why a request is not heard as a problem. */
export function refusalAnswer(refusal: Refusal, requestId: string): HttpAnswer {
  return problemAnswer(refusalError(refusal), requestId, { ...refusal.headers });
}

/** The error that says why a request is not heard. */
export function refusalError({ status, message }: Refusal): CallError {
  const code = REFUSAL_CODES[status] ?? "UNKNOWN_ERROR";
  return new CallError(code, message, { httpStatus: status, stack: false });
}
