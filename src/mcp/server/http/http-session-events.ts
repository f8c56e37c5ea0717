import { completeLimits } from "../../../core/options/check-options.ts";

/** Bounds of what sessions keep for clients whose stream broke. */
export interface SessionEventLimits {
  /** Messages of one session that are kept to be sent again; the oldest go first. @default 1_000 */
  readonly events?: number | undefined;
  /** Bytes of these messages, as JSON; the oldest go first. @default 4_194_304 */
  readonly eventBytes?: number | undefined;
  /** The same of all sessions together; the oldest of the owner with most go first. @default 67_108_864 */
  readonly allEventBytes?: number | undefined;
}

/** The same, with nothing left open. */
export type SessionEventBounds = Readonly<Record<keyof SessionEventLimits, number>>;

/** Where an event stands in its session, and the stream it went over. */
export interface EventPlace {
  readonly place: number;
  readonly stream: string;
}

/** Whose events they are, and what they share with those of other sessions. */
interface SessionEventsOptions {
  /** @default "" */
  readonly owner?: string;
  /** @default one of its own */
  readonly budget?: EventBudget;
}

interface Kept extends EventPlace {
  readonly json: string;
  readonly bytes: number;
}

/** Where a kept message can be dropped. */
interface EventKeeper<T> {
  drop(event: T): void;
}

interface Share<T> {
  bytes: number;
  /** Oldest first, of all that the owner has. */
  readonly kept: Map<T, EventKeeper<T>>;
}

/** The stream for what belongs to no request. */
export const STANDING_STREAM = "_GET_stream";

const EVENT_DEFAULTS: SessionEventBounds = {
  events: 1_000,
  eventBytes: 4_194_304,
  allEventBytes: 67_108_864,
};

const EVENT_ID = /^(\d{1,15}):([\w-]{1,64})$/;

/** Reads the bounds; one that is not a whole number above 0 is a `TypeError`. */
export function readEventBounds(limits: SessionEventLimits | undefined): SessionEventBounds {
  return completeLimits(EVENT_DEFAULTS, limits, () => "must be a whole number, 1 or more");
}

/** Reads the id of an event; nothing for what no session could have sent. */
export function readEventId(text: string): EventPlace | undefined {
  const [, place, stream] = EVENT_ID.exec(text) ?? [];
  return stream === undefined ? undefined : { place: Number(place), stream };
}

/** The bytes that all sessions together may keep: the session that keeps most makes room. */
export class EventBudget<T extends { readonly bytes: number } = Kept> {
  readonly #maxBytes: number;
  readonly #shares = new Map<string, Share<T>>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** How many bytes are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Counts what is kept for an owner, and has the oldest dropped until all is within bounds. */
  add(owner: string, kept: T, keeper: EventKeeper<T>): void {
    const share = this.#shares.get(owner) ?? { bytes: 0, kept: new Map() };
    this.#shares.set(owner, share);
    share.kept.set(kept, keeper);
    share.bytes += kept.bytes;
    this.#bytes += kept.bytes;
    while (this.#bytes > this.#maxBytes) this.#dropOldest();
  }

  /** Forgets what is no longer kept. */
  remove(owner: string, kept: T): void {
    const share = this.#shares.get(owner);
    if (share?.kept.delete(kept) !== true) return;
    share.bytes -= kept.bytes;
    this.#bytes -= kept.bytes;
    if (share.kept.size === 0) this.#shares.delete(owner);
  }

  #dropOldest(): void {
    let most: Share<T> | undefined;
    for (const share of this.#shares.values()) if (share.bytes > (most?.bytes ?? 0)) most = share;
    const [oldest] = most?.kept ?? [];
    if (oldest !== undefined) oldest[1].drop(oldest[0]);
  }
}

/** The latest messages of one session, as text: what a handler does later to what it returned changes nothing. */
export class SessionEvents {
  readonly #bounds: SessionEventBounds;
  readonly #owner: string;
  readonly #budget: EventBudget;
  /** By place, oldest first. */
  readonly #kept = new Map<number, Kept>();
  /** Streams with an id to come back to: those without an answer yet, and the latest of the others. */
  readonly #open = new Set<string>();
  readonly #answered = new Set<string>();
  #bytes = 0;
  #place = 0;
  #closed = false;

  constructor(bounds: SessionEventBounds, options: SessionEventsOptions = {}) {
    this.#bounds = bounds;
    this.#owner = options.owner ?? "";
    this.#budget = options.budget ?? new EventBudget(bounds.allEventBytes);
  }

  /** How many messages are kept. */
  get size(): number {
    return this.#kept.size;
  }

  /** Tells whether a stream has an id to come back to and waits for its answer. */
  isOpen(stream: string): boolean {
    return this.#open.has(stream);
  }

  /** Tells whether an id is one that was given here, as far as that is remembered. */
  knows({ place, stream }: EventPlace): boolean {
    if (place > this.#place) return false;
    if (this.#open.has(stream) || this.#answered.has(stream)) return true;
    return [...this.#kept.values()].some((event) => event.stream === stream);
  }

  /** Gives the id of the place where a stream stands now, for a client to come back to. */
  mark(stream: string): string {
    this.#place += 1;
    this.#open.add(stream);
    return `${this.#place}:${stream}`;
  }

  /** Keeps a message of a stream, and gives the id it is sent under. */
  keep(stream: string, json: string): string {
    const id = this.mark(stream);
    this.#keep({ place: this.#place, stream }, json);
    return id;
  }

  /** Remembers that the answer went over a stream. One without an id to come back to need not be remembered. */
  markAnswered(stream: string): void {
    if (!this.#open.delete(stream)) return;
    this.#answered.delete(stream);
    this.#answered.add(stream);
    for (const oldest of this.#answered) {
      if (this.#answered.size <= this.#bounds.events) return;
      this.#answered.delete(oldest);
    }
  }

  /** What went over the stream of an event after it, as far as it is still kept, with the ids it was sent under. */
  after({ place, stream }: EventPlace): readonly (readonly [id: string, json: string])[] {
    return [...this.#kept.values()]
      .filter((event) => event.stream === stream && event.place > place)
      .map((event) => [`${event.place}:${stream}`, event.json]);
  }

  /** Keeps a message no longer. */
  drop(event: Kept): void {
    if (this.#kept.get(event.place) !== event) return;
    this.#kept.delete(event.place);
    this.#bytes -= event.bytes;
    this.#budget.remove(this.#owner, event);
  }

  /** Drops everything, and keeps nothing from now on. */
  close(): void {
    this.#closed = true;
    for (const event of this.#kept.values()) this.drop(event);
  }

  #keep(at: EventPlace, json: string): void {
    const bytes = Buffer.byteLength(json);
    // What cannot be kept at all drives nothing else out.
    if (this.#closed || bytes > Math.min(this.#bounds.eventBytes, this.#bounds.allEventBytes)) return;
    const kept: Kept = { ...at, json, bytes };
    this.#kept.set(at.place, kept);
    this.#bytes += bytes;
    for (const event of this.#kept.values()) {
      if (this.#kept.size <= this.#bounds.events && this.#bytes <= this.#bounds.eventBytes) break;
      this.drop(event);
    }
    this.#budget.add(this.#owner, kept, this);
  }
}
