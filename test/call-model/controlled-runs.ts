import { CallError, type OperationContext, OperationRegistry, toolError } from "../../src/index.ts";
import { query, stream } from "../make-operation.ts";

/** The operations of every service: one that may run once, one that may run again, one that streams. */
export const OPERATIONS = { once: "m.once", again: "m.again", many: "m.many" } as const;

/** What a run can be told to throw, by the code its caller has to hear. */
export const THROWN = ["EXECUTION_ERROR", "RATE_LIMITED", "UNAVAILABLE", "ABORTED"] as const;

/** What the caller of a run must hear, and where it came from. */
export interface Datum {
  readonly requestId: string;
  readonly run: number;
  readonly n: number;
  readonly text: string;
}

interface Waiter {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** One run of a handler, which goes on when it is told to. */
export class ControlledRun {
  readonly number: number;
  readonly service: number;
  readonly requestId: string;
  readonly signal: AbortSignal;
  readonly context: OperationContext;
  readonly isStream: boolean;
  /** Steps asked for, which nobody may do further ahead than was granted. */
  asked = 0;
  yielded = 0;
  isClosed = false;
  isDone = false;
  #waiters: Waiter[] = [];

  constructor(number: number, service: number, context: OperationContext, isStream: boolean) {
    this.number = number;
    this.service = service;
    this.requestId = context.requestId;
    this.signal = context.signal;
    this.context = context;
    this.isStream = isStream;
  }

  get isWaiting(): boolean {
    return this.#waiters.length > 0;
  }

  datum(n: number, text: string): Datum {
    return { requestId: this.requestId, run: this.number, n, text };
  }

  next(): Promise<unknown> {
    this.asked++;
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  give(value: unknown): void {
    this.#waiters.shift()?.resolve(value);
  }

  toolError(datum: Datum): void {
    this.isDone = true;
    this.give(toolError(datum, { code: "NOPE" }));
  }

  fail(code: (typeof THROWN)[number]): void {
    this.isDone = true;
    const error = code === "EXECUTION_ERROR" ? new Error("secret") : new CallError(code, "As told.");
    this.#waiters.shift()?.reject(error);
  }

  /** What the handler of a subscription returns. */
  steps(): AsyncIterableIterator<unknown> {
    const steps: AsyncIterableIterator<unknown> = {
      [Symbol.asyncIterator]: () => steps,
      next: () => this.next() as Promise<IteratorResult<unknown>>,
      return: async () => {
        this.isClosed = true;
        for (const { resolve } of this.#waiters.splice(0)) resolve({ done: true, value: undefined });
        return { done: true, value: undefined };
      },
    };
    return steps;
  }
}

/** A registry whose handlers do nothing until they are told to. */
export function controlledRegistry(service: number, runs: ControlledRun[]): OperationRegistry {
  const begin = (context: OperationContext, isStream: boolean) => {
    const run = new ControlledRun(runs.length, service, context, isStream);
    runs.push(run);
    return run;
  };
  return new OperationRegistry([
    query(OPERATIONS.once, (_, context) => begin(context, false).next()),
    query(OPERATIONS.again, (_, context) => begin(context, false).next(), {
      annotations: { idempotent: true },
    }),
    stream(OPERATIONS.many, (_, context) => begin(context, true).steps()),
  ]);
}
