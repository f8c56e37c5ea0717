import { CallError } from "../../core/errors/errors.ts";
import { isRequestId } from "../../core/execution/request-id.ts";
import type { Answerer, AnswerLine, Delivery, Membership, Route, Take } from "../bus.ts";
import type { DropReason } from "../call-counters.ts";
import { toErrorPayload } from "../call-errors.ts";
import type { AnswerEvent, AskerEvent, CallRequested } from "../call-events.ts";
import { tooLarge, type WireHost } from "./ask-lines.ts";
import { Assembly, type Chunk, fromChunk, isChunk, publishWhole } from "./chunk.ts";
import { type PeerLine, peerAt } from "./peers.ts";
import { NOBODY, QUEUE } from "./subjects.ts";
import type { TransportMessage } from "./transport.ts";
import { decodeMessage, decodeValue, encodeMessage, type WireMessage } from "./wire-message.ts";

/** Bytes of inputs that are still on their way, as a multiple of the largest one allowed. */
const UPLOADS_IN_MEMORY = 8;

/** Bytes that the smallest of them counts for, so that there are not too many either. */
const LEAST_UPLOAD = 4_096;

/** Beats an input may make no progress for. */
const UPLOAD_BEATS = 4;

/** The answering half of a bus on a transport: a line to the caller for every request that arrives. */
export class AnswerLines {
  readonly #host: WireHost;
  readonly #lines = new Map<string, WireAnswerLine>();
  #uploading = 0;

  #isReachable = false;

  constructor(host: WireHost) {
    this.#host = host;
  }

  get size(): number {
    return this.#lines.size;
  }

