import { monotonicNow } from "../../core/execution/cancellation.ts";
import type { LeasedSlots, SlotLimit, SlotUse } from "../policy/gates.ts";
import type { SharedState, StateAccess } from "./gateway-state.ts";
import {
  decodeSlots,
  encodeSlots,
  NO_SLOTS,
  othersOf,
  planSlots,
  type SlotPlan,
  type SlotRecord,
  withoutReplica,
} from "./slot-plan.ts";
import { StateError, type StateName } from "./state-store.ts";

/** How slots are leased. */
export interface StateSlotsOptions {
  readonly access: StateAccess;
  /** Whether this replica counts for itself while the store cannot be reached; it lets nothing more through otherwise. */
  readonly goesOnAlone: () => boolean;
  /** Hears, each time, that the store is lost to a limit. */
  readonly onLost: () => void;
  /** Milliseconds between looks at what others hold, where that matters. @default 1_000 */
  readonly lookMs?: number | undefined;
}

/** Limits of a gateway; each of them has a record. */
const BOUNDS = { records: 10_000, bytes: 16_777_216, ownRecords: 10_000, ownBytes: 16_777_216 };
const KEEP_MS = 86_400_000;
const REFRESH_MS = KEEP_MS / 4;
const LOOK_MS = 1_000;
/** How long a slot is kept for a call that waits for another limit too: different at each replica, so that one of them gets both. */
const SHORTEST_GRANT_MS = 10;
const LONGEST_GRANT_MS = 60;

/** Leases the slots of limits to this replica, in blocks, out of what all replicas have together. */
export class StateSlots {
  readonly #options: StateSlotsOptions;
  readonly #leases = new Set<SlotLease>();
  #beating: SharedState | undefined;

  constructor(options: StateSlotsOptions) {
    this.#options = options;
  }

  /** Leases for one limit. Nothing is asked of the store before the first call comes. */
  lease(limit: SlotLimit, use: SlotUse): LeasedSlots {
    const lease = new SlotLease(limit, use, {
      ...this.#options,
      onReached: (shared) => this.#follow(shared),
      onClose: () => void this.#leases.delete(lease),
    });
    this.#leases.add(lease);
    return lease;
  }

