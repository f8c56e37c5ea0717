import type { MCPContentBlock } from "../core/envelope/content-block.ts";

/** What an MCP tool answers with, as the protocol defines it. */
export interface CallToolResult {
  readonly content: readonly MCPContentBlock[];
  /** Any JSON value; before the 2026-07-28 revision an object. */
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>>;
  readonly [unknown: string]: unknown;
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
export function textBlock(text: string): MCPContentBlock {
  return { type: "text", text };
}
