import { setTimeout as pause } from "node:timers/promises";
import type {
  JetStreamClient,
  JetStreamManager,
  MsgRequest,
  StoredMsg,
  StreamConfig,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Identity } from "../../../core/access/identity.ts";
import { CallError, isCallError } from "../../../core/errors/errors.ts";
import { monotonicNow } from "../../../core/execution/cancellation.ts";
import { backoffMs } from "../../../core/limits/backoff.ts";
import type { Delivery } from "../../bus.ts";
import { createCounters, type LiveCounters } from "../../call-observer.ts";
import { type CallLimits, type CredentialSource, readCallLimits } from "../../call-options.ts";
import {
  DiscardPolicy,
  errors,
  headers,
  JetStreamApiCodes,
  JetStreamApiError,
  jetstream,
  jetstreamManager,
  nanos,
  RetentionPolicy,
  StorageType,
} from "../nats-packages.ts";
import { DurableNames } from "./durable-codec.ts";

/** Names who wrote a message, so that one whose acknowledgement was lost is known again. */
export const NONCE_HEADER = "Waybill-Nonce";

/** Holds the request id of a stored request. */
export const REQUEST_ID_HEADER = "Waybill-Request-Id";

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
      // What `ensureStreams` itself has to say is for the author of the options.
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

  /** The first message of a subject, which may have wildcards, from a sequence number on. */
  next(
    stream: string,
    { subject, from }: { readonly subject: string; readonly from: number },
    until: number,
  ): Promise<StoredMsg | undefined> {
    // The broker knows this, and the types of the client do not.
    const query = { seq: from, next_by_subj: subject } as unknown as MsgRequest;
    return this.#try(until, () => this.#get(stream, query));
  }

  /** The message of a sequence number. */
  at(stream: string, sequence: number, until: number): Promise<StoredMsg | undefined> {
    return this.#try(until, () => this.#get(stream, { seq: sequence }));
  }

  /** Whether the stream of requests has a consumer of that name. */
  async hasConsumer(name: string): Promise<boolean> {
    try {
      await this.manager.consumers.info(this.names.calls, name);
      return true;
    } catch (thrown) {
      if (thrown instanceof JetStreamApiError && thrown.code === JetStreamApiCodes.ConsumerNotFound)
        return false;
      throw toStoreError(thrown);
    }
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
    for (let tries = 1; ; tries++) {
      const left = until - monotonicNow();
      if (left <= 0) throw toStoreError(last);
      try {
        return await attempt(Math.min(left, ATTEMPT_MS));
      } catch (thrown) {
        if (isFinal(thrown)) throw toStoreError(thrown);
        last = thrown;
      }
      const wait = backoffMs(tries, FIRST_PAUSE_MS, LONGEST_PAUSE_MS);
      await pause(Math.min(wait, Math.max(0, until - monotonicNow())));
    }
  }
}

type Config = Pick<
  StreamConfig,
  | "name"
  | "subjects"
  | "retention"
  | "storage"
  | "num_replicas"
  | "max_age"
  | "duplicate_window"
  | "max_msgs_per_subject"
  | "discard"
  | "discard_new_per_subject"
  | "max_bytes"
>;

/** The answers to creating a stream that is there with other settings, or whose subjects are taken. */
const MADE_ALREADY: ReadonlySet<number> = new Set([10058, 10065]);
/** How long a stream that somebody else is making may stay invisible: attempts, and the pause between them. */
const RACE_ATTEMPTS = 20;
const RACE_PAUSE_MS = 50;

/** Makes both streams where they are missing; an `Error` names what is different in one that is there. */
async function ensureStreams(
  manager: JetStreamManager,
  names: DurableNames,
  settings: DurableSettings,
): Promise<void> {
  await ensureStream(manager, configOf(names.calls, names.callSubjects, settings));
  await ensureStream(manager, configOf(names.results, names.resultSubjects, settings));
}

/** One message a subject, the first: the broker itself sees to it that neither requests nor results ever change. */
function configOf(name: string, subjects: string, settings: DurableSettings): Omit<Config, "max_bytes"> {
  return {
    name,
    subjects: [subjects],
    retention: RetentionPolicy.Limits,
    storage: settings.storage === "file" ? StorageType.File : StorageType.Memory,
    num_replicas: settings.replicas,
    max_age: nanos(settings.keepMs),
    duplicate_window: nanos(settings.duplicateWindowMs),
    max_msgs_per_subject: 1,
    discard: DiscardPolicy.New,
    discard_new_per_subject: true,
  };
}

