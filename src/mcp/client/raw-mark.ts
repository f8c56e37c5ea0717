import type { JSONRPCMessage } from "@modelcontextprotocol/client";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { RawRequest } from "./raw-request.ts";

/** Marks the params of a request whose answer is kept as it comes; JSON leaves symbols out, and it is taken off before. */
export const RAW_REQUEST = Symbol("raw request");

/** The request that params are marked with; nothing for those of the SDK itself. */
export function markOf(params: unknown): RawRequest | undefined {
  return (params as { [RAW_REQUEST]?: RawRequest } | undefined)?.[RAW_REQUEST];
}

/** Takes the mark off, and puts the id first, where whoever reads the text finds it. */
export function toOutgoing(
  id: number | string,
  method: string,
  marked: Readonly<Record<string, unknown>>,
  request: RawRequest,
): JSONRPCMessage {
  const params: Record<string | symbol, unknown> = { ...marked };
  delete params[RAW_REQUEST];
  if (request.onProgress !== undefined) {
    params["_meta"] = { ...(isPlainObject(params["_meta"]) ? params["_meta"] : {}), progressToken: id };
  }
  const hasParams = Object.keys(params).length > 0;
  return { jsonrpc: "2.0", id, method, ...(hasParams ? { params } : {}) } as JSONRPCMessage;
}
