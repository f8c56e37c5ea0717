import type { Dispatcher } from "undici";
import type { CallError } from "../../../core/errors/errors.ts";
import {
  type AbortListener,
  addAbortListener,
  removeAbortListener,
} from "../../../core/execution/abort-listeners.ts";
import { type Expiring, monotonicNow, startTimer } from "../../../core/execution/deadline.ts";
import { BodyBytes } from "../../../http/body-bytes.ts";
import type { ResponseHead, StreamedResponse, WholeResponse } from "../http-message.ts";
import { ContentDecoder, type DecoderSink, toEncodings } from "./content-decoder.ts";
import type { ExchangePlan } from "./exchange-plan.ts";
import { toRawHeaders } from "./raw-headers.ts";
import { ReadGate } from "./read-gate.ts";
import { isRedirect } from "./redirects.ts";
import { toFraming, toHeaders } from "./response-head.ts";
import { type BodySource, StreamedBody } from "./streamed-body.ts";
import { abortError, closedError, toTransportError, transportError } from "./transport-errors.ts";

/** As much of a redirect's body is read to keep the connection; past it, a new one is cheaper. */
const MOST_SKIPPED = 65_536;

/** Decoded bytes before their ratio to what arrived is looked at. */
const RATIO_FREE = 1_048_576;

/** The clock is read once in so many chunks: a flood of them can keep timers from their turn. */
const CHUNKS_PER_LOOK = 1_024;

/**
 * One request and its response on one connection. Speaks undici's dispatch interface itself, which saves what `request` spends on a
 * stream, a controller and a dozen closures for each call.
 */
