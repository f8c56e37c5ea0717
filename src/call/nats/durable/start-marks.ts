import { randomUUID } from "node:crypto";
import type { RequestAddress } from "./durable-names.ts";
import type { DurableStore } from "./durable-store.ts";

/**
 * Whether a handler may start: it may, the call has ended, somebody started it and was not heard of again, or the mark belongs to
 * another request under the same id.
 */
export type StartMark = "started" | "ended" | "lost" | "foreign";

/** Starts whose mark may or may not be stored. */
const MAX_UNSURE = 10_000;

/** Marks what has been started, so that no handler runs twice. */
export class StartMarks {
  readonly #store: DurableStore;
  /** Nonces of marks that were not acknowledged: found in the store later, they are ours and nothing ran. */
  readonly #unsure = new Map<string, string>();

  constructor(store: DurableStore) {
    this.#store = store;
  }

  /** Tells whether a call has its ending. */
  async hasEnded({ user, token }: RequestAddress, until: number): Promise<boolean> {
    const { names } = this.#store;
    return (await this.#store.last(names.results, names.end(user, token), until)) !== undefined;
  }

  /** Stores that a request is started; throws when that is not certain, and nothing may run then. */
  async start(address: RequestAddress, sequence: number, until: number): Promise<StartMark> {
    const { names } = this.#store;
    const subject = names.start(address.user, address.token);
    const nonce = this.#unsure.get(subject) ?? randomUUID();
    this.#remember(subject, nonce);
    const data = new TextEncoder().encode(String(sequence));
    const put = await this.#store.put({ stream: names.results, subject, data, nonce }, until);
    this.#unsure.delete(subject);
    if (put.kind !== "taken") return "started";
    if (put.by.string() !== String(sequence)) {
      this.#store.counters.forged += 1;
      return "foreign";
    }
    return (await this.hasEnded(address, until)) ? "ended" : "lost";
  }

  #remember(subject: string, nonce: string): void {
    this.#unsure.set(subject, nonce);
    if (this.#unsure.size <= MAX_UNSURE) return;
    const [oldest] = this.#unsure.keys();
    if (oldest !== undefined) this.#unsure.delete(oldest);
  }
}
