import type { IncomingMessage } from "node:http";
import { type Identity, ownerOf } from "../../core/access/identity.ts";
import { isCallError } from "../../core/errors/errors.ts";
import { randomId } from "../../core/execution/call-context.ts";
import type { Described } from "../../http/bearer.ts";
import { isExpired } from "../../http/caller.ts";
import type { HttpAnswer, HttpRequest, Refusal } from "../../http/exchange.ts";
import { createHostGuard, type HostGuard } from "../../http/host-guard.ts";
import type { NodeRequest } from "../../http/node-exchange.ts";
import { refuse, refuseFor } from "../../mcp/server/http/mcp-endpoint.ts";
import { MCP_CORS } from "../../mcp/server/http/serve-mcp-http.ts";
import { refusalAnswer } from "../../openapi/server/admission.ts";
import { findSwaggerUi } from "../../openapi/server/docs-page.ts";
import type { StateReport } from "../state/gateway-state.ts";
import type { GatewayAuth } from "./gateway-auth.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { type Metrics, PROMETHEUS_TYPE } from "./observe/metrics.ts";
import type { CallTelemetry } from "./observe/observer.ts";
import { MCP_PATH, type ServeSettings, servedPaths } from "./serve-settings.ts";

/** Something else that is served, under a prefix of its own. */
export interface GatewayRoute {
  /** What its paths begin with, such as `/inspect`: the path itself, and all below it. */
  readonly prefix: string;
  /**
   * Tells which of its paths hold nothing but what is public, such as the files of a page: every client that can reach the gateway may read them
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

/** What answers at the addresses of a gateway. */
export interface GatewayFrontOptions {
  readonly parts: GatewayParts;
  readonly auth: GatewayAuth;
  readonly metrics: Metrics | undefined;
  readonly telemetry: CallTelemetry | undefined;
  /** Brings a request to the replica that holds what it is about. */
  readonly lead: (request: NodeRequest, answer: HttpAnswer) => Promise<HttpAnswer>;
  /** How the state is doing that replicas share. */
  readonly state: () => StateReport;
  /** Looked at with every request, so that they may come and go. */
  readonly routes: readonly GatewayRoute[];
  /** Where callers log in to sources that are asked as each of them. */
  readonly login: { readonly route: GatewayRoute; readonly isOn: boolean };
  /** Where people decide about calls that wait for them. */
  readonly approvals: { readonly route: GatewayRoute; readonly isOn: boolean };
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
    const { host, authorization } = message.headers;
    if (host?.includes(",")) {
      void request.send(ownRefusal(TWO_HOSTS));
      return;
    }
    const isMcp = request.path === MCP_PATH;
    if (authorization?.includes(",") && this.#options.auth.isOn && hasSeveral(message, "authorization")) {
      void request.send(ownRefusal(ASKED_TWICE));
      return;
    }
    void this.#respond(request, isMcp);
  };

  async #respond(request: NodeRequest, isMcp: boolean): Promise<void> {
    const { message, response } = request;
    try {
      const route = this.#routeOf(request.path);
      if (route !== undefined) return await this.#answerRoute(route, request);
      const answer = await (isMcp ? this.#answerMcp(request) : this.#answer(request, message));
      const sending = answer.heldBy === undefined ? request.send(answer) : this.#lead(request, answer);
      if (sending !== undefined) await sending;
    } catch (thrown) {
      // A reader that was too slow is no fault of this side.
      if (!isCallError(thrown)) this.#options.onWarning("An answer could not be sent.", thrown);
      response.destroy();
    }
  }

