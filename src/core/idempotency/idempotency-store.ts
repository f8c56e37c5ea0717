import { monotonicNow } from "../execution/cancellation.ts";

/** Names a key: two callers never share one. */
export interface KeyName {
  readonly owner: string;
  /** Operation and key, as one text. */
  readonly key: string;
}

/** A call that asks for its key. */
export interface KeyRequest extends KeyName {
  /** Tells this call from another one with the same key. */
  readonly fingerprint: string;
}

/** A key that this side runs a call for, until it is settled or released. */
export interface HeldKey extends KeyName {
  /** Names this claim among all that were ever made for the key. */
  readonly claim: string;
}

/** What a call came to, as plain data. */
export interface KeptOutcome {
  readonly kind: "envelope" | "error";
  /** The envelope or the error, as JSON. */
  readonly text: string;
  /** Of the call that ran. */
  readonly requestId: string;
  readonly durationMs: number;
}

/** How the call of a key ended: with an outcome, or with none that can be repeated, although it may have run. */
export type KeyEnd =
  | { readonly state: "kept"; readonly outcome: KeptOutcome }
  | { readonly state: "lost"; readonly reason: "unknown" | "too_long" };

/** What is known of a key: it is the caller's now, there is no room for it, its first call still runs, or has ended. */
export type KeyClaim =
  | { readonly state: "claimed"; readonly held: HeldKey }
  | { readonly state: "full" }
  | ({ readonly fingerprint: string } & ({ readonly state: "running" } | KeyEnd));

/** How much is kept, and for how long. */
export interface KeyBounds {
  readonly keys: number;
  /** Of the texts of outcomes, and of their keys. */
  readonly bytes: number;
  /** Keys of one caller. */
  readonly ownKeys: number;
  /** Bytes of one caller. */
  readonly ownBytes: number;
  /** Milliseconds since the claim after which an ended key is forgotten, and may be claimed again. */
  readonly keepMs: number;
}

/**
 * Keeps idempotency keys and what their calls came to. Records are plain data, so that a store may hold them outside of the process. A store
 * forgets no key before its time, and none whose call still runs.
 */
export interface IdempotencyStore {
  /** Claims a key, or tells what is known of it, in one atomic step: of several who ask at once, one claims it. */
  claim(request: KeyRequest, bounds: KeyBounds): Promise<KeyClaim>;
  /** Ends a claim. An outcome that there is no room for is lost as `too_long`. Nothing happens to a key that is not held by this claim. */
  settle(held: HeldKey, end: KeyEnd, bounds: KeyBounds): Promise<void>;
  /** Forgets a claim whose call never ran: the key may be claimed again. Nothing happens to a key that is not held by this claim. */
  release(held: HeldKey): Promise<void>;
  /** Waits while the call of a key runs, and tells how it ended; nothing where the key may be claimed. */
  ended(name: KeyName): Promise<KeyEnd | undefined>;
}

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
    const id = keyId(request);
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
    this.#forget(keyId(held), entry);
    entry.finish(undefined);
  }

  async ended(name: KeyName): Promise<KeyEnd | undefined> {
    return this.#entries.get(keyId(name))?.over;
  }

  /** The entry of a claim that still runs. */
  #find(held: HeldKey): Entry | undefined {
    const entry = this.#entries.get(keyId(held));
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

/** One text for the name of a key; no two keys share one. */
export function keyId({ owner, key }: KeyName): string {
  return JSON.stringify([owner, key]);
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}
