import type { Random } from "../random.ts";

/** What every call of the fault run is given. */
export interface WorkInput {
  /** Different for every call of a client, so that an answer meant for another shows. */
  readonly n: number;
  /** Milliseconds the handler takes; for a stream, how many values it yields. */
  readonly size: number;
}

/** How an operation is called. */
export type WorkKind = "plain" | "stream" | "durable";

/** One operation of the fault run. */
export interface WorkOperation {
  readonly name: string;
  readonly kind: WorkKind;
  readonly idempotent: boolean;
}

/** Everything the workers answer, by id. */
export const WORK: Readonly<Record<string, WorkOperation>> = {
  "fault.once": { name: "once", kind: "plain", idempotent: false },
  "fault.again": { name: "again", kind: "plain", idempotent: true },
  "fault.storedOnce": { name: "storedOnce", kind: "durable", idempotent: false },
  "fault.storedAgain": { name: "storedAgain", kind: "durable", idempotent: true },
  "fault.stream": { name: "stream", kind: "stream", idempotent: false },
};

/** Milliseconds between two values of a stream. */
export const YIELD_EVERY_MS = 20;

/** Milliseconds a call has that is not meant to run out of time: several times what it takes on machines that are busy. */
const LONG_MS = 20_000;

/** Milliseconds between signs of life; a peer that gives none for three and a half of them counts as gone. */
export const BEAT_MS = 500;

/** Milliseconds after which a stored call goes to another worker. */
export const ACK_WAIT_MS = 1_000;

/** Stored requests that one worker runs of one operation at a time. */
export const STORED_AT_A_TIME = 32;

/** The subjects of the run begin with this. */
export const PREFIX = "faults";

/** What a handler gives, and what the checker expects of it: no two calls share an answer. */
export function answerOf(operationId: string, { n }: WorkInput, index = 0): string {
  return `${operationId}:${n}:${(Math.imul(n + 1, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b)) >>> 0}`;
}

/** One call as a client makes it. */
export interface PlannedCall {
  readonly operationId: string;
  readonly kind: WorkKind;
  readonly input: WorkInput;
  /** Milliseconds; of a stored call, for its acknowledgement. */
  readonly timeoutMs: number;
  /** Tries of a plain call; 1 asks for none but the first. */
  readonly attempts: number;
  /** A stored call with a key may be submitted again. */
  readonly keyed: boolean;
}

/** Chooses the next call: mostly plain ones, a quarter stored, some streams, some that will meet their deadline. */
export function planCall(random: Random, n: number): PlannedCall {
  const share = random.below(100);
  if (share < 12) {
    const input = { n, size: 10 + random.below(60) };
    return {
      operationId: "fault.stream",
      kind: "stream",
      input,
      timeoutMs: LONG_MS,
      attempts: 1,
      keyed: false,
    };
  }
  if (share < 36) {
    const operationId = random.chance(0.5) ? "fault.storedOnce" : "fault.storedAgain";
    const input = { n, size: 50 + random.below(450) };
    return {
      operationId,
      kind: "durable",
      input,
      timeoutMs: 2_000,
      attempts: 1,
      keyed: random.chance(0.5),
    };
  }
  const operationId = share < 70 ? "fault.once" : "fault.again";
  const isRetried = operationId === "fault.again" || random.chance(0.25);
  const size = 200 + random.below(1_300);
  const timeoutMs = random.chance(0.15) ? 20 + random.below(size) : LONG_MS;
  return {
    operationId,
    kind: "plain",
    input: { n, size },
    timeoutMs,
    attempts: isRetried ? 4 : 1,
    keyed: false,
  };
}