  #routeOf(path: string): GatewayRoute | undefined {
    const { routes, login, approvals } = this.#options;
    const found = routes.find(({ prefix }) => isBelow(path, prefix));
    if (found !== undefined) return found;
    // Whether a page is served is worked out from the config: for its own paths alone.
    const own = [login, approvals].find(({ route }) => isBelow(path, route.prefix));
    return own?.isOn === true ? own.route : undefined;
  }

  /** Answers a request that another replica has brought here: of all that is served, MCP and the HTTP API hold what others ask for. */
  async answerLed(request: HttpRequest): Promise<HttpAnswer> {
    if (request.path === MCP_PATH) return await this.#answerMcp(request);
    const { http } = this.#options.parts;
    return http === undefined ? ownRefusal(NOTHING_HERE) : await http.handle(request);
  }

  async #lead(request: NodeRequest, answer: HttpAnswer): Promise<void> {
    await request.send(await this.#options.lead(request, answer));
  }

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
      return await mcp.handle(request, {
        identity,
        isCurrent: () => auth.isCurrent(identity),
        stepUp: auth.stepUp,
      });
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
      const noMetrics = (identity: Identity | undefined): Refusal => {
        const challenge = identity && auth.stepUp(request, identity, [METRICS_SCOPE]);
        return challenge === undefined
          ? NO_METRICS
          : { ...NO_METRICS, headers: { "www-authenticate": challenge } };
      };
      return this.#own(
        request,
        () => textAnswer(read.text(), PROMETHEUS_TYPE),
        (identity) => (isRefused(identity) ? noMetrics(identity) : undefined),
      );
    }
    if (path === "/ready") return Promise.resolve(this.#probe(request));
    const described = auth.describe(request);
    if (described !== undefined) return Promise.resolve(this.#described(request, described));
    if (http !== undefined) {
      const handle = (): Promise<HttpAnswer> => http.handle(request);
      const answering = telemetry === undefined ? handle() : telemetry.answering(message.headers, handle);
      return path === "/docs" ? answering.then((answer) => this.#leadToPage(answer)) : answering;
    }
    if (path === "/health" || path === "/ready") return Promise.resolve(this.#probe(request));
    return this.#own(request, () => ownRefusal(NOTHING_HERE));
  }

  /** Leads from the plain list of operations to the inspector, where that is served: it shows them too, and calls them. */
  #leadToPage(answer: HttpAnswer): HttpAnswer {
    const [page] = this.#options.routes;
    if (page === undefined || answer.status !== 200 || findSwaggerUi() !== false) return answer;
    const { "content-type": _, ...headers } = answer.headers as Readonly<Record<string, string>>;
    return { status: 302, headers: { ...headers, location: `${page.prefix.slice(1)}/` }, body: undefined };
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

  /** Answers what can only be read, by callers who may use the gateway. */
  async #own(
    request: HttpRequest,
    answer: () => HttpAnswer,
    refuse?: (identity: Identity | undefined) => Refusal | undefined,
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
    const state = path === "/ready" ? toProbedState(this.#options.state()) : {};
    return jsonAnswer({ status, ...state }, status === "ok" ? 200 : 503);
  }

  #index(): Readonly<Record<string, unknown>> {
    const { metrics, routes, login } = this.#options;
    const { serve, name } = this.#settings;
    const { metrics: metricsPath, ...paths } = servedPaths(serve);
    return {
      name,
      ...Object.fromEntries(routes.map(({ prefix }) => [prefix.slice(1), prefix])),
      ...paths,
      ...(login.isOn && { login: login.route.prefix }),
      health: "/health",
      ready: "/ready",
      ...(metrics !== undefined && metricsPath !== undefined && { metrics: metricsPath }),
    };
  }
}

/** What everybody may know of the state: that it is lost stops nothing but calls with a key, and taking all replicas out would stop the rest too. */
function toProbedState({ store, status, lost }: StateReport): Readonly<Record<string, unknown>> {
  if (store === "memory") return {};
  if (status === "up") return { state: { store, status } };
  const settings = Object.entries(lost).map(([setting, choice]) => [
    setting,
    choice === "refuse" ? "refused" : "alone",
  ]);
  return { state: { store, status, ...Object.fromEntries(settings) } };
}

function createGuard({ hosts, origins }: ServeSettings): HostGuard {
  return createHostGuard({ hosts, origins }, MCP_CORS);
}

/** Tells whether a header came more than once, where its joined value alone does not. */
function hasSeveral({ rawHeaders }: IncomingMessage, wanted: string): boolean {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.length === wanted.length && rawHeaders[at]?.toLowerCase() === wanted) count++;
  }
  return count > 1;
}

/** Whether a path is a prefix, or lies below it. */
export function isBelow(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

/** Answers with why a request is not heard. */
function ownRefusal(refusal: Refusal): HttpAnswer {
  return refusalAnswer(refusal, randomId());
}

/** Answers with JSON that is nobody else's to keep. */
function jsonAnswer(value: unknown, status = 200): HttpAnswer {
  return {
    status,
    headers: { "content-type": "application/json", "cache-control": "no-store" },
    body: `${JSON.stringify(value)}\n`,
  };
}

/** Answers with text. */
function textAnswer(text: string, type: string): HttpAnswer {
  return { status: 200, headers: { "content-type": type, "cache-control": "no-store" }, body: text };
}

/** The refusal of what is not served here. */
const NOTHING_HERE: Refusal = {
  status: 404,
  message: "There is nothing here; GET / says what there is.",
  headers: {},
};

/** The scope that shows metrics, where callers are asked who they are. */
export const METRICS_SCOPE = "waybill:metrics";

/** The refusal of metrics to a caller without their scope. */
const NO_METRICS: Refusal = {
  status: 403,
  message: `Metrics need a token with the scope "${METRICS_SCOPE}".`,
  headers: { "www-authenticate": `Bearer error="insufficient_scope", scope="${METRICS_SCOPE}"` },
};

/** The refusal of a request that says twice who is asking: a proxy in front may have looked at the other one. */
const ASKED_TWICE: Refusal = {
  status: 401,
  message: "A request has one Authorization header.",
  headers: { "www-authenticate": 'Bearer error="invalid_request"' },
};

/** The refusal of a request that names two hosts: a proxy in front may have looked at the other one. */
const TWO_HOSTS: Refusal = { status: 400, message: "A request has one Host header.", headers: {} };

/** The refusal of a method that only reads are for. */
const ONLY_READ: Refusal = {
  status: 405,
  message: "This address can only be read.",
  headers: { allow: "GET, HEAD" },
};
