import { randomUUID } from "node:crypto";
import { CallError } from "../../core/errors/errors.ts";
import type {
  HeldKey,
  IdempotencyStore,
  KeyBounds,
  KeyClaim,
  KeyEnd,
  KeyName,
  KeyRequest,
} from "../../core/idempotency/idempotency-store.ts";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { recordId } from "./local-state-store.ts";
import type { ReplicaLease } from "./replica-lease.ts";
import {
  MOST_VALUE_BYTES,
  type StateBounds,
  StateError,
  type StateName,
  type StateRecord,
  type StateStore,
  type StateUpdated,
} from "./state-store.ts";

/** How keys are kept in a store of state. */
export interface StateIdempotencyOptions {
  /** Where they are kept: letters, digits and `-`. */
  readonly collection: string;
  /** Shows that this replica is there; its creator closes it, last. */
  readonly lease: ReplicaLease;
  /** Hears that the end of a call could not be stored in time: it is tried again while this replica runs. @default nobody does */
  readonly onLate?: (() => void) | undefined;
  /** Hears that nobody can know what the call of a key has done: its replica is gone. @default nobody does */
  readonly onUnknown?: (() => void) | undefined;
  /**
   * Keys that the same calls claim after these, and settle before. Where a replica is gone, they know what its call has done: nothing, where they
   * know nothing of it. @default nobody knows it
   */
  readonly below?: KeysBelow | undefined;
}

/** Keys that calls claim after another key, and how the one is called that belongs to that. */
interface KeysBelow {
  readonly keys: StateIdempotencyStore;
  nameOf(name: KeyName): KeyName;
}

/** What is stored of a key. */
type KeyRecord = {
  readonly replica: string;
  readonly claim: string;
  readonly fingerprint: string;
  /** Unix epoch milliseconds after which an ended key is forgotten. */
  readonly until: number;
} & ({ readonly state: "running" } | KeyEnd);

/** A claim of this replica whose call runs, or whose end is still to be stored. */
interface RunningClaim {
  readonly name: StateName;
  readonly record: KeyRecord;
  revision: number;
  /** On the clock of the store. */
  writtenAt: number;
  /** What is still to be stored: an end, or that the call never ran. */
  late?: { readonly end: KeyEnd | undefined; readonly bounds: KeyBounds } | undefined;
  /** Whether that is on its way to the store. */
  isStoring?: boolean;
}

/** Between looks at a key whose call runs at another replica: a change may be missed. */
const LOOK_MS = 1_000;
/** The longest that a key is kept: an hour more than the day after which it may be used again. */
const LONGEST_KEY_MS = 25 * 3_600_000;
/** How soon a caller is told to come again whose key could not be looked up. */
const AGAIN_MS = 1_000;
const GRACE_MS = 5 * LOOK_MS;
/** Between tries to store what a lost store did not take. */
const FIRST_SOON_MS = 100;
const LONGEST_SOON_MS = 2_000;
const MOST_STRAYS = 10_000;
const MOST_TRIES = 20;

/**
 * Keeps idempotency keys in a store that several replicas share. A key is claimed by a replica, which gives signs of life: where they stop while
 * the call runs, nobody can know what it has done, and the key says so.
 */
export class StateIdempotencyStore implements IdempotencyStore {
  readonly #store: StateStore;
  readonly #options: StateIdempotencyOptions;
  readonly #lease: ReplicaLease;
  readonly #running = new Map<string, RunningClaim>();
  /** Claims that may have been stored although nobody was told so: nothing ran for them. One key may have several. */
  readonly #strays = new Map<string, StateName>();
  /** Claims that are on their way to the store. */
  readonly #claiming = new Set<string>();
  /** Those who wait for one key wait together. */
  readonly #waits = new Map<string, Promise<KeyEnd | undefined>>();
  #soon: ReturnType<typeof setTimeout> | undefined;
  #soonMs = FIRST_SOON_MS;
  #tidying: Promise<void> | undefined;
  #isClosed = false;

