import { CallError } from "../../core/errors/errors.ts";
import type { Asker, AskLine } from "../bus.ts";
import type { DropReason } from "../call-counters.ts";
import { noResponder, tooLarge } from "../call-errors.ts";
import type { AnswerEvent, AskerEvent, CallRequested } from "../call-events.ts";
import { Assembly, type Chunk, fromChunk, isChunk, publishChunks } from "./chunk.ts";
import type { PeerLine } from "./peers.ts";
import type { TransportMessage } from "./transport.ts";
import type { WireHost } from "./wire-host.ts";
import {
  checkedMessage,
  decodeMessage,
  encodeMessage,
  encodeValue,
  type WireMessage,
} from "./wire-message.ts";

/** Beats in which whoever runs a call must have said so: it does with its own next one. */
const UNKNOWN_BEATS = 4;

/** Where lines are kept while they are open. */
export interface AskLineHolder {
  forget(line: WireAskLine): void;
}

/** One call from the asking end. */
export class WireAskLine implements AskLine, PeerLine {
  readonly token: string;
  /** Whether the last word has come. */
  isAnswered = false;
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
    return encodeMessage({ event: rest, beats: true, inputBytes: this.#input.length }, "VALIDATION_ERROR");
  }

  send(event: AskerEvent): void {
    const { transport, subjects } = this.#host;
    const line = `${transport.inbox}.${this.token}`;
    const isKnown = this.#peer !== undefined;
    const subject = isKnown ? subjects.peer(this.#peer as string) : subjects.stop(this.#request.operationId);
    // Until somebody has answered, everybody who may run the call is told.
    if (isKnown || event.type === "call.aborted") {
      transport.publish(subject, encodeMessage({ event, line }, "VALIDATION_ERROR"));
    }
  }

  /** Whoever runs a call says so with its first beat; one of whom nothing is heard is gone. */
  tick(): void {
    if (this.#peer !== undefined || ++this.#unknownBeats <= UNKNOWN_BEATS) return;
    const message = `Whoever took "${this.#request.operationId}" has not been heard of; it is gone, or cut off.`;
    this.giveUp(new CallError("UNAVAILABLE", message, { stack: false }));
  }

  /** Ends the call from this side, and tells whoever runs it as soon as that can be told. */
  giveUp(error: CallError): void {
    this.send({ type: "call.aborted", requestId: this.#request.requestId, reason: "aborted" });
    this.lost(error);
  }

  close(): void {
    this.#lines.forget(this);
    if (this.#peer !== undefined) this.#host.peers.untrack(this.#peer, this);
    this.#input = undefined;
    this.#assembly = undefined;
  }

  lost(error: CallError): void {
    this.close();
    this.#asker.lost(error);
  }

  hear(message: TransportMessage): void {
    if (message.isUndelivered === true) this.lost(noResponder(this.#request.operationId));
    else if (isChunk(message.data)) this.#hearChunk(message.data);
    else if (message.data.length > this.#host.messageBytes) this.#refuse(message.data.length);
    else this.#hearWhole(message.data);
  }

  /** What a message to several calls says for this one. */
  hearEntry(entry: Record<string, unknown>): void {
    this.#hearDecoded(checkedMessage(entry));
  }

  #hearWhole(bytes: Uint8Array): void {
    this.#hearDecoded(decodeMessage(bytes));
  }

  #hearDecoded(decoded: WireMessage | DropReason): void {
    // Only the answer itself ends the call: what cannot be read is counted, and waited past.
    if (typeof decoded === "string") this.#host.counters[decoded]++;
    else this.#take(decoded);
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

  #take({ event, peer, taken }: WireMessage): void {
    if (peer !== undefined && this.#peer === undefined) {
      this.#peer = peer;
      this.#host.peers.track(peer, this);
    }
    if (event === undefined) {
      if (taken === "send input" && this.#input !== undefined) this.#sendInput(this.#input);
      else if (taken !== "running") this.#host.counters.malformed++;
    } else if (isAnswer(event)) {
      this.isAnswered = isLast(event);
      this.#asker.receive(event);
    } else this.#host.counters.unexpected++;
  }

  #sendInput(input: Uint8Array): void {
    const { transport, subjects } = this.#host;
    this.#input = undefined;
    if (this.#peer === undefined) return;
    publishChunks(transport, subjects.peer(this.#peer), `${transport.inbox}.${this.token}`, input);
  }
}

function isLast(event: AnswerEvent): boolean {
  return event.type === "call.responded" ? event.sequence === undefined : event.type !== "call.progress";
}

function isAnswer(event: NonNullable<WireMessage["event"]>): event is AnswerEvent {
  return event.type !== "call.requested" && event.type !== "call.credit";
}
