export { TIERS } from "../core/access/tier.ts";
export {
  FORMAT_NAMES,
  type FormatName,
  type HTTPFacts,
  type ResultError,
  type ToolResult,
  type UpgradeHint,
} from "../core/result/tool-result.ts";
export { type CallToolResult, RESULT_META_KEY } from "./call-tool-result.ts";
export type { Codec, Decoded, Oddity, ReadOptions } from "./codec.ts";
export {
  type DecodedError,
  type DecodedToolResult,
  type DecodeOptions,
  decodeToolResult,
} from "./decode-tool-result.ts";
export type { Candidate } from "./detect.ts";
export { FormatError, type FormatErrorCode, isFormatError } from "./format-error.ts";
export { FORMATS } from "./formats.ts";
export type { Residual } from "./residual.ts";
export type { RetryAdvice } from "./retry-advice.ts";
export { composeToolPayload } from "./status-envelope/compose-tool-payload.ts";
export type {
  ComposeToolPayloadOptions,
  RateLimit,
  TokenUsage,
  ToolPayload,
  ToolResponseEnvelope,
  ToolResponseMeta,
  ToolResponseStatus,
} from "./status-envelope/types.ts";
export {
  ENVELOPE_CAPABILITY,
  isTieredEnvelope,
  parseTieredEnvelope,
  TIERED_ERROR_CODES,
  type TieredEnvelope,
  type TieredError,
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
  isMcpErrorPayload,
  MCP_ERROR_CATEGORIES,
  type McpErrorCategory,
  type McpErrorPayload,
  McpErrorPayloadSchema,
  type WorkflowEnvelopePayload,
  WorkflowEnvelopePayloadSchema,
  type WorkflowStep,
} from "./tool-envelope/payloads.ts";
export { renderToolError } from "./tool-envelope/render-error.ts";
export { type ErrorPayloadOptions, toErrorPayload } from "./tool-envelope/to-error-payload.ts";
export { type ToolResultOptions, toToolResult } from "./tool-envelope/to-tool-result.ts";
export { type CarrierOf, encodeResult, type TranscodeOptions, transcode } from "./transcode.ts";
