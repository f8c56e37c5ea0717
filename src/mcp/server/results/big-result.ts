import type { MCPContentBlock } from "../../../core/envelope/content-block.ts";
import type { ResponseEnvelope, ResponseMeta, SaidFacts } from "../../../core/envelope/response-meta.ts";
import { joinPointer } from "../../../core/json/json-pointer.ts";
import { asJson, isPlainJson, isPlainObject, setOwn } from "../../../core/json/json-value.ts";
import { type CutData, cutToFit, describeCuts, toCutFacts } from "../../../core/preview/cut-data.ts";
import type { DataSchema } from "../../../core/preview/data-validator.ts";
import type { EndedCall } from "../../../core/result/ended-call.ts";
import { linksFrom } from "../../../core/result/human-text.ts";
import type { ResultStore, StoredResult } from "../../../core/result/result-store.ts";
import {
  type CallToolResult,
  type ContentBlock,
  RESULT_META_KEY,
  textBlock,
  textOf,
  withResultFacts,
} from "../../../core/result/tool-result.ts";
import { isEqual } from "../../../core/schema/compare-values.ts";
import { truncateText } from "../../../core/text/truncate-text.ts";
import { encodeBase64 } from "../../../core/wire/base64.ts";
import {
  BYTES_META_KEY,
  bytesIn,
  MOST_BYTES_BLOCKS,
  placeholderOf,
  toBytesBlock,
} from "../../content-blocks.ts";
import { withOutcome } from "./to-result.ts";

/** Characters of a text that is too long to send, shown in its place. */
const PREVIEW_CHARACTERS = 2_000;

/** How a result that is too long is cut. */
export interface CutOptions {
  readonly store: Pick<ResultStore, "put">;
  /** UTF-16 units of the text, and again of the data as JSON, that are sent whole. */
  readonly inlineCharacters: number;
  /** Whether the tool promises structured content: without a promise, what is too long is left out. */
  readonly isPromised: boolean;
  /** What the data has to match; nothing where it may be anything. */
  readonly schema?: DataSchema | undefined;
  /** What the stored result is called. */
  readonly name: string;
}

type Facts = Readonly<Record<string, unknown>>;

/** A part of a result that was cut: where the whole is, and a line that says so. */
interface Told {
  readonly stored: StoredResult;
  readonly note: string;
}

/**
 * Sends the beginning of a long result of MCP's own, and a link to the whole in the store. Structured content that a schema announces
 * is cut so that it still matches; where no cut of it does, it goes whole and `_meta` says so; where none is announced, it is left
 * out. What was cut, and where the whole is, `_meta` says for programs that put the data together again.
 */
export async function withinInline(result: CallToolResult, options: CutOptions): Promise<CallToolResult> {
  const { inlineCharacters, isPromised, store, name } = options;
  const { structuredContent: written, ...rest } = result;
  const json = written === undefined ? "" : JSON.stringify(written);
  const isLongData = json.length > inlineCharacters;
  const structured: unknown = isLongData ? asJson(written) : written;
  // Its text is the same data, and is cut as such.
  const dataAt = isLongData ? result.content.findIndex((block) => isTextOf(block, json, structured)) : -1;
  const others = result.content.filter((_, index) => index !== dataAt);
  const isLongText = charactersOf(others) > inlineCharacters;
  if (!isLongData && !isLongText) return result;
  const cut = isLongData && isPromised ? cutToBudget(structured, options) : undefined;
  const isWhole = !isLongData || cut?.truncated === false;
  const sent = isWhole ? written : cut?.data;
  const told: Told[] = [];
  let blocks = placed(result.content);
  if (isLongText) {
    const shortened = cutTexts(blocks, dataAt, Math.min(PREVIEW_CHARACTERS, inlineCharacters));
    const stored = await store.put({ text: shortened.whole, mimeType: "text/plain", name });
    told.push({ stored, note: toNote(stored) });
    blocks = shortened.blocks;
  }
  if (dataAt >= 0 || !isWhole) {
    const preview = dataAt < 0 ? undefined : previewOf({ structured, json, cut }, inlineCharacters);
    const stored = await store.put({ text: json, mimeType: "application/json", name });
    const note = toNote(stored, preview?.cuts ?? cut?.cuts);
    told.push({ stored, note: isWhole ? `${note} The structured content is whole.` : note });
    if (preview !== undefined) {
      blocks = blocks.map((each) => (each.from === dataAt ? { ...each, block: preview.block } : each));
    }
  }
  const shown = withBlocks(
    {
      ...rest,
      content: [],
      ...(sent !== undefined && { structuredContent: sent as Record<string, unknown> }),
    },
    blocks,
    { told },
  );
  if (isLongData && isWhole) return withResultFacts(shown, uncutFacts(json, inlineCharacters));
  // Where the data goes whole, so does its wire form.
  if (isWhole && structured !== undefined) return shown;
  const facts = { ...(!isWhole && { stored: told.at(-1)?.stored.uri }), ...(cut && toCutFacts(cut.cuts)) };
  return await withStoredWire(shown, facts, options);
}

