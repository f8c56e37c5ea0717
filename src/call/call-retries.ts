import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { type CallError, isCallError } from "../core/errors/errors.ts";
import { monotonicNow, toDeadline } from "../core/execution/deadline.ts";
import { type CallOptions, type RetryOptions, requestIdOf } from "./call-options.ts";
import { Linked } from "./linked-set.ts";
import { PendingCall } from "./pending-call.ts";
import type { Pending, PendingHost } from "./pending-request-map.ts";

const MAX_ATTEMPTS = 100;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;

/** What may go away by itself when a call is tried again. */
const WORTH_RETRYING: ReadonlySet<string> = new Set(["UNAVAILABLE", "NO_RESPONDER", "TIMEOUT"]);

/** Calls until there is an answer, under one request id; the answering side refuses what it must not run again. */
export async function callWithRetries(
  host: PendingHost,
  operationId: string,
  input: unknown,
  options: CallOptions,
  { attempts, attemptTimeoutMs }: RetryOptions,
  deadline: number,
): Promise<ResponseEnvelope> {
  if (!Number.isInteger(attempts) || attempts < 1 || attempts > MAX_ATTEMPTS) {
    throw new TypeError(`retry.attempts must be a whole number from 1 to ${MAX_ATTEMPTS}.`);
  }
  const requestId = requestIdOf(options);
  let runs = 1;
  for (let tried = 1; ; tried++) {
    const now = monotonicNow();
    const own =
      attemptTimeoutMs === undefined ? deadline : Math.min(deadline, toDeadline(attemptTimeoutMs, now));
    const timed = options.timeoutMs === undefined && own === deadline ? {} : { timeoutMs: own - now };
    const attempt = tryOnce(host, operationId, input, { ...options, ...timed, requestId }, own, runs);
    try {
      return await attempt.answer;
    } catch (thrown) {
      if (!isCallError(thrown) || !WORTH_RETRYING.has(thrown.code) || tried >= attempts) throw thrown;
      // Nobody was there, so nothing ran, and the next try is the first one still.
      if (attempt.call.sent && thrown.code !== "NO_RESPONDER") runs++;
      const pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (tried - 1)) * (0.5 + Math.random() / 2);
      if (monotonicNow() + pause >= deadline) throw thrown;
      await pauseFor(host, operationId, requestId, pause, options.signal);
    }
  }
}

function tryOnce(
  host: PendingHost,
  operationId: string,
  input: unknown,
  options: CallOptions,
  deadline: number,
  run: number,
): { readonly call: PendingCall; readonly answer: Promise<ResponseEnvelope> } {
  const { promise, resolve, reject } = withResolvers<ResponseEnvelope>();
  const call = new PendingCall(host, operationId, options, deadline, resolve, reject, run);
  call.start(input);
  return { call, answer: promise };
}

/** A call between two tries. It has not settled, so that it stays in its map, and closing that one ends it. */
class Pause extends Linked implements Pending {
  readonly hasFreshId = false;
  readonly requestId: string;
  readonly giveUp: (error: CallError) => void;

  constructor(requestId: string, giveUp: (error: CallError) => void) {
    super();
    this.requestId = requestId;
    this.giveUp = giveUp;
  }
}

/** Waits, or less when the signal aborts; whoever goes on finds that out by itself. */
async function pauseFor(
  host: PendingHost,
  operationId: string,
  requestId: string,
  ms: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { promise, resolve, reject } = withResolvers<void>();
  const pause = new Pause(requestId, reject);
  host.admit(pause, operationId);
  const wake = () => resolve();
  const timer = setTimeout(wake, ms);
  signal?.addEventListener("abort", wake);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", wake);
    host.release(pause);
  }
}

function withResolvers<T>(): {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
} {
  let resolve: (value: T) => void = () => {};
  let reject: (error: unknown) => void = () => {};
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
