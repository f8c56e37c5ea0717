import type { Identity } from "../../core/access/identity.ts";
import type { ErrorCode } from "../../core/errors/error-codes.ts";
import { CallError } from "../../core/errors/errors.ts";
import { createAuthentication, type HttpAuthentication, type StepUp } from "../../http/authentication.ts";
import type { AnswerHeaders, HttpAnswer, HttpRequest, Refusal } from "../../http/exchange.ts";
import { type CorsRules, createHostGuard, type HostGuard } from "../../http/host-guard.ts";
import type { HttpHandlerOptions } from "./http-handler-options.ts";
import { problemAnswer } from "./problem-answer.ts";

/** Where the page for people is, which a link may lead to. */
const DOCS_PAGE: ReadonlySet<string> = new Set(["/docs", "/docs/"]);

const CORS: CorsRules = {
  methods: ["GET", "HEAD", "POST", "DELETE"],
  requestHeaders: [
    "accept",
    "authorization",
    "content-type",
    "dpop",
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
    "waybill-findings",
    "waybill-operation",
    "waybill-source",
    "www-authenticate",
    "dpop-nonce",
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
  readonly #authentication: HttpAuthentication;
  readonly #hasOrigins: boolean;
  readonly #stepUp: StepUp | undefined;
  /** Whether every caller is asked who they are. */
  readonly decides: boolean;
  /** How clients are told to authenticate. */
  readonly challenge: string;

  constructor(options: HttpHandlerOptions) {
    const { origins = [] } = options;
    this.#authentication = createAuthentication(options);
    const { keyHeader, decides } = this.#authentication;
    const own = keyHeader === undefined ? [] : [keyHeader];
    this.#guard = createHostGuard(options, { ...CORS, requestHeaders: [...CORS.requestHeaders, ...own] });
    this.#hasOrigins = origins.length > 0;
    this.#stepUp = options.stepUp;
    this.decides = decides;
    this.challenge = options.auth?.bearer === undefined && keyHeader !== undefined ? "ApiKey" : "Bearer";
  }

  /** Refuses a request for where it comes from or goes to, or lets it pass by returning nothing. */
  check(request: HttpRequest, requestId: string): HttpAnswer | undefined {
    const refusal = this.#guard.check(request, DOCS_PAGE.has(request.path));
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
    const described = this.#authentication.describe(request);
    if (described === undefined) return undefined;
    return "refusal" in described ? refusalAnswer(described.refusal, requestId) : described.answer;
  }

  /** Writes the `WWW-Authenticate` of a 403 for lack of scopes. */
  get stepUp(): StepUp | undefined {
    return this.#authentication.stepUp ?? this.#stepUp;
  }

  async identify(request: HttpRequest, requestId: string): Promise<Admitted> {
    const found = await this.#authentication.identify(request);
    if ("identity" in found) return found;
    const { refusal, error = refusalError(refusal) } = found;
    return { refusal: problemAnswer(error, requestId, { ...refusal.headers }) };
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
