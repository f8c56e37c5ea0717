import { KeyedListeners } from "../../core/collections/listeners.ts";
import { type IndexedRecord, RecordIndex } from "./record-index.ts";
import type { LoggedRecord, StateLog } from "./state-log.ts";
import {
  checkListing,
  checkWrite,
  type StateCreated,
  type StateFaultListener,
  type StateListing,
  type StateName,
  type StateRecord,
  type StateStore,
  type StateUpdated,
  type StateWrite,
  versionError,
} from "./state-store.ts";

/** How a store of one process is made. */
export interface LocalStateStoreOptions {
  /** Where changes are written down. @default nowhere: the store ends with its process */
  readonly log?: StateLog | undefined;
  /** Unix epoch milliseconds. @default Date.now */
  readonly now?: (() => number) | undefined;
  /** Hears what is wrong, each time. @default nobody does */
  readonly onFault?: StateFaultListener | undefined;
}

/** Creates a store for one process, in memory or on what its log has kept. */
export function createLocalStateStore(options: LocalStateStoreOptions = {}): StateStore {
  return new LocalStateStore(options);
}

const SWEEP_MS = 60_000;

type Kept = Extract<LoggedRecord, { readonly kind: "record" }>;

/** Keeps records in this process. A change counts at once, and is acknowledged when the log has it; one that the log refuses is taken back. */
class LocalStateStore implements StateStore {
  readonly isExclusive = true;
  readonly isUp = true;
  readonly #records: Map<string, LoggedRecord>;
  readonly #index: RecordIndex;
  readonly #watches = new KeyedListeners();
  readonly #log: StateLog | undefined;
  readonly #options: LocalStateStoreOptions;
  #revision = 0;
  #sweepAt: number;

  constructor(options: LocalStateStoreOptions) {
    this.#options = options;
    this.#log = options.log;
    this.#records = options.log?.records ?? new Map();
    this.#index = new RecordIndex(() => this.now());
    this.#sweepAt = this.now() + SWEEP_MS;
    for (const [id, record] of this.#records) {
      if (record.kind !== "record") continue;
      this.#revision = Math.max(this.#revision, record.revision);
      this.#index.set(id, indexed(record));
    }
  }

  now(): number {
    return (this.#options.now ?? Date.now)();
  }

  async get(name: StateName): Promise<StateRecord | undefined> {
    return this.#find(name);
  }

  mayHave(name: StateName): boolean {
    return this.#records.has(recordId(name));
  }

  async create(name: StateName, value: Uint8Array, write: StateWrite): Promise<StateCreated> {
    checkWrite({ name, value, write }, this.now());
    const record = this.#find(name);
    if (record !== undefined) return { state: "exists", record };
    const revision = await this.#put(name, value, write);
    return revision === undefined ? { state: "full" } : { state: "created", revision };
  }

  async update(
    name: StateName,
    revision: number,
    value: Uint8Array,
    write: StateWrite,
  ): Promise<StateUpdated> {
    checkWrite({ name, value, write }, this.now());
    if (this.#find(name)?.revision !== revision) return { state: "changed" };
    const updated = await this.#put(name, value, write);
    return updated === undefined ? { state: "full" } : { state: "updated", revision: updated };
  }

  async delete(name: StateName, revision: number): Promise<boolean> {
    const known = this.#find(name);
    if (known?.revision !== revision) return false;
    const id = recordId(name);
    this.#records.delete(id);
    this.#index.delete(id, revision);
    await this.#write(id, { kind: "deleted", name, revision: ++this.#revision }, known);
    return true;
  }

  async list(collection: string, owner: string, listing: StateListing): Promise<readonly string[]> {
    checkListing(listing);
    return this.#index.list(collection, owner, listing);
  }

  watch(name: StateName, listener: () => void): () => void {
    return this.#watches.add(recordId(name), listener);
  }

  async close(): Promise<void> {
    await this.#log?.close();
  }

  #find(name: StateName): Kept | undefined {
    const record = this.#records.get(recordId(name));
    if (record?.kind === "foreign") {
      const error = versionError(record.version);
      this.#options.onFault?.("version", error.message);
      throw error;
    }
    return record?.kind === "record" && record.expiresAt > this.now() ? record : undefined;
  }

  async #put(name: StateName, value: Uint8Array, write: StateWrite): Promise<number | undefined> {
    const id = recordId(name);
    const { expiresAt, bounds, bytes = value.length, listed = false } = write;
    this.#sweep();
    const room = this.#index.reserve(id, { ...name, bytes }, bounds);
    if (room === undefined) {
      this.#options.onFault?.("full", "The state holds as many records as it may.");
      return undefined;
    }
    const before = this.#records.get(id);
    const revision = ++this.#revision;
    const record: Kept = { kind: "record", name, value, revision, expiresAt, bytes, listed };
    this.#records.set(id, record);
    this.#index.set(id, indexed(record));
    room.release();
    await this.#write(id, record, before);
    return revision;
  }

  /** Expired records count as absent; now and then they are let go of. */
  #sweep(): void {
    const now = this.now();
    if (now < this.#sweepAt) return;
    this.#sweepAt = now + SWEEP_MS;
    for (const [id, record] of this.#records) {
      if (record.kind === "record" && record.expiresAt <= now) this.#records.delete(id);
    }
  }

  /** Writes a change down and tells of it; takes it back where that cannot be, unless it was changed again. */
  async #write(id: string, change: LoggedRecord, before: LoggedRecord | undefined): Promise<void> {
    try {
      await this.#log?.append(change);
    } catch (thrown) {
      const now = this.#records.get(id);
      if (now === (change.kind === "deleted" ? undefined : change))
        this.#restore(id, change.revision, before);
      throw thrown;
    } finally {
      this.#watches.tell(id);
    }
  }

  #restore(id: string, revision: number, before: LoggedRecord | undefined): void {
    this.#index.delete(id, revision);
    this.#records.delete(id);
    if (before?.kind !== "record") return;
    this.#records.set(id, before);
    this.#index.set(id, indexed(before));
  }
}

function indexed({ name, revision, expiresAt, bytes, listed }: Kept): IndexedRecord {
  const { collection, owner, key } = name;
  return { collection, owner, revision, expiresAt, bytes, listedKey: listed ? key : undefined };
}

/** Names a record within its store. */
export function recordId({ collection, owner, key }: StateName): string {
  return JSON.stringify([collection, owner, key]);
}
