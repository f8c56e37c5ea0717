import { Listeners } from "../core/collections/listeners.ts";
import { isErrorEnvelope } from "../core/envelope/envelope.ts";
import type { ResponseEnvelope } from "../core/envelope/response-meta.ts";
import { monotonicNow } from "../core/execution/cancellation.ts";
import type { Delivery } from "./bus.ts";
import { type AbortReason, type CallRequested, EVENT_LIMITS } from "./call-events.ts";

interface ObservedFields {
  /** Which end of the call reports it: the one that asked, or the one that answers. */
  readonly end: "caller" | "handler";
  readonly operationId: string;
  readonly requestId: string;
  /** The number of a retry, from 2 on; absent for the first attempt. */
  readonly attempt?: number;
  /** Bytes of the message that this end sent; absent where it sent none, or the bus writes nothing down. */
  readonly sentBytes?: number;
  /** Bytes of the message that this end received, likewise. */
  readonly receivedBytes?: number;
}

interface ObservedProgress {
  /** Milliseconds since the request, on a monotonic clock. */
  readonly durationMs: number;
  /** Values of a subscription so far; absent for a call that has one result. */
  readonly values?: number;
}

/** What happened to a call that has begun; an outcome is there when that ended it. */
type ObservedStep =
  /** The result of a call. */
  | {
      readonly type: "responded";
      readonly outcome: "ok" | "tool_error";
      /** The operation ran and reported an error. */
      readonly isError: boolean;
      /** The code of a tool error, where it has one. */
      readonly code?: string;
    }
  /** One value of a subscription. */
  | {
      readonly type: "responded";
      readonly outcome?: undefined;
      readonly isError: boolean;
      readonly code?: string;
    }
  /** A subscription ended by itself. */
  | { readonly type: "completed"; readonly outcome: "ok"; readonly code?: undefined }
  /** The call never ran, or broke. */
  | { readonly type: "error"; readonly outcome: "call_error"; readonly code: string }
  /** One end gave up; a reader that leaves its subscription ends it with the outcome `ok`. */
  | {
      readonly type: "aborted";
      readonly outcome: "ok" | "call_error";
      readonly reason: AbortReason;
      readonly code?: string;
    };

/** One step of a call, as an end in this process saw it: ids, sizes and times, never a reply path, a credential or data. */
export type CallObservation = ObservedFields &
  (
    | { readonly type: "requested"; readonly outcome?: undefined; readonly code?: undefined }
    | (ObservedProgress & ObservedStep)
  );

/** Hears of calls; what it throws is reported once and changes nothing about a call. */
export type CallObserver = (call: CallObservation) => void;

/** Characters of a code that are reported. */
const MOST_CODE = 100;

/** Where both ends of a bus report calls, for those who observe them; a bus of your own can be observed once it has one. */
export class CallObservers {
  readonly #listeners = new Listeners<CallObservation>((cause, isFirst) => {
    if (isFirst) console.warn("[waybill] A listener of a bus threw.", cause);
  });
  /** Whether the bus writes messages down, and knows the size of a request once it has sent it. */
  readonly isMeasured: boolean;

  /** How many observe calls now; while nobody does, nothing is begun. A field, for every call looks at it. */
  readonly size: number = 0;

  constructor({ isMeasured = false }: { /** @default false */ readonly isMeasured?: boolean } = {}) {
    this.isMeasured = isMeasured;
  }

  /** Adds an observer; returns how to remove it. */
  add(observer: CallObserver): () => void {
    const remove = this.#listeners.add(observer);
    const count = () => {
      (this as { size: number }).size = this.#listeners.size;
    };
    count();
    return () => {
      remove();
      count();
    };
  }

  /** Tells every observer. */
  tell(call: CallObservation): void {
    this.#listeners.tell(call);
  }

  /** Begins to report a request that is about to be handed to the bus. */
  observeRequest(request: CallRequested): ObservedCall {
    return new ObservedCall(this, "caller", request);
  }

  /** Begins to report a request that has arrived. */
  observeDelivery({ request, bytes }: Delivery): ObservedCall {
    const call = new ObservedCall(this, "handler", request);
    call.requested(bytes);
    return call;
  }
}

/** One end of one call while somebody observes: reports the request once, and one ending. */
export class ObservedCall {
  /** Bytes of the answer that is being taken, kept for when it is. */
  answerBytes: number | undefined;
  readonly #observers: CallObservers;
  readonly #fields: ObservedFields;
  readonly #startedAt = monotonicNow();
  #values: number | undefined;
  #isRequested = false;
  #isOver = false;

