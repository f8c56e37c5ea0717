import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import type { RequestId } from "../../mcp/protocol/messages.ts";
import type { LoggedEvent, LoggedStream } from "../../mcp/server/http/session-event-log.ts";
import type { SharedState } from "../state/gateway-state.ts";
import { type StateBounds, StateError, type StateName, type StateRecord } from "../state/state-store.ts";

/** What replicas keep of streams for each other. */
export const EVENT_LOG = {
  /** How long a stream is kept after its last message, and after its end. */
  runningMs: 3_600_000,
  keepMs: 300_000,
  /** Bytes of one stream, and of all that one replica keeps of a session: the oldest that have ended go first. */
  streamBytes: 2_097_152,
  sessionBytes: 4_194_304,
  /** Of all replicas. */
  bounds: { records: 20_000, bytes: 33_554_432, ownRecords: 5_000, ownBytes: 8_388_608 },
} as const satisfies Readonly<Record<string, number | StateBounds>>;

/** Records of one stream, which are written in turn: a long stream goes around, and its beginning is not kept. */
const SLOTS = 64;
/** Characters of a record from which on the next one begins. */
const CHUNK_CHARACTERS = 8_192;
/** Records that are read at a time. */
const READ_AHEAD = 8;
/** Between looks at a stream of which nothing is heard: a change may be missed, and its replica may be gone. */
const POLL_MS = 1_000;

/** A record of a stream: some of its messages, one after the other. */
interface Chunk {
  /** Counts from 0; the record lies in the slot of this number, modulo their count. */
  readonly number: number;
  readonly replica: string;
  readonly asked: readonly RequestId[];
  /** The place of what came before, -1 for nothing. */
  readonly before: number;
  readonly events: readonly LoggedEvent[];
  /** Whether more comes in this record, or in the next one, or nothing does. */
  readonly state: "open" | "full" | "ended";
}

/** Something that is to be written, and who waits for it. */
interface Pending {
  readonly what: LoggedEvent | "open" | "end";
  resolve(): void;
  reject(error: unknown): void;
}

interface StreamWritingOptions {
  readonly collection: string;
  shared(): SharedState;
  /** Lets go of something else, where there is no room; tells whether it could. */
  makeRoom(): Promise<boolean>;
  /** Hears how many bytes more, or fewer, the stream takes. */
  onBytes(bytes: number): void;
}

/** A stream that this replica writes. */
export class StreamWriting {
  readonly name: LoggedStream;
  /** Of the monotonic clock; nothing while more may come. */
  endedAt: number | undefined;
  readonly #options: StreamWritingOptions;
  readonly #asked: readonly RequestId[];
  /** What is known of the record in each slot. */
  readonly #slots: { revision: number; bytes: number }[] = [];
  #pending: Pending[] = [];
  /** Characters that wait to be written. */
  #waiting = 0;
  #writing: Promise<void> | undefined;
  #number = 0;
  #before = -1;
  #events: LoggedEvent[] = [];
  #characters = 0;
  #bytes = 0;
  #isOver = false;

  constructor(name: LoggedStream, asked: readonly RequestId[], options: StreamWritingOptions) {
    this.name = name;
    this.#asked = [...asked];
    this.#options = options;
  }

