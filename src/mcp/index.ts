export { type CleanText, cleanText, type HiddenKind, type TextFinding } from "../core/text/clean-text.ts";
export type { ApiKeyAuth, HttpAuthOptions } from "../http/authentication.ts";
export type { BearerAuth, BearerIssuer, ResourceMetadata } from "../http/bearer.ts";
export type { DpopAuth } from "../http/dpop-proof.ts";
export type { TokenIntrospection } from "../http/introspection.ts";
export type { ListenLimits, ListenOptions } from "../http/listen.ts";
export type { DpopKey } from "../http/oauth/dpop-key.ts";
export {
  createFileTokenStore,
  createOAuthStore,
  type GrantPlace,
  type IdentityAssertion,
  type OAuthClientInformation,
  type OAuthClientMetadata,
  type OAuthDiscovery,
  type OAuthGrant,
  type OAuthIssuer,
  type OAuthStore,
  type OAuthStoreOptions,
  type OAuthTokens,
  type StoredAuthorization,
  type TokenStore,
} from "../http/oauth/oauth-store.ts";
export type { McpTransport } from "./channels/channel.ts";
export type {
  ConnectionSettings,
  HttpSettings,
  HttpTarget,
  McpAuth,
  McpCredentialRequest,
  McpTarget,
  ReconnectOptions,
  StdioTarget,
  TransportTarget,
} from "./client/connection-options.ts";
export { MCP_LIMITS, type McpLimits } from "./client/connection-options.ts";
export { approveTools, type FromMcpOptions, fromMcp, type McpSource } from "./client/from-mcp.ts";
export type { ImportLimits, ImportOptions, PinOptions } from "./client/import-options.ts";
export type { DefinitionChange, DefinitionDifference, ToolDefinition } from "./client/lock/tool-lock.ts";
export { type ApprovedTool, createToolLock, type ToolLock } from "./client/lock/tool-lock.ts";
export type { McpConnectionState, McpServerFacts } from "./client/mcp-connection.ts";
export { mapMCPContentBlocks } from "./content-blocks.ts";
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
  createMcpHandler,
  type McpHandler,
  type McpRequestInfo,
} from "./server/http/mcp-endpoint.ts";
export type { McpHandlerLimits, McpHandlerOptions } from "./server/http/serve-mcp-http.ts";
export { type McpHttpServer, type ServeMcpHttpOptions, serveMcpHttp } from "./server/http/serve-mcp-http.ts";
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
export {
  type NodeStream,
  type ServeStdioOptions,
  type StdioConnection,
  serveStdio,
} from "./server/serve-stdio.ts";
export { toMcpServer } from "./server/to-mcp-server.ts";
