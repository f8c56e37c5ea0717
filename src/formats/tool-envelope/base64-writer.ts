import { encodeBase64 } from "../../core/wire/base64.ts";
import { native } from "./native-buffer.ts";

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
