import {
  createServer,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type RequestListener,
  type Server,
  type ServerOptions,
  ServerResponse,
} from "node:http";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import { checkOption, readBounds } from "../core/options/check-options.ts";
import { CLOSE_TIMEOUT_MS, type CloseOptions } from "../core/options/shared-options.ts";
import { NodeRequest, TurnWrites, UnsentBytes } from "./node-exchange.ts";

/** Bounds of a server that listens. */
export interface ListenLimits {
  /**
   * Bytes of answers and streams that clients have not read yet, in all; where callers are told apart, one has a quarter. An answer beyond
   * that is a 503, and a stream ends. @default 268_435_456
   */
  readonly unsentBytes?: number | undefined;
  /** How long a client may take nothing of what it was answered, in milliseconds; then its connection is closed. @default 30_000 */
  readonly stalledMs?: number | undefined;
  /** Connections that are kept: beyond them, a new one closes the oldest on which no request is being answered. @default 10_000 */
  readonly connections?: number | undefined;
}

/** Where a server listens. */
export interface ListenOptions {
  /** @default 0, a free one */
  readonly port?: number | undefined;
  /** The address to listen on. @default "127.0.0.1" */
  readonly host?: string | undefined;
  /** Listens on an address others can reach although nobody is authenticated. @default false */
  readonly unsafeOpen?: boolean | undefined;
  readonly limits?: ListenLimits | undefined;
}

/** A server that listens. */
export interface HttpListener {
  /** Scheme, address and port. */
  readonly origin: string;
  readonly port: number;
  /** Stops listening, waits for what runs, and ends it after `timeoutMs`. */
  close(options?: CloseOptions): Promise<void>;
}

/** What requests are handed to. */
export interface Listened {
  readonly onRequest: (request: NodeRequest) => void;
  /** Ends what still runs, in that time; also called when listening fails. */
  readonly onClose: (timeoutMs: number) => Promise<void>;
}

/** Names of the options that say where to listen. */
export const LISTEN_OPTIONS = Object.keys({
  port: true,
  host: true,
  unsafeOpen: true,
} satisfies Record<Exclude<keyof ListenOptions, "limits">, true>);

/** The bounds in force where none are given. */
const LIMITS = {
  unsentBytes: 268_435_456,
  stalledMs: 30_000,
  connections: 10_000,
} as const satisfies Required<ListenLimits>;

/** Names of the bounds of a listener, which stand among others under `limits`. */
export const LISTEN_LIMITS: readonly string[] = Object.keys(LIMITS);

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/;

/**
 * Times in milliseconds: in which a client must have sent its headers, and all of its request; and for which a connection is kept for another
 * request, which is longer than load balancers keep theirs, so that none is closed just when it is used again.
 */
const TIMEOUTS = {
  headersTimeout: 10_000,
  requestTimeout: 60_000,
  connectionsCheckingInterval: 5_000,
  keepAliveTimeout: 75_000,
};

/** How often connections that have fallen idle are looked for while a server closes, in milliseconds. */
const SWEEP_MS = 20;
/** How long connections have at least to end by themselves, and new ones to send a first request, in milliseconds. */
const LAST_MS = 200;
/** Connections that a server takes at most before it stops listening: as many as the system keeps in line for it. */
const MOST_WAITING = 511;
/** A turn of the event loop in which nearly nothing was done, in milliseconds. */
const SHORT_TURN_MS = 0.1;

/** Throws a `TypeError` for options that cannot work, or that let everybody in without saying so. */
export function checkListenOptions(options: ListenOptions, isAuthenticated: boolean): void {
  const { port = 0, host = "127.0.0.1", unsafeOpen = false } = options;
  const isPort = Number.isInteger(port) && port >= 0 && port <= 65_535;
  checkOption("port", port, "a whole number from 0 to 65535", isPort);
  checkOption("host", host, "a string", typeof host === "string");
  checkOption("unsafeOpen", unsafeOpen, "true or false", typeof unsafeOpen === "boolean");
  readBounds(options.limits, LIMITS);
  if (LOOPBACK.test(host) || isAuthenticated || unsafeOpen) return;
  throw new TypeError(
    `Others can reach ${host}: give auth or authenticate, or unsafeOpen if everybody may call everything.`,
  );
}

/** Listens for HTTP requests; the options must have been checked. */
export async function listenHttp(listened: Listened, options: ListenOptions = {}): Promise<HttpListener> {
  const { port = 0, host = "127.0.0.1" } = options;
  const { unsentBytes, stalledMs, connections } = readBounds(options.limits, LIMITS);
  const unsent = new UnsentBytes(unsentBytes);
  let closing: Promise<void> | undefined;
  const written = new TurnWrites();
  const shared = { unsent, written, isClosing: () => closing !== undefined, onEnds: new WeakMap() };
  const http = createPlainServer((message, response) => {
    listened.onRequest(new NodeRequest(message, response, shared));
  }, TIMEOUTS);
  http.setTimeout(stalledMs, closeUnlessBusy);
  const sockets = trackSockets(http, connections);
  try {
    await listen(http, port, host);
  } catch (thrown) {
    await listened.onClose(0);
    throw thrown;
  }
  const address = http.address() as AddressInfo;
  const name = host.includes(":") ? `[${host}]` : host;
  return {
    origin: `http://${name}:${address.port}`,
    port: address.port,
    close({ timeoutMs = CLOSE_TIMEOUT_MS } = {}) {
      closing ??= closeAll(http, sockets, { ...listened, timeoutMs });
      return closing;
    },
  };
}

