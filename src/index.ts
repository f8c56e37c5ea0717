export { Type } from "typebox";
export type { AccessControl, ResourceRule } from "./core/access.ts";
export { type Client, createClient, type PagesOptions } from "./core/client.ts";
export type {
  MCPAnnotations,
  MCPAudioBlock,
  MCPContentBlock,
  MCPImageBlock,
  MCPResourceBlock,
  MCPResourceContent,
  MCPResourceLinkBlock,
  MCPTextBlock,
} from "./core/content-block.ts";
export {
  type HTTPEnvelopeMeta,
  type HTTPResponseMeta,
  httpEnvelope,
  isResponseEnvelope,
  type LocalResponseMeta,
  localEnvelope,
  type MCPEnvelopeMeta,
  type MCPResponseMeta,
  mcpEnvelope,
  type ObtainedFrom,
  type Outcome,
  outcomeOf,
  type PageFacts,
  RESPONSE_SOURCES,
  type ResponseEnvelope,
  type ResponseMeta,
  type ResponseSource,
  type ResultFacts,
  rawData,
  type ToolErrorOptions,
  toolError,
  unwrap,
} from "./core/envelope.ts";
export {
  HTTPResponseMetaSchema,
  LocalResponseMetaSchema,
  MCPContentBlockSchema,
  MCPResponseMetaSchema,
  ResponseEnvelopeSchema,
  ResponseMetaSchema,
} from "./core/envelope-schemas.ts";
export {
  ERROR_CODES,
  type ErrorCategory,
  type ErrorCode,
  type ErrorTraits,
  type TieredErrorCode,
} from "./core/error-codes.ts";
export {
  CallError,
  type CallErrorJSON,
  type CallErrorOptions,
  isCallError,
  toCallError,
} from "./core/errors.ts";
export type {
  ChangeListener,
  ExecuteOptions,
  Executor,
  ListOptions,
  OperationSource,
  RegistryChange,
  SubscribeOptions,
} from "./core/executor.ts";
export type { CallHook, HookedCall, Hooks, SubscribeHook } from "./core/hooks.ts";
export type { Authority, Identity } from "./core/identity.ts";
export type { JsonValue } from "./core/json-value.ts";
export { defineOperation } from "./core/operation.ts";
export type {
  CallOrigin,
  LogLevel,
  Metadata,
  NestedCallOptions,
  OperationContext,
} from "./core/operation-context.ts";
export type { EnvCall, OperationEnv } from "./core/operation-env-types.ts";
export type {
  AnyOperation,
  ErrorDeclaration,
  GatedFeature,
  InputOf,
  Operation,
  OperationAnnotations,
  OperationMap,
  OperationSpec,
  OperationType,
  OutputOf,
  OutputPolicy,
  Pager,
  Tier,
} from "./core/operation-types.ts";
export { type Problem, toProblem } from "./core/problem.ts";
export { OperationRegistry, type RegisterOptions } from "./core/registry.ts";
export type { LogRecord, ProgressRecord, RegistryWarning } from "./core/registry-host.ts";
export type { RegistryLimits, RegistryOptions } from "./core/registry-options.ts";
export type { AnySchema, StandardSchema } from "./core/schema/any-schema.ts";
export {
  type CompiledSchema,
  compileSchema,
  type Normalized,
  type SchemaOptions,
} from "./core/schema/compile-schema.ts";
export type { JsonSchema, JsonSchemaObject } from "./core/schema/json-schema.ts";
export { SCHEMA_LIMITS, type SchemaLimits } from "./core/schema/limits.ts";
export { SchemaError } from "./core/schema/schema-error.ts";
export type { NormalizationReport, SchemaIssue } from "./core/schema/schema-issue.ts";
export { ToolResultError } from "./core/tool-result-error.ts";
export {
  decodeEnvelope,
  encodeEnvelope,
  fromWire,
  toWire,
  WIRE_LIMITS,
  type WireOptions,
} from "./core/wire.ts";
export { type CursoredValue, withCursor } from "./core/with-cursor.ts";
