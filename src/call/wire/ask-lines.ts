import { CallError } from "../../core/errors/errors.ts";
import type { Asker, AskLine } from "../bus.ts";
import type { LiveCounters } from "../call-counters.ts";
import { noResponder, overLimit } from "../call-errors.ts";
import type { AnswerEvent, AskerEvent, CallRequested } from "../call-events.ts";
import { RecentIds } from "../recent-ids.ts";
import { Assembly, type Chunk, fromChunk, isChunk, publishChunks } from "./chunk.ts";
import type { PeerLine, Peers } from "./peers.ts";
import type { Subjects } from "./subjects.ts";
import type { Transport, TransportMessage } from "./transport.ts";
import { decodeMessage, encodeMessage, encodeValue, type WireMessage } from "./wire-message.ts";

/** Settled calls whose late answers are told from forged ones. */
const REMEMBERED_LINES = 10_000;

/** What both halves of a bus work with. */
export interface WireHost {
  readonly transport: Transport;
  readonly subjects: Subjects;
  readonly peers: Peers;
  readonly counters: LiveCounters;
  /** Bytes of one event at most. */
  readonly messageBytes: number;
  /** Services that are known at a time. */
  readonly services: number;
}

/** The asking half of a bus on a transport: every call has a reply path of its own, which cannot be guessed. */
export class AskLines {
  readonly #host: WireHost;
  readonly #lines = new Map<string, WireAskLine>();
  readonly #closed = new RecentIds(REMEMBERED_LINES);

  constructor(host: WireHost) {
    this.#host = host;
    const { transport } = host;
    transport.subscribe(`${transport.inbox}.*`, (message) => this.#hear(message));
  }

  get size(): number {
    return this.#lines.size;
  }

  request(request: CallRequested, asker: Asker): AskLine {
    const { transport, subjects } = this.#host;
    if (!transport.isConnected) {
      throw new CallError("UNAVAILABLE", "The bus is not connected; nothing was sent.", { stack: false });
    }
    const { messageBytes } = this.#host;
    const line = new WireAskLine(this.#host, this, crypto.randomUUID(), request, asker);
    const bytes = encodeMessage({ event: request, beats: true }, "VALIDATION_ERROR");
    if (bytes.length > messageBytes)
      throw tooLarge(request.operationId, "request", bytes.length, messageBytes);
    this.#lines.set(line.token, line);
    const replyTo = `${transport.inbox}.${line.token}`;
    try {
      const head = bytes.length <= transport.maxMessageBytes ? bytes : line.keepInput();
      if (head.length > transport.maxMessageBytes) throw headTooLarge(request, head, transport);
      transport.publish(subjects.request(request.operationId), head, replyTo);
    } catch (thrown) {
      this.forget(line);
      throw thrown;
    }
    return line;
  }

  forget(line: WireAskLine): void {
    if (this.#lines.delete(line.token)) this.#closed.add(line.token);
  }

  /** The connection is gone for good. */
  loseAll(error: CallError): void {
    for (const line of [...this.#lines.values()]) line.lost(error);
  }

  #hear(message: TransportMessage): void {
    const token = message.subject.slice(this.#host.transport.inbox.length + 1);
    const line = this.#lines.get(token);
    if (line !== undefined) line.hear(message);
    else if (this.#closed.has(token)) this.#host.counters.late++;
    else this.#host.counters.forged++;
  }
}

class WireAskLine implements AskLine, PeerLine {
  readonly token: string;
  readonly #host: WireHost;
  readonly #lines: AskLines;
  readonly #request: CallRequested;
  readonly #asker: Asker;
  /** Who runs the call, once known. */
  #peer: string | undefined;
  #input: Uint8Array | undefined;
  #assembly: Assembly | undefined;

  constructor(host: WireHost, lines: AskLines, token: string, request: CallRequested, asker: Asker) {
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

  #hearWhole(bytes: Uint8Array): void {
    const decoded = decodeMessage(bytes);
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
      this.#giveUp(new CallError("UNAVAILABLE", "Part of the result was lost on the way.", { stack: false }));
    } else this.#hearWhole(whole);
  }

  #refuse(bytes: number): void {
    const { counters, messageBytes } = this.#host;
    counters.oversized++;
    this.#giveUp(tooLarge(this.#request.operationId, "result", bytes, messageBytes));
  }

  #giveUp(error: CallError): void {
    this.send({ type: "call.aborted", requestId: this.#request.requestId, reason: "aborted" });
    this.lost(error);
  }

  #take({ event, peer, taken }: WireMessage): void {
    if (peer !== undefined && this.#peer === undefined) {
      this.#peer = peer;
      this.#host.peers.track(peer, this);
    }
    if (event === undefined) {
      if (taken === "send input" && this.#input !== undefined) this.#sendInput(this.#input);
      else if (taken !== "running") this.#host.counters.malformed++;
    } else if (isAnswer(event)) this.#asker.receive(event);
    else this.#host.counters.unexpected++;
  }

  #sendInput(input: Uint8Array): void {
    const { transport, subjects } = this.#host;
    this.#input = undefined;
    if (this.#peer === undefined) return;
    publishChunks(transport, subjects.peer(this.#peer), `${transport.inbox}.${this.token}`, input);
  }
}

function isAnswer(event: NonNullable<WireMessage["event"]>): event is AnswerEvent {
  return event.type !== "call.requested" && event.type !== "call.credit";
}

/** Only the input goes in chunks. */
function headTooLarge(
  { operationId }: CallRequested,
  { length: bytes }: Uint8Array,
  { maxMessageBytes: allowed }: Transport,
): CallError {
  const message = `The request of "${operationId}" takes ${bytes} bytes without its input; the bus carries ${allowed} at a time, so send less metadata.`;
  return overLimit(message, { limit: "maxMessageBytes", allowed, bytes }, false);
}

/** The error for what is over the size a bus carries, even in chunks. */
export function tooLarge(
  operationId: string,
  what: "request" | "result",
  bytes: number,
  allowed: number,
): CallError {
  const message = `The ${what} of "${operationId}" takes ${bytes} bytes; the bus carries at most ${allowed} (limits.messageBytes).`;
  return overLimit(message, { limit: "messageBytes", allowed, bytes }, false);
}
