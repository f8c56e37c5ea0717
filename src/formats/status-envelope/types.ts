import type { MCPResourceLinkBlock } from "../../core/envelope/content-block.ts";
import type { ContentBlock } from "../../core/result/call-tool-result.ts";

/** How a tool fared, as its headline shows it. */
export type ToolResponseStatus = "ok" | "error" | "info" | "warn";

/** Tokens in the reply itself, and in the whole result it stands for; estimates. */
export interface TokenUsage {
  readonly inline?: number;
  readonly total?: number;
}

/** What is left of a quota, and how long until it is full again. */
export interface RateLimit {
  readonly remaining?: number;
  readonly resetSeconds?: number;
}

/** The part of a reply that people and models read first. */
export interface ToolResponseMeta {
  readonly status: ToolResponseStatus;
  /** One line; hosts render up to 80 characters well. */
  readonly summary: string;
  readonly details?: readonly string[];
  /** What the agent may do now. */
  readonly nextSteps?: readonly string[];
  /** The reply shows less than there is. */
  readonly truncated?: boolean;
  readonly tokenUsage?: TokenUsage;
  readonly rateLimit?: RateLimit;
}

/** A tool's data with its status; a type rather than an interface, so that MCP SDKs take it for a record. */
export type ToolResponseEnvelope<T = unknown> = {
  readonly meta: ToolResponseMeta;
  readonly data: T;
};

/** What a tool returns to its MCP server: blocks for people, the envelope for programs. */
export type ToolPayload<T = unknown> = {
  readonly content: ContentBlock[];
  readonly structuredContent: ToolResponseEnvelope<T>;
  readonly isError: boolean;
};

/** What `composeToolPayload` is told. */
export interface ComposeToolPayloadOptions<T = unknown> {
  readonly meta: ToolResponseMeta;
  readonly data: T;
  /** Written verbatim after the details, a block each; blank ones are left out. */
  readonly additionalText?: readonly string[];
  /** Written last, untouched. */
  readonly resourceLinks?: readonly MCPResourceLinkBlock[];
  /** Keeps the details out of the text; they stay in `meta`. @default false */
  readonly omitMetaDetails?: boolean | undefined;
  /** Keeps the next steps out of the text; they stay in `meta`. @default false */
  readonly omitNextSteps?: boolean | undefined;
  /** @default meta.status === "error" */
  readonly isError?: boolean;
  /** Hears of a summary that hosts will not render well. @default console.warn */
  readonly onWarning?: (message: string) => void;
}
