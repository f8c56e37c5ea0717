import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { CallError, toProblem } from "../core/errors/errors.ts";
import { LightSignal } from "../core/execution/cancellation.ts";
import { parseUrl } from "../core/text/parse-url.ts";
import { BodyBytes, checkLength, tooLarge, unreadable } from "./body-bytes.ts";
import { EventStream } from "./event-stream.ts";
import type { HttpAnswer, HttpRequest } from "./exchange.ts";

const HOST = /^[a-z0-9._~[\]:-]{1,300}$/i;
/** Answers up to this size are sent however much waits: refusals are among them. */
const SMALL_BYTES = 16_384;
const TOO_MUCH_HEADERS = { "content-type": "application/problem+json", "retry-after": "1" } as const;
/** The call that was asked for has run: a client that repeats it says so with an idempotency key. */
const TOO_MUCH = JSON.stringify(
  toProblem(
    new CallError(
      "RESOURCE_EXHAUSTED",
      "Too much of what was answered has not been read yet, so this answer cannot be sent; read the others, and try again.",
      { stack: false },
    ),
  ),
);
const NOTHING = Promise.resolve(new Uint8Array());
/** How long a client may go on sending what nobody reads, in milliseconds. */
const LINGER_MS = 500;

/** What the requests of one listener share. */
export interface SharedByRequests {
  readonly unsent: UnsentBytes;
  readonly written: TurnWrites;
  /** Tells whether the listener closes: then connections are not kept for another request. */
  readonly isClosing: () => boolean;
  /** What requests behind another one on their connection do when that ends: clients may send thousands at once. */
  readonly onEnds: WeakMap<Socket, Set<() => void>>;
}

