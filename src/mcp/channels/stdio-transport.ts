import { setTimeout as delay } from "node:timers/promises";
import { toPlainLine } from "../client/plain-line.ts";
import type { Channel } from "./channel.ts";
import type { LineReader } from "./line-reader.ts";
import { createLineWriter, type LineWriter } from "./line-writer.ts";
import { createProcessGroup, type ProcessGroup } from "./process-group.ts";
import { createRpcReader } from "./rpc-lines.ts";
import { type PipedChild, type SpawnOptions, spawnChild, whenSpawned } from "./spawn-child.ts";
import { createStderrTail, lastWordsIn, type StderrTail } from "./stderr-tail.ts";

/** What a stdio server may use up; nothing it does goes beyond. */
export interface StdioLimits {
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

/** The most a timer takes, which is also more than a buffer can hold. */
const MOST = 2_147_483_647;

/** Fills in what was left out; a limit that is no whole number from 1 to 2,147,483,647 is a mistake. */
function toStdioLimits(limits: StdioLimits = {}): FullStdioLimits {
  const full: Record<keyof FullStdioLimits, number> = { ...DEFAULTS };
  for (const name of Object.keys(DEFAULTS) as (keyof FullStdioLimits)[]) {
    const value = limits[name] ?? DEFAULTS[name];
    if (!Number.isInteger(value) || value < 1 || value > MOST) {
      throw new TypeError(`The limit ${name} of a stdio server must be a whole number from 1 to ${MOST}.`);
    }
    full[name] = value;
  }
  return full;
}

/** How a process ended: one of the two is null. */
export interface StdioExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** Messages to and from one process; when that has ended, so has the transport. */
export interface StdioTransport {
  start(): Promise<void>;
  /** Writes a message, or the text of one; resolves when the process can be sent more. */
  send(message: object | string): Promise<void>;
  /** Ends the process with all that came of it. */
  close(): Promise<void>;
  onmessage?: ((message: never) => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onclose?: (() => void) | undefined;
  /** That of the process, which is also that of its group; none before `start`. */
  readonly pid: number | undefined;
  /** What it said last on standard error, without terminal sequences and control characters. */
  readonly stderrTail: string;
  /** None while it runs; known when `onclose` is called. */
  readonly exit: StdioExit | undefined;
  /** How many oddities there were. */
  readonly oddities: number;
  /** Hears of lines on standard output that are no messages. */
  onOddity?: ((message: string) => void) | undefined;
  /** Hears each line on standard error. */
  onStderr?: ((line: string) => void) | undefined;
}

/** Makes a transport that starts a server as a process and ends it with all the processes that came of it. */
export function createStdioTransport(options: StdioOptions): StdioTransport {
  return new ProcessTransport(options);
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
      return transport.start();
    },
    send: (text) => transport.send(text),
    agree: () => {},
    listen: () => {},
    loss: () => {
      const tail = toPlainLine(transport.stderrTail.slice(-2_000), 2_000);
      const reason = describeExit(transport);
      if (tail === "") return { reason };
      const lastWords = lastWordsIn(transport.stderrTail);
      return { reason, cause: new Error(`It last said: ${tail}`), lastWords };
    },
    close: () => transport.close(),
  };
}

function describeExit({ exit }: StdioTransport): string {
  if (exit === undefined) return "its process is gone";
  if (exit.signal !== null) return `its process was ended by ${exit.signal}`;
  return `its process exited with code ${exit.code}`;
}

/** How long the pipes of the dead are read: whoever has left their group may hold them open for ever. */
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

class ProcessTransport implements StdioTransport {
  onmessage?: StdioTransport["onmessage"];
  onerror?: StdioTransport["onerror"];
  onclose?: StdioTransport["onclose"];
  onOddity?: StdioTransport["onOddity"];
  onStderr?: StdioTransport["onStderr"];
  exit: StdioExit | undefined;
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
    this.#limits = toStdioLimits(options.limits);
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

  get pid(): number | undefined {
    return this.#running?.child.pid;
  }

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

  send(message: object | string): Promise<void> {
    if (!this.#running) return Promise.reject(new Error("The message was not sent: no process runs."));
    try {
      return this.#running.writer.write(typeof message === "string" ? message : JSON.stringify(message));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const running = this.#running;
    if (running) {
      running.writer.end();
      await atMost(this.#limits.closeMs, running.exited);
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
      void atMost(HEARD_WITHIN_MS, exited).then(() => this.exit === undefined && writer.fail(cause));
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
    // Behind its last words: whoever waits for a message to be sent should hear why it was not.
    running.writer.fail(ended());
    await killed;
  }

  async #drain({ child, drained }: Running): Promise<void> {
    await atMost(DRAIN_MS, drained);
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
      // Whoever cannot hear of an error cannot hear of that one either.
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

async function atMost(ms: number, promise: Promise<unknown>): Promise<void> {
  const timer = new AbortController();
  await Promise.race([promise, delay(ms, undefined, { signal: timer.signal }).catch(() => {})]);
  timer.abort();
}
