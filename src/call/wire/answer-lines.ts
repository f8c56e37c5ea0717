import { CallError } from "../../core/errors/errors.ts";
import { isRequestId } from "../../core/execution/call-context.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import type { Answerer, AnswerLine, Delivery, MemberFacts, Membership, Route, Take } from "../bus.ts";
import { overLimit, overMessageBytes, toCallErrorPayload } from "../call-errors.ts";
import {
  type AnswerEvent,
  type AskerEvent,
  type CallCredit,
  type CallRequested,
  turnedAway,
} from "../call-events.ts";
import { RecentIds } from "../recent-ids.ts";
import { Assembly, type Chunk, fromChunk, publishWhole } from "./chunks.ts";
import { BEAT_MS, type PeerLine, peerAt } from "./peers.ts";
import { isReplyToken } from "./reply-batches.ts";
import { NOBODY, namedUser, QUEUE } from "./subjects.ts";
import type { TransportMessage } from "./transport.ts";
import type { WireHost } from "./wire-bus.ts";
import {
  checkedMessage,
  decodeBatch,
  decodeMessage,
  decodeValue,
  EMPTY_BATCH,
  encodeMessage,
  entryBytes,
  isChunk,
  MOST_REQUESTS,
  toAnswerText,
  toBytes,
  toMessageText,
  toWireText,
  type WireMessage,
} from "./wire-message.ts";

/** Bytes of inputs that are still on their way, as a multiple of the largest one allowed. */
const UPLOADS_IN_MEMORY = 8;

/** Subscriptions that have ended, whose readers may have granted more before they heard. */
const ENDED_STREAMS = 10_000;

interface Member {
  readonly take: Take;
  readonly facts: MemberFacts | undefined;
  isLeaving: boolean;
}

/** The answering half of a bus on a transport: a line to the caller for every request that arrives. */
export class AnswerLines implements AnswerLineHolder {
  readonly #host: WireHost;
  readonly #lines = new Map<string, WireAnswerLine>();
  /** What is to be done when all of some lines are over. */
  readonly #waiting = new Set<{ readonly open: Set<WireAnswerLine>; readonly then: () => void }>();
  readonly #endedStreams = new RecentIds(ENDED_STREAMS);
  /** Introduces this side to callers who expect that sooner than with its next beat. */
  #introducing: ReturnType<typeof setTimeout> | undefined;
  #introducingMs = Number.POSITIVE_INFINITY;
  #uploading = 0;
  #isReachable = false;

  constructor(host: WireHost) {
    this.#host = host;
  }

  get size(): number {
    return this.#lines.size;
  }

  async join(route: Route, take: Take, facts?: MemberFacts): Promise<Membership> {
    const { transport, subjects } = this.#host;
    const member: Member = { take, facts, isLeaving: false };
    this.#beReachable();
    const requests = transport.subscribe(
      subjects.route("call", route),
      (message) => this.#hearRequest(message, take),
      QUEUE,
    );
    // Where the broker does not let this side listen here, requests come one by one.
    const batches = transport.subscribe(
      subjects.routes(route),
      (message) => this.#hearBatch(message, take),
      QUEUE,
    );
    const stops = transport.subscribe(subjects.route("stop", route), (message) =>
      this.#hearStop(message, member),
    );
    await transport.flush();
    const { refusal } = requests;
    if (refusal !== undefined) {
      requests.stop();
      batches.stop();
      stops.stop();
      const what = "namespace" in route ? `the namespace "${route.namespace}"` : `"${route.operationId}"`;
      throw new CallError("ACCESS_DENIED", `The broker does not let this side answer ${what}.`, {
        cause: refusal,
      });
    }
    return {
      leave: async () => {
        member.isLeaving = true;
        await Promise.all([requests.drain(), batches.drain()]);
        // Calls taken before may still be given up by their callers.
        this.#whenOver(() => stops.stop());
      },
    };
  }

