import { monotonicNow } from "../execution/deadline.ts";
import type {
  HeldKey,
  IdempotencyStore,
  KeyBounds,
  KeyClaim,
  KeyEnd,
  KeyName,
  KeyRequest,
} from "./idempotency-store.ts";

interface Entry {
  readonly claim: string;
  readonly owner: string;
  readonly fingerprint: string;
  /** On the monotonic clock. */
  readonly expiresAt: number;
  /** Settles when the call is over. */
  readonly over: Promise<KeyEnd | undefined>;
  readonly finish: (end: KeyEnd | undefined) => void;
  end: KeyEnd | undefined;
  bytes: number;
}

interface Room {
  keys: number;
  bytes: number;
}

/** Keeps idempotency keys in this process. */
export class MemoryIdempotencyStore implements IdempotencyStore {
  readonly #entries = new Map<string, Entry>();
  readonly #rooms = new Map<string, Room>();
  #bytes = 0;
  #claims = 0;

  async claim(request: KeyRequest, bounds: KeyBounds): Promise<KeyClaim> {
    this.#forgetExpired();
    const id = idOf(request);
    const entry = this.#entries.get(id);
    if (entry !== undefined) {
      return { fingerprint: entry.fingerprint, ...(entry.end ?? { state: "running" }) };
    }
    if (this.#isFull(request.owner, bounds)) return { state: "full" };
    const { owner, key, fingerprint } = request;
    const claim = String(++this.#claims);
    let finish: Entry["finish"] = () => {};
    const over = new Promise<KeyEnd | undefined>((resolve) => {
      finish = resolve;
    });
    const expiresAt = monotonicNow() + bounds.keepMs;
    this.#entries.set(id, { claim, owner, fingerprint, expiresAt, over, finish, end: undefined, bytes: 0 });
    this.#count(owner, 1, 0);
    return { state: "claimed", held: { owner, key, claim } };
  }

  async settle(held: HeldKey, end: KeyEnd, bounds: KeyBounds): Promise<void> {
    const entry = this.#find(held);
    if (entry === undefined) return;
    const bytes = end.state === "kept" ? byteLength(end.outcome.text) + held.key.length : 0;
    const own = this.#rooms.get(held.owner)?.bytes ?? 0;
    const fits = this.#bytes + bytes <= bounds.bytes && own + bytes <= bounds.ownBytes;
    entry.end = fits ? end : { state: "lost", reason: "too_long" };
    entry.bytes = fits ? bytes : 0;
    this.#count(held.owner, 0, entry.bytes);
    entry.finish(entry.end);
  }

  async release(held: HeldKey): Promise<void> {
    const entry = this.#find(held);
    if (entry === undefined) return;
    this.#forget(idOf(held), entry);
    entry.finish(undefined);
  }

  async ended(name: KeyName): Promise<KeyEnd | undefined> {
    return this.#entries.get(idOf(name))?.over;
  }

  /** The entry of a claim that still runs. */
  #find(held: HeldKey): Entry | undefined {
    const entry = this.#entries.get(idOf(held));
    return entry?.claim === held.claim && entry.end === undefined ? entry : undefined;
  }

  #isFull(owner: string, bounds: KeyBounds): boolean {
    const own = this.#rooms.get(owner) ?? { keys: 0, bytes: 0 };
    return (
      this.#entries.size >= bounds.keys ||
      this.#bytes >= bounds.bytes ||
      own.keys >= bounds.ownKeys ||
      own.bytes >= bounds.ownBytes
    );
  }

  /** Entries stand in the order in which they expire, for callers who keep all of theirs for one time. */
  #forgetExpired(): void {
    const now = monotonicNow();
    for (const [id, entry] of this.#entries) {
      if (entry.expiresAt > now) return;
      if (entry.end !== undefined) this.#forget(id, entry);
    }
  }

  #forget(id: string, entry: Entry): void {
    this.#entries.delete(id);
    this.#count(entry.owner, -1, -entry.bytes);
  }

  #count(owner: string, keys: number, bytes: number): void {
    const room = this.#rooms.get(owner) ?? { keys: 0, bytes: 0 };
    room.keys += keys;
    room.bytes += bytes;
    this.#bytes += bytes;
    if (room.keys === 0) this.#rooms.delete(owner);
    else this.#rooms.set(owner, room);
  }
}

function idOf({ owner, key }: KeyName): string {
  return JSON.stringify([owner, key]);
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
