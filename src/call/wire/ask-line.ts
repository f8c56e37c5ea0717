import { CallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import type { Asker, AskLine } from "../bus.ts";
import { noResponder, overLimit, overMessageBytes } from "../call-errors.ts";
import { type AnswerEvent, type AskerEvent, type CallRequested, turnedAway } from "../call-events.ts";
import type { DropReason } from "../call-observer.ts";
import { Assembly, type Chunk, fromChunk, publishChunks } from "./chunks.ts";
import type { Members } from "./members.ts";
import type { PeerLine } from "./peers.ts";
import type { Transport, TransportMessage } from "./transport.ts";
import type { WireHost } from "./wire-bus.ts";
import {
  addressTo,
  checkedMessage,
  decodeMessage,
  encodeMessage,
  encodeValue,
  isChunk,
  toBytes,
  toWireText,
  type WireMessage,
} from "./wire-message.ts";

/** Only the input goes in chunks. */
function headTooLarge(
  { operationId }: CallRequested,
  bytes: number,
  { maxMessageBytes: allowed }: Transport,
): CallError {
  const message = `The request of "${operationId}" takes ${bytes} bytes without its input; the bus carries ${allowed} at a time, so send less metadata.`;
  return overLimit(message, { limit: "maxMessageBytes", allowed, bytes }, false);
}

/** Beats within which the handler of a call must have said so: it does with its own next one. */
const UNKNOWN_BEATS = 4;

/** Milliseconds in which members say that they could take a retry; the broker chooses where none has. */
const SEEK_MS = 250;

/** Once a member that had the call has answered, others get as long again, twice, and no less than this. */
const LEAST_SEEK_MS = 20;

/** Requests that went out in one message. */
export interface SentTogether {
  /** How many wait for a first word; none once somebody took them. */
  open: number;
}

/** Where lines are kept while they are open. */
export interface AskLineHolder {
  readonly members: Members;
  /** What every request begins with. */
  readonly opening: string;
  forget(line: WireAskLine): void;
  /** Somebody took what was sent together. */
  taken(batch: SentTogether): void;
}

/** Members are being asked who could take a retry. */
interface Seeking {
  timer: ReturnType<typeof setTimeout>;
  readonly since: number;
}

/** One call from the asking end. */
export class WireAskLine implements AskLine, PeerLine {
  readonly token: string;
  /** Whether the last word has come. */
  isAnswered = false;
  readonly request: CallRequested;
  /** Bytes of the request, its input included where that goes in chunks; absent where nobody observes a short one. */
  bytes: number | undefined;
  /** The event of the request while it waits for others to be sent with. */
  unsent: string | undefined;
  /** What it was sent with, until it is known that somebody took that. */
  batch: SentTogether | undefined;
  readonly #host: WireHost;
  readonly #lines: AskLineHolder;
  readonly #asker: Asker;
  /** Who runs the call, once known. */
  #peer: string | undefined;
  #input: Uint8Array | undefined;
  #assembly: Assembly | undefined;
  /** Beats since nobody has said that it runs the call. */
  #unknownBeats = 0;
  /** The request while it is to be sent. */
  #head: string | undefined;
  /** Kept while members are asked who could take it. */
  #seeking: Seeking | undefined;
  /** The try before ended without an answer, and no member has said that it had it. */
  #isSuspicious = false;
  /** What it was sent as, while it may have to be sent once more: the member it names may be leaving. */
  #named: string | undefined;

  constructor(host: WireHost, lines: AskLineHolder, token: string, request: CallRequested, asker: Asker) {
    this.#host = host;
    this.#lines = lines;
    this.token = token;
    this.request = request;
    this.#asker = asker;
  }

  /** Gives the request without its input, which is sent once somebody has taken the rest. */
  keepInput(): string {
    const { transport } = this.#host;
    const { input, ...rest } = this.request;
    this.#input = encodeValue(input, "VALIDATION_ERROR");
    const inputBytes = this.#input.length;
    const event = toWireText(rest, "VALIDATION_ERROR");
    const head = `${this.#lines.opening}"inputBytes":${inputBytes},"event":${event}}`;
    const headBytes = toBytes(head).length;
    if (headBytes > transport.maxMessageBytes) throw headTooLarge(this.request, headBytes, transport);
    this.bytes = headBytes + inputBytes;
    return head;
  }

  /** Whether the request may be sent with others, to any member. */
  get mayWait(): boolean {
    const { members } = this.#lines;
    return (members.isEmpty || members.areAllWell(this.request.operationId)) && !this.#isRetry;
  }

  /** Sends the request: a first try to any member that is not left out, a retry to one that has not had the call before. */
  start(head: string): void {
    this.#head = head;
    if (this.#isRetry) {
      const timer = setTimeout(() => this.#dispatch(), SEEK_MS);
      this.#seeking = { timer, since: monotonicNow() };
      this.#isSuspicious = this.#asker.retryOf === "TIMEOUT";
      this.#seek(this.token);
      return;
    }
    const { member, question } = this.#lines.members.choose(this.request.operationId);
    this.#dispatch(member);
    if (question !== undefined) this.#seek(question);
  }

  /** Also where the try before did not run, so that this one is the first again. */
  get #isRetry(): boolean {
    return (this.request.attempt ?? 1) > 1 || this.#asker.retryOf !== undefined;
  }

  get #replyTo(): string {
    return `${this.#host.transport.inbox}.${this.token}`;
  }

  /** Asks members who could take the call; `token` is the last part of where they answer. */
  #seek(token: string): void {
    const { transport, subjects } = this.#host;
    const { operationId, requestId: seek } = this.request;
    const message = encodeMessage({ seek }, "VALIDATION_ERROR");
    transport.publish(subjects.stop(operationId), message, `${transport.inbox}.${token}`);
  }

  /** Every member hears a request that names one, for the broker delivers by operation alone. */
  #dispatch(member?: string): void {
    const head = this.#head;
    if (head === undefined) return;
    this.#stopSeeking();
    const { transport, subjects, peers } = this.#host;
    const { operationId } = this.request;
    const named = member === undefined ? undefined : toBytes(addressTo(head, member));
    if (member === undefined || named === undefined || named.length > transport.maxMessageBytes) {
      transport.publish(subjects.request(operationId), toBytes(head), this.#replyTo);
      return;
    }
    this.#named = head;
    this.#peer = member;
    peers.track(member, this, peers.agreeWith());
    transport.publish(subjects.stop(operationId), named, this.#replyTo);
  }

  #stopSeeking(): void {
    clearTimeout(this.#seeking?.timer);
    this.#seeking = undefined;
    this.#head = undefined;
  }

  /** A member says whether it could take the call. */
  #hearReady(member: string, ready: NonNullable<WireMessage["ready"]>): void {
    const { members } = this.#lines;
    const { operationId } = this.request;
    if (ready === "gone") this.#sendToAnother(member);
    else {
      // It had an earlier try, which failed; a first try it may have taken just now.
      if (ready === "ran" && this.#isRetry) {
        members.leaveOut(operationId, member);
        this.#isSuspicious = false;
      }
      const isWell = ready === "fresh" && members.hear(operationId, member);
      if (this.#seeking === undefined) return;
      if (isWell) this.#dispatch(member);
      else this.#seekNoLonger(this.#seeking);
    }
  }

  #seekNoLonger(seeking: Seeking): void {
    const took = monotonicNow() - seeking.since;
    clearTimeout(seeking.timer);
    seeking.timer = setTimeout(() => this.#dispatch(), Math.max(LEAST_SEEK_MS, 2 * took));
  }

  /** The member that was named takes no more calls; this one has not run. */
  #sendToAnother(member: string): void {
    const head = this.#named;
    if (head === undefined || member !== this.#peer) return;
    this.#host.peers.untrack(member, this);
    this.#peer = undefined;
    this.#named = undefined;
    this.#head = head;
    this.#dispatch();
  }

  send(event: AskerEvent): void {
    // Nobody has heard of the call.
    if (this.unsent !== undefined) return;
    const { transport, subjects } = this.#host;
    const line = this.#replyTo;
    const isKnown = this.#peer !== undefined;
    const isLate = event.type === "call.aborted" && event.reason === "deadline";
    if (isLate && isKnown) this.#lines.members.took(this.request.operationId, this.#peer as string, false);
    const subject = isKnown ? subjects.peer(this.#peer as string) : subjects.stop(this.request.operationId);
    // Until somebody has answered, everybody who may run the call is told.
    if (isKnown || event.type === "call.aborted") {
      transport.publish(subject, encodeMessage({ event, line }, "VALIDATION_ERROR"));
    }
  }

  /** The handler of a call says so with its first beat; one that is not heard of is gone. */
  tick(): void {
    if (this.#peer !== undefined || this.#seeking !== undefined || ++this.#unknownBeats <= UNKNOWN_BEATS)
      return;
    const message = `The service that took "${this.request.operationId}" has not been heard of; it is gone, or cut off.`;
    this.giveUp(new CallError("UNAVAILABLE", message, { stack: false }));
  }

  /** Ends the call from this side, and tells its handler as soon as that can be told. */
  giveUp(error: CallError): void {
    this.send({ type: "call.aborted", requestId: this.request.requestId, reason: "aborted" });
    this.#end(error);
  }

  close(): void {
    this.#lines.forget(this);
    this.unsent = undefined;
    if (this.batch !== undefined) this.#leaveBatch(this.batch);
    if (this.#seeking !== undefined) this.#stopSeeking();
    this.#named = undefined;
    if (this.#isSuspicious) this.#lines.members.suspect(this.request.operationId);
    this.#isSuspicious = false;
    if (this.#peer !== undefined) this.#host.peers.untrack(this.#peer, this);
    this.#input = undefined;
    this.#assembly = undefined;
  }

  /** What nobody waits for any more need not be sent again. */
  #leaveBatch(batch: SentTogether): void {
    this.batch = undefined;
    if (batch.open > 0 && --batch.open === 0) this.#lines.taken(batch);
  }

  /** The handler gives no sign of life; should it come back, it hears that nobody waits any more. */
  lost(error: CallError): void {
    if (this.#peer !== undefined) this.#lines.members.leaveOut(this.request.operationId, this.#peer);
    this.giveUp(error);
  }

  #end(error: CallError): void {
    this.close();
    this.#asker.lost(error);
  }

  hear(message: TransportMessage): void {
    if (message.isUndelivered === true) this.#end(noResponder(this.request.operationId));
    else if (isChunk(message.data)) this.#hearChunk(message.data);
    else if (message.data.length > this.#host.messageBytes) this.#refuse(message.data.length);
    else this.#hearWhole(message.data);
  }

  /** What a message to several calls says for this one. */
  hearEntry(entry: Record<string, unknown>, bytes?: number): void {
    this.#hearDecoded(checkedMessage(entry), bytes);
  }

  #hearWhole(bytes: Uint8Array): void {
    this.#hearDecoded(decodeMessage(bytes), bytes.length);
  }

  #hearDecoded(decoded: WireMessage | DropReason, bytes: number | undefined): void {
    // Only the answer itself ends the call: what cannot be read is counted, and waited past.
    if (typeof decoded === "string") this.#host.counters[decoded]++;
    else this.#take(decoded, bytes);
  }

  #hearChunk(bytes: Uint8Array): void {
    const chunk = fromChunk(bytes);
    if (chunk === undefined) this.#host.counters.malformed++;
    else if (chunk.total > this.#host.messageBytes) this.#refuse(chunk.total);
    else this.#assemble(chunk);
  }

  #assemble(chunk: Chunk): void {
    this.#assembly ??= new Assembly(chunk.total);
    const whole = this.#assembly.add(chunk);
    if (whole === undefined) return;
    this.#assembly = undefined;
    if (whole === false) {
      this.#host.counters.gaps++;
      this.giveUp(new CallError("UNAVAILABLE", "Part of the result was lost on the way.", { stack: false }));
    } else this.#hearWhole(whole);
  }

  #refuse(bytes: number): void {
    const { counters, messageBytes } = this.#host;
    counters.oversized++;
    this.giveUp(overMessageBytes(this.request.operationId, "result", { bytes, allowed: messageBytes }));
  }

  #take({ event, peer, beatMs, taken, ready }: WireMessage, bytes: number | undefined): void {
    if (this.batch !== undefined) {
      if (this.batch.open > 0) this.#lines.taken(this.batch);
      this.batch = undefined;
    }
    if (ready !== undefined) {
      if (peer === undefined) this.#host.counters.malformed++;
      else this.#hearReady(peer, ready);
      return;
    }
    this.#named = undefined;
    if (peer !== undefined && this.#peer === undefined) {
      const { peers } = this.#host;
      this.#peer = peer;
      peers.track(peer, this, peers.agreeWith(beatMs));
    }
    if (event === undefined) {
      if (taken === "send input" && this.#input !== undefined) this.#sendInput(this.#input);
      else if (taken !== "running") this.#host.counters.malformed++;
    } else if (isAnswer(event)) {
      this.isAnswered = isLast(event);
      if (this.#peer !== undefined) this.#judge(event, this.#peer);
      this.#asker.receive(event, bytes);
    } else this.#host.counters.unexpected++;
  }

  /** A member that was named answers, or one says that it cannot do what it is asked. */
  #judge(event: AnswerEvent, peer: string): void {
    const { members } = this.#lines;
    const { operationId } = this.request;
    const why = turnedAway(event);
    if (why !== undefined) members.leaveOut(operationId, peer, why === "full");
    else if (event.type !== "call.progress") members.took(operationId, peer, true);
  }

  #sendInput(input: Uint8Array): void {
    const { transport, subjects } = this.#host;
    this.#input = undefined;
    if (this.#peer === undefined) return;
    publishChunks(transport, subjects.peer(this.#peer), this.#replyTo, input);
  }
}

function isLast(event: AnswerEvent): boolean {
  return event.type === "call.responded" ? event.sequence === undefined : event.type !== "call.progress";
}

function isAnswer(event: NonNullable<WireMessage["event"]>): event is AnswerEvent {
  return event.type !== "call.requested" && event.type !== "call.credit";
}
