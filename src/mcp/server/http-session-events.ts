import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

/** Bounds of what a session keeps for clients whose stream broke. */
export interface SessionEventLimits {
  /** Messages of one session that are kept to be sent again; the oldest go first. @default 1_000 */
  readonly events?: number | undefined;
  /** Bytes of these messages, as JSON; the oldest go first. @default 4_194_304 */
  readonly eventBytes?: number | undefined;
}

/** The same, with nothing left open. */
export type SessionEventBounds = Readonly<Record<keyof SessionEventLimits, number>>;

interface Kept {
  readonly stream: string;
  readonly json: string;
  readonly bytes: number;
}

/** Where an event stands in its session, then the stream it went over. */
const EVENT_ID = /^(\d{1,15}):([\w-]{1,64})$/;

/** Reads the bounds; one that is not a whole number above 0 is a `TypeError`. */
export function readEventBounds({ events = 1_000, eventBytes = 4_194_304 }: SessionEventLimits) {
  const bounds: SessionEventBounds = { events, eventBytes };
  for (const [name, value] of Object.entries(bounds)) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new TypeError(`${name} must be a whole number, 1 or more.`);
    }
  }
  return bounds;
}

/** Tells whether a client names an event that a session could have sent. */
export function isEventId(text: string): boolean {
  return EVENT_ID.test(text);
}

/** The latest messages of one session, as text: what a handler does later to what it returned changes nothing. */
export class SessionEvents implements EventStore {
  readonly #bounds: SessionEventBounds;
  /** By place, oldest first. */
  readonly #kept = new Map<number, Kept>();
  #bytes = 0;
  #place = 0;

  constructor(bounds: SessionEventBounds) {
    this.#bounds = bounds;
  }

  /** How many messages are kept. */
  get size(): number {
    return this.#kept.size;
  }

  /** Keeps a message and gives the id it is sent under. The empty one with which the SDK opens a stream only marks a place. */
  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    this.#place += 1;
    if ("jsonrpc" in message) this.#keep(stream, JSON.stringify(message));
    return `${this.#place}:${stream}`;
  }

  /** Sends again what went over the stream of an event after it, as far as it is still kept. */
  async replayEventsAfter(
    id: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const [, place, stream = ""] = EVENT_ID.exec(id) ?? [];
    for (const [at, event] of [...this.#kept]) {
      if (event.stream !== stream || at <= Number(place)) continue;
      await send(`${at}:${stream}`, JSON.parse(event.json) as JSONRPCMessage);
    }
    return stream;
  }

  #keep(stream: string, json: string): void {
    const bytes = Buffer.byteLength(json);
    this.#kept.set(this.#place, { stream, json, bytes });
    this.#bytes += bytes;
    for (const [at, event] of this.#kept) {
      if (this.#kept.size <= this.#bounds.events && this.#bytes <= this.#bounds.eventBytes) return;
      this.#kept.delete(at);
      this.#bytes -= event.bytes;
    }
  }
}
