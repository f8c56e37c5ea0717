import type { MCPContentBlock, MCPResourceLinkBlock } from "../../core/envelope/content-block.ts";
import type { AuthoredResult } from "../../core/envelope/envelope.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { type CutData, describeCuts, flagTruncated, toCutFacts } from "../../core/preview/cut-data.ts";
import type { DataSchema } from "../../core/preview/data-validator.ts";
import { measureJson } from "../../core/preview/measure-json.ts";
import type { DataCut } from "../../core/preview/shorten-data.ts";
import type { ResultEntry, ResultStore, StoredResult } from "../../core/result/result-store.ts";
import { type ToolResult, textOf } from "../../core/result/tool-result.ts";
import type {
  ComposeToolPayloadOptions,
  TokenUsage,
  ToolPayload,
  ToolResponseEnvelope,
  ToolResponseMeta,
} from "../status-envelope/compose-tool-payload.ts";
import { composeToolPayload } from "../status-envelope/compose-tool-payload.ts";
import { statusEnvelopeCodec } from "../status-envelope/status-envelope-codec.ts";
import { cutTexts, PREVIEW_CHARACTERS } from "./cut-markdown.ts";
import { countTokens, cutData, readLimit } from "./token-budget.ts";

/** How results are previewed: what is sent at once, and where the whole is kept. */
export interface ResultPreview extends PreviewLimits {
  /** Keeps what is cut; give the server that answers `resources/read` the same one. */
  readonly store: ResultStore;
}

/** A result as it is sent. */
export interface PreviewedResult {
  readonly result: ToolResult;
  /** What programs are told of a preview, or of data that could not be cut; nothing where there is nothing to tell. */
  readonly facts: Readonly<Record<string, unknown>> | undefined;
}

/** What a result is of: what its data has to match, and who it is kept for. */
interface PreviewedCall {
  readonly schema: DataSchema | undefined;
  readonly keeps?: Pick<ResultEntry, "owner" | "binding"> | undefined;
}

/** Makes a result that is to be a status envelope small enough to send, as `previewToolPayload` does. */
export async function previewResult(
  whole: ToolResult,
  { schema, keeps }: PreviewedCall,
  { store, ...limits }: ResultPreview,
): Promise<PreviewedResult> {
  const { meta, data } = statusEnvelopeCodec.encode(whole).structuredContent as ToolResponseEnvelope;
  const { content = [], extra, ...others } = whole;
  const { payload, stored, cuts, uncut } = await previewPayload({
    meta,
    data,
    additionalText: content.map(textOf).filter((text) => text !== undefined),
    resourceLinks: content.filter(isLink),
    isError: whole.isError,
    // The data of an error need not match anything.
    ...(schema !== undefined && !whole.isError && { schema }),
    store: sayingWhy(store, keeps),
    limits,
    onWarning: () => undefined,
  });
  const sent = statusEnvelopeCodec.decode(payload).result;
  const tokenUsage = sent.tokenUsage && { tokenUsage: sent.tokenUsage };
  if (stored === undefined) return { result: { ...whole, ...tokenUsage }, facts: uncut && { uncut } };
  const [texts, links] = [sent.content?.filter((block) => !isLink(block)), sent.content?.filter(isLink)];
  const rest = content.filter((block) => textOf(block) === undefined && !isLink(block));
  return {
    result: {
      ...others,
      // Cut data is not the wire form of anything.
      ...(extra !== undefined && sent.data === data && { extra }),
      ...(whole.data !== undefined && { data: sent.data }),
      ...(sent.nextSteps && { nextSteps: sent.nextSteps }),
      ...tokenUsage,
      truncated: true,
      content: [...(texts ?? []), ...rest, ...(links ?? [])],
    },
    facts: {
      preview: true,
      ...(uncut && { uncut }),
      ...(cuts.length > 0 && { stored: stored.uri, storedAs: "envelope", ...toCutFacts(cuts) }),
    },
  };
}

function isLink(block: MCPContentBlock): block is MCPResourceLinkBlock {
  return block.type === "resource_link";
}

/** A store that says what it means that nothing can be kept, and whose what is kept is. */
function sayingWhy(
  store: ResultStore,
  keeps: Pick<ResultEntry, "owner" | "binding"> | undefined,
): ResultStore {
  return {
    read: () => undefined,
    async put(entry) {
      try {
        return await store.put({ ...entry, ...keeps });
      } catch (thrown) {
        if (isCallError(thrown) && thrown.code === "TOO_LARGE") throw thrown;
        throw new CallError("EXECUTION_ERROR", "The whole result could not be kept.", { cause: thrown });
      }
    },
  };
}

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
export async function previewToolPayload<T>(
  options: PreviewToolPayloadOptions<T>,
): Promise<ToolPayload<T> & AuthoredResult<T>> {
  return (await previewPayload(options)).payload;
}

