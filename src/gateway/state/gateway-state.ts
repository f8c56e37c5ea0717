import { randomUUID } from "node:crypto";
import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { IdempotencyStore, KeyName } from "../../core/idempotency/idempotency-store.ts";
import { backoffMs } from "../../core/limits/backoff.ts";
import type { ResultStore } from "../../core/result/result-store.ts";
import { MemoryTaskStore, type TaskStore } from "../../core/tasks/task-store.ts";
import { createMemoryStore } from "../../formats/preview/memory-store.ts";
import type { LoadedConfig } from "../config/loaded-config.ts";
import { connectBroker } from "../sources/bus-connection.ts";
import { createLocalStateStore } from "./local-state-store.ts";
import { ReplicaLease } from "./replica-lease.ts";
import { StateIdempotencyStore } from "./state-idempotency.ts";
import { StateResults } from "./state-results.ts";
import { StateReuse } from "./state-reuse.ts";
import { StateSlots } from "./state-slots.ts";
import { STATE_FAULTS, StateError, type StateFault, type StateStore } from "./state-store.ts";
import { StateTasks } from "./state-tasks.ts";
import { SwitchedKeys } from "./switched-keys.ts";

/** What is counted besides faults of the store. */
const EVENTS = ["late", "unknown", "alone"] as const;

/** What happens to the state that an operator may want to know. */
export type StateEvent = StateFault | (typeof EVENTS)[number];

/** What may be refused, or go on at each replica by itself, while the store cannot be reached. */
export type LostChoice = "refuse" | "alone";

/** What replicas share: each goes its own way while the store is lost. */
export type StateSetting = "keys" | "limits" | "cache" | "results";

/** Whose keys they are: those of the HTTP API, or those of policies, which every call of a mutation claims. */
type KeyKind = "http" | "calls";

/** How the state is doing. */
export interface StateReport {
  readonly store: "memory" | "files" | "nats";
  readonly status: "connecting" | "up" | "lost";
  /** What becomes of each thing that is shared while it is lost. */
  readonly lost: Readonly<Record<StateSetting, LostChoice>>;
  /** Names this process among the replicas. */
  readonly replica: string;
  readonly counts: Readonly<Record<StateEvent, number>>;
}

/** What the state of a gateway is made from. */
export interface GatewayStateOptions {
  /** Hears what is odd; it must mask secrets. */
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** What replicas share, or one process keeps beyond its end. */
export interface SharedState {
  readonly store: StateStore;
  /** Shows that this replica is there. */
  readonly lease: ReplicaLease;
}

/** The same, and how replicas speak to each other. */
export interface ReplicaState extends SharedState {
  /** The broker that replicas share; nothing where the store is of one process. */
  readonly broker: SharedBroker | undefined;
}

/** A message between replicas. */
export interface BrokerMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly reply?: string | undefined;
  /** `code` is that of the broker itself, such as 503 where nobody listens. */
  readonly headers?: { readonly code: number } | undefined;
}

/** What replicas use of a connection of the NATS client, whose own types only those have who installed it. */
export interface BrokerConnection {
  readonly info?: { readonly max_payload: number } | undefined;
  publish(subject: string, data: Uint8Array, options: { readonly reply?: string }): void;
  subscribe(
    subject: string,
    options: { callback(error: Error | null, message: BrokerMessage): void },
  ): { unsubscribe(): void };
  flush(): Promise<void>;
  isClosed(): boolean;
}

/** A connection to the broker that replicas share. */
export interface SharedBroker {
  readonly connection: BrokerConnection;
  /** Names the gateway whose replicas these are. */
  readonly space: string;
  readonly inboxPrefix: string | undefined;
}

/** How what a gateway keeps gets at the store. */
export interface StateAccess {
  /**
   * The store, which is opened where it is not; nothing where there is none but this process. A `StateError` where it cannot be reached: at
   * once where that is known.
   */
  reach(): Promise<SharedState | undefined>;
}

/** A store that is open, with what stands on it. */
interface OpenState extends ReplicaState {
  readonly keys: Map<string, StateIdempotencyStore>;
  close(): Promise<void>;
}

