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
