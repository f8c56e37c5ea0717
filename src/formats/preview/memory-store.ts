import { CallError } from "../../core/errors/errors.ts";
import type {
  RangeRequest,
  ResultEntry,
  ResultRange,
  ResultStore,
  StoredResult,
} from "../../core/result/result-store.ts";
import { readPositiveLimit } from "./token-budget.ts";

/** Bounds of a store in memory. */
export interface MemoryStoreOptions {
  /** Texts kept; with one more, the oldest of the owner with most goes. @default 1_000 */
  readonly maxEntries?: number;
  /** UTF-16 units of all texts together; with more, the oldest of the owner with most go. @default 67_108_864 */
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
  readonly owner: string;
  readonly binding: string | undefined;
  readonly encoding: ResultEntry["encoding"];
  readonly expiresAt: number;
}

interface Owned {
  /** Oldest first. */
  readonly ids: Set<string>;
  characters: number;
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
  readonly #owners = new Map<string, Owned>();
  #characters = 0;

  constructor(options: MemoryStoreOptions) {
    this.#maxEntries = readPositiveLimit("maxEntries", options.maxEntries, 1_000);
    this.#maxCharacters = readPositiveLimit("maxCharacters", options.maxCharacters, 67_108_864);
    this.#maxEntryCharacters = readPositiveLimit(
      "maxEntryCharacters",
      options.maxEntryCharacters,
      16_777_216,
    );
    this.#ttlMs = readPositiveLimit("ttlMs", options.ttlMs, 900_000);
    this.#now = options.now ?? Date.now;
  }

  put({ text, mimeType, encoding, name = "result", owner = "", binding }: ResultEntry): StoredResult {
    this.#refuseOver("maxEntryCharacters", this.#maxEntryCharacters, text);
    this.#refuseOver("maxCharacters", this.#maxCharacters, text);
    const now = this.#now();
    this.#expire(now);
    this.#makeRoom(owner, text.length);
    const id = createId();
    this.#kept.set(id, { text, mimeType, encoding, owner, binding, expiresAt: now + this.#ttlMs });
    this.#characters += text.length;
    const owned = this.#owners.get(owner) ?? { ids: new Set(), characters: 0 };
    owned.ids.add(id);
    owned.characters += text.length;
    this.#owners.set(owner, owned);
    const size = encoding === "base64" ? bytesOfBase64(text) : new TextEncoder().encode(text).length;
    return { uri: toResultUri(id), name, mimeType, size, characters: text.length };
  }

  read(uri: string, range: RangeRequest = {}): ResultRange | undefined {
    const address = parseResultUri(uri);
    const now = this.#now();
    this.#expire(now);
    const kept = address && this.#kept.get(address.id);
    // Behind one with more time left, where the clock was set back.
    if (kept === undefined || kept.expiresAt <= now) return undefined;
    return cutStoredText(kept, address, range);
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

  /** Forgets the oldest texts of the owner who would have most, until one more text of an owner fits. */
  #makeRoom(owner: string, characters: number): void {
    for (;;) {
      const isFull = this.#kept.size >= this.#maxEntries;
      if (!isFull && this.#characters + characters <= this.#maxCharacters) return;
      const measure = ({ ids, characters: held }: Owned): number => (isFull ? ids.size : held);
      const greediest = this.#greediest(owner, isFull ? 1 : characters, measure);
      for (const id of greediest?.ids ?? []) {
        this.#forget(id);
        break;
      }
    }
  }

  /** The owner with most of what is short, the owner of the new text counted with it. */
  #greediest(owner: string, added: number, measure: (owned: Owned) => number): Owned | undefined {
    let found: Owned | undefined;
    let most = Number.NEGATIVE_INFINITY;
    for (const [name, owned] of this.#owners) {
      const held = measure(owned) + (name === owner ? added : 0);
      if (held > most) [found, most] = [owned, held];
    }
    return found;
  }

  #forget(id: string): void {
    const kept = this.#kept.get(id);
    if (kept === undefined) return;
    this.#kept.delete(id);
    this.#characters -= kept.text.length;
    const owned = this.#owners.get(kept.owner);
    if (owned === undefined) return;
    owned.ids.delete(id);
    owned.characters -= kept.text.length;
    if (owned.ids.size === 0) this.#owners.delete(kept.owner);
  }
}

