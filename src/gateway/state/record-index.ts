import type { StateBounds, StateListing } from "./state-store.ts";

/** What is known of a record besides its value. */
export interface IndexedRecord {
  readonly collection: string;
  readonly owner: string;
  readonly revision: number;
  /** Unix epoch milliseconds. */
  readonly expiresAt: number;
  /** Bytes that are counted for it. */
  readonly bytes: number;
  /** Names what else is stored for it. @default nothing is */
  readonly parts?: string | undefined;
  /** Its key, where that is listed. @default it is not */
  readonly listedKey?: string | undefined;
}

interface Room {
  records: number;
  bytes: number;
}

/** Room that is held for a write until it is known what came of it. */
interface HeldRoom {
  release(): void;
}

/** Counts the records of a store, by collection and owner. */
export class RecordIndex {
  readonly #records = new Map<string, IndexedRecord>();
  readonly #rooms = new Map<string, Room>();
  /** Records whose keys are listed, by key. */
  readonly #listed = new Map<string, Map<string, IndexedRecord>>();
  readonly #now: () => number;
  readonly #onExpired: ((record: IndexedRecord) => void) | undefined;
  /** Room that was held before is not given back after. */
  #clears = 0;
  /** No record expires before. */
  #nextExpiry = Number.POSITIVE_INFINITY;

  /** `onExpired` hears of each record that is forgotten because its time is over. */
  constructor(now: () => number, onExpired?: (record: IndexedRecord) => void) {
    this.#now = now;
    this.#onExpired = onExpired;
  }

  /** The record of an id, unless it has expired. */
  get(id: string): IndexedRecord | undefined {
    const record = this.#records.get(id);
    return record !== undefined && record.expiresAt > this.#now() ? record : undefined;
  }

  /** Takes notice of a record; one that is older than what is known changes nothing. */
  set(id: string, record: IndexedRecord): void {
    const known = this.#records.get(id);
    if (known !== undefined) {
      if (known.revision > record.revision) return;
      this.#leave(known);
    }
    this.#records.set(id, record);
    this.#count(record, 1, record.bytes);
    if (record.listedKey !== undefined) {
      const room = roomOf(record.collection, record.owner);
      const listed = this.#listed.get(room) ?? new Map();
      this.#listed.set(room, listed.set(record.listedKey, record));
    }
    this.#nextExpiry = Math.min(this.#nextExpiry, record.expiresAt);
  }

  /** Forgets a record, unless a later revision than this is known. */
  delete(id: string, revision: number): void {
    const known = this.#records.get(id);
    if (known === undefined || known.revision > revision) return;
    this.#records.delete(id);
    this.#leave(known);
  }

  /** What else is stored for records, by its names. */
  parts(): ReadonlySet<string> {
    const names = new Set<string>();
    for (const { parts } of this.#records.values()) if (parts !== undefined) names.add(parts);
    return names;
  }

  /** Keys of an owner in the order of their code units. */
  list(collection: string, owner: string, { limit, after }: StateListing): readonly string[] {
    const now = this.#now();
    const keys: string[] = [];
    for (const [key, { expiresAt }] of this.#listed.get(roomOf(collection, owner)) ?? []) {
      if (expiresAt > now && (after === undefined || key > after)) keys.push(key);
    }
    return keys.sort(byCodeUnits).slice(0, limit);
  }

  clear(): void {
    this.#records.clear();
    this.#listed.clear();
    this.#rooms.clear();
    this.#clears += 1;
    this.#nextExpiry = Number.POSITIVE_INFINITY;
  }

  /** Holds room for a record in place of the one of its id, if there is one; nothing where there is none. */
  reserve(
    id: string,
    { collection, owner, bytes }: Pick<IndexedRecord, "collection" | "owner" | "bytes">,
    bounds: StateBounds,
  ): HeldRoom | undefined {
    const place = { collection, owner };
    const known = this.get(id);
    const added = { records: known === undefined ? 1 : 0, bytes: bytes - (known?.bytes ?? 0) };
    if (!this.#fits(place, added, bounds)) {
      this.forgetExpired();
      if (!this.#fits(place, added, bounds)) return undefined;
    }
    const held = { records: added.records, bytes: Math.max(added.bytes, 0) };
    this.#count(place, held.records, held.bytes);
    const clears = this.#clears;
    let isHeld = true;
    return {
      release: () => {
        if (isHeld && clears === this.#clears) this.#count(place, -held.records, -held.bytes);
        isHeld = false;
      },
    };
  }

  #fits(
    { collection, owner }: Pick<IndexedRecord, "collection" | "owner">,
    added: Room,
    bounds: StateBounds,
  ): boolean {
    const all = this.#rooms.get(collection) ?? { records: 0, bytes: 0 };
    const own = this.#rooms.get(roomOf(collection, owner)) ?? { records: 0, bytes: 0 };
    const isNew = added.records > 0;
    if (isNew && (all.records >= bounds.records || own.records >= bounds.ownRecords)) return false;
    // Where nothing is left, nothing new begins, however small.
    if (isNew && (all.bytes >= bounds.bytes || own.bytes >= bounds.ownBytes)) return false;
    if (added.bytes <= 0) return true;
    return all.bytes + added.bytes <= bounds.bytes && own.bytes + added.bytes <= bounds.ownBytes;
  }

  /** Lets go of records whose time is over. */
  forgetExpired(): void {
    const now = this.#now();
    if (now < this.#nextExpiry) return;
    let next = Number.POSITIVE_INFINITY;
    for (const [id, record] of this.#records) {
      if (record.expiresAt <= now) {
        this.delete(id, record.revision);
        this.#onExpired?.(record);
      } else next = Math.min(next, record.expiresAt);
    }
    this.#nextExpiry = next;
  }

  #leave(record: IndexedRecord): void {
    this.#count(record, -1, -record.bytes);
    if (record.listedKey === undefined) return;
    const room = roomOf(record.collection, record.owner);
    const listed = this.#listed.get(room);
    listed?.delete(record.listedKey);
    if (listed?.size === 0) this.#listed.delete(room);
  }

  #count(
    { collection, owner }: Pick<IndexedRecord, "collection" | "owner">,
    records: number,
    bytes: number,
  ): void {
    for (const name of [collection, roomOf(collection, owner)]) {
      const room = this.#rooms.get(name) ?? { records: 0, bytes: 0 };
      room.records += records;
      room.bytes += bytes;
      if (room.records === 0 && room.bytes === 0) this.#rooms.delete(name);
      else this.#rooms.set(name, room);
    }
  }
}

function byCodeUnits(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

/** A collection holds no line break. */
function roomOf(collection: string, owner: string): string {
  return `${collection}\n${owner}`;
}
