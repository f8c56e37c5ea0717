import type { JsonSchema } from "../../core/schema/json-schema.ts";
import type { PassedOn } from "../../core/secrets/source-secrets.ts";
import type { AuthOptions } from "./auth/credentials.ts";

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
  /** Requests in a period; more wait. @default as many as there are */
  readonly rate?: { readonly requests: number; readonly perMs: number } | undefined;
  /** Requests that wait for their turn before one more is `RESOURCE_EXHAUSTED`. @default 10_000 */
  readonly queue?: number | undefined;
  readonly retries?: RetryOptions | false | undefined;
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

/** When a request that failed is sent again, which only repeatable ones are. */
export interface RetryOptions {
  /** Attempts, the first included. @default 3 */
  readonly attempts?: number | undefined;
  /** Milliseconds before the second attempt; doubled for each further one, and varied. @default 200 */
  readonly delayMs?: number | undefined;
  /** The longest wait, one that the server asks for with `Retry-After` included; past it, the error is thrown. @default 20_000 */
  readonly maxDelayMs?: number | undefined;
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
