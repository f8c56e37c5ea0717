import { type Identity, ownerOf } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import type { Executor, SubscribeOptions } from "../../core/registry/executor.ts";
import { warnOfUnexpected } from "../../core/result/ended-call.ts";
import { callerDigest, expired, whenExpired } from "../../http/caller.ts";
import type { AuthenticatedRequest, HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import { accessRefusal, type CallRunner, type GenericCall } from "./call-runner.ts";
import { type KeptBytes, LiveStream, type StreamLimits } from "./live-stream.ts";
import { problemAnswer, requestError, type Warn } from "./problem-answer.ts";
import { accessChanged, type PostedBodies, readPatience, readReserved } from "./read-request.ts";
import { type OperationRoute, readQuery } from "./route-table.ts";
import { readShared, type SharedStreamName, type SharedStreams, SharedWriter } from "./shared-streams.ts";
import { EVENTS_TYPE, type Negotiation } from "./write-answer.ts";

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
  readonly negotiation: Negotiation;
  readonly runner: Pick<CallRunner, "metadata">;
  readonly bodies: PostedBodies;
  /** What replicas share of subscriptions. @default nothing */
  readonly shared?: SharedStreams | undefined;
}

/** Of all streams, one caller among others has the fourth part. */
const SHARES = 4;
/** How long an error may take to still be the answer rather than an event, in milliseconds. */
const FIRST_EVENT_MS = 1_000;
const EVENT_ID = /^((?:([0-9a-f]{8})-)?[A-Za-z0-9_-]{24}):(\d{1,15})$/;

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

  /** Answers a request for the address of a subscription. */
  async answer(route: OperationRoute, caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const { request } = caller;
    const { id } = route.operation;
    const { rest, lastEventId } = readReserved(request.query);
    this.#options.negotiation.checkEvents(request.header("accept"));
    if (request.method === "HEAD") {
      const refusal = accessRefusal(this.#options.executor, route.operation, caller.identity);
      if (refusal !== undefined) throw refusal;
      return headOfStream(id);
    }
    const last = lastEventOf(request, lastEventId);
    if (last !== "") return this.#resume(id, last, caller);
    if (route.place.place === "body") {
      const { value } = await this.#options.bodies.read(caller);
      return this.#start({ operationId: id, input: value }, caller);
    }
    const { input } = readQuery(rest, route.place.parameters);
    return this.#start({ operationId: id, input }, caller);
  }

  /** Answers a subscription that is called like anything else. */
  async answerCall(call: GenericCall, caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const { request } = caller;
    this.#options.negotiation.checkEvents(request.header("accept"));
    const last = lastEventOf(request, readReserved(request.query).lastEventId);
    if (last === "") return this.#start(call, caller);
    const answer = await this.#resume(call.operationId, last, caller);
    if (answer.heldBy === undefined) return answer;
    const body = Buffer.from(JSON.stringify({ operation: call.operationId }));
    return { ...answer, heldBy: { ...answer.heldBy, body } };
  }

  #start(call: GenericCall, caller: AuthenticatedRequest): Promise<HttpAnswer> {
    const { timeoutMs: ownMs = Number.POSITIVE_INFINITY } = call;
    const patience = Math.min(readPatience(caller.request, ownMs), ownMs);
    const timeoutMs = Number.isFinite(patience) ? patience : undefined;
    const metadata = this.#options.runner.metadata(caller);
    return this.#open(call, caller, {
      metadata,
      isWhole: readReserved(caller.request.query).format === "envelope",
      ...(timeoutMs !== undefined && { timeoutMs }),
    });
  }

  /** Starts a subscription; an error that comes before any event is thrown. */
  async #open(
    { operationId, input }: Pick<GenericCall, "operationId" | "input">,
    { identity, requestId }: AuthenticatedRequest,
    { isWhole = false, ...options }: SubscribeOptions & { readonly isWhole?: boolean },
  ): Promise<HttpAnswer> {
    const { executor, limits, isCurrent, warn, shared } = this.#options;
    if (!isCurrent(identity)) throw accessChanged();
    const caller = ownerOf(identity);
    let writer: SharedWriter | undefined;
    this.#makeRoom(caller);
    const controller = new AbortController();
    const settings = { ...options, requestId, identity, signal: controller.signal };
    const stream: LiveStream = new LiveStream(
      {
        operationId,
        requestId,
        owner: callerDigest(identity),
        caller,
        values: executor.subscribe(operationId, input, settings),
        isWhole,
        ...(shared !== undefined && {
          replica: shared.replica,
          onKept: (sequence, text) => writer?.keep(sequence, text),
          onOver: () => writer?.end(),
        }),
        onError: (error) => warnOfUnexpected(warn, error, { operationId, requestId }),
        abort: (reason) => controller.abort(reason),
        onGone: () => {
          this.#expiries.get(stream)?.();
          this.#streams.delete(stream.id);
          writer?.end();
        },
      },
      { ...limits, all: this.#keptBytes },
    );
    this.#streams.set(stream.id, stream);
    if (shared !== undefined) writer = new SharedWriter(shared.log, nameOf(stream.id, operationId, identity));
    this.#readBy(stream, identity);
    const error = await stream.begin(FIRST_EVENT_MS);
    if (error === undefined) return toAnswer(operationId, stream, 0);
    stream.drop();
    throw error;
  }

  /** Goes on with a subscription after the event a client saw last. */
  #resume(operationId: string, lastEventId: string, caller: AuthenticatedRequest): HttpAnswer {
    const { identity } = caller;
    const [, id = "", replica, sequence = ""] = EVENT_ID.exec(lastEventId) ?? [];
    const from = Number(sequence) + 1;
    const stream = this.#streams.get(id);
    if (!stream?.isOf(operationId, callerDigest(identity))) {
      const { shared } = this.#options;
      const isElsewhere = shared !== undefined && replica !== undefined && replica !== shared.replica;
      if (!isElsewhere || caller.request.isLed === true) throw unknown();
      const otherwise = (isGone: boolean) =>
        this.#resumeShared({ operationId, id, from, isGone, log: shared.log }, caller);
      return { ...elsewhere(caller.requestId), heldBy: { replica, otherwise } };
    }
    this.#readBy(stream, identity);
    // What tells clients that reconnect by themselves to stop doing so.
    if (stream.isEndedBefore(from)) return { status: 204, headers: {}, body: undefined };
    if (stream.has(from)) return toAnswer(operationId, stream, from);
    const message = "Events after this one are no longer kept; start again without the last event id.";
    throw requestError("CONFLICT", message);
  }

  /** Gives what is kept of a subscription whose replica cannot be reached. */
  async #resumeShared(
    { operationId, id, from, isGone, log }: SharedResume,
    { identity, requestId }: AuthenticatedRequest,
  ): Promise<HttpAnswer> {
    const leaving = new AbortController();
    const name = nameOf(id, operationId, identity);
    const found = await log.find(name, from - 1, leaving.signal).catch(() => undefined);
    if (found === undefined) return isGone ? problemAnswer(unknown(), requestId) : elsewhere(requestId);
    if (found.isOver) return { status: 204, headers: {}, body: undefined };
    const cancelExpiry = whenExpired(identity, () => leaving.abort());
    leaving.signal.addEventListener("abort", cancelExpiry, { once: true });
    const body = readShared(found, id, { from, requestId, leaving });
    return { status: 200, headers: { ...HEADERS, "waybill-operation": operationId }, body };
  }

  /** Ends all of them; their readers are told why. */
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
      if (!this.#options.isCurrent(this.#readers.get(stream))) stream.end(accessChanged());
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

interface SharedResume {
  readonly operationId: string;
  readonly id: string;
  /** The event that comes next. */
  readonly from: number;
  readonly isGone: boolean;
  readonly log: SharedStreams["log"];
}

/** Names a subscription for all replicas: who may take it up is part of the name. */
function nameOf(stream: string, operationId: string, identity: Identity | undefined): SharedStreamName {
  return { owner: ownerOf(identity), session: `${operationId} ${callerDigest(identity)}`, stream };
}

function unknown(): CallError {
  const message = "This subscription is not known, or no longer; start it again without the last event id.";
  return requestError("NOT_FOUND", message, { httpStatus: 410 });
}

/** What is said where the replica that runs a subscription cannot be asked now. */
function elsewhere(requestId: string): HttpAnswer {
  const message = "This subscription began at another replica of the server; try again later.";
  return problemAnswer(requestError("UNAVAILABLE", message), requestId, { "retry-after": "1" });
}

function toAnswer(operationId: string, stream: LiveStream, from: number): HttpAnswer {
  const headers = { ...HEADERS, "waybill-operation": operationId };
  return { status: 200, headers, body: stream.read(from) };
}

/** What a request for the headers of a stream alone is answered with. */
function headOfStream(operationId: string): HttpAnswer {
  return { status: 200, headers: { ...HEADERS, "waybill-operation": operationId }, body: undefined };
}

function lastEventOf(request: HttpRequest, inQuery: string | undefined): string {
  return request.header("last-event-id") ?? inQuery ?? "";
}
