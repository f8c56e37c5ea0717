import { monotonicNow } from "../../core/execution/cancellation.ts";
import type { RequestId } from "../../mcp/protocol/messages.ts";
import type {
  FoundStream,
  LoggedEvent,
  LoggedStream,
  SessionEventLog,
} from "../../mcp/server/http/session-event-log.ts";
import type { SharedState } from "../state/gateway-state.ts";
import { StateError } from "../state/state-store.ts";
import { EVENT_LOG, StreamReading, StreamWriting, streamTooLong } from "./stream-records.ts";

/** What a log stands on. */
export interface StateEventLogOptions {
  /** Where streams are kept: letters, digits and `-`. */
  readonly collection: string;
  /** What is shared by now; nothing while that cannot be told. */
  shared(): SharedState | undefined;
}

const SWEEP_MS = 30_000;

/**
 * Keeps streams in the store that replicas share, a few records for each. What waits at the same time is written at once, into the last record
 * while that is short. Who follows a stream reads the records as they change.
 */
export class StateEventLog implements SessionEventLog {
  readonly #options: StateEventLogOptions;
  /** Streams of this replica, oldest first, with those that have ended. */
  readonly #written = new Map<string, StreamWriting>();
  /** Bytes that this replica keeps of each session. */
  readonly #sessions = new Map<string, number>();
  readonly #closing = new AbortController();
  #sweeper: ReturnType<typeof setInterval> | undefined;

  constructor(options: StateEventLogOptions) {
    this.#options = options;
  }

  async open(name: LoggedStream, asked: readonly RequestId[]): Promise<void> {
    const key = keyOf(name);
    if (this.#written.has(key)) throw new Error("A stream of this name has begun already.");
    const stream: StreamWriting = new StreamWriting(name, asked, {
      collection: this.#options.collection,
      shared: () => this.#shared(),
      makeRoom: () => this.#makeRoom(stream, false),
      onBytes: (bytes) => this.#count(name, bytes),
    });
    this.#written.set(key, stream);
    this.#sweeper ??= setInterval(() => this.#sweep(), SWEEP_MS).unref();
    await stream.add("open").catch((thrown) => this.#drop(stream, thrown));
  }

  async append(name: LoggedStream, event: LoggedEvent): Promise<void> {
    const stream = this.#written.get(keyOf(name));
    if (stream === undefined || stream.endedAt !== undefined)
      throw new Error("There is no such stream, or it has ended.");
    await stream.add(event).catch((thrown) => this.#drop(stream, thrown));
    while ((this.#sessions.get(sessionOf(name)) ?? 0) > EVENT_LOG.sessionBytes) {
      if (!(await this.#makeRoom(stream, true))) await this.#drop(stream, streamTooLong());
    }
  }

  async end(name: LoggedStream): Promise<void> {
    const stream = this.#written.get(keyOf(name));
    if (stream === undefined || stream.endedAt !== undefined) return;
    stream.endedAt = monotonicNow();
    await stream.add("end").catch((thrown) => this.#drop(stream, thrown));
  }

  async find(name: LoggedStream, after: number, signal: AbortSignal): Promise<FoundStream | undefined> {
    const { store, lease } = this.#shared();
    const reading = new StreamReading(name, { store, lease, collection: this.#options.collection });
    const chunks = await reading.readAll();
    const [first] = chunks;
    if (first === undefined || first.before > after) return undefined;
    const last = chunks.at(-1);
    const isOver = last?.state === "ended" && (last.events.at(-1)?.place ?? last.before) <= after;
    return {
      asked: first.asked,
      isOver,
      events: reading.follow(chunks, after, [signal, this.#closing.signal]),
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#sweeper);
    this.#closing.abort();
    await Promise.all([...this.#written.values()].map((stream) => stream.settled()));
    this.#written.clear();
  }

  #shared(): SharedState {
    const shared = this.#options.shared();
    if (shared === undefined) throw new StateError("unreachable", "The shared state cannot be reached.");
    return shared;
  }

  /** What is not whole is no use to anybody. */
  async #drop(stream: StreamWriting, thrown: unknown): Promise<never> {
    this.#forget(stream);
    await stream.remove();
    throw thrown;
  }

  #forget(stream: StreamWriting): void {
    const key = keyOf(stream.name);
    if (this.#written.get(key) === stream) this.#written.delete(key);
  }

  /** Lets go of the oldest stream that has ended, of the same session or else of the same owner; tells whether there was one. */
  async #makeRoom({ name }: StreamWriting, isOfSession: boolean): Promise<boolean> {
    const own = [...this.#written.values()].filter(
      (one) => one.name.owner === name.owner && one.endedAt !== undefined && one.isIdle,
    );
    const oldest = own.find((one) => one.name.session === name.session) ?? (isOfSession ? undefined : own[0]);
    if (oldest === undefined) return false;
    this.#forget(oldest);
    await oldest.remove();
    return true;
  }

  #count(name: LoggedStream, bytes: number): void {
    const session = sessionOf(name);
    const now = (this.#sessions.get(session) ?? 0) + bytes;
    if (now > 0) this.#sessions.set(session, now);
    else this.#sessions.delete(session);
  }

  #sweep(): void {
    const before = monotonicNow() - EVENT_LOG.keepMs;
    for (const stream of [...this.#written.values()]) {
      if (stream.endedAt === undefined || stream.endedAt > before) continue;
      this.#forget(stream);
      void stream.remove();
    }
  }
}

/** Owners cannot choose the names of their sessions and streams. */
function keyOf({ owner, session, stream }: LoggedStream): string {
  return `${owner} ${session} ${stream}`;
}

function sessionOf({ owner, session }: LoggedStream): string {
  return `${owner} ${session}`;
}
