import { setTimeout as delay } from "node:timers/promises";
import type { Identity } from "../../core/access/identity.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { backoffMs } from "../../core/limits/backoff.ts";
import { toPlainLine } from "../client/plain-line.ts";
import { rpcErrorOf } from "../client/request-failures.ts";
import type { SentRequest } from "../protocol/peer.ts";
import {
  claimedRevision,
  encodeHeader,
  isInexact,
  methodTraits,
  mirroredParams,
  mirroredValue,
} from "../protocol/revisions.ts";
import { type Channel, ChannelError, type ChannelListener, type Loss } from "./channel.ts";
import {
  discard,
  HttpRequests,
  type HttpRequestsOptions,
  mediaTypeOf,
  readEvents,
  readText,
} from "./http-requests.ts";

/** The shortest and longest wait before a broken stream is taken up again, whatever the server asks for. */
const RESUME_MS = { first: 500, min: 250, max: 30_000 } as const;
/** How often a broken stream is taken up again in vain. */
const RESUME_TRIES = 3;
/** How often a message is sent again that another replica of the server has to take. */
const ELSEWHERE_TRIES = 8;
/** How long a server may take to hear that a session is over. */
const GOODBYE_MS = 1_000;

/** Where a stream of events belongs, and how far it was read. */
interface Stream {
  /** The request that it answers; nothing for what comes unasked. */
  readonly request: SentRequest | undefined;
  readonly signal: AbortSignal;
  lastEventId: string | undefined;
  isAnswered: boolean;
}

/** Streamable HTTP: a POST for each message, answered with JSON or with events, and a GET for what comes unasked. */
export class StreamableHttpChannel implements Channel {
  readonly isShared = false;
  readonly #url: URL;
  readonly #maxBytes: number;
  readonly #requests: HttpRequests;
  /** What ends the requests under way. */
  readonly #underWay = new Set<AbortController>();
  #listener: ChannelListener | undefined;
  #sessionId: string | undefined;
  #revision: string | undefined;
  /** Milliseconds that the server asks for before a stream is opened again. */
  #retryMs: number | undefined;
  #isClosed = false;

  constructor(options: HttpRequestsOptions) {
    this.#url = options.url;
    this.#maxBytes = options.maxBytes;
    this.#requests = new HttpRequests(options);
  }

  get hasSession(): boolean {
    return this.#sessionId !== undefined;
  }

  async start(listener: ChannelListener): Promise<void> {
    this.#listener = listener;
  }

  agree(revision: string): void {
    this.#revision = revision;
  }

  loss(): Loss {
    return { reason: "the connection was closed" };
  }

