import { isPlainObject } from "../../core/json/json-value.ts";
import { checkNames, checkOption } from "../../core/options/check-options.ts";
import type { RateOptions, RetryOptions } from "../../core/options/shared-options.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import { checkPassedOn, type PassedOn } from "../../core/secrets/secret-mask.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { AuthOptions } from "./auth/credentials.ts";
import { checkPagingRule } from "./paging/paging-rule.ts";
import { checkOptionHeaders } from "./request/input-text.ts";
import { checkTransportOptions, TRANSPORT_OPTIONS } from "./transport/transport-settings.ts";

/** How the pages of an operation are asked for. */
export type PagingRule =
  /** The next page is named by a `Link` header with `rel="next"`. */
  | { readonly style: "link" }
  | {
      readonly style: "cursor";
      /** The input that takes the cursor. */
      readonly input: string;
      /** JSON pointer to the next cursor in the data, or the name of a response header. */
      readonly next: string;
    }
  | {
      readonly style: "offset" | "page";
      /** The input that takes the offset or the number of the page. */
      readonly input: string;
      /** The input that says how many items a page has. */
      readonly size?: string | undefined;
      /** JSON pointer to the items; a page without any is the last. @default the data itself, where it is a list */
      readonly items?: string | undefined;
    };

/** What is changed about one operation. */
export interface OperationOverlay {
  /** Another name than the document's. */
  readonly name?: string | undefined;
  /** Leaves it out. @default false */
  readonly hide?: boolean | undefined;
  /** Whether it only reads: makes a query of it, or a mutation. */
  readonly readOnly?: boolean | undefined;
  /** Sending it twice does no harm, so it may be tried again. @default by its method */
  readonly idempotent?: boolean | undefined;
  /** Reads its answer as a stream, or not. */
  readonly stream?: boolean | undefined;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  /** Merged into the schema of the input (RFC 7396). */
  readonly input?: JsonSchema | undefined;
  /** Merged into the schema of the data (RFC 7396). */
  readonly output?: JsonSchema | undefined;
  /** The media type of the body that is sent, of those declared. @default JSON, then forms, then what comes first */
  readonly contentType?: string | undefined;
  /** Merged into the operation object of the document (RFC 7396). */
  readonly patch?: Readonly<Record<string, unknown>> | undefined;
  /** `false` where what looks like paging is none. @default found in the document */
  readonly paging?: PagingRule | false | undefined;
}

/** Mends a document without editing it. */
export interface OpenApiOverlay {
  /** Merged into the document (RFC 7396), such as `{ servers: [...] }`. */
  readonly document?: Readonly<Record<string, unknown>> | undefined;
  /** By `operationId`, or method and path such as `"GET /pets/{id}"`. */
  readonly operations?: Readonly<Record<string, OperationOverlay>> | undefined;
}

/** Bounds of what is read of documents. */
export interface DocumentLimits {
  /** Bytes of one file. @default 67_108_864 */
  readonly documentBytes?: number | undefined;
  /** Files of one document, those that cannot be read included. @default 1_000 */
  readonly files?: number | undefined;
  /** Operations of one document. @default 20_000 */
  readonly operations?: number | undefined;
}

/** Bounds of requests and responses. */
export interface TransportLimits {
  /** Bytes of one response, decoded. @default 33_554_432 */
  readonly responseBytes?: number | undefined;
  /** How many times its size on the wire a response may become when it is decoded, past the first megabyte. @default 100 */
  readonly decodedRatio?: number | undefined;
  /** Bytes of the header section of a response. @default 65_536 */
  readonly headerBytes?: number | undefined;
  /** Bytes of one request's body. @default 33_554_432 */
  readonly requestBytes?: number | undefined;
  /** Characters of the address of a request. @default 32_768 */
  readonly urlCharacters?: number | undefined;
  /** Bytes of one event of a stream. @default 4_194_304 */
  readonly eventBytes?: number | undefined;
}

