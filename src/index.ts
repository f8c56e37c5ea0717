export type { AccessControl, ResourceRule } from "./core/access/access.ts";
export type { Authority, Identity } from "./core/access/identity.ts";
export {
  type Client,
  type ClientOptions,
  createClient,
  type PagesOptions,
  type TaskHandle,
} from "./core/client/client.ts";
export type { StartedTask, StartOptions, TaskState, TaskWaitOptions } from "./core/client/started-task.ts";
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
  type ResultFinding,
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
  type Problem,
  toCallError,
  toProblem,
} from "./core/errors/errors.ts";
export type { CallHook, HookedCall, Hooks, NextOptions, SubscribeHook } from "./core/execution/dispatch.ts";
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
export type { CloseOptions, RateOptions, RetryOptions } from "./core/options/shared-options.ts";
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
export type { RegistryLimits, RegistryOptions } from "./core/registry/registry.ts";
export { OperationRegistry, type RegisterOptions } from "./core/registry/registry.ts";
export type { LogRecord, ProgressRecord, RegistryWarning } from "./core/registry/registry-host.ts";
export type { EndedCall } from "./core/result/ended-call.ts";
export type { ReadResult, ResultFormat, ResultReader } from "./core/result/result-reader.ts";
export { type ResultLink, type ResultSaid, SAID_LIMITS, type ToolErrorSaid } from "./core/result/said.ts";
export type { CallToolResult } from "./core/result/tool-result.ts";
export type { AnySchema, StandardSchema } from "./core/schema/any-schema.ts";
export {
  type CompiledSchema,
  compileSchema,
  type Normalized,
  type SchemaOptions,
} from "./core/schema/compile-schema.ts";
export type { JsonSchema, JsonSchemaObject } from "./core/schema/json-schema.ts";
export { SCHEMA_LIMITS, type SchemaLimits } from "./core/schema/limits.ts";
export type { NormalizationReport, SchemaIssue } from "./core/schema/schema-issue.ts";
export { SchemaError } from "./core/schema/schema-issue.ts";
export type { TaskBounds, TaskRecord, TaskStatus } from "./core/tasks/task.ts";
export type { TaskStore } from "./core/tasks/task-store.ts";
export { Tasks, type TasksOptions } from "./core/tasks/tasks.ts";
export type { Static } from "./core/typed-schema/static.ts";
export {
  type TAny,
  type TArray,
  type TBoolean,
  type TCyclic,
  type TEnum,
  type TInteger,
  type TIntersect,
  type TLiteral,
  type TNever,
  type TNull,
  type TNumber,
  type TObject,
  type TOptional,
  type TProperties,
  type TReadonly,
  type TRecord,
  type TRef,
  type TSchema,
  type TString,
  type TTuple,
  type TUnion,
  type TUnknown,
  type TUnsafe,
  Type,
  type TypeBuilder,
} from "./core/typed-schema/type.ts";
export {
  decodeEnvelope,
  encodeEnvelope,
  fromWire,
  toWire,
  WIRE_LIMITS,
  type WireOptions,
} from "./core/wire/wire.ts";
