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
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const { stdin, stdout } = this.#options;
    stdin.off("data", this.#read);
    stdin.off("end", this.#finish);
    stdin.off("close", this.#finish);
    stdout.off("drain", this.#resume);
    stdin.pause();
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
      if (fault === undefined) this.onmessage?.(message);
      else this.#write(fault);
    }
    if (odd !== undefined) this.onerror?.(new Error(`A line of input was skipped: it ${odd}.`));
  };

  readonly #skip = (): void => {
    this.onerror?.(new Error(`A message of more than ${this.#options.messageBytes} bytes was skipped.`));
  };

  readonly #resume = (): void => {
    this.#options.stdin.resume();
  };

  readonly #finish = (): void => {
    void this.close();
  };

  readonly #fail = (error: Error): void => {
    if (this.#closed) return;
    this.onerror?.(error);
    void this.close();
  };
}
