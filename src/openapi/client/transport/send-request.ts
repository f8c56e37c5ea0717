import { type Dispatcher, util } from "undici";
import { Linked, type LinkedSet } from "../../../core/collections/linked-set.ts";
import type { CallError } from "../../../core/errors/errors.ts";
import {
  type AbortListener,
  addAbortListener,
  type Expiring,
  LONGEST_DELAY,
  monotonicNow,
  removeAbortListener,
  startTimer,
} from "../../../core/execution/cancellation.ts";
import { BodyBytes } from "../../../http/body-bytes.ts";
import type { OutgoingRequest, ResponseHead, StreamedResponse, WholeResponse } from "../http-message.ts";
import { isFramingHeader } from "../request/input-text.ts";
import { ACCEPTED_ENCODINGS, ContentDecoder, type DecoderSink, toEncodings } from "./content-decoder.ts";
import { ReadGate } from "./origin-pools.ts";
import { isRedirect } from "./redirects.ts";
import { abortError, closedError, type Sent, toTransportError, transportError } from "./transport-errors.ts";
import type { TransportSettings } from "./transport-settings.ts";

/** As much of a redirect's body is read to keep the connection; past it, a new one is cheaper. */
const MOST_SKIPPED = 65_536;

const NO_ENCODINGS: readonly string[] = [];

/** Decoded bytes before their ratio to what arrived is looked at. */
const RATIO_FREE = 1_048_576;

/** The clock is read once in so many chunks: a flood of them can keep timers from their turn. */
const CHUNKS_PER_LOOK = 1_024;

/**
 * One request and its response on one connection. Speaks undici's dispatch interface itself, which saves what `request` spends on a
 * stream, a controller and a dozen closures for each call.
 */
export class Exchange
  extends Linked
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
  #open: LinkedSet<Exchange> | undefined;
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
    super();
    this.#plan = plan;
    this.deadline = plan.deadline;
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Sends the request; it stays among the open ones until undici lets go of it. */
  begin(dispatcher: Dispatcher, open: LinkedSet<Exchange>): void {
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
    if (status >= 300 && isRedirect(status) && this.#headers["location"] !== undefined) this.#skips = true;
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
    const encoding = this.#headers["content-encoding"];
    const encodings = encoding === undefined ? NO_ENCODINGS : toEncodings(encoding);
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
    this.#resolve(this.#response(this.#streamed));
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
    else this.#resolve(this.#response(this.#bytes.join()));
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

  #response<B>(body: B): ResponseHead & { readonly body: B; readonly delimited: boolean } {
    const { request, sent } = this.#plan;
    return {
      status: this.#status,
      headers: this.#headers,
      attempts: sent.attempts,
      url: request.origin + request.path,
      body,
      delimited: this.#delimited,
    };
  }
}

/** What one exchange is about. */
export interface ExchangePlan {
  readonly request: OutgoingRequest;
  readonly sent: Sent;
  readonly signal: AbortSignal;
  readonly settings: TransportSettings;
  /** Gives the body of a success as it arrives. */
  readonly streamed: boolean;
  /** On the monotonic clock. */
  readonly deadline: number;
}

type Headers = Record<string, string | string[]>;

/** Makes objects in which any name is an ordinary one; engines look names up in one of `Object.create(null)` as in a table, which takes longer. */
function HeaderFields(): void {
  // They are empty at first.
}
HeaderFields.prototype = Object.create(null);

/** Reads headers as they came, name and value in turn; any name is an ordinary one. */
function toHeaders(raw: readonly Uint8Array[]): ResponseHead["headers"] {
  const headers = new (HeaderFields as unknown as new () => Headers)();
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = util.headerNameToString(raw[index] as Buffer);
    const value = (raw[index + 1] as Buffer).toString("latin1");
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else if (typeof before === "string") headers[name] = [before, value];
    else before.push(value);
  }
  return headers;
}

