import { type CallError, isCallError, toCallError } from "../../core/errors/errors.ts";
import type { GatewayRoute } from "../../gateway/serve/gateway-front.ts";
import type { NodeRequest } from "../../http/node-exchange.ts";
import type { Failure } from "../protocol.ts";
import { JSON_HEADERS } from "./answer-headers.ts";
import { failureOf } from "./failure-of.ts";
import { assertOwnPage, assertOwnUse } from "./guard-request.ts";
import { InspectorApi, type PageAnswer } from "./inspector-api.ts";
import { WRITE_TIMEOUT_MS } from "./inspector-limits.ts";
import type { InspectorOptions } from "./inspector-options.ts";
import { limitTime } from "./limit-time.ts";
import { PageServer } from "./page-server.ts";
import { viewerOf } from "./viewer.ts";

export type { InspectorOptions } from "./inspector-options.ts";
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
