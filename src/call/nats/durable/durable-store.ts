import { setTimeout as pause } from "node:timers/promises";
import {
  type JetStreamClient,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  type MsgRequest,
  type StoredMsg,
} from "@nats-io/jetstream";
import { headers, type NatsConnection } from "@nats-io/transport-node";
import { monotonicNow } from "../../../core/execution/deadline.ts";
import { createCounters, type LiveCounters } from "../../call-counters.ts";
import { DurableNames } from "./durable-names.ts";
import type { DurableSettings } from "./durable-options.ts";
import { ensureStreams } from "./durable-streams.ts";
import { isFinal, isNotTakenIn, storeFull, toStoreError } from "./store-error.ts";

/** Names who wrote a message, so that one whose acknowledgement was lost is known again. */
export const NONCE_HEADER = "Waybill-Nonce";

/** Milliseconds one try may take before the next. */
const ATTEMPT_MS = 2_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** Bytes of a message that are left to its headers. */
const HEADER_BYTES = 1_024;

/** A message to be the only one of its subject. */
export interface Placed {
  readonly stream: string;
  readonly subject: string;
  readonly data: Uint8Array;
  /** The same for every try to store this one message. */
  readonly nonce: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Stands for the message within the duplicate window. */
  readonly msgId?: string | undefined;
}

/** What became of a message: stored, known by its `msgId` under another sequence, or not the first of its subject. */
export type Put =
  | { readonly kind: "stored" }
  | { readonly kind: "duplicate"; readonly sequence: number }
  | { readonly kind: "taken"; readonly by: StoredMsg };

/** The two streams of durable calls, as both sides use them; tries until a point on the monotonic clock. */
export class DurableStore {
  readonly connection: NatsConnection;
  readonly settings: DurableSettings;
  readonly names: DurableNames;
  readonly counters: LiveCounters = createCounters();
  readonly manager: JetStreamManager;
  readonly client: JetStreamClient;

  private constructor(connection: NatsConnection, settings: DurableSettings, manager: JetStreamManager) {
    this.connection = connection;
    this.settings = settings;
    this.names = new DurableNames(settings.prefix);
    this.manager = manager;
    this.client = jetstream(connection, { timeout: ATTEMPT_MS });
  }

  /** Makes sure that the streams are there. */
  static async open(connection: NatsConnection, settings: DurableSettings): Promise<DurableStore> {
    try {
      const manager = await jetstreamManager(connection, { timeout: ATTEMPT_MS, checkAPI: false });
      const store = new DurableStore(connection, settings, manager);
      await ensureStreams(manager, store.names, settings);
      if (store.partBytes < 1)
        throw new Error(`The broker's max_payload is too small: ${HEADER_BYTES} or less.`);
      return store;
    } catch (thrown) {
      // What `ensureStreams` itself has to say is for whoever wrote the options.
      throw thrown instanceof Error && thrown.constructor === Error ? thrown : toStoreError(thrown);
    }
  }

  /** Bytes that go into one message. */
  get partBytes(): number {
    return (this.connection.info?.max_payload ?? 1_048_576) - HEADER_BYTES;
  }

  /** Stores a message unless its subject has one. */
  async put(message: Placed, until: number): Promise<Put> {
    return this.#try(until, async (timeout) => {
      try {
        return await this.#publish(message, timeout);
      } catch (thrown) {
        if (!isNotTakenIn(thrown)) throw thrown;
        const by = await this.#get(message.stream, { last_by_subj: message.subject });
        if (by === undefined) throw storeFull(thrown);
        return by.header.get(NONCE_HEADER) === message.nonce ? { kind: "stored" } : { kind: "taken", by };
      }
    });
  }

  /** The message of a subject, which may have wildcards. */
  last(stream: string, subject: string, until: number): Promise<StoredMsg | undefined> {
    return this.#try(until, () => this.#get(stream, { last_by_subj: subject }));
  }

  /** The message of a sequence number. */
  at(stream: string, sequence: number, until: number): Promise<StoredMsg | undefined> {
    return this.#try(until, () => this.#get(stream, { seq: sequence }));
  }

  async #publish(message: Placed, timeout: number): Promise<Put> {
    const head = headers();
    head.set(NONCE_HEADER, message.nonce);
    for (const [name, value] of Object.entries(message.headers ?? {})) head.set(name, value);
    const { duplicate, seq } = await this.client.publish(message.subject, message.data, {
      timeout,
      headers: head,
      expect: { streamName: message.stream, lastSubjectSequence: 0 },
      ...(message.msgId !== undefined && { msgID: message.msgId }),
    });
    if (!duplicate) return { kind: "stored" };
    // A cluster gives no sequence while the original is still on its way; it will in a moment.
    if (!(seq > 0)) throw new Error("The original of a duplicate is still being stored.");
    return { kind: "duplicate", sequence: seq };
  }

  async #get(stream: string, query: MsgRequest): Promise<StoredMsg | undefined> {
    return (await this.manager.streams.getMessage(stream, query)) ?? undefined;
  }

  /** Tries until there is an answer or no time left; a broker that restarts is waited for. */
  async #try<T>(until: number, attempt: (timeoutMs: number) => Promise<T>): Promise<T> {
    let last: unknown;
    for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
      const left = until - monotonicNow();
      if (left <= 0) throw toStoreError(last);
      try {
        return await attempt(Math.min(left, ATTEMPT_MS));
      } catch (thrown) {
        if (isFinal(thrown)) throw toStoreError(thrown);
        last = thrown;
      }
      await pause(Math.min(wait, Math.max(0, until - monotonicNow())));
    }
  }
}