/** An answer whose type no browser guesses; Node writes some of these itself. */
class PlainResponse extends ServerResponse {
  // Node writes the headers that are given here as they are, but sets them one by one where one was set before: 4 µs an answer.
  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    const given = typeof reason === "string" ? headers : reason;
    if (given === undefined || Array.isArray(given)) {
      this.setHeader(...NO_SNIFFING);
      return super.writeHead(status, reason as string, headers);
    }
    const all = NO_SNIFFING[0] in given ? given : { ...given, [NO_SNIFFING[0]]: NO_SNIFFING[1] };
    return typeof reason === "string" ? super.writeHead(status, reason, all) : super.writeHead(status, all);
  }
}

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

/** The header that keeps browsers from taking an answer for something else than it says it is. */
export const NO_SNIFFING = ["x-content-type-options", "nosniff"] as const;

/** How bytes that are no request are answered, by the code of the parser, as Node itself would. */
const UNREADABLE: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "413 Payload Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};

type AnsweringSocket = Socket & { _httpMessage?: ServerResponse | null };

/** Closes a connection on which nothing has moved for a while, unless a request on it is being answered and nothing waits to be sent. */
function closeUnlessBusy(socket: AnsweringSocket): void {
  if (!isAnswering(socket) || socket.writableLength > 0) socket.destroy();
}

function isAnswering({ _httpMessage }: AnsweringSocket): boolean {
  return _httpMessage !== undefined && _httpMessage !== null;
}

/** Creates a server on which every answer says that its type is not to be guessed. */
export function createPlainServer(onRequest: RequestListener, options: ServerOptions = {}): Server {
  // Of several hosts, tokens or types Node keeps the first one otherwise, and a proxy in front may have looked at another.
  const own = { ...options, joinDuplicateHeaders: true, ServerResponse: PlainResponse };
  const http = createServer(own, onRequest);
  http.on("clientError", (error: NodeJS.ErrnoException, socket: AnsweringSocket) => {
    const isAnswered = socket._httpMessage?.headersSent === true;
    if (socket.writable && !isAnswered) {
      const status = UNREADABLE[error.code ?? ""] ?? "400 Bad Request";
      socket.write(`HTTP/1.1 ${status}\r\n${NO_SNIFFING.join(": ")}\r\nconnection: close\r\n\r\n`);
    }
    socket.destroy(error);
  });
  return http;
}

function trackSockets(http: Server, most: number): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  http.on("connection", (socket: Socket) => {
    if (sockets.size >= most) closeOldest(sockets);
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return sockets;
}

/** Closes the oldest connection on which no request is being answered; those on which one is are bounded by what answers them. */
function closeOldest(sockets: Set<Socket>): void {
  for (const socket of sockets) {
    if (isAnswering(socket)) continue;
    sockets.delete(socket);
    socket.destroy();
    return;
  }
}

function listen(http: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (cause: NodeJS.ErrnoException): void => reject(listenError(cause, port, host));
    http.once("error", fail);
    http.listen(port, host, () => {
      http.off("error", fail);
      resolve();
    });
  });
}

const LISTEN_FAULTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use; give another "port", or 0 for a free one',
  EACCES: 'is not for this user; give another "port", or 0 for a free one',
  EADDRNOTAVAIL: 'is not an address of this machine; give another "host"',
  ENOTFOUND: 'is not an address of this machine; give another "host"',
};

/** Says what is wrong in terms of the options; the code of the platform stays readable. */
function listenError(cause: NodeJS.ErrnoException, port: number, host: string): Error {
  const fault = LISTEN_FAULTS[cause.code ?? ""];
  if (fault === undefined) return cause;
  return Object.assign(new Error(`${host} port ${port} ${fault}.`, { cause }), { code: cause.code });
}

interface Closing {
  readonly onClose: Listened["onClose"];
  readonly timeoutMs: number;
}

async function closeAll(
  http: Server,
  sockets: ReadonlySet<Socket>,
  { onClose, timeoutMs }: Closing,
): Promise<void> {
  // What has reached this machine by now is taken and read before anything is closed: a balancer that had not noticed may have sent it.
  await takeWaiting(http);
  const ended = new Promise<void>((resolve) => stopListening(http, resolve));
  await nextTurn();
  await nextTurn();
  http.close();
  const stoppedAt = performance.now();
  const sweep = setInterval(() => {
    http.closeIdleConnections();
    if (performance.now() - stoppedAt >= LAST_MS) closeSilent(sockets);
  }, SWEEP_MS);
  const until = stoppedAt + timeoutMs;
  await onClose(timeoutMs);
  const left = Math.max(until - performance.now(), LAST_MS);
  const force = setTimeout(() => http.closeAllConnections(), left);
  await ended;
  clearInterval(sweep);
  clearTimeout(force);
}

/** Takes no further connections, and leaves those that are idle: Node closes them too when it is told to close. */
function stopListening(http: Server, onEnd: () => void): void {
  NetServer.prototype.close.call(http, () => onEnd());
}

/** Resolves when what was ready has been read once more. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Takes the connections that wait to be taken, of which Node takes one in a turn: those that are left are cut off when it stops listening. Ends
 * with a turn that took none and was short, as more may come while requests are answered.
 */
async function takeWaiting(http: Server): Promise<void> {
  let isTaken = false;
  http.on("connection", () => {
    isTaken = true;
  });
  for (let turns = 0; turns < MOST_WAITING; turns++) {
    isTaken = false;
    const startedAt = performance.now();
    await nextTurn();
    if (!isTaken && performance.now() - startedAt < SHORT_TURN_MS) return;
  }
}

/** Closes connections that have not sent a byte yet, which Node takes for busy; clients keep such connections in reserve, for seconds. */
function closeSilent(sockets: ReadonlySet<Socket>): void {
  for (const socket of sockets) {
    if (socket.bytesRead === 0) socket.destroy();
  }
}
