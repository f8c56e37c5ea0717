import type { Identity } from "../../core/access/identity.ts";
import type { McpTransport } from "../channels/channel.ts";
import type { Params } from "../protocol/messages.ts";
import type { IncomingRequest, Peer } from "./peer-request.ts";
import type { SealingKeys } from "./sealing-keys.ts";

/** The caller, as the transport says; nothing where it does not say, "anonymous" where it says that it is nobody. */
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

/** What makes a server one of several replicas. */
export interface ServerShare {
  readonly keys: SealingKeys;
  /** Names this replica in what clients bring back: eight hexadecimal digits. */
  readonly replica: string;
  /** Whether requests are brought to the replica that holds what they are about, as `heldBy` of an answer says. */
  readonly leads: boolean;
}

/** What the channels of this folder know of a server. */
export interface ChannelServer extends McpServer {
  /** What it says of itself to clients. */
  readonly info: Readonly<Record<string, unknown>>;
  readonly capabilities: ServerCapabilities;
  /** What replicas of the server share; nothing where it is alone. */
  readonly share: ServerShare | undefined;
  /** Who is asking where the transport does not say. */
  identify(asking: AskingIdentity): Identity | undefined;
  /** The scopes that a call of a tool needs and its caller lacks; nothing where that is no matter. */
  lackingScopes(body: unknown, identity: Identity): readonly string[] | undefined;
  /** The result of a request as JSON text; whatever is thrown is a `ProtocolError`. */
  answer(peer: Peer, request: IncomingRequest): Promise<string>;
  /** Hears that the server closes, once, unless the function it returns is called before. */
  onClose(listener: () => void): () => void;
  /** Tells a peer of changes until the function it returns is called. */
  follow(peer: Peer): () => void;
  /** Tells a peer that all it listens to may have changed: what was told it lately is lost. */
  tellAll(peer: Peer): void;
  /** Subscribes a peer to resources; those that cannot be subscribed to do not change for anybody. */
  subscribe(peer: Peer, uris: readonly string[]): Promise<void>;
  /** Tells a 2026-07-28 client of every change of a task, for as long as it runs; nothing where the client sees none of that id. */
  followTask(
    peer: Peer,
    task: FollowedTask,
    tell: (params: object) => void,
  ): Promise<(() => void) | undefined>;
  /** Answers the calls under way with `UNAVAILABLE`, before `close` ends them without a word. */
  giveUpCalls(): void;
}

/** A task that a client follows, and the params with which it asked to. */
export interface FollowedTask {
  readonly id: string;
  readonly params: Params;
}

/** What a server offers, in the words of the protocol. */
export interface ServerCapabilities {
  readonly tools?: { readonly listChanged?: boolean };
  readonly logging?: object;
  readonly resources?: { readonly listChanged?: boolean; readonly subscribe?: boolean };
  readonly prompts?: { readonly listChanged?: boolean };
  readonly completions?: object;
  /** Of 2025-11-25 alone. */
  readonly tasks?: object;
  readonly extensions?: Readonly<Record<string, object>>;
}