/**
 * Writes a call in a format that is not MCP's own, from data and text that are cut beforehand where they are too long: the format writes
 * them, the link and what to do with it like all else that a result says. Data of which no cut matches its schema goes whole, and
 * `_meta` says so.
 */
export async function writeWithinBudget(
  call: EndedCall,
  write: (call: EndedCall) => Promise<CallToolResult>,
  options: CutOptions,
): Promise<CallToolResult> {
  const { outcome } = call;
  const found = "envelope" in outcome ? findLong(outcome.envelope, options) : undefined;
  if (!("envelope" in outcome) || found === undefined) return withOutcome(await write(call), call);
  const { json, cut, isLongText } = found;
  const told: Told[] = [];
  let { blocks } = found;
  const { store, inlineCharacters, name } = options;
  if (isLongText) {
    const shortened = cutTexts(placed(blocks), -1, Math.min(PREVIEW_CHARACTERS, inlineCharacters));
    const stored = await store.put({ text: shortened.whole, mimeType: "text/plain", name });
    told.push({ stored, note: toStep(stored) });
    blocks = shortened.blocks.map(({ block }) => block);
  }
  if (cut?.truncated) {
    const stored = await store.put({ text: json, mimeType: "application/json", name });
    told.push({ stored, note: toStep(stored, cut.cuts) });
  }
  const sent = told.length === 0 ? call : toSent(call, outcome.envelope, { blocks, told, cut });
  const written = await write(sent);
  // A format that could not write the result says so in its place.
  if ((written.isError === true) !== (outcome.envelope.meta.isError === true)) {
    return withOutcome(written, call);
  }
  const result = withLinks(withOutcome(written, call), told);
  if (cut === undefined) return result;
  if (!cut.truncated) return withResultFacts(result, uncutFacts(json, inlineCharacters));
  const facts = { stored: told.at(-1)?.stored.uri, storedAs: "data", ...toCutFacts(cut.cuts) };
  return await withStoredWire(result, facts, options);
}

interface Long {
  readonly json: string;
  /** The data as it may be sent; nothing where it is not too long. */
  readonly cut: CutData | undefined;
  /** What people see, without the data's own text. */
  readonly blocks: readonly ContentBlock[];
  readonly isLongText: boolean;
}

function findLong({ data, meta }: ResponseEnvelope, options: CutOptions): Long | undefined {
  const content = (meta.waybill?.said?.content ??
    (meta.source === "mcp" ? meta.content : [])) as ContentBlock[];
  // A tool without data has its content for it.
  const isContent =
    meta.source === "mcp" && meta.structuredContent === undefined && isEqual(data, meta.content);
  const value = data === undefined || isContent ? undefined : jsonOrNone(data);
  const json = value === undefined ? "" : JSON.stringify(value);
  const isLongData = json.length > options.inlineCharacters;
  const blocks = isLongData ? content.filter((block) => !isTextOf(block, json, value)) : content;
  const isLongText = charactersOf(blocks) > options.inlineCharacters;
  if (!isLongData && !isLongText) return undefined;
  // The data of an error need not match anything.
  const schema = meta.isError === true ? undefined : options.schema;
  const cut = isLongData ? cutToBudget(value, { ...options, schema }) : undefined;
  return { json, cut, blocks, isLongText };
}

/** What JSON cannot hold is for the format to refuse. */
export function jsonOrNone(data: unknown): unknown {
  try {
    return asJson(data);
  } catch {
    return undefined;
  }
}

interface SentParts {
  readonly blocks: readonly ContentBlock[];
  readonly told: readonly Told[];
  readonly cut: CutData | undefined;
}

