import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { CallError } from "../../core/errors/errors.ts";
import type { LookAnswer, LookAsk } from "./answer-look.ts";
import { LOOK_IDLE_MS, LOOK_MEMORY_MB, LOOK_START_MS, LOOK_TIMEOUT_MS } from "./inspector-limits.ts";

/** How long and in how much memory something is looked at. */
export interface LookThreadOptions {
  /** Milliseconds for one look. @default 5_000 */
  readonly timeoutMs?: number | undefined;
  /** Milliseconds without work after which the thread ends. @default 10_000 */
  readonly idleMs?: number | undefined;
  /** Mebibytes of its heap. @default 256 */
  readonly memoryMb?: number | undefined;
}

/** One look, and who waits for it. */
interface Waiting {
  readonly resolve: (answer: LookAnswer) => void;
  readonly reject: (why: CallError) => void;
}

/** A thread that looks at results and texts; it is there from the first use on, for as long as there is work. */
export class LookThread {
  readonly #timeoutMs: number;
  readonly #idleMs: number;
  readonly #memoryMb: number;
  #worker: Worker | undefined;
  #isReady = false;
  #waiting: Waiting | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor({ timeoutMs, idleMs, memoryMb }: LookThreadOptions = {}) {
    this.#timeoutMs = timeoutMs ?? LOOK_TIMEOUT_MS;
    this.#idleMs = idleMs ?? LOOK_IDLE_MS;
    this.#memoryMb = memoryMb ?? LOOK_MEMORY_MB;
  }

  /** Whether there is a thread now. */
  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  /** Has something looked at, one at a time; resolves with JSON, in bytes. */
  async look(ask: LookAsk): Promise<Uint8Array> {
    if (this.#isClosed) throw unavailable("The inspector was closed.");
    if (this.#waiting !== undefined) throw new Error("Something is looked at already.");
    const answer = await new Promise<LookAnswer>((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#post(ask);
    });
    if ("json" in answer) return answer.json;
    const { code, message, httpStatus } = answer.refused;
    throw new CallError(code, message, { httpStatus, stack: false });
  }

  /** Ends the thread, and what it does. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#end(unavailable("The inspector was closed."));
  }

  #post(ask: LookAsk): void {
    try {
      this.#worker ??= this.#start();
      this.#expect(this.#isReady ? this.#timeoutMs : START_MS);
      // A copy, which is then the thread's alone.
      const posted = new Uint8Array(ask.posted);
      this.#worker.postMessage({ ...ask, posted }, [posted.buffer]);
    } catch {
      void this.#end(unavailable("Nothing can be looked at: the thread for it cannot be started."));
    }
  }

  #start(): Worker {
    const worker = startWorker(this.#memoryMb);
    this.#isReady = false;
    worker.unref();
    worker.on("message", (message: LookAnswer | "ready") => {
      if (this.#worker === worker) this.#take(message);
    });
    const fail = (thrown?: unknown): void => {
      if (this.#worker === worker) void this.#end(failureOf(thrown));
    };
    worker.on("error", fail);
    worker.on("exit", () => fail());
    return worker;
  }

  #take(message: LookAnswer | "ready"): void {
    if (message === "ready") {
      this.#isReady = true;
      if (this.#waiting !== undefined) this.#expect(this.#timeoutMs);
      return;
    }
    const waiting = this.#waiting;
    this.#waiting = undefined;
    this.#setTimer(this.#idleMs, () => this.#end());
    waiting?.resolve(message);
  }

  #expect(timeoutMs: number): void {
    this.#setTimer(timeoutMs, () => this.#end(tookTooLong(timeoutMs)));
  }

  #setTimer(ms: number, run: () => Promise<void>): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void run(), ms).unref();
  }

  /** The next look starts another one. */
  async #end(why = unavailable("The thread ended.")): Promise<void> {
    const [worker, waiting] = [this.#worker, this.#waiting];
    clearTimeout(this.#timer);
    this.#worker = undefined;
    this.#waiting = undefined;
    waiting?.reject(why);
    await worker?.terminate();
  }
}

/** In the package this code is in a chunk, or in an entry; among the sources it stands beside the script. */
const ENTRIES = ["../workers/look-worker.js", "./workers/look-worker.js", "./look-worker.ts"];

const entry = ENTRIES.map((place) => fileURLToPath(new URL(place, import.meta.url))).find(existsSync);

/** Among the sources the script is compiled first, which takes long on a busy machine. */
const START_MS = entry?.endsWith(".ts") === true ? 20 * LOOK_START_MS : LOOK_START_MS;

function startWorker(memoryMb: number): Worker {
  if (entry === undefined) throw new Error("The script of the thread is missing; install Waybill anew.");
  const settings = { env: {}, resourceLimits: { maxOldGenerationSizeMb: memoryMb } };
  return entry.endsWith(".ts")
    ? new Worker(typeScriptRunner(), { ...settings, argv: [entry] })
    : new Worker(entry, settings);
}

/** Node runs no TypeScript by itself; only the sources need this, never the package. */
function typeScriptRunner(): string {
  const main = createRequire(import.meta.url).resolve("jiti/package.json");
  return join(dirname(main), "lib", "jiti-cli.mjs");
}

function failureOf(thrown: unknown): CallError {
  const { code } = (thrown ?? {}) as { readonly code?: unknown };
  if (code !== "ERR_WORKER_OUT_OF_MEMORY") return unavailable("The thread ended before it had an answer.");
  const message = 'It takes more memory to look at this than there is here; "waybill decode" has more.';
  return new CallError("TOO_LARGE", message, { stack: false });
}

function tookTooLong(timeoutMs: number): CallError {
  const time = `${timeoutMs.toLocaleString("en")} milliseconds`;
  const message = `It took longer than ${time} to look at this, and was given up; "waybill decode" takes its time.`;
  return new CallError("TIMEOUT", message, { stack: false });
}

function unavailable(message: string): CallError {
  return new CallError("UNAVAILABLE", message, { stack: false });
}
