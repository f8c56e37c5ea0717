import {
  type CallToolResult,
  type ContentBlock,
  textBlock,
  textOf,
} from "../../core/result/call-tool-result.ts";
import type { ResultStore } from "../../core/result/result-store.ts";

/** Characters of a result that is too long to send, shown in its place. */
const PREVIEW_CHARACTERS = 2_000;

/** How a result that is too long is cut. */
export interface CutOptions {
  readonly store: Pick<ResultStore, "put">;
  /** UTF-16 units of the text, or of the structured content as JSON, that are sent whole. */
  readonly inlineCharacters: number;
  /** Whether the tool promises structured content; that promise is kept, whatever its size. */
  readonly isPromised: boolean;
  /** What the stored result is called. */
  readonly name: string;
}

/**
 * Puts a long result into the store and sends its beginning and a link. Structured content that a schema announces goes whole:
 * clients throw away a result without it, and a cut of it would be other data; where none is announced it is left out.
 */
export async function withinInline(result: CallToolResult, options: CutOptions): Promise<CallToolResult> {
  const { store, inlineCharacters, isPromised, name } = options;
  const whole = wholeOf(result, inlineCharacters);
  if (whole === undefined) return result;
  const link = await store.put({ ...whole, name });
  const { structuredContent, ...rest } = result;
  const shown = cutText(whole.text, PREVIEW_CHARACTERS);
  const omitted = whole.text.length - shown.length;
  const note = `… ${omitted} more characters; read ${link.uri} for the whole, or a part of it with ?offset=…&length=….`;
  const others = result.content.filter((block) => textOf(block) === undefined);
  const linkBlock: ContentBlock = {
    type: "resource_link",
    uri: link.uri,
    name: link.name,
    mimeType: link.mimeType,
    size: link.size,
  };
  return {
    ...rest,
    ...(isPromised && structuredContent !== undefined && { structuredContent }),
    content: [textBlock(`${shown}\n${note}`), ...others, linkBlock],
  };
}

/** The text worth storing, where it is longer than what is sent whole. */
function wholeOf(
  { content, structuredContent }: CallToolResult,
  limit: number,
): { readonly text: string; readonly mimeType: string } | undefined {
  if (structuredContent !== undefined) {
    const text = JSON.stringify(structuredContent);
    if (text.length > limit) return { text, mimeType: "application/json" };
  }
  const texts = content.map(textOf).filter((text) => text !== undefined);
  const length = texts.reduce((sum, text) => sum + text.length, 0);
  return length > limit ? { text: texts.join("\n\n"), mimeType: "text/plain" } : undefined;
}

/** The beginning of a text, without half a surrogate pair at its end. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text;
  const last = text.charCodeAt(max - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? max - 1 : max);
}
