import {
  isInitializeRequest,
  type JSONRPCErrorResponse,
  type JSONRPCMessage,
  RELATED_TASK_META_KEY,
} from "@modelcontextprotocol/server";
import { isPlainObject } from "../../core/json/json-value.ts";

const MEMBERS = new Set(["jsonrpc", "id", "method", "params"]);

/** The answer to a request that the SDK would leave without one, or answer with the words of its own checks; nothing for others. */
export function faultOf(message: JSONRPCMessage): JSONRPCErrorResponse | undefined {
  if (!("method" in message && "id" in message)) return undefined;
  const { id, method, params }: { id: unknown; method: unknown; params?: unknown } = message;
  // There is nothing to answer under.
  if (typeof id !== "string" && !Number.isSafeInteger(id)) return undefined;
  const refuse = (code: number, text: string): JSONRPCErrorResponse => {
    return { jsonrpc: "2.0", id: id as string | number, error: { code, message: text } };
  };
  if (typeof method !== "string" || !Object.keys(message).every((key) => MEMBERS.has(key))) {
    return refuse(-32_600, "This is not a request of JSON-RPC 2.0.");
  }
  if (params !== undefined && !arePossible(params)) {
    return refuse(-32_602, "The params must be an object, and _meta in it what the protocol says.");
  }
  if (method === "initialize" && !isInitializeRequest(message)) {
    return refuse(-32_602, "To initialize takes a protocolVersion, capabilities and a clientInfo.");
  }
  return undefined;
}

function arePossible(params: unknown): boolean {
  if (!isPlainObject(params)) return false;
  const { _meta: meta } = params;
  if (meta === undefined) return true;
  if (!isPlainObject(meta)) return false;
  const { progressToken: token, [RELATED_TASK_META_KEY]: task } = meta;
  if (token !== undefined && typeof token !== "string" && !Number.isSafeInteger(token)) return false;
  return task === undefined || (isPlainObject(task) && typeof task["taskId"] === "string");
}