/** The call as a format is to write it: with what is left of data and text, and where the rest is. */
function toSent(call: EndedCall, envelope: ResponseEnvelope, { blocks, told, cut }: SentParts): EndedCall {
  const { meta } = envelope;
  const { extra, ...said } = meta.waybill?.said ?? {};
  const cutSaid: SaidFacts = {
    ...said,
    // How a result was laid out says nothing about one with other data.
    ...(extra !== undefined && !cut?.truncated && { extra }),
    truncated: true,
    nextSteps: [...(said.nextSteps ?? []), ...told.map(({ note }) => note)],
    content: [...blocks, ...told.map(({ stored }) => toLink(stored))] as readonly MCPContentBlock[],
  };
  const data = cut?.truncated ? cut.data : envelope.data;
  const isContent = meta.source === "mcp" && isEqual(data, meta.content);
  const kept = { ...meta, waybill: { ...meta.waybill, said: cutSaid } } as ResponseMeta;
  const shown =
    kept.source !== "mcp"
      ? kept
      : {
          ...kept,
          content: blocks as MCPContentBlock[],
          ...(cut?.truncated &&
            Object.hasOwn(kept, "structuredContent") && {
              structuredContent: data as Record<string, unknown>,
            }),
        };
  return { ...call, outcome: { envelope: { data: isContent ? blocks : data, meta: shown } } };
}

/** A format may not show what the result says: the tiered envelope has no place for next steps, somebody's own for links. */
function withLinks(result: CallToolResult, told: readonly Told[]): CallToolResult {
  const { content } = result;
  const texts = content.map((block) => textOf(block) ?? "");
  const isLinked = ({ uri }: StoredResult): boolean =>
    content.some((block) => block.type === "resource_link" && block.uri === uri);
  const unsaid = told.filter(({ stored }) => !texts.some((text) => text.includes(stored.uri)));
  const unlinked = told.filter(({ stored }) => !isLinked(stored));
  return unsaid.length + unlinked.length === 0
    ? result
    : withBlocks(result, placed(content), { told: unsaid, linked: unlinked });
}

/** Cuts data to the budget, by its schema where it has one. */
function cutToBudget(value: unknown, { schema, inlineCharacters }: CutOptions): CutData {
  return cutToFit(value, { schema, maxCharacters: inlineCharacters, dropsProperties: schema === undefined });
}

interface LongData {
  readonly structured: unknown;
  readonly json: string;
  readonly cut: CutData | undefined;
}

/** The text that stands for data: a shorter version of it that is JSON still, or else its beginning. */
function previewOf(
  { structured, json, cut }: LongData,
  inlineCharacters: number,
): { readonly block: ContentBlock; readonly cuts: CutData["cuts"] } {
  const most = Math.min(PREVIEW_CHARACTERS, inlineCharacters);
  if (typeof structured === "string") return { block: textBlock(truncateText(structured, most)), cuts: [] };
  const isSame = cut?.truncated === true && inlineCharacters <= PREVIEW_CHARACTERS;
  const shown = isSame ? cut : cutToFit(structured, { maxCharacters: most, dropsProperties: true });
  const text = shown.truncated ? JSON.stringify(shown.data) : truncateText(json, most);
  return { block: textBlock(text), cuts: shown.cuts };
}

/** Says to programs that data over the budget was not cut. */
function uncutFacts(json: string, budget: number): Facts {
  return { uncut: { characters: json.length, budget } };
}

/** Adds facts; the wire form of the data, which is as long as the data, stays behind a fact of its own. */
export async function withStoredWire(
  result: CallToolResult,
  facts: Facts,
  options: Pick<CutOptions, "store" | "name">,
): Promise<CallToolResult> {
  const wire = await putWire(result, options);
  const all = { ...facts, ...(wire && { storedWire: wire.uri }) };
  const bare = withoutWire(result);
  return Object.keys(all).length === 0 ? bare : withResultFacts(bare, all);
}

/** Keeps the wire form of data, which nobody but a program would read. */
async function putWire(
  result: CallToolResult,
  { store, name }: Pick<CutOptions, "store" | "name">,
): Promise<StoredResult | undefined> {
  const facts = result._meta?.[RESULT_META_KEY];
  if (!isPlainObject(facts) || !Object.hasOwn(facts, "wire")) return undefined;
  return await store.put({ text: JSON.stringify(facts["wire"]), mimeType: "application/json", name });
}

/** Leaves out the wire form of data, which is as long as the data. */
function withoutWire(result: CallToolResult): CallToolResult {
  const facts = result._meta?.[RESULT_META_KEY];
  if (!isPlainObject(facts) || !Object.hasOwn(facts, "wire")) return result;
  const { wire: _, ...others } = facts;
  const { [RESULT_META_KEY]: __, ...meta } = result._meta ?? {};
  const _meta = Object.keys(others).length > 0 ? { ...meta, [RESULT_META_KEY]: others } : meta;
  return { ...result, _meta };
}

