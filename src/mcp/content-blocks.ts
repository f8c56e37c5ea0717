import type { MCPContentBlock } from "../core/envelope/content-block.ts";
import { isContentBlock } from "../core/envelope/envelope.ts";
import { isPlainObject, toJsonTextOrNone } from "../core/json/json-value.ts";
import type { ContentBlock } from "../core/result/tool-result.ts";

const UNWRITABLE = "[a content block that cannot be written as JSON]";

/**
 * Maps the blocks of a tool result one to one: those that MCP defines stay as they are, any other becomes a text block that holds
 * its JSON. Whatever it is given, it does not throw; what is no list has no blocks.
 */
export function mapMCPContentBlocks(blocks: unknown): MCPContentBlock[] {
  const mapped: MCPContentBlock[] = [];
  try {
    if (!Array.isArray(blocks)) return mapped;
    // By index, not with `map`, which a hostile array can bring along.
    for (let i = 0; i < blocks.length; i++) mapped.push(mapBlock(blocks, i));
  } catch {
    // A list that cannot be read ends where it cannot.
  }
  return mapped;
}

function mapBlock(blocks: readonly unknown[], index: number): MCPContentBlock {
  try {
    const block = blocks[index];
    if (isContentBlock(block)) return block;
    return { type: "text", text: toJsonTextOrNone(block) ?? UNWRITABLE };
  } catch {
    return { type: "text", text: UNWRITABLE };
  }
}

/** The key of a block's `_meta` that says, as a JSON pointer, where in the data of the result its bytes belong. */
export const BYTES_META_KEY = "dev.waybill/bytes";

/** How many pieces of bytes of one result become blocks; further ones stay in the data, in its wire form. */
export const MOST_BYTES_BLOCKS = 100;

/** The longest pointer that is followed. */
const PLACE_LENGTH = 8_192;

/** What stands in the data for bytes that are in a block. */
export function placeholderOf(length: number): string {
  return `[${length.toLocaleString("en-US")} bytes]`;
}

/** The block for bytes of a media type: an image, audio, or a resource under an address of its own. */
export function toBytesBlock(
  {
    uri,
    blob,
    mimeType = "application/octet-stream",
  }: { uri: string; blob: string; mimeType?: string | undefined },
  meta: unknown,
): ContentBlock {
  const _meta = isPlainObject(meta) ? { _meta: meta } : {};
  if (mimeType.startsWith("image/")) return { type: "image", data: blob, mimeType, ..._meta };
  if (mimeType.startsWith("audio/")) return { type: "audio", data: blob, mimeType, ..._meta };
  return { type: "resource", resource: { uri, mimeType, blob }, ..._meta };
}

/** The base64 of a block that holds bytes; nothing for any other. */
export function bytesIn(block: unknown): string | undefined {
  if (!isPlainObject(block)) return undefined;
  const { type, data, resource } = block;
  const held = type === "resource" ? (isPlainObject(resource) ? resource["blob"] : undefined) : data;
  const holdsBytes = type === "image" || type === "audio" || type === "resource";
  return holdsBytes && typeof held === "string" ? held : undefined;
}

/** Where the bytes of a block belong; nothing for a block that does not say. */
export function bytesPlaceOf(block: unknown): string | undefined {
  const meta = isPlainObject(block) ? block["_meta"] : undefined;
  const place = isPlainObject(meta) && Object.hasOwn(meta, BYTES_META_KEY) ? meta[BYTES_META_KEY] : undefined;
  return typeof place === "string" && place.length <= PLACE_LENGTH ? place : undefined;
}

/** The address a block links to or embeds; nothing for any other block. */
export function linkedUri(block: unknown): string | undefined {
  if (typeof block !== "object" || block === null) return undefined;
  const { type, uri, resource } = block as Readonly<Record<string, unknown>>;
  if (type === "resource_link") return typeof uri === "string" ? uri : undefined;
  if (type !== "resource" || typeof resource !== "object" || resource === null) return undefined;
  const inner = (resource as { readonly uri?: unknown }).uri;
  return typeof inner === "string" ? inner : undefined;
}

/** The same block with another address. */
export function withLinkedUri<T>(block: T, uri: string): T {
  const { resource, type } = block as { readonly resource?: object; readonly type?: unknown };
  return type === "resource" ? { ...block, resource: { ...resource, uri } } : { ...block, uri };
}
