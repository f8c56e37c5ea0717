import { isCallError } from "../../core/errors/errors.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import type { SentRequest } from "../protocol/peer.ts";
import { type Channel, ChannelError, type ChannelListener, type Loss } from "./channel.ts";
import {
  discard,
  HttpRequests,
  type HttpRequestsOptions,
  mediaTypeOf,
  readEvents,
  readText,
} from "./http-requests.ts";
import { createRpcReader } from "./rpc-lines.ts";

/** The old HTTP+SSE transport of 2024-11-05: one stream of events from the server, which names where to POST messages. */
export class HttpSseChannel implements Channel {
  readonly isShared = true;
  readonly hasSession = false;
  readonly #url: URL;
  readonly #maxBytes: number;
  readonly #requests: HttpRequests;
  readonly #stop = new AbortController();
  #listener: ChannelListener | undefined;
  #endpoint: URL | undefined;
  #revision: string | undefined;
  #loss: Loss = { reason: "the connection was closed" };
  #isClosed = false;

  constructor(options: HttpRequestsOptions) {
    this.#url = options.url;
    this.#maxBytes = options.maxBytes;
    this.#requests = new HttpRequests(options);
  }

  /** Resolves when the server has named where messages go. */
  async start(listener: ChannelListener): Promise<void> {
    this.#listener = listener;
    const headers = new Headers({ accept: "text/event-stream" });
    const { signal } = this.#stop;
    const response = await this.#requests.send(this.#url, { method: "GET", headers, signal });
    if (!response.ok) throw await this.#toStatusError(response);
    if (mediaTypeOf(response) !== "text/event-stream") {
      await discard(response);
      throw new ChannelError("content-type");
    }
    await new Promise<void>((resolve, reject) => void this.#follow(response, resolve, reject));
  }

  async send(text: string, request?: SentRequest): Promise<void> {
    if (this.#endpoint === undefined || this.#isClosed) throw new ChannelError("stream-ended");
    const headers = new Headers({ "content-type": "application/json" });
    if (this.#revision !== undefined) headers.set("mcp-protocol-version", this.#revision);
    const { signal } = this.#stop;
    const response = await this.#requests.send(this.#endpoint, {
      method: "POST",
      headers,
      body: text,
      signal,
      isAside: request === undefined,
      identity: request?.call?.identity,
    });
    if (!response.ok) throw await this.#toStatusError(response);
    await discard(response);
  }

  agree(revision: string): void {
    this.#revision = revision;
  }

  listen(): void {}

  loss(): Loss {
    return this.#loss;
  }

  async close(): Promise<void> {
    this.#end();
  }

  async #follow(
    response: Response,
    onEndpoint: () => void,
    onFailure: (error: unknown) => void,
  ): Promise<void> {
    const messages = createRpcReader({
      lineBytes: this.#maxBytes,
      what: "An event",
      onMessage: (message) => this.#listener?.onMessage(message),
      onOddity: (message) => this.#listener?.onOddity(message),
    });
    let failure: unknown = new ChannelError("stream-ended");
    try {
      await readEvents(response, this.#maxBytes, {
        onEvent: ({ event, data }) => {
          if (event === "endpoint") {
            this.#endpoint ??= this.#toEndpoint(data);
            onEndpoint();
          } else if (data !== "" && (event === undefined || event === "message")) {
            messages.push(Buffer.from(`${data.replace(/\n/g, " ")}\n`));
          }
        },
      });
      this.#loss = { reason: "its event stream ended" };
    } catch (error) {
      failure = error;
      this.#loss = { reason: reasonOf(error, this.#maxBytes), cause: error };
    }
    onFailure(failure);
    this.#end();
  }

  /** Messages and credentials go to the origin that was asked for, and nowhere else. */
  #toEndpoint(data: string): URL {
    const endpoint = parseUrl(data, this.#url);
    const isOwn =
      endpoint?.origin === this.#url.origin && endpoint.username === "" && endpoint.password === "";
    if (endpoint === undefined || !isOwn) throw new ChannelError("endpoint");
    return endpoint;
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stop.abort();
    this.#listener?.onClose();
  }

  async #toStatusError(response: Response): Promise<ChannelError> {
    const body = await readText(response, this.#maxBytes).catch(() => "");
    return new ChannelError("status", { status: response.status, body });
  }
}

function reasonOf(error: unknown, maxBytes: number): string {
  if (isCallError(error)) return `its event stream held more than ${maxBytes} bytes in one event`;
  return error instanceof ChannelError
    ? "it names an address of another origin for messages"
    : "its event stream broke";
}
