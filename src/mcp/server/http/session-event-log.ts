import { monotonicNow } from "../../../core/execution/cancellation.ts";
import type { RequestId } from "../../protocol/messages.ts";
import { EventBudget } from "./http-session-events.ts";

/** Names a stream of a session. Its name is given once, by the replica that begins it. */
export interface LoggedStream {
  /** Whose session it is, as `ownerDigest` writes it. */
  readonly owner: string;
  readonly session: string;
  readonly stream: string;
}

/** A message that went over a stream. */
export interface LoggedEvent {
  /** Rises from one event of a stream to the next, by any step. */
  readonly place: number;
  readonly json: string;
}

/** A stream as another replica finds it. */
export interface FoundStream {
  /** The requests that it answers. */
  readonly asked: readonly RequestId[];
  /** Whether it has ended, and nothing went over it after the place. */
  readonly isOver: boolean;
  /**
   * What went over it after a place, and then what comes, until everything asked was answered or nothing more will come. Throws where what
   * comes is lost: its replica has gone, or the log lags behind.
   */
  readonly events: AsyncIterable<LoggedEvent>;
}

/**
 * What goes over streams of sessions, for replicas where clients come back for the rest of one. Each stream has one replica that writes;
 * its calls take effect in their order, whether or not they are awaited.
 */
export interface SessionEventLog {
  /** Begins a stream that answers these requests. */
  open(stream: LoggedStream, asked: readonly RequestId[]): Promise<void>;
  /** Keeps a message of a stream that was begun. Rejects where it cannot, and then nobody finds the stream any more. */
  append(stream: LoggedStream, event: LoggedEvent): Promise<void>;
  /** Tells that nothing more comes. */
  end(stream: LoggedStream): Promise<void>;
  /** Finds a stream; nothing where it is not known, or not all that went over it after the place is kept. */
  find(stream: LoggedStream, after: number, signal: AbortSignal): Promise<FoundStream | undefined>;
  /** Lets go of everything: the reader of a stream that has not ended loses the rest. */
  close(): Promise<void>;
}

/** Bounds of a log in memory. */
export interface MemoryEventLogOptions {
  /** Bytes of all streams, 256 for each of them and those of its messages; the oldest of the owner with most go first. @default 67_108_864 */
  readonly maxBytes?: number;
  /** How long a stream is kept after its end, in milliseconds. @default 300_000 */
  readonly keepMs?: number;
}

/** What a stream takes, whatever went over it. */
const STREAM_BYTES = 256;

interface Kept extends LoggedEvent {
  readonly bytes: number;
}

/** Who follows a stream. */
interface Follower {
  /** What it was not given yet. */
  readonly waiting: LoggedEvent[];
  wake(): void;
}

/** What is kept of one stream. */
class KeptStream {
  readonly owner: string;
  readonly asked: readonly RequestId[];
  /** The stream itself, and what went over it, oldest first. */
  readonly kept: Kept[] = [{ place: -1, json: "", bytes: STREAM_BYTES }];
  /** Forgets the stream: of one that is not whole, nothing can be used. */
  readonly drop: () => void;
  /** Of the monotonic clock; nothing while more may come. */
  endedAt: number | undefined;
  #isLost = false;
  readonly #followers = new Set<Follower>();

  constructor(owner: string, asked: readonly RequestId[], drop: () => void) {
    this.owner = owner;
    this.asked = [...asked];
    this.drop = drop;
  }

  add(event: Kept): void {
    this.kept.push(event);
    for (const follower of this.#followers) {
      follower.waiting.push(event);
      follower.wake();
    }
  }

