import { CallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { Asker, AskLine } from "../bus.ts";
import { overLimit, tooLarge } from "../call-errors.ts";
import type { CallRequested } from "../call-events.ts";
import { RecentIds } from "../recent-ids.ts";
import { type AskLineHolder, WireAskLine } from "./ask-line.ts";
import { Members } from "./members.ts";
import { BATCH } from "./reply-batches.ts";
import type { Transport, TransportMessage } from "./transport.ts";
import type { WireHost } from "./wire-host.ts";
import { decodeBatch, encodeMessage, measureBatch } from "./wire-message.ts";

/** Calls that were given up, whose answers may still come: they are told from forged ones. */
const GIVEN_UP_LINES = 10_000;

/** Answered calls whose answers may come twice. */
const ANSWERED_LINES = 1_024;

/** The asking half of a bus on a transport: every call has a reply path of its own, which cannot be guessed. */
export class AskLines implements AskLineHolder {
  readonly #host: WireHost;
  readonly #lines = new Map<string, WireAskLine>();
  readonly members = new Members();
  readonly #givenUp = new RecentIds(GIVEN_UP_LINES);
  /** Tokens, over and over from the start: remembering must cost nothing, looking is rare. */
  readonly #answered: string[] = [];
  #answeredCount = 0;

  constructor(host: WireHost) {
    this.#host = host;
    const { transport } = host;
    transport.subscribe(`${transport.inbox}.*`, (message) => this.#hear(message));
  }

  /** Called with every beat. */
  tick(): void {
    if (this.#host.transport.isConnected) for (const line of [...this.#lines.values()]) line.tick();
  }

  get size(): number {
    return this.#lines.size;
  }

  request(request: CallRequested, asker: Asker): AskLine {
    const { transport } = this.#host;
    if (!transport.isConnected) {
      throw new CallError("UNAVAILABLE", "The bus is not connected; nothing was sent.", { stack: false });
    }
    const { messageBytes } = this.#host;
    const line = new WireAskLine(this.#host, this, crypto.randomUUID(), request, asker);
    const said = { event: request, beats: true as const, ...this.#host.peers.ownBeat };
    const bytes = encodeMessage(said, "VALIDATION_ERROR");
    if (bytes.length > messageBytes)
      throw tooLarge(request.operationId, "request", bytes.length, messageBytes);
    this.#lines.set(line.token, line);
    try {
      line.bytes = bytes.length;
      const head = bytes.length <= transport.maxMessageBytes ? bytes : line.keepInput();
      if (head.length > transport.maxMessageBytes) throw headTooLarge(request, head, transport);
      line.start(head);
    } catch (thrown) {
      this.forget(line);
      throw thrown;
    }
    return line;
  }

  forget(line: WireAskLine): void {
    if (!this.#lines.delete(line.token)) return;
    if (line.isAnswered) this.#answered[this.#answeredCount++ % ANSWERED_LINES] = line.token;
    else this.#givenUp.add(line.token);
  }

  /** The connection is lost, and answers with it. */
  loseAll(error: CallError): void {
    for (const line of [...this.#lines.values()]) line.giveUp(error);
  }

  #hear(message: TransportMessage): void {
    const token = message.subject.slice(this.#host.transport.inbox.length + 1);
    if (token === BATCH) this.#hearBatch(message.data);
    else this.#find(token)?.hear(message);
  }

  /** One answer that cannot be read spoils no other. */
  #hearBatch(bytes: Uint8Array): void {
    const batch = decodeBatch(bytes);
    if (batch === undefined) {
      this.#host.counters.malformed++;
      return;
    }
    const sizes = this.#host.observers.size > 0 ? measureBatch(bytes, batch) : undefined;
    for (let at = 0; at < batch.length; at++) {
      const entry = batch[at];
      if (isPlainObject(entry) && typeof entry["line"] === "string")
        this.#find(entry["line"])?.hearEntry(entry, sizes?.[at]);
      else this.#host.counters.malformed++;
    }
  }

  #find(token: string): WireAskLine | undefined {
    const line = this.#lines.get(token);
    if (line !== undefined) return line;
    const isLate = this.#givenUp.has(token) || this.#answered.includes(token);
    this.#host.counters[isLate ? "late" : "forged"]++;
    return undefined;
  }
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