  constructor(store: StateStore, options: StateIdempotencyOptions) {
    this.#store = store;
    this.#options = options;
    this.#lease = options.lease;
    this.#lease.onBeat(() => void this.#tidy());
  }

  /**
   * What this replica itself knows of a key: that its call runs here, or how it ended where the store does not know that yet. A caller that asks
   * is told so whether the store can be reached or not.
   */
  own(name: KeyName): KeyClaim | undefined {
    const running = this.#running.get(recordId(this.#nameOf(name)));
    if (running === undefined) return undefined;
    const { record, late } = running;
    if (late === undefined) return { state: "running", fingerprint: record.fingerprint };
    return late.end === undefined ? undefined : { fingerprint: record.fingerprint, ...late.end };
  }

  async claim(request: KeyRequest, bounds: KeyBounds): Promise<KeyClaim> {
    const own = this.own(request);
    if (own !== undefined) return own;
    await this.#lease.hold();
    const name = this.#nameOf(request);
    for (let attempt = 1; attempt <= MOST_TRIES; attempt++) {
      const claim = randomUUID();
      this.#claiming.add(claim);
      try {
        const claimed = await this.#tryClaim(name, { ...request, claim }, bounds);
        if (claimed !== undefined) return claimed;
      } finally {
        this.#claiming.delete(claim);
      }
    }
    throw new StateError("slow", "An Idempotency-Key of the shared state changes all the time.");
  }

  async settle(held: HeldKey, end: KeyEnd, bounds: KeyBounds): Promise<void> {
    await this.#end(held, end, bounds);
  }

  async release(held: HeldKey): Promise<void> {
    await this.#end(held, undefined, NO_BOUNDS);
  }

  ended(name: KeyName): Promise<KeyEnd | undefined> {
    const stored = this.#nameOf(name);
    const id = recordId(stored);
    const known = this.#waits.get(id);
    if (known !== undefined) return known;
    const waiting = this.#wait(stored).finally(() => this.#waits.delete(id));
    this.#waits.set(id, waiting);
    return waiting;
  }

