export { Type } from "typebox";
export type { AccessControl, ResourceRule } from "./core/access/access.ts";
export type { Authority, Identity } from "./core/access/identity.ts";
export { type Client, createClient, type PagesOptions } from "./core/client/client.ts";
export { ToolResultError } from "./core/client/tool-result-error.ts";
export type {
  MCPAnnotations,
  MCPAudioBlock,
  MCPContentBlock,
  MCPImageBlock,
  MCPResourceBlock,
  MCPResourceContent,
  MCPResourceLinkBlock,
  MCPTextBlock,
} from "./core/envelope/content-block.ts";
export {
  type AuthoredResult,
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
  type ResultEnvelope,
  type ResultFacts,
  rawData,
  result,
  type SaidFacts,
  toolError,
  unwrap,
  withData,
} from "./core/envelope/envelope.ts";
export {
  HTTPResponseMetaSchema,
  LocalResponseMetaSchema,
  MCPContentBlockSchema,
  MCPResponseMetaSchema,
  ResponseEnvelopeSchema,
  ResponseMetaSchema,
} from "./core/envelope/envelope-schemas.ts";
export {
  ERROR_CODES,
  type ErrorCategory,
  type ErrorCode,
  type ErrorTraits,
  type TieredErrorCode,
} from "./core/errors/error-codes.ts";
export {
  CallError,
  type CallErrorJSON,
  type CallErrorOptions,
  isCallError,
  toCallError,
} from "./core/errors/errors.ts";
export { type Problem, toProblem } from "./core/errors/problem.ts";
export type { CallHook, HookedCall, Hooks, NextOptions, SubscribeHook } from "./core/execution/hooks.ts";
export type { JsonValue } from "./core/json/json-value.ts";
export type {
  AskOptions,
  CallerSide,
  ElicitAnswer,
  ElicitRequest,
  Root,
  SampleAnswer,
  SampleRequest,
} from "./core/operation/caller-side.ts";
export { defineOperation } from "./core/operation/operation.ts";
export type {
  CallOrigin,
  LogLevel,
  LogLine,
  Metadata,
  NestedCallOptions,
  OperationContext,
} from "./core/operation/operation-context.ts";
export type { EnvCall, EnvOptions, OperationEnv } from "./core/operation/operation-env-types.ts";
export type {
  AnyOperation,
  DataPart,
  EnvelopeOf,
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
  ReturnsReader,
  Tier,
} from "./core/operation/operation-types.ts";
export { type CursoredValue, withCursor } from "./core/operation/with-cursor.ts";
export type {
  CallAbove,
  ChangeListener,
  ExecuteOptions,
  Executor,
  ListOptions,
  OperationSource,
  RegistryChange,
  SubscribeOptions,
} from "./core/registry/executor.ts";
export { OperationRegistry, type RegisterOptions } from "./core/registry/registry.ts";
export type { LogRecord, ProgressRecord, RegistryWarning } from "./core/registry/registry-host.ts";
export type { RegistryLimits, RegistryOptions } from "./core/registry/registry-options.ts";
export type { CallToolResult } from "./core/result/call-tool-result.ts";
export type { EndedCall } from "./core/result/ended-call.ts";
export type { ResultFormat } from "./core/result/result-format.ts";
export type { ReadResult, ResultReader } from "./core/result/result-reader.ts";
export { type ResultLink, type ResultSaid, SAID_LIMITS, type ToolErrorSaid } from "./core/result/said.ts";
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
export {
  decodeEnvelope,
  encodeEnvelope,
  fromWire,
  toWire,
  WIRE_LIMITS,
  type WireOptions,
} from "./core/wire/wire.ts";
