import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import type { SealingKeys } from "../../mcp/server/sealing-keys.ts";

/** What one replica sends another: a few words, and bytes that belong to them. */
export interface LinkFrame {
  readonly head: Readonly<Record<string, unknown>>;
  readonly bytes: Uint8Array;
}

/** A frame that is sent. */
export interface SentFrame extends Pick<LinkFrame, "head"> {
  /** @default none */
  readonly bytes?: Uint8Array | undefined;
}

/** Bounds of what one replica brings to another. */
export const LED_LIMITS = {
  /** Requests at a time, each way; of those that go out, one caller has the fourth part. */
  requests: 1_000,
  /** Bytes of bodies that are still to come, of all requests together, and of one answer that is no stream. */
  bytes: 67_108_864,
  /** Bytes of a stream on their way to a reader who has not taken them. */
  window: 262_144,
  /** Milliseconds without a sign of life after which the other side counts as gone. */
  silence: 20_000,
} as const;

/** Bytes of a frame besides its head and what it carries: seal, length and what the broker adds. */
export const FRAME_BYTES = 1_024;

const LENGTH_BYTES = 4;
const NO_BYTES = new Uint8Array();

/** Writes a frame that only replicas with the same key can read, and only in the place that the context names. */
export function sealFrame(
  keys: SealingKeys,
  context: string,
  { head, bytes = NO_BYTES }: SentFrame,
): Uint8Array {
  const written = Buffer.from(JSON.stringify(head));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(written.length);
  return keys.sealBytes("replica", Buffer.concat([length, written, bytes]), context);
}

/** Reads a frame; nothing for what no replica with the same key has written for this place. */
export function openFrame(keys: SealingKeys, context: string, sealed: Uint8Array): LinkFrame | undefined {
  const opened = keys.openBytes("replica", sealed, context);
  if (opened === undefined || opened.length < LENGTH_BYTES) return undefined;
  const bytesAt = LENGTH_BYTES + opened.readUInt32BE();
  const head = parseJsonTextOrNone(opened.toString("utf8", LENGTH_BYTES, bytesAt));
  return isPlainObject(head) ? { head, bytes: opened.subarray(bytesAt) } : undefined;
}

/** The place of what is sent to a replica. */
export function toReplica(replica: string): string {
  return `to ${replica}`;
}

/** The place of what a replica answers: one frame after another. */
export function fromReplica(replica: string, id: string, sequence: number): string {
  return `from ${replica} ${id} ${sequence}`;
}

/** Cuts bytes into pieces of at most so many; nothing is one empty piece. */
export function cutBytes(bytes: Uint8Array, most: number): readonly Uint8Array[] {
  const count = Math.max(Math.ceil(bytes.length / most), 1);
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * most, (at + 1) * most));
}