/** Sees a message of `node:http` as every server of ours does, and sends the answer to it. */
export class NodeRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly message: IncomingMessage;
  readonly response: ServerResponse;
  owner: string | undefined;
  readonly #shared: SharedByRequests;
  #signal: LightSignal | undefined;
  #onSent: (() => void)[] | undefined;
  #hearsClose = false;

  constructor(message: IncomingMessage, response: ServerResponse, shared: SharedByRequests) {
    const { url = "", method = "" } = message;
    const mark = url.indexOf("?");
    this.message = message;
    this.response = response;
    this.#shared = shared;
    this.method = method;
    this.path = mark === -1 ? url : url.slice(0, mark);
    this.query = mark === -1 ? "" : url.slice(mark + 1);
    if (response.socket === null) this.#endWithConnection();
  }

  get origin(): string {
    const { host = "" } = this.message.headers;
    return `http://${HOST.test(host) && parseUrl(`http://${host}`) !== undefined ? host : "localhost"}`;
  }

  get signal(): AbortSignal {
    return this.#own() as unknown as AbortSignal;
  }

  abort(reason: unknown): void {
    this.#own().abort(reason);
  }

  /** One for each request: what ends it must not end others on the same connection. */
  #own(): LightSignal {
    if (this.#signal !== undefined) return this.#signal;
    const own = new LightSignal();
    this.#signal = own;
    const { response } = this;
    if (response.destroyed && !response.writableFinished) own.abort(clientLeft());
    this.#hearClose();
    return own;
  }

  /** Closes a response behind another one when its connection ends before it is under way: Node tells it nothing, and it would hold for ever what it holds. */
  #endWithConnection(): void {
    const { response } = this;
    const { socket } = this.message;
    const leave = (): void => {
      if (response.socket !== null || response.writableFinished) return;
      response.destroy();
      response.emit("close");
    };
    let onEnd = this.#shared.onEnds.get(socket);
    if (onEnd === undefined) {
      const all = new Set<() => void>();
      onEnd = all;
      this.#shared.onEnds.set(socket, all);
      socket.once("close", () => {
        for (const end of all) end();
      });
    }
    const heard = onEnd;
    heard.add(leave);
    response.once("close", () => heard.delete(leave));
  }

  #hearClose(): void {
    if (this.#hearsClose) return;
    this.#hearsClose = true;
    this.response.once("close", this.#closed);
  }

  readonly #closed = (): void => {
    if (!this.response.writableFinished) this.#signal?.abort(clientLeft());
    for (const tell of this.#onSent ?? []) tell();
  };

  header(name: string): string | undefined {
    const value = this.message.headers[name];
    return typeof value === "object" ? value.join(", ") : value;
  }

  body(limit: number): Promise<Uint8Array> {
    const { headers } = this.message;
    const length = headers["content-length"];
    if (length === undefined && headers["transfer-encoding"] === undefined) return NOTHING;
    checkLength(length, limit);
    return readAll(this.message, limit);
  }

  onSent(listener: () => void): void {
    if (this.response.destroyed || this.response.writableFinished) listener();
    else if (this.#onSent !== undefined) this.#onSent.push(listener);
    else {
      this.#onSent = [listener];
      this.#hearClose();
    }
  }

  /**
   * Sends the answer; a stream is read no faster than the client takes it. What the connection has not taken is counted until it has, and
   * an answer for which there is no room becomes a refusal, a stream ends.
   */
  send(answer: HttpAnswer): Promise<void> | undefined {
    const { message, response } = this;
    const { status, body } = answer;
    if (this.#shared.isClosing()) response.shouldKeepAlive = false;
    // A body that nobody has read to its end is not waited for: the client may never end it.
    const isUnread = !message.complete && hasBody(message);
    const headers = isUnread ? { ...answer.headers, connection: "close" } : answer.headers;
    if (isUnread) dropRest(message, response);
    if (body === undefined || typeof body === "string" || body instanceof Uint8Array) {
      this.#sendWhole(status, headers, body);
      return undefined;
    }
    response.writeHead(status, headers as Record<string, string | string[]>);
    response.flushHeaders();
    if (body instanceof EventStream) {
      body.onGiveUp = () => response.destroy();
      body.countBy({
        fits: (bytes) => this.#shared.unsent.fits(this.owner, bytes),
        add: (bytes) => this.#count(bytes),
      });
    }
    return this.#pump(body);
  }

  #sendWhole(status: number, headers: HttpAnswer["headers"], body: string | Uint8Array | undefined): void {
    const { response } = this;
    const isHead = this.method === "HEAD";
    const all = headers as Record<string, string | string[] | number>;
    if (body === undefined) {
      if (status !== 204 && status !== 304 && !isHead) all["content-length"] = 0;
      response.writeHead(status, all);
      response.end();
      return;
    }
    const bytes = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
    if (!isHead && bytes > SMALL_BYTES && !this.#shared.unsent.fits(this.owner, bytes)) {
      this.#sendWhole(503, { ...TOO_MUCH_HEADERS }, TOO_MUCH);
      return;
    }
    all["content-length"] = bytes;
    response.writeHead(status, all);
    if (isHead) {
      response.end();
      return;
    }
    if (typeof body === "string" && bytes > 0) {
      this.#shared.written.add(() => this.#write(body, bytes));
      return;
    }
    response.end(body);
    this.#countUnsent(bytes);
  }

  /** Head and body leave in one plain write: given to `end`, they are gathered with an empty piece that tells their end. */
  #write(body: string, bytes: number): void {
    const { response } = this;
    if (response.destroyed) return;
    response.write(body, bytes === body.length ? "latin1" : "utf8");
    response.socket?.uncork();
    response.end();
    this.#countUnsent(bytes);
  }

  #countUnsent(bytes: number): void {
    const { response } = this;
    if (response.writableFinished || response.destroyed) return;
    this.#count(bytes);
    this.onSent(() => this.#count(-bytes));
  }

  #count(bytes: number): void {
    if (bytes > 0) this.#shared.unsent.take(this.owner, bytes);
    else this.#shared.unsent.giveBack(this.owner, -bytes);
  }

  /** Takes the next event only when the last one is on its way. */
  async #pump(body: AsyncIterable<string>): Promise<void> {
    const { response } = this;
    const texts = body[Symbol.asyncIterator]();
    const leave = (): void => {
      texts.return?.().catch(() => {});
    };
    response.once("close", leave);
    if (response.destroyed) leave();
    try {
      for (;;) {
        const step = await texts.next();
        if (step.done === true) break;
        if (response.write(step.value) || response.destroyed) continue;
        const bytes = Buffer.byteLength(step.value);
        if (!this.#shared.unsent.fits(this.owner, bytes)) {
          response.destroy();
          break;
        }
        this.#count(bytes);
        await drained(response);
        this.#count(-bytes);
      }
    } finally {
      response.end();
    }
  }

  toRequest(): Request {
    const headers = new Headers();
    for (const [name, value] of Object.entries(this.message.headers)) {
      for (const one of typeof value === "object" ? value : [value ?? ""]) headers.append(name, one);
    }
    const query = this.query === "" ? "" : `?${this.query}`;
    // A `Request` cannot be a TRACE, under which nothing is served: who asks is told by the rest of it.
    const method = this.method === "TRACE" ? "GET" : this.method;
    return new Request(new URL(`${this.origin}${this.path}${query}`), { method, headers });
  }
}

