export { TIERS } from "../core/access/tier.ts";
export { CUT_DATA_LIMITS, type CutData } from "../core/preview/cut-data.ts";
export type { DataSchema } from "../core/preview/data-validator.ts";
export type { DataCut } from "../core/preview/shorten-data.ts";
export { type CallToolResult, RESULT_META_KEY } from "../core/result/call-tool-result.ts";
export { renderToolError } from "../core/result/human-text.ts";
export {
  type RangeRequest,
  type ReadResourceResult,
  type ResultEntry,
  type ResultRange,
  type ResultStore,
  type StoredResult,
  toReadResourceResult,
} from "../core/result/result-store.ts";
export {
  FORMAT_NAMES,
  type FormatName,
  type HTTPFacts,
  type ResultError,
  type ToolResult,
  type UpgradeHint,
} from "../core/result/tool-result.ts";
export type { Codec, Decoded, Oddity, ReadOptions } from "./codec.ts";
export { combineFormats } from "./combine-formats.ts";
export {
  type DecodedError,
  type DecodedToolResult,
  type DecodeOptions,
  decodeToolResult,
} from "./decode-tool-result.ts";
export type { Candidate } from "./detect.ts";
export type { EnvelopeSchema } from "./envelope-schema.ts";
export { FormatError, type FormatErrorCode, isFormatError } from "./format-error.ts";
export { FORMATS } from "./formats.ts";
export { type CutDataOptions, cutData } from "./preview/cut-data.ts";
export { type CutText, type CutTextOptions, cutText } from "./preview/cut-text.ts";
export { estimateTokens } from "./preview/estimate-tokens.ts";
export { createMemoryStore, type MemoryStore, type MemoryStoreOptions } from "./preview/memory-store.ts";
export type { ResultPreview } from "./preview/preview-result.ts";
export {
  type PreviewLimits,
  type PreviewToolPayloadOptions,
  previewToolPayload,
} from "./preview/preview-tool-payload.ts";
export type { Residual } from "./residual.ts";
export {
  createResultFormat,
  type ResultFormatOptions,
  type ToolFormat,
  toolOutputSchema,
} from "./result-format.ts";
export { createResultReader, type ResultReaderOptions } from "./result-reader.ts";
export type { RetryAdvice } from "./retry-advice.ts";
export {
  type BuildResponseOptions,
  buildStructuredResponse,
  buildToolResponse,
  type DefaultToolResponseData,
} from "./status-envelope/build-response.ts";
export { composeToolPayload } from "./status-envelope/compose-tool-payload.ts";
export {
  createToolResponseEnvelopeSchema,
  ToolResponseMetaSchema,
} from "./status-envelope/response-schema.ts";
export type {
  ComposeToolPayloadOptions,
  RateLimit,
  TokenUsage,
  ToolPayload,
  ToolResponseEnvelope,
  ToolResponseMeta,
  ToolResponseStatus,
} from "./status-envelope/types.ts";
export { type TieredFields, tieredEnvelope } from "./tiered-envelope/create-tiered-envelope.ts";
export type { ExposedError, ExposeError } from "./tiered-envelope/safe-error.ts";
export {
  ENVELOPE_CAPABILITY,
  isTieredEnvelope,
  parseTieredEnvelope,
  TIERED_ERROR_CODES,
  type TieredEnvelope,
  type TieredError,
} from "./tiered-envelope/tiered-envelope.ts";
export { createTieredEnvelopeSchema } from "./tiered-envelope/tiered-schema.ts";
export { createToolCaller, type ToolCaller } from "./tool-caller.ts";
export {
  ENVELOPE_LIMITS,
  ENVELOPE_PREFIX,
  type EnvelopeBlockOptions,
  type ParsedEnvelope,
  parseEnvelopeBlock,
  type Tolerated,
  type ToolEnvelope,
  type ToolEnvelopeMeta,
} from "./tool-envelope/envelope-block.ts";
export {
  isMcpErrorPayload,
  MCP_ERROR_CATEGORIES,
  type McpErrorCategory,
  type McpErrorPayload,
  McpErrorPayloadSchema,
  type WorkflowEnvelopePayload,
  WorkflowEnvelopePayloadSchema,
  type WorkflowStep,
} from "./tool-envelope/payloads.ts";
export { type ErrorPayloadOptions, toErrorPayload } from "./tool-envelope/to-error-payload.ts";
export { type ToolResultOptions, toToolResult } from "./tool-envelope/to-tool-result.ts";
export { type CarrierOf, encodeResult, type TranscodeOptions, transcode } from "./transcode.ts";
