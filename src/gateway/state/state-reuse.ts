import { randomUUID } from "node:crypto";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import type { ReuseKey, ReuseLimits, SharedFlight, SharedReuse, SharedText } from "../policy/shared-reuse.ts";
import type { SharedState, StateAccess } from "./gateway-state.ts";
import {
  MOST_VALUE_BYTES,
  type StateBounds,
  StateError,
  type StateName,
  type StateRecord,
  type StateStore,
} from "./state-store.ts";

/** A run under way at some replica, or how it ended. */
interface FlightRecord {
  readonly replica: string;
  /** Tells this run from others of the same key. */
  readonly run: string;
  /** The result, once there is one. */
  readonly text?: string | undefined;
}

/** Bytes of results on their way to the store; more are not shared. */
const MOST_WAITING_BYTES = 16_777_216;
/** How many runs under way replicas are told of, with their results when they end. */
export const FLIGHTS = {
  records: 10_000,
  bytes: 67_108_864,
  ownRecords: 2_500,
  ownBytes: 16_777_216,
} as const satisfies StateBounds;
/** How long a run that nobody ended is known at most. */
const FLIGHT_MS = 3_600_000;
/** How long a result is there for those who waited for it. */
const LANDED_MS = 10_000;
/** Between looks at a run of another replica: a change may be missed. */
const LOOK_MS = 1_000;
const MOST_TRIES = 20;
const MOST_STRAYS = 10_000;

/** Lets replicas use each other's results, and wait for each other's runs. Where the store cannot be reached each goes its own way. */
export class StateReuse implements SharedReuse {
  readonly #access: StateAccess;
  /** Runs that others may wait for although they are over, or never began: several of one record, as each write may have been stored. */
  readonly #strays = new Map<string, StateName>();
  #beating: SharedState | undefined;
  #waitingBytes = 0;
  #waiting = 0;

  constructor(access: StateAccess) {
    this.#access = access;
  }

  /** Calls that wait for a run of another replica. */
  get waiting(): number {
    return this.#waiting;
  }

