import { createHash, randomBytes } from "node:crypto";
import { createInbox } from "../../call/nats/nats-packages.ts";
import { RecentIds } from "../../call/recent-ids.ts";
import { addAbortListener, removeAbortListener } from "../../core/execution/cancellation.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import type { SealingKeys } from "../../mcp/server/sealing-keys.ts";
import type { BrokerConnection, BrokerMessage, SharedBroker } from "../state/gateway-state.ts";
import { type Led, LedReader } from "./led-reader.ts";
import { LedAnswer, type TakenRequest } from "./led-request.ts";
import {
  cutBytes,
  FRAME_BYTES,
  fromReplica,
  LED_LIMITS,
  type LinkFrame,
  openFrame,
  type SentFrame,
  sealFrame,
  toReplica,
} from "./link-frames.ts";

/** What a link stands on. */
export interface ReplicaLinkOptions {
  /** Names this replica. */
  readonly replica: string;
  /** What no replica of this gateway has sealed is not heard; looked at with every message. */
  readonly keys: () => SealingKeys;
  /** Answers a request that another replica has brought, as if it had come by itself. */
  handle(request: HttpRequest): Promise<HttpAnswer>;
  readonly onWarning: (message: string, cause?: unknown) => void;
}

/** A request that goes to another replica. */
export interface LedAsk extends TakenRequest {
  readonly body: Uint8Array;
  /** Whose it is. */
  readonly owner: string;
}

/** Of those that go out, one caller has the fourth part. */
const SHARES = 4;
const MOST_PARTS = 1_000;
/** Requests that were brought here lately: a copy of one is not answered. */
const REMEMBERED = 10_000;
/** What the broker says where nobody listens to a subject. */
const NO_RESPONDERS = 503;

interface FramePlace {
  readonly subject: string;
  /** What the frame is sealed for. */
  readonly context: string;
  /** Where the other side answers. @default it does not */
  readonly reply?: string;
}

interface Coming {
  readonly answer: LedAnswer;
  bytes: number;
}

/**
 * Brings requests to the replica that holds what they are about, and answers those that others bring. All that goes over the broker is sealed
 * with the key of the replicas; who asks is found out by the replica that answers, as with any request.
 *
 *     {prefix}.replica.{space}.{replica}     requests, and what becomes of their readers
 *     {inbox}.{id}                           the answer to one, in frames
 */
export class ReplicaLink {
  readonly #connection: BrokerConnection;
  readonly #options: ReplicaLinkOptions;
  readonly #root: string;
  readonly #inbox: string;
  readonly #subscriptions: { unsubscribe(): void }[] = [];
  readonly #out = new Map<
    string,
    { readonly reader: LedReader; readonly replica: string; sequence: number }
  >();
  readonly #owners = new Map<string, number>();
  readonly #in = new Map<string, Coming>();
  readonly #seen = new RecentIds(REMEMBERED);
  #comingBytes = 0;
  #isClosed = false;

  constructor({ connection, space, inboxPrefix }: SharedBroker, options: ReplicaLinkOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#root = `waybill.replica.${createHash("sha256").update(space).digest("base64url").slice(0, 22)}`;
    this.#inbox = createInbox(inboxPrefix);
  }

  /** Resolves once others can bring requests here. */
  async start(): Promise<void> {
    const { replica } = this.#options;
    this.#subscribe(`${this.#root}.${replica}`, (message) => this.#hear(message));
    this.#subscribe(`${this.#inbox}.*`, (message) => this.#hearAnswer(message));
    await this.#connection.flush();
  }

