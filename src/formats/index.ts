export { TIERS } from "../core/access/tier.ts";
export { CUT_DATA_LIMITS, type CutData } from "../core/preview/cut-data.ts";
export type { DataSchema } from "../core/preview/data-validator.ts";
export type { DataCut } from "../core/preview/shorten-data.ts";
export { renderToolError } from "../core/result/human-text.ts";
export {
  type RangeRequest,
  type ReadResourceResult,
  type ResultEntry,
  type ResultRange,
  type ResultStore,
  type StoredReader,
  type StoredResult,
  toReadResourceResult,
} from "../core/result/result-store.ts";
export {
  type CallToolResult,
  FORMAT_NAMES,
  type FormatName,
  type HTTPFacts,
  RESULT_META_KEY,
  type ResultError,
  type ToolResult,
  type UpgradeHint,
} from "../core/result/tool-result.ts";
export type { Codec, Decoded, Oddity, ReadOptions } from "./codec.ts";
export type { Candidate } from "./decode-tool-result.ts";
export {
  createResultReader,
  type DecodedError,
  type DecodedToolResult,
  type DecodeOptions,
  decodeToolResult,
  type ResultReaderOptions,
} from "./decode-tool-result.ts";
export type { EnvelopeSchema } from "./envelope-schema.ts";
export { FormatError, type FormatErrorCode, isFormatError } from "./format-error.ts";
export { type CutText, type CutTextOptions, cutText } from "./preview/cut-markdown.ts";
export { createMemoryStore, type MemoryStore, type MemoryStoreOptions } from "./preview/memory-store.ts";
export type { ResultPreview } from "./preview/preview-result.ts";
export {
  type PreviewLimits,
  type PreviewToolPayloadOptions,
  previewToolPayload,
} from "./preview/preview-result.ts";
export { type CutDataOptions, cutData, estimateTokens } from "./preview/token-budget.ts";
export type { Residual } from "./residual.ts";
export {
  combineFormats,
  createResultFormat,
  createToolCaller,
  type ResultFormatOptions,
  type ToolCaller,
  type ToolFormat,
  toolOutputSchema,
} from "./result-format.ts";
export type { RetryAdvice } from "./retry-advice.ts";
export type {
  ComposeToolPayloadOptions,
  RateLimit,
  TokenUsage,
  ToolPayload,
  ToolResponseEnvelope,
  ToolResponseMeta,
  ToolResponseStatus,
} from "./status-envelope/compose-tool-payload.ts";
export {
  type BuildResponseOptions,
  buildStructuredResponse,
  buildToolResponse,
  composeToolPayload,
  createToolResponseEnvelopeSchema,
  type DefaultToolResponseData,
  ToolResponseMetaSchema,
} from "./status-envelope/compose-tool-payload.ts";
export type { ExposedError, ExposeError } from "./tiered-envelope/safe-error.ts";
export {
  createTieredEnvelopeSchema,
  isTieredEnvelope,
  parseTieredEnvelope,
  TIERED_ERROR_CODES,
  type TieredEnvelope,
  type TieredError,
  type TieredFields,
  tieredEnvelope,
} from "./tiered-envelope/tiered-envelope.ts";
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
  type ErrorPayloadOptions,
  isMcpErrorPayload,
  MCP_ERROR_CATEGORIES,
  type McpErrorCategory,
  type McpErrorPayload,
  McpErrorPayloadSchema,
  toErrorPayload,
  type WorkflowEnvelopePayload,
  WorkflowEnvelopePayloadSchema,
  type WorkflowStep,
} from "./tool-envelope/payloads.ts";
export { type ToolResultOptions, toToolResult } from "./tool-envelope/tool-envelope-codec.ts";
export { type CarrierOf, FORMATS, type TranscodeOptions, transcode } from "./transcode.ts";
