import { isErrorEnvelope, type ResponseEnvelope } from "../../../core/envelope/envelope.ts";
import { toCallError } from "../../../core/errors/errors.ts";
import type { CallHook, HookedCall, Hooks, SubscribeHook } from "../../../core/execution/hooks.ts";
import { type CallNotes, notesOf as notesOfCall } from "../../policy/call-notes.ts";
import type { CallEntry, CallRecord } from "./call-record.ts";
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

/** Hooks that see every call, and those who want to hear of them. */
export interface Observer extends Hooks {
  readonly execute: CallHook;
  readonly subscribe: SubscribeHook;
  /** Calls that run now. */
  readonly running: number;
  /** Hears of every call that has ended, at once and in turn; at most 100 may. Returns how to stop. */
  onCall(listener: (record: CallRecord) => void): () => void;
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
  readonly #listeners = new Set<(record: CallRecord) => void>();
  /** Where running calls came in, for the calls they make with metadata of their own. */
  readonly #entries = new Map<string, CallEntry>();
  #running = 0;

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running;
  }

  onCall(listener: (record: CallRecord) => void): () => void {
    if (this.#listeners.size >= MOST_LISTENERS) {
      throw new Error(`At most ${MOST_LISTENERS} may hear of calls at a time.`);
    }
    const heard = (record: CallRecord): void => listener(record);
    this.#listeners.add(heard);
    return () => void this.#listeners.delete(heard);
  }

  readonly execute: CallHook = async (call, next) => {
    const observed = this.#begin(call);
    try {
      const envelope = await observed.within(() => next());
      observed.end(endingOf(envelope));
      return envelope;
    } catch (thrown) {
      const error = toCallError(thrown);
      observed.end({ outcome: "call_error", code: error.code });
      throw error;
    }
  };

  readonly subscribe: SubscribeHook = (call, next) => this.#watch(call, next);

  async *#watch(
    call: HookedCall,
    next: () => AsyncIterable<ResponseEnvelope>,
  ): AsyncGenerator<ResponseEnvelope> {
    const observed = this.#begin(call);
    let values = 0;
    let failed: { readonly code: string } | undefined;
    const stream = observed.within(() => next()[Symbol.asyncIterator]());
    try {
      for (;;) {
        const step = await observed.within(() => stream.next());
        if (step.done === true) return;
        values += 1;
        yield step.value;
      }
    } catch (thrown) {
      failed = toCallError(thrown);
      throw failed;
    } finally {
      observed.end({
        outcome: failed === undefined ? "ok" : "call_error",
        ...(failed !== undefined && { code: failed.code }),
        values,
      });
      if (failed === undefined) await stream.return?.();
    }
  }

  #begin(call: HookedCall): { within<T>(run: () => T): T; end(ending: Ending): void } {
    const { context } = call;
    const startedAt = performance.now();
    const { requestId } = context;
    const { metrics, telemetry } = this.#options;
    const entry = this.#entryOf(call);
    const isFirst = entry !== undefined && !this.#entries.has(requestId);
    if (isFirst) this.#entries.set(requestId, entry);
    const span = telemetry?.open(call, this.#mask(call.operationId));
    this.#running += 1;
    metrics?.begin();
    return {
      within: (run) => (span === undefined ? run() : span.within(run)),
      end: (ending) => {
        this.#running -= 1;
        if (isFirst) this.#entries.delete(requestId);
        const record = this.#toRecord(call, ending, { entry, durationMs: performance.now() - startedAt });
        metrics?.end(record);
        span?.end(record);
        this.#tell(record);
      },
    };
  }

  #entryOf({ context: { metadata, parent } }: HookedCall): CallEntry | undefined {
    return entryOf(metadata) ?? (parent && this.#entries.get(parent.requestId));
  }

  #toRecord(
    { operationId, operation, context }: HookedCall,
    { attempts: tried, ...ending }: Ending,
    known: { readonly entry: CallEntry | undefined; readonly durationMs: number },
  ): CallRecord {
    const { notesOf = notesOfCall, sourceOf } = this.#options;
    const { attempts = tried, ...notes } = notesOf(context) ?? {};
    return {
      requestId: this.#mask(context.requestId),
      operation: this.#mask(operationId.slice(0, MOST_ID_CHARACTERS)),
      isKnown: operation !== undefined,
      ...(operation !== undefined && {
        source: sourceOf?.(operationId) ?? operation.namespace,
        type: operation.type,
      }),
      ...(context.identity !== undefined && { subject: this.#mask(context.identity.subject) }),
      ...(known.entry !== undefined && { entry: known.entry }),
      ...ending,
      ...(ending.code !== undefined && { code: this.#mask(ending.code) }),
      durationMs: Math.round(Math.max(known.durationMs, 0) * 1_000) / 1_000,
      ...(attempts !== undefined && attempts > 1 && { attempts }),
      ...notes,
      ...(context.parent !== undefined && { parent: this.#mask(context.parent.requestId) }),
    };
  }

  #mask(text: string): string {
    return this.#options.log?.mask?.(text) ?? text;
  }

  /** Whoever listens badly changes nothing about the call. */
  #tell(record: CallRecord): void {
    const { isKnown: _, ...fields } = record;
    this.#options.log?.info("call", { event: "call", ...fields });
    for (const listener of this.#listeners) {
      try {
        listener(record);
      } catch {
        // Its own affair.
      }
    }
  }
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