  /** Stores what is still to be stored, as far as that can be. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#soon);
    await this.#tidying;
    await this.#tidy();
  }

  #nameOf({ owner, key }: KeyName): StateName {
    return { collection: this.#options.collection, owner, key };
  }

  /** Nothing where the key has changed under the hand. */
  async #tryClaim(
    name: StateName,
    { owner, key, fingerprint, claim }: KeyRequest & { readonly claim: string },
    bounds: KeyBounds,
  ): Promise<KeyClaim | undefined> {
    const id = recordId(name);
    const record: KeyRecord = {
      replica: this.#lease.replica,
      claim,
      fingerprint,
      until: this.#store.now() + bounds.keepMs,
      state: "running",
    };
    const claimed = (revision: number): KeyClaim => {
      this.#running.set(id, { name, record, revision, writtenAt: this.#store.now() });
      return { state: "claimed", held: { owner, key, claim } };
    };
    const takeOver = async (revision: number): Promise<KeyClaim | undefined> => {
      const updated = await this.#mayStray(name, record, () =>
        this.#store.update(name, revision, encode(record), this.#runningWrite(bounds)),
      );
      return updated.state === "updated" ? claimed(updated.revision) : undefined;
    };
    const created = await this.#mayStray(name, record, () =>
      this.#store.create(name, encode(record), this.#runningWrite(bounds)),
    );
    if (created.state === "full") return { state: "full" };
    if (created.state === "created") return claimed(created.revision);
    const found = decode(created.record);
    if (found.state !== "running") return { fingerprint: found.fingerprint, ...endOf(found) };
    const { revision } = created.record;
    if (this.#isStray(id, found)) return takeOver(revision);
    const isRunning = { state: "running", fingerprint: found.fingerprint } as const;
    if (!(await this.#lease.isGone(found.replica))) return isRunning;
    if (this.#options.below === undefined) {
      await this.#giveUp(name, found, revision);
      return undefined;
    }
    const end = await this.#endBelow(name);
    if (end !== undefined) return end === "running" ? isRunning : { fingerprint: found.fingerprint, ...end };
    // It never ran. Another input is refused, whoever has the key.
    if (found.fingerprint !== fingerprint) return isRunning;
    return takeOver(revision);
  }

  #endBelow({ owner, key }: StateName): Promise<KeyEnd | undefined | "running"> {
    const { keys, nameOf } = this.#options.below as KeysBelow;
    return keys.#lookAt(keys.#nameOf(nameOf({ owner, key })));
  }

  async #mayStray<T>(name: StateName, { claim }: KeyRecord, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (thrown) {
      const isStray = thrown instanceof StateError && thrown.isUncertain;
      if (isStray && this.#strays.size < MOST_STRAYS) {
        this.#strays.set(claim, name);
        this.#tidySoon();
      }
      throw thrown;
    }
  }

  /** Whether a claim of this replica never came to a call; one may be somebody's here who is about to learn of it. */
  #isStray(id: string, { replica, claim }: KeyRecord): boolean {
    if (replica !== this.#lease.replica || this.#claiming.has(claim)) return false;
    return this.#running.get(id)?.record.claim !== claim;
  }

  /** A running key is kept for as long as can be, and written again before that is over. */
  #runningWrite(bounds: StateBounds | KeyBounds) {
    return { expiresAt: this.#store.now() + LONGEST_KEY_MS, bounds: toStateBounds(bounds), bytes: 0 };
  }

  /** The replica that ran the call is gone: what it has done is not known, for all who ask. */
  async #giveUp(name: StateName, found: KeyRecord, revision: number): Promise<void> {
    const { replica, claim, fingerprint, until } = found;
    const lost: KeyRecord = { replica, claim, fingerprint, until, state: "lost", reason: "unknown" };
    const write = { expiresAt: this.#expiryOf(until), bounds: UNBOUNDED, bytes: 0 };
    const updated = await this.#store.update(name, revision, encode(lost), write);
    if (updated.state === "updated") this.#options.onUnknown?.();
  }

  async #end(held: HeldKey, end: KeyEnd | undefined, bounds: KeyBounds): Promise<void> {
    const id = recordId(this.#nameOf(held));
    const running = this.#running.get(id);
    if (running?.record.claim !== held.claim || running.late !== undefined) return;
    running.late = { end, bounds };
    try {
      await this.#storeLate(id, running);
    } catch (thrown) {
      if (!(thrown instanceof StateError)) throw thrown;
      // The call has run, and its caller is told what it came to; it is tried again until it is stored.
      this.#options.onLate?.();
      this.#boundLate(running);
      this.#tidySoon();
    }
  }

  /** Of what is kept until the store takes it again there is no more than the store would take. */
  #boundLate(running: RunningClaim): void {
    let bytes = 0;
    for (const { late } of this.#running.values()) {
      if (late?.end?.state === "kept") bytes += late.end.outcome.text.length;
    }
    const { late } = running;
    if (late?.end?.state === "kept" && bytes > late.bounds.bytes) {
      running.late = { ...late, end: { state: "lost", reason: "too_long" } };
    }
  }

  /** Stores how a call of this replica ended. */
  async #storeLate(id: string, running: RunningClaim): Promise<void> {
    const { late } = running;
    if (late === undefined || running.isStoring) return;
    running.isStoring = true;
    try {
      if (late.end === undefined) await this.#store.delete(running.name, running.revision);
      else await this.#storeEnd(running, late.end, late.bounds);
    } finally {
      running.isStoring = false;
    }
    if (this.#running.get(id) === running) this.#running.delete(id);
  }

  async #storeEnd(running: RunningClaim, end: KeyEnd, bounds: KeyBounds): Promise<void> {
    const { name, record } = running;
    const { replica, claim, fingerprint, until } = record;
    const write = async (end: KeyEnd): Promise<StateUpdated> => {
      const value = encode({ replica, claim, fingerprint, until, ...end });
      // Counted as every store of keys counts it.
      const bytes = end.state === "kept" ? Buffer.byteLength(end.outcome.text) + keyOf(name).length : 0;
      if (value.length > MOST_VALUE_BYTES) return { state: "full" };
      const options = { expiresAt: this.#expiryOf(until), bounds: toStateBounds(bounds), bytes };
      const updated = await this.#store.update(name, running.revision, value, options);
      if (updated.state !== "changed") return updated;
      const found = await this.#store.get(name);
      // It was written again and that could not be told, or others took this replica for gone: nobody has run the call since.
      if (found !== undefined && end.state === "kept" && isOpen(found, claim))
        return this.#store.update(name, found.revision, value, options);
      if (found !== undefined) return updated;
      // The store was emptied meanwhile.
      const created = await this.#store.create(name, value, options);
      return created.state === "created"
        ? { state: "updated", revision: created.revision }
        : { state: "full" };
    };
    if ((await write(end)).state !== "full") return;
    if ((await write({ state: "lost", reason: "too_long" })).state === "full")
      throw new StateError("full", "The shared state has no room for how a call ended.");
  }

  /** A key whose time is over when its call ends is there for those who wait for it. */
  #expiryOf(until: number): number {
    const now = this.#store.now();
    return Math.min(until > now ? until : now + GRACE_MS, now + LONGEST_KEY_MS);
  }

  async #wait(name: StateName): Promise<KeyEnd | undefined> {
    for (;;) {
      if (this.#isClosed) throw new StateError("unreachable", "The shared state is closed.");
      let told: () => void = () => {};
      const change = new Promise<void>((resolve) => {
        told = resolve;
      });
      const stop = this.#store.watch(name, told);
      const timer = setTimeout(told, LOOK_MS);
      try {
        const end = await this.#lookAt(name);
        if (end !== "running") return end;
        await change;
      } finally {
        clearTimeout(timer);
        stop();
      }
    }
  }

  async #lookAt(name: StateName): Promise<KeyEnd | undefined | "running"> {
    const own = this.#running.get(recordId(name));
    if (own !== undefined && own.late === undefined) return "running";
    if (own?.late?.end !== undefined) return own.late.end;
    const record = await this.#store.get(name);
    if (record === undefined) return undefined;
    const found = decode(record);
    if (found.state !== "running") return endOf(found);
    // It never ran, and may be claimed.
    if (this.#isStray(recordId(name), found)) return undefined;
    if (!(await this.#lease.isGone(found.replica))) return "running";
    if (this.#options.below !== undefined) return this.#endBelow(name);
    await this.#giveUp(name, found, record.revision);
    // The replica may have stored the end at this very moment.
    const now = await this.#store.get(name);
    if (now === undefined) return undefined;
    const end = decode(now);
    return end.state === "running" ? "running" : endOf(end);
  }

  /** Tidies up as soon as the store may be back: what is lost with this replica until then is known to nobody. */
  #tidySoon(): void {
    if (this.#soon !== undefined || this.#isClosed) return;
    this.#soon = setTimeout(() => {
      this.#soon = undefined;
      this.#soonMs = Math.min(2 * this.#soonMs, LONGEST_SOON_MS);
      void this.#tidy();
    }, this.#soonMs).unref();
  }

  /** With every beat, and after the store was lost. */
  #tidy(): Promise<void> {
    this.#tidying ??= this.#tidyNow().finally(() => {
      this.#tidying = undefined;
    });
    return this.#tidying;
  }

  /** Stores what could not be stored, keeps claims of calls that run for long, and takes back those nobody made use of. */
  async #tidyNow(): Promise<void> {
    for (const [id, running] of this.#running) {
      const isOld = this.#store.now() - running.writtenAt > LONGEST_KEY_MS / 2;
      if (running.late === undefined && !isOld) continue;
      const write = running.late === undefined ? this.#refresh(running) : this.#storeLate(id, running);
      if (await isLost(write)) return this.#tidySoon();
    }
    for (const [claim, name] of this.#strays) {
      if (await isLost(this.#takeBack(name, claim))) return this.#tidySoon();
      this.#strays.delete(claim);
    }
    this.#soonMs = FIRST_SOON_MS;
  }

  async #takeBack(name: StateName, claim: string): Promise<void> {
    const record = await this.#store.get(name);
    if (record !== undefined && decode(record).claim === claim)
      await this.#store.delete(name, record.revision);
  }

  async #refresh(running: RunningClaim): Promise<void> {
    const { name, revision, record } = running;
    const updated = await this.#store.update(name, revision, encode(record), this.#runningWrite(UNBOUNDED));
    if (updated.state === "updated") running.revision = updated.revision;
    running.writtenAt = this.#store.now();
  }
}

