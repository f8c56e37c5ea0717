import { CallError } from "../../core/errors/errors.ts";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import { tooLarge } from "../../http/body-bytes.ts";
import type { HttpAnswer, HttpRequest } from "../../http/exchange.ts";
import { cutBytes, LED_LIMITS, type LinkFrame } from "./link-frames.ts";

/** A request as one replica tells another of it. */
export interface TakenRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly origin: string;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Milliseconds between signs of life of either side. */
export const SIGN_MS = 5_000;

/** A request that another replica has brought here. */
class LedRequest implements HttpRequest {
  readonly isLed = true;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly origin: string;
  owner: string | undefined;
  readonly #taken: TakenRequest;
  readonly #bytes: Uint8Array;
  readonly #controller = new AbortController();
  readonly #onSent: (() => void)[] = [];

  constructor(taken: TakenRequest, bytes: Uint8Array) {
    const { method, path, query, origin } = taken;
    this.method = method;
    this.path = path;
    this.query = query;
    this.origin = origin;
    this.#taken = taken;
    this.#bytes = bytes;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  header(name: string): string | undefined {
    const { headers } = this.#taken;
    return Object.hasOwn(headers, name) ? headers[name] : undefined;
  }

  async body(limit: number): Promise<Uint8Array> {
    if (this.#bytes.length > limit) throw tooLarge(limit);
    return this.#bytes;
  }

  onSent(listener: () => void): void {
    this.#onSent.push(listener);
  }

  /** Tells that the answer was sent, or never will be. */
  sent(): void {
    for (const listener of this.#onSent.splice(0)) listener();
  }

  toRequest(): Request {
    const { method, path, query, origin, headers } = this.#taken;
    return new Request(`${origin}${path}${query === "" ? "" : `?${query}`}`, { method, headers });
  }
}

/** What an answer is sent over. */
export interface FrameLine {
  /** Bytes that one frame carries. */
  readonly mostBytes: number;
  send(head: LinkFrame["head"], bytes?: Uint8Array): void;
  /** Hears once that nothing more is sent. */
  onEnd(): void;
}

/** Answers one request of another replica, no faster than its reader takes the answer. */
export class LedAnswer {
  readonly #line: FrameLine;
  readonly #taken: TakenRequest;
  readonly #parts: (Uint8Array | undefined)[];
  readonly #timer: ReturnType<typeof setInterval>;
  #missing: number;
  #request: LedRequest | undefined;
  #body: AsyncIterator<string> | undefined;
  #sentBytes = 0;
  #takenBytes = 0;
  #heardAt = monotonicNow();
  #wake: () => void = () => {};
  #isOver = false;

  constructor(taken: TakenRequest, parts: number, line: FrameLine) {
    this.#taken = taken;
    this.#parts = Array.from({ length: parts });
    this.#missing = parts;
    this.#line = line;
    this.#timer = setInterval(() => this.#beat(), SIGN_MS);
    this.#timer.unref();
  }

  /** Takes a part of what was posted; gives the request once it is whole. */
  take(index: number, bytes: Uint8Array): HttpRequest | undefined {
    this.#heardAt = monotonicNow();
    if (this.#parts[index] !== undefined || !(index in this.#parts)) return undefined;
    this.#parts[index] = bytes;
    this.#missing -= 1;
    if (this.#missing > 0) return undefined;
    this.#request = new LedRequest(this.#taken, Buffer.concat(this.#parts as Uint8Array[]));
    return this.#request;
  }

  /** Hears how many bytes the reader has taken. */
  more(takenBytes: number): void {
    this.#heardAt = monotonicNow();
    this.#takenBytes = Math.max(this.#takenBytes, takenBytes);
    this.#wake();
  }

  /** Sends an answer, and ends. */
  async answer({ status, headers, body }: HttpAnswer): Promise<void> {
    const isStream = typeof body === "object" && Symbol.asyncIterator in body;
    const kind = body === undefined ? "none" : typeof body === "string" ? "text" : "bytes";
    this.#send({ kind: "head", status, headers, body: isStream ? "stream" : kind });
    if (typeof body === "string") await this.#sendBytes(Buffer.from(body));
    else if (body instanceof Uint8Array) await this.#sendBytes(body);
    else if (body !== undefined) await this.#sendStream(body);
    this.#send({ kind: "end" });
    this.#end();
  }

  /** Tells that there is no answer, or that what was sent of it is not all. */
  fail(): void {
    this.#send({ kind: "failed" });
    this.leave();
  }

  /** Ends what is done for it: nobody waits for the answer. */
  leave(): void {
    if (this.#isOver) return;
    this.#end();
    this.#request?.abort(new CallError("ABORTED", "The caller left.", { stack: false }));
    void this.#body?.return?.();
  }

  async #sendStream(body: AsyncIterable<string>): Promise<void> {
    const texts = body[Symbol.asyncIterator]();
    this.#body = texts;
    for (;;) {
      const step = await texts.next();
      if (step.done === true || this.#isOver) break;
      await this.#sendBytes(Buffer.from(step.value));
    }
    if (this.#isOver) await texts.return?.();
  }

  async #sendBytes(bytes: Uint8Array): Promise<void> {
    if (bytes.length === 0) return;
    for (const piece of cutBytes(bytes, this.#line.mostBytes)) {
      while (!this.#isOver && this.#sentBytes - this.#takenBytes > LED_LIMITS.window) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
      this.#sentBytes += piece.length;
      this.#send({ kind: "data" }, piece);
    }
  }

  #beat(): void {
    if (monotonicNow() - this.#heardAt > LED_LIMITS.silence) this.leave();
    else this.#send({ kind: "alive" });
  }

  #send(head: LinkFrame["head"], bytes?: Uint8Array): void {
    if (!this.#isOver) this.#line.send(head, bytes);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#timer);
    this.#wake();
    this.#request?.sent();
    this.#line.onEnd();
  }
}