  /** Writes something down after all that was added before; rejects where it cannot, and then nothing of the stream is of use. */
  add(what: Pending["what"]): Promise<void> {
    this.#waiting += lengthOf(what);
    // A store that is slower than what is told keeps no more of it.
    if (this.#waiting > EVENT_LOG.streamBytes) return Promise.reject(streamTooLong());
    return new Promise((resolve, reject) => {
      this.#pending.push({ what, resolve, reject });
      this.#writing ??= this.#write().finally(() => {
        this.#writing = undefined;
      });
    });
  }

  /** Whether nothing is being written. */
  get isIdle(): boolean {
    return this.#writing === undefined;
  }

  /** Resolves when nothing is being written. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  /** Removes what is kept, as far as that can be; the rest expires. */
  async remove(): Promise<void> {
    this.#isOver = true;
    await this.#writing;
    this.#options.onBytes(-this.#bytes);
    this.#bytes = 0;
    try {
      const { store } = this.#options.shared();
      const slots = this.#slots.splice(0);
      await Promise.all(slots.map(({ revision }, at) => store.delete(this.#nameOf(at), revision)));
    } catch (thrown) {
      if (!(thrown instanceof StateError)) throw thrown;
    }
  }

  async #write(): Promise<void> {
    // What is added in the same turn is written at once.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#pending.length > 0) {
      const { taken, isEnd } = this.#take();
      try {
        if (this.#isOver) throw new Error("The stream is kept no more.");
        await this.#put(isEnd);
        for (const { resolve } of taken) resolve();
      } catch (thrown) {
        this.#isOver = true;
        for (const { reject } of [...taken, ...this.#pending.splice(0)]) reject(thrown);
      }
    }
  }

  /** Takes what goes into one record. */
  #take(): { readonly taken: readonly Pending[]; readonly isEnd: boolean } {
    if (this.#characters >= CHUNK_CHARACTERS) {
      this.#number += 1;
      this.#before = this.#events.at(-1)?.place ?? this.#before;
      this.#events = [];
      this.#characters = 0;
    }
    const taken: Pending[] = [];
    let isEnd = false;
    while (this.#pending.length > 0 && this.#characters < CHUNK_CHARACTERS) {
      const pending = this.#pending.shift() as Pending;
      const { what } = pending;
      taken.push(pending);
      this.#waiting -= lengthOf(what);
      if (what === "end") isEnd = true;
      else if (what !== "open") {
        this.#events.push(what);
        this.#characters += what.json.length;
      }
    }
    return { taken, isEnd };
  }

  async #put(isEnd: boolean): Promise<void> {
    const { store, lease } = this.#options.shared();
    // This tells the reader of the stream whether more may come.
    await lease.hold();
    const state = isEnd ? "ended" : this.#characters >= CHUNK_CHARACTERS ? "full" : "open";
    const value = encode({
      number: this.#number,
      replica: lease.replica,
      asked: this.#asked,
      before: this.#before,
      events: this.#events,
      state,
    });
    const slot = this.#number % SLOTS;
    const known = this.#slots[slot];
    const added = value.length - (known?.bytes ?? 0);
    if (this.#bytes + added > EVENT_LOG.streamBytes) throw streamTooLong();
    for (;;) {
      const write = { expiresAt: store.now() + EVENT_LOG.runningMs, bounds: EVENT_LOG.bounds };
      const name = this.#nameOf(slot);
      const put =
        known === undefined
          ? await store.create(name, value, write)
          : await store.update(name, known.revision, value, write);
      if (put.state === "created" || put.state === "updated") {
        this.#slots[slot] = { revision: put.revision, bytes: value.length };
        this.#bytes += added;
        this.#options.onBytes(added);
        return;
      }
      if (put.state !== "full") throw new StateError("wiped", "A stream was removed from the shared state.");
      if (!(await this.#options.makeRoom())) throw new StateError("full", "There is no room for a stream.");
    }
  }

  #nameOf(slot: number): StateName {
    return nameOf(this.#options.collection, this.name, slot);
  }
}

interface StreamReadingOptions extends SharedState {
  readonly collection: string;
}

/** A stream that a replica reads, be it of another one. */
export class StreamReading {
  readonly #name: LoggedStream;
  readonly #options: StreamReadingOptions;

  constructor(name: LoggedStream, options: StreamReadingOptions) {
    this.#name = name;
    this.#options = options;
  }

  /** What is kept, in order; nothing where that is not all from one place on. */
  async readAll(): Promise<readonly Chunk[]> {
    const chunks: Chunk[] = [];
    for (let from = 0; from < SLOTS; from += READ_AHEAD) {
      const read = await Promise.all(Array.from({ length: READ_AHEAD }, (_, at) => this.#read(from + at)));
      chunks.push(...read.filter((chunk) => chunk !== undefined));
      if (read.includes(undefined)) break;
    }
    chunks.sort((a, b) => a.number - b.number);
    // One that was written anew while others were read leaves a gap.
    const isWhole = chunks.every(({ number }, at) => number === (chunks[0]?.number ?? 0) + at);
    return isWhole ? chunks : [];
  }

  /** Gives what came after a place, and what comes, until nothing more does; throws where the rest is lost. */
  async *follow(
    chunks: readonly Chunk[],
    after: number,
    signals: readonly [left: AbortSignal, closing: AbortSignal],
  ): AsyncGenerator<LoggedEvent, void> {
    const [left, closing] = signals;
    let place = after;
    for (const chunk of chunks) {
      for (const event of chunk.events) {
        if (event.place <= place) continue;
        place = event.place;
        if (left.aborted) return;
        yield event;
      }
    }
    let last = chunks.at(-1) as Chunk;
    while (last.state !== "ended") {
      const next = await this.#change(last, signals);
      if (left.aborted) return;
      if (closing.aborted || next === undefined) throw lost();
      for (const event of next.events) {
        if (event.place <= place) continue;
        place = event.place;
        yield event;
      }
      last = next;
    }
  }

  /** Waits until a record says more than it did, or the next one does; nothing where that will not be. */
  async #change(last: Chunk, signals: readonly AbortSignal[]): Promise<Chunk | undefined> {
    const { store, lease, collection } = this.#options;
    const number = last.state === "full" ? last.number + 1 : last.number;
    const slot = number % SLOTS;
    for (let isLast = false; ; ) {
      let wake: () => void = () => {};
      const change = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const stop = store.watch(nameOf(collection, this.#name, slot), wake);
      const timer = setTimeout(wake, POLL_MS);
      for (const signal of signals) signal.addEventListener("abort", wake, { once: true });
      try {
        const found = await this.#read(slot);
        if (found !== undefined && found.number > number) return undefined;
        const isNews = found?.number === number && says(found) > (number === last.number ? says(last) : -1);
        if (isNews) return found;
        if (found === undefined && number === last.number) return undefined;
        if (isLast) return undefined;
        if (signals.some(({ aborted }) => aborted)) return undefined;
        // What was written last is looked for once more when its replica is gone.
        isLast = await lease.isGone(last.replica);
        if (!isLast) await change;
      } finally {
        clearTimeout(timer);
        stop();
        for (const signal of signals) signal.removeEventListener("abort", wake);
      }
    }
  }

  async #read(slot: number): Promise<Chunk | undefined> {
    const { store, collection } = this.#options;
    const record = await store.get(nameOf(collection, this.#name, slot));
    return record && decode(record);
  }
}

function lengthOf(what: Pending["what"]): number {
  return typeof what === "string" ? 0 : what.json.length;
}

/** How much a record says: it grows with every change. */
function says({ events, state }: Chunk): number {
  return events.length + (state === "open" ? 0 : 0.5);
}

function nameOf(collection: string, { owner, session, stream }: LoggedStream, slot: number): StateName {
  return { collection, owner, key: `${session} ${stream} ${slot}` };
}

/** The error for a stream of which too much would have to be kept. */
export function streamTooLong(): Error {
  return new Error("A stream is too long to be kept for other replicas.");
}

function lost(): Error {
  return new Error("A stream is kept no more, or its replica is gone: what came later is lost.");
}

function encode({ number, replica, asked, before, events, state }: Chunk): Uint8Array {
  const said = events.map(({ place, json }) => [place, json]);
  return new TextEncoder().encode(JSON.stringify({ number, replica, asked, before, events: said, state }));
}

/** Reads a record of ours, which another process wrote. */
function decode({ value }: StateRecord): Chunk {
  const found = parseJsonTextOrNone(new TextDecoder().decode(value));
  const chunk = isPlainObject(found) ? readChunk(found) : undefined;
  if (chunk !== undefined) return chunk;
  throw new StateError("damaged", "The record of a stream in the shared state cannot be read.");
}

function readChunk(found: Readonly<Record<string, unknown>>): Chunk | undefined {
  const { number, replica, asked, before, events, state } = found;
  if (typeof number !== "number" || typeof replica !== "string" || typeof before !== "number")
    return undefined;
  if (state !== "open" && state !== "full" && state !== "ended") return undefined;
  if (!Array.isArray(asked) || !Array.isArray(events)) return undefined;
  const read = events.map((event: unknown) => {
    const [place, json] = Array.isArray(event) ? (event as readonly unknown[]) : [];
    return typeof place === "number" && typeof json === "string" ? { place, json } : undefined;
  });
  if (read.includes(undefined)) return undefined;
  const whole = read as readonly LoggedEvent[];
  return { number, replica, asked: asked as readonly RequestId[], before, events: whole, state };
}