  /** Introduces this side to callers who have been waiting for a while, so that both notice when the other is gone. */
  tick(): void {
    for (const line of this.#lines.values()) line.tick();
  }

  /** The connection is lost, and what streams said last may be. Calls go on: there is still an answer to give. */
  loseStreams(): void {
    for (const line of [...this.#lines.values()]) line.loseStream();
  }

  loseAll(): void {
    clearTimeout(this.#introducing);
    for (const line of [...this.#lines.values()]) line.lost();
  }

  forget(line: WireAnswerLine): void {
    if (!this.#lines.delete(line.replyTo)) return;
    if (line.isEndedStream) this.#endedStreams.add(line.replyTo);
    for (const waiting of this.#waiting) {
      if (!waiting.open.delete(line) || waiting.open.size > 0) continue;
      this.#waiting.delete(waiting);
      waiting.then();
    }
  }

  reserve(bytes: number): boolean {
    if (this.#uploading + bytes > UPLOADS_IN_MEMORY * this.#host.messageBytes) return false;
    this.#uploading += bytes;
    return true;
  }

  /** Calls back when every line that is open now is over. */
  #whenOver(then: () => void): void {
    if (this.#lines.size === 0) then();
    else this.#waiting.add({ open: new Set(this.#lines.values()), then });
  }

  /** Not before there is something to answer: who only asks needs no right to hear this. */
  #beReachable(): void {
    if (this.#isReachable) return;
    this.#isReachable = true;
    const { transport, subjects, peers } = this.#host;
    transport.subscribe(subjects.peer(peers.ownAddress), (message) => this.#hearPeer(message));
  }

  #hearRequest(message: TransportMessage, take: Take): void {
    const decoded = decodeMessage(message.data);
    if (typeof decoded !== "string") this.#hearDecoded(message, decoded, take);
    else {
      this.#host.counters[decoded]++;
      if (message.replyTo !== undefined) this.#explainDrop(message.replyTo, requestIdIn(message.data));
    }
  }

  #hearDecoded({ subject, data, replyTo }: TransportMessage, decoded: WireMessage, take: Take): void {
    if (replyTo === undefined || this.#host.subjects.isOwn(replyTo)) this.#host.counters.malformed++;
    else this.#hearOne({ subject, replyTo, bytes: data.length, said: decoded }, decoded, take);
  }

  /** Several requests of one caller, or the question whether there may be such. One that cannot be read spoils no other. */
  #hearBatch({ subject, data, replyTo }: TransportMessage, take: Take): void {
    const { counters, subjects, transport, observers, messageBytes } = this.#host;
    const batch = decodeBatch(data);
    const dot = replyTo?.lastIndexOf(".") ?? -1;
    if (batch === undefined || replyTo === undefined || dot < 1 || subjects.isOwn(replyTo)) {
      counters.malformed++;
      return;
    }
    const { said, entries } = batch;
    if (entries.length > MOST_REQUESTS) counters.oversized++;
    else if (entries.length === 0) transport.publish(replyTo, EMPTY_BATCH);
    else {
      const isMeasured = observers.size > 0 || data.length > messageBytes;
      const inbox = replyTo.slice(0, dot + 1);
      for (let at = 0; at < entries.length; at++) {
        const entry = entries[at];
        const token = (entry as { readonly line?: unknown } | null | undefined)?.line;
        if (!isReplyToken(token)) counters.malformed++;
        else {
          const bytes = isMeasured ? entryBytes(batch, at, token) : undefined;
          this.#hearEntry(
            entry as Record<string, unknown>,
            { subject, replyTo: inbox + token, bytes, said },
            take,
          );
        }
      }
    }
  }

  #hearEntry(entry: Record<string, unknown>, arrival: Arrival, take: Take): void {
    const decoded = checkedMessage(entry);
    if (typeof decoded !== "string") this.#hearOne(arrival, decoded, take);
    else {
      this.#host.counters[decoded]++;
      this.#explainDrop(arrival.replyTo, requestIdOf(entry));
    }
  }

  #hearOne(arrival: Arrival, { event, inputBytes }: WireMessage, take: Take): void {
    const { counters, subjects } = this.#host;
    if (event?.type !== "call.requested") counters.unexpected++;
    else if (!subjects.isFor(arrival.subject, event.operationId)) counters.forged++;
    else if (this.#lines.has(arrival.replyTo)) counters.duplicate++;
    else this.#open(arrival, event, inputBytes, take);
  }

  /** The sender of something unreadable is told, by the path it gave itself, if it can be read who that is. */
  #explainDrop(replyTo: string, requestId: string | undefined): void {
    const { subjects, transport } = this.#host;
    if (requestId === undefined || subjects.isOwn(replyTo)) return;
    const error = new CallError("VALIDATION_ERROR", "The request is not one this service understands.", {
      stack: false,
    });
    const event = { type: "call.error", requestId, error: toCallErrorPayload(error) } as const;
    transport.publish(replyTo, encodeMessage({ event }, "OUTPUT_INVALID"));
  }

  #open(arrival: Arrival, request: CallRequested, inputBytes: number | undefined, take: Take): void {
    const { replyTo, said, bytes } = arrival;
    const { subjects, peers, messageBytes } = this.#host;
    const user = namedUser(subjects.userOf(arrival.subject));
    const delivery = { request, user, bytes: bytes === undefined ? undefined : bytes + (inputBytes ?? 0) };
    const line = new WireAnswerLine(this.#host, this, replyTo, said, delivery, take);
    this.#lines.set(replyTo, line);
    if (said.beats === true && peers.isSlowFor(said.beatMs)) this.#introduceIn(said.beatMs);
    if (inputBytes !== undefined) line.askForInput(inputBytes);
    else if (bytes !== undefined && bytes > messageBytes) line.askForInput(bytes);
    else line.deliver();
  }

  /** What every member of a route hears: that a call is given up, who could take one, and requests for one of them. */
  #hearStop(message: TransportMessage, { take, facts, isLeaving }: Member): void {
    const decoded = isChunk(message.data) ? undefined : decodeMessage(message.data);
    const { seek, to } = typeof decoded === "object" ? decoded : {};
    if (typeof decoded !== "object" || message.replyTo === undefined || (seek ?? to) === undefined) {
      this.#hearPeer(message);
    } else if (seek !== undefined) {
      if (!isLeaving) this.#answerReady(message.replyTo, facts?.hasRun(seek) === true ? "ran" : "fresh");
    } else if (to !== this.#host.peers.ownAddress) return;
    else if (isLeaving) this.#answerReady(message.replyTo, "gone");
    else this.#hearDecoded(message, decoded, take);
  }

  #answerReady(replyTo: string, ready: NonNullable<WireMessage["ready"]>): void {
    const { counters, subjects, transport, replies, peers } = this.#host;
    if (subjects.isOwn(replyTo)) counters.malformed++;
    else {
      replies.flush();
      const said = { ready, peer: peers.ownAddress, ...peers.ownBeat };
      transport.publish(replyTo, encodeMessage(said, "OUTPUT_INVALID"));
    }
  }

  /** Anything for a call under way that does not come as a request. */
  #hearPeer(message: TransportMessage): void {
    const { counters } = this.#host;
    if (isChunk(message.data)) {
      const chunk = fromChunk(message.data);
      if (chunk === undefined) counters.malformed++;
      else this.#find(chunk.key)?.hearChunk(chunk);
      return;
    }
    const decoded = decodeMessage(message.data);
    if (typeof decoded === "string") counters[decoded]++;
    else if (decoded.event?.type !== "call.aborted" && decoded.event?.type !== "call.credit")
      counters.unexpected++;
    else this.#hearAsker(decoded.event, decoded.line);
  }

  #hearAsker(event: AskerEvent, replyTo: string | undefined): void {
    const line = this.#find(replyTo);
    if (line !== undefined) line.receive(event);
    else if (event.type === "call.credit" && replyTo !== undefined) this.#refuseCredit(event, replyTo);
  }

  /** A reader that grants more to a subscription which is gone waits for nothing, and is told. */
  #refuseCredit({ requestId }: CallCredit, replyTo: string): void {
    const { counters, subjects, transport, replies } = this.#host;
    if (subjects.isOwn(replyTo)) counters.malformed++;
    else if (!this.#endedStreams.has(replyTo)) {
      const event = { type: "call.aborted", requestId, reason: "disconnected" } as const;
      replies.flush();
      transport.publish(replyTo, encodeMessage({ event }, "OUTPUT_INVALID"));
    }
  }

