import type { IncomingMessage } from "node:http";
import { type Identity, ownerOf } from "../../core/access/identity.ts";
import { isCallError } from "../../core/errors/errors.ts";
import type { Described } from "../../http/bearer.ts";
import type { HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import { isExpired } from "../../http/expiry.ts";
import { createHostGuard, type HostGuard } from "../../http/host-guard.ts";
import type { NodeRequest } from "../../http/node-exchange.ts";
import { MCP_CORS } from "../../mcp/server/http-cors.ts";
import { refuse, refuseFor } from "../../mcp/server/http-refusal.ts";
import type { GatewayAuth } from "./gateway-auth.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import type { CallTelemetry } from "./observe/call-telemetry.ts";
import type { Metrics } from "./observe/metrics.ts";
import { PROMETHEUS_TYPE } from "./observe/prometheus-text.ts";
import {
  ASKED_TWICE,
  jsonAnswer,
  METRICS_SCOPE,
  NO_METRICS,
  NOTHING_HERE,
  ONLY_READ,
  ownRefusal,
  TWO_HOSTS,
  textAnswer,
} from "./own-answers.ts";
import type { ServeSettings } from "./serve-settings.ts";
import { MCP_PATH, servedPaths } from "./served-paths.ts";

/** Something else that is served, under a prefix of its own. */
export interface GatewayRoute {
  /** What its paths begin with, such as `/inspect`: the path itself, and all below it. */
  readonly prefix: string;
  /**
   * Tells which of its paths hold nothing but what is public, such as the files of a page: whoever can reach the gateway may read them
   * without saying who they are. @default none
   */
  isOpen?(path: string): boolean;
  /** Answers a request of a caller who may use the gateway; of nobody in particular where the path is open. */
  handle(request: NodeRequest, caller: RouteCaller): void | Promise<void>;
}

/** Who asks for something under a route, as it was when they were let in. */
export interface RouteCaller {
  readonly identity: Identity | undefined;
  /** Whether callers were asked who they are. */
  readonly isAuthOn: boolean;
  /** Whether the same callers are still let in as then, and what they showed has not expired. */
  readonly isCurrent: () => boolean;
}

/** What stands behind the addresses of a gateway. */
export interface GatewayFrontOptions {
  readonly parts: GatewayParts;
  readonly auth: GatewayAuth;
  readonly metrics: Metrics | undefined;
  readonly telemetry: CallTelemetry | undefined;
  /** Looked at with every request, so that they may come and go. */
  readonly routes: readonly GatewayRoute[];
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** A request that may be answered, or what is said instead. */
type AdmittedRequest = { readonly identity: Identity | undefined } | { readonly refusal: HttpAnswer };

/** Sends every request to the part of the gateway it is for. */
export class GatewayFront {
  readonly #options: GatewayFrontOptions;
  #settings: ServeSettings;
  #guard: HostGuard;
  #state: "starting" | "ok" | "closing" = "starting";

  constructor(settings: ServeSettings, options: GatewayFrontOptions) {
    this.#options = options;
    this.#settings = settings;
    this.#guard = createGuard(settings);
  }

  /** Answers by other settings from now on. */
  set(settings: ServeSettings): void {
    this.#guard = createGuard(settings);
    this.#settings = settings;
  }

  /** Says from now on that what is served is mounted. */
  open(): void {
    if (this.#state === "starting") this.#state = "ok";
  }

  /** Says from now on that the gateway closes: `/ready` is 503, and connections are not kept for another request. */
  close(): void {
    this.#state = "closing";
  }

  readonly onRequest = (request: NodeRequest): void => {
    const { message, response } = request;
    if (this.#state === "closing") response.shouldKeepAlive = false;
    if (hasSeveral(message, "host")) {
      void request.send(ownRefusal(TWO_HOSTS));
      return;
    }
    const isMcp = request.path === MCP_PATH;
    if (this.#options.auth.isOn && hasSeveral(message, "authorization")) {
      void request.send(ownRefusal(ASKED_TWICE));
      return;
    }
    const route = this.#options.routes.find(({ prefix }) => isBelow(request.path, prefix));
    const answering =
      route === undefined
        ? (isMcp ? this.#answerMcp(request) : this.#answer(request, message)).then((answer) =>
            request.send(answer),
          )
        : this.#answerRoute(route, request);
    answering.catch((thrown) => {
      // A reader that was too slow is no fault of this side.
      if (!isCallError(thrown)) this.#options.onWarning("An answer could not be sent.", thrown);
      response.destroy();
    });
  };

  async #answerMcp(request: HttpRequest): Promise<HttpAnswer> {
    const { auth, parts } = this.#options;
    const { mcp } = parts;
    if (mcp !== undefined && !auth.isOn) {
      return await mcp.handle(request, { isCurrent: () => auth.isCurrent(undefined) });
    }
    const refusal = this.#guard.check(request);
    if (refusal !== undefined) return refuseFor(refusal);
    const preflight = request.method === "OPTIONS" ? this.#guard.preflight(request) : undefined;
    if (preflight !== undefined) return preflight;
    const admitted = await auth.identify(request);
    if ("identity" in admitted) {
      const { identity } = admitted;
      if (mcp === undefined) return this.#mark(request, refuse(404, NOTHING_HERE.message));
      return await mcp.handle(request, { identity, isCurrent: () => auth.isCurrent(identity) });
    }
    return this.#mark(request, refuseFor(admitted.refusal));
  }

  #answer(request: HttpRequest, message: IncomingMessage): Promise<HttpAnswer> {
    const { parts, metrics, telemetry, auth } = this.#options;
    const { path } = request;
    const { http } = parts;
    if (path === "/") return this.#own(request, () => jsonAnswer(this.#index()));
    if (path === "/metrics") {
      const read = metrics !== undefined && this.#settings.metrics ? metrics : undefined;
      if (read === undefined) return this.#own(request, () => ownRefusal(NOTHING_HERE));
      // Metrics name every operation and source, also those that a caller may not know of.
      const isRefused = (identity: Identity | undefined): boolean =>
        auth.isOn && identity?.scopes?.includes(METRICS_SCOPE) !== true;
      return this.#own(
        request,
        () => textAnswer(read.text(), PROMETHEUS_TYPE),
        (identity) => (isRefused(identity) ? NO_METRICS : undefined),
      );
    }
    if (path === "/ready" && this.#state !== "ok") return Promise.resolve(this.#probe(request));
    const described = auth.describe(request);
    if (described !== undefined) return Promise.resolve(this.#described(request, described));
    if (http !== undefined) {
      return telemetry === undefined
        ? http.handle(request)
        : telemetry.answering(message.headers, () => http.handle(request));
    }
    if (path === "/health" || path === "/ready") return Promise.resolve(this.#probe(request));
    return this.#own(request, () => ownRefusal(NOTHING_HERE));
  }

  async #answerRoute(route: GatewayRoute, request: NodeRequest): Promise<void> {
    const isOpen = route.isOpen?.(request.path) === true;
    const { auth } = this.#options;
    const isUnchanged = auth.isUnchanged();
    const isAuthOn = auth.isOn;
    const admitted = isOpen ? this.#guardOpen(request, true) : await this.#admit(request);
    if ("refusal" in admitted) await request.send(admitted.refusal);
    else {
      const { identity } = admitted;
      if (isAuthOn && !isOpen) request.owner = ownerOf(identity);
      const isCurrent = (): boolean => isUnchanged() && !isExpired(identity);
      await route.handle(request, { identity, isAuthOn, isCurrent });
    }
  }

  /** Answers what can only be read, by whoever may use the gateway. */
  async #own(
    request: HttpRequest,
    answer: () => HttpAnswer,
    refuse?: (identity: Identity | undefined) => typeof ONLY_READ | undefined,
  ): Promise<HttpAnswer> {
    const preflight = request.method === "OPTIONS" ? this.#guard.preflight(request) : undefined;
    if (preflight !== undefined) return preflight;
    const admitted = await this.#admit(request);
    if ("refusal" in admitted) return this.#mark(request, admitted.refusal);
    const isRead = request.method === "GET" || request.method === "HEAD";
    const refusal = refuse?.(admitted.identity) ?? (isRead ? undefined : ONLY_READ);
    return this.#mark(request, refusal === undefined ? answer() : ownRefusal(refusal));
  }

  /** Lets a page of an allowed origin read an answer. */
  #mark(request: HttpRequest, answer: HttpAnswer): HttpAnswer {
    const cors = this.#guard.corsHeaders(request);
    return cors === undefined ? answer : { ...answer, headers: { ...answer.headers, ...cors } };
  }

  async #admit(request: HttpRequest): Promise<AdmittedRequest> {
    const guarded = this.#guardOpen(request, request.path === "/");
    if ("refusal" in guarded) return guarded;
    const admitted = await this.#options.auth.identify(request);
    return "identity" in admitted ? admitted : { refusal: ownRefusal(admitted.refusal) };
  }

  /** From where it is asked counts everywhere, by whom does not. */
  #guardOpen(request: HttpRequest, isPage: boolean): AdmittedRequest {
    const refused = this.#guard.check(request, isPage);
    return refused === undefined ? { identity: undefined } : { refusal: ownRefusal(refused) };
  }

  /** Where to get a token is for everybody who may ask here. */
  #described(request: HttpRequest, described: Described): HttpAnswer {
    const refusal = this.#guard.check(request);
    if (refusal !== undefined) return ownRefusal(refusal);
    return this.#mark(request, "refusal" in described ? ownRefusal(described.refusal) : described.answer);
  }

  #probe({ path, method }: HttpRequest): HttpAnswer {
    if (method !== "GET" && method !== "HEAD") return ownRefusal(ONLY_READ);
    const status = path === "/health" ? "ok" : this.#state;
    return jsonAnswer({ status }, status === "ok" ? 200 : 503);
  }

  #index(): Readonly<Record<string, unknown>> {
    const { metrics, routes } = this.#options;
    const { serve, name } = this.#settings;
    const { metrics: metricsPath, ...paths } = servedPaths(serve);
    return {
      name,
      ...Object.fromEntries(routes.map(({ prefix }) => [prefix.slice(1), prefix])),
      ...paths,
      health: "/health",
      ready: "/ready",
      ...(metrics !== undefined && metricsPath !== undefined && { metrics: metricsPath }),
    };
  }
}

function createGuard({ hosts, origins }: ServeSettings): HostGuard {
  return createHostGuard({ hosts, origins }, MCP_CORS);
}

/** Node itself keeps the first of several. */
function hasSeveral({ rawHeaders }: IncomingMessage, wanted: string): boolean {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.length === wanted.length && rawHeaders[at]?.toLowerCase() === wanted) count++;
  }
  return count > 1;
}

function isBelow(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}
