import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { decodeBase64 } from "../../core/wire/base64.ts";

/** Bytes found in a result, and what they are. */
export interface FoundBytes {
  readonly bytes: Uint8Array;
  readonly mediaType: string;
}

/** The bytes a result consists of: data that is bytes, or the first picture, sound or file of a tool result. */
export function bytesOfResult({ data, meta }: ResponseEnvelope): FoundBytes | undefined {
  if (data instanceof Uint8Array) {
    return { bytes: data, mediaType: meta.source === "http" ? meta.contentType : "application/octet-stream" };
  }
  if (meta.source !== "mcp") return undefined;
  for (const block of meta.content) {
    const found = bytesOfBlock(block);
    if (found !== undefined) return found;
  }
  return undefined;
}

function bytesOfBlock(block: unknown): FoundBytes | undefined {
  if (!isPlainObject(block)) return undefined;
  const held = block["type"] === "resource" && isPlainObject(block["resource"]) ? block["resource"] : block;
  const text = held["type"] === "image" || held["type"] === "audio" ? held["data"] : held["blob"];
  const bytes = typeof text === "string" ? decodeBase64(text) : undefined;
  if (bytes === undefined) return undefined;
  const { mimeType } = held;
  return { bytes, mediaType: typeof mimeType === "string" ? mimeType : "application/octet-stream" };
}

/** Deeper values are left as they are. */
const MOST_LEVELS = 12;

/** A copy in which bytes are replaced by a word about them, for terminals. */
export function withoutBytes(value: unknown, level = 0): unknown {
  if (value instanceof Uint8Array) return note(value.length, "application/octet-stream");
  if (level > MOST_LEVELS || typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => withoutBytes(item, level + 1));
  if (!isPlainObject(value)) return value;
  const found =
    typeof value["data"] === "string" || typeof value["blob"] === "string" ? bytesOfBlock(value) : undefined;
  const entries = Object.entries(value).map(([key, member]): [string, unknown] => {
    const isBytes = found !== undefined && (key === "data" || key === "blob");
    return [key, isBytes ? note(found.bytes.length, found.mediaType) : withoutBytes(member, level + 1)];
  });
  return Object.fromEntries(entries);
}

function note(size: number, mediaType: string): string {
  return `(${size} bytes of ${mediaType}; --output <file> saves them)`;
}
