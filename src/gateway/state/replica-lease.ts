import { Listeners } from "../../core/collections/listeners.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { MOST_LISTED, StateError, type StateName, type StateStore } from "./state-store.ts";

/** How a replica shows that it is there. */
interface ReplicaLeaseOptions {
  /** Names this replica among all that there ever were. */
  readonly replica: string;
  /** Milliseconds without a sign of life after which a replica counts as gone. @default 10_000 */
  readonly leaseMs?: number | undefined;
}

const LEASE_MS = 10_000;

/** Signs of life in one lease. */
const BEATS = 4;
/** Replicas of a gateway. */
const BOUNDS = { records: 1_000, bytes: 1_048_576, ownRecords: 1_000, ownBytes: 1_048_576 };
/** How long what a replica has left is known. */
const KEEP_MS = 3_600_000;
const COLLECTION = "replicas";
/** Silent replicas that one tells the others of. */
const MOST_TOLD = 100;

interface Seen {
  readonly revision: number;
  /** On the monotonic clock: since when this revision is seen here. */
  readonly since: number;
  /** Milliseconds that another replica had seen it for by then. */
  readonly before: number;
}

/**
 * Shows others that this replica is there, and tells which of them are gone. No clocks are compared: a replica is gone when its record has not
 * changed for a whole lease under the eyes of this one, or of several, one after the other: each writes down for how long it has seen which
 * revision of a record that does not change. Where replicas do not live for a whole lease, nobody would ever know otherwise.
 */
export class ReplicaLease {
  readonly #store: StateStore;
  readonly replica: string;
  readonly #leaseMs: number;
  readonly #beatListeners = new Listeners();
  readonly #seen = new Map<string, Seen>();
  /** Those that are listed and gone, so that nobody has to look at them with every beat. */
  #gone: ReadonlySet<string> = new Set();
  #held: Promise<void> | undefined;
  #revision: number | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  #isBeating = false;
  #isWatching = false;
  /** On the monotonic clock: since when no sign of life of this replica was late, and the last one. */
  #steadySince = monotonicNow();
  #beatAt = monotonicNow();

  constructor(store: StateStore, { replica, leaseMs = LEASE_MS }: ReplicaLeaseOptions) {
    this.#store = store;
    this.replica = replica;
    this.#leaseMs = leaseMs;
  }

  /** Hears that the store has answered, as often as a sign of life is given. */
  onBeat(listener: () => void): void {
    this.#beatListeners.add(listener);
  }

