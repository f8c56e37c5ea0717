import type { Identity } from "../core/access/identity.ts";
import { isPlainObject, toJsonTextOrNone } from "../core/json/json-value.ts";
import type { CallerSide } from "../core/operation/caller-side.ts";
import type { LogLevel } from "../core/operation/operation-context.ts";

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

/** The levels of handlers that are nearest to those of MCP. */
export const NEAREST_LEVELS: Readonly<Record<McpLogLevel, LogLevel>> = {
  debug: "debug",
  info: "info",
  notice: "info",
  warning: "warn",
  error: "error",
  critical: "error",
  alert: "error",
  emergency: "error",
};

/** A log message of a server. */
export interface ServerLog {
  readonly level: McpLogLevel;
  /** The part of the server that speaks. @default not said */
  readonly logger?: string | undefined;
  readonly data: unknown;
}

/** Reads the params of a log notification; nothing where they make no sense. */
export function readServerLog(params: Readonly<Record<string, unknown>>): ServerLog | undefined {
  const { level, logger, data } = params;
  if (!(MCP_LOG_LEVELS as readonly unknown[]).includes(level)) return undefined;
  return { level: level as McpLogLevel, ...(typeof logger === "string" && { logger }), data };
}

/** What a provider tells on its own account; what it logs may be about anybody's request, and is not for callers. */
export type McpProviderEvent =
  | { readonly type: "resources-changed" | "prompts-changed" }
  | { readonly type: "resource-updated"; readonly uri: string }
  | ({ readonly type: "log" } & ServerLog);

/** What one request to a provider may be told. */
export interface McpProviderOptions {
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly onProgress?: ((value: unknown) => void) | undefined;
  /** Who is asking; nothing for an anonymous caller. It is not sent on. */
  readonly identity?: Identity | undefined;
  /** Who can be asked while the request runs. */
  readonly caller?: CallerSide | undefined;
  /** Hears what is logged while it can only be about requests of this `party`. @default nobody does */
  readonly onServerLog?: ((log: ServerLog) => void) | undefined;
  /** Who makes the request, compared by `===`. @default nobody else */
  readonly party?: object | string | undefined;
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
  /** What it tells models about itself as a whole. @default nothing */
  readonly instructions?: string | undefined;
  /** The extensions of MCP it offers that pass through, by name. @default none */
  readonly extensions?: McpExtensions | undefined;
  /** Whether what it lists depends on who asks, so that no list is kept for somebody else. @default false */
  readonly listsByCaller?: boolean | undefined;
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

/** Extensions of MCP by name, with their settings. */
export type McpExtensions = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The extension for pages that tools show: MCP Apps. */
export const UI_EXTENSION = "io.modelcontextprotocol/ui";

/** Characters of an extension's settings, written as JSON, that are passed on. */
const MAX_SETTINGS = 2_000;

/**
 * What servers are told where it is not known whose client a request is for, and by sessions that many share. Only extensions that
 * need no method of their own pass through: what they add travels in tools, results and resources.
 */
export const PASSED_EXTENSIONS: McpExtensions = {
  [UI_EXTENSION]: { mimeTypes: ["text/html;profile=mcp-app"] },
};

/** Reads which of those a client or server has by its capabilities; settings that are no short object count as empty. */
export function readExtensions(capabilities: unknown): McpExtensions {
  const declared = isPlainObject(capabilities) ? capabilities["extensions"] : undefined;
  if (!isPlainObject(declared)) return {};
  const found = Object.keys(PASSED_EXTENSIONS).filter(
    (name) => Object.hasOwn(declared, name) && isPlainObject(declared[name]),
  );
  return Object.fromEntries(found.map((name) => [name, settingsOf(declared[name])]));
}

function settingsOf(settings: unknown): Readonly<Record<string, unknown>> {
  const text = toJsonTextOrNone(settings);
  return text === undefined || text.length > MAX_SETTINGS ? {} : (settings as Record<string, unknown>);
}