  async send(text: string, request?: SentRequest): Promise<void> {
    await this.#during(request?.signal, async (signal) => {
      const headers = this.#headersFor(request);
      const isAside = request === undefined;
      const identity = request?.call?.identity;
      const sent = { method: "POST", headers, body: text, signal, isAside, identity } as const;
      const response = await this.#post(sent);
      if (request?.method === "initialize") {
        this.#sessionId = response.headers.get("mcp-session-id") || undefined;
      }
      if (request === undefined || response.status === 202) await discard(response);
      else await this.#readAnswer(response, request, signal);
    });
  }

  listen(): void {
    const stream = { request: undefined, lastEventId: undefined, isAnswered: false };
    this.#during(undefined, async (signal) => {
      const response = await this.#openStream(undefined, signal);
      if (response !== undefined) await this.#follow(response, { ...stream, signal });
    }).catch((error: unknown) => {
      if (!this.#isClosed)
        this.#listener?.onOddity(`The stream of events could not be opened: ${show(error)}`);
    });
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    await this.#endSession();
    this.#isClosed = true;
    for (const controller of this.#underWay) controller.abort(closed());
    this.#underWay.clear();
    this.#listener?.onClose();
  }

  async #endSession(): Promise<void> {
    const id = this.#sessionId;
    if (id === undefined) return;
    this.#sessionId = undefined;
    const headers = this.#commonHeaders();
    headers.set("mcp-session-id", id);
    const signal = AbortSignal.timeout(GOODBYE_MS);
    await this.#requests
      .send(this.#url, { method: "DELETE", headers, signal })
      .then(discard)
      .catch(() => {});
  }

  /** Runs something that ends with the channel, or with the signal that is given. */
  async #during(given: AbortSignal | undefined, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#isClosed) throw closed();
    const controller = new AbortController();
    const abort = (): void => controller.abort(given?.reason);
    this.#underWay.add(controller);
    if (given?.aborted === true) abort();
    else given?.addEventListener("abort", abort, { once: true });
    try {
      await run(controller.signal);
    } finally {
      this.#underWay.delete(controller);
      given?.removeEventListener("abort", abort);
    }
  }

  #commonHeaders(): Headers {
    const headers = new Headers();
    if (this.#sessionId !== undefined) headers.set("mcp-session-id", this.#sessionId);
    if (this.#revision !== undefined) headers.set("mcp-protocol-version", this.#revision);
    return headers;
  }

  /** Since 2026-07-28, headers say what the request says of itself, so that it can be routed by them. */
  #headersFor(request: SentRequest | undefined): Headers {
    const headers = this.#commonHeaders();
    headers.set("content-type", "application/json");
    headers.set("accept", "application/json, text/event-stream");
    if (request === undefined) return headers;
    const { method, params, inputSchema } = request;
    if (method === "initialize") headers.delete("mcp-session-id");
    const revision = claimedRevision(params);
    if (revision === undefined) return headers;
    headers.set("mcp-protocol-version", revision);
    headers.set("mcp-method", method);
    const named = methodTraits(method)?.named;
    const name = named === undefined ? undefined : params?.[named];
    if (typeof name === "string") headers.set("mcp-name", encodeHeader(name));
    if (method !== "tools/call" || inputSchema === undefined) return headers;
    for (const { path, header } of mirroredParams(inputSchema)) {
      const value = mirroredValue(params?.["arguments"], path);
      if (value !== undefined && !isInexact(value)) headers.set(header, encodeHeader(String(value)));
    }
    return headers;
  }

  /** Posts a message, and again where another replica of the server has to take it: through a balancer it may reach that one. */
  async #post(
    sent: Parameters<HttpRequests["send"]>[1] & { readonly signal: AbortSignal },
  ): Promise<Response> {
    for (let tries = 0; ; tries++) {
      const response = await this.#requests.send(this.#url, sent);
      if (response.ok) return response;
      const error = await this.#toStatusError(response);
      if (tries >= ELSEWHERE_TRIES || !isHeldElsewhere(error)) throw error;
      const wanted = Number(response.headers.get("retry-after") ?? 0) * 1_000 || 0;
      const ms = Math.min(Math.max(wanted, RESUME_MS.min), RESUME_MS.max);
      await delay(ms, undefined, { signal: sent.signal, ref: false }).catch(() => {});
    }
  }

  async #toStatusError(response: Response): Promise<ChannelError> {
    const body = await readText(response, this.#maxBytes).catch(() => "");
    return new ChannelError("status", { status: response.status, body });
  }

  async #readAnswer(response: Response, request: SentRequest, signal: AbortSignal): Promise<void> {
    const stream: Stream = { request, signal, lastEventId: undefined, isAnswered: false };
    switch (mediaTypeOf(response)) {
      case "text/event-stream":
        await this.#follow(response, stream);
        return;
      case "application/json": {
        const text = await readText(response, this.#maxBytes);
        if (!this.#deliver(parseOrNone(text), stream)) throw new ChannelError("no-message");
        if (!stream.isAnswered) throw new ChannelError("stream-ended");
        return;
      }
      default:
        await discard(response);
        throw new ChannelError("content-type");
    }
  }

  /** Hands on a message, or a list of them; false where it is none. */
  #deliver(value: unknown, stream: Stream): boolean {
    const messages: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (messages.length === 0 || !messages.every(isMessage)) return false;
    for (const message of messages as readonly Readonly<Record<string, unknown>>[]) {
      const isAnswer = !Object.hasOwn(message, "method");
      // An error that could not be given an id is the answer to what was just sent.
      const isForThis = isAnswer && (message["id"] === null || message["id"] === undefined);
      stream.isAnswered ||= isAnswer;
      this.#listener?.onMessage(
        isForThis && stream.request !== undefined ? { ...message, id: stream.request.id } : message,
      );
    }
    return true;
  }

  /** Reads a stream to the answer or to its end, and takes it up again where it broke. */
  async #follow(opened: Response, stream: Stream): Promise<void> {
    let response: Response | undefined = opened;
    while (response !== undefined) {
      await this.#read(response, stream);
      const isOver = stream.isAnswered || stream.signal.aborted;
      if (isOver) return;
      if (stream.request !== undefined && stream.lastEventId === undefined) break;
      response = await this.#reopen(stream);
    }
    if (stream.request !== undefined) throw new ChannelError("stream-ended");
  }

  async #read(response: Response, stream: Stream): Promise<void> {
    try {
      await readEvents(response, this.#maxBytes, {
        onRetry: (ms) => {
          this.#retryMs = ms;
        },
        onEvent: ({ id, event, data }) => {
          if (id) stream.lastEventId = id;
          if (data === "" || (event !== undefined && event !== "message")) return;
          if (!this.#deliver(parseOrNone(data), stream))
            this.#listener?.onOddity("An event holds no JSON-RPC message.");
        },
      });
    } catch (error) {
      if (stream.signal.aborted) return;
      if (isCallError(error) && stream.request !== undefined) throw error;
      this.#listener?.onOddity(`A stream of events broke: ${show(error)}`);
    }
  }

  async #reopen(stream: Stream): Promise<Response | undefined> {
    for (let tries = 0; tries < RESUME_TRIES; tries++) {
      const wanted = this.#retryMs ?? backoffMs(tries + 1, RESUME_MS.first, RESUME_MS.max);
      const ms = Math.min(Math.max(wanted, RESUME_MS.min), RESUME_MS.max);
      await delay(ms, undefined, { signal: stream.signal, ref: false }).catch(() => {});
      if (stream.signal.aborted) return undefined;
      try {
        return await this.#openStream(stream.lastEventId, stream.signal, stream.request?.call?.identity);
      } catch (error) {
        if (stream.signal.aborted) return undefined;
        this.#listener?.onOddity(`A stream of events could not be opened again: ${show(error)}`);
      }
    }
    this.#listener?.onOddity("A stream of events was opened again too often in vain.");
    this.#listener?.onStale();
    return undefined;
  }

  /** Opens a stream with GET; nothing where the server has none. */
  async #openStream(
    lastEventId: string | undefined,
    signal: AbortSignal,
    identity?: Identity,
  ): Promise<Response | undefined> {
    const headers = this.#commonHeaders();
    headers.set("accept", "text/event-stream");
    // In UTF-8, as browsers send it: the platform takes a character for each byte.
    if (lastEventId !== undefined)
      headers.set("last-event-id", Buffer.from(lastEventId, "utf8").toString("latin1"));
    const response = await this.#requests.send(this.#url, { method: "GET", headers, signal, identity });
    if (response.ok && mediaTypeOf(response) === "text/event-stream") return response;
    await discard(response);
    if (response.ok || response.status === 405) return undefined;
    throw new ChannelError("status", { status: response.status });
  }
}

function parseOrNone(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Tells whether a replica of the server says that it has done nothing, because another one has to. */
function isHeldElsewhere({ status, body }: ChannelError): boolean {
  const data = status === 503 ? rpcErrorOf(body)?.data : undefined;
  return isPlainObject(data) && data["reason"] === "held_elsewhere";
}

function isMessage(value: unknown): boolean {
  if (!isPlainObject(value) || value["jsonrpc"] !== "2.0") return false;
  return ["method", "result", "error"].some((member) => Object.hasOwn(value, member));
}

function show(error: unknown): string {
  return toPlainLine(error instanceof Error ? error.message : String(error), 300);
}

function closed(): CallError {
  return new CallError("UNAVAILABLE", "The connection is closed.", { stack: false });
}
