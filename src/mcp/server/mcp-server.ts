import type { Identity } from "../../core/access/identity.ts";
import type { McpTransport } from "../channels/transport-channel.ts";
import type { Peer } from "./peer.ts";
import type { IncomingRequest } from "./peer-request.ts";

/** Whoever a transport says is asking; nothing where it does not say, "anonymous" where it says that it is nobody. */
export type AskingIdentity = Identity | "anonymous" | undefined;

/** A list that clients can hear the changes of. */
export type ListKind = "tools" | "resources" | "prompts";

/** How a client is served over a transport. */
export interface ConnectOptions {
  /** Who the client is. @default the identity of the server's options */
  readonly identity?: Identity | undefined;
}

/** Operations, resources and prompts ready to be served to MCP clients; `serveStdio` and `createMcpHandler` do that. */
export interface McpServer {
  /** Whether `close` was called: then nobody new is served, and over HTTP the answer is 503. */
  readonly isClosed: boolean;
  /** Serves one client over a transport that somebody else made, such as one in memory, until it closes. */
  connect(transport: McpTransport, options?: ConnectOptions): Promise<void>;
  /**
   * Refuses new clients from now on, ends those there are with what runs for them, and stops following changes. The executor, the
   * providers and whatever listens (`serveMcpHttp`) go on until they are closed themselves.
   */
  close(): Promise<void>;
}

/** What the channels of this folder know of a server. */
export interface ServedMcp extends McpServer {
  /** What it says of itself to clients. */
  readonly info: Readonly<Record<string, unknown>>;
  readonly capabilities: ServerCapabilities;
  /** Who is asking where the transport does not say. */
  identify(asking: AskingIdentity): Identity | undefined;
  /** The result of a request as JSON text; whatever is thrown is a `ProtocolError`. */
  answer(peer: Peer, request: IncomingRequest): Promise<string>;
  /** Hears that the server closes, once, unless the function it returns is called before. */
  onClose(listener: () => void): () => void;
  /** Tells a peer of changes until the function it returns is called. */
  follow(peer: Peer): () => void;
  /** Subscribes a peer to resources; those that cannot be subscribed to do not change for anybody. */
  subscribe(peer: Peer, uris: readonly string[]): Promise<void>;
  /** Answers the calls under way with `UNAVAILABLE`, before `close` ends them without a word. */
  giveUpCalls(): void;
}

/** What a server offers, in the words of the protocol. */
export interface ServerCapabilities {
  readonly tools?: { readonly listChanged?: boolean };
  readonly logging?: object;
  readonly resources?: { readonly listChanged?: boolean; readonly subscribe?: boolean };
  readonly prompts?: { readonly listChanged?: boolean };
  readonly completions?: object;
  readonly extensions?: Readonly<Record<string, object>>;
}
