import type { Identity } from "../core/access/identity.ts";
import type { CallerSide } from "../core/operation/caller-side.ts";

/** A resource as MCP lists it; fields beyond these are kept. */
export interface McpResource {
  readonly uri: string;
  readonly name: string;
  readonly [field: string]: unknown;
}

/** A family of resources under a URI template (RFC 6570). */
export interface McpResourceTemplate {
  readonly uriTemplate: string;
  readonly name: string;
  readonly [field: string]: unknown;
}

/** A prompt as MCP lists it. */
export interface McpPrompt {
  readonly name: string;
  readonly arguments?: readonly { readonly name: string; readonly required?: boolean }[] | undefined;
  readonly [field: string]: unknown;
}

/** What `resources/read` answers. */
export interface McpResourceContents {
  readonly contents: readonly Readonly<Record<string, unknown>>[];
  readonly [field: string]: unknown;
}

/** What `prompts/get` answers. */
export interface McpPromptMessages {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  readonly [field: string]: unknown;
}

/** What to complete: an argument of a prompt, or a variable of a resource template. */
export interface McpCompletionRequest {
  readonly ref:
    | { readonly type: "ref/prompt"; readonly name: string }
    | { readonly type: "ref/resource"; readonly uri: string };
  readonly argument: { readonly name: string; readonly value: string };
  readonly context?: { readonly arguments?: Readonly<Record<string, string>> } | undefined;
}

/** What `completion/complete` answers. */
export interface McpCompletion {
  readonly completion: {
    readonly values: readonly string[];
    readonly total?: number | undefined;
    readonly hasMore?: boolean | undefined;
  };
  readonly [field: string]: unknown;
}

/** The log levels of MCP, least important first. */
export const MCP_LOG_LEVELS = [
  "debug",
  "info",
  "notice",
  "warning",
  "error",
  "critical",
  "alert",
  "emergency",
] as const;

/** A log level of MCP. */
export type McpLogLevel = (typeof MCP_LOG_LEVELS)[number];

/** What a provider tells on its own account. */
export type McpProviderEvent =
  | { readonly type: "resources-changed" | "prompts-changed" }
  | { readonly type: "resource-updated"; readonly uri: string }
  | {
      readonly type: "log";
      readonly level: McpLogLevel;
      readonly logger?: string | undefined;
      readonly data: unknown;
    };

/** What one request to a provider may be told. */
export interface McpProviderOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly onProgress?: ((value: unknown) => void) | undefined;
  /** Who is asking; nothing for an anonymous caller. It is not sent on. */
  readonly identity?: Identity | undefined;
  /** Who can be asked while the request runs. */
  readonly caller?: CallerSide | undefined;
}

/** Which of the below a provider has. */
export interface McpProviderCapabilities {
  readonly resources: boolean;
  /** Whether `subscribeResource` works. */
  readonly resourceSubscriptions: boolean;
  readonly prompts: boolean;
  readonly completions: boolean;
  readonly logging: boolean;
}

/**
 * What an MCP server offers besides tools: an imported server is one, and so are the resources and prompts of this process.
 * Requests reject with a `CallError`; `NOT_FOUND` for a resource or prompt that is not there.
 */
export interface McpProvider {
  /** Tells its names from those of others; empty for those of this process. */
  readonly namespace: string;
  readonly capabilities: McpProviderCapabilities;
  /** Whether it is there for this caller; for others it lists nothing and has nothing. @default everybody */
  isFor?(identity: Identity | undefined): boolean;
  /** All pages. */
  listResources(options?: McpProviderOptions): Promise<readonly McpResource[]>;
  listResourceTemplates(options?: McpProviderOptions): Promise<readonly McpResourceTemplate[]>;
  readResource(uri: string, options?: McpProviderOptions): Promise<McpResourceContents>;
  subscribeResource(uri: string, options?: McpProviderOptions): Promise<void>;
  unsubscribeResource(uri: string, options?: McpProviderOptions): Promise<void>;
  listPrompts(options?: McpProviderOptions): Promise<readonly McpPrompt[]>;
  getPrompt(
    name: string,
    args: Readonly<Record<string, string>> | undefined,
    options?: McpProviderOptions,
  ): Promise<McpPromptMessages>;
  complete(request: McpCompletionRequest, options?: McpProviderOptions): Promise<McpCompletion>;
  /** The least important level that is still worth sending. */
  setLogLevel(level: McpLogLevel): Promise<void>;
  /** Returns how to stop listening. */
  onEvent(listener: (event: McpProviderEvent) => void): () => void;
}
