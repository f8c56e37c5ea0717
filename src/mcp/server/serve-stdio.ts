import type { Readable, Writable } from "node:stream";
import type { Identity } from "../../core/access/identity.ts";
import { checkDelay, checkOption, checkOptionsObject } from "../../core/options/check-options.ts";
import { CLOSE_TIMEOUT_MS, type CloseOptions } from "../../core/options/shared-options.ts";
import { createLineReader, type LineReader, readRpcLine } from "../channels/rpc-lines.ts";
import type { ChannelServer, McpServer } from "./mcp-server.ts";
import type { McpServerOptions } from "./mcp-server-options.ts";
import { ServerConnection } from "./server-connection.ts";
import { toServed } from "./to-mcp-server.ts";
import type { ServedExecutor } from "./tools/served-tools.ts";
import { showBound } from "./tools/served-tools.ts";

interface StdioLimits {
  /** Bytes of one message; longer ones are skipped. @default 10_485_760 */
  readonly messageBytes?: number | undefined;
  /** Bytes the client has not read yet, above which nothing more is read from it. @default 16_777_216 */
  readonly unreadBytes?: number | undefined;
  /** Streams of changes (`subscriptions/listen`) that a 2026-07-28 client holds open. @default 1_000 */
  readonly subscriptions?: number | undefined;
}

/** A stream of Node, by what all of them have: users need no types of Node to name one. */
export interface NodeStream {
  on(event: string, listener: (...given: never[]) => void): unknown;
}

/** How operations are served over stdio. */
export interface ServeStdioOptions {
  /** @default process.stdin */
  readonly stdin?: NodeStream | undefined;
  /** @default process.stdout */
  readonly stdout?: NodeStream | undefined;
  /** Who the client is: a client that starts a process is usually trusted with what it may do. @default that of the server's options */
  readonly identity?: Identity | undefined;
  readonly limits?: StdioLimits | undefined;
  /** Sends to stderr what anything else writes to stdout meanwhile, `console.log` above all. @default true */
  readonly guardStdout?: boolean | undefined;
  /** Milliseconds that calls under way have to end, and be answered, when stdin ends. @default 0: they are told to stop at once */
  readonly drainMs?: number | undefined;
  /** Hears of lines that were skipped and of faults of the connection. @default a line on stderr */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
}

/** A connection over stdio. */
export interface StdioConnection {
  /** Settles when the client has gone, or `close` was called; whatever ran has been told to stop. */
  readonly closed: Promise<void>;
  /** Reads nothing more, lets calls under way end for that time, and then ends them. */
  close(options?: CloseOptions): Promise<void>;
}

/** Serves operations, or a server made by `toMcpServer`, to one client, of 2025 or of 2026-07-28, over stdin and stdout, until stdin ends. */
export function serveStdio(server: McpServer, options?: ServeStdioOptions): StdioConnection;
export function serveStdio(
  executor: ServedExecutor,
  options?: ServeStdioOptions & McpServerOptions,
): StdioConnection;
export function serveStdio(
  served: McpServer | ServedExecutor,
  given: ServeStdioOptions = {},
): StdioConnection {
  const { server, own: options, closeServer } = toServed(served, given, { by: "serveStdio", names: NAMES });
  if (server.isClosed) throw new Error("This MCP server is closed: make another with toMcpServer.");
  checkStdioOptions(options);
  const { identity, limits = {}, drainMs = 0 } = options;
  const stdin = (options.stdin ?? process.stdin) as Readable;
  const stdout = (options.stdout ?? process.stdout) as Writable;
  const [messageBytes, unreadBytes, subscriptions] = readLimits(limits);
  const warn = options.onWarning ?? ((message) => process.stderr.write(`${message}\n`));
  const write = stdout.write.bind(stdout) as (text: string) => boolean;
  const release = (options.guardStdout ?? true) ? guardStdout(stdout) : () => {};
  const channel = new StdioChannel(server, {
    stdin,
    stdout,
    write,
    identity,
    messageBytes,
    unreadBytes,
    subscriptions,
    drainMs,
    warn,
  });
  const closed = channel.closed.then(release).then(closeServer);
  return {
    closed,
    async close({ timeoutMs = CLOSE_TIMEOUT_MS } = {}) {
      await channel.end(timeoutMs);
      await closed;
    },
  };
}

/** Leads writes to the process's stdout to stderr; gives back how to end that. Other streams are nobody else's to write to. */
function guardStdout(stdout: Writable): () => void {
  if (stdout !== process.stdout) return () => {};
  const { write } = process.stdout;
  const diverted = process.stderr.write.bind(process.stderr) as typeof write;
  process.stdout.write = diverted;
  return () => {
    if (process.stdout.write === diverted) process.stdout.write = write;
  };
}

const NAMES = Object.keys({
  stdin: true,
  stdout: true,
  identity: true,
  limits: true,
  guardStdout: true,
  drainMs: true,
  onWarning: true,
} satisfies Record<keyof ServeStdioOptions, true>) as (keyof ServeStdioOptions)[];

function checkStdioOptions(options: ServeStdioOptions): void {
  checkOptionsObject(options, NAMES);
  const { stdin, stdout, identity, limits, guardStdout, drainMs, onWarning } = options;
  checkOption("stdin", stdin, "a stream to read from", typeof stdin?.on === "function");
  checkOption("stdout", stdout, "a stream to write to", typeof stdout?.on === "function");
  checkOption("identity", identity, "an object with a subject", typeof identity?.subject === "string");
  checkOption("guardStdout", guardStdout, "true or false", typeof guardStdout === "boolean");
  checkDelay("drainMs", drainMs);
  checkOption("onWarning", onWarning, "a function", typeof onWarning === "function");
  if (limits === undefined) return;
  checkOptionsObject(limits, ["messageBytes", "unreadBytes", "subscriptions"], "limits.");
}

