import type { MCPContentBlock } from "../envelope/content-block.ts";
import type { ResultFacts, SaidFacts } from "../envelope/response-meta.ts";
import { isPlainObject } from "../json/json-value.ts";

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

/** Why a tool reported an error, in the words of any format. */
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
  /** The tool ran and reported an error. */
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

type FactFields = Pick<
  ToolResult,
  | ("error" | "status" | "summary" | "details" | "nextSteps" | "truncated" | "tokenUsage" | "rateLimit")
  | ("content" | "capabilities" | "upgradeHints" | "durationMs" | "facts" | "_meta" | "extra")
>;

/** The fields of a result that the facts of an envelope stand for; what has no field of its own stays in `facts`. */
export function fromFacts(isError: boolean, given: ResultFacts): FactFields {
  const { durationMs, message, code, details, said, ...others } = given;
  const { category, recoverable, suggestedAction, nextTool, errorExtra, content, extra, ...fields } =
    said ?? {};
  const told = {
    ...(code !== undefined && { code }),
    ...(details !== undefined && { details }),
  };
  const advice = {
    ...(category !== undefined && { category }),
    ...(recoverable !== undefined && { recoverable }),
    ...(suggestedAction !== undefined && { suggestedAction }),
    ...(nextTool !== undefined && { nextTool }),
  };
  const isTold = isError && message !== undefined;
  const kept = { ...advice, ...(errorExtra !== undefined && { errorExtra }) };
  const facts: ResultFacts = isTold
    ? others
    : {
        ...others,
        ...told,
        ...(message !== undefined && { message }),
        ...(hasMembers(kept) && { said: kept }),
      };
  return {
    ...fields,
    ...(content !== undefined && content.length > 0 && { content }),
    ...(extra !== undefined && { extra: extra as NonNullable<ToolResult["extra"]> }),
    ...(durationMs !== undefined && { durationMs }),
    ...(isTold && { error: { message, ...told, ...advice, ...(errorExtra && { extra: errorExtra }) } }),
    ...(hasMembers(facts) && { facts }),
  };
}

/** The facts that say what a result says; its content only where the envelope has no other place for it. */
export function toFacts(result: ToolResult, options: { readonly content: boolean }): ResultFacts | undefined {
  const { facts, durationMs, error, extra } = result;
  const { message, code, details, category, recoverable, suggestedAction, nextTool } = error ?? {};
  const layout =
    extra === undefined ? [] : Object.entries(extra).filter(([name]) => name !== "response-envelope");
  const said: SaidFacts = {
    ...facts?.said,
    ...pick(result, ["status", "summary", "details", "nextSteps", "truncated", "tokenUsage", "rateLimit"]),
    ...pick(result, ["capabilities", "upgradeHints"]),
    ...(options.content && pick(result, ["content", "_meta"])),
    ...(category !== undefined && { category }),
    ...(recoverable !== undefined && { recoverable }),
    ...(suggestedAction !== undefined && { suggestedAction }),
    ...(nextTool !== undefined && { nextTool }),
    ...(error?.extra !== undefined && { errorExtra: error.extra }),
    ...(layout.length > 0 && { extra: Object.fromEntries(layout) as NonNullable<SaidFacts["extra"]> }),
  };
  const all: ResultFacts = {
    ...facts,
    ...(durationMs !== undefined && { durationMs }),
    ...(message !== undefined && { message }),
    ...(code !== undefined && { code }),
    ...(details !== undefined && { details }),
    ...(hasMembers(said) && { said }),
  };
  return hasMembers(all) ? all : undefined;
}

function pick<K extends keyof ToolResult>(result: ToolResult, keys: readonly K[]): Pick<ToolResult, K> {
  const known = keys.filter((key) => result[key] !== undefined).map((key) => [key, result[key]]);
  return Object.fromEntries(known) as Pick<ToolResult, K>;
}

function hasMembers(value: object): boolean {
  for (const _ in value) return true;
  return false;
}

/** What any block may carry. */
interface BlockExtras {
  annotations?: { audience?: ("user" | "assistant")[]; priority?: number; lastModified?: string };
  _meta?: Record<string, unknown>;
}

/** The contents of an embedded resource: text, or bytes as base64. */
type ResourceContent = { uri: string; mimeType?: string; _meta?: Record<string, unknown> } & (
  | { text: string }
  | { blob: string }
);

/** One piece of a result as it is handed to an MCP SDK, whose types want it mutable. */
export type ContentBlock = BlockExtras &
  (
    | { type: "text"; text: string }
    | { type: "image" | "audio"; data: string; mimeType: string }
    | { type: "resource"; resource: ResourceContent }
    | {
        type: "resource_link";
        uri: string;
        name: string;
        title?: string;
        description?: string;
        mimeType?: string;
        size?: number;
      }
  );

/** What an MCP tool answers with, as the protocol defines it and its SDKs take it. */
export interface CallToolResult {
  content: ContentBlock[];
  /** An object; since the 2026-07-28 revision any JSON value, which the SDKs' types do not say. */
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
  _meta?: Record<string, unknown>;
  [unknown: string]: unknown;
}

/** The key of `_meta` under which everything of ours rides. */
export const RESULT_META_KEY = "dev.waybill/result";

/** The text of a text block; nothing for any other. */
export function textOf(block: unknown): string | undefined {
  if (typeof block !== "object" || block === null) return undefined;
  const { type, text } = block as { type?: unknown; text?: unknown };
  return type === "text" && typeof text === "string" ? text : undefined;
}

/** Makes a text block. */
export function textBlock(text: string): { type: "text"; text: string } {
  return { type: "text", text };
}

/** Merges facts into what `_meta` says about a result. */
export function withResultFacts(
  result: CallToolResult,
  facts: Readonly<Record<string, unknown>>,
): CallToolResult {
  const known = result._meta?.[RESULT_META_KEY];
  const merged = { ...(isPlainObject(known) && known), ...facts };
  return { ...result, _meta: { ...result._meta, [RESULT_META_KEY]: merged } };
}
