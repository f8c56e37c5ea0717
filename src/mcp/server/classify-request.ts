import type { HttpRequest } from "../../http/exchange.ts";
import {
  ProtocolError,
  RPC_CODES,
  type RpcNotification,
  type RpcRequest,
  toRpcMessage,
} from "../protocol/messages.ts";
import { decodeHeader } from "../protocol/mirrored-params.ts";
import {
  claimedRevision,
  claimsRevision,
  envelopeFault,
  isModernRequest,
  isModernRevision,
  MODERN_REVISIONS,
  methodTraits,
  missingKeys,
  unsupportedRevision,
} from "../protocol/revisions.ts";

/** What a posted body is: for a session, a 2026-07-28 request or notification, or refused with the reason. */
export type Classified =
  | { readonly kind: "legacy" }
  | { readonly kind: "notification" }
  | { readonly kind: "modern"; readonly message: RpcRequest }
  | { readonly kind: "refused"; readonly error: ProtocolError };

/** The headers that repeat what a 2026-07-28 request says of itself. */
interface Repeated {
  readonly revision: string | undefined;
  readonly method: string | undefined;
  readonly name: string | undefined;
}

const LEGACY: Classified = { kind: "legacy" };

/** Decides by what a body says of itself; headers must agree, since others may have routed by them. */
export function classify(body: unknown, request: Pick<HttpRequest, "header">): Classified {
  if (Array.isArray(body)) return classifyBatch(body);
  const message = toRpcMessage(body);
  if (message === undefined)
    return refusedAs(RPC_CODES.invalidRequest, "The body is not a message of JSON-RPC 2.0.");
  if (!("method" in message)) return LEGACY;
  const revision = request.header("mcp-protocol-version")?.trim();
  const isModernHeader = revision !== undefined && isModernRevision(revision);
  const isClaimed = claimsRevision(message.params);
  if (!isClaimed && !isModernHeader) return LEGACY;
  const headers = {
    revision,
    method: request.header("mcp-method")?.trim(),
    name: request.header("mcp-name")?.trim(),
  };
  const error =
    "id" in message ? headerFault(message, headers, isClaimed) : notificationFault(message, headers);
  if (error !== undefined) return { kind: "refused", error };
  if (!("id" in message)) return isModern(message, isModernHeader) ? { kind: "notification" } : LEGACY;
  if (message.method === "initialize" && !isModernRequest(message)) return LEGACY;
  return { kind: "modern", message };
}

function classifyBatch(body: readonly unknown[]): Classified {
  if (body.length === 0) return refusedAs(RPC_CODES.invalidRequest, "A list of messages must not be empty.");
  for (const item of body) {
    const message = toRpcMessage(item);
    if (message === undefined)
      return refusedAs(RPC_CODES.invalidRequest, "The list holds what is no message of JSON-RPC 2.0.");
    if ("method" in message && claimsRevision(message.params)) {
      return refusedAs(RPC_CODES.invalidRequest, "Since 2026-07-28, messages are not sent in lists.");
    }
  }
  return LEGACY;
}

function headerFault(message: RpcRequest, headers: Repeated, isClaimed: boolean): ProtocolError | undefined {
  const { method, params } = message;
  if (method === "initialize" && !isModernRequest(message)) {
    const isModernHeader = headers.revision !== undefined && isModernRevision(headers.revision);
    return isModernHeader ? mismatch(headers.revision, "an initialize of an older revision") : undefined;
  }
  if (!isClaimed) {
    const missing = missingKeys(params);
    const text = `The header names revision ${headers.revision}, and the request lacks: ${missing.join(", ")}.`;
    return new ProtocolError(RPC_CODES.invalidParams, text, { envelope: { missing } });
  }
  const fault = envelopeFault(params);
  if (fault !== undefined) return fault;
  const revision = claimedRevision(params);
  if (headers.revision !== undefined && headers.revision !== revision) {
    return mismatch(headers.revision, `revision ${revision}`);
  }
  if (headers.method !== undefined && headers.method !== method)
    return mismatch(headers.method, `method ${method}`);
  if (revision === undefined || !MODERN_REVISIONS.includes(revision)) return unsupportedRevision(revision);
  if (headers.revision === undefined)
    return mismatch("(missing)", `revision ${revision}; MCP-Protocol-Version must repeat it`);
  if (headers.method === undefined)
    return mismatch("(missing)", `method ${method}; Mcp-Method must repeat it`);
  return nameFault(message, headers.name);
}

/** `Mcp-Name` repeats the tool, prompt or resource that is asked for. */
function nameFault({ method, params }: RpcRequest, header: string | undefined): ProtocolError | undefined {
  const field = methodTraits(method)?.named;
  if (field === undefined) return undefined;
  const value = params?.[field];
  const wanted = typeof value === "string" ? value : undefined;
  if (header === undefined) {
    return wanted === undefined
      ? undefined
      : mismatch("(missing)", `params.${field}; Mcp-Name must repeat it`);
  }
  const given = decodeHeader(header);
  if (given === undefined) return mismatch(header, "Mcp-Name in broken base64");
  return wanted === undefined || wanted === given ? undefined : mismatch(header, `another params.${field}`);
}

function notificationFault(message: RpcNotification, headers: Repeated): ProtocolError | undefined {
  const { method, params } = message;
  const revision = claimedRevision(params);
  if (claimsRevision(params) && revision === undefined) return envelopeFault(params);
  if (revision !== undefined && headers.revision !== undefined && revision !== headers.revision) {
    return mismatch(headers.revision, `revision ${revision}`);
  }
  const isNamed = headers.method === undefined || headers.method === method;
  if (!isNamed && isModern(message, true)) return mismatch(headers.method, `method ${method}`);
  if (revision !== undefined && isModernRevision(revision) && !MODERN_REVISIONS.includes(revision)) {
    return unsupportedRevision(revision);
  }
  return undefined;
}

function isModern({ params }: RpcNotification, isModernHeader: boolean): boolean {
  const revision = claimedRevision(params);
  return revision === undefined ? isModernHeader : isModernRevision(revision);
}

function mismatch(header: string | undefined, body: string): ProtocolError {
  const message = `The headers and the body disagree: the body has ${body}.`;
  return new ProtocolError(RPC_CODES.headerMismatch, message, { mismatch: { header, body } });
}

function refusedAs(code: number, message: string): Classified {
  return { kind: "refused", error: new ProtocolError(code, message) };
}