/** A block and its place before anything was cut. */
interface Placed {
  readonly block: ContentBlock;
  readonly from: number;
}

function placed(content: readonly ContentBlock[]): readonly Placed[] {
  return content.map((block, from) => ({ block, from }));
}

/** Shortens texts together, but for one: whole ones first, then the beginning of one, then none. */
function cutTexts(
  blocks: readonly Placed[],
  except: number,
  most: number,
): { readonly blocks: readonly Placed[]; readonly whole: string } {
  const texts: string[] = [];
  const kept: Placed[] = [];
  let left = most;
  for (const { block, from } of blocks) {
    const text = from === except ? undefined : textOf(block);
    if (text === undefined) kept.push({ block, from });
    else {
      texts.push(text);
      const shown = truncateText(text, left);
      left -= shown.length;
      if (shown !== "") kept.push({ block: { ...block, text: shown } as ContentBlock, from });
      if (shown.length < text.length) left = 0;
    }
  }
  return { blocks: kept, whole: texts.join("\n\n") };
}

/** Puts blocks into a result, then what is said of the rest, then links to it; facts that count blocks count them anew. */
function withBlocks(
  result: CallToolResult,
  blocks: readonly Placed[],
  { told, linked = told }: { readonly told: readonly Told[]; readonly linked?: readonly Told[] },
): CallToolResult {
  const firstLink = linksFrom(blocks.map(({ block }) => block));
  const notes = told.length === 0 ? [] : [textBlock(told.map(({ note }) => note).join("\n"))];
  const content = [
    ...blocks.slice(0, firstLink).map(({ block }) => block),
    ...notes,
    ...blocks.slice(firstLink).map(({ block }) => block),
    ...linked.map(({ stored }) => toLink(stored)),
  ];
  const facts = result._meta?.[RESULT_META_KEY];
  const own = isPlainObject(facts) && Array.isArray(facts["blocks"]) ? facts["blocks"] : undefined;
  if (own === undefined) return { ...result, content };
  const places = blocks.flatMap(({ from }, at) =>
    own.includes(from) ? [at < firstLink ? at : at + notes.length] : [],
  );
  return withResultFacts({ ...result, content }, { blocks: places });
}

function charactersOf(blocks: readonly ContentBlock[]): number {
  return blocks.reduce((sum, block) => sum + (textOf(block)?.length ?? 0), 0);
}

/** Tells whether a block is data as text. */
function isTextOf(block: ContentBlock, json: string, value: unknown): boolean {
  const text = textOf(block);
  return text !== undefined && (text === json || text === value);
}

function toNote({ uri, characters, mimeType }: StoredResult, cuts: CutData["cuts"] = []): string {
  const what = cuts.length === 0 ? "" : `${describeCuts(cuts)}; `;
  const count = characters.toLocaleString("en-US");
  return `… cut: ${what}read ${uri} for all ${count} characters (${mimeType}), or a part of them with ?offset=…&length=….`;
}

/** The same as what to do next, for formats that have a place for it. */
function toStep({ uri, characters, mimeType }: StoredResult, cuts: CutData["cuts"] = []): string {
  const what = cuts.length === 0 ? "the text is cut" : `the data is cut: ${describeCuts(cuts)}`;
  const count = characters.toLocaleString("en-US");
  return `Read ${uri} for all ${count} characters (${mimeType}), or a part of them with ?offset=…&length=…: ${what}.`;
}

function toLink({ uri, name, mimeType, size }: StoredResult): ContentBlock {
  return { type: "resource_link", uri, name, mimeType, size };
}

/** Levels of data that bytes are looked for in. */
const MOST_LEVELS = 64;

const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/;

/** A call whose data holds no bytes any more, and the blocks that do. */
export interface LiftedCall {
  readonly call: EndedCall;
  readonly blocks: readonly ContentBlock[];
  /** What stands for data that is nothing but bytes. */
  readonly root: string | undefined;
}

/**
 * Takes bytes out of the data of a call: MCP has blocks for them, which know their media type. In the data a text says how many there
 * were, and each block says in `_meta` where it belongs, from where `fromMcp` puts them back.
 */
export function liftBytes(call: EndedCall): LiftedCall | undefined {
  if (!("envelope" in call.outcome)) return undefined;
  const { envelope } = call.outcome;
  if (isPlainJson(envelope.data)) return undefined;
  const blocks: ContentBlock[] = [];
  const data = liftedData(envelope.data, { blocks, mimeType: mediaTypeOf(envelope) });
  if (blocks.length === 0) return undefined;
  const root = bytesOf(envelope.data) === undefined ? undefined : (data as string);
  return { call: { ...call, outcome: { envelope: { ...envelope, data } } }, blocks, root };
}