function clientLeft(): CallError {
  return new CallError("ABORTED", undefined, { stack: false });
}

function readAll(message: IncomingMessage, limit: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const bytes = new BodyBytes();
    let isRead = false;
    if (message.destroyed) reject(unreadable(undefined));
    message.on("data", (chunk: Buffer) => {
      if (bytes.length + chunk.length <= limit) bytes.add(chunk);
      else reject(tooLarge(limit));
    });
    message.on("end", () => {
      isRead = true;
      resolve(bytes.join(Buffer.allocUnsafe(bytes.length)));
    });
    message.on("error", (cause) => reject(unreadable(cause)));
    message.on("close", () => {
      if (!isRead) reject(unreadable(undefined));
    });
  });
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

function dropRest(message: IncomingMessage, response: ServerResponse): void {
  message.resume();
  response.once("finish", () => {
    const timer = setTimeout(() => message.destroy(), LINGER_MS);
    message.once("close", () => clearTimeout(timer));
  });
}

/** Resolves when a client has taken what was written, or is gone. */
export function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.on("drain", done);
    response.on("close", done);
  });
}

/**
 * What is written in one turn of the event loop, sent at its end. Each write wakes the process that waits for it, which on few processors
 * runs at once, in place of this one; writes one after another wake it once. It takes a tenth off the processor time of a call.
 */
export class TurnWrites {
  #waiting: (() => void)[] = [];

  add(write: () => void): void {
    if (this.#waiting.length === 0) setImmediate(this.#writeAll);
    this.#waiting.push(write);
  }

  readonly #writeAll = (): void => {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const write of waiting) write();
  };
}

/** Of all that may wait to be sent, one caller has the fourth part. */
const SHARES = 4;

/** Counts what clients of a listener have not taken of their answers, of each caller and in all. */
export class UnsentBytes {
  readonly #most: number;
  readonly #own = new Map<string, number>();
  #all = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Tells whether so many more may wait; `owner` names the caller where callers are told apart. What is alone always fits. */
  fits(owner: string | undefined, bytes: number): boolean {
    if (this.#all === 0) return true;
    const own = owner === undefined ? 0 : (this.#own.get(owner) ?? 0);
    return this.#all + bytes <= this.#most && (own === 0 || own + bytes <= Math.ceil(this.#most / SHARES));
  }

  take(owner: string | undefined, bytes: number): void {
    this.#all += bytes;
    if (owner !== undefined) this.#own.set(owner, (this.#own.get(owner) ?? 0) + bytes);
  }

  giveBack(owner: string | undefined, bytes: number): void {
    this.#all -= bytes;
    if (owner === undefined) return;
    const own = (this.#own.get(owner) ?? 0) - bytes;
    if (own > 0) this.#own.set(owner, own);
    else this.#own.delete(owner);
  }
}
