import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { CallError } from "../core/errors/errors.ts";
import { addAbortListener, LightSignal, removeAbortListener } from "../core/execution/abort-listeners.ts";
import { parseUrl } from "../core/text/parse-url.ts";
import { BodyBytes } from "./body-bytes.ts";
import { EventStream } from "./event-stream.ts";
import type { HttpAnswer, HttpRequest } from "./exchange.ts";
import { checkLength, tooLarge, unreadable } from "./fetch-exchange.ts";

const HOST = /^[a-z0-9._~[\]:-]{1,300}$/i;
const NOTHING = Promise.resolve(new Uint8Array());
/** How long a client may go on sending what nobody reads, in milliseconds. */
const LINGER_MS = 500;

/** Sees a message of `node:http` as every server of ours does. */
export class NodeRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly #message: IncomingMessage;
  readonly #response: ServerResponse;
  #signal: LightSignal | undefined;

  constructor(message: IncomingMessage, response: ServerResponse) {
    const { url = "", method = "" } = message;
    const mark = url.indexOf("?");
    this.#message = message;
    this.#response = response;
    this.method = method;
    this.path = mark === -1 ? url : url.slice(0, mark);
    this.query = mark === -1 ? "" : url.slice(mark + 1);
  }

  get origin(): string {
    const { host = "" } = this.#message.headers;
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
    const connection = signalOf(this.#message.socket);
    const listener = { onAbort: () => own.abort(connection.reason) };
    if (connection.aborted) listener.onAbort();
    else addAbortListener(connection, listener);
    this.#response.once("close", () => {
      removeAbortListener(connection, listener);
      if (!this.#response.writableFinished) own.abort(new CallError("ABORTED", undefined, { stack: false }));
    });
    return own;
  }

  header(name: string): string | undefined {
    const value = this.#message.headers[name];
    return typeof value === "object" ? value.join(", ") : value;
  }

  body(limit: number): Promise<Uint8Array> {
    const { headers } = this.#message;
    const length = headers["content-length"];
    if (length === undefined && headers["transfer-encoding"] === undefined) return NOTHING;
    checkLength(length, limit);
    return readAll(this.#message, limit);
  }

  toRequest(): Request {
    const headers = new Headers();
    for (const [name, value] of Object.entries(this.#message.headers)) {
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

/** Sends an answer; a stream is read no faster than the client takes it. */
export function sendAnswer(
  answer: HttpAnswer,
  message: IncomingMessage,
  response: ServerResponse,
): Promise<void> | undefined {
  const { status, body } = answer;
  // A body that nobody has read to its end is not waited for: the client may never end it.
  const isUnread = !message.complete && hasBody(message);
  const headers = isUnread ? { ...answer.headers, connection: "close" } : answer.headers;
  if (isUnread) dropRest(message, response);
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) {
    sendWhole(status, headers, body, response, message.method === "HEAD");
    return undefined;
  }
  response.writeHead(status, headers as Record<string, string | string[]>);
  response.flushHeaders();
  if (body instanceof EventStream) body.onGiveUp = () => response.destroy();
  return pump(body, response);
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

function sendWhole(
  status: number,
  headers: HttpAnswer["headers"],
  body: string | Uint8Array | undefined,
  response: ServerResponse,
  isHead: boolean,
): void {
  const all = headers as Record<string, string | string[] | number>;
  if (body === undefined) {
    if (status !== 204 && status !== 304 && !isHead) all["content-length"] = 0;
    response.writeHead(status, all);
    response.end();
    return;
  }
  all["content-length"] = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
  response.writeHead(status, all);
  if (isHead) response.end();
  else response.end(body);
}

/** Takes the next event only when the last one is on its way. */
async function pump(body: AsyncIterable<string>, response: ServerResponse): Promise<void> {
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
      if (!response.write(step.value) && !response.destroyed) await drained(response);
    }
  } finally {
    response.end();
  }
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