/** How requests of one source are sent. */
export interface TransportOptions {
  /** Milliseconds for one attempt, until its body has arrived or its stream begun. @default 30_000 */
  readonly timeoutMs?: number | undefined;
  /** Milliseconds to connect. @default 10_000 */
  readonly connectTimeoutMs?: number | undefined;
  /** Milliseconds a stream may be silent. @default 300_000 */
  readonly idleTimeoutMs?: number | undefined;
  /** Requests at a time, all operations together; more wait. @default 64 */
  readonly concurrency?: number | undefined;
  /** Calls in a period, each request counted; more wait. @default as many as there are */
  readonly rate?: RateOptions | undefined;
  /** Requests that wait for their turn before one more is `RESOURCE_EXHAUSTED`. @default 10_000 */
  readonly queue?: number | undefined;
  /** When a request that failed is sent again, which only repeatable ones are. @default three attempts */
  readonly retry?: RetryOptions | false | undefined;
  /** Redirects that are followed; 0 makes one an error. @default 5 */
  readonly redirects?: number | undefined;
  /**
   * Hosts whose addresses may be private: `host:port`, `host` for ports 80 and 443, `host:*` for every port; `true` for every host.
   * @default only the hosts and ports that the options themselves name
   */
  readonly allowPrivate?: readonly string[] | boolean | undefined;
  /** Accepts text and bytes that end with the connection: nobody can tell whether they were cut. @default false */
  readonly allowUndelimited?: boolean | undefined;
}