  end(): void {
    this.endedAt = monotonicNow();
    for (const follower of this.#followers) follower.wake();
  }

  /** Ends it for all that follow it. */
  lose(): void {
    this.#isLost = true;
    for (const follower of this.#followers) follower.wake();
  }

  async *after(place: number, signal: AbortSignal): AsyncGenerator<LoggedEvent, void> {
    const waiting = this.kept.slice(1).filter((event) => event.place > place);
    const follower: Follower = { waiting, wake() {} };
    const wake = (): void => follower.wake();
    this.#followers.add(follower);
    signal.addEventListener("abort", wake, { once: true });
    try {
      while (!signal.aborted) {
        const next = waiting.splice(0);
        for (const { place: at, json } of next) yield { place: at, json };
        if (next.length > 0) continue;
        if (this.endedAt !== undefined) return;
        if (this.#isLost) throw new Error("A stream is kept no more, and what came later is lost.");
        await new Promise<void>((resolve) => {
          follower.wake = resolve;
        });
      }
    } finally {
      this.#followers.delete(follower);
      signal.removeEventListener("abort", wake);
    }
  }
}

/** A log for endpoints of one process. */
export class MemoryEventLog implements SessionEventLog {
  readonly #maxBytes: number;
  readonly #keepMs: number;
  readonly #budget: EventBudget<Kept>;
  readonly #streams = new Map<string, KeptStream>();
  /** Streams that have ended, in the order in which they did. */
  readonly #ended = new Map<string, KeptStream>();

  constructor({ maxBytes = 67_108_864, keepMs = 300_000 }: MemoryEventLogOptions = {}) {
    this.#maxBytes = maxBytes;
    this.#keepMs = keepMs;
    this.#budget = new EventBudget(maxBytes);
  }

  /** How many bytes are kept. */
  get bytes(): number {
    return this.#budget.bytes;
  }

  async open(name: LoggedStream, asked: readonly RequestId[]): Promise<void> {
    this.#forgetEnded();
    const key = keyOf(name);
    if (this.#streams.has(key)) throw new Error("A stream of this name has begun already.");
    const stream = new KeptStream(name.owner, asked, () => this.#forget(key));
    this.#streams.set(key, stream);
    this.#budget.add(name.owner, stream.kept[0] as Kept, stream);
  }

  async append(name: LoggedStream, { place, json }: LoggedEvent): Promise<void> {
    const stream = this.#streams.get(keyOf(name));
    if (stream === undefined || stream.endedAt !== undefined)
      throw new Error("There is no such stream, or it has ended.");
    const event = { place, json, bytes: Buffer.byteLength(json) };
    stream.add(event);
    if (event.bytes + STREAM_BYTES <= this.#maxBytes) {
      this.#budget.add(name.owner, event, stream);
      return;
    }
    // What cannot be kept at all drives nothing else out.
    stream.drop();
    throw new Error("A message is too long to be kept, and its stream is kept no more.");
  }

  async end(name: LoggedStream): Promise<void> {
    const key = keyOf(name);
    const stream = this.#streams.get(key);
    if (stream === undefined || stream.endedAt !== undefined) return;
    stream.end();
    this.#ended.set(key, stream);
    this.#forgetEnded();
  }

  async find(name: LoggedStream, after: number, signal: AbortSignal): Promise<FoundStream | undefined> {
    this.#forgetEnded();
    const stream = this.#streams.get(keyOf(name));
    if (stream === undefined) return undefined;
    const isOver = stream.endedAt !== undefined && (stream.kept.at(-1)?.place ?? -1) <= after;
    return { asked: stream.asked, isOver, events: stream.after(after, signal) };
  }

  async close(): Promise<void> {
    for (const key of [...this.#streams.keys()]) this.#forget(key);
  }

  #forget(key: string): void {
    const stream = this.#streams.get(key);
    this.#streams.delete(key);
    this.#ended.delete(key);
    for (const event of stream?.kept ?? []) this.#budget.remove(stream?.owner ?? "", event);
    stream?.lose();
  }

  /** Forgets the streams that ended some time ago. */
  #forgetEnded(): void {
    const before = monotonicNow() - this.#keepMs;
    for (const [key, { endedAt = 0 }] of this.#ended) {
      if (endedAt > before) return;
      this.#forget(key);
    }
  }
}

/** Owners cannot choose the names of their sessions and streams. */
function keyOf({ owner, session, stream }: LoggedStream): string {
  return `${owner} ${session} ${stream}`;
}