/** Milliseconds that a call waits for the store to be opened. */
const PATIENCE_MS = 2_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** Between two warnings of one kind. */
const QUIET_MS = 60_000;

/** What a gateway keeps beyond one call, where its config says. It is opened with the first call that needs it, or when it is told to. */
export class GatewayState {
  readonly replica = randomUUID().slice(0, 8);
  readonly #loaded: LoadedConfig;
  readonly #options: GatewayStateOptions;
  readonly #counts = Object.fromEntries([...STATE_FAULTS, ...EVENTS].map((event) => [event, 0])) as Record<
    StateEvent,
    number
  >;
  readonly #warnedAt = new Map<string, number>();
  readonly #stopping = new AbortController();
  readonly #keys = new Map<string, SwitchedKeys>();
  #store: StateReport["store"];
  #opening: Promise<OpenState | undefined> | undefined;
  #opened: OpenState | undefined;
  /** Whether somebody waited for the store to be opened, and it was not in time. */
  #isOverdue = false;
  readonly #access: StateAccess = { reach: () => this.#reach() };
  readonly #slots: StateSlots | undefined;
  /** Where there is no store but this process. */
  #ownRecords: StateStore | undefined;
  /** Results of `cacheMs` and runs of `singleFlight` that replicas share; nothing where there is one process alone. */
  readonly reuse: StateReuse | undefined;

  constructor(loaded: LoadedConfig, options: GatewayStateOptions) {
    this.#loaded = loaded;
    this.#options = options;
    const { state, bus } = loaded.config;
    const { store = bus === undefined ? "memory" : "nats" } = state ?? {};
    this.#store = typeof store === "object" ? "files" : store;
    if (this.#store !== "nats") return;
    this.reuse = new StateReuse(this.#access);
    this.#slots = new StateSlots({
      access: this.#access,
      goesOnAlone: () => this.#lost.limits === "alone",
      onLost: () => this.#onLimitLost(),
    });
  }

