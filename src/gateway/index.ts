export type { ApprovalWebhook } from "./approvals/approval-webhook.ts";
export type { ApprovalPlace, ApprovePolicy, InputRule } from "./approvals/approve-policy.ts";
export type { AuditOptions } from "./audit/audit-file.ts";
export { CONFIG_SCHEMA } from "./config/config-schema.ts";
export {
  type ApprovalsConfig,
  type AuditConfig,
  type BusConfig,
  type BusTlsConfig,
  defineConfig,
  type GatewayConfig,
  type GatewayLimits,
  type LogConfig,
  type LoginConfig,
  type McpServerConfig,
  type OpenApiConfig,
  type OpenApiCredential,
  type ServeAuthConfig,
  type ServeConfig,
  type ServeHttpConfig,
  type ServeMcpConfig,
  type ServeTokenConfig,
  type StateConfig,
  type TasksConfig,
} from "./config/gateway-config.ts";
export { ConfigError, type LoadedConfig } from "./config/loaded-config.ts";
export {
  type LoadObjectOptions,
  type LoadOptions,
  loadConfig,
  loadConfigObject,
} from "./config/read-config.ts";
export { createGateway, type Gateway, type GatewayOptions } from "./gateway.ts";
export type { GuardAction, GuardPolicy, JudgeOptions } from "./guard/result-guard.ts";
export type { OperationPolicy, SourcePolicy } from "./policy/policy.ts";
export { type GatewayServer, type ServeGatewayOptions, serveGateway } from "./serve/serve-gateway.ts";
export {
  type GatewayStdio,
  type ServeGatewayStdioOptions,
  serveGatewayStdio,
} from "./serve/serve-gateway-stdio.ts";
export type {
  BusReport,
  FailedCalls,
  Source,
  SourceKind,
  SourceReport,
  SourceState,
} from "./sources/source.ts";
