import { lookup } from "node:dns";
import { isIP, type Socket } from "node:net";
import { buildConnector, errors, Pool } from "undici";
import { CallError } from "../../../core/errors/errors.ts";
import { LONGEST_DELAY } from "../../../core/execution/cancellation.ts";
import { parseUrl } from "../../../core/text/parse-url.ts";
import {
  type AddressGuard,
  bareHost,
  guardedLookup,
  isPublicAddress,
  type ResolveHost,
  refusePrivate,
} from "../../../http/address-guard.ts";
import { TurnWrites } from "../../../http/node-exchange.ts";
import type { TransportSettings } from "./transport-settings.ts";

/** What tests put in the place of the platform's own; nothing else does. */
export interface TransportSeams {
  /** Resolves host names. @default dns.lookup */
  readonly lookup?: ResolveHost | undefined;
  /** Certificates that are trusted, in PEM. @default those of the platform */
  readonly ca?: string | undefined;
}

/** One place that is called, and the connections to it. */
export interface Origin {
  readonly host: string;
  readonly port: string;
  readonly pool: Pool;
}

/** The pools of so many origins are kept: redirects could name any number. */
const MOST_POOLS = 64;

/** The connections of one source, kept alive by origin; each is made past the guard. */
export class OriginPools {
  readonly #settings: TransportSettings;
  readonly #guard: AddressGuard;
  readonly #seams: TransportSeams;
  readonly #origins = new Map<string, Origin>();
  readonly #sockets = new Set<Socket>();
  readonly #written = new TurnWrites();
  #last: { readonly name: string; readonly origin: Origin } | undefined;

  constructor(settings: TransportSettings, guard: AddressGuard, seams: TransportSeams) {
    this.#settings = settings;
    this.#guard = guard;
    this.#seams = seams;
  }