  #introduceIn(beatMs: number = BEAT_MS): void {
    if (beatMs >= this.#introducingMs) return;
    clearTimeout(this.#introducing);
    this.#introducingMs = beatMs;
    this.#introducing = setTimeout(() => {
      this.#introducingMs = Number.POSITIVE_INFINITY;
      for (const line of this.#lines.values()) line.introduce();
    }, beatMs);
    (this.#introducing as { unref?: () => void }).unref?.();
  }

  /** A call given up is told to everybody who may run it, so that one which is not here says nothing. */
  #find(replyTo: string | undefined): WireAnswerLine | undefined {
    if (replyTo === undefined) this.#host.counters.malformed++;
    return this.#lines.get(replyTo ?? "");
  }
}

/** How a request arrived. */
interface Arrival {
  readonly subject: string;
  /** The reply path of the call. */
  readonly replyTo: string;
  /** Absent where nobody needs to know. */
  readonly bytes: number | undefined;
  /** What the message it came in says of its caller. */
  readonly said: Pick<WireMessage, "beats" | "beatMs">;
}

/** The request id in something that is no request. */
function requestIdIn(bytes: Uint8Array): string | undefined {
  try {
    return requestIdOf(decodeValue(bytes));
  } catch {
    return undefined;
  }
}

function requestIdOf(said: unknown): string | undefined {
  const { event } = said as { readonly event?: { readonly requestId?: unknown } };
  return isRequestId(event?.requestId) ? event.requestId : undefined;
}

