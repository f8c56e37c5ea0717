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