/** Makes a stream where it is missing, with what counts for a new one alone; an `Error` names what is different in one that is there. */
export async function ensureStream<T extends Partial<Config> & Pick<Config, "name">>(
  manager: JetStreamManager,
  wanted: T,
  first: Partial<Config> = {},
): Promise<void> {
  const found =
    (await findStream(manager, wanted.name)) ?? (await addStream(manager, { ...first, ...wanted }));
  for (const field of Object.keys(wanted) as (keyof Config)[]) {
    if (JSON.stringify(found[field]) === JSON.stringify(wanted[field])) continue;
    throw new Error(
      `The stream "${wanted.name}" is there with another ${field}: ${JSON.stringify(found[field])} ` +
        `instead of ${JSON.stringify(wanted[field])}. Give every side the same options, or change the stream.`,
    );
  }
}

async function findStream(manager: JetStreamManager, name: string): Promise<StreamConfig | undefined> {
  try {
    return (await manager.streams.info(name)).config;
  } catch (thrown) {
    if (thrown instanceof JetStreamApiError && thrown.code === JetStreamApiCodes.StreamNotFound) {
      return undefined;
    }
    throw thrown;
  }
}

async function addStream(
  manager: JetStreamManager,
  wanted: Partial<Config> & Pick<Config, "name">,
): Promise<StreamConfig> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return (await manager.streams.add(wanted)).config;
    } catch (thrown) {
      if (!(thrown instanceof JetStreamApiError) || !MADE_ALREADY.has(thrown.code)) throw thrown;
      const found = await findStream(manager, wanted.name);
      if (found !== undefined) return found;
      // Either somebody else is making it and it cannot be seen yet, or another stream holds the subjects.
      if (attempt === RACE_ATTEMPTS) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, RACE_PAUSE_MS));
    }
  }
}

/** What the broker answers when a subject has its one message already, or the stream has no room for more. */
const FULL_STREAM = 10077;
const NOT_TAKEN_IN: readonly number[] = [10071, 10164, FULL_STREAM];

/** Out of memory, storage or streams, in the account or altogether. */
const EXHAUSTED: readonly number[] = [10002, 10023, 10026, 10027, 10028, 10047];

/** Tells whether the broker refused a message because of those it has. */
function isNotTakenIn(thrown: unknown): boolean {
  return thrown instanceof JetStreamApiError && NOT_TAKEN_IN.includes(thrown.code);
}

/** Tells whether the broker has no room for a message, whichever it is. */
export function isExhausted(thrown: unknown): boolean {
  return (
    thrown instanceof JetStreamApiError && (EXHAUSTED.includes(thrown.code) || thrown.code === FULL_STREAM)
  );
}

/** Tells whether the broker does not let this user do something; its client wraps what it says about a subject. */
export function isForbidden(thrown: unknown): boolean {
  const said = thrown instanceof errors.RequestError ? thrown.cause : thrown;
  return said instanceof errors.PermissionViolationError;
}

/** Tells whether trying again at once would be answered in the same way. */
function isFinal(thrown: unknown): boolean {
  if (isCallError(thrown)) return true;
  return (
    isForbidden(thrown) ||
    thrown instanceof errors.ClosedConnectionError ||
    thrown instanceof errors.DrainingConnectionError ||
    (thrown instanceof JetStreamApiError && thrown.status < 500) ||
    (thrown instanceof JetStreamApiError && EXHAUSTED.includes(thrown.code))
  );
}

/** Turns what the client of the broker throws into a `CallError`. */
export function toStoreError(thrown: unknown): CallError {
  if (isCallError(thrown)) return thrown;
  const options = { cause: thrown, stack: false };
  if (isForbidden(thrown)) {
    return new CallError(
      "ACCESS_DENIED",
      "The broker does not let this user store or read the call.",
      options,
    );
  }
  if (thrown instanceof JetStreamApiError && EXHAUSTED.includes(thrown.code)) return storeFull(thrown);
  return new CallError("UNAVAILABLE", "The broker that keeps durable calls cannot be reached.", options);
}

