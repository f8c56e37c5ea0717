import type { AuthoredResult } from "../../core/envelope/envelope.ts";
import { type CallToolResult, textBlock } from "../../core/result/call-tool-result.ts";
import { renderToolError } from "../../core/result/human-text.ts";
import { markResult } from "../authored.ts";
import { toEnvelopeBlock } from "./envelope-block.ts";
import { isMcpErrorPayload, type McpErrorPayload } from "./payloads.ts";
import { toolEnvelopeCodec } from "./tool-envelope-codec.ts";

/** What `toToolResult` is told. */
export interface ToolResultOptions<T = unknown> {
  /** What people read. @default the rendered error, for an error payload */
  readonly summaryMarkdown?: string;
  /** Any JSON value. */
  readonly payload: T;
  readonly meta: {
    readonly tool: string;
    /** ISO 8601, written as given. @default now */
    readonly ts?: string;
    readonly version?: 1;
    readonly [unknown: string]: unknown;
  };
  /** @default whether the payload is an error payload */
  readonly isError?: boolean;
}

/** Writes a result as a tool envelope: Markdown for people, then the block for programs. */
export function toToolResult<T>(options: ToolResultOptions<T>): CallToolResult & AuthoredResult<T> {
  const { payload, meta, isError = isMcpErrorPayload(payload) } = options;
  if (typeof meta?.tool !== "string")
    throw new TypeError("A tool envelope needs meta.tool, the name of the tool.");
  const { summaryMarkdown = defaultSummary(payload, meta.tool) } = options;
  const stamped = meta.ts === undefined ? { ...meta, ts: new Date().toISOString() } : meta;
  const block = toEnvelopeBlock(payload, stamped as { tool: string; ts: string });
  const content = [textBlock(summaryMarkdown), textBlock(block)];
  // A success says so where its payload would be taken for an error.
  const isFlagged = isError || isMcpErrorPayload(payload);
  const result: CallToolResult = isFlagged ? { content, isError } : { content };
  return markResult(result, () => toolEnvelopeCodec.decode(result));
}

function defaultSummary(payload: unknown, tool: string): string {
  if (isMcpErrorPayload(payload)) return renderToolError(payload satisfies McpErrorPayload);
  throw new TypeError(`The result of "${tool}" needs a summaryMarkdown: it is what people see.`);
}
