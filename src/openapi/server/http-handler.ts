import { ownerOf } from "../../core/access/identity.ts";
import { Linked, LinkedSet } from "../../core/collections/linked-set.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { isRequestId, randomHex, randomId } from "../../core/execution/call-context.ts";
import type { IdempotencyStore } from "../../core/idempotency/idempotency-store.ts";
import { CLOSE_TIMEOUT_MS, type CloseOptions } from "../../core/options/shared-options.ts";
import type { Executor } from "../../core/registry/executor.ts";
import type { AnswerHeaders, AuthenticatedRequest, HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import { FetchRequest, toResponse } from "../../http/fetch-exchange.ts";
import { NO_SNIFFING } from "../../http/listen.ts";
import { Admission } from "./admission.ts";
import { ApiRoutes } from "./api-routes.ts";
import { checkExecutor, checkHandlerOptions, type HttpHandlerOptions } from "./http-handler-options.ts";
import { createWarn, problemAnswer, refuseMethod, requestError, type Warn } from "./problem-answer.ts";
import type { SharedStreams } from "./shared-streams.ts";

/** An HTTP API as a function from request to response; it mounts into anything that speaks `Request` and `Response`. */
export interface HttpHandler {
  fetch(request: Request): Promise<Response>;
  /** The same for servers that have no `Request`; it never rejects. */
  handle(request: HttpRequest): Promise<HttpAnswer>;
  /** Ends subscriptions of callers whom `isCurrent` of the options does not know any more; they are told so. */
  recheck(): void;
  /** Refuses what is new, ends subscriptions, waits for calls that run and ends them after `timeoutMs`. */
  close(options?: CloseOptions): Promise<void>;
}

const METHODS = new Set(["GET", "HEAD", "POST", "OPTIONS", "PUT", "PATCH", "DELETE"]);
const ADDRESS_CHARACTERS = 65_536;
/** How long calls that were ended may take to say so, in milliseconds. */
const LAST_MS = 100;

/** Creates an HTTP API of operations; put it into any server, or use `serveHttp`. */
export function createHttpHandler(executor: Executor, options: HttpHandlerOptions = {}): HttpHandler {
  return createSharedHttpHandler(executor, options, {});
}

/** What replicas of a server share. */
export interface SharedHttp {
  /** Where idempotency keys are kept. @default in this process */
  readonly keys?: IdempotencyStore | undefined;
  /** @default subscriptions are of this process alone */
  readonly streams?: SharedStreams | undefined;
}

/** The same as one of several replicas. */
export function createSharedHttpHandler(
  executor: Executor,
  options: HttpHandlerOptions,
  shared: SharedHttp,
): HttpHandler {
  checkExecutor(executor, "createHttpHandler");
  checkHandlerOptions(options);
  return new Handler(executor, options, shared);
}

/** A request as it came, before it is known who sent it. */
interface ArrivedRequest {
  readonly request: HttpRequest;
  readonly requestId: string;
  readonly trace: TraceContext;
}

/** A request that is being answered. */
class RunningRequest extends Linked {
  readonly request: HttpRequest;

  constructor(request: HttpRequest) {
    super();
    this.request = request;
  }
}

class Handler implements HttpHandler {
  readonly #admission: Admission;
  readonly #routes: ApiRoutes;
  readonly #warn: Warn;
  readonly #running = new LinkedSet<RunningRequest>();
  #onIdle: () => void = () => {};
  #closing: Promise<void> | undefined;

  constructor(executor: Executor, options: HttpHandlerOptions, { keys, streams }: SharedHttp) {
    this.#admission = new Admission(options);
    this.#warn = createWarn(options.onWarning);
    const own = { admission: this.#admission, warn: this.#warn };
    this.#routes = new ApiRoutes(executor, options, { ...own, keys, streams });
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
    const arrived: ArrivedRequest = { request, requestId, trace };
    let answer: HttpAnswer;
    const running = new RunningRequest(request);
    this.#running.add(running);
    try {
      answer = await this.#admit(arrived);
    } catch (thrown) {
      answer = problemAnswer(this.#toError(thrown), requestId);
    } finally {
      this.#running.delete(running);
      if (this.#running.size === 0) this.#onIdle();
    }
    return this.#finish(arrived, answer);
  };

  readonly recheck = (): void => this.#routes.streams.recheck();

  readonly close = ({ timeoutMs = CLOSE_TIMEOUT_MS }: CloseOptions = {}): Promise<void> => {
    this.#closing ??= this.#close(timeoutMs);
    return this.#closing;
  };

  /** Waits for nothing by itself: most requests need not be waited for before their call. */
  #admit(arrived: ArrivedRequest): Promise<HttpAnswer> | HttpAnswer {
    const { request, requestId, trace } = arrived;
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
    if (this.#admission.decides) return this.#identify(arrived);
    return this.#answer({ request, identity: undefined, requestId, ...trace });
  }

  #answer(caller: AuthenticatedRequest): Promise<HttpAnswer> | HttpAnswer {
    const { request, requestId } = caller;
    if (METHODS.has(request.method)) return this.#routes.answer(caller);
    return refuseMethod({ allow: "GET, HEAD, POST, OPTIONS" }, requestId);
  }

  async #identify({ request, requestId, trace }: ArrivedRequest): Promise<HttpAnswer> {
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

  /** Probes come from the operator of the server, under any name, and learn one word. */
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
    { request, requestId, trace }: ArrivedRequest,
    { status, headers: given, body, heldBy }: HttpAnswer,
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
    return heldBy === undefined ? { status, headers, body } : { status, headers, body, heldBy };
  }

  async #close(timeoutMs: number): Promise<void> {
    const error = requestError("UNAVAILABLE", "The server closed before the call was done; try again later.");
    this.#routes.streams.end(error);
    await this.#idle(timeoutMs);
    for (const { request } of this.#running.toArray()) request.abort(error);
    this.#routes.runner.abort(error);
    await this.#idle(LAST_MS);
    // Readers of streams get the last event first.
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

/** Where a request stands in a trace (W3C Trace Context). */
export interface TraceContext {
  /** With a span of our own; its trace is the client's where that said one, else new. */
  readonly traceparent: string;
  /** As it came; nothing without a trace it belongs to. */
  readonly tracestate: string | undefined;
}

const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})$/;
/** Printable ASCII, and no longer than the standard asks everybody to pass on. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** Takes up the trace of a request, or begins one. */
export function readTrace(traceparent: string | undefined, tracestate: string | undefined): TraceContext {
  const [, trace, flags] = (traceparent !== undefined && TRACEPARENT.exec(traceparent)) || [];
  if (trace === undefined) {
    return { traceparent: `00-${traceDigits(32)}-${traceDigits(16)}-00`, tracestate: undefined };
  }
  const state = tracestate !== undefined && TRACESTATE.test(tracestate) ? tracestate : undefined;
  return { traceparent: `00-${trace}-${traceDigits(16)}-${flags}`, tracestate: state };
}

/** Digits of which at least one is not zero, as ids need. */
function traceDigits(digits: 16 | 32): string {
  for (;;) {
    const hex = randomHex(digits);
    if (/[1-9a-f]/.test(hex)) return hex;
  }
}
