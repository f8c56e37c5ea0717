import { CallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/deadline.ts";
import type { Answerer, AnswerLine, Delivery, Take } from "../bus.ts";
import { overLimit, toErrorPayload, tooLarge } from "../call-errors.ts";
import { type AnswerEvent, type AskerEvent, isUnavailable } from "../call-events.ts";
import { Assembly, type Chunk, publishWhole } from "./chunk.ts";
import { type PeerLine, peerAt } from "./peers.ts";
import { NOBODY } from "./subjects.ts";
import type { WireHost } from "./wire-host.ts";
import {
  decodeValue,
  encodeMessage,
  toBytes,
  toMessageText,
  toText,
  type WireMessage,
} from "./wire-message.ts";

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
      this.refuse(tooLarge(operationId, "request", bytes, messageBytes));
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
    const peer = isUnavailable(event) ? { peer: this.#host.peers.ownAddress } : undefined;
    const text = toText({ event, ...peer }, "OUTPUT_INVALID");
    if (this.#beats && replies.add(this.replyTo, text)) {
      if (observers.size > 0) this.sentBytes = toBytes(toMessageText(text)).length;
      return;
    }
    const bytes = toBytes(toMessageText(text));
    if (bytes.length > messageBytes) {
      throw tooLarge(this.#delivery.request.operationId, "result", bytes.length, messageBytes);
    }
    replies.flush();
    publishWhole(transport, this.replyTo, "", bytes);
    this.sentBytes = bytes.length;
  }

  refuse(error: CallError): void {
    const { requestId } = this.#delivery.request;
    this.reply({ type: "call.error", requestId, error: toErrorPayload(error) });
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
