import type { HttpAnswer } from "../../http/exchange.ts";
import type { Refusal } from "../../http/refusal.ts";
import { isRequestId, type RequestId, writeFailure } from "../protocol/messages.ts";

/** What a refusal may carry besides its status and sentence. */
export interface RefusalOptions {
  /** The code of JSON-RPC. @default -32_000 */
  readonly code?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The id of the request that is refused, where it is known. @default null */
  readonly id?: RequestId | null | undefined;
  readonly data?: unknown;
}

/** Refuses a request, with a JSON-RPC error as the body. */
export function refuse(status: number, message: string, options: RefusalOptions = {}): HttpAnswer {
  const { code = -32_000, headers = {}, id = null, data } = options;
  const error = { code, message, ...(data !== undefined && { data }) };
  return {
    status,
    headers: { "content-type": "application/json", ...headers },
    body: writeFailure(id, error),
  };
}

/** Writes why a request is not heard, as checks that are shared with other servers say it. */
export function refuseFor({ status, message, headers }: Refusal): HttpAnswer {
  return refuse(status, message, { headers });
}

/** Finds the id to answer a body under: that of a single request, `null` for anything else. */
export function requestIdOf(body: unknown): RequestId | null {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return null;
  const { method, id } = body as { readonly method?: unknown; readonly id?: unknown };
  return typeof method === "string" && isRequestId(id) ? id : null;
}
