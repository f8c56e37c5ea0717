import { base64Size, MOST_BYTES } from "../form/file-bytes.ts";
import { isMembers, listIn, ownOf } from "../parts/json-text.ts";

/** Something to be seen, heard or kept: an image, a sound, or bytes of any kind. */
export interface Media {
  readonly kind: "image" | "audio" | "file";
  readonly mimeType: string;
  /** Base64, checked; nothing where it is not, or is more than a page should hold. */
  readonly base64: string | undefined;
  /** Of the bytes themselves. */
  readonly bytes: number;
  readonly name: string;
}

const IMAGES = /^image\/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;
const AUDIO = /^audio\/[a-z0-9][a-z0-9.+-]{0,60}$/;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Reads base64 of a kind; what is neither image nor sound, or not base64, is a file. */
export function mediaOf(base64: string, mimeType: unknown, name: string): Media {
  const [plain = ""] = typeof mimeType === "string" ? mimeType.toLowerCase().split(";", 1) : [];
  const type = plain.trim().slice(0, 100);
  const bytes = base64Size(base64);
  const isGood = bytes <= MOST_BYTES && base64.length % 4 === 0 && BASE64.test(base64);
  const kind = !isGood ? "file" : IMAGES.test(type) ? "image" : AUDIO.test(type) ? "audio" : "file";
  return {
    kind,
    mimeType: type === "" ? "unknown type" : type,
    base64: isGood ? base64 : undefined,
    bytes,
    name,
  };
}

/** The media of a content block; nothing for other blocks. */
export function mediaOfBlock(block: unknown, at: number): Media | undefined {
  if (!isMembers(block)) return undefined;
  const { type, data, mimeType, resource } = block;
  if ((type === "image" || type === "audio") && typeof data === "string") {
    return mediaOf(data, mimeType, `${type === "image" ? "Image" : "Sound"} ${at + 1}`);
  }
  if (type !== "resource" || !isMembers(resource) || typeof resource["blob"] !== "string") return undefined;
  const uri = typeof resource["uri"] === "string" ? resource["uri"] : `Resource ${at + 1}`;
  return mediaOf(resource["blob"], resource["mimeType"], uri.slice(0, 200));
}

/** The bytes that data is, in the form JSON holds them: `{"$waybill": ["bytes", base64]}`. */
export function bytesOf(data: unknown): string | undefined {
  const [kind, base64] = listIn(ownOf(data, "$waybill"));
  return kind === "bytes" && typeof base64 === "string" ? base64 : undefined;
}

/** A name that is safe for a file. */
export function fileName(name: string, mimeType: string): string {
  const last = name.split(/[/\\]/).at(-1) ?? "";
  const plain = last
    .replace(/[^\w.-]+/g, "-")
    .replace(/^[.-]+/, "")
    .slice(-80);
  const ending = mimeType === "image/svg+xml" ? "svg" : /^[\w-]+\/([a-z0-9]+)$/.exec(mimeType)?.[1];
  if (/\.\w{1,8}$/.test(plain)) return plain;
  return `${plain === "" ? "file" : plain}.${ending ?? "bin"}`;
}