function readLimits(limits: StdioLimits): readonly [number, number, number] {
  return [
    readBound("messageBytes", limits.messageBytes, 10_485_760),
    readBound("unreadBytes", limits.unreadBytes, 16_777_216),
    readBound("subscriptions", limits.subscriptions, 1_000),
  ];
}

function readBound(name: string, value: number | undefined, standard: number): number {
  if (value === undefined) return standard;
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new TypeError(`${name} must be a whole number, 1 or more; it is ${showBound(value)}.`);
}

interface StdioChannelOptions {
  readonly stdin: Readable;
  readonly stdout: Writable;
  /** Writes in place of `stdout.write`, which may lead elsewhere by now. */
  readonly write: (text: string) => boolean;
  readonly identity: Identity | undefined;
  readonly messageBytes: number;
  /** Bytes nobody has read from `stdout` yet, above which nothing more is read from `stdin`. */
  readonly unreadBytes: number;
  readonly subscriptions: number;
  /** Milliseconds that requests under way have to be answered once `stdin` has ended. */
  readonly drainMs: number;
  readonly warn: (message: string, cause?: unknown) => void;
}

/** Characters from which on what is to be written does not wait for the end of the turn. */
const FLUSH_CHARACTERS = 1_048_576;

/** One client over stdin and stdout, one message a line. Lines that are too long or no message are reported and skipped. */
class StdioChannel {
  /** Settles when the client has gone, or the channel was ended. */
  readonly closed: Promise<void>;
  readonly #options: StdioChannelOptions;
  readonly #lines: LineReader;
  readonly #connection: ServerConnection;
  #onClosed: () => void = () => {};
  #isClosed = false;
  #ending: Promise<void> | undefined;
  #onAnswered: () => void = () => {};
  /** What is written at the end of this turn, in one piece. */
  #unsent = "";

  constructor(server: ChannelServer, options: StdioChannelOptions) {
    this.#options = options;
    this.closed = new Promise((resolve) => {
      this.#onClosed = resolve;
    });
    this.#connection = new ServerConnection(server, {
      identity: server.identify(options.identity),
      send: (text) => this.#send(text),
      onEnd: () => this.#close(),
      subscriptions: options.subscriptions,
      onFault: (message) => options.warn(message),
    });
    this.#lines = createLineReader({
      lineBytes: options.messageBytes,
      onLine: this.#hear,
      onLong: () => options.warn(`A message of more than ${options.messageBytes} bytes was skipped.`),
      onLongEnd: () => {},
    });
    this.#start();
  }

  /** Reads nothing more, and closes once what was asked is answered, or after so many milliseconds. */
  end(timeoutMs: number): Promise<void> {
    this.#ending ??= this.#end(timeoutMs);
    return this.#ending;
  }

  #start(): void {
    const { stdin, stdout } = this.#options;
    stdout.on("error", this.#fail);
    stdout.on("drain", this.#resume);
    stdin.on("error", this.#fail);
    stdin.on("end", this.#finish);
    stdin.on("close", this.#finish);
    stdin.on("data", this.#read);
    if (stdin.readableEnded || stdin.destroyed) setImmediate(this.#finish);
  }

  async #end(timeoutMs: number): Promise<void> {
    this.#stopReading();
    let timer: NodeJS.Timeout | undefined;
    if (this.#connection.running > 0 && timeoutMs > 0 && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        timer = setTimeout(resolve, timeoutMs);
        this.#onAnswered = () => this.#connection.running === 0 && resolve();
      });
    }
    clearTimeout(timer);
    this.#close();
  }

  #stopReading(): void {
    const { stdin } = this.#options;
    stdin.off("data", this.#read);
    stdin.off("end", this.#finish);
    stdin.off("close", this.#finish);
    stdin.pause();
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#stopReading();
    this.#connection.close();
    this.#flush();
    this.#isClosed = true;
    this.#options.stdout.off("drain", this.#resume);
    this.#onAnswered();
    // The listeners for errors stay: a write that fails late must not end the process.
    this.#onClosed();
  }

  /** Messages of one turn are written in one piece: each write costs more than making the message did. */
  #send(text: string): void {
    if (this.#isClosed) return;
    if (this.#unsent === "") setImmediate(this.#flush);
    this.#unsent += `${text}\n`;
    if (this.#unsent.length > FLUSH_CHARACTERS) this.#flush();
    this.#onAnswered();
  }

  readonly #flush = (): void => {
    if (this.#unsent === "" || this.#isClosed) return;
    const text = this.#unsent;
    this.#unsent = "";
    const { stdin, stdout, write, unreadBytes } = this.#options;
    if (!write(text) && stdout.writableLength > unreadBytes) stdin.pause();
  };

  readonly #read = (chunk: Buffer | string): void => {
    this.#lines.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  };

  readonly #hear = (line: Buffer): void => {
    if (this.#isClosed) return;
    const { messages, odd } = readRpcLine(line);
    for (const message of messages) this.#connection.receive(message);
    if (odd !== undefined) this.#options.warn(`A line of input was skipped: it ${odd}.`);
  };

  readonly #resume = (): void => {
    if (this.#ending === undefined) this.#options.stdin.resume();
  };

  readonly #finish = (): void => {
    void this.end(this.#options.drainMs);
  };

  readonly #fail = (error: Error): void => {
    if (this.#isClosed) return;
    this.#options.warn(error.message, error);
    this.#close();
  };
}
