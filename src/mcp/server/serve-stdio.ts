import type { Readable, Writable } from "node:stream";
import type { Identity } from "../../core/access/identity.ts";
import { checkDelay, checkOption, checkOptionsObject } from "../../core/options/check-options.ts";
import { checkServer } from "./check-server-options.ts";
import type { McpServer, ServedMcp } from "./mcp-server.ts";
import { showBound } from "./served-tools.ts";
import { StdioChannel } from "./stdio-channel.ts";

/** Bounds of one connection over stdio. */
export interface StdioLimits {
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
  /** Who the client is: whoever starts a process is usually trusted with what it may do. @default that of the server's options */
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
  close(options?: { /** @default 0 */ readonly timeoutMs?: number | undefined }): Promise<void>;
}

/** Serves one client, of 2025 or of 2026-07-28, over stdin and stdout, until stdin ends. */
export function serveStdio(server: McpServer, options: ServeStdioOptions = {}): StdioConnection {
  checkServer(server, "serveStdio");
  if (server.isClosed) throw new Error("This MCP server is closed: make another with toMcpServer.");
  checkStdioOptions(options);
  const { identity, limits = {}, drainMs = 0 } = options;
  const stdin = (options.stdin ?? process.stdin) as Readable;
  const stdout = (options.stdout ?? process.stdout) as Writable;
  const [messageBytes, unreadBytes, subscriptions] = readLimits(limits);
  const warn = options.onWarning ?? ((message) => process.stderr.write(`${message}\n`));
  const write = stdout.write.bind(stdout) as (text: string) => boolean;
  const release = (options.guardStdout ?? true) ? guardStdout(stdout) : () => {};
  const channel = new StdioChannel(server as ServedMcp, {
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
  const closed = channel.closed.then(release);
  return {
    closed,
    async close({ timeoutMs = 0 } = {}) {
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
} satisfies Record<keyof ServeStdioOptions, true>);

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
