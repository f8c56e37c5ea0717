import type { Identity } from "../../core/access/identity.ts";
import type { CallError } from "../../core/errors/errors.ts";
import type { JsonValue } from "../../core/json/json-value.ts";
import type { Metadata } from "../../core/operation/operation-context.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import { checkOption, checkOptionsObject } from "../../core/options/check-options.ts";
import type { Executor } from "../../core/registry/executor.ts";
import type { ResultFormat } from "../../core/result/result-reader.ts";
import type { Tasks } from "../../core/tasks/tasks.ts";
import {
  checkAuthentication,
  type HttpAuthenticationOptions,
  type StepUp,
} from "../../http/authentication.ts";
import type { HostGuardOptions } from "../../http/host-guard.ts";
import type { OperationDirectory } from "./operation-routes.ts";

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

/** How a call ended: it gave a result, ran and reported an error, or never ran or broke. */
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
export interface HttpHandlerOptions
  extends Omit<ToOpenApiOptions, "identity" | "auth">,
    HttpAuthenticationOptions,
    HostGuardOptions {
  /**
   * Tells whether a caller who was let in still is: looked at once the body of a request has arrived, when a subscription begins, and for open
   * subscriptions whenever `recheck` is called. @default they are
   */
  readonly isCurrent?: ((identity: Identity | undefined) => boolean) | undefined;
  /**
   * Writes the `WWW-Authenticate` of a 403 for lack of scopes, where `authenticate` says who calls. @default as `auth.bearer` says
   */
  readonly stepUp?: StepUp | undefined;
  /** Hears of calls that were answered with what the first one of their idempotency key came to. @default nobody does */
  readonly onReplay?: ((call: ReplayedCall) => void) | undefined;
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
  /** Lets clients call now and fetch the result later, with `Prefer: respond-async` and at `/tasks`. @default they cannot */
  readonly tasks?: Tasks | undefined;
  /** What `GET /operations` tells. @default it is not served */
  readonly directory?: OperationDirectory | undefined;
  /** Which ways of authentication the document and the page speak of where `authenticate` decides. @default none */
  readonly describedAuth?: ToOpenApiOptions["auth"];
  /** Serves `/docs`, with `swagger-ui-dist` where that is installed. @default true */
  readonly docs?: boolean | undefined;
  /** Hears of faults of this side, which clients are told nothing about. @default console.warn */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

/** The bounds of an HTTP API where none are given. */
export const HTTP_BOUNDS = {
  bodyBytes: 4_194_304,
  batch: 100,
  calls: 10_000,
  timeoutMs: 60_000,
  streams: 1_000,
  streamEvents: 256,
  streamBytes: 1_048_576,
  allStreamBytes: 67_108_864,
  resumeMs: 30_000,
  idempotencyKeys: 10_000,
  idempotencyBytes: 67_108_864,
  idempotencyMs: 86_400_000,
} as const satisfies Required<HttpHandlerLimits>;

/** The bounds of an HTTP API, every one with a number. */
export type HttpHandlerBounds = Readonly<Record<keyof typeof HTTP_BOUNDS, number>>;

/** Names of the options that say what is written into a document, for every writer of it. */
const DOCUMENT_OPTIONS = Object.keys({
  info: true,
  servers: true,
  basePath: true,
  formats: true,
  examples: true,
  onWarning: true,
} satisfies Record<keyof DocumentOptions, true>);

type DocumentOptions = Omit<ToOpenApiOptions, "identity" | "auth">;

const BASE_PATH = /^(?:\/[\w.~-]+)+$/;
/** First segments of paths that are served beside those of the operations. */
const RESERVED = ["call", "batch", "tasks", "health", "ready", "docs", "openapi.json", ".well-known"];
const FORMAT_NAME = /^[a-z0-9][a-z0-9.-]{0,63}$/i;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

const NAMES = [
  ...DOCUMENT_OPTIONS,
  ...Object.keys({
    auth: true,
    authenticate: true,
    isCurrent: true,
    stepUp: true,
    onReplay: true,
    hosts: true,
    origins: true,
    limits: true,
    docs: true,
    formatOf: true,
    explainMissing: true,
    directory: true,
    tasks: true,
    describedAuth: true,
  } satisfies Record<Exclude<keyof HttpHandlerOptions, keyof ToOpenApiOptions> | "auth", true>),
];

/** Throws a `TypeError` for options that cannot work, or are none; `more` are the names that a caller adds, among options and limits. */
export function checkHandlerOptions(
  options: HttpHandlerOptions,
  more: { readonly options?: readonly string[]; readonly limits?: readonly string[] } = {},
): void {
  if (typeof options === "object" && options !== null && "cors" in options) {
    throw new TypeError('There is no option "cors": name the origins of pages that may call in "origins".');
  }
  checkOptionsObject(options, [...NAMES, ...(more.options ?? [])]);
  const { limits } = options;
  if (limits !== undefined)
    checkOptionsObject(limits, [...Object.keys(HTTP_BOUNDS), ...(more.limits ?? [])], "limits.");
  checkDocumentOptions(options);
  const { docs } = options;
  checkAuthentication(options);
  for (const name of ["isCurrent", "stepUp", "onReplay", "formatOf", "explainMissing"] as const) {
    checkOption(name, options[name], "a function", typeof options[name] === "function");
  }
  const { describedAuth, directory } = options;
  checkOption("directory", directory, "an object", typeof directory === "object" && directory !== null);
  if (describedAuth !== undefined) checkDescribedAuth(describedAuth, "describedAuth");
  checkOption("docs", docs, "true or false", typeof docs === "boolean");
  const { tasks } = options;
  checkOption("tasks", tasks, "what `new Tasks()` makes", typeof tasks?.start === "function");
}

/** Throws a `TypeError` for what cannot run operations. */
export function checkExecutor(executor: Executor, taker: string): void {
  const isExecutor = ["execute", "subscribe", "list", "get", "onChange"].every(
    (name) =>
      typeof (executor as unknown as Record<string, unknown> | null | undefined)?.[name] === "function",
  );
  if (!isExecutor) {
    throw new TypeError(`${taker} takes what can run operations first, such as an OperationRegistry.`);
  }
}

/** Throws a `TypeError` for options of a document that cannot work, or are none. */
export function checkToOpenApiOptions(options: ToOpenApiOptions): void {
  checkOptionsObject(options, [...DOCUMENT_OPTIONS, "identity", "auth"]);
  checkDocumentOptions(options);
  const { identity, auth } = options;
  checkOption("identity", identity, "an object", typeof identity === "object" && identity !== null);
  if (auth !== undefined) checkDescribedAuth(auth, "auth");
}

/** Throws a `TypeError` for ways of authentication that cannot be described. */
function checkDescribedAuth(auth: NonNullable<ToOpenApiOptions["auth"]>, option: string): void {
  checkOptionsObject(auth, ["bearer", "apiKeyHeader"], `${option}.`);
  const { bearer, apiKeyHeader: header } = auth;
  checkOption(`${option}.bearer`, bearer, "true or false", typeof bearer === "boolean");
  const isHeader = typeof header === "string" && HEADER_NAME.test(header);
  checkOption(`${option}.apiKeyHeader`, header, "the name of a header", isHeader);
}

/** The same for those options alone that `serveHttp`, `createHttpHandler` and `toOpenApi` share. */
function checkDocumentOptions(options: DocumentOptions): void {
  const { info, servers, formats, examples, onWarning } = options;
  if (info !== undefined) checkOptionsObject(info, ["title", "version", "description"], "info.");
  for (const name of ["title", "version", "description"] as const) {
    checkOption(`info.${name}`, info?.[name], "text", typeof info?.[name] === "string");
  }
  const areAddresses =
    Array.isArray(servers) && servers.every((url) => typeof url === "string" && url !== "");
  checkOption("servers", servers, 'a list of addresses such as "https://api.example/v1"', areAddresses);
  checkBasePath(options.basePath);
  checkOption("formats", formats, "a list of formats", Array.isArray(formats));
  for (const format of formats ?? []) checkFormat(format?.name);
  const isObject = typeof examples === "object" && examples !== null && !Array.isArray(examples);
  checkOption("examples", examples, "an object with inputs by the id of their operation", isObject);
  checkOption("onWarning", onWarning, "a function", typeof onWarning === "function");
}

function checkBasePath(basePath: unknown): void {
  const isPath =
    typeof basePath === "string" && BASE_PATH.test(basePath) && !/\/\.{1,2}(?:\/|$)/.test(basePath);
  checkOption("basePath", basePath, 'a path such as "/api", without a slash at its end', isPath);
  const [, first = ""] = typeof basePath === "string" ? basePath.split("/") : [];
  if (RESERVED.includes(first)) {
    throw new TypeError(`basePath must not begin with "/${first}", where something else is served.`);
  }
}

function checkFormat(name: unknown): void {
  if (typeof name === "string" && FORMAT_NAME.test(name) && !/^(?:data|envelope)$/i.test(name)) return;
  throw new TypeError('formats must have names that fit a media type, and none of "data" and "envelope".');
}