  /** Gives back what is not in use. */
  async close(): Promise<void> {
    await Promise.all([...this.#leases].map((lease) => lease.end()));
  }

  #follow(shared: SharedState): void {
    if (this.#beating === shared) return;
    this.#beating = shared;
    shared.lease.onBeat(() => {
      for (const lease of this.#leases) lease.beat();
    });
  }
}

interface SlotLeaseOptions extends StateSlotsOptions {
  onReached(shared: SharedState): void;
  onClose(): void;
}

/** What is known of the record; revision 0 where there is none. */
interface KnownRecord {
  readonly record: SlotRecord;
  readonly revision: number;
}

class SlotLease implements LeasedSlots {
  readonly #options: SlotLeaseOptions;
  readonly #use: SlotUse;
  readonly #name: StateName;
  #limit: SlotLimit;
  #state: "leased" | "lost" | "own" | "closed" = "leased";
  #shared: SharedState | undefined;
  #known: KnownRecord | undefined;
  /** How often the record is known to have changed. */
  #changes = 0;
  #held = 0;
  #cap = Number.POSITIVE_INFINITY;
  #granted = 0;
  #isContended = false;
  /** Most that were in use since the last beat. */
  #peak = 0;
  #shrinkTo: number | undefined;
  /** On the monotonic clock: when the record was looked at last, and written. */
  #checkedAt = Number.NEGATIVE_INFINITY;
  #writtenAt = Number.NEGATIVE_INFINITY;
  /** On the monotonic clock: since when others are known to be gone. */
  readonly #goneSince = new Map<string, number>();
  #goneAskedAt = Number.NEGATIVE_INFINITY;
  #working: Promise<void> | undefined;
  #isAgain = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #grantTimer: ReturnType<typeof setTimeout> | undefined;
  #ending: Promise<void> | undefined;
  #stopWatching: (() => void) | undefined;

  constructor(limit: SlotLimit, use: SlotUse, options: SlotLeaseOptions) {
    this.#limit = limit;
    this.#use = use;
    this.#options = options;
    this.#name = { collection: "limits", owner: "", key: limit.name };
  }

  get slots(): number {
    if (this.#state === "own") return this.#limit.count;
    if (this.#state === "lost" && this.#options.goesOnAlone()) return this.#limit.count;
    if (this.#shared?.lease.isSteadySince(this.#checkedAt) !== true) return 0;
    return Math.min(this.#held, this.#limit.count, Math.max(this.#cap, this.#used() + this.#granted));
  }

  get isRefused(): boolean {
    return this.#state === "lost" && !this.#options.goesOnAlone();
  }

  started(): void {
    if (this.#granted > 0) this.#granted--;
    this.#notice();
  }

  changed(): void {
    this.#notice();
  }

  change(limit: SlotLimit): void {
    this.#limit = limit;
    this.#known = undefined;
    if (this.#held > 0) this.#poke();
  }

  close(): void {
    void this.end();
  }

  /** With every sign of life of this replica: gives back what nobody needed since the last one. */
  beat(): void {
    const used = this.#used();
    const most = Math.max(this.#peak, used);
    this.#peak = used;
    if (this.#state === "closed" || this.#held === 0) return;
    if (this.#shared?.lease.isSteadySince(this.#checkedAt) !== true) this.#known = undefined;
    else if (this.#held > most) this.#shrinkTo = most;
    else if (monotonicNow() - this.#writtenAt < REFRESH_MS) return;
    this.#poke();
  }

  /** Gives back what is not in use, and stops. */
  end(): Promise<void> {
    this.#ending ??= this.#end().finally(() => this.#options.onClose());
    return this.#ending;
  }

  async #end(): Promise<void> {
    this.#state = "closed";
    this.#stopWatching?.();
    clearTimeout(this.#timer);
    clearTimeout(this.#grantTimer);
    await this.#working;
    // What cannot be given back now is when this replica counts as gone.
    for (let tries = 0; tries < 3 && this.#held > 0; tries++) {
      if (await this.#leave().catch(() => true)) return;
    }
  }

  #used(): number {
    return this.#use.used(monotonicNow());
  }

  #notice(): void {
    const used = this.#used();
    if (used > this.#peak) this.#peak = used;
    // One that is lost is looked for again and again as it is.
    if (this.#state !== "leased") return;
    const isShort = this.#use.waiting > 0 && used >= this.slots;
    if (isShort || this.#isContended) this.#poke();
  }

  #poke(): void {
    if (this.#state === "closed") return;
    if (this.#working !== undefined) {
      this.#isAgain = true;
      return;
    }
    this.#working = this.#work().finally(() => {
      this.#working = undefined;
      if (this.#isAgain) this.#poke();
    });
  }

  async #work(): Promise<void> {
    this.#isAgain = false;
    try {
      await this.#step();
    } catch (thrown) {
      if (!(thrown instanceof StateError)) throw thrown;
      this.#lose();
    }
  }

  async #step(): Promise<void> {
    const shared = await this.#options.access.reach();
    if (shared === undefined || shared.store.isExclusive) {
      this.#state = "own";
      this.#tell();
      return;
    }
    this.#meet(shared);
    await shared.lease.hold();
    const [at, changes] = [monotonicNow(), this.#changes];
    const known = this.#known ?? (await this.#look(shared));
    const record = await this.#withoutGone(shared, known.record);
    const plan = planSlots(record, {
      replica: shared.lease.replica,
      count: this.#limit.count,
      used: this.#used(),
      waiting: this.#use.waiting,
      granted: this.#granted,
      shrinkTo: this.#shrinkTo,
    });
    const isOld = plan.held > 0 && at - this.#writtenAt > REFRESH_MS;
    const isWritten = plan.record === known.record && !isOld;
    if (this.#isClosed) return;
    // What is given back is not used while that is on its way.
    this.#held = Math.min(this.#held, plan.held);
    const revision = isWritten ? known.revision : await this.#write(shared, known.revision, plan.record);
    this.#known =
      revision === undefined || changes !== this.#changes ? undefined : { record: plan.record, revision };
    if (revision === undefined) {
      this.#isAgain = true;
      return;
    }
    this.#shrinkTo = undefined;
    this.#checkedAt = at;
    this.#settle(plan);
  }

  #meet(shared: SharedState): void {
    if (this.#shared === shared) return;
    this.#shared = shared;
    this.#stopWatching?.();
    this.#stopWatching = shared.store.watch(this.#name, () => {
      this.#changes++;
      this.#known = undefined;
      if (this.#held > 0 || this.#use.waiting > 0) this.#poke();
    });
    this.#options.onReached(shared);
  }

  async #look({ store }: SharedState): Promise<KnownRecord> {
    const found = await store.get(this.#name);
    if (found === undefined) return { record: NO_SLOTS, revision: 0 };
    return { record: decodeSlots(found.value), revision: found.revision };
  }

  /** The revision that was written; nothing where another replica was first. */
  async #write({ store }: SharedState, revision: number, record: SlotRecord): Promise<number | undefined> {
    const write = { expiresAt: store.now() + KEEP_MS, bounds: BOUNDS };
    const value = encodeSlots(record);
    const written =
      revision === 0
        ? await store.create(this.#name, value, write)
        : await store.update(this.#name, revision, value, write);
    if (written.state === "full") throw new StateError("full", "The shared state has no room for a limit.");
    if (written.state !== "created" && written.state !== "updated") return undefined;
    this.#writtenAt = monotonicNow();
    return written.revision;
  }

  /** Slots of a replica that is gone are there again: at once, or when what it may have started last does not count any more. */
  async #withoutGone({ lease }: SharedState, record: SlotRecord): Promise<SlotRecord> {
    const others = othersOf(record, lease.replica);
    if (others.length === 0 || !this.#isContended) return record;
    const now = monotonicNow();
    if (now - this.#goneAskedAt >= this.#lookMs) {
      this.#goneAskedAt = now;
      for (const other of others) {
        if (!(await lease.isGone(other))) this.#goneSince.delete(other);
        else if (!this.#goneSince.has(other)) this.#goneSince.set(other, monotonicNow());
      }
      for (const name of this.#goneSince.keys()) if (!others.includes(name)) this.#goneSince.delete(name);
    }
    let left = record;
    for (const [name, since] of this.#goneSince) {
      const isOver = monotonicNow() - since >= this.#limit.restMs;
      const names = isOver ? othersOf(left, lease.replica) : left.queue;
      if (names.includes(name)) left = withoutReplica(left, name, isOver);
    }
    return left;
  }

  get #lookMs(): number {
    return this.#options.lookMs ?? LOOK_MS;
  }

  #settle({ held, taken, cap, isContended }: SlotPlan): void {
    this.#held = held;
    if (this.#isClosed) return;
    this.#state = "leased";
    this.#cap = cap;
    this.#isContended = isContended;
    this.#granted = Math.min(this.#granted + taken, held);
    if (taken > 0) this.#keepForNow();
    clearTimeout(this.#timer);
    // What others do is told, and may be missed; what rests is free when its time is over.
    if (isContended) this.#lookIn(Math.min(this.#use.restsFor(monotonicNow()) ?? this.#lookMs, this.#lookMs));
    this.#tell();
  }

  /** Slots that were taken for a call are kept for it, and not for long. */
  #keepForNow(): void {
    clearTimeout(this.#grantTimer);
    const ms = SHORTEST_GRANT_MS + Math.random() * (LONGEST_GRANT_MS - SHORTEST_GRANT_MS);
    this.#grantTimer = setTimeout(() => {
      this.#granted = 0;
      if (this.#isContended) this.#poke();
    }, ms);
    this.#grantTimer.unref();
  }

  #lookIn(ms: number): void {
    this.#timer = setTimeout(
      () => {
        this.#known = undefined;
        this.#poke();
      },
      Math.max(Math.ceil(ms), 1),
    );
    this.#timer.unref();
  }

  #lose(): void {
    this.#known = undefined;
    if (this.#state === "closed") return;
    if (this.#state !== "lost") this.#options.onLost();
    this.#state = "lost";
    clearTimeout(this.#timer);
    this.#lookIn(this.#lookMs);
    this.#tell();
  }

  get #isClosed(): boolean {
    return this.#state === "closed";
  }

  #tell(): void {
    if (this.#state !== "closed") this.#use.onSlots();
  }

  /** Whether all was given back that can be. */
  async #leave(): Promise<boolean> {
    const shared = this.#shared;
    if (shared === undefined) return true;
    const { record, revision } = await this.#look(shared);
    const { replica } = shared.lease;
    const used = this.#used();
    const left = withoutReplica(record, replica, true);
    const now = used > 0 ? { ...left, held: { ...left.held, [replica]: used } } : left;
    return (await this.#write(shared, revision, now)) !== undefined;
  }
}
