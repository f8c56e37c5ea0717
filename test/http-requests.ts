import { type ClientRequest, type IncomingMessage, request as nodeRequest } from "node:http";
import type { Executor } from "../src/index.ts";
import { createHttpHandler, type HttpHandlerOptions, serveHttp } from "../src/openapi/index.ts";

/** A request of a test. */
export interface Sent {
  /** @default "GET", or "POST" with a body */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Anything but text and bytes is sent as JSON. */
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** What came back. */
export interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly bytes: Uint8Array;
  /** The body as JSON. */
  readonly json: unknown;
}

/** A stream of events that is being read. */
export interface OpenEvents {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The next block of the stream, a comment too; nothing at its end. */
  next(): Promise<string | undefined>;
  leave(): Promise<void>;
}

/** An API under test, however it is reached. */
export interface OpenApi {
  readonly url: string;
  send(path: string, sent?: Sent): Promise<Got>;
  events(path: string, sent?: Sent): Promise<OpenEvents>;
  close(options?: { timeoutMs?: number }): Promise<void>;
}

/** The ways an API is reached; every test of answers runs over each. */
export const WAYS: readonly [
  string,
  (executor: Executor, options?: HttpHandlerOptions) => Promise<OpenApi>,
][] = [
  ["node:http", overNode],
  ["fetch", throughFetch],
];

interface Prepared {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  readonly signal: AbortSignal | undefined;
}

function prepare({ method, headers = {}, body, signal }: Sent): Prepared {
  const isRaw = body === undefined || typeof body === "string" || body instanceof Uint8Array;
  return {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: isRaw ? headers : { "content-type": "application/json", ...headers },
    body: isRaw ? body : JSON.stringify(body),
    signal,
  };
}

async function overNode(executor: Executor, options?: HttpHandlerOptions): Promise<OpenApi> {
  const server = await serveHttp(executor, options);
  return { ...nodeClient(server.url), close: (closing) => server.close(closing) };
}

/** A client of `node:http`, which sends exactly what it is told. */
export function nodeClient(url: string): Omit<OpenApi, "close"> {
  return {
    url,
    async send(path, sent = {}) {
      const [message] = await start(url, path, prepare(sent));
      const chunks: Buffer[] = [];
      for await (const chunk of message) chunks.push(chunk as Buffer);
      return toGot(message.statusCode ?? 0, flat(message), Buffer.concat(chunks));
    },
    async events(path, sent = {}) {
      const [message, request] = await start(url, path, prepare(sent));
      const chunks = message[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
      return toEvents(message.statusCode ?? 0, flat(message), chunks, async () => {
        request.destroy();
      });
    },
  };
}

function start(url: string, path: string, sent: Prepared): Promise<[IncomingMessage, ClientRequest]> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const { method, headers, signal } = sent;
    const request = nodeRequest(
      { hostname, port, path, method, headers, agent: false, ...(signal && { signal }) },
      (message) => resolve([message, request]),
    );
    request.on("error", reject);
    request.end(sent.body);
  });
}

function flat({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
}

async function throughFetch(executor: Executor, options?: HttpHandlerOptions): Promise<OpenApi> {
  const handler = createHttpHandler(executor, options);
  const url = "http://127.0.0.1:8080";
  const call = (path: string, sent: Sent): Promise<Response> => {
    const { method, headers, body, signal } = prepare(sent);
    return handler.fetch(
      new Request(url + path, {
        method,
        headers,
        ...(body !== undefined && { body: body as BodyInit }),
        ...(signal && { signal }),
      }),
    );
  };
  return {
    url,
    async send(path, sent = {}) {
      const response = await call(path, sent);
      const bytes = Buffer.from(await response.arrayBuffer());
      return toGot(response.status, Object.fromEntries(response.headers), bytes);
    },
    async events(path, sent = {}) {
      const { status, headers, body } = await call(path, sent);
      const reader = (body ?? new Blob().stream()).getReader();
      const next = async () => (await reader.read()) as IteratorResult<Uint8Array>;
      return toEvents(status, Object.fromEntries(headers), { next }, () => reader.cancel());
    },
    close: (closing) => handler.close(closing),
  };
}

function toGot(status: number, headers: Record<string, string>, bytes: Buffer): Got {
  const text = bytes.toString("utf8");
  return {
    status,
    headers,
    bytes: new Uint8Array(bytes),
    text,
    get json() {
      return JSON.parse(text);
    },
  };
}

function toEvents(
  status: number,
  headers: Record<string, string>,
  chunks: AsyncIterator<Uint8Array>,
  leave: () => Promise<void>,
): OpenEvents {
  let rest = "";
  return {
    status,
    headers,
    leave,
    async next() {
      for (;;) {
        const end = rest.indexOf("\n\n");
        if (end !== -1) {
          const block = rest.slice(0, end);
          rest = rest.slice(end + 2);
          return block;
        }
        const step = await chunks.next();
        if (step.done === true) return undefined;
        rest += Buffer.from(step.value).toString("utf8");
      }
    },
  };
}

/** Reads a block of a stream of events. */
export function readEvent(block: string | undefined): { id: string; event: string; data: unknown } {
  const fields = Object.fromEntries(
    (block ?? "")
      .split("\n")
      .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
  );
  return { id: fields["id"] ?? "", event: fields["event"] ?? "", data: JSON.parse(fields["data"] ?? "null") };
}
