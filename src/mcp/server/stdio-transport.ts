import type { Readable, Writable } from "node:stream";
import type { JSONRPCMessage, MessageExtraInfo, Transport } from "@modelcontextprotocol/server";
import { createLineReader, type LineReader } from "../client/line-reader.ts";
import { readRpcLine } from "../client/rpc-line.ts";
import { faultOf } from "./request-fault.ts";
import { spliced, splicedJsonOf } from "./spliced-list.ts";

/** What a transport over two streams reads, writes and endures. */
export interface StdioTransportOptions {
  readonly stdin: Readable;
  readonly stdout: Writable;
  /** Writes in place of `stdout.write`, which may lead elsewhere by now. */
  readonly write: (text: string) => boolean;
  readonly messageBytes: number;
  /** Bytes nobody has read from `stdout` yet, above which nothing more is read from `stdin`. */
  readonly unreadBytes: number;
  /** Milliseconds that requests under way have to be answered once `stdin` has ended. */
  readonly drainMs: number;
}

function toText(message: JSONRPCMessage): string {
  const { tools } = ("result" in message ? message.result : {}) as { readonly tools?: unknown };
  const json = splicedJsonOf(tools);
  return json === undefined ? JSON.stringify(message) : spliced(JSON.stringify(message), json);
}

/** One message a line. Lines that are too long or no message are reported and skipped, where the SDK's transport would close. */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage, extra?: MessageExtraInfo) => void;
  readonly #options: StdioTransportOptions;
  readonly #lines: LineReader;
  #closed = false;
  #ending: Promise<void> | undefined;
  /** Requests that have not been answered. */
  readonly #open = new Set<unknown>();
  #onAnswered: () => void = () => {};

  constructor(options: StdioTransportOptions) {
    this.#options = options;
    this.#lines = createLineReader({
      lineBytes: options.messageBytes,
      onLine: this.#hear,
      onLong: this.#skip,
      onLongEnd: () => {},
    });
  }

  async start(): Promise<void> {
    const { stdin, stdout } = this.#options;
    stdout.on("error", this.#fail);
    stdout.on("drain", this.#resume);
    stdin.on("error", this.#fail);
    stdin.on("end", this.#finish);
    stdin.on("close", this.#finish);
    stdin.on("data", this.#read);
    if (stdin.readableEnded || stdin.destroyed) setImmediate(this.#finish);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#closed) throw new Error("The connection is closed.");
    this.#write(message);
    if (!("method" in message) && this.#open.delete(message.id)) this.#onAnswered();
  }

  /** Reads nothing more, and closes once what was asked is answered, or after so many milliseconds. */
  end(timeoutMs: number): Promise<void> {
    this.#ending ??= this.#end(timeoutMs);
    return this.#ending;
  }

  async #end(timeoutMs: number): Promise<void> {
    this.#stopReading();
    let timer: NodeJS.Timeout | undefined;
    if (this.#open.size > 0 && timeoutMs > 0 && !this.#closed) {
      await new Promise<void>((resolve) => {
        timer = setTimeout(resolve, timeoutMs);
        this.#onAnswered = () => this.#open.size === 0 && resolve();
      });
    }
    clearTimeout(timer);
    await this.close();
  }

  #stopReading(): void {
    const { stdin } = this.#options;
    stdin.off("data", this.#read);
    stdin.off("end", this.#finish);
    stdin.off("close", this.#finish);
    stdin.pause();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#stopReading();
    this.#options.stdout.off("drain", this.#resume);
    this.#open.clear();
    this.#onAnswered();
    // The listeners for errors stay: a write that fails late must not end the process.
    this.onclose?.();
  }

  #write(message: JSONRPCMessage): void {
    const { stdin, stdout, write, unreadBytes } = this.#options;
    if (write(`${toText(message)}\n`)) return;
    if (stdout.writableLength > unreadBytes) stdin.pause();
  }

  readonly #read = (chunk: Buffer | string): void => {
    this.#lines.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
  };

  readonly #hear = (line: Buffer): void => {
    if (this.#closed) return;
    const { messages, odd } = readRpcLine(line);
    for (const message of messages) {
      const fault = faultOf(message);
      if (fault === undefined) this.#take(message);
      else this.#write(fault);
    }
    if (odd !== undefined) this.onerror?.(new Error(`A line of input was skipped: it ${odd}.`));
  };

  #take(message: JSONRPCMessage): void {
    if ("method" in message) {
      // A stream of changes ends with the connection; one that was called off is not answered.
      if ("id" in message && message.method !== "subscriptions/listen") this.#open.add(message.id);
      else if (message.method === "notifications/cancelled") this.#open.delete(message.params?.["requestId"]);
    }
    this.onmessage?.(message);
  }

  readonly #skip = (): void => {
    this.onerror?.(new Error(`A message of more than ${this.#options.messageBytes} bytes was skipped.`));
  };

  readonly #resume = (): void => {
    if (this.#ending === undefined) this.#options.stdin.resume();
  };

  readonly #finish = (): void => {
    void this.end(this.#options.drainMs);
  };

  readonly #fail = (error: Error): void => {
    if (this.#closed) return;
    this.onerror?.(error);
    void this.close();
  };
}