  get(name: string): Origin {
    if (this.#last?.name === name) return this.#last.origin;
    const origin = this.#origins.get(name) ?? this.#open(name);
    this.#last = { name, origin };
    // Moved to the end, so that the first is always the one not used for longest.
    this.#origins.delete(name);
    this.#origins.set(name, origin);
    this.#closeOldest();
    return origin;
  }

  /** Ends every connection, those that are being made included. */
  async close(): Promise<void> {
    const pools = [...this.#origins.values()].map(({ pool }) => pool.destroy());
    this.#origins.clear();
    this.#last = undefined;
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(pools);
  }

  #open(name: string): Origin {
    const url = parseUrl(name);
    const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
    if (url === undefined || !isHttp || url.origin !== name) {
      throw new CallError("VALIDATION_ERROR", "A request needs an origin such as https://api.example.", {
        stack: false,
      });
    }
    const port = url.port || (url.protocol === "https:" ? "443" : "80");
    const connect = createConnector({
      port,
      mayBePrivate: this.#guard.mayBePrivate(url.hostname, port),
      connectTimeoutMs: this.#settings.connectTimeoutMs,
      resolve: this.#seams.lookup ?? (lookup as ResolveHost),
      ca: this.#seams.ca,
      sockets: this.#sockets,
      written: this.#written,
    });
    const pool = new Pool(name, {
      connect,
      connections: this.#settings.concurrency,
      pipelining: 1,
      // One timer for each exchange is enough.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: this.#settings.headerBytes,
    });
    return { host: bareHost(url.hostname), port, pool };
  }

  /** What is under way there is finished first. */
  #closeOldest(): void {
    if (this.#origins.size <= MOST_POOLS) return;
    const [name, origin] = this.#origins.entries().next().value as [string, Origin];
    this.#origins.delete(name);
    void origin.pool.close().catch(() => {});
  }
}

/** How connections to one origin are made. */
export interface ConnectorOptions {
  readonly port: string;
  readonly mayBePrivate: boolean;
  readonly connectTimeoutMs: number;
  readonly resolve: ResolveHost;
  /** Certificates that are trusted. @default those of the platform */
  readonly ca?: string | undefined;
  /** Holds what is open, or about to be. */
  readonly sockets: Set<Socket>;
  /** Sends the requests of one turn together. */
  readonly written: TurnWrites;
}

/** Makes the function that connects to one origin, past the guard, whichever way the address is written. */
function createConnector(options: ConnectorOptions): buildConnector.connector {
  const { connectTimeoutMs, mayBePrivate, port, sockets, written } = options;
  const connect = buildConnector({
    timeout: 0,
    lookup: guardedLookup(options.resolve, mayBePrivate, port),
    autoSelectFamily: true,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  });
  return (target, callback) => {
    const host = bareHost(target.hostname);
    if (isIP(host) !== 0 && !mayBePrivate && !isPublicAddress(host)) {
      callback(refusePrivate(host, port), null);
      return;
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    const opened = connect(target, (...result) => {
      clearTimeout(timer);
      callback(...result);
    });
    const socket = opened as unknown as Socket;
    sockets.add(socket);
    new ReadGate(socket, written);
    socket.prependListener("error", renameError);
    socket.once("close", () => {
      clearTimeout(timer);
      sockets.delete(socket);
    });
    // Who wants to wait longer than a timer takes leaves it to the system.
    if (connectTimeoutMs <= LONGEST_DELAY) timer = setTimeout(expire, connectTimeoutMs, socket);
  };
}

function expire(socket: Socket): void {
  socket.destroy(new errors.ConnectTimeoutError("The connection was not made in time."));
}

/**
 * Tells undici what it takes for something else. A reset is no end: it takes `ECONNRESET` for one where the body ends with the
 * connection. And what was aborted is over: it would connect again for it, only to find that out.
 */
function renameError(error: NodeJS.ErrnoException): void {
  if (error.code === "ECONNRESET") error.code = "WAYBILL_RESET";
  else if (error.code === "UND_ERR_INFO" && error.message === "aborted") error.code = "WAYBILL_ABORTED";
}

let current: ReadGate | undefined;

/** A head that only says to go on, or the beginning of one; to switch protocols is something else. */
const INTERIM = /^HTTP\/1\.[01] 1(?!01)[0-9]{0,2}$/;
const STATUS_AT = 9;
const STATUS_END = 12;
const ONE = 0x31;
const EXAMPLE = "HTTP/1.1 100";
const HEAD_END = "\r\n\r\n";
/** Bytes of such a head; what is longer is none. */
const LONGEST_INTERIM = 16_384;
const NOT_INTERIM = -2;

/**
 * Stops the reading of a socket while nobody wants its bytes, so that the other side has to wait.
 *
 * undici's own way, to pause its parser, cannot be used (docs/decisions/020): when the other side ends the connection while it is paused,
 * an assertion fails in an event handler, and the process with it. Nor does undici take a `100 Continue` that nobody asked for,
 * which servers may send (RFC 9110, section 15.2): it is taken out here, and its like with it.
 */
export class ReadGate {
  readonly #socket: Socket;
  readonly #written: TurnWrites;
  #isShut = false;
  /** A request was written, and nothing of its response has come: what comes without one is not for us to judge. */
  #expectsHead = false;
  /** The beginning of a head that may turn out to be one that says to go on. */
  #held: Buffer | undefined;
  /** What was written is sent at the end of the turn. */
  #isCorked = false;

  constructor(socket: Socket, written: TurnWrites) {
    this.#socket = socket;
    this.#written = written;
    const { read, write } = socket;
    socket.write = ((...args: Parameters<typeof write>) => {
      this.#expectsHead = true;
      this.#cork();
      return write.apply(socket, args);
    }) as typeof write;
    socket.read = (size?: number): Buffer | null => {
      // With a size, it is the socket itself that fills its buffer.
      if (size !== undefined) return read.call(socket, size);
      if (this.#isShut) return null;
      current = this;
      const chunk: Buffer | null = read.call(socket);
      return this.#expectsHead && chunk !== null ? this.#pastInterim(chunk) : chunk;
    };
  }

  /** The gate of the socket whose bytes are being parsed; undici parses them in the call in which it reads them. */
  static get current(): ReadGate | undefined {
    return current;
  }

  /** Gives what comes after heads that say to go on; nothing where that has not arrived. */
  #pastInterim(chunk: Buffer): Buffer | null {
    let bytes = this.#held === undefined ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = undefined;
    while (bytes.length > 0) {
      const end = isInterim(bytes) ? bytes.indexOf(HEAD_END) : NOT_INTERIM;
      if (end === NOT_INTERIM || (end === -1 && bytes.length > LONGEST_INTERIM)) {
        this.#expectsHead = false;
        return bytes;
      }
      if (end === -1) {
        this.#held = bytes;
        return null;
      }
      bytes = bytes.subarray(end + HEAD_END.length);
    }
    return null;
  }

  /** Requests of one turn of the event loop are sent together at its end: a server that waits is woken once for all of them. */
  #cork(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.#socket.cork();
    this.#written.add(this.#uncork);
  }

  readonly #uncork = (): void => {
    this.#isCorked = false;
    this.#socket.uncork();
  };

  shut(): void {
    this.#isShut = true;
  }

  /** Must not be called while bytes are parsed. */
  open(): void {
    if (!this.#isShut) return;
    this.#isShut = false;
    if (!this.#socket.destroyed) this.#socket.emit("readable");
  }

  /** Opens it once what is being parsed has been. */
  openSoon(): void {
    if (this.#isShut) setImmediate(open, this);
  }
}

function open(gate: ReadGate): void {
  gate.open();
}

/** Too few bytes to tell count as one where they could become one. */
function isInterim(bytes: Buffer): boolean {
  if (bytes.length > STATUS_AT && bytes[STATUS_AT] !== ONE) return false;
  const start = bytes.toString("latin1", 0, STATUS_END);
  return start.length < STATUS_AT
    ? EXAMPLE.startsWith(start.slice(0, 7))
    : INTERIM.test(start.padEnd(10, "1"));
}
