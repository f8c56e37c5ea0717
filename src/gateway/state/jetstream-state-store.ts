// Long: one engine of the contract of stores; its records, chunks, index and watches share one stream.

import { createHash, randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type {
  ConsumerMessages,
  JetStreamClient,
  JetStreamManager,
  JsMsg,
  StoredMsg,
} from "@nats-io/jetstream";
import type { MsgHdrs, NatsConnection } from "@nats-io/transport-node";
import { hashOf } from "../../call/nats/durable/durable-codec.ts";
import {
  ensureStream,
  isExhausted,
  isForbidden,
  NONCE_HEADER,
} from "../../call/nats/durable/durable-store.ts";
import {
  DiscardPolicy,
  headers,
  JetStreamApiCodes,
  JetStreamApiError,
  jetstream,
  jetstreamManager,
  nanos,
  RetentionPolicy,
  StorageType,
} from "../../call/nats/nats-packages.ts";
import { KeyedListeners, Listeners } from "../../core/collections/listeners.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import { backoffMs } from "../../core/limits/backoff.ts";
import { RecordIndex } from "./record-index.ts";
import {
  checkListing,
  checkWrite,
  LONGEST_KEEP_MS,
  MOST_VALUE_BYTES,
  STATE_VERSION,
  type StateCreated,
  StateError,
  type StateFaultListener,
  type StateListing,
  type StateName,
  type StateRecord,
  type StateStore,
  type StateUpdated,
  type StateWrite,
  versionError,
  type WrittenRecord,
} from "./state-store.ts";

/** How a store uses JetStream. */
export interface JetStreamStateOptions {
  /** Names the gateway whose replicas share the store: others on the same broker see nothing of it. */
  readonly space: string;
  /** First token of every subject, and in capitals of the stream. @default "waybill" */
  readonly prefix?: string | undefined;
  /** Copies in a cluster of brokers, 1 to 5; counts when the stream is made. @default 1 */
  readonly copies?: number | undefined;
  /** Milliseconds that one operation may take. @default 2_000 */
  readonly timeoutMs?: number | undefined;
  /** Milliseconds that what was deleted or has expired is left for others to see, and those whose clocks are behind. @default 30_000 */
  readonly lingerMs?: number | undefined;
  /** Milliseconds between looks for parts of values that no record names. @default 600_000 */
  readonly sweepMs?: number | undefined;
  /** Unix epoch milliseconds. @default Date.now */
  readonly now?: (() => number) | undefined;
  /** Hears what is wrong, each time. @default nobody does */
  readonly onFault?: StateFaultListener | undefined;
}

const EXPIRES_HEADER = "Waybill-Expires";
const BYTES_HEADER = "Waybill-Bytes";
const VERSION_HEADER = "Waybill-Version";
const DELETED_HEADER = "Waybill-Deleted";
/** The key of a record that is listed, in base64url. */
const KEY_HEADER = "Waybill-Key";
/** Says how a value too large for one message was split: number of parts, bytes in all, hash of them. */
const PARTS_HEADER = "Waybill-Parts";
const PARTS = /^([1-9][0-9]{0,5}) ([1-9][0-9]{0,8}) ([A-Za-z0-9_-]{43})$/;

/** Bytes of a message that are left to its headers. */
const HEADER_BYTES = 1_024;
/** Bytes that the stream takes in all, whatever the bounds of collections are. */
const STREAM_BYTES = 536_870_912;
const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 500;
/** Milliseconds that one try may take. */
const SHORTEST_ATTEMPT_MS = 100;
const LONGEST_ATTEMPT_MS = 1_000;
/** Between looks whether the stream is still the one that it was. */
const LOOK_MS = 5_000;
const LINGER_MS = 30_000;
/** Longer than a value of any size is on its way. */
const SWEEP_MS = 600_000;
const MOST_DELETIONS = 100_000;
const DELETIONS_AT_A_TIME = 2_000;
/** How often a record that changes all the time is looked at. */
const MOST_LOOKS = 20;

/** Opens the store on a connection, which stays the caller's; makes the stream where it is missing. */
export async function openJetStreamState(
  connection: NatsConnection,
  options: JetStreamStateOptions,
): Promise<StateStore> {
  const store = new JetStreamStateStore(connection, options);
  await store.open();
  return store;
}

/** A message that stands for a record, or for that it was deleted. */
interface Written {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: MsgHdrs;
  /** The same for every try to store this one message. */
  readonly nonce: string;
}

/** A message that nobody needs any more, and the parts that go with it. */
interface Deletion {
  readonly sequence: number;
  readonly parts: string | undefined;
  /** On the monotonic clock: since when. */
  readonly at: number;
}

/** What came of a message: stored, not the next of its subject, or no room for it. */
type Put =
  | { readonly state: "stored"; readonly sequence: number }
  | { readonly state: "conflict"; readonly by: StoredMsg | undefined }
  | { readonly state: "full" };

/**
 * Keeps records in a stream of JetStream that holds the last message of each subject: a record is a subject, its revision the sequence of
 * its message, and a change is published for one sequence alone. Values that are too large for a message lie in others beside it.
 *
 *     {prefix}.state.{space}.record.{collection}.{owner}.{key}
 *     {prefix}.state.{space}.part.{nonce}.{index}
 *     {prefix}.state.{space}.meta
 *
 * Every replica follows the headers of the records: that is how it counts them, and hears that one has changed.
 */
class JetStreamStateStore implements StateStore {
  readonly isExclusive = false;
  readonly #connection: NatsConnection;
  readonly #options: JetStreamStateOptions;
  readonly #stream: string;
  readonly #root: string;
  readonly #timeoutMs: number;
  /** What was on its way when a connection is lost is never answered. */
  readonly #attemptMs: number;
  readonly #index: RecordIndex;
  readonly #watches = new KeyedListeners();
  readonly #upListeners = new Listeners();
  readonly #deletions: Deletion[] = [];
  /** Parts that no record named at the last look: a replica may have been killed before it wrote theirs. */
  #orphans: ReadonlySet<string> = new Set();
  #sweptAt = monotonicNow();
  readonly #client: JetStreamClient;
  #manager: JetStreamManager | undefined;
  #following: ConsumerMessages | undefined;
  #status: (AsyncIterable<{ readonly type: string }> & { stop?(): void }) | undefined;
  /** Tells this content of the stream from what there may be after it was emptied. */
  #id: string | undefined;
  #looking: Promise<void> | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  #isUp = true;
  #isClosed = false;

  constructor(connection: NatsConnection, options: JetStreamStateOptions) {
    const { prefix = "waybill", space, timeoutMs = 2_000 } = options;
    this.#connection = connection;
    this.#options = options;
    this.#stream = `${prefix.toUpperCase()}_STATE`;
    this.#root = `${prefix}.state.${hashOf("space", space).slice(0, 22)}`;
    this.#timeoutMs = timeoutMs;
    this.#attemptMs = Math.min(Math.max(timeoutMs / 4, SHORTEST_ATTEMPT_MS), LONGEST_ATTEMPT_MS);
    this.#index = new RecordIndex(
      () => this.now(),
      (record) => this.#dropLater(record.revision, record.parts),
    );
    this.#client = jetstream(connection, { timeout: this.#attemptMs });
  }

  async open(): Promise<void> {
    const options = { timeout: this.#attemptMs, checkAPI: false };
    this.#manager = await jetstreamManager(this.#connection, options);
    this.#status = this.#connection.status();
    void this.#followStatus(this.#status);
    try {
      await this.#look();
    } catch (thrown) {
      await this.close();
      throw thrown;
    }
    this.#timer = setInterval(() => this.#tick(), LOOK_MS);
    this.#timer.unref();
  }

  get isUp(): boolean {
    return this.#isUp && !this.#isClosed;
  }

  now(): number {
    return (this.#options.now ?? Date.now)();
  }

  async get(name: StateName): Promise<StateRecord | undefined> {
    const until = this.#deadline();
    return this.#read(this.#subjectOf(name), await this.#last(this.#subjectOf(name), until), until);
  }

  mayHave(name: StateName): boolean {
    return this.#index.get(this.#idOf(this.#subjectOf(name))) !== undefined;
  }

  async create(name: StateName, value: Uint8Array, write: StateWrite): Promise<StateCreated> {
    checkWrite({ name, value, write }, this.now());
    const until = this.#deadline();
    const subject = this.#subjectOf(name);
    const room = this.#reserve(name, value, write);
    if (room === undefined) {
      const record = await this.get(name);
      return record === undefined ? this.#full() : { state: "exists", record };
    }
    try {
      let expected = 0;
      for (let look = 1; look <= MOST_LOOKS; look++) {
        const put = await this.#write({ name, value, write }, expected, until);
        if (put.state === "stored") return { state: "created", revision: put.sequence };
        if (put.state === "full") return this.#full();
        const record = await this.#read(subject, put.by, until);
        if (record !== undefined) return { state: "exists", record };
        expected = put.by?.seq ?? 0;
      }
    } finally {
      room.release();
    }
    throw this.#tell(new StateError("slow", "A record of the shared state changes all the time."));
  }

  async update(
    name: StateName,
    revision: number,
    value: Uint8Array,
    write: StateWrite,
  ): Promise<StateUpdated> {
    checkWrite({ name, value, write }, this.now());
    const id = this.#idOf(this.#subjectOf(name));
    const known = this.#index.get(id);
    const room = this.#reserve(name, value, write);
    if (room === undefined) return this.#full();
    try {
      const put = await this.#write({ name, value, write }, revision, this.#deadline());
      if (put.state === "full") return this.#full();
      if (put.state === "conflict") return { state: "changed" };
      this.#dropParts(known?.revision === revision ? known.parts : undefined);
      return { state: "updated", revision: put.sequence };
    } finally {
      room.release();
    }
  }

  async delete(name: StateName, revision: number): Promise<boolean> {
    const subject = this.#subjectOf(name);
    const id = this.#idOf(subject);
    const known = this.#index.get(id);
    const head = this.#headers(randomUUID());
    head.headers.set(DELETED_HEADER, "1");
    const put = await this.#put({ subject, data: new Uint8Array(), ...head }, revision, this.#deadline());
    if (put.state === "full") throw this.#tell(fullError());
    if (put.state === "conflict") return false;
    this.#forget(id, put.sequence);
    this.#dropParts(known?.revision === revision ? known.parts : undefined);
    return true;
  }

  async list(collection: string, owner: string, listing: StateListing): Promise<readonly string[]> {
    checkListing(listing);
    await this.#untilUp(this.#deadline(), false, undefined);
    // While they are counted anew, most would be missing; what is wrong then is met below, or by the next look.
    await this.#looking?.catch(() => {});
    return this.#index.list(collection, hashOf("owner", owner), listing);
  }

  watch(name: StateName, listener: () => void): () => void {
    return this.#watches.add(this.#idOf(this.#subjectOf(name)), listener);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#status?.stop?.();
    this.#following?.stop();
    this.#upListeners.tell();
    await this.#looking?.catch(() => {});
    this.#following?.stop();
  }

  #deadline(): number {
    return monotonicNow() + this.#timeoutMs;
  }

  #subjectOf({ collection, owner, key }: StateName): string {
    return `${this.#root}.record.${collection}.${hashOf("owner", owner)}.${hashOf("key", key)}`;
  }

  /** The stream that holds the records of all subjects. */
  #idOf(subject: string): string {
    return subject.slice(this.#root.length + ".record.".length);
  }

  #reserve(name: StateName, value: Uint8Array, { bounds, bytes = value.length }: StateWrite) {
    const { collection, owner } = name;
    const id = this.#idOf(this.#subjectOf(name));
    return this.#index.reserve(id, { collection, owner: hashOf("owner", owner), bytes }, bounds);
  }

  #full(): { readonly state: "full" } {
    this.#tell(fullError());
    return { state: "full" };
  }

  #tell<T extends StateError>(error: T): T {
    this.#options.onFault?.(error.fault, error.message, error.cause);
    return error;
  }

  #headers(nonce: string): Pick<Written, "headers" | "nonce"> {
    const head = headers();
    head.set(NONCE_HEADER, nonce);
    head.set(VERSION_HEADER, String(STATE_VERSION));
    return { headers: head, nonce };
  }

  /** Writes a value in place of a sequence, its parts first where it needs some. */
  async #write({ name, value, write }: WrittenRecord, expected: number, until: number): Promise<Put> {
    const { expiresAt, bytes = value.length, listed } = write;
    const subject = this.#subjectOf(name);
    const head = this.#headers(randomUUID());
    head.headers.set(EXPIRES_HEADER, String(expiresAt));
    head.headers.set(BYTES_HEADER, String(bytes));
    if (listed) head.headers.set(KEY_HEADER, Buffer.from(name.key).toString("base64url"));
    const partBytes = (this.#connection.info?.max_payload ?? 1_048_576) - HEADER_BYTES;
    const isSplit = value.length > partBytes;
    if (isSplit) {
      const count = Math.ceil(value.length / partBytes);
      for (let index = 0; index < count; index++) {
        const data = value.subarray(index * partBytes, (index + 1) * partBytes);
        const part = { subject: this.#partOf(head.nonce, index), data, ...this.#headers(head.nonce) };
        const put = await this.#put(part, 0, this.#deadline());
        if (put.state === "full") return put;
      }
      head.headers.set(PARTS_HEADER, `${count} ${value.length} ${digest(value)}`);
    }
    const data = isSplit ? new Uint8Array() : value;
    const put = await this.#put({ subject, data, ...head }, expected, isSplit ? this.#deadline() : until);
    const parts = isSplit ? head.nonce : undefined;
    if (put.state === "stored") {
      const { collection, owner } = name;
      const id = this.#idOf(subject);
      const record = {
        collection,
        owner: hashOf("owner", owner),
        revision: put.sequence,
        expiresAt,
        bytes,
        parts,
        listedKey: listed ? name.key : undefined,
      };
      this.#index.set(id, record);
      this.#watches.tell(id);
    } else this.#dropParts(parts);
    return put;
  }

  #partOf(nonce: string, index: number | ">"): string {
    return `${this.#root}.part.${nonce}.${index}`;
  }

  /** What cannot be removed now is removed by the broker when its time is over. */
  #dropParts(nonce: string | undefined): void {
    if (nonce === undefined) return;
    this.#manager?.streams.purge(this.#stream, { filter: this.#partOf(nonce, ">") }).catch(() => {});
  }

  /** Publishes a message in place of a sequence of its subject, 0 for none; tries until there is an answer or no time left. */
  async #put(message: Written, expected: number, until: number): Promise<Put> {
    let isUncertain = false;
    let last: unknown;
    for (let tries = 1; ; tries++) {
      await this.#untilUp(until, isUncertain, last);
      try {
        const { seq } = await this.#client.publish(message.subject, message.data, {
          timeout: Math.min(this.#timeLeft(until), this.#attemptMs),
          headers: message.headers,
          expect: { streamName: this.#stream, lastSubjectSequence: expected },
        });
        return { state: "stored", sequence: seq };
      } catch (thrown) {
        if (isWrongSequence(thrown)) {
          const by = await this.#last(message.subject, Math.max(until, this.#deadline()), isUncertain);
          const isOurs = by?.header.get(NONCE_HEADER) === message.nonce;
          return isOurs ? { state: "stored", sequence: by.seq } : { state: "conflict", by };
        }
        if (isExhausted(thrown)) return { state: "full" };
        await this.#recover(thrown, until, isUncertain);
        isUncertain ||= !(thrown instanceof JetStreamApiError) && !isMissing(thrown);
        last = thrown;
      }
      await pause(Math.min(backoffMs(tries, FIRST_PAUSE_MS, LONGEST_PAUSE_MS), this.#timeLeft(until)));
    }
  }

  /** The message of a subject, as the leader of the stream has it. */
  async #last(subject: string, until: number, isUncertain = false): Promise<StoredMsg | undefined> {
    let last: unknown;
    for (let tries = 1; ; tries++) {
      await this.#untilUp(until, isUncertain, last);
      try {
        const manager = this.#manager as JetStreamManager;
        return (await manager.streams.getMessage(this.#stream, { last_by_subj: subject })) ?? undefined;
      } catch (thrown) {
        await this.#recover(thrown, until, isUncertain);
        last = thrown;
      }
      await pause(Math.min(backoffMs(tries, FIRST_PAUSE_MS, LONGEST_PAUSE_MS), this.#timeLeft(until)));
    }
  }

  /** Throws what trying again cannot mend; makes the stream again where it is gone. */
  async #recover(thrown: unknown, until: number, isUncertain: boolean): Promise<void> {
    if (isForbidden(thrown)) {
      const message = "The broker does not let this user keep the shared state.";
      throw this.#tell(new StateError("unreachable", message, { cause: thrown, uncertain: isUncertain }));
    }
    if (!isMissing(thrown) || this.#timeLeft(until) === 0) return;
    // What is still wrong then is met again by the next try.
    await this.#look().catch(() => {});
  }

  #timeLeft(until: number): number {
    return Math.max(until - monotonicNow(), 0);
  }

  /** Waits for the broker to be there. Nothing is given to a client without a connection: it would be sent when nobody waits for it any more. */
  async #untilUp(until: number, isUncertain: boolean, cause: unknown): Promise<void> {
    const options = { cause, uncertain: isUncertain };
    if (!this.#isUp && !this.#isClosed && this.#timeLeft(until) > 0) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          stop();
          resolve();
        };
        const timer = setTimeout(done, this.#timeLeft(until));
        const stop = this.#upListeners.add(done);
      });
    }
    if (this.#isClosed || this.#connection.isClosed())
      throw new StateError(
        "unreachable",
        "The connection to the broker of the shared state is closed.",
        options,
      );
    if (!this.#isUp)
      throw this.#tell(
        new StateError("unreachable", "The broker of the shared state cannot be reached.", options),
      );
    if (this.#timeLeft(until) === 0)
      throw this.#tell(
        new StateError(
          "slow",
          `The broker of the shared state did not answer within ${this.#timeoutMs} ms.`,
          options,
        ),
      );
  }

  /** Reads a record; nothing where the message is none, was deleted, or has expired. */
  async #read(
    subject: string,
    found: StoredMsg | undefined,
    until: number,
  ): Promise<StateRecord | undefined> {
    let message = found;
    for (let look = 1; look <= MOST_LOOKS; look++) {
      if (message === undefined) return undefined;
      const version = Number(message.header.get(VERSION_HEADER));
      if (version !== STATE_VERSION) throw this.#tell(versionError(version));
      if (message.header.has(DELETED_HEADER)) return undefined;
      const expiresAt = Number(message.header.get(EXPIRES_HEADER));
      if (!(expiresAt > this.now())) return undefined;
      const value = await this.#value(message, until);
      if (value !== undefined) return { value, revision: message.seq, expiresAt };
      // Its parts are gone: it was replaced while it was read.
      const again = await this.#last(subject, until);
      if (again?.seq === message.seq) break;
      message = again;
    }
    throw this.#tell(new StateError("damaged", "A record of the shared state is damaged."));
  }

  async #value({ data, header }: StoredMsg, until: number): Promise<Uint8Array | undefined> {
    const said = header.get(PARTS_HEADER);
    if (said === "") return data;
    const [, count = "0", bytes = "0", hash] = PARTS.exec(said) ?? [];
    if (Number(bytes) > MOST_VALUE_BYTES || Number(count) > Number(bytes)) return undefined;
    const parts: Uint8Array[] = [];
    for (let index = 0; index < Number(count); index++) {
      const subject = this.#partOf(header.get(NONCE_HEADER), index);
      const part = await this.#last(subject, Math.max(until, this.#deadline()));
      if (part === undefined) return undefined;
      parts.push(part.data);
    }
    const value = Buffer.concat(parts);
    return value.length === Number(bytes) && digest(value) === hash ? value : undefined;
  }

  #forget(id: string, sequence: number): void {
    this.#index.delete(id, sequence);
    this.#dropLater(sequence, undefined);
    this.#watches.tell(id);
  }

  /** What is left out here is removed by the broker when it is as old as it keeps any. */
  #dropLater(sequence: number, parts: string | undefined): void {
    if (this.#deletions.length < MOST_DELETIONS)
      this.#deletions.push({ sequence, parts, at: monotonicNow() });
  }

  /** Takes notice of what any replica has written. */
  readonly #hear = (message: JsMsg): void => {
    const id = this.#idOf(message.subject);
    const [collection = "", owner = ""] = id.split(".", 2);
    const head = message.headers;
    const revision = message.seq;
    if (head?.has(DELETED_HEADER)) this.#index.delete(id, revision);
    else {
      const [expiresAt, bytes] = [Number(head?.get(EXPIRES_HEADER)), Number(head?.get(BYTES_HEADER))];
      const parts = head?.has(PARTS_HEADER) ? head.get(NONCE_HEADER) : undefined;
      // Of another version only the place is known; it is counted, for it takes room.
      const known = { expiresAt: expiresAt || this.now() + LONGEST_KEEP_MS, bytes: bytes || 0 };
      const listedKey = listedKeyOf(head);
      this.#index.set(id, { collection, owner, revision, parts, listedKey, ...known });
    }
    this.#watches.tell(id);
  };

  async #followStatus(status: AsyncIterable<{ readonly type: string }>): Promise<void> {
    for await (const { type } of status) {
      if (type === "disconnect") this.#isUp = false;
      if (type !== "reconnect") continue;
      this.#isUp = true;
      this.#upListeners.tell();
      // What changed meanwhile may have been missed.
      this.#watches.tellAll();
      void this.#look().catch(() => {});
    }
  }

  #tick(): void {
    if (!this.#isUp || this.#isClosed) return;
    void this.#look().catch(() => {});
    this.#index.forgetExpired();
    if (monotonicNow() - this.#sweptAt >= (this.#options.sweepMs ?? SWEEP_MS))
      void this.#sweepParts().catch(() => {});
    const due = monotonicNow() - (this.#options.lingerMs ?? LINGER_MS);
    let count = 0;
    while (count < DELETIONS_AT_A_TIME && (this.#deletions[count]?.at ?? Number.POSITIVE_INFINITY) <= due)
      count++;
    for (const { sequence, parts } of this.#deletions.splice(0, count)) {
      this.#dropParts(parts);
      this.#manager?.streams.deleteMessage(this.#stream, sequence, false).catch(() => {});
    }
  }

  /** Removes parts that were without a record at two looks. */
  async #sweepParts(): Promise<void> {
    this.#sweptAt = monotonicNow();
    const filter = `${this.#root}.part.`;
    const { streams } = this.#manager as JetStreamManager;
    const { state } = await streams.info(this.#stream, { subjects_filter: `${filter}>` });
    // While records are counted anew, their parts seem to be nobody's.
    await this.#look();
    if (this.#following === undefined) return;
    const named = this.#index.parts();
    const found = Object.keys(state.subjects ?? {}).map(
      (subject) => subject.slice(filter.length).split(".", 1)[0],
    );
    const orphans = new Set(found.filter((nonce) => nonce !== undefined && !named.has(nonce)) as string[]);
    for (const nonce of orphans) if (this.#orphans.has(nonce)) this.#dropParts(nonce);
    this.#orphans = orphans;
  }

  /** Sees to it that the stream is there and is the one it was; where it is not, what is known of it is forgotten. */
  #look(): Promise<void> {
    this.#looking ??= this.#lookNow().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookNow(): Promise<void> {
    const manager = this.#manager as JetStreamManager;
    const isFirst = this.#id === undefined;
    const id = await (isFirst ? this.#findStream(manager) : this.#readId(manager)).catch(
      async (thrown: unknown) => {
        if (!isMissing(thrown)) throw thrown;
        await ensureStream(manager, this.#config(), {
          max_bytes: STREAM_BYTES,
          num_replicas: this.#options.copies ?? 1,
        });
        return undefined;
      },
    );
    const now = id ?? (await this.#makeId(manager));
    if (now === this.#id && this.#following !== undefined) return;
    if (this.#id !== undefined && now !== this.#id) {
      this.#tell(
        new StateError(
          "wiped",
          "The shared state was emptied at the broker: idempotency keys from before are not known any more, and what they ran may run again.",
        ),
      );
    }
    this.#id = now;
    await this.#follow();
  }

  /**
   * Fails where there is no stream. Another replica may be making it: nats-server 2.9 crashes when it is asked for a message of a stream
   * that is not whole yet, so that a first message is sent before one is read.
   */
  async #findStream({ streams }: JetStreamManager): Promise<undefined> {
    await streams.info(this.#stream);
  }

  async #readId(manager: JetStreamManager): Promise<string | undefined> {
    const subject = `${this.#root}.meta`;
    const found = await manager.streams.getMessage(this.#stream, { last_by_subj: subject });
    if (found === null) return undefined;
    const nonce = found.header.get(NONCE_HEADER);
    // The broker removes what is old: with this message, everything would seem to be gone.
    if (this.now() - found.time.getTime() > LONGEST_KEEP_MS / 2) {
      const expect = { streamName: this.#stream, lastSubjectSequence: found.seq };
      // Another replica may have done so first, and the next look tries again.
      await this.#client
        .publish(subject, new Uint8Array(), { headers: this.#headers(nonce).headers, expect })
        .catch(() => {});
    }
    return nonce;
  }

  /**
   * The stream keeps the first of several. It is there, and may not take messages yet while another replica is making it: the broker then
   * answers as one without JetStream does.
   */
  async #makeId(manager: JetStreamManager): Promise<string | undefined> {
    const { headers: head, nonce } = this.#headers(randomUUID());
    const until = this.#deadline();
    for (let tries = 1; ; tries++) {
      try {
        await this.#client.publish(`${this.#root}.meta`, new Uint8Array(), {
          headers: head,
          expect: { streamName: this.#stream, lastSubjectSequence: 0 },
        });
        return nonce;
      } catch (thrown) {
        if (isWrongSequence(thrown)) return this.#readId(manager);
        if (!isMissing(thrown)) throw thrown;
        if (this.#timeLeft(until) === 0) {
          const message = `The stream ${this.#stream} of the shared state does not take what is written to it.`;
          throw new StateError("unreachable", message, { cause: thrown });
        }
      }
      await pause(Math.min(backoffMs(tries, FIRST_PAUSE_MS, LONGEST_PAUSE_MS), this.#timeLeft(until)));
    }
  }

  #config() {
    return {
      name: this.#stream,
      subjects: [`${this.#root.slice(0, this.#root.lastIndexOf("."))}.>`],
      retention: RetentionPolicy.Limits,
      storage: StorageType.File,
      max_age: nanos(LONGEST_KEEP_MS),
      max_msgs_per_subject: 1,
      discard: DiscardPolicy.New,
    };
  }

  /** A stream that an earlier version made forgets sooner. */
  async #keepLongEnough(): Promise<void> {
    const { streams } = this.#manager as JetStreamManager;
    const { max_age: age } = (await streams.info(this.#stream)).config;
    const wanted = nanos(LONGEST_KEEP_MS);
    if (age !== 0 && age < wanted) await streams.update(this.#stream, { max_age: wanted });
  }

  /** Counts what there is from the beginning, and follows what comes. */
  async #follow(): Promise<void> {
    this.#following?.stop();
    this.#following = undefined;
    this.#index.clear();
    await this.#keepLongEnough();
    const consumer = await this.#client.consumers.get(this.#stream, {
      filter_subjects: `${this.#root}.record.>`,
      headers_only: true,
    });
    let told: () => void = () => {};
    const loaded = new Promise<void>((resolve) => {
      told = resolve;
    });
    // What a message says is pending does not tell: the broker counts those too that are replaced before they are delivered.
    const last = await this.#manager?.streams.getMessage(this.#stream, {
      last_by_subj: `${this.#root}.record.>`,
    });
    const messages = await consumer.consume({
      callback: (message) => {
        this.#hear(message);
        if (message.info.pending === 0 || message.seq >= (last?.seq ?? 0)) told();
      },
    });
    this.#following = messages;
    void messages.closed().then(() => {
      told();
      // Looked for anew with the next look.
      if (this.#following === messages) this.#following = undefined;
    });
    if (last != null) await loaded;
  }
}

/** What another version lists is not listed here: nobody could read it. */
function listedKeyOf(head: MsgHdrs | undefined): string | undefined {
  if (head?.get(VERSION_HEADER) !== String(STATE_VERSION) || !head.has(KEY_HEADER)) return undefined;
  return Buffer.from(head.get(KEY_HEADER), "base64url").toString();
}

function digest(value: Uint8Array): string {
  return createHash("sha256").update(value).digest("base64url");
}

function fullError(): StateError {
  return new StateError("full", "The shared state holds as many records as it may.");
}

/** What the broker answers when a subject has another sequence than expected. */
const WRONG_SEQUENCE: readonly number[] = [10071, 10164];

function isWrongSequence(thrown: unknown): boolean {
  return thrown instanceof JetStreamApiError && WRONG_SEQUENCE.includes(thrown.code);
}

/** Tells whether there is no stream: then nobody answers what is published to it. */
function isMissing(thrown: unknown): boolean {
  if (thrown instanceof JetStreamApiError) return thrown.code === JetStreamApiCodes.StreamNotFound;
  return thrown instanceof Error && thrown.name === "JetStreamNotEnabled";
}
