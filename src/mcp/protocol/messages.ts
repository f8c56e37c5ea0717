import { type CallError, isCallError, toCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { shortText } from "../../core/text/truncate-text.ts";

/** What answers a request: the id it was sent under. */
export type RequestId = string | number;

/** The parameters of a request or notification; the code that uses one checks it. */
export type Params = Readonly<Record<string, unknown>>;

/** Asks for an answer. */
export interface RpcRequest {
  readonly jsonrpc: "2.0";
  readonly id: RequestId;
  readonly method: string;
  readonly params?: Params;
}

/** Tells something, and is not answered. */
export interface RpcNotification {
  readonly jsonrpc: "2.0";
  readonly method: string;
  readonly params?: Params;
}

interface RpcResult {
  readonly jsonrpc: "2.0";
  readonly id: RequestId;
  readonly result: unknown;
}

/** Says why a request cannot be answered. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

interface RpcFailure {
  readonly jsonrpc: "2.0";
  /** `null` where the request could not be read. */
  readonly id: RequestId | null;
  readonly error: RpcError;
}

/** Any message of JSON-RPC 2.0. */
export type RpcMessage = RpcRequest | RpcNotification | RpcResult | RpcFailure;

/** The error codes of JSON-RPC and MCP that are used here. */
export const RPC_CODES = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internalError: -32_603,
  /** Another replica of the server holds what the request is about; sent again, it may reach that one. */
  heldElsewhere: -32_003,
  /** Headers of an HTTP request disagree with its body. */
  headerMismatch: -32_020,
  /** The client did not declare what the request needs. */
  missingCapability: -32_021,
  /** Nobody here speaks the revision the request is written in. */
  unsupportedVersion: -32_022,
} as const;

/** An error that is sent to the other side as it is. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  readonly code: number;
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }

  toJSON(): RpcError {
    const { code, message, data } = this;
    return data === undefined ? { code, message } : { code, message, data };
  }
}

/** What the other side is told of something thrown: only what was meant for it. */
export function toRpcError(thrown: unknown): RpcError {
  if (thrown instanceof ProtocolError) return thrown.toJSON();
  return { code: RPC_CODES.internalError, message: "Internal error" };
}

/** Reads the `error` of an answer as it came; whatever it lacks is made up for. */
export function readError(value: unknown): RpcError {
  const { code, message, data }: Params = isPlainObject(value) ? value : {};
  return {
    code: typeof code === "number" && Number.isInteger(code) ? code : RPC_CODES.internalError,
    message: typeof message === "string" ? message : "",
    ...(data === undefined ? {} : { data }),
  };
}

/** Tells whether a value can be the id of a request. */
export function isRpcId(value: unknown): value is RequestId {
  return typeof value === "string" || Number.isSafeInteger(value);
}

/** Tells whether a message asks for an answer. */
export function isRequest(message: RpcMessage): message is RpcRequest {
  return "method" in message && "id" in message;
}