/** Bytes that the smallest input on its way counts for, so that there are not too many of them either. */
const LEAST_UPLOAD = 4_096;

/** Beats an input may make no progress for, and milliseconds it may take in all. */
const UPLOAD_BEATS = 4;
const UPLOAD_MS = 30_000;

/** Where lines are kept while they are open. */
export interface AnswerLineHolder {
  forget(line: WireAnswerLine): void;
  /** Takes room for an input that is on its way; gives it back with a negative number. */
  reserve(bytes: number): boolean;
}

/** What is left of the request of a call that is over. */
const OVER: Delivery = { request: { type: "call.requested", requestId: "", operationId: "" } };

/** One call from the answering end, from the arrival of its request on. */
export class WireAnswerLine implements AnswerLine, PeerLine {
  readonly replyTo: string;
  sentBytes: number | undefined;
  readonly #host: WireHost;
  readonly #lines: AnswerLineHolder;
  /** Whether the caller gives signs of life, and how often both can. */
  readonly #beats: boolean;
  readonly #beatMs: number;
  readonly #take: Take;
  #delivery: Delivery;
  #answerer: Answerer | undefined;
  #upload: Assembly | undefined;
  #uploadBytes = 0;
  #openedAt = 0;
  #idleSince = 0;
  #isIntroduced = false;
  #isOpen = true;
  #isLost = false;

  constructor(
    host: WireHost,
    lines: AnswerLineHolder,
    replyTo: string,
    { beats, beatMs }: Pick<WireMessage, "beats" | "beatMs">,
    delivery: Delivery,
    take: Take,
  ) {
    this.#host = host;
    this.#lines = lines;
    this.replyTo = replyTo;
    this.#beats = beats === true;
    this.#beatMs = host.peers.agreeWith(this.#beats ? beatMs : 0);
    this.#delivery = delivery;
    this.#take = take;
  }

  /** The last word of a subscription was said, or its reader left: what it still grants needs no answer. */
  get isEndedStream(): boolean {
    return this.#delivery.request.credit !== undefined && !this.#isLost;
  }

