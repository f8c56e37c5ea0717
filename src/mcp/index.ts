export { type CleanText, cleanText, type HiddenKind, type TextFinding } from "../core/text/clean-text.ts";
export type { BearerAuth, ResourceMetadata } from "../http/bearer.ts";
export type { McpTransport } from "./channels/transport-channel.ts";
export type {
  ConnectionSettings,
  CustomConnectionOptions,
  McpConnectionOptions,
  ReconnectOptions,
  StdioConnectionOptions,
} from "./client/connection-options.ts";
export { approveTools, type FromMcpOptions, fromMcp, type McpSource } from "./client/from-mcp.ts";
export type { HttpConnectionOptions } from "./client/http-options.ts";
export type { ImportLimits, ImportOptions, PinOptions } from "./client/import-options.ts";
export type { DefinitionChange, DefinitionDifference } from "./client/lock/definition-diff.ts";
export type { ToolDefinition } from "./client/lock/definition-hash.ts";
export { LOCK_FILE_NAME } from "./client/lock/lock-file.ts";
export { type ApprovedTool, createToolLock, type ToolLock } from "./client/lock/tool-lock.ts";
export type { McpConnectionState, McpServerFacts } from "./client/mcp-connection.ts";
export { MCP_LIMITS, type McpLimits } from "./client/mcp-limits.ts";
export {
  createOAuthStore,
  type OAuthClientInformation,
  type OAuthClientMetadata,
  type OAuthDiscovery,
  type OAuthGrant,
  type OAuthIssuer,
  type OAuthStore,
  type OAuthStoreOptions,
  type OAuthTokens,
} from "./client/oauth-store.ts";
export {
  createFileTokenStore,
  createMemoryTokenStore,
  type StoredAuthorization,
  type TokenStore,
} from "./client/token-store.ts";
export { mapMCPContentBlocks } from "./map-content-blocks.ts";
export {
  MCP_LOG_LEVELS,
  type McpCompletion,
  type McpCompletionRequest,
  type McpLogLevel,
  type McpPrompt,
  type McpPromptMessages,
  type McpProvider,
  type McpProviderCapabilities,
  type McpProviderEvent,
  type McpProviderOptions,
  type McpResource,
  type McpResourceContents,
  type McpResourceTemplate,
  type ServerLog,
} from "./provider.ts";
export {
  type CloseOptions,
  createMcpHandler,
  type McpHandler,
  type McpRequestInfo,
} from "./server/http-handler.ts";
export type { McpHandlerLimits, McpHandlerOptions } from "./server/http-handler-options.ts";
export type { ConnectOptions, McpServer } from "./server/mcp-server.ts";
export type {
  Completer,
  LiveMcpProviders,
  LocalPrompt,
  LocalResource,
  LocalResourceTemplate,
  McpClient,
  McpRequestContext,
  McpServerLimits,
  McpServerOptions,
  PromptArgument,
  ResourceValue,
  StoredRead,
  ToolNaming,
} from "./server/mcp-server-options.ts";
export { type McpHttpServer, type ServeMcpHttpOptions, serveMcpHttp } from "./server/serve-http.ts";
export {
  type NodeStream,
  type ServeStdioOptions,
  type StdioConnection,
  serveStdio,
} from "./server/serve-stdio.ts";
export { toMcpServer } from "./server/to-mcp-server.ts";
