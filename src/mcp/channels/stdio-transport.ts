import { StringDecoder } from "node:string_decoder";
import { endsWithin } from "../../core/execution/cancellation.ts";
import { readBounds } from "../../core/options/check-options.ts";
import { isNpmNoise, toPlainLine, toVisibleText } from "../client/plain-line.ts";
import type { Channel, Loss } from "./channel.ts";
import {
  createProcessGroup,
  type PipedChild,
  type ProcessGroup,
  type SpawnOptions,
  spawnChild,
  whenSpawned,
} from "./child-process.ts";
import { createLineWriter, createRpcReader, type LineReader, type LineWriter } from "./rpc-lines.ts";

interface StdioLimits {
  /** The longest line that is read, in bytes without its newline; a longer one is dropped. @default 67_108_864 */
  readonly lineBytes?: number | undefined;
  /** Characters kept of what it says on standard error. @default 16_384 */
  readonly stderrTail?: number | undefined;
  /** Characters that may wait for it to read; more are refused. @default 67_108_864 */
  readonly unsentChars?: number | undefined;
  /** How long it may take to end when its input has ended, before SIGTERM. @default 2_000 */
  readonly closeMs?: number | undefined;
  /** How long it may take after SIGTERM, before SIGKILL. @default 2_000 */
  readonly killMs?: number | undefined;
}

/** Settings of `createStdioTransport`. */
export interface StdioOptions extends SpawnOptions {
  /** @default those that `StdioLimits` names */
  readonly limits?: StdioLimits | undefined;
}

const DEFAULTS = {
  lineBytes: 67_108_864,
  stderrTail: 16_384,
  unsentChars: 67_108_864,
  closeMs: 2_000,
  killMs: 2_000,
} as const satisfies Required<StdioLimits>;

/** All limits, none left out. */
type FullStdioLimits = { readonly [Name in keyof typeof DEFAULTS]: number };

/** How a process ended: one of the two is null. */
interface StdioExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Makes a transport that starts a server as a process and ends it with all the processes that came of it. */
export function createStdioTransport(options: StdioOptions): StdioTransport {
  return new StdioTransport(options);
}

/** Makes a channel to a server that is started as a process; nothing is started yet. */
export function toProcessChannel(options: StdioOptions): Channel {
  const transport = createStdioTransport(options);
  return {
    isShared: true,
    hasSession: false,
    start: (listener) => {
      transport.onmessage = (message: unknown) => listener.onMessage(message);
      transport.onerror = (error) => listener.onOddity(toPlainLine(error.message, 300));
      transport.onclose = () => listener.onClose();
      transport.onOddity = (message) => listener.onOddity(message);
      // Lines are cut only where somebody hears them.
      if (listener.onStderr !== undefined) transport.onStderr = (line) => listener.onStderr?.(line);
      return transport.start();
    },
    send: (text) => transport.send(text),
    agree: () => {},
    listen: () => {},
    loss: () => {
      const tail = toPlainLine(transport.stderrTail.slice(-2_000), 2_000);
      const end = describeExit(transport);
      if (tail === "") return end;
      const lastWords = lastWordsIn(transport.stderrTail);
      return { ...end, cause: new Error(`It last said: ${tail}`), lastWords };
    },
    close: () => transport.close(),
  };
}

function describeExit({ exit }: StdioTransport): Loss {
  if (exit === undefined) return { reason: "its process is gone" };
  const { signal, code } = exit;
  if (signal !== null)
    return { reason: `its process was ended by ${signal}`, failure: { reason: "signal", value: signal } };
  return { reason: `its process exited with code ${code}`, failure: { reason: "exit", value: code ?? 0 } };
}

/** How long the pipes of the dead are read: a process that has left their group may hold them open for ever. */
const DRAIN_MS = 250;

/** How long a process that does not read any more has to be heard of as ended. */
const HEARD_WITHIN_MS = 100;

interface Running {
  readonly child: PipedChild;
  readonly group: ProcessGroup;
  readonly writer: LineWriter;
  readonly exited: Promise<unknown>;
  /** When the process has ended and its pipes have too. */
  readonly drained: Promise<unknown>;
}

