import { type Identity, ownerOf } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { Executor, SubscribeOptions } from "../../core/registry/executor.ts";
import { digestOf } from "../../http/caller-digest.ts";
import type { AuthenticatedRequest, HttpAnswer } from "../../http/exchange.ts";
import { expired, whenExpired } from "../../http/expiry.ts";
import { EVENTS_TYPE } from "./accept.ts";
import type { GenericCall } from "./batch.ts";
import { type KeptBytes, LiveStream, type StreamLimits } from "./live-stream.ts";
import { noLongerLetIn } from "./no-longer-let-in.ts";
import { requestError } from "./problem-answer.ts";
import { type Warn, warnOfUnexpected } from "./warnings.ts";

/** Bounds of all subscriptions together. */
export interface EventStreamLimits extends StreamLimits {
  readonly streams: number;
  readonly allStreamBytes: number;
}

/** What subscriptions run on, and for whom. */
export interface EventStreamsOptions {
  readonly executor: Executor;
  readonly limits: EventStreamLimits;
  /** Whether callers are told apart: then one has a quarter of all streams. */
  readonly isShared: boolean;
  /** Tells whether somebody who was let in still is. */
  readonly isCurrent: (identity: Identity | undefined) => boolean;
  readonly warn: Warn;
}

/** Of all streams, one caller among others has the fourth part. */
const SHARES = 4;
/** How long an error may take to still be the answer rather than an event, in milliseconds. */
const FIRST_EVENT_MS = 1_000;
const EVENT_ID = /^([A-Za-z0-9_-]{24}):(\d{1,15})$/;

/** What answers with a stream say of themselves; proxies are asked not to hold events back. */
const HEADERS = {
  "content-type": EVENTS_TYPE,
  "cache-control": "no-store",
  "x-accel-buffering": "no",
} as const;

/** The subscriptions that are open, or wait for their client to come back. */
export class EventStreams {
  readonly #options: EventStreamsOptions;
  readonly #streams = new Map<string, LiveStream>();
  /** Bytes of the events of all streams that are kept. */
  readonly #keptBytes: KeptBytes;
  readonly #readers = new WeakMap<LiveStream, Identity>();
  /** What calls off that a stream ends when its reader's token has expired. */
  readonly #expiries = new WeakMap<LiveStream, () => void>();

  constructor(options: EventStreamsOptions) {
    this.#options = options;
    this.#keptBytes = { now: 0, most: options.limits.allStreamBytes };
  }

  /** Starts a subscription; an error that comes before any event is thrown. */
  async start(
    { operationId, input }: Pick<GenericCall, "operationId" | "input">,
    { identity, requestId }: AuthenticatedRequest,
    options: SubscribeOptions,
  ): Promise<HttpAnswer> {
    const { executor, limits, isCurrent, warn } = this.#options;
    if (!isCurrent(identity)) throw noLongerLetIn();
    const caller = ownerOf(identity);
    this.#makeRoom(caller);
    const controller = new AbortController();
    const settings = { ...options, requestId, identity, signal: controller.signal };
    const stream: LiveStream = new LiveStream(
      {
        operationId,
        requestId,
        owner: digestOf(identity),
        caller,
        values: executor.subscribe(operationId, input, settings),
        onError: (error) => warnOfUnexpected(warn, error, { operationId, requestId }),
        abort: (reason) => controller.abort(reason),
        onGone: () => {
          this.#expiries.get(stream)?.();
          this.#streams.delete(stream.id);
        },
      },
      { ...limits, all: this.#keptBytes },
    );
    this.#streams.set(stream.id, stream);
    this.#readBy(stream, identity);
    const error = await stream.begin(FIRST_EVENT_MS);
    if (error === undefined) return toAnswer(operationId, stream, 0);
    stream.drop();
    throw error;
  }

  /** Goes on with a subscription after the event a client saw last. */
  resume(operationId: string, lastEventId: string, { identity }: AuthenticatedRequest): HttpAnswer {
    const [, id = "", sequence = ""] = EVENT_ID.exec(lastEventId) ?? [];
    const stream = this.#streams.get(id);
    if (!stream?.isOf(operationId, digestOf(identity))) {
      const message =
        "This subscription is not known, or no longer; start it again without the last event id.";
      throw requestError("NOT_FOUND", message, { httpStatus: 410 });
    }
    this.#readBy(stream, identity);
    const from = Number(sequence) + 1;
    // What tells clients that reconnect by themselves to stop doing so.
    if (stream.isEndedBefore(from)) return { status: 204, headers: {}, body: undefined };
    if (stream.has(from)) return toAnswer(operationId, stream, from);
    const message = "Events after this one are no longer kept; start again without the last event id.";
    throw requestError("CONFLICT", message);
  }

  /** Ends all of them; whoever reads is told why. */
  end(error: CallError): void {
    for (const stream of this.#streams.values()) stream.end(error);
  }

  #readBy(stream: LiveStream, identity: Identity | undefined): void {
    if (identity === undefined) return;
    this.#expiries.get(stream)?.();
    this.#readers.set(stream, identity);
    this.#expiries.set(
      stream,
      whenExpired(identity, () => stream.end(expired())),
    );
  }

  /** Ends those of callers who are not let in any more. */
  recheck(): void {
    for (const stream of this.#streams.values()) {
      if (!this.#options.isCurrent(this.#readers.get(stream))) stream.end(noLongerLetIn());
    }
  }

  /** Forgets all of them. */
  drop(): void {
    for (const stream of [...this.#streams.values()]) stream.drop();
  }

  /** One that is over gives way, or else the one whose reader left first: of the caller's own where those are as many as it may have. */
  #makeRoom(caller: string): void {
    const { limits, isShared } = this.#options;
    const all = [...this.#streams.values()];
    const own = isShared ? all.filter((stream) => stream.caller === caller) : [];
    const isShareTaken = own.length >= Math.ceil(limits.streams / SHARES) && isShared;
    if (isShareTaken) this.#giveWay(own, "As many of your subscriptions are open as one caller may have.");
    else if (all.length >= limits.streams)
      this.#giveWay(all, "Too many subscriptions are open; try again later.");
  }

  #giveWay(all: readonly LiveStream[], message: string): void {
    const left = all.filter(({ leftAt }) => leftAt !== undefined);
    const [longest] = left.sort((a, b) => (a.leftAt ?? 0) - (b.leftAt ?? 0));
    const given = all.find((stream) => stream.isOver) ?? longest;
    if (given !== undefined) {
      given.drop();
      return;
    }
    throw new CallError("RESOURCE_EXHAUSTED", message, { stack: false });
  }
}

function toAnswer(operationId: string, stream: LiveStream, from: number): HttpAnswer {
  const headers = { ...HEADERS, "waybill-operation": operationId };
  return { status: 200, headers, body: stream.read(from) };
}

/** What a request for the headers of a stream alone is answered with. */
export function headOfStream(operationId: string): HttpAnswer {
  return { status: 200, headers: { ...HEADERS, "waybill-operation": operationId }, body: undefined };
}
