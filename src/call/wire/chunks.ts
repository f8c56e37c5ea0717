import type { Transport } from "./transport.ts";
import { CHUNK_MARK, isChunk } from "./wire-message.ts";

const FIXED_BYTES = 11;

/** One part of a message that is larger than a transport carries at a time. */
export interface Chunk {
  /** Which message of its subject it belongs to; a short name of the sender's choice. */
  readonly key: string;
  readonly index: number;
  /** Bytes of the whole message. */
  readonly total: number;
  readonly data: Uint8Array;
}

/** Cuts a message into chunks that fit, each with its place. */
export function* toChunks(key: string, bytes: Uint8Array, maxBytes: number): Generator<Uint8Array> {
  const name = new TextEncoder().encode(key);
  const room = maxBytes - FIXED_BYTES - name.length;
  if (room < 1) throw new RangeError(`A transport must carry more than ${FIXED_BYTES + name.length} bytes.`);
  for (let index = 0; index * room < bytes.length; index++) {
    const data = bytes.subarray(index * room, (index + 1) * room);
    const chunk = new Uint8Array(FIXED_BYTES + name.length + data.length);
    const view = new DataView(chunk.buffer);
    view.setUint8(0, CHUNK_MARK);
    view.setUint16(1, name.length);
    chunk.set(name, 3);
    view.setUint32(3 + name.length, index);
    view.setUint32(7 + name.length, bytes.length);
    chunk.set(data, FIXED_BYTES + name.length);
    yield chunk;
  }
}

/** Sends a message, in chunks when it is larger than the transport carries. */
export function publishWhole(transport: Transport, subject: string, key: string, bytes: Uint8Array): void {
  if (bytes.length <= transport.maxMessageBytes) transport.publish(subject, bytes);
  else publishChunks(transport, subject, key, bytes);
}

/** Sends a message in chunks, be it one. */
export function publishChunks(transport: Transport, subject: string, key: string, bytes: Uint8Array): void {
  for (const chunk of toChunks(key, bytes, transport.maxMessageBytes)) transport.publish(subject, chunk);
}

/** Reads one chunk; nothing for bytes that are none. */
export function fromChunk(bytes: Uint8Array): Chunk | undefined {
  if (bytes.length < FIXED_BYTES || !isChunk(bytes)) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint16(1);
  if (bytes.length <= FIXED_BYTES + length) return undefined;
  return {
    key: new TextDecoder().decode(bytes.subarray(3, 3 + length)),
    index: view.getUint32(3 + length),
    total: view.getUint32(7 + length),
    data: bytes.subarray(FIXED_BYTES + length),
  };
}

/** Puts one message together again, whose chunks come in order; memory is taken as they come, not as they announce. */
export class Assembly {
  readonly #total: number;
  #bytes = new Uint8Array();
  #chunks = 0;
  #received = 0;

  constructor(total: number) {
    this.#total = total;
  }

  /** Bytes held so far. */
  get received(): number {
    return this.#received;
  }

  /** Takes the next chunk: the whole message with the last one, false for one that does not belong here. */
  add({ index, total, data }: Chunk): Uint8Array | undefined | false {
    const received = this.#received + data.length;
    if (total !== this.#total || index !== this.#chunks || received > total) return false;
    // One buffer, however small the chunks are: millions of tiny ones would take many times their size.
    if (received > this.#bytes.length) this.#grow(received);
    this.#bytes.set(data, this.#received);
    this.#received = received;
    this.#chunks++;
    return received === total ? this.#bytes : undefined;
  }

  #grow(needed: number): void {
    const larger = new Uint8Array(Math.min(this.#total, Math.max(needed, 2 * this.#bytes.length)));
    larger.set(this.#bytes);
    this.#bytes = larger;
  }
}