  /** How many requests are led, each way. */
  get running(): { readonly out: number; readonly in: number } {
    return { out: this.#out.size, in: this.#in.size };
  }

  /** Brings a request to a replica, and gives what came of it. */
  async lead(replica: string, ask: LedAsk, signal: AbortSignal): Promise<Led> {
    const { body, owner, ...taken } = ask;
    if (this.#isClosed || this.#connection.isClosed()) return { state: "unreachable" };
    const own = this.#owners.get(owner) ?? 0;
    const share = owner === "" ? LED_LIMITS.requests : LED_LIMITS.requests / SHARES;
    if (this.#out.size >= LED_LIMITS.requests || own >= share) return { state: "full" };
    const id = randomBytes(16).toString("base64url");
    const reply = `${this.#inbox}.${id}`;
    const to = { subject: `${this.#root}.${replica}`, context: toReplica(replica), reply };
    const send = (head: LinkFrame["head"], bytes?: Uint8Array): void =>
      this.#publish(to, { head: { id, ...head }, bytes });
    const reader = new LedReader({
      more: (takenBytes) => send({ kind: "more", taken: takenBytes }),
      leave: () => send({ kind: "leave" }),
      onEnd: () => {
        this.#out.delete(id);
        const left = (this.#owners.get(owner) ?? 0) - 1;
        if (left > 0) this.#owners.set(owner, left);
        else this.#owners.delete(owner);
        removeAbortListener(signal, listener);
      },
    });
    const listener = { onAbort: () => reader.leave() };
    this.#out.set(id, { reader, replica, sequence: 0 });
    this.#owners.set(owner, own + 1);
    const headBytes = Buffer.byteLength(JSON.stringify(taken));
    const most = this.#mostBytes - headBytes;
    if (most < FRAME_BYTES) {
      reader.fail();
      return { state: "full" };
    }
    const parts = cutBytes(body, most);
    for (const [index, bytes] of parts.entries()) {
      send(index === 0 ? { kind: "ask", parts: parts.length, ...taken } : { kind: "part", index }, bytes);
    }
    if (signal.aborted) reader.leave();
    else addAbortListener(signal, listener);
    return await reader.led;
  }

  /** Ends what is led, in both directions. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    for (const { answer } of [...this.#in.values()]) answer.fail();
    for (const { reader } of [...this.#out.values()]) reader.leave();
    this.#isClosed = true;
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    // What was said last is to leave this process.
    if (!this.#connection.isClosed()) await this.#connection.flush().catch(() => {});
  }

  /** Bytes that one frame carries. */
  get #mostBytes(): number {
    return Math.min(this.#connection.info?.max_payload ?? 1_048_576, 1_048_576) - FRAME_BYTES;
  }

  #subscribe(subject: string, hear: (message: BrokerMessage) => void): void {
    const { onWarning } = this.#options;
    const callback = (error: Error | null, message: BrokerMessage): void => {
      if (error === null) hear(message);
      else onWarning("The broker does not let this replica hear from others.", error);
    };
    this.#subscriptions.push(this.#connection.subscribe(subject, { callback }));
  }

  #publish({ subject, context, reply }: FramePlace, frame: SentFrame): void {
    if (this.#isClosed || this.#connection.isClosed()) return;
    const sealed = sealFrame(this.#options.keys(), context, frame);
    try {
      this.#connection.publish(subject, sealed, reply === undefined ? {} : { reply });
    } catch (thrown) {
      this.#options.onWarning("Another replica could not be told something.", thrown);
    }
  }

  /** Hears a frame of the answer to a request of this replica. */
  #hearAnswer(message: BrokerMessage): void {
    const id = message.subject.slice(this.#inbox.length + 1);
    const asked = this.#out.get(id);
    if (asked === undefined) return;
    if (message.data.length === 0 && message.headers?.code === NO_RESPONDERS) {
      asked.reader.fail();
      return;
    }
    const place = fromReplica(asked.replica, id, asked.sequence);
    const frame = openFrame(this.#options.keys(), place, message.data);
    // One that is not the next is none of the answer: somebody else's, or a copy.
    if (frame === undefined) return;
    asked.sequence += 1;
    asked.reader.take(frame);
  }

  /** Hears what another replica brings. */
  #hear({ data, reply }: BrokerMessage): void {
    const frame = openFrame(this.#options.keys(), toReplica(this.#options.replica), data);
    if (frame === undefined || reply === undefined) return;
    const { id, kind } = frame.head;
    if (typeof id !== "string") return;
    if (kind === "ask") {
      if (this.#seen.add(id)) this.#open(id, frame, reply);
      return;
    }
    const coming = this.#in.get(id);
    if (coming === undefined) return;
    if (kind === "part") this.#take(coming, Number(frame.head["index"]), frame.bytes);
    else if (kind === "more") coming.answer.more(Number(frame.head["taken"]));
    else if (kind === "leave") coming.answer.leave();
  }

  #open(id: string, { head, bytes }: LinkFrame, reply: string): void {
    const { replica } = this.#options;
    let sequence = 0;
    const send = (said: LinkFrame["head"], sent?: Uint8Array): void =>
      this.#publish(
        { subject: reply, context: fromReplica(replica, id, sequence++) },
        { head: said, bytes: sent },
      );
    const taken = readTaken(head);
    const parts = Number(head["parts"]);
    const isWhole = Number.isInteger(parts) && parts >= 1 && parts <= MOST_PARTS;
    if (taken === undefined || !isWhole || this.#in.size >= LED_LIMITS.requests) {
      send({ kind: "full" });
      return;
    }
    const link = this;
    const answer = new LedAnswer(taken, parts, {
      get mostBytes() {
        return link.#mostBytes;
      },
      send,
      onEnd: () => {
        const coming = this.#in.get(id);
        this.#in.delete(id);
        this.#comingBytes -= coming?.bytes ?? 0;
      },
    });
    const coming = { answer, bytes: 0 };
    this.#in.set(id, coming);
    send({ kind: "taken" });
    this.#take(coming, 0, bytes);
  }

  #take(coming: Coming, index: number, bytes: Uint8Array): void {
    coming.bytes += bytes.length;
    this.#comingBytes += bytes.length;
    const request = coming.answer.take(index, bytes);
    if (request === undefined) {
      if (this.#comingBytes > LED_LIMITS.bytes) coming.answer.fail();
      return;
    }
    this.#comingBytes -= coming.bytes;
    coming.bytes = 0;
    this.#options
      .handle(request)
      .then((answer) => coming.answer.answer(answer))
      .catch((thrown: unknown) => {
        this.#options.onWarning("A request of another replica could not be answered.", thrown);
        coming.answer.fail();
      });
  }
}

/** Reads a request that a replica with the same key has written, be it of another version. */
function readTaken(head: LinkFrame["head"]): TakenRequest | undefined {
  const { method, path, query, origin, headers } = head;
  const isRight =
    [method, path, query, origin].every((text) => typeof text === "string") &&
    isPlainObject(headers) &&
    Object.values(headers).every((value) => typeof value === "string");
  if (!isRight) return undefined;
  return { method, path, query, origin, headers } as TakenRequest;
}
