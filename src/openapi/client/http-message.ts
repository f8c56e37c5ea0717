/** A request while it is put together; what is in it has been checked, and escaped where it needs to be. */
export interface RequestDraft {
  readonly method: string;
  /** Scheme, host and port, such as `https://api.example`. */
  readonly origin: string;
  /** Begins with `/`; without the query. */
  path: string;
  /** Escaped `name=value` pairs, in order. */
  readonly query: string[];
  /** Names in lower case. */
  readonly headers: Record<string, string>;
  /** Escaped `name=value` pairs, in order. */
  readonly cookies: string[];
  body: string | Uint8Array | undefined;
}

/** A request ready to be sent. */
export interface OutgoingRequest {
  readonly method: string;
  readonly origin: string;
  /** With the query; no fragment. */
  readonly path: string;
  /** Names in lower case; `host`, `connection` and `content-length` are the transport's. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
}

/** How one request is sent. */
export interface SendOptions {
  readonly signal: AbortSignal;
  /** Sending it twice does no harm: it may be tried again. */
  readonly repeatable: boolean;
}

/** The head of a response, after redirects. */
export interface ResponseHead {
  readonly status: number;
  /** Names in lower case; values of one name in the order they came. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** How often it was sent, the last time included. */
  readonly attempts: number;
  /** Where it came from in the end. */
  readonly url: string;
}

/** A response and all of its body, decoded. */
export interface WholeResponse extends ResponseHead {
  readonly body: Uint8Array;
  /** Whether the body said how long it is, or that it ended; one that did not may have been cut. */
  readonly delimited: boolean;
}

/** A response whose body arrives bit by bit, decoded; leaving the loop ends the exchange, a cut body is thrown. */
export interface StreamedResponse extends ResponseHead {
  readonly body: AsyncIterable<Uint8Array>;
  /** Whether the body says that it ended; one that does not may have been cut where it ends. */
  readonly delimited: boolean;
}
