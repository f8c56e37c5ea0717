import { CallError } from "../../core/errors/errors.ts";
import { isRequestId } from "../../core/execution/request-id.ts";
import type { MemberFacts, Membership, Route, Take } from "../bus.ts";
import type { DropReason } from "../call-counters.ts";
import { toErrorPayload } from "../call-errors.ts";
import type { AskerEvent, CallCredit, CallRequested } from "../call-events.ts";
import { RecentIds } from "../recent-ids.ts";
import { type AnswerLineHolder, WireAnswerLine } from "./answer-line.ts";
import { fromChunk, isChunk } from "./chunk.ts";
import { BEAT_MS } from "./peers.ts";
import { namedUser, QUEUE } from "./subjects.ts";
import type { TransportMessage } from "./transport.ts";
import type { WireHost } from "./wire-host.ts";
import { decodeMessage, decodeValue, encodeMessage, type WireMessage } from "./wire-message.ts";

/** Bytes of inputs that are still on their way, as a multiple of the largest one allowed. */
const UPLOADS_IN_MEMORY = 8;

/** Subscriptions that have ended, whose readers may have granted more before they heard. */
const ENDED_STREAMS = 10_000;

/** One place in the group that answers a route. */
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
    const stops = transport.subscribe(subjects.route("stop", route), (message) =>
      this.#hearStop(message, member),
    );
    await transport.flush();
    const { refusal } = requests;
    if (refusal !== undefined) {
      requests.stop();
      stops.stop();
      const what = "namespace" in route ? `the namespace "${route.namespace}"` : `"${route.operationId}"`;
      throw new CallError("ACCESS_DENIED", `The broker does not let this side answer ${what}.`, {
        cause: refusal,
      });
    }
    return {
      leave: async () => {
        member.isLeaving = true;
        await requests.drain();
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
    if (typeof decoded === "string") this.#drop(message, decoded);
    else this.#hearDecoded(message, decoded, take);
  }

  #hearDecoded(message: TransportMessage, decoded: WireMessage, take: Take): void {
    const { counters, subjects } = this.#host;
    const { replyTo } = message;
    if (decoded.event?.type !== "call.requested") counters.unexpected++;
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
    message: WireMessage,
    replyTo: string,
    { subject, data }: TransportMessage,
    take: Take,
  ): void {
    const { inputBytes } = message;
    const user = namedUser(this.#host.subjects.userOf(subject));
    const delivery = { request, user, bytes: data.length + (inputBytes ?? 0) };
    const line = new WireAnswerLine(this.#host, this, replyTo, message, delivery, take);
    this.#lines.set(replyTo, line);
    if (message.beats === true && this.#host.peers.isSlowFor(message.beatMs))
      this.#introduceIn(message.beatMs);
    if (inputBytes === undefined && data.length > this.#host.messageBytes) line.askForInput(data.length);
    else if (inputBytes === undefined) line.deliver();
    else line.askForInput(inputBytes);
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

/** The request id in something that is no request. */
function requestIdIn(bytes: Uint8Array): string | undefined {
  try {
    const { event } = decodeValue(bytes) as { event?: { requestId?: unknown } };
    return isRequestId(event?.requestId) ? event.requestId : undefined;
  } catch {
    return undefined;
  }
}