  async join(route: Route, take: Take): Promise<Membership> {
    const { transport, subjects } = this.#host;
    this.#beReachable();
    const requests = transport.subscribe(
      subjects.route("call", route),
      (message) => this.#hearRequest(message, take),
      QUEUE,
    );
    const stops = transport.subscribe(subjects.route("stop", route), (message) => this.#hearPeer(message));
    await transport.flush();
    return {
      leave: async () => {
        await requests.drain();
        // Calls taken before may still be given up by their callers.
        void this.#whenEmpty().then(() => stops.stop());
      },
    };
  }

  /** Not before there is something to answer: who only asks needs no right to hear this. */
  #beReachable(): void {
    if (this.#isReachable) return;
    this.#isReachable = true;
    const { transport, subjects, peers } = this.#host;
    transport.subscribe(subjects.peer(peers.ownAddress), (message) => this.#hearPeer(message));
  }

  /** Introduces this side to callers who have been waiting for a while, so that both notice when the other is gone. */
  tick(): void {
    for (const line of this.#lines.values()) line.tick();
  }

  loseAll(): void {
    for (const line of [...this.#lines.values()]) line.lost();
  }

  forget(line: WireAnswerLine): void {
    if (!this.#lines.delete(line.replyTo)) return;
    if (this.#lines.size === 0) for (const tell of this.#waiting.splice(0)) tell();
  }

  readonly #waiting: (() => void)[] = [];

  #whenEmpty(): Promise<void> {
    if (this.#lines.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Takes room for an input that is on its way; gives it back with a negative number. */
  reserve(bytes: number): boolean {
    if (this.#uploading + bytes > UPLOADS_IN_MEMORY * this.#host.messageBytes) return false;
    this.#uploading += bytes;
    return true;
  }

  #hearRequest(message: TransportMessage, take: Take): void {
    const { counters, subjects } = this.#host;
    const { replyTo } = message;
    const decoded = decodeMessage(message.data);
    if (typeof decoded === "string") this.#drop(message, decoded);
    else if (decoded.event?.type !== "call.requested") counters.unexpected++;
    else if (replyTo === undefined || subjects.isOwn(replyTo)) counters.malformed++;
    else if (!subjects.isFor(message.subject, decoded.event.operationId)) counters.forged++;
    else if (this.#lines.has(replyTo)) counters.duplicate++;
    else this.#open(decoded.event, decoded, replyTo, message, take);
  }

  /** Whoever sent something unreadable is told, by the path it gave itself, if it can be read who that is. */
  #drop({ data, replyTo }: TransportMessage, reason: DropReason): void {
    const { counters, subjects, transport } = this.#host;
    counters[reason]++;
    const requestId = requestIdIn(data);
    if (replyTo === undefined || requestId === undefined || subjects.isOwn(replyTo)) return;
    const error = new CallError("VALIDATION_ERROR", "The request is not one this service understands.", {
      stack: false,
    });
    const event = { type: "call.error", requestId, error: toErrorPayload(error) } as const;
    transport.publish(replyTo, encodeMessage({ event }, "OUTPUT_INVALID"));
  }

  #open(
    request: CallRequested,
    { inputBytes, beats }: WireMessage,
    replyTo: string,
    { subject, data }: TransportMessage,
    take: Take,
  ): void {
    const named = this.#host.subjects.userOf(subject);
    const user = named === NOBODY ? undefined : named;
    const bytes = data.length;
    const line = new WireAnswerLine(this.#host, this, replyTo, beats === true, { request, user }, take);
    this.#lines.set(replyTo, line);
    if (inputBytes === undefined && bytes > this.#host.messageBytes) line.askForInput(bytes);
    else if (inputBytes === undefined) line.deliver();
    else line.askForInput(inputBytes);
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
    else this.#find(decoded.line)?.receive(decoded.event);
  }

  /** A call given up is told to everybody who may run it, so that one which is not here says nothing. */
  #find(replyTo: string | undefined): WireAnswerLine | undefined {
    if (replyTo === undefined) this.#host.counters.malformed++;
    return this.#lines.get(replyTo ?? "");
  }
}

/** The request id in something that is no request. */
function requestIdIn(bytes: Uint8Array): string | undefined {
  try {
    const { event } = decodeValue(bytes) as { event?: { requestId?: unknown } };
    return isRequestId(event?.requestId) ? event.requestId : undefined;
  } catch {
    return undefined;
  }
}

class WireAnswerLine implements AnswerLine, PeerLine {
  readonly replyTo: string;
  readonly #host: WireHost;
  readonly #lines: AnswerLines;
  /** Whether the caller gives signs of life. */
  readonly #beats: boolean;
  readonly #take: Take;
  #delivery: Delivery;
  #answerer: Answerer | undefined;
  #upload: Assembly | undefined;
  #uploadBytes = 0;
  #idleBeats = 0;
  #isIntroduced = false;
  #isOpen = true;

  constructor(
    host: WireHost,
    lines: AnswerLines,
    replyTo: string,
    beats: boolean,
    delivery: Delivery,
    take: Take,
  ) {
    this.#host = host;
    this.#lines = lines;
    this.replyTo = replyTo;
    this.#beats = beats;
    this.#delivery = delivery;
    this.#take = take;
  }

  deliver(): void {
    const answerer = this.#take(this.#delivery, this);
    if (this.#isOpen) this.#answerer = answerer;
  }

  /** Room is taken before anything is sent. */
  askForInput(bytes: number): void {
    const { messageBytes, counters } = this.#host;
    const { operationId } = this.#delivery.request;
    const room = Math.max(bytes, Math.min(LEAST_UPLOAD, messageBytes));
    if (bytes > messageBytes || !this.#lines.reserve(room)) {
      counters.oversized++;
      this.refuse(tooLarge(operationId, "request", bytes, messageBytes));
    } else {
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
    this.#idleBeats = 0;
    const input = this.#upload.add(chunk);
    if (input === undefined) return;
    this.#endUpload();
    if (input === false) this.#refuseMalformed();
    else this.#deliverWith(input);
  }

  receive(event: AskerEvent): void {
    if (this.#answerer !== undefined) this.#answerer.receive(event);
    // Given up before it was all here.
    else if (event.type === "call.aborted") this.close();
  }

  reply(event: AnswerEvent): void {
    if (!this.#isOpen) return;
    const { transport, peers, messageBytes } = this.#host;
    // A stream says at once who sends it, for its reader has to grant more.
    const peer = event.type === "call.responded" && event.sequence === 0 ? { peer: peers.ownAddress } : {};
    const bytes = encodeMessage({ event, ...peer }, "OUTPUT_INVALID");
    if (bytes.length > messageBytes) {
      throw tooLarge(this.#delivery.request.operationId, "result", bytes.length, messageBytes);
    }
    publishWhole(transport, this.replyTo, "", bytes);
  }

  refuse(error: CallError): void {
    const { requestId } = this.#delivery.request;
    this.reply({ type: "call.error", requestId, error: toErrorPayload(error) });
    this.close();
  }

  flush(): Promise<void> {
    return this.#host.transport.flush();
  }

  close(): void {
    this.#isOpen = false;
    this.#lines.forget(this);
    this.#endUpload();
    if (this.#isIntroduced && this.#beats) this.#host.peers.untrack(this.#caller, this);
  }

  tick(): void {
    if (!this.#isIntroduced) this.#introduce("running");
    // Nobody runs it yet, so that no deadline ends it.
    else if (this.#upload !== undefined && ++this.#idleBeats > UPLOAD_BEATS) this.#refuseMalformed();
  }

  lost(): void {
    const answerer = this.#answerer;
    this.close();
    answerer?.lost();
  }

  get #caller(): string {
    return peerAt(this.replyTo, this.#delivery.user ?? NOBODY);
  }

  #introduce(taken: NonNullable<WireMessage["taken"]>): void {
    const { transport, peers } = this.#host;
    this.#isIntroduced = true;
    if (this.#beats) peers.track(this.#caller, this);
    transport.publish(this.replyTo, encodeMessage({ taken, peer: peers.ownAddress }, "OUTPUT_INVALID"));
  }

  #deliverWith(bytes: Uint8Array): void {
    try {
      const input = decodeValue(bytes);
      this.#delivery = { ...this.#delivery, request: { ...this.#delivery.request, input } };
      this.deliver();
    } catch {
      this.#refuseMalformed();
    }
  }

  #refuseMalformed(): void {
    this.#host.counters.malformed++;
    this.refuse(
      new CallError("VALIDATION_ERROR", "The input did not arrive as it was announced.", { stack: false }),
    );
  }

  #endUpload(): void {
    if (this.#upload === undefined) return;
    this.#upload = undefined;
    this.#lines.reserve(-this.#uploadBytes);
  }
}
