import type { ResponseEnvelope } from "../../core/envelope/response-meta.ts";
import { joinPointer } from "../../core/json/json-pointer.ts";
import { isPlainJson } from "../../core/json/json-text.ts";
import { isPlainObject, setOwn } from "../../core/json/json-value.ts";
import type { CallToolResult, ContentBlock } from "../../core/result/call-tool-result.ts";
import { textOf } from "../../core/result/call-tool-result.ts";
import type { EndedCall } from "../../core/result/ended-call.ts";
import { encodeBase64 } from "../../core/wire/base64.ts";
import { BYTES_META_KEY, bytesIn, MOST_BYTES_BLOCKS, placeholderOf, toBytesBlock } from "../bytes-block.ts";
import type { CutOptions } from "./big-result.ts";

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
  const data = lift(envelope.data, "", 0, { blocks, mimeType: mediaTypeOf(envelope) });
  if (blocks.length === 0) return undefined;
  const root = bytesOf(envelope.data) === undefined ? undefined : (data as string);
  return { call: { ...call, outcome: { envelope: { ...envelope, data } } }, blocks, root };
}

/** How blocks are put into a result. */
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

function lift(value: unknown, pointer: string, level: number, lifting: Lifting): unknown {
  if (typeof value !== "object" || value === null || level > MOST_LEVELS) return value;
  const bytes = bytesOf(value);
  if (bytes !== undefined) {
    if (lifting.blocks.length >= MOST_BYTES_BLOCKS) return value;
    lifting.blocks.push(toBlock(bytes, pointer, lifting));
    return placeholderOf(bytes.length);
  }
  if (Array.isArray(value)) {
    const items = value.map((item, index) => lift(item, joinPointer(pointer, index), level + 1, lifting));
    return items.every((item, index) => item === value[index]) ? value : items;
  }
  if (!isPlainObject(value)) return value;
  const copy: Record<string, unknown> = {};
  let isChanged = false;
  for (const key of Object.keys(value)) {
    const member = lift(value[key], joinPointer(pointer, key), level + 1, lifting);
    isChanged ||= member !== value[key];
    setOwn(copy, key, member);
  }
  return isChanged ? copy : value;
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