  /** Idempotency keys of one kind, which are told apart from those of others. */
  keys(kind: KeyKind): IdempotencyStore {
    const known = this.#keys.get(kind);
    if (known !== undefined) return known;
    const keys = new SwitchedKeys({
      goesOnAlone: () => this.#goesOnAlone,
      shared: () => this.#sharedKeys(kind),
      opened: () => this.#opened?.keys.get(kind),
      onAlone: () =>
        this.#count(
          "alone",
          "A call with an idempotency key ran without the shared state: other replicas do not know of it.",
        ),
    });
    this.#keys.set(kind, keys);
    return keys;
  }

  /** Long results, for the links that lead to them. */
  results(): ResultStore {
    if (this.#store === "memory") return createMemoryStore();
    const onAlone = (): void =>
      this.#count("alone", "This replica alone keeps a long result: the others cannot read its link.");
    return new StateResults({ access: this.#access, onAlone });
  }

  /** Calls that are answered later. */
  tasks(): TaskStore {
    if (this.#isAlone) return new MemoryTaskStore();
    return new StateTasks({ access: this.#access, replica: this.replica });
  }

  /** What leases the slots of limits that replicas share; nothing where there is one process alone. */
  get slots(): StateSlots | undefined {
    return this.#slots;
  }

  /**
   * The records that replicas share, or of this process alone where the config names no store. Fails with a `StateError` where the store
   * cannot be opened in time, whatever becomes of calls with a key meanwhile.
   */
  async records(): Promise<StateStore> {
    const opened = await this.#reach();
    if (opened !== undefined) return opened.store;
    this.#ownRecords ??= createLocalStateStore();
    return this.#ownRecords;
  }

  /** The store that replicas share, for what has a collection of its own; nothing where no other replica could reach it. */
  get shared(): StateAccess | undefined {
    return this.#store === "nats" ? this.#access : undefined;
  }

  /** Opens the store; one that cannot be reached is tried again. */
  start(): void {
    if (this.#store !== "memory") this.#opening ??= this.#open();
  }

  /** Resolves when the store is open, or it is known that there is none but this process; at once where nobody has asked for it. */
  get opened(): Promise<unknown> {
    return Promise.resolve(this.#opening);
  }

  /** What is shared, once that is open; nothing where this process keeps what it has for itself. */
  async replicas(): Promise<ReplicaState | undefined> {
    this.start();
    return await this.#opening;
  }

  report(): StateReport {
    const { replica, store: kind } = { replica: this.replica, store: this.#store };
    const isUp = kind === "memory" || this.#opened?.store.isUp === true;
    const status = isUp ? "up" : this.#opened === undefined ? "connecting" : "lost";
    return { store: kind, status, lost: this.#lost, replica, counts: { ...this.#counts } };
  }

  /** Stores what is still to be stored, and leaves. */
  async close(): Promise<void> {
    this.#stopping.abort();
    const opened = await this.#opening;
    await this.#slots?.close();
    await opened?.close();
    await this.#ownRecords?.close();
  }

  get #goesOnAlone(): boolean {
    return this.#lost.keys === "alone";
  }

  get #lost(): StateReport["lost"] {
    const { lost = {} } = this.#loaded.config.state ?? {};
    const { keys = "refuse", limits = "alone" } =
      typeof lost === "object" ? lost : { keys: lost, limits: lost };
    return { keys, limits, cache: "alone", results: "alone" };
  }

  #onLimitLost(): void {
    if (this.#lost.limits === "alone")
      this.#count(
        "alone",
        "Limits are counted by each replica for itself, because the shared state is lost.",
      );
    else this.#count("unreachable", "Calls under a limit are refused, because the shared state is lost.");
  }

  /** Keys in the store, or nothing where there is none but this process. */
  async #sharedKeys(kind: KeyKind): Promise<IdempotencyStore | undefined> {
    if (this.#store === "memory") return undefined;
    const opened = this.#opened ?? (await this.#waitUntilOpen());
    if (opened === undefined) return undefined;
    if (this.#goesOnAlone && !opened.store.isUp)
      throw new StateError("unreachable", "The broker of the shared state cannot be reached.");
    return this.#keysOf(opened, kind);
  }

  #keysOf(opened: OpenState, kind: KeyKind): StateIdempotencyStore {
    const known = opened.keys.get(kind);
    if (known !== undefined) return known;
    // Every mutation over HTTP claims its key once more before it runs, in the policies.
    const below = kind === "http" ? { keys: this.#keysOf(opened, "calls"), nameOf: callKeyOf } : undefined;
    const keys = new StateIdempotencyStore(opened.store, {
      collection: `keys-${kind}`,
      lease: opened.lease,
      below,
      onLate: () =>
        this.#count(
          "late",
          "The answer of a call with an idempotency key could not be stored in time; it is tried again.",
        ),
      onUnknown: () =>
        this.#count(
          "unknown",
          "A replica is gone that ran a call with an idempotency key: what the call has done is not known.",
        ),
    });
    opened.keys.set(kind, keys);
    return keys;
  }

  /** Whether there is no store but this process. */
  get #isAlone(): boolean {
    return this.#store === "memory";
  }

  async #reach(): Promise<OpenState | undefined> {
    if (this.#isAlone) return undefined;
    const opened = this.#opened ?? (this.#isOverdue ? undefined : await this.#waitUntilOpen());
    if (opened?.store.isUp) return opened;
    // That the broker has nothing to give may have turned out meanwhile.
    if (this.#isAlone) return undefined;
    throw new StateError("unreachable", "The shared state cannot be reached.");
  }

  async #waitUntilOpen(): Promise<OpenState | undefined> {
    this.start();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<"late">((resolve) => {
      timer = setTimeout(() => resolve("late"), PATIENCE_MS);
    });
    const opened = await Promise.race([this.#opening, late]).finally(() => clearTimeout(timer));
    if (opened !== "late") {
      if (opened !== undefined || this.#store === "memory") return opened;
      throw new StateError("unreachable", "The shared state is closed.");
    }
    this.#isOverdue = true;
    this.#count("unreachable");
    throw new StateError("unreachable", "The shared state cannot be reached.");
  }

  async #open(): Promise<OpenState | undefined> {
    const { signal } = this.#stopping;
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        const opened = this.#store === "files" ? await this.#openFiles() : await this.#openNats(signal);
        this.#opened = opened;
        return opened;
      } catch (thrown) {
        if (signal.aborted) return undefined;
        const why = thrown instanceof Error ? thrown.message : String(thrown);
        if (this.#isWithout(thrown)) {
          this.#store = "memory";
          this.#options.onWarning(
            `Idempotency keys, tasks, long results and limits are known to this replica alone, because the broker of the bus keeps no state for it: ${why} "state": { "store": "nats" } refuses calls with a key instead, and "memory" says that this is meant.`,
            thrown,
          );
          return undefined;
        }
        this.#options.onWarning(`The shared state is tried again: ${why}`, thrown);
      }
      const wait = backoffMs(tries, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
      await pause(wait, undefined, { signal, ref: false }).catch(() => {});
    }
    return undefined;
  }

  /** Whether nobody asked for a state at the broker, and the broker has none to give. */
  #isWithout(thrown: unknown): boolean {
    if (this.#loaded.config.state?.store !== undefined) return false;
    return thrown instanceof Error && (thrown.name === "JetStreamNotEnabled" || isRefused(thrown));
  }

  async #openFiles(): Promise<OpenState> {
    const { StateLog } = await import("./state-log.ts");
    const { store } = this.#loaded.config.state ?? {};
    const folder = typeof store === "object" ? resolve(this.#loaded.baseDir, store.files) : "";
    const log = await StateLog.open(folder, { now: Date.now, onFault: this.#onFault });
    return this.#stand(createLocalStateStore({ log, onFault: this.#onFault }), async () => {});
  }

  async #openNats(signal: AbortSignal): Promise<OpenState> {
    const { bus, state, name = "waybill" } = this.#loaded.config;
    if (bus === undefined) throw new Error("There is no bus.");
    const { openJetStreamState } = await import("./jetstream-state-store.ts");
    const connection = await connectBroker(bus, signal);
    // Gateways that mount each other's operations over the bus serve under different names.
    const space = bus.serveAs === undefined ? `name ${name}` : `serveAs ${bus.serveAs}`;
    try {
      const options = { space, copies: state?.copies, onFault: this.#onFault };
      const store = await openJetStreamState(connection, options);
      const broker = { connection, space, inboxPrefix: bus.inboxPrefix };
      return this.#stand(store, () => connection.close(), broker);
    } catch (thrown) {
      await connection.close();
      throw thrown;
    }
  }

  #stand(store: StateStore, disconnect: () => Promise<void>, broker?: SharedBroker): OpenState {
    const lease = new ReplicaLease(store, { replica: this.replica });
    const keys = new Map<string, StateIdempotencyStore>();
    return {
      store,
      lease,
      broker,
      keys,
      async close() {
        for (const one of keys.values()) await one.close();
        await lease.close();
        await store.close();
        await disconnect();
      },
    };
  }

  readonly #onFault = (fault: StateFault, message: string, cause?: unknown): void =>
    this.#count(fault, message, cause);

  #count(event: StateEvent, message?: string, cause?: unknown): void {
    this.#counts[event] += 1;
    const now = performance.now();
    if (message === undefined || now - (this.#warnedAt.get(event) ?? Number.NEGATIVE_INFINITY) < QUIET_MS)
      return;
    this.#warnedAt.set(event, now);
    this.#options.onWarning(message, cause);
  }
}

/** The key of a call in the policies, by the one that the HTTP API has for it. */
function callKeyOf({ owner, key }: KeyName): KeyName {
  const [operationId, , given] = JSON.parse(key);
  return { owner, key: JSON.stringify([operationId, given]) };
}

/** What a broker answers whose account has no JetStream, or whose user may not use it. */
const NOT_FOR_ACCOUNT: readonly unknown[] = [10_039, 10_076];

function isRefused(thrown: Error): boolean {
  if ("code" in thrown && NOT_FOR_ACCOUNT.includes(thrown.code)) return true;
  // The client of the broker wraps it, and so may the store.
  let said: unknown = thrown;
  for (let depth = 0; depth < 3 && said instanceof Error; depth++) {
    if (said.name === "PermissionViolationError") return true;
    said = said.cause;
  }
  return false;
}
