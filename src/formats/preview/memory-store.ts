import { CallError } from "../../core/errors/errors.ts";
import type {
  RangeRequest,
  ResultEntry,
  ResultRange,
  ResultStore,
  StoredResult,
} from "../../core/result/result-store.ts";
import { readLimit } from "./read-limit.ts";
import { parseResultUri, placeRange, toResultUri } from "./result-range.ts";

/** Bounds of a store in memory. */
export interface MemoryStoreOptions {
  /** Texts kept; the oldest go first. @default 1_000 */
  readonly maxEntries?: number;
  /** UTF-16 units of all texts together; the oldest go first. @default 67_108_864 */
  readonly maxCharacters?: number;
  /** UTF-16 units of one text; a longer one is refused. @default 16_777_216 */
  readonly maxEntryCharacters?: number;
  /** How long a text can be read, in milliseconds. @default 900_000 */
  readonly ttlMs?: number;
  /** Milliseconds on any clock. @default Date.now */
  readonly now?: () => number;
}

/** A store in memory, which answers at once. */
export interface MemoryStore extends ResultStore {
  put(entry: ResultEntry): StoredResult;
  read(uri: string, range?: RangeRequest): ResultRange | undefined;
}

interface Kept {
  readonly text: string;
  readonly mimeType: string;
  readonly expiresAt: number;
}

/** Creates a bounded store in memory, under URIs nobody can guess; it has no timers, expired texts go at the next use. */
export function createMemoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  return new BoundedStore(options);
}

class BoundedStore implements MemoryStore {
  readonly #maxEntries: number;
  readonly #maxCharacters: number;
  readonly #maxEntryCharacters: number;
  readonly #ttlMs: number;
  readonly #now: () => number;
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>();
  #characters = 0;

  constructor(options: MemoryStoreOptions) {
    this.#maxEntries = readLimit("maxEntries", options.maxEntries, 1_000, 1);
    this.#maxCharacters = readLimit("maxCharacters", options.maxCharacters, 67_108_864, 1);
    this.#maxEntryCharacters = readLimit("maxEntryCharacters", options.maxEntryCharacters, 16_777_216, 1);
    this.#ttlMs = readLimit("ttlMs", options.ttlMs, 900_000, 1);
    this.#now = options.now ?? Date.now;
  }

  put({ text, mimeType, name = "result" }: ResultEntry): StoredResult {
    this.#refuseOver("maxEntryCharacters", this.#maxEntryCharacters, text);
    this.#refuseOver("maxCharacters", this.#maxCharacters, text);
    const now = this.#now();
    this.#expire(now);
    this.#makeRoom(text.length);
    const id = createId();
    this.#kept.set(id, { text, mimeType, expiresAt: now + this.#ttlMs });
    this.#characters += text.length;
    const size = new TextEncoder().encode(text).length;
    return { uri: toResultUri(id), name, mimeType, size, characters: text.length };
  }

  read(uri: string, range: RangeRequest = {}): ResultRange | undefined {
    const address = parseResultUri(uri);
    const now = this.#now();
    this.#expire(now);
    const kept = address && this.#kept.get(address.id);
    // Behind one with more time left, where the clock was set back.
    if (kept === undefined || kept.expiresAt <= now) return undefined;
    const { text, mimeType } = kept;
    const wanted = { offset: range.offset ?? address?.offset, length: range.length ?? address?.length };
    const { start, end } = placeRange(text, wanted);
    const part = { text: text.slice(start, end), offset: start, totalCharacters: text.length, mimeType };
    return end < text.length ? { ...part, nextOffset: end } : part;
  }

  #refuseOver(option: string, limit: number, text: string): void {
    if (text.length <= limit) return;
    throw new CallError(
      "TOO_LARGE",
      `The result has ${text.length} characters, more than the store keeps; return less, or raise its ${option} (${limit}).`,
      { details: { option, limit, characters: text.length } },
    );
  }

  #expire(now: number): void {
    for (const [id, { expiresAt }] of this.#kept) {
      if (expiresAt > now) return;
      this.#forget(id);
    }
  }

  /** Forgets the oldest until one more text of some length fits. */
  #makeRoom(characters: number): void {
    for (const id of this.#kept.keys()) {
      if (this.#kept.size < this.#maxEntries && this.#characters + characters <= this.#maxCharacters) return;
      this.#forget(id);
    }
  }

  #forget(id: string): void {
    this.#characters -= this.#kept.get(id)?.text.length ?? 0;
    this.#kept.delete(id);
  }
}

/** 128 random bits in hexadecimal. */
function createId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