/** How the end of a body is told, or nothing where it is told in a way that is not understood. */
function toFraming(
  headers: ResponseHead["headers"],
  hasBody: boolean,
): { readonly delimited: boolean; readonly length: number | undefined } | undefined {
  if (!hasBody) return { delimited: true, length: 0 };
  const transfer = headers["transfer-encoding"];
  if (transfer !== undefined) {
    const isChunked = typeof transfer === "string" && transfer.trim().toLowerCase() === "chunked";
    return isChunked ? { delimited: true, length: undefined } : undefined;
  }
  const length = headers["content-length"];
  if (length === undefined) return { delimited: false, length: undefined };
  return { delimited: true, length: Number(length) };
}

/** Lists headers as they are sent, name and value in turn. */
function toRawHeaders(headers: OutgoingRequest["headers"]): string[] {
  const raw: string[] = [];
  let accepts = false;
  for (const given of Object.keys(headers)) {
    const name = given.toLowerCase();
    // What the connection itself has to say: no caller's word for it is taken.
    if (isFramingHeader(name)) continue;
    if (name === "accept-encoding") accepts = true;
    raw.push(name, headers[given] as string);
  }
  if (!accepts) raw.push("accept-encoding", ACCEPTED_ENCODINGS);
  return raw;
}

/** The exchange behind a body. */
export interface BodySource {
  /** The reader can take more. */
  flow(): void;
  /** The reader has gone. */
  leave(): void;
  /** Nothing came for too long. */
  expireIdle(): void;
}

interface Waiting {
  resolve(result: IteratorResult<Uint8Array, undefined>): void;
  reject(error: CallError): void;
}

/** A body that is read as it arrives, once, and no faster than its reader wants it. */
export class StreamedBody implements AsyncIterableIterator<Uint8Array, undefined> {
  readonly #source: BodySource;
  readonly #idleTimeoutMs: number;
  readonly #chunks: Uint8Array[] = [];
  readonly #waiting: Waiting[] = [];
  #end: { readonly error: CallError | undefined } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(source: BodySource, idleTimeoutMs: number) {
    this.#source = source;
    this.#idleTimeoutMs = idleTimeoutMs;
  }

  /** Returns false where nobody waits for more. */
  push(chunk: Buffer): boolean {
    const bytes = new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const waiting = this.#waiting.shift();
    if (waiting === undefined) {
      this.#chunks.push(bytes);
      return false;
    }
    if (this.#waiting.length === 0) clearTimeout(this.#timer);
    waiting.resolve({ value: bytes, done: false });
    return this.#waiting.length > 0;
  }

  /** What has arrived is read before the end; an error for a reader who has stopped reading comes at once. */
  end(error: CallError | undefined, isSudden = false): void {
    if (this.#end !== undefined) return;
    this.#end = { error };
    clearTimeout(this.#timer);
    if (isSudden) this.#chunks.length = 0;
    for (const waiting of this.#waiting.splice(0)) {
      if (error === undefined) waiting.resolve({ value: undefined, done: true });
      else waiting.reject(error);
      this.#end = { error: undefined };
    }
  }

  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const value = this.#chunks.shift();
    if (value !== undefined) return Promise.resolve({ value, done: false });
    if (this.#end !== undefined) return this.#last(this.#end.error);
    const result = new Promise<IteratorResult<Uint8Array, undefined>>((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
    if (this.#waiting.length === 1 && this.#idleTimeoutMs <= LONGEST_DELAY) {
      this.#timer = setTimeout(expire, this.#idleTimeoutMs, this.#source);
    }
    this.#source.flow();
    return result;
  }

  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.end(undefined, true);
    this.#end = { error: undefined };
    this.#source.leave();
    return Promise.resolve({ value: undefined, done: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** An error is thrown once; an iterator is at its end after that. */
  #last(error: CallError | undefined): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#end = { error: undefined };
    return error === undefined ? Promise.resolve({ value: undefined, done: true }) : Promise.reject(error);
  }
}

function expire(source: BodySource): void {
  source.expireIdle();
}