/** Writes an answer whose result is JSON text already. */
export function writeResult(id: RequestId, result: string): string {
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`;
}

/** Writes an answer that is an error. */
export function writeFailure(id: RequestId | null, error: RpcError): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error });
}

/**
 * Writes a request, or a notification where there is no id. `meta` are members of `_meta` as JSON text, which go behind those that the
 * params have of it.
 */
export function writeCall(method: string, params: object | undefined, id?: RequestId, meta = ""): string {
  const ask = id === undefined ? "" : `"id":${JSON.stringify(id)},`;
  const given: string | undefined = meta === "" ? JSON.stringify(params) : writeWithMeta(params, meta);
  const said = given === undefined ? "" : `,"params":${given}`;
  return `{"jsonrpc":"2.0",${ask}"method":${JSON.stringify(method)}${said}}`;
}

function writeWithMeta(params: { readonly _meta?: unknown } | undefined, meta: string): string {
  const own = metaOf(params);
  const known = own === undefined ? "{}" : JSON.stringify(own);
  const members = known === "{}" ? meta : `${known.slice(1, -1)},${meta}`;
  const others = params?._meta === undefined ? params : { ...params, _meta: undefined };
  const text = others === undefined ? "{}" : JSON.stringify(others);
  return text === "{}" ? `{"_meta":{${members}}}` : `${text.slice(0, -1)},"_meta":{${members}}}`;
}

/** The `_meta` of parameters; nothing where there is none. */
export function metaOf(params: unknown): Params | undefined {
  const meta = isPlainObject(params) ? params["_meta"] : undefined;
  return isPlainObject(meta) ? meta : undefined;
}

const MEMBERS = new Set(["jsonrpc", "id", "method", "params"]);

/** Takes a parsed value for a message; nothing where it is none. Members that JSON-RPC does not know make a message none. */
export function toRpcMessage(value: unknown): RpcMessage | undefined {
  if (!isPlainObject(value) || value["jsonrpc"] !== "2.0") return undefined;
  const { id, method, params, error } = value;
  if ("method" in value) {
    if (typeof method !== "string" || ("id" in value && !isRpcId(id))) return undefined;
    if (params !== undefined && !isPlainObject(params)) return undefined;
    return Object.keys(value).every((key) => MEMBERS.has(key)) ? (value as unknown as RpcMessage) : undefined;
  }
  if ("result" in value && !("error" in value)) {
    return isRpcId(id) && isPlainObject(value["result"]) ? (value as unknown as RpcResult) : undefined;
  }
  const isError =
    isPlainObject(error) && Number.isSafeInteger(error["code"]) && typeof error["message"] === "string";
  return isError && (id === undefined || id === null || isRpcId(id))
    ? (value as unknown as RpcFailure)
    : undefined;
}

/** What is wrong with a value that was meant as a request; nothing where it can be answered. */
export function requestFault(value: object): ProtocolError | undefined {
  const { params, method } = value as Readonly<Record<string, unknown>>;
  if (typeof method !== "string" || !Object.keys(value).every((key) => MEMBERS.has(key))) {
    return new ProtocolError(RPC_CODES.invalidRequest, "This is not a request of JSON-RPC 2.0.");
  }
  if (params !== undefined && !arePossible(params)) {
    const message = "The params must be an object, and _meta in it what the protocol says.";
    return new ProtocolError(RPC_CODES.invalidParams, message);
  }
  return undefined;
}

/** The key of `_meta` under which a message names the task it belongs to, in 2025-11-25. */
export const RELATED_TASK = "io.modelcontextprotocol/related-task";

function arePossible(params: unknown): boolean {
  if (!isPlainObject(params)) return false;
  const { _meta: meta } = params;
  if (meta === undefined) return true;
  if (!isPlainObject(meta)) return false;
  const { progressToken: token, [RELATED_TASK]: task } = meta;
  if (token !== undefined && !isRpcId(token)) return false;
  return task === undefined || (isPlainObject(task) && typeof task["taskId"] === "string");
}

/** The most of a foreign name or address that an error repeats. */
const MAX_QUOTED = 200;

/** Says that what a request asks for cannot be: a JSON-RPC error -32602. */
export function invalidParams(message: string, data?: unknown): ProtocolError {
  return new ProtocolError(RPC_CODES.invalidParams, message, data);
}

/** Quotes something a client sent, of whatever length. */
export function quoted(text: string): string {
  return JSON.stringify(shortText(text, MAX_QUOTED));
}

/** Says that there is no such resource, in the way the revision in use says it. */
export function resourceNotFound(uri: string, hint = ""): ProtocolError {
  const message = `Resource not found: ${quoted(uri)}.${hint === "" ? "" : ` ${hint}`}`;
  return invalidParams(message, { uri });
}

/**
 * Turns whatever a handler threw into an error for the wire. Only what was meant for callers goes out: the text of a foreign
 * error stays here, and `onForeign` hears of it.
 */
export function toProtocolError(thrown: unknown, onForeign: (cause: unknown) => void): ProtocolError {
  if (thrown instanceof ProtocolError) return thrown;
  if (isCallError(thrown)) return fromCallError(toCallError(thrown));
  onForeign(thrown);
  return new ProtocolError(RPC_CODES.internalError, "Internal error");
}

function fromCallError(error: CallError): ProtocolError {
  const isTheirs = error.correctable || error.code === "OPERATION_NOT_FOUND";
  const code = isTheirs ? RPC_CODES.invalidParams : RPC_CODES.internalError;
  return new ProtocolError(code, error.message, error.toJSON());
}

/** The keys of `_meta` that carry a trace on, by the names W3C gives them. */
const TRACE_KEYS = ["traceparent", "tracestate", "baggage"] as const;

/** Characters of one of them; a longer one is left out. */
const TRACE_LENGTH = 8_192;

/** What of `_meta`, or of the metadata of a call, says which trace it belongs to; nothing where there is no trace. */
export function traceIn(source: Readonly<Record<string, unknown>>): Record<string, string> | undefined {
  let trace: Record<string, string> | undefined;
  for (const key of TRACE_KEYS) {
    const value = Object.hasOwn(source, key) ? source[key] : undefined;
    if (typeof value !== "string" || value.length > TRACE_LENGTH) continue;
    trace ??= {};
    trace[key] = value;
  }
  return trace;
}
