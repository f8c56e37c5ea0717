import { CallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/deadline.ts";
import type { Asker, AskLine } from "../bus.ts";
import type { DropReason } from "../call-counters.ts";
import { noResponder, tooLarge } from "../call-errors.ts";
import { type AnswerEvent, type AskerEvent, type CallRequested, isUnavailable } from "../call-events.ts";
import { Assembly, type Chunk, fromChunk, isChunk, publishChunks } from "./chunk.ts";
import type { Members } from "./members.ts";
import type { PeerLine } from "./peers.ts";
import type { TransportMessage } from "./transport.ts";
import type { WireHost } from "./wire-host.ts";
import {
  addressTo,
  checkedMessage,
  decodeMessage,
  encodeMessage,
  encodeValue,
  type WireMessage,
} from "./wire-message.ts";

/** Beats in which whoever runs a call must have said so: it does with its own next one. */
const UNKNOWN_BEATS = 4;

/** Milliseconds in which members say that they could take a retry; the broker chooses where none has. */
const SEEK_MS = 250;

/** Once a member that had the call has answered, others get as long again, twice, and no less than this. */
const LEAST_SEEK_MS = 20;

/** Where lines are kept while they are open. */
export interface AskLineHolder {
  readonly members: Members;
  forget(line: WireAskLine): void;
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
  /** Bytes of the request, its input included where that goes in chunks. */
  bytes = 0;
  readonly #host: WireHost;
  readonly #lines: AskLineHolder;
  readonly #request: CallRequested;
  readonly #asker: Asker;
  /** Who runs the call, once known. */
  #peer: string | undefined;
  #input: Uint8Array | undefined;
  #assembly: Assembly | undefined;
  /** Beats since nobody has said that it runs the call. */
  #unknownBeats = 0;
  /** The request while it is to be sent. */
  #head: Uint8Array | undefined;
  /** Kept while members are asked who could take it. */
  #seeking: Seeking | undefined;
  /** What it was sent as, while it may have to be sent once more: the member it names may be leaving. */
  #named: Uint8Array | undefined;

  constructor(host: WireHost, lines: AskLineHolder, token: string, request: CallRequested, asker: Asker) {
    this.#host = host;
    this.#lines = lines;
    this.token = token;
    this.#request = request;
    this.#asker = asker;
  }

  /** Gives the request without its input, which is sent once somebody has taken the rest. */
  keepInput(): Uint8Array {
    const { input, ...rest } = this.#request;
    this.#input = encodeValue(input, "VALIDATION_ERROR");
    const inputBytes = this.#input.length;
    const { ownBeat } = this.#host.peers;
    const head = encodeMessage({ event: rest, beats: true, ...ownBeat, inputBytes }, "VALIDATION_ERROR");
    this.bytes = head.length + inputBytes;
    return head;
  }

  /** Sends the request: a first try to any member that is not left out, a retry to one that has not had the call before. */
  start(head: Uint8Array): void {
    this.#head = head;
    if (this.#isRetry) {
      const timer = setTimeout(() => this.#dispatch(), SEEK_MS);
      this.#seeking = { timer, since: monotonicNow() };
      this.#seek();
      return;
    }
    const choice = this.#lines.members.choose(this.#request.operationId);
    this.#dispatch(typeof choice === "string" ? undefined : choice.member);
    if (choice === "unknown") this.#seek();
  }

  get #isRetry(): boolean {
    return (this.#request.attempt ?? 1) > 1;
  }

  get #replyTo(): string {
    return `${this.#host.transport.inbox}.${this.token}`;
  }

  #seek(): void {
    const { transport, subjects } = this.#host;
    const { operationId, requestId: seek } = this.#request;
    transport.publish(subjects.stop(operationId), encodeMessage({ seek }, "VALIDATION_ERROR"), this.#replyTo);
  }

  /** Every member hears a request that names one, for the broker delivers by operation alone. */
  #dispatch(member?: string): void {
    const head = this.#head;
    if (head === undefined) return;
    this.#stopSeeking();
    const { transport, subjects, peers } = this.#host;
    const { operationId } = this.#request;
    const named = member === undefined ? undefined : addressTo(head, member);
    if (member === undefined || named === undefined || named.length > transport.maxMessageBytes) {
      transport.publish(subjects.request(operationId), head, this.#replyTo);
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
    const { operationId } = this.#request;
    if (ready === "gone") this.#sendToAnother(member);
    else {
      // It had an earlier try, which failed; a first try it may have taken just now.
      if (ready === "ran" && this.#isRetry) members.leaveOut(operationId, member);
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
    const { transport, subjects } = this.#host;
    const line = this.#replyTo;
    const isKnown = this.#peer !== undefined;
    const subject = isKnown ? subjects.peer(this.#peer as string) : subjects.stop(this.#request.operationId);
    // Until somebody has answered, everybody who may run the call is told.
    if (isKnown || event.type === "call.aborted") {
      transport.publish(subject, encodeMessage({ event, line }, "VALIDATION_ERROR"));
    }
  }

  /** Whoever runs a call says so with its first beat; one of whom nothing is heard is gone. */
  tick(): void {
    if (this.#peer !== undefined || this.#seeking !== undefined || ++this.#unknownBeats <= UNKNOWN_BEATS)
      return;
    const message = `Whoever took "${this.#request.operationId}" has not been heard of; it is gone, or cut off.`;
    this.giveUp(new CallError("UNAVAILABLE", message, { stack: false }));
  }

  /** Ends the call from this side, and tells whoever runs it as soon as that can be told. */
  giveUp(error: CallError): void {
    this.send({ type: "call.aborted", requestId: this.#request.requestId, reason: "aborted" });
    this.#end(error);
  }

  close(): void {
    this.#lines.forget(this);
    this.#stopSeeking();
    this.#named = undefined;
    if (this.#peer !== undefined) this.#host.peers.untrack(this.#peer, this);
    this.#input = undefined;
    this.#assembly = undefined;
  }

  /** Whoever runs the call gives no sign of life; should it come back, it hears that nobody waits any more. */
  lost(error: CallError): void {
    if (this.#peer !== undefined) this.#lines.members.leaveOut(this.#request.operationId, this.#peer);
    this.giveUp(error);
  }

  #end(error: CallError): void {
    this.close();
    this.#asker.lost(error);
  }

  hear(message: TransportMessage): void {
    if (message.isUndelivered === true) this.#end(noResponder(this.#request.operationId));
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
    this.giveUp(tooLarge(this.#request.operationId, "result", bytes, messageBytes));
  }

  #take({ event, peer, beatMs, taken, ready }: WireMessage, bytes: number | undefined): void {
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
      if (isUnavailable(event) && this.#peer !== undefined)
        this.#lines.members.leaveOut(this.#request.operationId, this.#peer);
      this.#asker.receive(event, bytes);
    } else this.#host.counters.unexpected++;
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