/** The error for a broker that has no room left. */
function storeFull(cause: unknown): CallError {
  const message = "The broker has no room for another durable call.";
  return new CallError("RESOURCE_EXHAUSTED", message, { cause, stack: false });
}

/**
 * Reads who asks from a stored request; nothing for an anonymous caller. `at` is when the broker stored it: a token that was
 * good then may have expired by the time it runs. A thrown `CallError` that is retryable lets the request be delivered again;
 * anything else thrown ends the call as not authenticated.
 */
export type AuthenticateStored = (
  delivery: Delivery,
  at: Date,
) => Identity | undefined | Promise<Identity | undefined>;

/** What both sides of durable calls have to agree on. */
export interface DurableOptions {
  /** First token of every subject, and in capitals of both streams. @default "waybill" */
  readonly prefix?: string | undefined;
  /** Milliseconds that requests and results are kept. @default 24 hours */
  readonly keepMs?: number | undefined;
  /** Milliseconds in which an idempotency key stands for the same call; at most `keepMs`. @default 2 hours, or `keepMs` */
  readonly duplicateWindowMs?: number | undefined;
  /** Where the broker keeps requests and results; memory does not survive its restart. @default "file" */
  readonly storage?: "file" | "memory" | undefined;
  /** Copies in a cluster of brokers, 1 to 5. @default 1 */
  readonly replicas?: number | undefined;
  readonly limits?: Partial<CallLimits> | undefined;
}

/** How durable calls are asked for. */
export interface DurableCallsOptions extends DurableOptions {
  /** The user that the broker's permissions bind this side to. @default "_" */
  readonly user?: string | undefined;
  /** Makes the signed token that says who is asking. */
  readonly credentials?: CredentialSource | undefined;
}

/** How durable calls are answered. */
export interface DurableWorkerOptions extends DurableOptions {
  /** @default everybody is anonymous */
  readonly authenticate?: AuthenticateStored | undefined;
  /**
   * Milliseconds without a sign of life after which a request is delivered to another worker; the same for all workers of an
   * operation. @default 30 seconds
   */
  readonly ackWaitMs?: number | undefined;
  /** Deliveries of one request, the last of which only stores that it was given up. @default 10 */
  readonly maxDeliver?: number | undefined;
  /** Requests of one operation that run here at a time. @default 16 */
  readonly concurrency?: number | undefined;
}

/** The shared options with their defaults filled in. */
interface DurableSettings {
  readonly prefix: string;
  readonly keepMs: number;
  readonly duplicateWindowMs: number;
  readonly storage: "file" | "memory";
  readonly replicas: number;
  readonly limits: CallLimits;
}

const HOUR_MS = 3_600_000;
/** The broker takes no shorter times. */
const SHORTEST_MS = 100;
const LONGEST_MS = 10 * 365 * 24 * HOUR_MS;
const TOKEN = /^[A-Za-z0-9_-]{1,64}$/;

/** Fills in the defaults; a `TypeError` names the option that makes no sense. */
export function readDurableOptions(options: DurableOptions = {}): DurableSettings {
  const { prefix = "waybill", keepMs = 24 * HOUR_MS, storage = "file", replicas = 1 } = options;
  assertToken("prefix", prefix);
  assertWhole("keepMs", keepMs, [SHORTEST_MS, LONGEST_MS]);
  const { duplicateWindowMs = Math.min(2 * HOUR_MS, keepMs) } = options;
  assertWhole("duplicateWindowMs", duplicateWindowMs, [SHORTEST_MS, keepMs]);
  assertWhole("replicas", replicas, [1, 5]);
  if (storage !== "file" && storage !== "memory") throw new TypeError('storage must be "file" or "memory".');
  return { prefix, keepMs, duplicateWindowMs, storage, replicas, limits: readCallLimits(options.limits) };
}

/** Throws unless the text can be one token of a subject and part of a name. */
export function assertToken(name: string, value: unknown): asserts value is string {
  if (typeof value === "string" && TOKEN.test(value)) return;
  throw new TypeError(`${name} must be 1 to 64 letters, digits, "_" or "-".`);
}

/** Throws unless a number is whole and within its bounds. */
export function assertWhole(
  name: string,
  value: number,
  [least, most]: readonly [least: number, most: number],
): void {
  if (Number.isInteger(value) && value >= least && value <= most) return;
  throw new TypeError(`${name} must be a whole number from ${least} to ${most}.`);
}