/** A reply as it is sent, and what became of the rest. */
export interface PreviewedPayload<T = unknown> {
  readonly payload: ToolPayload<T> & AuthoredResult<T>;
  /** Where the whole is; nothing where nothing was cut. */
  readonly stored?: StoredResult;
  readonly cuts: readonly DataCut[];
  /** How long data is that goes whole although it is over the limit, because no valid cut of it exists. */
  readonly uncut?: { readonly characters: number; readonly budget: number };
}

/** Does what `previewToolPayload` does, and says what was cut. */
async function previewPayload<T>(options: PreviewToolPayloadOptions<T>): Promise<PreviewedPayload<T>> {
  const { schema, store, limits = {}, ...whole } = options;
  const texts = cutTexts(whole.additionalText ?? [], limits);
  const cut = cutData(whole.data, {
    schema,
    maxCharacters: limits.maxCharacters,
    maxTokens: limits.maxTokens,
  });
  const uncut = refuseOverCap(whole, cut, limits);
  const told = { cuts: cut.cuts, ...(uncut && { uncut }) };
  if (!texts.truncated && !cut.truncated) return { payload: withUsage(whole, whole), ...told };
  const stored = await store.put({
    text: writeWhole(whole),
    mimeType: "application/json",
    name: "Whole result",
  });
  const sent: ComposeToolPayloadOptions<T> = {
    ...whole,
    meta: truncatedMeta(whole.meta, stored, cut.cuts),
    data: cut.truncated ? cut.data : flagTruncated(whole.data, schema),
    additionalText: texts.texts,
    resourceLinks: [...(whole.resourceLinks ?? []), toLink(stored)],
  };
  return { payload: withUsage(sent, whole), stored, ...told };
}

/** Refuses data that cannot be cut and is over the cap; gives how long it is where it is over the limit of a preview alone. */
function refuseOverCap<T>(
  whole: ComposeToolPayloadOptions<T>,
  cut: CutData<T>,
  limits: PreviewLimits,
): PreviewedPayload["uncut"] {
  const limit = readLimit("maxInlineCharacters", limits.maxInlineCharacters, MAX_INLINE_CHARACTERS);
  const metaCharacters = measureJson(whole.meta).characters;
  const dataCharacters = cut.truncated ? 0 : measureJson(cut.data).characters;
  // Data within the limit of a preview was allowed by the caller, however high that is.
  const budget = limits.maxCharacters ?? PREVIEW_CHARACTERS;
  const isPreview = dataCharacters <= budget;
  const characters = metaCharacters + (isPreview ? 0 : dataCharacters);
  if (characters <= limit) return isPreview ? undefined : { characters: dataCharacters, budget };
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

function truncatedMeta(
  meta: ToolResponseMeta,
  { uri, characters }: StoredResult,
  cuts: readonly DataCut[],
): ToolResponseMeta {
  const what = cuts.length === 0 ? "" : `; the data is cut: ${describeCuts(cuts)}`;
  const step = `Read the whole result (${characters.toLocaleString("en-US")} characters of JSON) from the resource ${uri}, or a part of it from ${uri}?offset=0&length=${PREVIEW_CHARACTERS}${what}`;
  return { ...meta, truncated: true, nextSteps: [...(meta.nextSteps ?? []), step] };
}

function toLink({ uri, name, mimeType, size }: StoredResult): MCPResourceLinkBlock {
  const description = `All that was cut. For a range of characters, read ${uri}?offset=0&length=${PREVIEW_CHARACTERS} and go on from there.`;
  return { type: "resource_link", uri, name, description, mimeType, size };
}

function withUsage<T>(
  sent: ComposeToolPayloadOptions<T>,
  whole: ComposeToolPayloadOptions<T>,
): ToolPayload<T> & AuthoredResult<T> {
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

/** Writes a value as JSON; one that is too large or nested too deeply to be written is refused with `TOO_LARGE`. */
function writeJson(value: unknown, indent = 0): string {
  try {
    return JSON.stringify(value, null, indent);
  } catch (cause) {
    const message =
      "The result is too large or nested too deeply to be written as JSON; return less, or flatter data.";
    throw new CallError("TOO_LARGE", message, { cause });
  }
}
