import { hostname } from "node:os";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import type { CallOutcome, CallRecord, Observer } from "../serve/observe/observer.ts";
import type { SourceReport } from "../sources/source.ts";
import type { StateReport } from "../state/gateway-state.ts";
import type { StateStore } from "../state/state-store.ts";

/** One call, as far as other replicas are told of it; never what went in or came out. */
export interface ReplicaCall {
  readonly operation: string;
  readonly outcome: CallOutcome;
  readonly durationMs: number;
  /** Unix epoch milliseconds when it ended, on the clock of its replica. */
  readonly endedAt: number;
  readonly code?: string;
  readonly subject?: string;
}

/** What a replica tells the others of itself. */
export interface ReplicaSummary {
  /** Names the process among all that there ever were. */
  readonly replica: string;
  /** The machine that it runs on, as that calls itself. */
  readonly host: string;
  /** Of Waybill. */
  readonly version: string;
  readonly uptimeMs: number;
  /** Since it started. */
  readonly calls: number;
  /** Of them, those that ended with an error. */
  readonly errors: number;
  readonly callsPerSecond: number;
  readonly sources: { readonly up: number; readonly all: number };
  readonly state: StateReport["status"];
  /** The last calls, latest first. */
  readonly recent: readonly ReplicaCall[];
}

/** What a summary is made of. */
export interface ReplicaSummariesOptions {
  readonly state: { readonly replica: string; report(): StateReport; records(): Promise<StateStore> };
  readonly observer: Pick<Observer, "listen">;
  readonly reports: () => readonly Pick<SourceReport, "state">[];
}

const COLLECTION = "summaries";
const TELL_EVERY_MS = 5_000;
/** Milliseconds for which a summary stands. */
const KEEP_MS = 3 * TELL_EVERY_MS;
/** Replicas that are shown. */
const MOST_REPLICAS = 100;
/** Calls that a replica tells the others of. */
const MOST_CALLS = 20;
const MOST_CHARACTERS = 200;
/** Bytes of one summary: what is larger is no summary of ours. */
const MOST_BYTES = 32_768;
const BOUNDS = {
  records: 1_000,
  bytes: 1_000 * MOST_BYTES,
  ownRecords: 1_000,
  ownBytes: 1_000 * MOST_BYTES,
};
const OUTCOMES: Readonly<Record<CallOutcome, true>> = { ok: true, tool_error: true, call_error: true };
const STATUSES: Readonly<Record<StateReport["status"], true>> = { connecting: true, up: true, lost: true };

/** Tells the other replicas how this one is doing, every five seconds, and what they have told. */
export class ReplicaSummaries {
  readonly #options: ReplicaSummariesOptions;
  readonly #startedAt = performance.now();
  readonly #recent: ReplicaCall[] = [];
  readonly #stopListening: () => void;
  readonly #timer: ReturnType<typeof setInterval>;
  #calls = 0;
  #errors = 0;
  #told = { calls: 0, at: performance.now(), perSecond: 0 };
  #revision: number | undefined;
  #isTelling = false;
  /** Replicas that there were when this one told of itself last. */
  #size = 1;

  constructor(options: ReplicaSummariesOptions) {
    this.#options = options;
    this.#stopListening = options.observer.listen({ end: (record) => this.#take(record) });
    this.#timer = setInterval(() => void this.#tell(), TELL_EVERY_MS).unref();
    void this.#tell();
  }

  /** How many replicas there are, this one included, as far as is known. */
  get size(): number {
    return this.#size;
  }

  /** All replicas by name, this one as it is now; this one alone where the store cannot be asked. */
  async read(): Promise<readonly ReplicaSummary[]> {
    const own = this.#summary();
    const others = await this.#others().catch(() => []);
    return [own, ...others].sort((a, b) => (a.replica < b.replica ? -1 : 1));
  }