interface BytesPlacing {
  /** Whether the result is MCP's own: data that is nothing but bytes is said by its block alone. */
  readonly isPlain: boolean;
  /** What is sent in place of blocks that are too long. */
  readonly links: ReadonlyMap<ContentBlock, ContentBlock>;
}

/** Stores the bytes that do not fit the budget, and gives the links that are sent in their place. */
export async function storeBytes(
  { blocks }: Pick<LiftedCall, "blocks">,
  { store, inlineCharacters, name }: Pick<CutOptions, "store" | "inlineCharacters" | "name">,
): Promise<ReadonlyMap<ContentBlock, ContentBlock>> {
  const links = new Map<ContentBlock, ContentBlock>();
  let left = inlineCharacters;
  for (const block of blocks) {
    const text = bytesIn(block) ?? "";
    left -= text.length;
    if (left >= 0) continue;
    const type =
      block.type === "resource" ? block.resource.mimeType : (block as { mimeType?: string }).mimeType;
    const mimeType = type ?? "application/octet-stream";
    const stored = await store.put({ text, mimeType, name, encoding: "base64" });
    const { _meta } = block;
    links.set(block, {
      type: "resource_link",
      uri: stored.uri,
      name: stored.name,
      mimeType,
      size: stored.size,
      ...(_meta && { _meta }),
    });
  }
  return links;
}

/** Puts the blocks into the result of such a call; one that holds the same bytes already is theirs. */
export function withBytes(
  result: CallToolResult,
  { blocks, root }: LiftedCall,
  { isPlain, links }: BytesPlacing,
): CallToolResult {
  const content = [...result.content];
  for (const block of blocks) {
    const base64 = bytesIn(block);
    const at = content.findIndex((own) => bytesIn(own) === base64);
    const own = content[at];
    const link = links.get(block);
    if (own === undefined) content.push(link ?? block);
    else content[at] = link ?? ({ ...own, _meta: { ...own._meta, ...block._meta } } as ContentBlock);
  }
  if (root === undefined || !isPlain) return { ...result, content };
  const { structuredContent: _, ...rest } = result;
  return { ...rest, content: content.filter((block) => textOf(block) !== root) };
}

interface Lifting {
  readonly blocks: ContentBlock[];
  readonly mimeType: string;
}

/** Data without its bytes, which become blocks. */
function liftedData(data: unknown, lifting: Lifting): unknown {
  const lift = (value: unknown, pointer: string, level: number): unknown => {
    if (typeof value !== "object" || value === null || level > MOST_LEVELS) return value;
    const bytes = bytesOf(value);
    if (bytes !== undefined) {
      if (lifting.blocks.length >= MOST_BYTES_BLOCKS) return value;
      lifting.blocks.push(toBlock(bytes, pointer, lifting));
      return placeholderOf(bytes.length);
    }
    if (Array.isArray(value)) {
      const items = value.map((item, index) => lift(item, joinPointer(pointer, index), level + 1));
      return items.every((item, index) => item === value[index]) ? value : items;
    }
    if (!isPlainObject(value)) return value;
    const copy: Record<string, unknown> = {};
    let isChanged = false;
    for (const key of Object.keys(value)) {
      const member = lift(value[key], joinPointer(pointer, key), level + 1);
      isChanged ||= member !== value[key];
      setOwn(copy, key, member);
    }
    return isChanged ? copy : value;
  };
  return lift(data, "", 0);
}

function bytesOf(value: unknown): Uint8Array | undefined {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (!ArrayBuffer.isView(value)) return undefined;
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

function toBlock(bytes: Uint8Array, pointer: string, { blocks, mimeType }: Lifting): ContentBlock {
  const uri = `waybill://bytes/${blocks.length}`;
  return toBytesBlock({ uri, blob: encodeBase64(bytes), mimeType }, { [BYTES_META_KEY]: pointer });
}

/** What an API says of its body; other bytes are just bytes. */
function mediaTypeOf({ data, meta }: ResponseEnvelope): string {
  const [said = ""] = meta.source === "http" ? meta.contentType.split(";") : [];
  const type = said.trim().toLowerCase();
  return bytesOf(data) !== undefined && MEDIA_TYPE.test(type) ? type : "application/octet-stream";
}
