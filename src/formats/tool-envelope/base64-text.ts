import { decodeBase64 } from "../../core/wire/base64.ts";
import { native } from "./native-buffer.ts";

/** Where UTF-8 is read by way of UTF-16, which Node converts faster: below, the extra copy costs more; above, its memory. */
const LONG_BYTES = { from: 8_192, to: 1_048_576 } as const;

/** Longest text that is read through one buffer kept for the purpose: allocating one each time costs as much as the work. */
const SCRATCH_CHARACTERS = 65_536;
const scratch = native?.Buffer.allocUnsafeSlow(SCRATCH_CHARACTERS) as Buffer;

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Reads strict base64 (alphabet, padding, no stray bits); anything else gives undefined. Good until the next call. */
export function fromBase64Text(text: string): Uint8Array | undefined {
  if (native === undefined) return decodeBase64(text);
  const { length } = text;
  if (length % 4 !== 0) return undefined;
  // Node takes the URL alphabet for granted and passes over what it does not know, which shows in the length.
  if (text.includes("-") || text.includes("_")) return undefined;
  // Of a wide character it would take the lower half.
  if (native.Buffer.byteLength(text) !== length) return undefined;
  const bytes = length <= SCRATCH_CHARACTERS ? writeScratch(text) : native.Buffer.from(text, "base64");
  if (bytes.length !== (length / 4) * 3 - paddingOf(text)) return undefined;
  return hasStrayBits(text) ? undefined : bytes;
}

function writeScratch(text: string): Buffer {
  return scratch.subarray(0, scratch.write(text, "base64"));
}

/** Counts the `=` at the end, two at most. */
export function paddingOf(text: string): number {
  if (!text.endsWith("=")) return 0;
  return text.endsWith("==") ? 2 : 1;
}

/** Tells whether the last letter before the padding holds bits that belong to no byte. */
export function hasStrayBits(text: string): boolean {
  const padding = paddingOf(text);
  if (padding === 0) return false;
  const last = text.charAt(text.length - padding - 1);
  return padding === 1 ? !"AEIMQUYcgkosw048".includes(last) : !"AQgw".includes(last);
}

/** Reads UTF-8 strictly; a byte order mark is kept as a character, and bad bytes give undefined. */
export function fromUtf8(bytes: Uint8Array): string | undefined {
  if (native === undefined || !(bytes instanceof native.Buffer)) return fromPortableUtf8(bytes);
  if (!native.isUtf8(bytes)) return undefined;
  const isLong = bytes.length >= LONG_BYTES.from && bytes.length <= LONG_BYTES.to;
  if (!isLong || native.isAscii(bytes)) return bytes.toString("utf8");
  return native.transcode(bytes, "utf8", "utf16le").toString("utf16le");
}

function fromPortableUtf8(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return undefined;
  }
}
