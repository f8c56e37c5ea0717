import { randomBytes } from "node:crypto";
import { isErrorEnvelope, type ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { CallError, toCallError } from "../../core/errors/errors.ts";
import { toJsonTextOrNone } from "../../core/json/json-value.ts";
import { encodeEnvelope, toWire } from "../../core/wire/wire.ts";
import { problemOf } from "./problem-answer.ts";

/** Bounds of one subscription. */
export interface StreamLimits {
  readonly streamEvents: number;
  readonly streamBytes: number;
  readonly resumeMs: number;
}

/** Bytes of the events that all subscriptions keep, and how many that may be. */
export interface KeptBytes {
  now: number;
  readonly most: number;
}

/** What a subscription runs on. */
export interface StreamSource {
  readonly operationId: string;
  readonly requestId: string;
  /** Whose it is; nobody else may take it up. */
  readonly owner: string;
  /** The caller, whatever rights they have at the moment. */
  readonly caller: string;
  readonly values: AsyncIterable<ResponseEnvelope>;
  /** Whether whole envelopes are written, and not their data alone. @default false */
  readonly isWhole?: boolean | undefined;
  /** Names this replica among several. @default it is the only one */
  readonly replica?: string | undefined;
  /** Hears each event as it is kept. */
  onKept?(sequence: number, text: string): void;
  /** Ends the handler. */
  abort(reason: unknown): void;
  /** Hears that the last event was kept. */
  onOver?(): void;
  /** Hears of what the handler failed with. */
  onError(error: CallError): void;
  /** Hears that nobody can take the subscription up any more. */
  onGone(): void;
}

interface KeptEvent {
  readonly sequence: number;
  readonly text: string;
}

type Text = IteratorResult<string, undefined>;

const KEEP_ALIVE_MS = 15_000;
const KEEP_ALIVE = ": keep-alive\n\n";
const DONE: Text = { done: true, value: undefined };

/**
 * A subscription, which readers may come to and leave: the handler is asked for one value at a time, and only while somebody reads. What was
 * read last is kept, for a client that comes back.
 */
export class LiveStream {
  /** Nobody can guess it; of several replicas, it begins with the name of this one. */
  readonly id: string;
  readonly #source: StreamSource;
  readonly #limits: StreamLimits & { readonly all: KeptBytes };
  readonly #values: AsyncIterator<ResponseEnvelope>;
  readonly #kept: KeptEvent[] = [];
  #keptBytes = 0;
  /** The sequence of the event that comes next. */
  #next = 0;
  #isStepping = false;
  #isOver = false;
  #firstError: CallError | undefined;
  #reader: StreamReader | undefined;
  /** Tells the waiting reader that there may be something new. */
  #wake: () => void = () => {};
  #leaving: ReturnType<typeof setTimeout> | undefined;
  #leftAt: number | undefined;

  constructor(source: StreamSource, limits: StreamLimits & { readonly all: KeptBytes }) {
    const id = randomBytes(18).toString("base64url");
    this.id = source.replica === undefined ? id : `${source.replica}-${id}`;
    this.#source = source;
    this.#limits = limits;
    this.#values = source.values[Symbol.asyncIterator]();
  }

  get caller(): string {
    return this.#source.caller;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** When its last reader left, by the monotonic clock; nothing while there is one. */
  get leftAt(): number | undefined {
    return this.#leftAt;
  }

  isOf(operationId: string, owner: string): boolean {
    return this.#source.operationId === operationId && this.#source.owner === owner;
  }

  /** Waits a while for the first event, and gives the error where that is one. */
  async begin(ms: number): Promise<CallError | undefined> {
    this.#advance();
    if (this.#next === 0) await this.#wait(ms);
    // The client may have gone already.
    this.leave(undefined);
    return this.#firstError;
  }

  /** Tells whether every event from this one on can still be read. */
  has(sequence: number): boolean {
    const first = this.#kept[0]?.sequence ?? this.#next;
    return sequence >= first && sequence <= this.#next;
  }

  /** Tells whether nothing comes from this one on. */
  isEndedBefore(sequence: number): boolean {
    return this.#isOver && sequence >= this.#next;
  }

  /** Reads on from an event, in the place of the present reader. */
  read(from: number): AsyncIterableIterator<string, undefined> {
    clearTimeout(this.#leaving);
    this.#leftAt = undefined;
    this.#reader = new StreamReader(this, from);
    this.#wake();
    return this.#reader;
  }

  /** Ends it; the reader is told why. */
  end(error: CallError): void {
    if (!this.#isOver) this.#finish(writeError(this.#nextId(), error, this.#source.requestId));
    this.#source.abort(error);
  }

  /** Drops it: nobody can take it up any more. */
  drop(): void {
    clearTimeout(this.#leaving);
    this.#isOver = true;
    this.#reader = undefined;
    while (this.#kept.length > 0) this.#dropOldest();
    this.#source.abort(new CallError("ABORTED", undefined, { stack: false }));
    this.#values.return?.().catch(() => {});
    this.#source.onGone();
    this.#wake();
  }

  /** Gives a reader its next event, or a sign of life when there is none for long. */
  async step(reader: StreamReader): Promise<Text> {
    for (;;) {
      if (this.#reader !== reader) return DONE;
      const first = this.#kept[0]?.sequence ?? this.#next;
      const event = this.#kept[Math.max(reader.from - first, 0)];
      if (event !== undefined) {
        reader.from = event.sequence + 1;
        return { done: false, value: event.text };
      }
      if (this.#isOver) {
        this.leave(reader);
        return DONE;
      }
      this.#advance();
      if (await this.#wait(KEEP_ALIVE_MS)) return { done: false, value: KEEP_ALIVE };
    }
  }

  /** Hears that a reader has left; nobody else may come for long. */
  leave(reader: StreamReader | undefined): void {
    if (this.#reader !== reader) return;
    this.#reader = undefined;
    this.#leftAt = performance.now();
    this.#leaving = setTimeout(() => this.drop(), this.#limits.resumeMs);
    this.#leaving.unref?.();
    this.#wake();
  }

  /** Asks the handler for one more event, unless it has been asked. */
  #advance(): void {
    if (this.#isStepping || this.#isOver) return;
    this.#isStepping = true;
    this.#pull()
      .catch((thrown) => this.#fail(toCallError(thrown)))
      .finally(() => {
        this.#isStepping = false;
        this.#wake();
      });
  }

  async #pull(): Promise<void> {
    const step = await this.#values.next();
    if (this.#isOver) return;
    if (step.done === true) this.#finish(writeDone(this.#nextId()));
    else this.#keep(writeNext(this.#nextId(), step.value, this.#source.isWhole));
  }

  #fail(error: CallError): void {
    if (this.#isOver) return;
    this.#source.onError(error);
    if (this.#next === 0) this.#firstError = error;
    this.#finish(writeError(this.#nextId(), error, this.#source.requestId));
    this.#source.abort(error);
  }

  #finish(text: string): void {
    this.#keep(text);
    this.#isOver = true;
    this.#source.onOver?.();
    this.#wake();
  }

  #nextId(): string {
    return `${this.id}:${this.#next}`;
  }

  #keep(text: string): void {
    const { streamEvents, streamBytes, all } = this.#limits;
    const bytes = Buffer.byteLength(text);
    this.#source.onKept?.(this.#next, text);
    this.#kept.push({ sequence: this.#next++, text });
    this.#keptBytes += bytes;
    all.now += bytes;
    const isOver = (): boolean =>
      this.#kept.length > streamEvents || this.#keptBytes > streamBytes || all.now > all.most;
    // The newest one stays, however long it is: nobody has read it yet.
    while (this.#kept.length > 1 && isOver()) this.#dropOldest();
  }

  #dropOldest(): void {
    const bytes = Buffer.byteLength(this.#kept.shift()?.text ?? "");
    this.#keptBytes -= bytes;
    this.#limits.all.now -= bytes;
  }

  /** Waits until there may be something new; true when the time is over. */
  #wait(ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(true), ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve(false);
      };
    });
  }
}

/** Reads a stream for one client. */
class StreamReader implements AsyncIterableIterator<string, undefined> {
  readonly #stream: LiveStream;
  /** The event it reads next. */
  from: number;
  #isOpened = false;

  constructor(stream: LiveStream, from: number) {
    this.#stream = stream;
    this.from = from;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<Text> {
    if (this.#isOpened) return this.#stream.step(this);
    this.#isOpened = true;
    return { done: false, value: "retry: 1000\n\n" };
  }

  async return(): Promise<Text> {
    this.#stream.leave(this);
    return DONE;
  }
}

const WIRE = { code: "OUTPUT_INVALID", errors: false } as const;

/**
 * Writes one yield of a subscription: `data` is what JSON makes of it, `wire` what it is exactly, each where there is one and the two
 * differ. A yield that reports an error has `isError` and its reason.
 */
function writeNext(id: string, envelope: ResponseEnvelope, isWhole = false): string {
  if (isWhole) return writeEvent(id, "next", `{"envelope":${encodeEnvelope(envelope)}}`);
  const { data, meta } = envelope;
  const { cursor, event, code, message, details, said } = meta.waybill ?? {};
  const wire = toWire(data, WIRE);
  const text = data === undefined ? undefined : toJsonTextOrNone(data);
  const members = [
    ...(text === undefined ? [] : [`"data":${text}`]),
    ...(wire === data && text !== undefined ? [] : [`"wire":${JSON.stringify(wire)}`]),
    ...writeMembers({ cursor, event, said }),
    ...(isErrorEnvelope(envelope) ? ['"isError":true', ...writeMembers({ code, message, details })] : []),
  ];
  return writeEvent(id, "next", `{${members.join(",")}}`);
}

/** Writes the end of a subscription. */
function writeDone(id: string): string {
  return writeEvent(id, "done", "{}");
}

/** Writes the error a subscription ended with, as a problem. */
export function writeError(id: string, error: CallError, requestId: string): string {
  return writeEvent(id, "error", JSON.stringify(problemOf(error, requestId)));
}

function writeMembers(members: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(members).flatMap(([name, value]) => {
    const text = value === undefined ? undefined : toJsonTextOrNone(value);
    return text === undefined ? [] : [`${JSON.stringify(name)}:${text}`];
  });
}

/** JSON text has no line breaks, so that one line of data is enough. */
function writeEvent(id: string, event: string, data: string): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`;
}
