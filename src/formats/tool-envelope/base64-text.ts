import { decodeBase64, encodeBase64 } from "../../core/wire/base64.ts";

/** Node's own byte routines, several times faster than portable ones; a browser does without. */
const native = globalThis.process?.getBuiltinModule?.("node:buffer");

/** Longest text that is written through one buffer kept for the purpose: allocating one each time costs more than the work. */
const SCRATCH_CHARACTERS = 65_536;

/** From here on UTF-8 is read by way of UTF-16, which Node converts faster; below it the extra copy costs more. */
const LONG_BYTES = 8_192;

/** UTF-8 takes at most three bytes for one UTF-16 unit. */
const scratch = native?.Buffer.allocUnsafeSlow(SCRATCH_CHARACTERS * 3);

const utf8 = new TextEncoder();
const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Writes text as base64 of its UTF-8 bytes. */
export function toBase64Text(text: string): string {
  if (native === undefined || scratch === undefined) return encodeBase64(utf8.encode(text));
  if (text.length <= SCRATCH_CHARACTERS) {
    const { written } = utf8.encodeInto(text, scratch);
    return scratch.toString("base64", 0, written);
  }
  return native.Buffer.from(text, "utf8").toString("base64");
}

/** Reads strict base64 (alphabet, padding, no stray bits); anything else gives undefined. */
export function fromBase64Text(text: string): Uint8Array | undefined {
  if (native === undefined) return decodeBase64(text);
  const { length } = text;
  if (length % 4 !== 0) return undefined;
  // Node takes the URL alphabet for granted and passes over what it does not know, which shows in the length.
  if (text.includes("-") || text.includes("_")) return undefined;
  const bytes = native.Buffer.from(text, "base64");
  if (bytes.length !== (length / 4) * 3 - paddingOf(text)) return undefined;
  return hasStrayBits(text) ? undefined : bytes;
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
  if (native.isAscii(bytes)) return bytes.toString("latin1");
  if (bytes.length < LONG_BYTES) return bytes.toString("utf8");
  return native.transcode(bytes, "utf8", "utf16le").toString("utf16le");
}

function fromPortableUtf8(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return undefined;
  }
}