/** How an API is imported and called. */
export interface OpenApiOptions extends TransportOptions, PassedOn {
  /** The first part of every operation's id. */
  readonly namespace: string;
  /** Gives operations of a document that Waybill wrote their own ids back, namespaces included. @default false */
  readonly keepIds?: boolean | undefined;
  /** Where the API is, in place of what the document says. */
  readonly baseUrl?: string | URL | undefined;
  /** Which server of the document: its place in the list, its name, or its URL as written there. @default 0 */
  readonly server?: number | string | undefined;
  /** Values for the variables in the server's URL. @default those of the document */
  readonly serverVariables?: Readonly<Record<string, string>> | undefined;
  /** Credentials by the name of their scheme, or by kind: `bearer`, `basic`, `apiKey`, `oauth2`. @default none */
  readonly auth?: AuthOptions | undefined;
  /**
   * Origins besides the API's own that get credentials and headers, such as `https://uploads.example`: the own one is that of
   * `baseUrl`, or of the server the document names first. @default none
   */
  readonly authOrigins?: readonly string[] | undefined;
  /** Sent with every request to the API's own origin, and with those for the document to the document's. @default none */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sends `traceparent` of a call's metadata on. @default false */
  readonly trace?: boolean | undefined;
  readonly overlay?: OpenApiOverlay | readonly OpenApiOverlay[] | undefined;
  readonly limits?: (DocumentLimits & TransportLimits) | undefined;
  /** Hears what is odd about a document and not worth an error. @default console.warn */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

const OWN = Object.keys({
  namespace: true,
  keepIds: true,
  baseUrl: true,
  server: true,
  serverVariables: true,
  auth: true,
  authOrigins: true,
  headers: true,
  trace: true,
  overlay: true,
  limits: true,
  said: true,
  maskResults: true,
  secrets: true,
  onWarning: true,
} satisfies Record<Exclude<keyof OpenApiOptions, keyof TransportOptions>, true>);

const OVERLAY = ["document", "operations"] satisfies (keyof OpenApiOverlay)[];
const OPERATION_OVERLAY = Object.keys({
  name: true,
  hide: true,
  readOnly: true,
  idempotent: true,
  stream: true,
  title: true,
  description: true,
  input: true,
  output: true,
  contentType: true,
  patch: true,
  paging: true,
} satisfies Record<keyof OperationOverlay, true>);

const LIMITS = Object.keys({
  documentBytes: true,
  files: true,
  operations: true,
  responseBytes: true,
  decodedRatio: true,
  headerBytes: true,
  requestBytes: true,
  urlCharacters: true,
  eventBytes: true,
} satisfies Record<keyof (DocumentLimits & TransportLimits), true>);

const NAMESPACE = /^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$/;

/** Throws a `TypeError` that names what cannot work about a document or options, before anything is read. */
export function checkOpenApiOptions(document: unknown, options: OpenApiOptions): void {
  checkDocument(document);
  if (!isPlainObject(options)) {
    throw new TypeError('fromOpenApi takes options as its second argument, such as { namespace: "github" }.');
  }
  checkNames(options, [...OWN, ...TRANSPORT_OPTIONS]);
  const { namespace, keepIds, baseUrl, server, trace, onWarning } = options;
  if (typeof namespace !== "string" || !NAMESPACE.test(namespace)) {
    throw new TypeError(
      'namespace must be letters, digits, "_" and "-", at most 64: the first part of every operation\'s id.',
    );
  }
  checkPassedOn(options);
  checkOption("keepIds", keepIds, "true or false", typeof keepIds === "boolean");
  checkOption("trace", trace, "true or false", typeof trace === "boolean");
  checkOption("onWarning", onWarning, "a function", typeof onWarning === "function");
  checkOption("baseUrl", baseUrl, "an http or https URL without user or password", isBaseUrl(baseUrl));
  const isServer = typeof server === "string" || (Number.isInteger(server) && Number(server) >= 0);
  checkOption(
    "server",
    server,
    "a place in the document's list of servers, a name or a URL of one",
    isServer,
  );
  for (const name of ["serverVariables", "headers"] as const) {
    checkOption(name, options[name], "an object of strings", isStrings(options[name]));
  }
  checkOption("auth", options.auth, "an object of credentials by scheme", isPlainObject(options.auth));
  checkOption(
    "authOrigins",
    options.authOrigins,
    "a list of http or https origins",
    isOrigins(options.authOrigins),
  );
  checkOption("limits", options.limits, "an object of numbers", isPlainObject(options.limits));
  checkNames(options.limits ?? {}, LIMITS, "limits.");
  checkOptionHeaders(options.headers);
  checkTransportOptions(options);
  for (const overlay of [options.overlay ?? []].flat()) checkOverlay(overlay);
}

function checkDocument(document: unknown): void {
  const isName = (typeof document === "string" && document !== "") || document instanceof URL;
  if (isName || isPlainObject(document)) return;
  throw new TypeError("The document must be a path, a URL, or the parsed document itself.");
}

function checkOverlay(overlay: unknown): void {
  checkOption("overlay", overlay, "an object, or a list of them", isPlainObject(overlay));
  const { document, operations = {} } = overlay as OpenApiOverlay;
  checkNames(overlay as object, OVERLAY, "overlay.");
  checkOption("overlay.document", document, "an object to merge into the document", isPlainObject(document));
  checkOption("overlay.operations", operations, "an object by operation", isPlainObject(operations));
  for (const [key, operation] of Object.entries(operations)) {
    const name = `overlay.operations[${JSON.stringify(key.slice(0, 80))}]`;
    checkOption(name, operation, "an object", isPlainObject(operation));
    checkNames(operation, OPERATION_OVERLAY, `${name}.`);
    checkOperationOverlay(name, operation);
  }
}

const FLAGS = ["hide", "readOnly", "idempotent", "stream"] as const;
const TEXTS = ["name", "title", "description", "contentType"] as const;
const PATCHES = ["input", "output", "patch"] as const;

function checkOperationOverlay(name: string, overlay: OperationOverlay): void {
  checkPagingRule(overlay.paging, `${name}.paging`);
  for (const flag of FLAGS) {
    checkOption(`${name}.${flag}`, overlay[flag], "true or false", typeof overlay[flag] === "boolean");
  }
  for (const text of TEXTS) {
    checkOption(`${name}.${text}`, overlay[text], "a string", typeof overlay[text] === "string");
  }
  for (const patch of PATCHES) {
    checkOption(`${name}.${patch}`, overlay[patch], "an object to merge", isPlainObject(overlay[patch]));
  }
}

function isOrigins(value: unknown): boolean {
  return Array.isArray(value) && value.every(isBaseUrl);
}

function isBaseUrl(value: unknown): boolean {
  if (!(typeof value === "string" || value instanceof URL) || parseUrl(String(value)) === undefined)
    return false;
  const { protocol, username, password } = new URL(value);
  return /^https?:$/.test(protocol) && username === "" && password === "";
}

function isStrings(value: unknown): boolean {
  return isPlainObject(value) && Object.values(value).every((entry) => typeof entry === "string");
}
