import type { MCPContentBlock } from "../envelope/content-block.ts";
import type { ResultFacts } from "../envelope/response-meta.ts";

/** The formats a result can be written in and read from. */
export const FORMAT_NAMES = [
  "tool-envelope",
  "tiered-envelope",
  "status-envelope",
  "mcp",
  "response-envelope",
] as const;

/** A published format: ToolEnvelope V1, the tiered envelope, the status envelope, plain MCP, or `ResponseEnvelope`. */
export type FormatName = (typeof FORMAT_NAMES)[number];

/** Why a tool said no, in the words of any format. */
export interface ResultError {
  readonly message: string;
  readonly code?: string;
  /** One of the nine of the tool envelope, or one it does not know yet. */
  readonly category?: string;
  /** Text in a tool envelope, an object in a tiered one. */
  readonly details?: unknown;
  /** Whether trying again is worth it, with the same input or a better one. */
  readonly recoverable?: boolean;
  readonly suggestedAction?: string;
  readonly nextTool?: string;
  /** Fields no format defines, kept as they came. */
  readonly extra?: Readonly<Record<string, unknown>>;
}

/** What a higher plan would add. */
export interface UpgradeHint {
  readonly feature: string;
  readonly tier: string;
  readonly reason: string;
}

/** What an HTTP answer said besides its body. */
export interface HTTPFacts {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly contentType: string;
  readonly setCookie?: readonly string[];
}

/**
 * The one result every format is read into and written from: each field is a concept of at least one format, and absent
 * where nobody said anything about it.
 */
export interface ToolResult {
  /** The tool ran and said no. */
  readonly isError: boolean;
  /** Any JSON value; `null` is data too. */
  readonly data?: unknown;
  /** What people see, without the blocks a format derives from the other fields. */
  readonly content?: readonly MCPContentBlock[];
  readonly error?: ResultError;
  readonly status?: "ok" | "error" | "info" | "warn";
  readonly summary?: string;
  readonly details?: readonly string[];
  readonly nextSteps?: readonly string[];
  readonly truncated?: boolean;
  readonly tokenUsage?: { readonly inline?: number; readonly total?: number };
  readonly rateLimit?: { readonly remaining?: number; readonly resetSeconds?: number };
  /** The tool or operation that answered. */
  readonly tool?: string;
  readonly toolVersion?: string;
  readonly requestId?: string;
  /** ISO 8601, byte for byte as it came. */
  readonly timestamp?: string;
  readonly durationMs?: number;
  readonly tier?: "community" | "pro" | "enterprise";
  readonly capabilities?: readonly string[];
  readonly upgradeHints?: readonly UpgradeHint[];
  readonly http?: HTTPFacts;
  /** What is known beyond the fields above. */
  readonly facts?: ResultFacts;
  readonly _meta?: Readonly<Record<string, unknown>>;
  /** By format: unknown fields and unusual layout, kept so that the same can be written again. */
  readonly extra?: Readonly<Partial<Record<FormatName, Readonly<Record<string, unknown>>>>>;
}
