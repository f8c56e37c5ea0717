import type { Identity } from "../core/access/identity.ts";

/** A request as every server of ours sees it, whatever it came in through. */
export interface HttpRequest {
  /** Upper case. */
  readonly method: string;
  /** Escaped as it came, without the query. */
  readonly path: string;
  /** Escaped as it came, without `?`; `""` where there is none. */
  readonly query: string;
  /** Scheme, host and port, as the request says. */
  readonly origin: string;
  /** The value of a header, by its name in lower case; several are joined with `, `. */
  header(name: string): string | undefined;
  /** The body, `TOO_LARGE` past the limit; empty where there is none. */
  body(limit: number): Promise<Uint8Array>;
  /** Aborts when the client leaves, or when `abort` is called; listened to with `addAbortListener` alone. */
  readonly signal: AbortSignal;
  /** Ends what is done for this request from this side. */
  abort(reason: unknown): void;
  /** Names the caller, once that is known and where callers are told apart; set by the server that finds it out. */
  owner?: string | undefined;
  /** Hears once that the client's connection has taken the answer, or never will; left out by hosts that cannot tell. */
  onSent?(listener: () => void): void;
  /** Whether another replica has brought it here, which is then not brought any further. @default false */
  readonly isLed?: boolean | undefined;
  /** For authentication of the caller's own making; made when asked for, without a body. */
  toRequest(): Request;
}

/** Header fields by their names in lower case. */
export type AnswerHeaders = Record<string, string | readonly string[]>;

/** What is answered; a body that is a stream is read no faster than the client takes it, and left when the client is. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<AnswerHeaders>;
  readonly body: string | Uint8Array | AsyncIterable<string> | undefined;
  /** Where the request can be answered, where that is not here. @default it was answered here */
  readonly heldBy?: HeldBy | undefined;
}

/** Says that another replica of the server holds what a request is about; a replica that can forward the request does so. */
export interface HeldBy {
  /** Names the replica. */
  readonly replica: string;
  /** What was posted. @default nothing was */
  readonly body?: Uint8Array | undefined;
  /** The answer where that replica cannot be reached; `isGone` where it is known to be there no more. */
  otherwise(isGone: boolean): Promise<HttpAnswer> | HttpAnswer;
}

/** A request whose caller is known, on its way to an operation. */
export interface AuthenticatedRequest {
  readonly request: HttpRequest;
  readonly identity: Identity | undefined;
  readonly requestId: string;
  /** The W3C trace context: as it came where that was right, else new. */
  readonly traceparent: string;
  readonly tracestate: string | undefined;
}

/** What of a request decides whether it is heard. */
export type RequestHead = Pick<HttpRequest, "method" | "path" | "origin" | "header">;

/** Why a request is not heard, to be written in the form the clients of an edge read. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
}
