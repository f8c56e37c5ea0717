import type { Readable, Writable } from "node:stream";
import type { Identity } from "../../core/access/identity.ts";
import { createLineReader, type LineReader } from "../channels/line-reader.ts";
import { readRpcLine } from "../channels/rpc-lines.ts";
import type { ServedMcp } from "./mcp-server.ts";
import { ServerConnection } from "./server-connection.ts";

/** What a channel over two streams reads, writes and endures. */
export interface StdioChannelOptions {
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
export class StdioChannel {
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

  constructor(server: ServedMcp, options: StdioChannelOptions) {
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