/** Gives the part of a kept text that is asked for: by the range, or else by the address; a `RangeError` for one that cannot be. */
export function cutStoredText(
  { text, mimeType, encoding, binding }: Pick<ResultEntry, "text" | "mimeType" | "encoding" | "binding">,
  address: RangeRequest | undefined,
  range: RangeRequest = {},
): ResultRange {
  const wanted = { offset: range.offset ?? address?.offset, length: range.length ?? address?.length };
  const { start, end } =
    encoding === "base64" ? wholeGroups(placeRange(text, wanted), text) : placeRange(text, wanted);
  const part = {
    text: text.slice(start, end),
    offset: start,
    totalCharacters: text.length,
    mimeType,
    ...(binding !== undefined && { binding }),
    ...(encoding !== undefined && { encoding }),
  };
  return end < text.length ? { ...part, nextOffset: end } : part;
}

/** Four characters of base64 are three bytes: a part holds whole groups of them. */
function wholeGroups(
  { start, end }: { start: number; end: number },
  text: string,
): { start: number; end: number } {
  return { start: start - (start % 4), end: Math.min(text.length, Math.ceil(end / 4) * 4) };
}

function bytesOfBase64(text: string): number {
  return (text.length / 4) * 3 - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0);
}

/** 128 random bits in hexadecimal. */
function createId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A place in a store, and the part its URI asks for. */
export interface ResultAddress extends RangeRequest {
  readonly id: string;
}

const ADDRESS = /^waybill:\/\/results\/([0-9a-f]{32})(?:\?(.*))?$/s;
const PARAMETER = /^(offset|length)=(0|[1-9][0-9]{0,15})$/;

/** Writes the URI of a stored result. */
export function toResultUri(id: string): string {
  return `waybill://results/${id}`;
}

/** Reads a URI of ours, `?offset=…&length=…` included; undefined for any other, a `RangeError` for a malformed range. */
export function parseResultUri(uri: string): ResultAddress | undefined {
  const [, id, query] = ADDRESS.exec(uri) ?? [];
  if (id === undefined) return undefined;
  const address: { id: string; offset?: number; length?: number } = { id };
  for (const parameter of query?.split("&", 3) ?? []) {
    const [, name, digits] = PARAMETER.exec(parameter) ?? [];
    if (name !== "offset" && name !== "length") {
      const shown = JSON.stringify(parameter.slice(0, 40));
      throw new RangeError(`A range in a URI is written offset=0&length=2000, in digits; found ${shown}.`);
    }
    if (address[name] !== undefined) throw new RangeError(`${name} may be given only once in a URI.`);
    address[name] = Number(digits);
  }
  return address;
}

/** Finds where a range begins and ends in a text: moved to the beginning of a surrogate pair it would split, never empty. */
export function placeRange(
  text: string,
  { offset = 0, length }: RangeRequest,
): { start: number; end: number } {
  if (!Number.isSafeInteger(offset) || offset < 0 || offset > text.length) {
    throw new RangeError(`offset must be a whole number from 0 to ${text.length}; it is ${offset}.`);
  }
  if (length !== undefined && (!Number.isSafeInteger(length) || length < 1)) {
    throw new RangeError(`length must be a whole number of at least 1; it is ${length}.`);
  }
  const start = splitsPair(text, offset) ? offset - 1 : offset;
  const wanted = Math.min(text.length, offset + (length ?? text.length));
  if (!splitsPair(text, wanted)) return { start, end: wanted };
  return { start, end: wanted - 1 > start ? wanted - 1 : wanted + 1 };
}

function splitsPair(text: string, place: number): boolean {
  return place > 0 && place < text.length && (text.codePointAt(place - 1) as number) > 0xffff;
}
