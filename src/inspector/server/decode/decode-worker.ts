import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { CallError } from "../../../core/errors/errors.ts";
import { typeScriptRunner } from "../../../gateway/embedded/embedded-config.ts";
import {
  DECODE_IDLE_MS,
  DECODE_MEMORY_MB,
  DECODE_START_MS,
  DECODE_TIMEOUT_MS,
  MOST_DECODES_WAITING,
} from "../inspector-limits.ts";
import type { DecodeJob, DecodeOutcome } from "./decode-results.ts";

/** How long a job may take, and in how much memory. */
export interface DecodeWorkerOptions {
  /** Milliseconds for one job. @default 5_000 */
  readonly timeoutMs?: number | undefined;
  /** Milliseconds without work after which the thread ends. @default 10_000 */
  readonly idleMs?: number | undefined;
  /** Mebibytes of its heap. @default 256 */
  readonly memoryMb?: number | undefined;
}

/** The caller that waits for the job under way. */
interface Waiting {
  readonly resolve: (answer: DecodeOutcome) => void;
  readonly reject: (why: CallError) => void;
}

/** A worker thread that decodes results and texts; it runs from the first use on, for as long as there is work. */
export class DecodeWorker {
  readonly #timeoutMs: number;
  readonly #idleMs: number;
  readonly #memoryMb: number;
  #worker: Worker | undefined;
  #isReady = false;
  #waiting: Waiting | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor({ timeoutMs, idleMs, memoryMb }: DecodeWorkerOptions = {}) {
    this.#timeoutMs = timeoutMs ?? SLOWER * DECODE_TIMEOUT_MS;
    this.#idleMs = idleMs ?? DECODE_IDLE_MS;
    this.#memoryMb = memoryMb ?? DECODE_MEMORY_MB;
  }

  /** Whether there is a thread now. */
  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  /** Runs one job at a time; resolves with JSON, in bytes. */
  async run(job: DecodeJob): Promise<Uint8Array> {
    if (this.#isClosed) throw unavailable("The inspector was closed.");
    if (this.#waiting !== undefined) throw new Error("A job is under way already.");
    const answer = await new Promise<DecodeOutcome>((resolve, reject) => {
      this.#waiting = { resolve, reject };
      this.#post(job);
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

  #post(job: DecodeJob): void {
    try {
      this.#worker ??= this.#start();
      this.#expect(this.#isReady ? this.#timeoutMs : SLOWER * DECODE_START_MS);
      // A copy, which is then the thread's alone.
      const posted = new Uint8Array(job.posted);
      this.#worker.postMessage({ ...job, posted }, [posted.buffer]);
    } catch {
      void this.#end(unavailable("Nothing can be looked at: the thread for it cannot be started."));
    }
  }

  #start(): Worker {
    const worker = startWorker(this.#memoryMb);
    this.#isReady = false;
    worker.unref();
    worker.on("message", (message: DecodeOutcome | "ready") => {
      if (this.#worker === worker) this.#take(message);
    });
    const fail = (thrown?: unknown): void => {
      if (this.#worker === worker) void this.#end(failureOf(thrown));
    };
    worker.on("error", fail);
    worker.on("exit", () => fail());
    return worker;
  }

  #take(message: DecodeOutcome | "ready"): void {
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

  /** The next job starts another one. */
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
const ENTRIES = ["../workers/decode-thread.js", "./workers/decode-thread.js", "./decode-thread.ts"];

const entry = ENTRIES.map((place) => fileURLToPath(new URL(place, import.meta.url))).find(existsSync);

/** Among the sources the script is compiled first, and tests run beside it, on a machine as busy as it may be; the package has the limits as they are. */
const SLOWER = entry?.endsWith(".ts") === true ? 20 : 1;

function startWorker(memoryMb: number): Worker {
  if (entry === undefined) throw new Error("The script of the thread is missing; install Waybill anew.");
  const settings = { env: {}, resourceLimits: { maxOldGenerationSizeMb: memoryMb } };
  return entry.endsWith(".ts")
    ? new Worker(typeScriptRunner(), { ...settings, argv: [entry] })
    : new Worker(entry, settings);
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

/** One who asked for something, and may have left since. */
interface Asker {
  readonly destroyed: boolean;
}

/** Work that keeps a thread busy while it is done: one piece at a time. */
export class DecodeQueue {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** Does a piece of work when those before it are done; it is not begun when the caller has left. */
  async run<T>(asker: Asker, work: () => Promise<T>): Promise<T> {
    if (this.#waiting > MOST_DECODES_WAITING) {
      const message = `${MOST_DECODES_WAITING} results, texts or inputs wait to be read already; try again soon.`;
      throw new CallError("RESOURCE_EXHAUSTED", message, { httpStatus: 429, stack: false });
    }
    this.#waiting += 1;
    const done = this.#last.then(async () => {
      if (asker.destroyed) throw new CallError("ABORTED", undefined, { stack: false });
      return await work();
    });
    this.#last = done.then(noop, noop);
    try {
      return await done;
    } finally {
      this.#waiting -= 1;
    }
  }
}

const noop = (): void => {};
