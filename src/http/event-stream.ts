import { CallError } from "../core/errors/errors.ts";

/** How a stream is kept alive and bounded. */
export interface EventStreamOptions {
  /** Bytes that may wait to be read when more is to be sent; a reader further behind is given up. */
  readonly maxBytes: number;
  /** Hears once that nobody reads any more: all was sent, or the reader left or was too slow. */
  readonly onEnd?: ((end: "sent" | "left") => void) | undefined;
}

/** The header fields of an answer that is a stream of server-sent events. */
export const EVENT_STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
} as const;

/** Counts the bytes that wait in one stream among those of others. */
export interface WaitingBytes {
  /** Tells whether so many more may wait. */
  fits(bytes: number): boolean;
  /** Counts them; fewer than 0 wait no longer. */
  add(bytes: number): void;
}

const KEEP_ALIVE_MS = 15_000;
const KEEP_ALIVE = ": keepalive\n\n";

type Step = IteratorResult<string, undefined>;
const DONE: Step = { done: true, value: undefined };

/** Server-sent events on their way to one reader: sent when they happen, and never held up by a reader that is slow. */
export class EventStream implements AsyncIterableIterator<string, undefined> {
  readonly #options: EventStreamOptions;
  #waiting: string[] = [];
  #bytes = 0;
  #state: "open" | "ending" | "over" = "open";
  #fault: CallError | undefined;
  #wake: ((step: Step) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Called when a reader is given up because it is too slow, for the owner of its connection. */
  onGiveUp: (() => void) | undefined;
  #counter: WaitingBytes | undefined;

  constructor(options: EventStreamOptions) {
    this.#options = options;
  }

  /** Bytes that wait to be read. */
  get waitingBytes(): number {
    return this.#bytes;
  }

  /** Counts what waits here from now on; where there is no room for more, the reader is given up. */
  countBy(counter: WaitingBytes): void {
    this.#counter = counter;
    counter.add(this.#bytes);
  }

  /** Sends text, or nothing where nobody reads any more. */
  push(text: string): void {
    if (this.#state !== "open") return;
    if (this.#bytes >= this.#options.maxBytes) {
      this.#giveUp(`The reader of a stream is more than ${this.#options.maxBytes} bytes behind.`);
      return;
    }
    const wake = this.#wake;
    if (wake !== undefined) {
      this.#rest();
      wake({ done: false, value: text });
      return;
    }
    const bytes = Buffer.byteLength(text);
    if (this.#counter?.fits(bytes) === false) {
      this.#giveUp("The readers of all streams together are too far behind.");
      return;
    }
    this.#waiting.push(text);
    this.#count(bytes);
  }

  /** Ends the stream once what waits has been read. */
  end(): void {
    if (this.#state !== "open") return;
    this.#state = "ending";
    const wake = this.#wake;
    if (wake === undefined) return;
    this.#rest();
    this.#finish("sent");
    wake(DONE);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<Step> {
    if (this.#fault !== undefined) throw this.#fault;
    if (this.#waiting.length > 0) {
      const value = this.#waiting.length === 1 ? (this.#waiting[0] as string) : this.#waiting.join("");
      this.#waiting = [];
      this.#count(-this.#bytes);
      return { done: false, value };
    }
    if (this.#state === "ending") this.#finish("sent");
    if (this.#state === "over") return DONE;
    return await new Promise<Step>((resolve) => {
      this.#wake = resolve;
      this.#timer = setTimeout(() => {
        this.#rest();
        resolve({ done: false, value: KEEP_ALIVE });
      }, KEEP_ALIVE_MS);
      this.#timer.unref();
    });
  }

  async return(): Promise<Step> {
    this.#leave();
    return DONE;
  }

  #giveUp(message: string): void {
    this.#fault = new CallError("RESOURCE_EXHAUSTED", message, { stack: false });
    this.#leave();
    this.onGiveUp?.();
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    this.#counter?.add(bytes);
  }

  #leave(): void {
    if (this.#state === "over") return;
    const wake = this.#wake;
    this.#rest();
    this.#waiting = [];
    this.#count(-this.#bytes);
    this.#finish("left");
    wake?.(DONE);
  }

  #rest(): void {
    clearTimeout(this.#timer);
    this.#wake = undefined;
  }

  #finish(end: "sent" | "left"): void {
    this.#state = "over";
    this.#options.onEnd?.(end);
  }
}

/** Makes what ends every line of a stream with a line feed. A return at the end of a piece ends its line, whatever comes after: parsers would wait for that. */
export function createLineFeeds(): (piece: string) => string {
  let isAfterReturn = false;
  return (piece) => {
    if (piece === "") return piece;
    const rest = isAfterReturn && piece.startsWith("\n") ? piece.slice(1) : piece;
    isAfterReturn = piece.endsWith("\r");
    return rest.includes("\r") ? rest.replace(/\r\n?/g, "\n") : rest;
  };
}
