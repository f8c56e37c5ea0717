import type { CallObservation } from "../../../call/call-observer.ts";
import { isErrorEnvelope, type ResponseEnvelope } from "../../../core/envelope/envelope.ts";
import { type CallError, toCallError } from "../../../core/errors/errors.ts";
import type { CallHook, HookedCall, Hooks, SubscribeHook } from "../../../core/execution/hooks.ts";
import type { OperationContext } from "../../../core/operation/operation-context.ts";
import type { ReplayedCall } from "../../../openapi/server/http-handler-options.ts";
import { type CallNotes, notesOf as notesOfCall, takeNote } from "../../policy/call-notes.ts";
import type { CallEntry, CallHead, CallRecord } from "./call-record.ts";
import { entryOf } from "./entry.ts";
import type { GatewayLogger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";
import type { Telemetry } from "./telemetry.ts";

/** Who is told of calls. */
export interface ObserverOptions {
  /** Gets one record for each call; its mask holds for whatever is told of calls. @default nobody does */
  readonly log?: (Pick<GatewayLogger, "info"> & Partial<Pick<GatewayLogger, "mask">>) | undefined;
  readonly metrics?: Metrics | undefined;
  readonly telemetry?: Telemetry | undefined;
  /** The name of the source an operation comes from. @default its namespace */
  readonly sourceOf?: ((operationId: string) => string | undefined) | undefined;
  /** What policies did to a call, by its context. @default what they noted */
  readonly notesOf?: ((context: object) => CallNotes | undefined) | undefined;
}

/**
 * Someone who hears of calls, at once and in turn. The call is the same object from its beginning to its end: request ids tie nothing
 * together, for callers choose them.
 */
export interface CallListener {
  /** Hears that a call begins, before anything is done about it. */
  begin?(head: CallHead, call: HookedCall): void;
  /** Hears each value of a subscription, before whoever reads it does. */
  value?(envelope: ResponseEnvelope, call: HookedCall): void;
  /** Hears how a call ended; what came back is for those who show it, and is in no record. */
  end?(record: CallRecord, call: HookedCall, ended: CallEnd): void;
  /** Hears each step of a call on the bus, as the gateway's end of it saw it. */
  bus?(call: CallObservation): void;
}

/** What a call came to: an envelope, an error, or neither for a subscription that was read or left. */
export interface CallEnd {
  readonly envelope?: ResponseEnvelope;
  readonly error?: CallError;
}

/** Hooks that see every call, and those who want to hear of them. */
export interface Observer extends Hooks {
  readonly execute: CallHook;
  readonly subscribe: SubscribeHook;
  /** Tells of a call that was not run: it was answered as the first one of its idempotency key. */
  readonly replay: (call: ReplayedCall) => void;
  /** Tells of a step of a call on the bus: an observer for `onCall` of a bus. */
  readonly busCall: (call: CallObservation) => void;
  /** Calls that run now. */
  readonly running: number;
  /** Tells someone of calls from now on; at most 100 may listen. Returns how to stop. */
  listen(listener: CallListener): () => void;
}

const MOST_LISTENERS = 100;
const MOST_ID_CHARACTERS = 200;

/** Creates hooks that tell of every call, nested ones too; install them outside of all others. */
export function createObserver(options: ObserverOptions = {}): Observer {
  return new CallObserver(options);
}

/** How a call ended, before it is told. */
type Ending = Pick<CallRecord, "outcome"> & Partial<Pick<CallRecord, "code" | "attempts" | "values">>;

class CallObserver implements Observer {
  readonly #options: ObserverOptions;
  readonly #listeners = new Set<{ readonly listener: CallListener }>();
  /** Where running calls came in, for the calls they make with metadata of their own. */
  readonly #entries = new Map<string, CallEntry>();
  #running = 0;

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running;
  }

  listen(listener: CallListener): () => void {
    if (this.#listeners.size >= MOST_LISTENERS) {
      throw new Error(`At most ${MOST_LISTENERS} may hear of calls at a time.`);
    }
    // An object of its own, so that whoever listens twice hears twice and leaves once.
    const added = { listener };
    this.#listeners.add(added);
    return () => void this.#listeners.delete(added);
  }

  readonly execute: CallHook = async (call, next) => {
    const observed = this.#begin(call);
    try {
      const envelope = await observed.within(() => next());
      observed.end(endingOf(envelope), { envelope });
      return envelope;
    } catch (thrown) {
      const error = toCallError(thrown);
      observed.end({ outcome: "call_error", code: error.code }, { error });
      throw error;
    }
  };

  readonly subscribe: SubscribeHook = (call, next) => this.#watch(call, next);

  readonly replay = ({ operation, input, durationMs, outcome, code, ...asked }: ReplayedCall): void => {
    const { requestId, identity, metadata } = asked;
    const known = { requestId, operationId: operation.id, identity, metadata, parent: undefined };
    // All that those who hear of calls look at: it has no handler, which would need the rest.
    const context = known as unknown as OperationContext;
    takeNote(context, { repeated: true });
    const call = { operationId: operation.id, operation, input, context };
    const observed = this.#begin(call, performance.now() - durationMs);
    observed.end({ outcome, ...(code !== undefined && { code }) }, {});
  };

  readonly busCall = (call: CallObservation): void => {
    const { metrics, telemetry } = this.#options;
    metrics?.busCall(call);
    telemetry?.busCall(call);
    this.#tell((listener) => listener.bus?.(call));
  };

  async *#watch(
    call: HookedCall,
    next: () => AsyncIterable<ResponseEnvelope>,
  ): AsyncGenerator<ResponseEnvelope> {
    const observed = this.#begin(call);
    let values = 0;
    let failed: CallError | undefined;
    const stream = observed.within(() => next()[Symbol.asyncIterator]());
    try {
      for (;;) {
        const step = await observed.within(() => stream.next());
        if (step.done === true) return;
        values += 1;
        const { value } = step;
        this.#tell((listener) => listener.value?.(value, call));
        yield value;
      }
    } catch (thrown) {
      failed = toCallError(thrown);
      throw failed;
    } finally {
      const cut = failed ?? cutBy(call);
      // Leaving a stream is how one ends it.
      const isFailure = cut !== undefined && (cut === failed || cut.code !== "ABORTED");
      const ending: Ending = { outcome: isFailure ? "call_error" : "ok", values };
      observed.end(
        cut === undefined ? ending : { ...ending, code: cut.code },
        isFailure ? { error: cut } : {},
      );
      if (failed === undefined) await stream.return?.();
    }
  }

  #begin(
    call: HookedCall,
    startedAt = performance.now(),
  ): { within<T>(run: () => T): T; end(ending: Ending, ended: CallEnd): void } {
    const { requestId } = call.context;
    const { metrics, telemetry } = this.#options;
    const entry = this.#entryOf(call);
    const isFirst = entry !== undefined && !this.#entries.has(requestId);
    if (isFirst) this.#entries.set(requestId, entry);
    const span = telemetry?.open(call, this.#mask(call.operationId));
    this.#running += 1;
    metrics?.begin();
    const known = this.#listeners.size > 0 ? this.#headOf(call, entry) : undefined;
    if (known !== undefined) this.#tell((listener) => listener.begin?.(known, call));
    return {
      within: (run) => (span === undefined ? run() : span.within(run)),
      end: (ending, ended) => {
        this.#running -= 1;
        if (isFirst) this.#entries.delete(requestId);
        const durationMs = performance.now() - startedAt;
        const record = this.#toRecord(call, ending, { head: known ?? this.#headOf(call, entry), durationMs });
        metrics?.end(record);
        span?.end(record);
        this.#log(record);
        this.#tell((listener) => listener.end?.(record, call, ended));
      },
    };
  }

  #entryOf({ context: { metadata, parent } }: HookedCall): CallEntry | undefined {
    return entryOf(metadata) ?? (parent && this.#entries.get(parent.requestId));
  }

  #headOf({ operationId, operation, context }: HookedCall, entry: CallEntry | undefined): CallHead {
    return {
      requestId: this.#mask(context.requestId),
      operation: this.#mask(operationId.slice(0, MOST_ID_CHARACTERS)),
      isKnown: operation !== undefined,
      ...(operation !== undefined && {
        source: this.#options.sourceOf?.(operationId) ?? operation.namespace,
        type: operation.type,
      }),
      ...(context.identity !== undefined && { subject: this.#mask(context.identity.subject) }),
      ...(entry !== undefined && { entry }),
    };
  }

  #toRecord(
    { context }: HookedCall,
    { attempts: tried, ...ending }: Ending,
    { head, durationMs }: { readonly head: CallHead; readonly durationMs: number },
  ): CallRecord {
    const { notesOf = notesOfCall } = this.#options;
    const { attempts = tried, ...notes } = notesOf(context) ?? {};
    return {
      ...head,
      ...ending,
      ...(ending.code !== undefined && { code: this.#mask(ending.code) }),
      durationMs: Math.round(Math.max(durationMs, 0) * 1_000) / 1_000,
      ...(attempts !== undefined && attempts > 1 && { attempts }),
      ...notes,
      ...(context.parent !== undefined && { parent: this.#mask(context.parent.requestId) }),
    };
  }

  #mask(text: string): string {
    return this.#options.log?.mask?.(text) ?? text;
  }

  #log(record: CallRecord): void {
    const { log } = this.#options;
    if (log === undefined) return;
    const { isKnown: _, ...fields } = record;
    log.info("call", { event: "call", ...fields });
  }

  /** Whoever listens badly changes nothing about the call. */
  #tell(tell: (listener: CallListener) => void): void {
    for (const { listener } of this.#listeners) {
      try {
        tell(listener);
      } catch {
        // Its own affair.
      }
    }
  }
}

/** What ended a stream from outside, while its handler was busy or waited for its reader. */
function cutBy({ context: { signal } }: HookedCall): CallError | undefined {
  return signal.aborted ? toCallError(signal.reason) : undefined;
}

function endingOf(envelope: ResponseEnvelope): Ending {
  const { code, attempts } = envelope.meta.waybill ?? {};
  const isError = isErrorEnvelope(envelope);
  return {
    outcome: isError ? "tool_error" : "ok",
    ...(isError && code !== undefined && { code: String(code).slice(0, 64) }),
    ...(typeof attempts === "number" && { attempts }),
  };
}