/** Whether a change fails because the store cannot be reached; what it says about one record is no reason to leave out the others. */
async function isLost(change: Promise<void>): Promise<boolean> {
  try {
    await change;
    return false;
  } catch (thrown) {
    if (!(thrown instanceof StateError)) throw thrown;
    return thrown.fault === "unreachable" || thrown.fault === "slow";
  }
}

const UNBOUNDED: StateBounds = {
  records: Number.POSITIVE_INFINITY,
  bytes: Number.POSITIVE_INFINITY,
  ownRecords: Number.POSITIVE_INFINITY,
  ownBytes: Number.POSITIVE_INFINITY,
};
const NO_BOUNDS: KeyBounds = { keys: 0, bytes: 0, ownKeys: 0, ownBytes: 0, keepMs: 0 };

function toStateBounds(bounds: KeyBounds | StateBounds): StateBounds {
  if ("records" in bounds) return bounds;
  return { records: bounds.keys, bytes: bounds.bytes, ownRecords: bounds.ownKeys, ownBytes: bounds.ownBytes };
}

function keyOf({ key }: StateName): string {
  return key;
}

function endOf(record: Exclude<KeyRecord, { readonly state: "running" }>): KeyEnd {
  return record.state === "kept"
    ? { state: "kept", outcome: record.outcome }
    : { state: "lost", reason: record.reason };
}