  /** Resolves when others can see that this replica is there; signs of life are given from then on. */
  hold(): Promise<void> {
    this.#held ??= this.#start().catch((thrown) => {
      this.#held = undefined;
      throw thrown;
    });
    return this.#held;
  }

  /** Whether no sign of life of this replica was late since then, on the monotonic clock: others may have taken it for gone otherwise. */
  isSteadySince(at: number): boolean {
    if (this.#store.isExclusive) return true;
    return at >= this.#steadySince && monotonicNow() - this.#beatAt <= this.#leaseMs / 2;
  }

  /** Whether a replica is known to be gone. */
  async isGone(replica: string): Promise<boolean> {
    if (replica === this.replica) return false;
    if (this.#store.isExclusive) return true;
    const found = await this.#store.get(nameOf(replica));
    if (found === undefined) {
      this.#seen.delete(replica);
      return true;
    }
    // It may be a lower one: the store was emptied.
    if (this.#seen.get(replica)?.revision !== found.revision) this.#see(replica, found.revision, 0);
    for (const [other, revision, silentMs] of readTold(found.value)) this.#hear(other, revision, silentMs);
    return this.#silentMs(replica) >= this.#leaseMs;
  }

  /** Takes notice of what another replica has seen; of a revision that is not the one that is seen here it says nothing, once that is looked at. */
  #hear(replica: string, revision: number, silentMs: number): void {
    if (replica === this.replica) return;
    const known = this.#seen.get(replica);
    if (known !== undefined && known.revision !== revision) return;
    if (known === undefined || this.#silentMs(replica) < silentMs) this.#see(replica, revision, silentMs);
  }

  #see(replica: string, revision: number, before: number): void {
    if (this.#seen.size >= BOUNDS.records) this.#seen.clear();
    this.#seen.set(replica, { revision, since: monotonicNow(), before });
  }

  /** For how long a record has not changed, at least. */
  #silentMs(replica: string): number {
    const seen = this.#seen.get(replica);
    const now = monotonicNow();
    // While this one could not give signs of life itself, neither could others.
    if (seen === undefined || now - this.#beatAt > this.#leaseMs / 2) return 0;
    return this.#steadySince > seen.since ? now - this.#steadySince : seen.before + now - seen.since;
  }

  /** What this one has seen of records that do not change. */
  #told(): Uint8Array {
    const told: Told[] = [];
    for (const [replica, { revision }] of this.#seen) {
      const silentMs = Math.floor(this.#silentMs(replica));
      if (silentMs >= this.#leaseMs / BEATS && told.length < MOST_TOLD)
        told.push([replica, revision, silentMs]);
    }
    return new TextEncoder().encode(JSON.stringify({ silent: told }));
  }

  /** Looks at all the others: a later caller is told at once that one of them is gone, instead of after a lease. */
  #watchOthers(): void {
    if (this.#isWatching || this.#store.isExclusive) return;
    this.#isWatching = true;
    const watch = async (): Promise<void> => {
      const gone = new Set<string>();
      for (const replica of await this.#store.list(COLLECTION, "", { limit: MOST_LISTED })) {
        if (this.#gone.has(replica) || (await this.isGone(replica))) gone.add(replica);
      }
      this.#gone = gone;
    };
    // What cannot be seen now is seen with the next sign of life.
    watch()
      .catch(() => {})
      .finally(() => {
        this.#isWatching = false;
      });
  }

  /** Says that this replica is gone. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#held?.catch(() => {});
    if (this.#revision === undefined || this.#store.isExclusive) return;
    // One that cannot say so counts as gone when its lease is over.
    await this.#store.delete(nameOf(this.replica), this.#revision).catch(() => {});
  }

  async #start(): Promise<void> {
    if (!this.#store.isExclusive) await this.#renew();
    this.#beatAt = monotonicNow();
    this.#steadySince = this.#beatAt;
    this.#timer ??= setInterval(() => this.#beat(), this.#leaseMs / BEATS).unref();
    this.#watchOthers();
  }

  #beat(): void {
    if (this.#isBeating) return;
    this.#isBeating = true;
    const renewing = this.#store.isExclusive ? Promise.resolve() : this.#renew();
    renewing
      .then(
        () => {
          const now = monotonicNow();
          if (now - this.#beatAt > this.#leaseMs / 2) this.#steadySince = now;
          this.#beatAt = now;
          this.#beatListeners.tell();
          this.#watchOthers();
        },
        // The store has told why; the next beat tries again.
        () => {},
      )
      .finally(() => {
        this.#isBeating = false;
      });
  }

  async #renew(): Promise<void> {
    const name = nameOf(this.replica);
    const value = this.#told();
    const write = { expiresAt: this.#store.now() + KEEP_MS, bounds: BOUNDS, bytes: 0, listed: true };
    const updated =
      this.#revision === undefined ? undefined : await this.#store.update(name, this.#revision, value, write);
    if (updated?.state === "updated") {
      this.#revision = updated.revision;
      return;
    }
    // The first time, or the record is gone: the store was emptied.
    const created = await this.#store.create(name, value, write);
    if (created.state === "full")
      throw new StateError("full", "The shared state has no room for another replica.");
    this.#revision = created.state === "created" ? created.revision : created.record.revision;
  }
}

/** A replica, a revision of its record, and for how many milliseconds that has not changed. */
type Told = readonly [replica: string, revision: number, silentMs: number];

/** Reads what another replica has seen; one of an earlier version says nothing. */
function readTold(value: Uint8Array): readonly Told[] {
  const found = parseJsonTextOrNone(new TextDecoder().decode(value));
  const silent = isPlainObject(found) ? found["silent"] : undefined;
  return Array.isArray(silent) ? silent.slice(0, MOST_TOLD).filter(isTold) : [];
}

function isTold(entry: unknown): entry is Told {
  if (!Array.isArray(entry)) return false;
  const [replica, revision, silentMs] = entry;
  return typeof replica === "string" && Number.isSafeInteger(revision) && Number.isSafeInteger(silentMs);
}

function nameOf(replica: string): StateName {
  return { collection: COLLECTION, owner: "", key: replica };
}