  /** Takes the summary back. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopListening();
    if (this.#revision === undefined) return;
    const revision = this.#revision;
    this.#revision = undefined;
    await this.#options.state
      .records()
      .then((store) => store.delete(this.#name, revision))
      .catch(() => {});
  }

  get #name() {
    return { collection: COLLECTION, owner: "", key: this.#options.state.replica };
  }

  #take({ operation, outcome, durationMs, code, subject, isKnown }: CallRecord): void {
    this.#calls += 1;
    if (outcome !== "ok") this.#errors += 1;
    // A name that anybody made up is nobody's business elsewhere.
    if (!isKnown) return;
    this.#recent.unshift({
      operation: operation.slice(0, MOST_CHARACTERS),
      outcome,
      durationMs,
      endedAt: Date.now(),
      ...(code !== undefined && { code: code.slice(0, MOST_CHARACTERS) }),
      ...(subject !== undefined && { subject: subject.slice(0, MOST_CHARACTERS) }),
    });
    if (this.#recent.length > MOST_CALLS) this.#recent.pop();
  }

  #summary(): ReplicaSummary {
    const { state, reports } = this.#options;
    const sources = reports();
    return {
      replica: state.replica,
      host: hostname().slice(0, MOST_CHARACTERS),
      version: PACKAGE_VERSION,
      uptimeMs: Math.round(performance.now() - this.#startedAt),
      calls: this.#calls,
      errors: this.#errors,
      callsPerSecond: this.#told.perSecond,
      sources: { up: sources.filter((one) => one.state.status === "up").length, all: sources.length },
      state: state.report().status,
      recent: [...this.#recent],
    };
  }

  async #tell(): Promise<void> {
    if (this.#isTelling) return;
    this.#isTelling = true;
    const now = performance.now();
    const passed = Math.max(now - this.#told.at, 1);
    const perSecond = Math.round(((this.#calls - this.#told.calls) * 10_000) / passed) / 10;
    this.#told = { calls: this.#calls, at: now, perSecond };
    try {
      const store = await this.#options.state.records();
      await this.#write(store, JSON.stringify(this.#summary()));
      await this.#names(store);
    } catch {
      // The store has told why; the next turn tries again.
    } finally {
      this.#isTelling = false;
    }
  }

  async #write(store: StateStore, text: string): Promise<void> {
    const value = new TextEncoder().encode(text);
    const write = { expiresAt: store.now() + KEEP_MS, bounds: BOUNDS, listed: true };
    const updated =
      this.#revision === undefined ? undefined : await store.update(this.#name, this.#revision, value, write);
    if (updated?.state === "updated") {
      this.#revision = updated.revision;
      return;
    }
    const created = await store.create(this.#name, value, write);
    if (created.state !== "full")
      this.#revision = created.state === "created" ? created.revision : created.record.revision;
  }

  /** The others, by name. */
  async #names(store: StateStore): Promise<readonly string[]> {
    const keys = await store.list(COLLECTION, "", { limit: MOST_REPLICAS });
    const others = keys.filter((key) => key !== this.#options.state.replica);
    this.#size = others.length + 1;
    return others;
  }

  async #others(): Promise<readonly ReplicaSummary[]> {
    const store = await this.#options.state.records();
    const names = await this.#names(store);
    const found = await Promise.all(
      names.map((key) => store.get({ collection: COLLECTION, owner: "", key }).catch(() => undefined)),
    );
    return found.flatMap((record) => (record === undefined ? [] : (readSummary(record.value) ?? [])));
  }
}

/** Reads what another process wrote; nothing where it is no summary, or larger than one may be. */
export function readSummary(value: Uint8Array): ReplicaSummary | undefined {
  if (value.length > MOST_BYTES) return undefined;
  const found = parseJsonTextOrNone(new TextDecoder().decode(value));
  if (!isPlainObject(found)) return undefined;
  const { replica, host, version, uptimeMs, calls, errors, callsPerSecond, sources, state, recent } = found;
  if (!isPlainObject(sources) || !Array.isArray(recent)) return undefined;
  const texts = [replica, host, version].every(isShort);
  const numbers = [uptimeMs, calls, errors, callsPerSecond, sources["up"], sources["all"]].every(isCount);
  if (!texts || !numbers || typeof state !== "string" || !Object.hasOwn(STATUSES, state)) return undefined;
  if (recent.length > MOST_CALLS || !recent.every(isReplicaCall)) return undefined;
  return found as unknown as ReplicaSummary;
}

function isReplicaCall(found: unknown): boolean {
  if (!isPlainObject(found)) return false;
  const { operation, outcome, durationMs, endedAt, code, subject } = found;
  const isOutcome = typeof outcome === "string" && Object.hasOwn(OUTCOMES, outcome);
  const optional = [code, subject].every((text) => text === undefined || isShort(text));
  return isOutcome && optional && isShort(operation) && isCount(durationMs) && isCount(endedAt);
}

function isShort(text: unknown): boolean {
  return typeof text === "string" && text.length <= MOST_CHARACTERS;
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