function encode(record: KeyRecord): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(record));
}

/** Reads a record of ours, which another process wrote. */
function decode({ value }: StateRecord): KeyRecord {
  const found = parseJsonTextOrNone(new TextDecoder().decode(value));
  if (isPlainObject(found) && isKeyRecord(found)) return found as unknown as KeyRecord;
  throw new StateError("damaged", "The record of an Idempotency-Key in the shared state cannot be read.");
}

/** Whether a record says of the call of a claim that it runs, or that nobody knows what it has done. */
function isOpen(record: StateRecord, claim: string): boolean {
  const found = decode(record);
  if (found.claim !== claim) return false;
  return found.state === "running" || (found.state === "lost" && found.reason === "unknown");
}

function isKeyRecord(found: Record<string, unknown>): boolean {
  const { replica, claim, fingerprint, until, state, reason, outcome } = found;
  if (![replica, claim, fingerprint].every((text) => typeof text === "string")) return false;
  if (typeof until !== "number") return false;
  if (state === "lost") return reason === "unknown" || reason === "too_long";
  if (state !== "kept") return state === "running";
  if (!isPlainObject(outcome)) return false;
  const { kind, text, requestId, durationMs } = outcome;
  const isKind = kind === "envelope" || kind === "error";
  return (
    isKind && typeof text === "string" && typeof requestId === "string" && typeof durationMs === "number"
  );
}

/** The error of a call whose key could not be claimed: it did not run. */
export function keyRefusal(thrown: unknown): unknown {
  if (!(thrown instanceof StateError)) return thrown;
  const { message, fault } = thrown;
  const code = fault === "full" ? "RESOURCE_EXHAUSTED" : "UNAVAILABLE";
  const said = `The call did not run, because its Idempotency-Key could not be looked up: ${message}`;
  const details = { reason: fault, retryAfterMs: AGAIN_MS };
  return new CallError(code, said, { cause: thrown, details, stack: false });
}
