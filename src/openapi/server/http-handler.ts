import { ownerOf } from "../../core/access/identity.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { isRequestId, randomId } from "../../core/execution/request-id.ts";
import type { Executor } from "../../core/registry/executor.ts";
import type { AnswerHeaders, AuthenticatedRequest, HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import { FetchRequest, toResponse } from "../../http/fetch-exchange.ts";
import { NO_SNIFFING } from "../../http/listen.ts";
import { Admission } from "./admission.ts";
import { ApiRoutes } from "./api-routes.ts";
import { checkExecutor } from "./check-document-options.ts";
import { checkHandlerOptions } from "./check-handler-options.ts";
import type { HttpHandlerOptions } from "./http-handler-options.ts";
import { problemAnswer, refuseMethod, requestError } from "./problem-answer.ts";
import { readTrace, type TraceContext } from "./trace-context.ts";
import { createWarn, type Warn } from "./warnings.ts";

/** How long what still runs is waited for. */
export interface HttpCloseOptions {
  /** @default 10_000 */
  readonly timeoutMs?: number | undefined;
}

/** An HTTP API as a function from request to response; it mounts into anything that speaks `Request` and `Response`. */
export interface HttpHandler {
  fetch(request: Request): Promise<Response>;
  /** The same for servers that have no `Request`; it never rejects. */
  handle(request: HttpRequest): Promise<HttpAnswer>;
  /** Ends subscriptions of callers whom `isCurrent` of the options does not know any more; they are told so. */
  recheck(): void;
  /** Refuses what is new, ends subscriptions, waits for calls that run and ends them after `timeoutMs`. */
  close(options?: HttpCloseOptions): Promise<void>;
}

const METHODS = new Set(["GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"]);
const ADDRESS_CHARACTERS = 65_536;
/** How long calls that were ended may take to say so, in milliseconds. */
const LAST_MS = 100;

/** Creates an HTTP API of operations; put it into any server, or use `serveHttp`. */
export function createHttpHandler(executor: Executor, options: HttpHandlerOptions = {}): HttpHandler {
  checkExecutor(executor, "createHttpHandler");
  checkHandlerOptions(options);
  return new Handler(executor, options);
}

class Handler implements HttpHandler {
  readonly #admission: Admission;
  readonly #routes: ApiRoutes;
  readonly #warn: Warn;
  readonly #running = new Set<HttpRequest>();
  #onIdle: () => void = () => {};
  #closing: Promise<void> | undefined;

  constructor(executor: Executor, options: HttpHandlerOptions) {
    this.#admission = new Admission(options);
    this.#warn = createWarn(options.onWarning);
    this.#routes = new ApiRoutes(executor, options, { admission: this.#admission, warn: this.#warn });
  }

  /** Like all its methods, one that can be passed on by itself. */
  readonly fetch = async (request: Request): Promise<Response> => {
    const exchange = new FetchRequest(request);
    return toResponse(await this.handle(exchange), exchange.method);
  };

  readonly handle = async (request: HttpRequest): Promise<HttpAnswer> => {
    const given = request.header("x-request-id");
    const requestId = isRequestId(given) ? given : randomId();
    const trace = readTrace(request.header("traceparent"), request.header("tracestate"));
    let answer: HttpAnswer;
    this.#running.add(request);
    try {
      answer = await this.#admit(request, requestId, trace);
    } catch (thrown) {
      answer = problemAnswer(this.#toError(thrown), requestId);
    } finally {
      this.#running.delete(request);
      if (this.#running.size === 0) this.#onIdle();
    }
    return this.#finish(request, answer, requestId, trace);
  };

  readonly recheck = (): void => this.#routes.recheck();

  readonly close = ({ timeoutMs = 10_000 }: HttpCloseOptions = {}): Promise<void> => {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  };

  /** Waits for nothing by itself: most requests need not be waited for before their call. */
  #admit(request: HttpRequest, requestId: string, trace: TraceContext): Promise<HttpAnswer> | HttpAnswer {
    const { path, query, method } = request;
    if (path === "/health" || path === "/ready") return this.#answerProbe(request);
    if (this.#closing !== undefined) return refuseClosing(requestId);
    const refusal = this.#admission.check(request, requestId);
    if (refusal !== undefined) return refusal;
    if (!path.startsWith("/")) {
      throw requestError("VALIDATION_ERROR", "The target of the request must be a path.");
    }
    if (path.length + query.length > ADDRESS_CHARACTERS) {
      throw requestError("TOO_LARGE", "The address of the request is too long.", { httpStatus: 414 });
    }
    const preflight = method === "OPTIONS" ? this.#admission.preflight(request) : undefined;
    if (preflight !== undefined) return preflight;
    if (this.#admission.decides) return this.#identify(request, requestId, trace);
    return this.#answer({ request, identity: undefined, requestId, ...trace });
  }

  #answer(caller: AuthenticatedRequest): Promise<HttpAnswer> | HttpAnswer {
    const { request, requestId } = caller;
    if (METHODS.has(request.method)) return this.#routes.answer(caller);
    return refuseMethod({ allow: "GET, HEAD, POST, OPTIONS" }, requestId);
  }

  async #identify(request: HttpRequest, requestId: string, trace: TraceContext): Promise<HttpAnswer> {
    const described = this.#admission.describe(request, requestId);
    if (described !== undefined) return described;
    const admitted = await this.#admission.identify(request, requestId);
    if ("refusal" in admitted) {
      const isRead = request.method === "GET" || request.method === "HEAD";
      const stranger = { request, identity: undefined, requestId, ...trace };
      return (isRead ? await this.#routes.answerDocs(stranger) : undefined) ?? admitted.refusal;
    }
    if (this.#closing !== undefined) return refuseClosing(requestId);
    request.owner = ownerOf(admitted.identity);
    return this.#answer({ request, identity: admitted.identity, requestId, ...trace });
  }

  /** Probes come from whoever runs the server, under any name, and learn one word. */
  #answerProbe({ path, method }: HttpRequest): HttpAnswer {
    if (method !== "GET" && method !== "HEAD") return refuseMethod({ allow: "GET, HEAD" }, randomId());
    const isUp = path === "/health" || this.#closing === undefined;
    const headers = { "content-type": "application/json", "cache-control": "no-store" };
    return { status: isUp ? 200 : 503, headers, body: isUp ? '{"status":"ok"}' : '{"status":"closing"}' };
  }

  #toError(thrown: unknown): CallError {
    if (isCallError(thrown)) return thrown;
    this.#warn("An HTTP request failed unexpectedly.", thrown);
    return new CallError("UNKNOWN_ERROR", "The server failed unexpectedly.", { stack: false });
  }

  /** Adds what every answer says. */
  #finish(
    request: HttpRequest,
    { status, headers: given, body }: HttpAnswer,
    requestId: string,
    trace: TraceContext,
  ): HttpAnswer {
    const headers = given as AnswerHeaders;
    headers["x-request-id"] = requestId;
    headers[NO_SNIFFING[0]] = NO_SNIFFING[1];
    headers["traceparent"] = trace.traceparent;
    if (trace.tracestate !== undefined) headers["tracestate"] = trace.tracestate;
    if (status === 401) headers["www-authenticate"] ??= this.#admission.challenge;
    const cors = this.#admission.corsHeaders(request);
    if (cors === undefined) headers["vary"] ??= "accept";
    else Object.assign(headers, cors, { vary: "accept, origin" });
    return { status, headers, body };
  }

  async #close(timeoutMs: number): Promise<void> {
    const error = requestError("UNAVAILABLE", "The server closed before the call was done; try again later.");
    this.#routes.endStreams(error);
    await this.#idle(timeoutMs);
    for (const request of this.#running) request.abort(error);
    this.#routes.abortCalls(error);
    await this.#idle(LAST_MS);
    // Whoever reads a stream gets its last event first.
    await new Promise((resolve) => setTimeout(resolve));
    this.#routes.close();
  }

  #idle(ms: number): Promise<void> {
    if (this.#running.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function refuseClosing(requestId: string): HttpAnswer {
  const error = requestError("UNAVAILABLE", "The server is closing; try another, or later.");
  return problemAnswer(error, requestId, { connection: "close" });
}