  deliver(): void {
    // The reader of a stream waits without end, and has to know whom to grant more.
    if (this.#delivery.request.credit !== undefined && !this.#isIntroduced) this.#introduce("running");
    const answerer = this.#take(this.#delivery, this);
    if (this.#isOpen) this.#answerer = answerer;
  }

  /** Room is taken before anything is sent. */
  askForInput(bytes: number): void {
    const { messageBytes, counters } = this.#host;
    const { operationId } = this.#delivery.request;
    const room = Math.max(bytes, Math.min(LEAST_UPLOAD, messageBytes));
    if (bytes > messageBytes) {
      counters.oversized++;
      this.refuse(overMessageBytes(operationId, "request", { bytes, allowed: messageBytes }));
    } else if (!this.#lines.reserve(room)) {
      counters.overLimit++;
      const message = `Too many large inputs are on their way to the service; try "${operationId}" again later.`;
      this.refuse(overLimit(message, { limit: "messageBytes", allowed: messageBytes }));
    } else {
      this.#openedAt = monotonicNow();
      this.#idleSince = this.#openedAt;
      this.#uploadBytes = room;
      this.#upload = new Assembly(bytes);
      this.#introduce("send input");
    }
  }

  hearChunk(chunk: Chunk): void {
    if (this.#upload === undefined) {
      this.#host.counters.duplicate++;
      return;
    }
    this.#idleSince = monotonicNow();
    const input = this.#upload.add(chunk);
    if (input === undefined) return;
    this.#endUpload();
    if (input === false) this.#refuseUpload("gaps");
    else this.#deliverWith(input);
  }

  receive(event: AskerEvent): void {
    if (this.#answerer !== undefined) this.#answerer.receive(event);
    // Given up before it was all here.
    else if (event.type === "call.aborted") this.close();
  }

  reply(event: AnswerEvent): void {
    this.sentBytes = undefined;
    if (!this.#isOpen) return;
    const { transport, messageBytes, replies, observers } = this.#host;
    // The caller may want to leave out a member that cannot do what it is asked.
    const isTurnedAway = event.type === "call.error" && turnedAway(event) !== undefined;
    const text = isTurnedAway
      ? toWireText({ event, peer: this.#host.peers.ownAddress }, "OUTPUT_INVALID").slice(1)
      : toAnswerText(event);
    if (this.#beats && replies.add(this.replyTo, text)) {
      if (observers.size > 0) this.sentBytes = toBytes(toMessageText(text)).length;
      return;
    }
    const bytes = toBytes(toMessageText(text));
    if (bytes.length > messageBytes) {
      const { operationId } = this.#delivery.request;
      throw overMessageBytes(operationId, "result", { bytes: bytes.length, allowed: messageBytes });
    }
    replies.flush();
    publishWhole(transport, this.replyTo, "", bytes);
    this.sentBytes = bytes.length;
  }

  refuse(error: CallError): void {
    const { requestId } = this.#delivery.request;
    this.reply({ type: "call.error", requestId, error: toCallErrorPayload(error), notRun: true });
    this.close();
  }

  flush(): Promise<void> {
    this.#host.replies.flush();
    return this.#host.transport.flush();
  }

  close(): void {
    this.#isOpen = false;
    this.#lines.forget(this);
    this.#endUpload();
    if (this.#isIntroduced && this.#beats) this.#host.peers.untrack(this.#caller, this);
    // The table of lines keeps those it once held for a while: see `LinkedSet`.
    this.#answerer = undefined;
    this.#delivery = OVER;
  }

  /** Says who runs the call, unless that is known. */
  introduce(): void {
    if (!this.#isIntroduced) this.#introduce("running");
  }

  tick(): void {
    if (!this.#isIntroduced) this.#introduce("running");
    else if (this.#upload !== undefined && this.#isUploadOver()) this.#refuseUpload("gaps");
  }

  /** Nobody runs the call yet, so that no deadline ends it. */
  #isUploadOver(): boolean {
    const { timeLeftMs = UPLOAD_MS } = this.#delivery.request;
    const now = monotonicNow();
    const isIdle = now - this.#idleSince > UPLOAD_BEATS * this.#beatMs;
    return isIdle || now - this.#openedAt > Math.min(timeLeftMs, UPLOAD_MS);
  }

  /** A reader that cannot know what it missed is told to begin again. */
  loseStream(): void {
    if (this.#delivery.request.credit !== undefined) this.lost();
  }

  /** The caller gives no sign of life, or this side goes: should the caller still be there, it hears that nobody goes on. */
  lost(): void {
    const answerer = this.#answerer;
    this.reply({ type: "call.aborted", requestId: this.#delivery.request.requestId, reason: "disconnected" });
    this.#isLost = true;
    this.close();
    answerer?.lost();
  }

  get #caller(): string {
    return peerAt(this.replyTo, this.#delivery.user ?? NOBODY);
  }

  #introduce(taken: NonNullable<WireMessage["taken"]>): void {
    const { transport, peers, replies } = this.#host;
    this.#isIntroduced = true;
    replies.flush();
    if (this.#beats) peers.track(this.#caller, this, this.#beatMs);
    const said = { taken, peer: peers.ownAddress, ...peers.ownBeat };
    transport.publish(this.replyTo, encodeMessage(said, "OUTPUT_INVALID"));
  }

  #deliverWith(bytes: Uint8Array): void {
    try {
      const input = decodeValue(bytes);
      const { request } = this.#delivery;
      const { timeLeftMs } = request;
      // What the input took to arrive is gone.
      const left = timeLeftMs && { timeLeftMs: Math.max(0, timeLeftMs - (monotonicNow() - this.#openedAt)) };
      this.#delivery = { ...this.#delivery, request: { ...request, input, ...left } };
      this.deliver();
    } catch {
      this.#refuseUpload("malformed");
    }
  }

  /** Nothing has run: the same request may work when it is sent again. */
  #refuseUpload(reason: "gaps" | "malformed"): void {
    this.#host.counters[reason]++;
    const [code, message] =
      reason === "gaps"
        ? (["UNAVAILABLE", "Part of the input was lost on the way."] as const)
        : (["VALIDATION_ERROR", "The input did not arrive as it was announced."] as const);
    this.refuse(new CallError(code, message, { stack: false }));
  }

  #endUpload(): void {
    if (this.#upload === undefined) return;
    this.#upload = undefined;
    this.#lines.reserve(-this.#uploadBytes);
  }
}
