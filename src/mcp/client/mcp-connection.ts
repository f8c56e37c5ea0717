import type { CallerSide } from "../../core/operation/caller-side.ts";
import type { SourceSecrets } from "../../core/secrets/source-secrets.ts";
import type { ServerLog } from "../provider.ts";

/** What one request over a connection may be told. */
export interface McpRequestOptions {
  readonly signal?: AbortSignal | undefined;
  /** @default 60_000 */
  readonly timeoutMs?: number | undefined;
  /** Hears the params of each `notifications/progress` of this request, without the token. */
  readonly onProgress?: ((progress: Readonly<Record<string, unknown>>) => void) | undefined;
  /** Who is asked when the server wants something while this request runs. */
  readonly caller?: CallerSide | undefined;
  /** Hears what the server logs while it can only be about requests of this `party`. @default nobody does */
  readonly onServerLog?: ((log: ServerLog) => void) | undefined;
  /** Who makes the request, compared by `===`: of several with the same one it need not be known which one is meant. @default nobody else */
  readonly party?: object | string | undefined;
  /** For `tools/call`: the input schema as listed, whose `x-mcp-header` members the 2026-07-28 revision mirrors in headers. */
  readonly inputSchema?: Readonly<Record<string, unknown>> | undefined;
}

/** What the server said about itself when it was last connected to. */
export interface McpServerFacts {
  /** The revision in use, such as "2025-11-25" or "2026-07-28". */
  readonly protocolVersion: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly serverInfo: Readonly<Record<string, unknown>> | undefined;
  readonly instructions: string | undefined;
}

/** How a connection is doing. */
export type McpConnectionState =
  | { readonly status: "connecting" | "ready" | "closed" }
  /** Lost; it is tried again at `retryAt` (Unix epoch milliseconds). */
  | { readonly status: "down"; readonly reason: string; readonly retryAt: number };

/** What a connection tells on its own account. */
export type McpConnectionEvent =
  | {
      readonly type: "notification";
      readonly method: string;
      readonly params: Readonly<Record<string, unknown>>;
    }
  | { readonly type: "state"; readonly state: McpConnectionState }
  /** Something odd that nobody is waiting for: noise on stdout, a message that is none. */
  | { readonly type: "oddity"; readonly message: string };

/** A live connection to one MCP server, which is made again when it is lost. */
export interface McpConnection {
  /** What of the server's words is passed on, and what is masked in its answers. */
  readonly secrets: SourceSecrets;
  /** Those of the present or the last connection. */
  readonly server: McpServerFacts;
  readonly state: McpConnectionState;
  /**
   * Sends a request and resolves with the `result` exactly as the server sent it, unchecked. Questions the server asks on the way
   * (`input_required`, `elicitation/create`, `sampling/createMessage`) go to the `caller` of the request. Rejects with a
   * `CallError`: `UNAVAILABLE` (no connection, or it was lost), `TIMEOUT`, `ABORTED`, `TOO_LARGE`, `UNAUTHENTICATED`,
   * `ACCESS_DENIED`, or for a JSON-RPC error what `src/mcp/client/rpc-error.ts` makes of its code.
   */
  request(
    method: string,
    params: Readonly<Record<string, unknown>> | undefined,
    options?: McpRequestOptions,
  ): Promise<Readonly<Record<string, unknown>>>;
  notify(method: string, params?: Readonly<Record<string, unknown>>): Promise<void>;
  /** Returns how to stop listening. */
  onEvent(listener: (event: McpConnectionEvent) => void): () => void;
  /** Ends it for good; every process of a stdio server is gone when it resolves. */
  close(): Promise<void>;
}