  async get({ owner, key }: ReuseKey, maxAgeMs: number): Promise<SharedText | undefined> {
    const found = await this.#try(async ({ store }) => {
      const record = await store.get({ collection: "cache", owner, key });
      return record && readKept(record, store.now());
    });
    return found !== undefined && found.ageMs < maxAgeMs ? found : undefined;
  }

  set({ owner, key }: ReuseKey, text: string, { keepMs, entries, characters, share }: ReuseLimits): void {
    const size = text.length;
    if (this.#waitingBytes + size > MOST_WAITING_BYTES) return;
    this.#waitingBytes += size;
    const name = { collection: "cache", owner, key };
    const bounds = {
      records: entries,
      bytes: characters,
      ownRecords: Math.ceil(entries * share),
      ownBytes: Math.ceil(characters * share),
    };
    void this.#try(async ({ store }) => {
      const at = store.now();
      const value = new TextEncoder().encode(`${at}\n${text}`);
      if (value.length > Math.min(MOST_VALUE_BYTES, bounds.ownBytes)) return;
      const write = { expiresAt: at + keepMs, bounds };
      const created = await store.create(name, value, write);
      if (created.state === "exists") await store.update(name, created.record.revision, value, write);
    }).finally(() => {
      this.#waitingBytes -= size;
    });
  }

  async join({ owner, key }: ReuseKey, signal: AbortSignal): Promise<SharedFlight> {
    const name = { collection: "flights", owner, key };
    const flight = await this.#try((shared) => this.#join(shared, name, signal));
    return flight ?? { state: "alone" };
  }

  /** What the store says; nothing where there is none that replicas share, or it cannot be reached. */
  async #try<T>(ask: (shared: SharedState) => Promise<T>): Promise<T | undefined> {
    try {
      const shared = await this.#access.reach();
      if (shared === undefined || shared.store.isExclusive) return undefined;
      return await ask(shared);
    } catch (thrown) {
      if (thrown instanceof StateError) return undefined;
      throw thrown;
    }
  }

  async #join(shared: SharedState, name: StateName, signal: AbortSignal): Promise<SharedFlight | undefined> {
    const { store, lease } = shared;
    await lease.hold();
    this.#follow(shared);
    for (let tries = 0; tries < MOST_TRIES && !signal.aborted; tries++) {
      const run = randomUUID();
      const own: FlightRecord = { replica: lease.replica, run };
      const created = await this.#claim(name, run, () =>
        store.create(name, encode(own), flightWrite(store, FLIGHT_MS)),
      );
      if (created.state === "full") return undefined;
      if (created.state === "created") return this.#lead(shared, name, { own, revision: created.revision });
      const { record } = created;
      const found = decode(record);
      if (found.text === undefined && !(await this.#isOver(shared, found))) {
        this.#waiting++;
        const text = await this.#wait(shared, name, { run: found.run, signal }).finally(
          () => this.#waiting--,
        );
        if (text !== undefined) return { state: "landed", text };
        continue;
      }
      // It ended before this call came: its result may be older than what is asked for.
      const taken = await this.#claim(name, run, () =>
        store.update(name, record.revision, encode(own), flightWrite(store, FLIGHT_MS)),
      );
      if (taken.state === "updated") return this.#lead(shared, name, { own, revision: taken.revision });
    }
    return undefined;
  }

  /** Whether nobody runs it any more. */
  async #isOver({ lease }: SharedState, { replica, run }: FlightRecord): Promise<boolean> {
    if (replica === lease.replica) return this.#strays.has(run);
    return lease.isGone(replica);
  }

  /** A claim that may have been stored although nobody was told so is taken back later. */
  async #claim<T>(name: StateName, run: string, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (thrown) {
      if (thrown instanceof StateError && thrown.isUncertain) this.#leaveStray(name, run);
      throw thrown;
    }
  }

  #lead(
    { store }: SharedState,
    name: StateName,
    { own, revision }: { readonly own: FlightRecord; readonly revision: number },
  ): SharedFlight {
    const end = async (text: string | undefined): Promise<void> => {
      try {
        const value = text === undefined ? undefined : encode({ ...own, text });
        if (value !== undefined && value.length <= FLIGHTS.ownBytes) {
          const landed = await store.update(name, revision, value, flightWrite(store, LANDED_MS));
          if (landed.state !== "full") return;
        }
        await store.delete(name, revision);
      } catch (thrown) {
        if (!(thrown instanceof StateError)) throw thrown;
        this.#leaveStray(name, own.run);
      }
    };
    return { state: "leading", end: (text) => void end(text) };
  }

  /** Waits for a run of another replica; nothing where it came to nothing, or its replica is gone. */
  async #wait(
    shared: SharedState,
    name: StateName,
    { run, signal }: { readonly run: string; readonly signal: AbortSignal },
  ): Promise<string | undefined> {
    while (!signal.aborted) {
      let told: () => void = () => {};
      const change = new Promise<void>((resolve) => {
        told = resolve;
      });
      const stop = shared.store.watch(name, told);
      const timer = setTimeout(told, LOOK_MS);
      signal.addEventListener("abort", told);
      try {
        const record = await shared.store.get(name);
        const found = record && decode(record);
        if (found?.run !== run) return undefined;
        if (found.text !== undefined) return found.text;
        if (await this.#isOver(shared, found)) return undefined;
        await change;
      } finally {
        clearTimeout(timer);
        signal.removeEventListener("abort", told);
        stop();
      }
    }
    return undefined;
  }

  #leaveStray(name: StateName, run: string): void {
    if (this.#strays.size < MOST_STRAYS) this.#strays.set(run, name);
  }

  #follow(shared: SharedState): void {
    if (this.#beating === shared) return;
    this.#beating = shared;
    shared.lease.onBeat(() => void this.#tidy(shared));
  }

  /** With every beat: tells those who wait for a run that it is over, where they could not be told before. */
  async #tidy({ store }: SharedState): Promise<void> {
    for (const [run, name] of this.#strays) {
      try {
        const record = await store.get(name);
        if (record !== undefined && decode(record).run === run) await store.delete(name, record.revision);
        this.#strays.delete(run);
      } catch (thrown) {
        if (!(thrown instanceof StateError)) throw thrown;
        if (thrown.fault === "unreachable" || thrown.fault === "slow") return;
        this.#strays.delete(run);
      }
    }
  }
}

function flightWrite(store: StateStore, keepMs: number) {
  return { expiresAt: store.now() + keepMs, bounds: FLIGHTS };
}

function encode(record: FlightRecord): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(record));
}

function decode({ value }: StateRecord): FlightRecord {
  const found = parseJsonTextOrNone(new TextDecoder().decode(value));
  if (isPlainObject(found)) {
    const { replica, run, text } = found;
    const isKnown = typeof replica === "string" && typeof run === "string";
    if (isKnown && (text === undefined || typeof text === "string")) return { replica, run, text };
  }
  throw new StateError("damaged", "The record of a run in the shared state cannot be read.");
}

/** A line that says when the result was had, and the result. */
function readKept({ value }: StateRecord, now: number): SharedText | undefined {
  const text = new TextDecoder().decode(value);
  const end = text.indexOf("\n");
  const at = Number(text.slice(0, end));
  if (end < 1 || !Number.isSafeInteger(at)) return undefined;
  return { text: text.slice(end + 1), ageMs: Math.max(now - at, 0) };
}
