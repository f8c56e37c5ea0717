export { CONFIG_SCHEMA } from "./config/config-schema.ts";
export {
  type BusConfig,
  defineConfig,
  type GatewayConfig,
  type GatewayLimits,
  type LogConfig,
  type McpServerConfig,
  type OpenApiConfig,
  type OpenApiCredential,
  type ServeAuthConfig,
  type ServeConfig,
  type ServeHttpConfig,
  type ServeMcpConfig,
  type ServeTokenConfig,
} from "./config/gateway-config.ts";
export { ConfigError, type LoadedConfig } from "./config/loaded-config.ts";
export {
  type LoadObjectOptions,
  type LoadOptions,
  loadConfig,
  loadConfigObject,
} from "./config/read-config.ts";
export { createGateway, type Gateway, type GatewayOptions } from "./gateway.ts";
export type { OperationPolicy, RetryPolicy, SourcePolicy } from "./policy/policy.ts";
export { type GatewayServer, type ServeGatewayOptions, serveGateway } from "./serve/serve-gateway.ts";
export {
  type GatewayStdio,
  type ServeGatewayStdioOptions,
  serveGatewayStdio,
} from "./serve/serve-gateway-stdio.ts";
export type { Source, SourceKind, SourceReport, SourceState } from "./sources/source.ts";
