import { isPlainObject } from "../../core/json/json-value.ts";
import {
  type CallToolResult,
  type ContentBlock,
  RESULT_META_KEY,
  textBlock,
  textOf,
} from "../../core/result/call-tool-result.ts";
import type { ResultEntry, ResultStore, StoredResult } from "../../core/result/result-store.ts";
import { cutText } from "../../core/text/cut-text.ts";
import { withFacts } from "./outcome-meta.ts";

/** Characters of a result that is too long to send, shown in its place. */
const PREVIEW_CHARACTERS = 2_000;

/** How a result that is too long is cut. */
export interface CutOptions {
  readonly store: Pick<ResultStore, "put">;
  /** UTF-16 units of the text, and again of the structured content as JSON, that are sent whole. */
  readonly inlineCharacters: number;
  /** Whether the tool promises structured content; that promise is kept, whatever its size. */
  readonly isPromised: boolean;
  /** Makes structured content smaller in a way that keeps the promise; without one it goes whole. */
  readonly shorten?: (structured: unknown, maxCharacters: number) => unknown;
  /** What the stored result is called. */
  readonly name: string;
}

/**
 * Puts a long result into the store and sends its beginning and a link. Structured content that a schema announces goes whole:
 * clients throw away a result without it, and a cut of it would be other data; where none is announced it is left out. Where the
 * whole is, and its wire form where JSON is not all of it, `_meta` says for programs that put the data together again.
 */
export async function withinInline(result: CallToolResult, options: CutOptions): Promise<CallToolResult> {
  const { store, inlineCharacters, name } = options;
  const { structuredContent, ...rest } = result;
  const texts = result.content.map(textOf).filter((text) => text !== undefined);
  const json = structuredContent === undefined ? "" : JSON.stringify(structuredContent);
  const isLongData = json.length > inlineCharacters;
  const isLongText = texts.reduce((sum, text) => sum + text.length, 0) > inlineCharacters;
  const data = isLongData ? sentData(structuredContent, options) : structuredContent;
  const isWhole = data === structuredContent;
  if (!isLongText && isWhole) return result;
  const isDataAsText = isLongData && texts.length === 1 && [json, structuredContent].includes(texts[0]);
  const entries: ResultEntry[] = [];
  if (isLongText && !isDataAsText) entries.push({ text: texts.join("\n\n"), mimeType: "text/plain", name });
  if (!isWhole || isDataAsText) entries.push({ text: json, mimeType: "application/json", name });
  const stored = await Promise.all(entries.map((entry) => store.put(entry)));
  const shown = isLongText
    ? [cutText(entries[0]?.text ?? "", Math.min(PREVIEW_CHARACTERS, inlineCharacters))]
    : texts;
  const others = result.content.filter((block) => textOf(block) === undefined);
  const cut: CallToolResult = {
    ...rest,
    ...(data !== undefined && { structuredContent: data as Record<string, unknown> }),
    content: [...[...shown, stored.map(toNote).join("\n")].map(textBlock), ...others, ...stored.map(toLink)],
  };
  if (isWhole && structuredContent !== undefined) return cut;
  const wire = await putWire(result, options);
  const facts = { ...(!isWhole && { stored: stored.at(-1)?.uri }), ...(wire && { storedWire: wire.uri }) };
  return Object.keys(facts).length === 0 ? withoutWire(cut) : withFacts(withoutWire(cut), facts);
}

/** Keeps the wire form of data, which nobody but a program would read. */
async function putWire(
  result: CallToolResult,
  { store, name }: CutOptions,
): Promise<StoredResult | undefined> {
  const facts = result._meta?.[RESULT_META_KEY];
  if (!isPlainObject(facts) || !Object.hasOwn(facts, "wire")) return undefined;
  return await store.put({ text: JSON.stringify(facts["wire"]), mimeType: "application/json", name });
}

/** Leaves out the wire form of data, which is as long as the data. */
export function withoutWire(result: CallToolResult): CallToolResult {
  const facts = result._meta?.[RESULT_META_KEY];
  if (!isPlainObject(facts) || !Object.hasOwn(facts, "wire")) return result;
  const { wire: _, ...others } = facts;
  const { [RESULT_META_KEY]: __, ...meta } = result._meta ?? {};
  const _meta = Object.keys(others).length > 0 ? { ...meta, [RESULT_META_KEY]: others } : meta;
  return { ...result, _meta };
}

function sentData(structured: unknown, options: CutOptions): unknown {
  const { isPromised, shorten, inlineCharacters } = options;
  if (shorten !== undefined) return shorten(structured, inlineCharacters);
  return isPromised ? structured : undefined;
}

function toNote({ uri, characters, mimeType }: StoredResult): string {
  return `… cut: read ${uri} for all ${characters} characters (${mimeType}), or a part of them with ?offset=…&length=….`;
}

function toLink({ uri, name, mimeType, size }: StoredResult): ContentBlock {
  return { type: "resource_link", uri, name, mimeType, size };
}