/** Messages to and from one process; when that has ended, so has the transport. */
export class StdioTransport {
  onmessage?: ((message: never) => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onclose?: (() => void) | undefined;
  /** Hears of lines on standard output that are no messages. */
  onOddity?: ((message: string) => void) | undefined;
  /** Hears each line on standard error. */
  onStderr?: ((line: string) => void) | undefined;
  /** None while it runs; known when `onclose` is called. */
  exit: StdioExit | undefined;
  /** How many oddities there were. */
  oddities = 0;

  readonly #options: StdioOptions;
  readonly #limits: FullStdioLimits;
  readonly #stderr: StderrTail;
  readonly #reader: LineReader;
  #running: Running | undefined;
  #hasStarted = false;
  #closed: Promise<void> | undefined;
  #isOver = false;

  constructor(options: StdioOptions) {
    this.#options = options;
    this.#limits = readBounds(options.limits, DEFAULTS);
    this.#stderr = createStderrTail({
      chars: this.#limits.stderrTail,
      listener: () => this.onStderr && ((line) => this.#tell(() => this.onStderr?.(line))),
    });
    this.#reader = createRpcReader({
      lineBytes: this.#limits.lineBytes,
      onMessage: (message) => this.#tell(() => this.onmessage?.(message as never)),
      onOddity: (message) => this.#addOddity(message),
    });
  }

  /** That of the process, which is also that of its group; none before `start`. */
  get pid(): number | undefined {
    return this.#running?.child.pid;
  }

  /** What it said last on standard error, without terminal sequences and control characters. */
  get stderrTail(): string {
    return this.#stderr.text;
  }

  async start(): Promise<void> {
    if (this.#closed) throw new Error("The transport is closed; each is good for one process.");
    if (this.#hasStarted) throw new Error("The transport was started before; each is good for one process.");
    this.#hasStarted = true;
    const child = spawnChild(this.#options);
    // Whatever it says of itself later must not bring this process down.
    child.on("error", (error) => this.#running && this.#report(error));
    if (child.pid !== undefined) this.#running = this.#attach(child);
    await whenSpawned(child, this.#options);
    if (this.#closed) throw new Error("The transport was closed before the process had started.");
  }

  /** Writes a message, or the text of one; resolves when the process can be sent more. */
  send(message: object | string): Promise<void> {
    if (!this.#running) return Promise.reject(new Error("The message was not sent: no process runs."));
    try {
      return this.#running.writer.write(typeof message === "string" ? message : JSON.stringify(message));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Ends the process with all that came of it. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const running = this.#running;
    if (running) {
      running.writer.end();
      await endsWithin(this.#limits.closeMs, running.exited);
      running.group.signal("SIGTERM");
      if (!(await running.group.whenGone(this.#limits.killMs))) await running.group.kill();
      await this.#drain(running);
    }
    this.#finish();
  }

  #attach(child: PipedChild): Running {
    const writer = createLineWriter(child.stdin, this.#limits.unsentChars);
    const exited = when(child, "exit");
    child.stdin.on("error", (error) => {
      const cause = new Error("The message was not sent: the process does not read.", { cause: error });
      // Mostly it has ended, which is heard of a moment later and says more.
      void endsWithin(HEARD_WITHIN_MS, exited).then(() => this.exit === undefined && writer.fail(cause));
      this.#report(error);
    });
    child.stdout.on("error", (error) => this.#report(error));
    child.stderr.on("error", (error) => this.#report(error));
    child.stderr.on("data", (chunk: Buffer) => this.#stderr.push(chunk));
    child.stdout.on("data", (chunk: Buffer) => {
      // Still read, so that it can end, but nobody is there to hear it.
      if (!this.#closed) this.#reader.push(chunk);
    });
    child.stdout.once("end", () => this.#endOutput());
    child.once("exit", (code, signal) => {
      this.exit = { code, signal };
      if (!this.#closed) void this.#lose();
    });
    const group = createProcessGroup(child, process.platform);
    return { child, group, writer, exited, drained: when(child, "close") };
  }

  /** The process ended by itself: what is left of its group has lost its reason. */
  async #lose(): Promise<void> {
    const running = this.#running as Running;
    const killed = running.group.kill();
    await this.#drain(running);
    this.#finish();
    // After its last words: a caller that waits for a message to be sent should hear why it was not.
    running.writer.fail(ended());
    await killed;
  }

  async #drain({ child, drained }: Running): Promise<void> {
    await endsWithin(DRAIN_MS, drained);
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    this.#stderr.end();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#tell(() => this.onclose?.());
  }

  /** No answer can come any more: the process may end in its own time, but not live on. */
  #endOutput(): void {
    if (this.#closed) return;
    this.#reader.end();
    if (this.exit) return;
    const timer = setTimeout(() => {
      if (!this.exit) this.#addOddity("The process closed its standard output and runs on; it is ended.");
      void this.close();
    }, this.#limits.closeMs);
    void this.#running?.exited.then(() => clearTimeout(timer));
  }

  #addOddity(message: string): void {
    this.oddities += 1;
    this.#tell(() => this.onOddity?.(message));
  }

  #report(error: unknown): void {
    if (this.#closed) return;
    try {
      this.onerror?.(error instanceof Error ? error : new Error("A listener failed.", { cause: error }));
    } catch {
      // A listener that fails on an error would fail on that one as well.
    }
  }

  /** Lets no listener stop the reading. */
  #tell(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#report(error);
    }
  }
}

function ended(): Error {
  return new Error("The message was not sent: the process has ended.");
}

function when(child: PipedChild, event: "exit" | "close"): Promise<unknown> {
  return new Promise((resolve) => child.once(event, resolve));
}

interface StderrTailOptions {
  /** How many characters are kept; a longer line is told in pieces of this length. */
  readonly chars: number;
  /** Asked for each chunk, so that lines are only cut while somebody listens. */
  readonly listener: () => ((line: string) => void) | undefined;
}

/** Makes a tail that keeps a bounded number of characters, whatever comes. */
export function createStderrTail(options: StderrTailOptions): StderrTail {
  return new StderrTail(options);
}

class StderrTail {
  readonly #options: StderrTailOptions;
  readonly #decoder = new StringDecoder("utf8");
  #tail = "";
  #line = "";

  constructor(options: StderrTailOptions) {
    this.#options = options;
  }

  /** Without terminal sequences and control characters. */
  get text(): string {
    return toVisibleText(this.#tail);
  }

  push(chunk: Buffer): void {
    const text = this.#decoder.write(chunk);
    this.#tail = lastChars(this.#tail + text, this.#options.chars);
    const listener = this.#options.listener();
    if (listener) this.#tellLines(text, listener);
    else this.#line = "";
  }

  /** Tells the line that has no newline. */
  end(): void {
    const listener = this.#options.listener();
    if (listener && this.#line !== "") listener(toVisibleText(this.#line));
    this.#line = "";
  }

  #tellLines(text: string, listener: (line: string) => void): void {
    const lines = (this.#line + text).split("\n");
    this.#line = lines.pop() ?? "";
    for (const line of lines) this.#tellPieces(line, listener);
    while (this.#line.length > this.#options.chars) {
      listener(toVisibleText(this.#line.slice(0, this.#options.chars)));
      this.#line = this.#line.slice(this.#options.chars);
    }
  }

  #tellPieces(line: string, listener: (line: string) => void): void {
    const { chars } = this.#options;
    for (let from = 0; from === 0 || from < line.length; from += chars) {
      listener(toVisibleText(line.slice(from, from + chars)));
    }
  }
}

function lastChars(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const tail = text.slice(text.length - chars);
  const first = tail.charCodeAt(0);
  return first >= 0xdc00 && first <= 0xdfff ? tail.slice(1) : tail;
}

/** Lines that say nothing by themselves: blank or indented ones, as those of stacks are, closing brackets, the version of Node. */
const SAYS_NOTHING = /^(?:\s|$|[)\]}^]|Node\.js v\d)/;

/** Characters that are looked at, and those that are told. */
const LAST_WORDS = { read: 16_384, told: 199 } as const;

/** Finds the last line that says something, in at most 200 characters; empty where nothing was said. */
export function lastWordsIn(text: string): string {
  const lines = text.slice(-LAST_WORDS.read).split("\n");
  const line =
    lines.findLast((one) => !SAYS_NOTHING.test(one) && !isNpmNoise(one)) ??
    lines.findLast((one) => one.trim() !== "");
  return toPlainLine(line, LAST_WORDS.told);
}
