import type { NatsConnection } from "@nats-io/transport-node";

type Message = readonly [subject: string, data: Uint8Array, replyTo: string | undefined];

/** Messages and bytes that are kept for a connection to come back; what is over that is dropped, the newest first. */
const HELD_MESSAGES = 50_000;
const HELD_BYTES = 64 * 1024 * 1024;

/**
 * Hands messages to a connection together. It writes to its socket as soon as it is given one, and answers to calls that arrived
 * together become ready one after the other: each would be a write of its own, which costs more than all the rest.
 *
 * While the connection is lost they are kept here, for it would forget them.
 */
export class Outgoing {
  readonly #connection: Pick<NatsConnection, "publish">;
  #waiting: Message[] = [];
  #bytes = 0;
  #isHeld = false;

  constructor(connection: Pick<NatsConnection, "publish">) {
    this.#connection = connection;
  }

  add(subject: string, data: Uint8Array, replyTo: string | undefined): void {
    if (this.#isHeld) {
      if (this.#waiting.length >= HELD_MESSAGES || this.#bytes + data.length > HELD_BYTES) return;
    } else if (this.#waiting.length === 0) {
      // Runs when no promise that is ready has anything left to do.
      process.nextTick(() => this.send());
    }
    this.#waiting.push([subject, data, replyTo]);
    this.#bytes += data.length;
  }

  /** Sends nothing until released. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    this.send();
  }

  send(): void {
    if (this.#isHeld) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
    for (const message of waiting) this.#publish(message);
  }

  #publish([subject, data, replyTo]: Message): void {
    try {
      this.#connection.publish(subject, data, replyTo === undefined ? undefined : { reply: replyTo });
    } catch {
      // Closed or about to be, or a broker that takes less than before: those who wait notice by themselves.
    }
  }
}