  constructor(
    observers: CallObservers,
    end: ObservedFields["end"],
    { operationId, requestId, attempt, credit }: CallRequested,
  ) {
    this.#observers = observers;
    this.#values = credit === undefined ? undefined : 0;
    this.#fields = {
      end,
      operationId: operationId.slice(0, EVENT_LIMITS.operationId),
      requestId,
      ...(attempt !== undefined && { attempt }),
    };
  }

  /** Reports a request that is about to be sent, unless its size is known afterwards. */
  sending(): void {
    if (!this.#observers.isMeasured) this.requested();
  }

  /** Reports the request, unless that has been done. */
  requested(bytes?: number): void {
    if (this.#isRequested) return;
    this.#isRequested = true;
    const size = sizeOf(bytes, this.#fields.end === "caller");
    this.#observers.tell({ type: "requested", ...this.#fields, ...size });
  }

  /** Reports the result of a call, or one more value of a subscription. */
  responded(output: ResponseEnvelope, bytes?: number): void {
    if (this.#isOver) return;
    const { isError, code } = toolErrorOf(output);
    const said = { isError, ...(code !== undefined && { code }) };
    if (this.#values === undefined) {
      this.#end({ type: "responded", outcome: isError ? "tool_error" : "ok", ...said }, bytes);
    } else {
      this.#values++;
      this.#tell({ type: "responded", ...said }, bytes);
    }
  }

  /** Reports that a subscription has ended by itself. */
  completed(bytes?: number): void {
    this.#end({ type: "completed", outcome: "ok" }, bytes);
  }

  /** Reports that the call never ran, or broke. */
  failed(code: string, bytes?: number): void {
    this.#end({ type: "error", outcome: "call_error", code: code.slice(0, MOST_CODE) }, bytes);
  }

  /** Reports that one end gave up; without a code it is a reader that left its subscription. */
  aborted(reason: AbortReason, code: string | undefined, bytes?: number): void {
    if (code === undefined) this.#end({ type: "aborted", reason, outcome: "ok" }, bytes);
    else this.#end({ type: "aborted", reason, outcome: "call_error", code: code.slice(0, MOST_CODE) }, bytes);
  }

  /** What is reported after the ending of a call is not about it any more. */
  #end(step: ObservedStep, bytes: number | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#tell(step, bytes);
  }

  #tell(step: ObservedStep, bytes: number | undefined): void {
    this.requested();
    this.#observers.tell({
      ...step,
      ...this.#fields,
      durationMs: monotonicNow() - this.#startedAt,
      ...(this.#values !== undefined && { values: this.#values }),
      ...sizeOf(bytes, this.#fields.end === "handler"),
    });
  }
}

function sizeOf(
  bytes: number | undefined,
  isSent: boolean,
): Pick<ObservedFields, "sentBytes" | "receivedBytes"> {
  if (bytes === undefined) return {};
  return isSent ? { sentBytes: bytes } : { receivedBytes: bytes };
}

/** Whatever an executor calls an envelope is looked at with care: observing it must not fail the call. */
export function toolErrorOf(output: ResponseEnvelope): { readonly isError: boolean; readonly code?: string } {
  try {
    if (!isErrorEnvelope(output)) return { isError: false };
    const code = output.meta.waybill?.code;
    return typeof code === "string" ? { isError: true, code: code.slice(0, MOST_CODE) } : { isError: true };
  } catch {
    return { isError: false };
  }
}

/** What was dropped, refused, tried again or left out, and why; every field only ever grows. */
export interface CallCounters {
  /** Not an event: unreadable, or not of its schema. */
  readonly malformed: number;
  /** Larger than allowed. */
  readonly oversized: number;
  /** An event that had been there before: a request id, a sequence number. */
  readonly duplicate: number;
  /** An event for a call that has settled. */
  readonly late: number;
  /** An event by a path that is nobody's, or on behalf of another call than the path's own. */
  readonly forged: number;
  /** An event of a type that is unknown, or that the sender may not send. */
  readonly unexpected: number;
  /** A request whose sender is not believed to be who it says. */
  readonly unauthenticated: number;
  /** Part of a stream that never came. */
  readonly gaps: number;
  /** A call or a yield over a limit. */
  readonly overLimit: number;
  /** A member was left out, since it failed calls or had no room. */
  readonly ejected: number;
  /** A call was tried again. */
  readonly retried: number;
  /** A call was not tried again, since the retry budget was spent. */
  readonly overBudget: number;
  /** A call was not sent, since the circuit of its operation was open. */
  readonly circuitOpen: number;
}

/** What an event was dropped for. */
export type DropReason = keyof CallCounters;

/** Counters that can be counted up. */
export type LiveCounters = { -readonly [Reason in DropReason]: number };

/** Starts at zero. */
export function createCounters(): LiveCounters {
  return {
    malformed: 0,
    oversized: 0,
    duplicate: 0,
    late: 0,
    forged: 0,
    unexpected: 0,
    unauthenticated: 0,
    gaps: 0,
    overLimit: 0,
    ejected: 0,
    retried: 0,
    overBudget: 0,
    circuitOpen: 0,
  };
}
