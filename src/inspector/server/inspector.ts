import { CallError, isCallError, toCallError } from "../../core/errors/errors.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import type { GatewayRoute } from "../../gateway/serve/gateway-front.ts";
import type { CallTelemetry, Observer, ReadRecord } from "../../gateway/serve/observe/observer.ts";
import type { HttpRequest } from "../../http/exchange.ts";
import type { NodeRequest } from "../../http/node-exchange.ts";
import type { Failure, Hello, ReplicaView } from "../protocol.ts";
import { failureOf, JSON_HEADERS, limitTime } from "./answers.ts";
import { InspectorApi, type PageAnswer } from "./inspector-api.ts";
import { WRITE_TIMEOUT_MS } from "./inspector-limits.ts";
import { PageServer } from "./page-server.ts";
import { viewerOf } from "./viewer.ts";

export { INSPECT_SCOPE } from "./viewer.ts";

/** How an inspector ends. */
export interface CloseInspectorOptions {
  /** Milliseconds that calls of pages have to end by themselves. @default 0 */
  readonly timeoutMs?: number | undefined;
}

/** A page on which a gateway can be looked at and used. */
export interface Inspector {
  /** Serves it, at `/inspect`. */
  readonly route: GatewayRoute;
  /** Ends feeds, answers nothing new, and forgets the calls once those of pages have ended. */
  close(options?: CloseInspectorOptions): Promise<void>;
}

const PREFIX = "/inspect";
const API = `${PREFIX}/api`;

/** Creates an inspector of a gateway; it remembers calls from now on. */
export function createInspector(options: InspectorOptions): Inspector {
  const { onWarning = () => {}, writeTimeoutMs = WRITE_TIMEOUT_MS } = options;
  const api = new InspectorApi(options);
  const page = new PageServer();

  const handle: GatewayRoute["handle"] = async (request, caller) => {
    const { response } = request;
    try {
      if (!isApi(request.path)) {
        assertOwnUse(request);
        await page.send(request.path.slice(PREFIX.length), request);
        return;
      }
      assertOwnPage(request);
      const viewer = viewerOf(caller);
      const answer = await api.answer(request.path.slice(API.length + 1), { request, viewer });
      if (answer === undefined) return;
      await sendJson(200, bodyOf(answer, api), request);
      limitTime(response, writeTimeoutMs);
    } catch (thrown) {
      if (!isCallError(thrown)) onWarning("The inspector could not answer.", thrown);
      await refuse(toCallError(thrown), request, api);
      limitTime(response, writeTimeoutMs);
    }
  };
  const isOpen = (path: string): boolean => !isApi(path);
  return {
    route: { prefix: PREFIX, isOpen, handle },
    close: ({ timeoutMs = 0 } = {}) => api.close(timeoutMs),
  };
}

function bodyOf(answer: NonNullable<PageAnswer>, api: InspectorApi): string | Uint8Array {
  if ("masked" in answer) return answer.masked;
  return api.mask("json" in answer ? answer.json : JSON.stringify(answer.value));
}

function isApi(path: string): boolean {
  return path === API || path.startsWith(`${API}/`);
}

async function refuse(error: CallError, request: NodeRequest, api: InspectorApi): Promise<void> {
  if (request.response.headersSent) {
    request.response.destroy();
    return;
  }
  const failure: Failure = { error: failureOf(error) };
  await sendJson(error.httpStatus, api.mask(JSON.stringify(failure)), request);
}

async function sendJson(status: number, json: string | Uint8Array, request: NodeRequest): Promise<void> {
  await request.send({ status, headers: { ...JSON_HEADERS }, body: json });
}

/** What an inspector looks at. */
export interface InspectorOptions {
  readonly gateway: Gateway;
  /** Tells of calls. */
  readonly observer: Observer;
  /** The config in use, whichever that is by then. */
  readonly loaded: () => LoadedConfig;
  /** How Waybill is started in a shell. */
  readonly command: Hello["command"];
  readonly telemetry?: CallTelemetry | undefined;
  /** Tells of all replicas of the gateway. @default there is this one alone */
  readonly replicas?: (() => Promise<readonly ReplicaView[]>) | undefined;
  /** Hears of each resource and prompt that a page reads. @default nobody does */
  readonly onRead?: ((record: ReadRecord) => void) | undefined;
  /** Milliseconds that a page may take to read the rest of an answer. @default 30_000 */
  readonly writeTimeoutMs?: number | undefined;
  /** Hears what is odd. @default nobody does */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

/** Throws unless a request of the API comes from the inspector's own page, or from no page at all. */
function assertOwnPage(request: Pick<HttpRequest, "header">): void {
  assertOwnOrigin(request);
  const site = request.header("sec-fetch-site");
  if (site !== undefined && site !== "same-origin") throw foreign();
}

/** Throws where another page wants a file of the inspector for anything but to go there. */
function assertOwnUse(request: Pick<HttpRequest, "header">): void {
  assertOwnOrigin(request);
  const site = request.header("sec-fetch-site");
  if (site === undefined || site === "same-origin" || site === "none") return;
  const isVisit =
    request.header("sec-fetch-mode") === "navigate" && request.header("sec-fetch-dest") === "document";
  if (!isVisit) throw foreign();
}

function assertOwnOrigin(request: Pick<HttpRequest, "header">): void {
  const origin = request.header("origin")?.toLowerCase();
  if (origin === undefined) return;
  const host = request.header("host")?.toLowerCase();
  if (origin !== `http://${host}` && origin !== `https://${host}`) throw foreign();
}

function foreign(): CallError {
  return new CallError("ACCESS_DENIED", "Only the inspector's own page may ask here.", { stack: false });
}
