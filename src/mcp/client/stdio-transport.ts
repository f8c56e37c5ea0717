import { setTimeout as delay } from "node:timers/promises";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import type { LineReader } from "./line-reader.ts";
import { createLineWriter, type LineWriter } from "./line-writer.ts";
import { createProcessGroup, type ProcessGroup } from "./process-group.ts";
import { createRpcReader } from "./rpc-reader.ts";
import { type PipedChild, spawnChild, whenSpawned } from "./spawn-child.ts";
import { createStderrTail, type StderrTail } from "./stderr-tail.ts";
import { type FullStdioLimits, type StdioOptions, toStdioLimits } from "./stdio-options.ts";

/** How a process ended: one of the two is null. */
export interface StdioExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A transport of the MCP client on one process; when that has ended, so has the transport. */
export interface StdioTransport extends Transport {
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
  onmessage?: Transport["onmessage"];
  onerror?: Transport["onerror"];
  onclose?: Transport["onclose"];
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
      onMessage: (message) => this.#tell(() => this.onmessage?.(message)),
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

  send(message: JSONRPCMessage): Promise<void> {
    if (!this.#running) return Promise.reject(new Error("The message was not sent: no process runs."));
    try {
      return this.#running.writer.write(JSON.stringify(message));
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
