import { isRequestId } from "../../core/execution/request-id.ts";
import { toJsonTextOrNone } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { LogLine, Metadata } from "../../core/operation/operation-context.ts";
import { IDEMPOTENCY_META_KEY, REQUEST_ID_META_KEY } from "../meta-keys.ts";
import { MCP_LOG_LEVELS, type McpLogLevel } from "../provider.ts";
import type { PeerRequest } from "./peer-request.ts";
import { invalidParams } from "./protocol-errors.ts";

/** The parameters of one `notifications/progress`, without the token. */
export interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

const LEVELS = { debug: "debug", info: "info", warn: "warning", error: "error" } as const;

/** The tracing headers that ride in `_meta`, by the names W3C gives them. */
const TRACE_KEYS = ["traceparent", "tracestate", "baggage"];
const MAX_TRACE = 8_192;
const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** What a request in progress can tell its client: how far it is, and what its handler says. */
export class Exchange {
  #request: Pick<PeerRequest, "meta" | "logLevel" | "notify"> | undefined;
  #reached = Number.NEGATIVE_INFINITY;
  #told = 0;

  /** Speaks through this request from now on, or through none. */
  attach(request: Pick<PeerRequest, "meta" | "logLevel" | "notify"> | undefined): void {
    this.#request = request;
  }

  /** Tells whatever a handler reports; only what goes up is told, as the protocol wants it. */
  progress(value: unknown): void {
    const said = this.#read(value);
    if (said !== undefined) this.tell(said);
  }

  /** Sends a progress notification where the client asked for any. */
  tell(progress: Progress): void {
    const token = this.#request?.meta?.["progressToken"];
    if (token === undefined || progress.progress <= this.#reached) return;
    this.#reached = progress.progress;
    this.#send("notifications/progress", { ...progress, progressToken: token });
  }

  /** Tells what a handler said; `logger` names the operation. */
  log({ level, message, data }: LogLine, logger: string): void {
    const isData = data !== undefined && toJsonTextOrNone(data) !== undefined;
    this.message(LEVELS[level] ?? "info", isData ? { message, data } : message, logger);
  }

  /** The same with a level of MCP. */
  message(level: McpLogLevel, data: unknown, logger: string | undefined): void {
    if (this.#request === undefined || !isHeard(level, this.#request.logLevel)) return;
    this.#send("notifications/message", { level, data, ...(logger !== undefined && { logger }) });
  }

  #send(method: string, params: Record<string, unknown>): void {
    // A client that has left hears nothing; the call itself finds out by its signal.
    this.#request?.notify(method, params);
  }

  #read(value: unknown): Progress | undefined {
    this.#told += 1;
    if (typeof value === "number") return Number.isFinite(value) ? { progress: value } : undefined;
    if (isPlainObject(value) && typeof (value["progress"] ?? value["done"]) === "number")
      return readFields(value);
    const counted = Math.max(this.#told, Number.isFinite(this.#reached) ? this.#reached + 1 : 1);
    const message = typeof value === "string" ? value : toJsonTextOrNone(value);
    return { progress: counted, ...(message !== undefined && { message }) };
  }
}

/** Tells whether a message is important enough. */
export function isHeard(level: McpLogLevel, least: McpLogLevel | "off" | undefined): boolean {
  if (least === "off") return false;
  return least === undefined || MCP_LOG_LEVELS.indexOf(level) >= MCP_LOG_LEVELS.indexOf(least);
}

/** What a request says about the trace it belongs to, and the key under which it must not run twice. */
export function metadataOf({ meta }: Pick<PeerRequest, "meta">): Metadata | undefined {
  if (meta === undefined) return undefined;
  const idempotencyKey = readIdempotencyKey(meta);
  let metadata: Record<string, string> | undefined;
  for (const key of TRACE_KEYS) {
    const value = Object.hasOwn(meta, key) ? meta[key] : undefined;
    if (typeof value !== "string" || value.length > MAX_TRACE) continue;
    metadata ??= {};
    metadata[key] = value;
  }
  return idempotencyKey === undefined ? metadata : { ...metadata, idempotencyKey };
}

/** The keys of `_meta` under which callers give a request id, the first one that holds one counts. */
const REQUEST_ID_KEYS = [REQUEST_ID_META_KEY, "requestId", "request_id", "correlation_id"];

/** The request id a caller gave; one that is not short and printable is as good as none. */
export function givenRequestId({ meta }: Pick<PeerRequest, "meta">): string | undefined {
  if (meta === undefined) return undefined;
  for (const name of REQUEST_ID_KEYS) {
    const value = Object.hasOwn(meta, name) ? meta[name] : undefined;
    if (isRequestId(value)) return value;
  }
  return undefined;
}

/** A key that cannot be used is refused: its client counts on it. */
function readIdempotencyKey(meta: Readonly<Record<string, unknown>>): string | undefined {
  const key = Object.hasOwn(meta, IDEMPOTENCY_META_KEY) ? meta[IDEMPOTENCY_META_KEY] : undefined;
  if (key === undefined || (typeof key === "string" && IDEMPOTENCY_KEY.test(key))) return key;
  throw invalidParams(`_meta["${IDEMPOTENCY_META_KEY}"] must be 1 to 255 printable characters.`);
}

/** `{ done, of }` is `{ progress, total }` in the words of a loop. */
function readFields(value: Readonly<Record<string, unknown>>): Progress | undefined {
  const { done, of, progress = done, total = of, message } = value;
  if (!Number.isFinite(progress)) return undefined;
  return {
    progress: progress as number,
    ...(Number.isFinite(total) && { total: total as number }),
    ...(typeof message === "string" && { message }),
  };
}
