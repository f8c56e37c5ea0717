import type { Server } from "@modelcontextprotocol/server";
import type { Identity } from "../../core/access/identity.ts";

/** A change that clients may want to hear of. */
export type McpServerEvent =
  | { readonly kind: "tools_list_changed" | "resources_list_changed" | "prompts_list_changed" }
  | { readonly kind: "resource_updated"; readonly uri: string };

/** For whom a server of the SDK is made: one connection, or one request where there is none. */
export interface McpPeer {
  /** "modern" for the revision 2026-07-28 and later. */
  readonly era: "legacy" | "modern";
  /**
   * Who is asking; a request that carries an identity of its own (see `peer-identity.ts`) wins. Nothing where the transport does
   * not say, which gives the peer the identity of the server's options, if any; "anonymous" where it says that it is nobody.
   */
  readonly identity?: Identity | "anonymous" | undefined;
  /** Whether the server may send notifications nobody asked for, over a stream that stays open. */
  readonly stays: boolean;
  /** Whether whoever writes messages puts lists in that are text already; see `spliced-list.ts`. @default false */
  readonly splices?: boolean | undefined;
}

/** Operations, resources and prompts ready to be served to MCP clients; `serveStdio` and `createMcpHandler` do that. */
export interface McpServer {
  /** Whether `close` was called: then nobody new is served, and over HTTP the answer is 503. @default false */
  readonly isClosed?: boolean;
  /** Makes a server of the SDK with everything in it, for one peer; it is closed by whoever asked for it. Throws once closed. */
  open(peer: McpPeer): Server;
  /** Returns how to stop listening. */
  onEvent(listener: (event: McpServerEvent) => void): () => void;
  /** Answers the calls under way with `UNAVAILABLE`, before `close` ends them without a word. */
  giveUpCalls?(): void;
  /**
   * Refuses new peers from now on, ends those there are with what runs for them, and stops following changes. The executor, the
   * providers and whatever listens (`serveMcpHttp`) go on until they are closed themselves.
   */
  close(): Promise<void>;
}