export class Exchange
  implements Dispatcher.DispatchHandler, AbortListener, Expiring, DecoderSink, BodySource
{
  readonly answer: Promise<WholeResponse | StreamedResponse>;
  readonly deadline: number;
  timer: ReturnType<typeof setTimeout> | undefined;
  /** Bytes of the request may have left. */
  wasSent = false;
  readonly #plan: ExchangePlan;
  #resolve!: (response: WholeResponse | StreamedResponse) => void;
  #reject!: (error: CallError) => void;
  #isOver = false;
  /** undici has done with it. */
  #isLetGo = false;
  #onLetGo: (() => void) | undefined;
  #open: Set<Exchange> | undefined;
  #abort: ((error?: Error) => void) | undefined;
  #gate: ReadGate | undefined;
  #status = 0;
  #headers: ResponseHead["headers"] = {};
  #delimited = true;
  #skips = false;
  #wireBytes = 0;
  #wireChunks = 0;
  readonly #bytes = new BodyBytes();
  #decoder: ContentDecoder | undefined;
  #streamed: StreamedBody | undefined;

  constructor(plan: ExchangePlan) {
    this.#plan = plan;
    this.deadline = plan.deadline;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Sends the request; it stays among the open ones until undici lets go of it. */
  begin(dispatcher: Dispatcher, open: Set<Exchange>): void {
    const { request, signal } = this.#plan;
    this.#open = open;
    open.add(this);
    if (this.deadline !== Number.POSITIVE_INFINITY)
      startTimer(this, Math.max(0, this.deadline - monotonicNow()));
    addAbortListener(signal, this);
    const { method, path, body = null } = request;
    dispatcher.dispatch(
      { method, path, body, headers: toRawHeaders(request.headers), blocking: false },
      this,
    );
  }

  /** Calls back once the connection is free for others, at once where it is. */
  whenLetGo(callback: () => void): void {
    if (this.#isLetGo) callback();
    else this.#onLetGo = callback;
  }

  /** Ends it because its transport ends; what undici may not tell any more is taken for told. */
  close(): void {
    this.#stop(closedError(this.#plan.sent), true);
    this.#letGo();
  }

  onAbort(signal: AbortSignal): void {
    this.#stop(abortError(signal, this.#plan.sent), true);
  }

  expire(): void {
    const says = `did not answer within ${Math.ceil(this.#plan.settings.timeoutMs)} ms`;
    this.#stop(transportError({ code: "TIMEOUT", says }, this.#plan.sent), true);
  }

  expireIdle(): void {
    const says = `sent nothing for ${Math.ceil(this.#plan.settings.idleTimeoutMs)} ms`;
    this.#stop(transportError({ code: "TIMEOUT", says }, this.#plan.sent), true);
  }

  leave(): void {
    this.#settle();
    this.#abandon();
  }

  flow(): void {
    if (this.#decoder !== undefined) this.#decoder.flow();
    else this.onDecoderDrain();
  }

  // From here on, what undici calls.

  onConnect(abort: (error?: Error) => void): void {
    this.#abort = abort;
    if (this.#isOver) abort();
    else this.wasSent = true;
  }

  onHeaders(status: number, raw: Buffer[]): boolean {
    if (status < 200 || this.#isOver) return true;
    this.#status = status;
    this.#headers = toHeaders(raw);
    this.#gate = ReadGate.current;
    const hasBody = this.#plan.request.method !== "HEAD" && status !== 204 && status !== 304;
    const framing = toFraming(this.#headers, hasBody);
    if (framing === undefined)
      return this.#refuse("OUTPUT_INVALID", "used a transfer-encoding that is not known");
    this.#delimited = framing.delimited;
    if (isRedirect(status) && this.#headers["location"] !== undefined) this.#skips = true;
    else if (hasBody) return this.#expectBody(framing.length);
    else this.#expectNothing();
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.#isOver) return true;
    this.#wireBytes += chunk.byteLength;
    this.#wireChunks += 1;
    if (this.#wireChunks % CHUNKS_PER_LOOK === 0 && this.#isLate()) {
      this.expire();
      return true;
    }
    if (this.#skips) {
      if (this.#wireBytes > MOST_SKIPPED) this.#finish();
      return true;
    }
    const goesOn = this.#decoder === undefined ? this.onDecoded(chunk) : this.#decoder.write(chunk);
    if (!goesOn) this.#gate?.shut();
    return true;
  }

  onComplete(): void {
    this.#letGo();
    if (this.#isOver) return;
    if (this.#decoder === undefined || this.#skips) this.#finish();
    else this.#decoder.end();
  }

  onError(error: Error): void {
    this.#letGo();
    this.#stop(toTransportError(error, this.#plan.sent), false);
  }

  // From here on, what the decoder calls; a body that is not encoded takes the same way.

  onDecoded(chunk: Buffer): boolean {
    if (this.#isOver) return true;
    if (this.#streamed !== undefined) return this.#streamed.push(chunk);
    this.#bytes.add(chunk);
    return this.#bytes.length <= this.#plan.settings.responseBytes || this.#refuseSize();
  }

  onGrowth(decodedBytes: number): void {
    const { decodedRatio, responseBytes } = this.#plan.settings;
    if (this.#streamed === undefined && decodedBytes > responseBytes) this.#refuseSize();
    if (decodedBytes <= RATIO_FREE || decodedBytes <= decodedRatio * this.#wireBytes) return;
    this.#refuse(
      "TOO_LARGE",
      "sent a body that grows more than limits.decodedRatio allows when it is decoded",
    );
  }

  onDecodedEnd(): void {
    if (!this.#isOver) this.#finish();
  }

  onDecodeError(error: unknown): void {
    this.#stop(toTransportError(error, this.#plan.sent), true);
  }

  onDecoderDrain(): void {
    if (!this.#isLetGo) this.#gate?.open();
  }

  #expectBody(length: number | undefined): boolean {
    const { settings, streamed } = this.#plan;
    const encodings = toEncodings(this.#headers["content-encoding"]);
    if (encodings === undefined)
      return this.#refuse("OUTPUT_INVALID", "used a content-encoding that is not known");
    if (encodings.length > 0) this.#decoder = new ContentDecoder(encodings, this);
    if (streamed && this.#status < 300) this.#startStream();
    else if (encodings.length === 0 && length !== undefined && length > settings.responseBytes) {
      return this.#refuseSize();
    }
    return true;
  }

  /** A 304 may tell the length of what it does not send; undici would wait for it. */
  #expectNothing(): void {
    const { request, streamed } = this.#plan;
    if (streamed && this.#status < 300) this.#startStream();
    if (request.method !== "HEAD" && Number(this.#headers["content-length"] ?? 0) !== 0) this.#finish();
  }

  #startStream(): void {
    clearTimeout(this.timer);
    this.#streamed = new StreamedBody(this, this.#plan.settings.idleTimeoutMs);
    this.#resolve({ ...this.#head(), body: this.#streamed, delimited: this.#delimited });
  }

  /** A stream may take as long as it likes once it has begun. */
  #isLate(): boolean {
    return this.#streamed === undefined && monotonicNow() > this.deadline;
  }

  #refuseSize(): boolean {
    return this.#refuse("TOO_LARGE", "sent a body larger than limits.responseBytes allows");
  }

  #refuse(code: "OUTPUT_INVALID" | "TOO_LARGE", says: string): boolean {
    this.#stop(transportError({ code, says }, this.#plan.sent), true);
    return true;
  }

  #finish(): void {
    this.#settle();
    if (this.#streamed !== undefined) this.#streamed.end(undefined);
    else this.#resolve({ ...this.#head(), body: this.#bytes.join(), delimited: this.#delimited });
    if (!this.#isLetGo) this.#abandon();
  }

  #stop(error: CallError, isOurs: boolean): void {
    if (this.#isOver) return;
    this.#settle();
    if (this.#streamed === undefined) this.#reject(error);
    else this.#streamed.end(error, isOurs);
    this.#abandon();
  }

  /** Leaves no timer, no listener and no decoder behind. */
  #settle(): void {
    this.#isOver = true;
    clearTimeout(this.timer);
    removeAbortListener(this.#plan.signal, this);
    this.#decoder?.destroy();
  }

  /** Before there is a connection nothing can be aborted; `onConnect` does it then. */
  #abandon(): void {
    if (!this.#isLetGo) this.#abort?.();
  }

  #letGo(): void {
    if (this.#isLetGo) return;
    this.#isLetGo = true;
    this.#open?.delete(this);
    this.#gate?.openSoon();
    this.#onLetGo?.();
  }

  #head(): ResponseHead {
    const { request, sent } = this.#plan;
    return {
      status: this.#status,
      headers: this.#headers,
      attempts: sent.attempts,
      url: request.origin + request.path,
    };
  }
}
