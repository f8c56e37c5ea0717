import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { CallError } from "../core/errors/errors.ts";
import { toProblem } from "../core/errors/problem.ts";
import { addAbortListener, LightSignal, removeAbortListener } from "../core/execution/abort-listeners.ts";
import { parseUrl } from "../core/text/parse-url.ts";
import { BodyBytes } from "./body-bytes.ts";
import { EventStream } from "./event-stream.ts";
import type { HttpAnswer, HttpRequest } from "./exchange.ts";
import { checkLength, tooLarge, unreadable } from "./fetch-exchange.ts";
import type { UnsentBytes } from "./unsent-bytes.ts";

const HOST = /^[a-z0-9._~[\]:-]{1,300}$/i;
/** Answers up to this size are sent however much waits: refusals are among them. */
const SMALL_BYTES = 16_384;
const TOO_MUCH_HEADERS = { "content-type": "application/problem+json", "retry-after": "1" } as const;
/** The call that was asked for has run: whoever repeats it says so with an idempotency key. */
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
  /** Tells whether the listener closes: then connections are not kept for another request. */
  readonly isClosing: () => boolean;
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

  constructor(message: IncomingMessage, response: ServerResponse, shared: SharedByRequests) {
    const { url = "", method = "" } = message;
    const mark = url.indexOf("?");
    this.message = message;
    this.response = response;
    this.#shared = shared;
    this.method = method;
    this.path = mark === -1 ? url : url.slice(0, mark);
    this.query = mark === -1 ? "" : url.slice(mark + 1);
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
    const connection = signalOf(this.message.socket);
    const listener = { onAbort: () => own.abort(connection.reason) };
    if (connection.aborted) listener.onAbort();
    else addAbortListener(connection, listener);
    this.response.once("close", () => {
      removeAbortListener(connection, listener);
      if (!this.response.writableFinished) own.abort(new CallError("ABORTED", undefined, { stack: false }));
    });
    return own;
  }

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
      const listeners = [listener];
      this.#onSent = listeners;
      this.response.once("close", () => {
        for (const tell of listeners) tell();
      });
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
    response.end(body);
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
    return new Request(new URL(`${this.origin}${this.path}${query}`), { method: this.method, headers });
  }
}

const signals = new WeakMap<Socket, LightSignal>();

/** One for each connection, with which a client leaves, and not one of the platform, which costs as much as the rest of a request. */
function signalOf(socket: Socket): LightSignal {
  const known = signals.get(socket);
  if (known !== undefined) return known;
  const signal = new LightSignal();
  signals.set(socket, signal);
  const leave = (): void => signal.abort(new CallError("ABORTED", undefined, { stack: false }));
  if (socket.destroyed) leave();
  else socket.once("close", leave);
  return signal;
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
      resolve(bytes.join());
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
