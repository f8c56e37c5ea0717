import { CallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { AnswerHeaders, HttpAnswer } from "../../http/exchange.ts";
import { SIGN_MS } from "./led-request.ts";
import { LED_LIMITS, type LinkFrame } from "./link-frames.ts";

/** What came of a request that was brought to another replica: its answer, or that the replica is not there, or has no room. */
export type Led =
  | { readonly state: "answered"; readonly answer: HttpAnswer }
  | { readonly state: "unreachable" }
  | { readonly state: "full" };

/** How the reader of an answer speaks to the replica that gives it. */
export interface ReaderLine {
  /** Tells that so many bytes were taken, and that somebody still waits. */
  more(takenBytes: number): void;
  /** Tells that nobody waits any more. */
  leave(): void;
  /** Hears once that nothing more is expected. */
  onEnd(): void;
}

/** Milliseconds that a replica has to take a request. */
const TAKE_MS = 2_000;
/** Bytes that are read before the other side is told. */
const TOLD_BYTES = 65_536;

type Step = IteratorResult<string, undefined>;
const DONE: Step = { done: true, value: undefined };

/** Reads the answer of another replica as it comes. */
export class LedReader implements AsyncIterableIterator<string, undefined> {
  /** What came of the request; it never rejects. */
  readonly led: Promise<Led>;
  readonly #line: ReaderLine;
  readonly #decoder = new TextDecoder();
  readonly #timer: ReturnType<typeof setInterval>;
  #settle: ((led: Led) => void) | undefined;
  #head: Omit<HttpAnswer, "body"> | undefined;
  #kind: "none" | "text" | "bytes" | "stream" = "none";
  #pieces: Uint8Array[] = [];
  #waitingBytes = 0;
  #takenBytes = 0;
  #toldBytes = 0;
  #heardAt: number | undefined;
  #state: "open" | "ended" | "failed" = "open";
  #wake: () => void = () => {};

  constructor(line: ReaderLine) {
    this.#line = line;
    this.led = new Promise((resolve) => {
      this.#settle = resolve;
    });
    const taking = setTimeout(() => this.#heardAt === undefined && this.fail(), TAKE_MS);
    taking.unref();
    this.#timer = setInterval(() => this.#beat(), SIGN_MS);
    this.#timer.unref();
  }

  /** Takes the next frame of the answer. */
  take({ head, bytes }: LinkFrame): void {
    if (this.#state !== "open") return;
    this.#heardAt = monotonicNow();
    const { kind } = head;
    if (kind === "head") this.#begin(head);
    else if (kind === "data") this.#add(bytes);
    else if (kind === "end") this.#end("ended");
    else if (kind === "failed") this.fail();
    else if (kind === "full") {
      this.#answer({ state: "full" });
      this.#end("failed");
    }
  }

  /** Ends it: the other replica is not there, or not any more. */
  fail(): void {
    this.#answer({ state: "unreachable" });
    this.#end("failed");
  }

  /** Ends it: nobody waits for the answer any more. */
  leave(): void {
    if (this.#state !== "open") return;
    this.#line.leave();
    this.fail();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<Step> {
    for (;;) {
      if (this.#pieces.length > 0) return { done: false, value: this.#takeText() };
      if (this.#state === "ended") return DONE;
      // The client learns that this is not the end by its connection, and comes back for the rest.
      if (this.#state === "failed") throw lost();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async return(): Promise<Step> {
    this.leave();
    return DONE;
  }

  #begin({ status, headers, body }: LinkFrame["head"]): void {
    if (this.#head !== undefined || typeof status !== "number" || !isPlainObject(headers)) {
      this.fail();
      return;
    }
    this.#head = { status, headers: headers as AnswerHeaders };
    this.#kind = body === "text" || body === "bytes" || body === "stream" ? body : "none";
    if (this.#kind === "stream") this.#answer({ state: "answered", answer: { ...this.#head, body: this } });
  }

  #add(bytes: Uint8Array): void {
    this.#pieces.push(bytes);
    this.#waitingBytes += bytes.length;
    if (this.#kind !== "stream") {
      this.#line.more(this.#waitingBytes);
      if (this.#waitingBytes > LED_LIMITS.bytes) this.leave();
    }
    this.#wake();
  }

  #takeText(): string {
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#waitingBytes = 0;
    this.#takenBytes += bytes.length;
    if (this.#takenBytes - this.#toldBytes >= TOLD_BYTES) this.#tell();
    return this.#decoder.decode(bytes, { stream: true });
  }

  #tell(): void {
    this.#toldBytes = this.#takenBytes;
    if (this.#state === "open") this.#line.more(this.#takenBytes);
  }

  #beat(): void {
    const silence = monotonicNow() - (this.#heardAt ?? Number.NEGATIVE_INFINITY);
    if (silence > LED_LIMITS.silence) this.fail();
    else if (this.#kind === "stream") this.#tell();
    else this.#line.more(this.#waitingBytes);
  }

  #answer(led: Led): void {
    this.#settle?.(led);
    this.#settle = undefined;
  }

  #end(state: "ended" | "failed"): void {
    if (this.#state !== "open") return;
    this.#state = state;
    clearInterval(this.#timer);
    const head = this.#head;
    if (state === "ended" && head !== undefined && this.#kind !== "stream") {
      this.#answer({ state: "answered", answer: { ...head, body: this.#whole() } });
    }
    this.#answer({ state: "unreachable" });
    this.#wake();
    this.#line.onEnd();
  }

  #whole(): string | Uint8Array | undefined {
    const bytes = Buffer.concat(this.#pieces);
    this.#pieces = [];
    if (this.#kind === "none") return undefined;
    return this.#kind === "text" ? bytes.toString("utf8") : bytes;
  }
}

function lost(): CallError {
  return new CallError("UNAVAILABLE", "The replica that sent this stream cannot be reached any more.", {
    stack: false,
  });
}
