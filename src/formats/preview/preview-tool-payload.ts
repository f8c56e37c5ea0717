import type { MCPResourceLinkBlock } from "../../core/envelope/content-block.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { ResultStore, StoredResult } from "../../core/result/result-store.ts";
import { composeToolPayload } from "../status-envelope/compose-tool-payload.ts";
import type {
  ComposeToolPayloadOptions,
  TokenUsage,
  ToolPayload,
  ToolResponseMeta,
} from "../status-envelope/types.ts";
import { type CutData, cutData, flagTruncated } from "./cut-data.ts";
import { PREVIEW_CHARACTERS } from "./cut-text.ts";
import { cutTexts } from "./cut-texts.ts";
import type { DataSchema } from "./data-validator.ts";
import { measureJson } from "./measure-json.ts";
import { readLimit } from "./read-limit.ts";
import { countTokens } from "./token-usage.ts";
import { writeJson } from "./write-json.ts";

/** How much of a result is sent at once. */
export interface PreviewLimits {
  /** UTF-16 units of all additional text, and again of the data as JSON. @default 2_000 */
  readonly maxCharacters?: number;
  /** Estimated tokens of the same, each. @default no limit */
  readonly maxTokens?: number;
  /** UTF-16 units, as JSON, of `meta` and of data that no valid cut makes smaller; more is refused. @default 100_000 */
  readonly maxInlineCharacters?: number;
}

/** What `previewToolPayload` is told. */
export interface PreviewToolPayloadOptions<T = unknown> extends ComposeToolPayloadOptions<T> {
  /** What cut data must still match; without it only arrays and strings are shortened. */
  readonly schema?: DataSchema;
  /** Keeps the whole of what is cut. */
  readonly store: ResultStore;
  readonly limits?: PreviewLimits;
}

const MAX_INLINE_CHARACTERS = 100_000;

/** Nesting up to which stored JSON is indented; deeper, the indentation would outgrow the data. */
const MAX_INDENTED_DEPTH = 32;

/**
 * Writes a reply like `composeToolPayload`, but sends only a preview of what is large: the whole goes into the store,
 * and a link and a next step say how to read it. `meta.tokenUsage` is filled in where the caller did not: `inline` counts
 * the text blocks sent, `total` the text blocks and the JSON data of the whole. Data of which no valid cut is small
 * enough goes whole, or is refused with `TOO_LARGE`.
 */
export async function previewToolPayload<T>(options: PreviewToolPayloadOptions<T>): Promise<ToolPayload<T>> {
  const { schema, store, limits = {}, ...whole } = options;
  const texts = cutTexts(whole.additionalText ?? [], limits);
  const cut = cutData(whole.data, {
    schema,
    maxCharacters: limits.maxCharacters,
    maxTokens: limits.maxTokens,
  });
  refuseOverCap(whole, cut, limits);
  if (!texts.truncated && !cut.truncated) return withUsage(whole, whole);
  const stored = await store.put({
    text: writeWhole(whole),
    mimeType: "application/json",
    name: "Whole result",
  });
  const sent: ComposeToolPayloadOptions<T> = {
    ...whole,
    meta: truncatedMeta(whole.meta, stored),
    data: cut.truncated ? cut.data : flagTruncated(whole.data, schema),
    additionalText: texts.texts,
    resourceLinks: [...(whole.resourceLinks ?? []), toLink(stored)],
  };
  return withUsage(sent, whole);
}

function refuseOverCap<T>(whole: ComposeToolPayloadOptions<T>, cut: CutData<T>, limits: PreviewLimits): void {
  const limit = readLimit("maxInlineCharacters", limits.maxInlineCharacters, MAX_INLINE_CHARACTERS);
  const metaCharacters = measureJson(whole.meta).characters;
  const dataCharacters = cut.truncated ? 0 : measureJson(cut.data).characters;
  // Data within the limit of a preview was allowed by the caller, however high that is.
  const isPreview = dataCharacters <= (limits.maxCharacters ?? PREVIEW_CHARACTERS);
  const characters = metaCharacters + (isPreview ? 0 : dataCharacters);
  if (characters <= limit) return;
  const fix =
    metaCharacters > limit
      ? "Move long details into additionalText, which can be cut"
      : "Return less data, or let its schema allow shorter arrays and strings or optional properties";
  throw new CallError(
    "TOO_LARGE",
    `The result has ${characters} characters that cannot be cut. ${fix}; or raise maxInlineCharacters (${limit}).`,
    { details: { characters, limit } },
  );
}

function writeWhole({ meta, data, additionalText }: ComposeToolPayloadOptions): string {
  const isDeep = measureJson(data).depth > MAX_INDENTED_DEPTH;
  return writeJson({ meta, data, additionalText }, isDeep ? 0 : 2);
}

function truncatedMeta(meta: ToolResponseMeta, { uri, characters }: StoredResult): ToolResponseMeta {
  const step = `Read the whole result (${characters.toLocaleString("en-US")} characters of JSON) from the resource ${uri}, or a part of it from ${uri}?offset=0&length=${PREVIEW_CHARACTERS}`;
  return { ...meta, truncated: true, nextSteps: [...(meta.nextSteps ?? []), step] };
}

function toLink({ uri, name, mimeType, size }: StoredResult): MCPResourceLinkBlock {
  const description = `All that was cut. For a range of characters, read ${uri}?offset=0&length=${PREVIEW_CHARACTERS} and go on from there.`;
  return { type: "resource_link", uri, name, description, mimeType, size };
}

function withUsage<T>(
  sent: ComposeToolPayloadOptions<T>,
  whole: ComposeToolPayloadOptions<T>,
): ToolPayload<T> {
  const given = whole.meta.tokenUsage;
  const tokenUsage: TokenUsage = {
    inline: given?.inline ?? countTokens(textsOf(sent)),
    total: given?.total ?? countTokens([...textsOf(whole), writeJson(whole.data)]),
  };
  return composeToolPayload({ ...sent, meta: { ...sent.meta, tokenUsage } });
}

/** The text blocks of a reply; composed in silence, for it is composed once more to be sent. */
function textsOf(options: ComposeToolPayloadOptions): string[] {
  const { content } = composeToolPayload({ ...options, onWarning: () => undefined });
  return content.flatMap((block) => (block.type === "text" ? [block.text] : []));
}
