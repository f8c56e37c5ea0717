import type { Identity } from "../../core/access/identity.ts";
import type { CallError } from "../../core/errors/errors.ts";
import type { JsonValue } from "../../core/json/json-value.ts";
import type { Metadata } from "../../core/operation/operation-context.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ResultFormat } from "../../core/result/result-format.ts";
import type { BearerAuth } from "../../http/bearer.ts";
import type { ApiKeyAuth } from "./api-keys.ts";

/** Who may call. */
export interface HttpAuthOptions {
  /** Signed bearer tokens that are believed. @default none */
  readonly bearer?: BearerAuth | undefined;
  /** Keys that are believed. @default none */
  readonly apiKeys?: ApiKeyAuth | undefined;
}

/** Bounds of an HTTP API. */
export interface HttpHandlerLimits {
  /** Bytes of one request's body. @default 4_194_304 */
  readonly bodyBytes?: number | undefined;
  /** Calls in one batch. @default 100 */
  readonly batch?: number | undefined;
  /** Calls that run, whose bodies are being read, or whose answers are not read yet; one more is `RESOURCE_EXHAUSTED`. @default 10_000 */
  readonly calls?: number | undefined;
  /** The longest time a caller may ask for, in milliseconds, and what is taken where none is asked for. @default 60_000 */
  readonly timeoutMs?: number | undefined;
  /**
   * Subscriptions open or waiting to be resumed, of which one caller has a quarter where callers are told apart; of those that wait, the
   * longest waiting gives way to a new one. @default 1_000
   */
  readonly streams?: number | undefined;
  /** Events of one subscription kept for a client that comes back. @default 256 */
  readonly streamEvents?: number | undefined;
  /** Bytes of those events. @default 1_048_576 */
  readonly streamBytes?: number | undefined;
  /** The same of all subscriptions together; where it is reached, each keeps the last event alone. @default 67_108_864 */
  readonly allStreamBytes?: number | undefined;
  /** How long a subscription waits for its client to come back, in milliseconds. @default 30_000 */
  readonly resumeMs?: number | undefined;
  /**
   * Outcomes kept for idempotency keys, all callers together; where callers are told apart, one has a quarter of it. A new key beyond that
   * is `RESOURCE_EXHAUSTED`: none is forgotten before its time. @default 10_000
   */
  readonly idempotencyKeys?: number | undefined;
  /** Bytes of those outcomes as JSON, of which one caller among others has a quarter. @default 67_108_864 */
  readonly idempotencyBytes?: number | undefined;
  /** How long they are kept, in milliseconds. @default 86_400_000 */
  readonly idempotencyMs?: number | undefined;
}

/** What the document says about the API as a whole. */
export interface ApiInfo {
  /** @default "Waybill" */
  readonly title?: string | undefined;
  /** @default "1.0.0" */
  readonly version?: string | undefined;
  /** @default none */
  readonly description?: string | undefined;
}

/** What is written into an OpenAPI document. */
export interface ToOpenApiOptions {
  /** What the API is called. @default those of each */
  readonly info?: ApiInfo | undefined;
  /**
   * Where the API is reached: addresses, or references relative to that of the document. Give it where a proxy or a framework serves the
   * API under another address. @default the address that the document was asked for at; `["."]` for `toOpenApi`
   */
  readonly servers?: readonly string[] | undefined;
  /** What the operations' paths begin with. @default "/api" */
  readonly basePath?: string | undefined;
  /** Whose view is described. @default an anonymous caller's */
  readonly identity?: Identity | undefined;
  /** Formats that may be asked for besides data and envelope. @default none */
  readonly formats?: readonly ResultFormat[] | undefined;
  /** Which ways of authentication are described. @default none */
  readonly auth?:
    | { readonly bearer?: boolean | undefined; readonly apiKeyHeader?: string | undefined }
    | undefined;
  /** Inputs to show, by operation id. @default made up from the schemas */
  readonly examples?: Readonly<Record<string, JsonValue>> | undefined;
  /** Hears of schemas that are refused, of which the document says nothing. @default console.warn */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

/** How a call ended: it gave a result, ran and said no, or never ran or broke. */
export interface CallEnding {
  readonly outcome: "ok" | "tool_error" | "call_error";
  /** Of an error. */
  readonly code?: string | undefined;
}

/** A call that was not run: it repeats another one, and was answered as that one was. */
export interface ReplayedCall extends CallEnding {
  readonly operation: AnyOperation;
  readonly input: unknown;
  readonly requestId: string;
  readonly identity: Identity | undefined;
  readonly metadata: Metadata;
  /** Waiting for the first one included, where that still ran. */
  readonly durationMs: number;
}

/** How an HTTP API is reached, by whom, and within which bounds. */
export interface HttpHandlerOptions extends Omit<ToOpenApiOptions, "identity" | "auth"> {
  /** Which credentials are believed; every caller needs one. @default all callers are anonymous */
  readonly auth?: HttpAuthOptions | undefined;
  /**
   * Says who makes a request, in place of `auth`; nothing, or `null`, is an anonymous caller, and a `CallError` it throws a refusal.
   * @default all callers are anonymous
   */
  readonly authenticate?:
    | ((request: Request) => Identity | null | undefined | Promise<Identity | null | undefined>)
    | undefined;
  /**
   * Tells whether a caller who was let in still is: looked at once the body of a request has arrived, when a subscription begins, and for open
   * subscriptions whenever `recheck` is called. @default they are
   */
  readonly isCurrent?: ((identity: Identity | undefined) => boolean) | undefined;
  /** Hears of calls that were answered with what the first one of their idempotency key came to. @default nobody does */
  readonly onReplay?: ((call: ReplayedCall) => void) | undefined;
  /**
   * Names this API is reached under besides those of the loopback interface. `"any"` gives up the protection against DNS
   * rebinding. @default loopback names only
   */
  readonly hosts?: readonly string[] | "any" | undefined;
  /** Origins of web pages that may use this API; they get CORS headers. @default none */
  readonly origins?: readonly string[] | undefined;
  /** @default those of each */
  readonly limits?: HttpHandlerLimits | undefined;
  /**
   * Names the representation for a caller who accepts anything: `data`, `envelope`, or one of `formats`. Anything else, or nothing, is
   * data. @default data for everybody
   */
  readonly formatOf?: ((identity: Identity | undefined) => string | undefined) | undefined;
  /** Says why there is no operation of that id, where that is known and this caller may know it; else there is none. @default nothing is known */
  readonly explainMissing?:
    | ((operationId: string, identity: Identity | undefined) => CallError | undefined)
    | undefined;
  /** Which ways of authentication the document and the page speak of where `authenticate` decides. @default none */
  readonly describedAuth?: ToOpenApiOptions["auth"];
  /** Serves `/docs`, with `swagger-ui-dist` where that is installed. @default true */
  readonly docs?: boolean | undefined;
  /** Hears of faults of this side, which clients are told nothing about. @default console.warn */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}
