/** Names a record. Two owners never share one, and a store tells nobody what the record of another owner holds. */
export interface StateName {
  /** What kind of record it is: letters, digits and `-`. */
  readonly collection: string;
  /** Whose it is; empty for what is the gateway's own. */
  readonly owner: string;
  readonly key: string;
}

/** A record as it was found. */
export interface StateRecord {
  readonly value: Uint8Array;
  /** Another one after every change. */
  readonly revision: number;
  /** Unix epoch milliseconds from which on the record counts as absent. */
  readonly expiresAt: number;
}

/** How much a collection holds. */
export interface StateBounds {
  readonly records: number;
  readonly bytes: number;
  /** Records of one owner. */
  readonly ownRecords: number;
  /** Bytes of one owner. */
  readonly ownBytes: number;
}

/** How a record is written. */
export interface StateWrite {
  /** Unix epoch milliseconds; at most `LONGEST_KEEP_MS` from now. */
  readonly expiresAt: number;
  readonly bounds: StateBounds;
  /** Bytes that are counted for it. @default those of the value */
  readonly bytes?: number | undefined;
  /** Whether `list` gives its key, which has at most `LONGEST_LISTED_KEY` bytes then. @default false */
  readonly listed?: boolean | undefined;
}

/** Which keys of an owner are listed. */
export interface StateListing {
  /** How many at most, 1 to `MOST_LISTED`. */
  readonly limit: number;
  /** Those behind this key alone. @default from the beginning */
  readonly after?: string | undefined;
}

/** What came of creating a record. */
export type StateCreated =
  | { readonly state: "created"; readonly revision: number }
  | { readonly state: "exists"; readonly record: StateRecord }
  | { readonly state: "full" };

/** What came of changing a record; `changed` where it is gone, or has another revision by now. */
export type StateUpdated =
  | { readonly state: "updated"; readonly revision: number }
  | { readonly state: "changed" }
  | { readonly state: "full" };

/**
 * Keeps small records for the replicas of a gateway. Every change is atomic: of several who create a record, or change the same revision
 * of one, one succeeds. A change is acknowledged once it is stored. What cannot be told, or not be done, is a `StateError`.
 */
export interface StateStore {
  /** Whether no other process uses the store: then what another replica left behind belongs to one that is gone. */
  readonly isExclusive: boolean;
  /** Whether it can be reached, as far as is known. */
  readonly isUp: boolean;
  /** Unix epoch milliseconds, on the clock that expiry is measured by. */
  now(): number;
  get(name: StateName): Promise<StateRecord | undefined>;
  /** Whether there may be a record, without asking anybody: what another replica wrote a moment ago may be missing. */
  mayHave(name: StateName): boolean;
  /** Stores a record unless there is one. */
  create(name: StateName, value: Uint8Array, write: StateWrite): Promise<StateCreated>;
  /** Replaces a revision of a record. */
  update(name: StateName, revision: number, value: Uint8Array, write: StateWrite): Promise<StateUpdated>;
  /** Removes a revision of a record; tells whether it was there. */
  delete(name: StateName, revision: number): Promise<boolean>;
  /**
   * Keys of the records of an owner that were written with `listed`, in the order of their code units. What another replica wrote a moment
   * ago may be missing, and what it removed may still be there.
   */
  list(collection: string, owner: string, listing: StateListing): Promise<readonly string[]>;
  /** Hears that a record may have changed, through whichever replica; returns how to stop. A change may be missed while the store is away. */
  watch(name: StateName, listener: () => void): () => void;
  close(): Promise<void>;
}

/** Milliseconds that a record can be kept: an hour more than the longest of what is kept for a week. */
export const LONGEST_KEEP_MS = 169 * 3_600_000;

/** Bytes of one value. */
export const MOST_VALUE_BYTES = 33_554_432;

/** Bytes of a key that is listed. */
export const LONGEST_LISTED_KEY = 256;

/** Keys that are listed at a time. */
export const MOST_LISTED = 1_000;

/** The version that records are written in; others are left alone. */
export const STATE_VERSION = 1;

/**
 * What can be wrong with a store: it cannot be reached, did not answer in time, has no room, was emptied, holds a record of another version or
 * one that cannot be read, or lost what was written last when its process ended.
 */
export const STATE_FAULTS = ["unreachable", "slow", "full", "wiped", "version", "damaged", "torn"] as const;

/** One of them. */
export type StateFault = (typeof STATE_FAULTS)[number];

/** Says why a store did not do as it was asked. */
export class StateError extends Error {
  override readonly name = "StateError";
  readonly fault: StateFault;
  /** Whether the change may have been stored all the same. */
  readonly isUncertain: boolean;

  constructor(
    fault: StateFault,
    message: string,
    options: ErrorOptions & { readonly uncertain?: boolean } = {},
  ) {
    super(message, options);
    this.fault = fault;
    this.isUncertain = options.uncertain ?? false;
  }
}

/** Hears what is wrong with a store, each time. */
export type StateFaultListener = (fault: StateFault, message: string, cause?: unknown) => void;

/** The error for a record that another version wrote. */
export function versionError(version: unknown): StateError {
  const shown = typeof version === "number" ? version : "that is no number";
  const message = `A record of the shared state has version ${shown}, and this gateway reads version ${STATE_VERSION}: it is left alone. Finish the update of all replicas, or go back.`;
  return new StateError("version", message);
}

/** A record as it is to be written. */
export interface WrittenRecord {
  readonly name: StateName;
  readonly value: Uint8Array;
  readonly write: StateWrite;
}

/** Throws for what no store keeps: a mistake of this side. */
export function checkWrite({ name: { key }, value, write }: WrittenRecord, now: number): void {
  const { expiresAt, listed } = write;
  if (value.length > MOST_VALUE_BYTES)
    throw new RangeError(`A value has at most ${MOST_VALUE_BYTES} bytes; this one has ${value.length}.`);
  if (!(expiresAt - now <= LONGEST_KEEP_MS))
    throw new RangeError(`A record is kept for at most ${LONGEST_KEEP_MS} ms.`);
  if (listed && Buffer.byteLength(key) > LONGEST_LISTED_KEY)
    throw new RangeError(`A key that is listed has at most ${LONGEST_LISTED_KEY} bytes.`);
}

/** Throws for a listing that no store gives: a mistake of this side. */
export function checkListing({ limit }: StateListing): void {
  if (!(Number.isSafeInteger(limit) && limit >= 1 && limit <= MOST_LISTED))
    throw new RangeError(`Between 1 and ${MOST_LISTED} keys are listed at a time.`);
}
