import { decodeBase64, encodeBase64 } from "../../core/wire/base64.ts";

/** Where UTF-8 is read by way of UTF-16, which Node converts faster: below, the extra copy costs more; above, its memory. */
const LONG_BYTES = { from: 8_192, to: 1_048_576 } as const;

/** Node's own byte routines, several times faster than portable ones; a browser does without. */
const native = globalThis.process?.getBuiltinModule?.("node:buffer");

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

/** Characters encoded at once. */
const SLICE = 16_384;

/** Bytes written at once, a multiple of three; longer strings would be allocated apart, at several times the cost. */
const CHUNK = 49_152;

/** UTF-8 takes at most three bytes for one UTF-16 unit. */
const ROOM = CHUNK + SLICE * 3;

const utf8 = new TextEncoder();

/** Kept between calls, because allocating it costs more than most calls do. */
let spare: Uint8Array | undefined;

/** Writes text as base64 of its UTF-8 bytes, piece by piece, so that no long text is ever held in another form. */
export class Base64Writer {
  readonly #bytes: Uint8Array;
  #written: string;
  #filled = 0;

  /** Begins with some text that is not encoded. */
  constructor(prefix: string) {
    this.#written = prefix;
    // Taken, not shared: a value that is being written may start to write another one.
    this.#bytes = spare ?? native?.Buffer.allocUnsafeSlow(ROOM) ?? new Uint8Array(ROOM);
    spare = undefined;
  }

  /** Adds text; a surrogate pair may not be split between two calls. */
  add(text: string): void {
    if (text.length <= SLICE) {
      this.#encode(text);
      return;
    }
    for (let from = 0; from < text.length; ) {
      const to = Math.min(from + SLICE, text.length);
      const end = to < text.length && isHighSurrogate(text.charCodeAt(to - 1)) ? to - 1 : to;
      this.#encode(text.slice(from, end));
      from = end;
    }
  }

  /** Gives everything that was added. */
  finish(): string {
    this.#flush(this.#filled);
    spare = this.#bytes;
    return this.#written;
  }

  #encode(text: string): void {
    const room = this.#filled === 0 ? this.#bytes : this.#bytes.subarray(this.#filled);
    this.#filled += utf8.encodeInto(text, room).written;
    if (this.#filled < CHUNK) return;
    this.#flush(CHUNK);
    this.#bytes.copyWithin(0, CHUNK, CHUNK + this.#filled);
  }

  #flush(bytes: number): void {
    this.#written += toBase64(this.#bytes, bytes);
    this.#filled -= bytes;
  }
}

/** Writes one text after a prefix that is not encoded. */
export function toBase64Text(prefix: string, text: string): string {
  if (text.length > SLICE || spare === undefined) {
    const writer = new Base64Writer(prefix);
    writer.add(text);
    return writer.finish();
  }
  return prefix + toBase64(spare, utf8.encodeInto(text, spare).written);
}

function toBase64(bytes: Uint8Array, length: number): string {
  if (native !== undefined && bytes instanceof native.Buffer) return bytes.toString("base64", 0, length);
  return encodeBase64(bytes.subarray(0, length));
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}
