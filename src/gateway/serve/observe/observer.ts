import type { CallObservation } from "../../../call/call-observer.ts";
import type { Identity } from "../../../core/access/identity.ts";
import { isErrorEnvelope, type ResponseEnvelope } from "../../../core/envelope/envelope.ts";
import { type CallError, toCallError } from "../../../core/errors/errors.ts";
import type { CallHook, HookedCall, Hooks, SubscribeHook } from "../../../core/execution/dispatch.ts";
import type { Metadata, OperationContext } from "../../../core/operation/operation-context.ts";
import type { AnyOperation, OperationType } from "../../../core/operation/operation-types.ts";
import type {
  ChangeListener,
  ExecuteOptions,
  Executor,
  ListOptions,
} from "../../../core/registry/executor.ts";
import { takesLightSignals, VIEWS_REGISTRY } from "../../../core/registry/registry.ts";
import type { ReplayedCall } from "../../../openapi/server/http-handler-options.ts";
import { forCallers } from "../../missing-operation.ts";
import { type CallNotes, callNotesOf as notesOfCall, shownNotes, takeNote } from "../../policy/call-notes.ts";
import { recognisedBy } from "../gateway-auth.ts";
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
  /** Hears each value of a subscription, before its reader does. */
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
  readonly #sources = new WeakMap<AnyOperation, string>();
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
    // An object of its own, so that a listener added twice hears twice and leaves once.
    const added = { listener };
    this.#listeners.add(added);
    return () => void this.#listeners.delete(added);
  }

  readonly execute: CallHook = async (call, next) => {
    const observed = this.#begin(call);
    try {
      const envelope = await observed.within(next);
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
        // Listeners may keep the record that they were given when the call began.
        const head = known === undefined ? this.#headOf(call, entry) : { ...known };
        const record = this.#toRecord(call, ending, { head, durationMs });
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
    const head: Writable<CallHead> = {
      requestId: this.#mask(context.requestId),
      operation: this.#mask(operationId.slice(0, MOST_ID_CHARACTERS)),
      isKnown: operation !== undefined,
    };
    if (operation !== undefined) {
      head.source = this.#sourceOf(operation);
      head.type = operation.type;
    }
    if (context.identity !== undefined) this.#tellOf(context.identity, head);
    if (entry !== undefined) head.entry = entry;
    return head;
  }

  /** Two callers of one name are told apart by who issued what they showed. */
  #tellOf(identity: Identity, head: Writable<CallHead>): void {
    head.subject = this.#mask(identity.subject);
    const recognised = recognisedBy(identity);
    if (recognised !== undefined) head.recognised = recognised;
    const issuer = identity.claims?.["iss"];
    if (typeof issuer === "string") head.issuer = this.#mask(issuer.slice(0, MOST_ID_CHARACTERS));
  }

  /** Kept, as every call asks: what another source offers is another operation. */
  #sourceOf(operation: AnyOperation): string {
    const known = this.#sources.get(operation);
    if (known !== undefined) return known;
    const source = this.#options.sourceOf?.(operation.id);
    if (source !== undefined) this.#sources.set(operation, source);
    return source ?? operation.namespace;
  }

  /** Makes the head the record of the whole call. */
  #toRecord(
    { context }: HookedCall,
    { attempts: tried, outcome, code, values }: Ending,
    { head, durationMs }: { readonly head: CallHead; readonly durationMs: number },
  ): CallRecord {
    const { notesOf = notesOfCall } = this.#options;
    const notes = notesOf(context);
    const attempts = notes?.attempts ?? tried;
    const parent = context.parent?.requestId;
    const record = head as Writable<CallRecord>;
    record.outcome = outcome;
    if (values !== undefined) record.values = values;
    if (code !== undefined) record.code = this.#mask(code);
    record.durationMs = Math.round(Math.max(durationMs, 0) * 1_000) / 1_000;
    if (attempts !== undefined && attempts > 1) record.attempts = attempts;
    if (notes !== undefined)
      addNotes(
        record,
        shownNotes(notes, (text) => this.#mask(text)),
      );
    if (parent !== undefined) record.parent = this.#mask(parent);
    return record;
  }

  #mask(text: string): string {
    return this.#options.log?.mask?.(text) ?? text;
  }

  #log(record: CallRecord): void {
    const { log } = this.#options;
    if (log === undefined) return;
    // Where something stood in a result is for the audit, and not for everybody who reads logs.
    log.info("call", { event: "call", ...record, isKnown: undefined, marked: undefined });
  }

  /** A listener that throws changes nothing about the call. */
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

function addNotes(record: object, { attempts: _, ...notes }: CallNotes): void {
  Object.assign(record, notes);
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

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

/** Not a text, so that it goes on to nobody: what is sent on is JSON. */
const ENTRY = Symbol("waybill.entry");

/** What servers of a gateway run operations on. */
export type ServedGateway = Executor & { readonly operations: Iterable<AnyOperation> };

/** Says where a call came in; nothing where nobody said. */
function entryOf(metadata: Metadata): CallEntry | undefined {
  return (metadata as { readonly [ENTRY]?: CallEntry })[ENTRY];
}

/** Says in the metadata of a call where it came in; where there is telemetry, its span begins. */
export function markEntry(metadata: Metadata, entry: CallEntry, telemetry?: CallTelemetry): Metadata {
  // In front, because adding a key to a spread copy is ten times slower.
  return { [ENTRY]: entry, ...(telemetry?.begin(metadata) ?? metadata) };
}

/** The same executor for those who call from elsewhere: their calls are known to have come in here, and errors are in words for them; where there is telemetry, each begins a span. */
export function withEntry(
  executor: ServedGateway,
  entry: CallEntry,
  telemetry?: CallTelemetry,
): ServedGateway {
  return new EntryView(executor, entry, telemetry);
}

interface Calling {
  execute(target: unknown, input: unknown, options: ExecuteOptions): Promise<ResponseEnvelope>;
  subscribe(target: unknown, input: unknown, options: ExecuteOptions): AsyncIterable<ResponseEnvelope>;
}

class EntryView implements ServedGateway {
  readonly #executor: ServedGateway;
  readonly #entry: CallEntry;
  readonly #telemetry: CallTelemetry | undefined;

  constructor(executor: ServedGateway, entry: CallEntry, telemetry: CallTelemetry | undefined) {
    this.#executor = executor;
    this.#entry = entry;
    this.#telemetry = telemetry;
  }

  get operations(): Iterable<AnyOperation> {
    return this.#executor.operations;
  }

  get [VIEWS_REGISTRY](): boolean {
    return takesLightSignals(this.#executor);
  }

  readonly execute = ((target: unknown, input: unknown, options?: ExecuteOptions) => {
    const executor = this.#executor as unknown as Calling;
    return executor.execute(target, input, this.#marked(options)).catch(refuse);
  }) as Executor["execute"];

  readonly subscribe = ((target: unknown, input: unknown, options?: ExecuteOptions) => {
    const executor = this.#executor as unknown as Calling;
    return refusing(executor.subscribe(target, input, this.#marked(options)));
  }) as Executor["subscribe"];

  list(options?: ListOptions): readonly AnyOperation[] {
    return this.#executor.list(options);
  }

  get(id: string): AnyOperation | undefined {
    return this.#executor.get(id);
  }

  onChange(listener: ChangeListener): () => void {
    return this.#executor.onChange(listener);
  }

  #marked(options: ExecuteOptions | undefined): ExecuteOptions {
    const metadata = markEntry(options?.metadata ?? {}, this.#entry, this.#telemetry);
    return { ...options, metadata };
  }
}

function refuse(thrown: unknown): never {
  throw forCallers(thrown);
}

async function* refusing(
  stream: AsyncIterable<ResponseEnvelope>,
): AsyncGenerator<ResponseEnvelope, void, undefined> {
  try {
    yield* stream;
  } catch (thrown) {
    throw forCallers(thrown);
  }
}

/** Where a call came in. */
export type CallEntry = "mcp" | "http" | "bus" | "stdio" | "cli" | "inspect";

/** How a call ended: it gave a result, ran and reported an error, or never ran or broke. */
export type CallOutcome = "ok" | "tool_error" | "call_error";

/** What is known of a call when it begins. */
export interface CallHead {
  readonly requestId: string;
  /** As the caller asked for it, at most 200 characters of it. */
  readonly operation: string;
  /** Whether there is such an operation; a name that anybody made up is nothing to count by. */
  readonly isKnown: boolean;
  /** The name of the source it comes from. */
  readonly source?: string;
  readonly type?: OperationType;
  /** Nothing for an anonymous caller. */
  readonly subject?: string;
  /** How the caller was recognised: by a token of the config, or by one that an authorization server signed. */
  readonly recognised?: "token" | "jwt";
  /** Who issued the signed token. */
  readonly issuer?: string;
  readonly entry?: CallEntry;
}

/** What is told about one call that has ended; never what went in or came out. */
export interface CallRecord extends CallHead, CallNotes {
  readonly outcome: CallOutcome;
  /** Of an error. */
  readonly code?: string;
  readonly durationMs: number;
  /** The call whose handler made this one. */
  readonly parent?: string;
  /** Values that a subscription gave. */
  readonly values?: number;
}

/** What begins the spans of calls that come in. */
export interface CallTelemetry {
  /** Answers a request of the HTTP API, whose headers say what trace it belongs to. */
  answering<T>(headers: Readonly<Record<string, unknown>>, run: () => T): T;
  /** Begins the span of a call that comes in; the metadata that comes back holds it, and names it to the server that the call is sent on to. */
  begin(metadata: Metadata): Metadata;
}

/** What is told about one read of a resource or a kept result, or one prompt that was filled in; never what it holds. */
export interface ReadRecord {
  readonly event: "resource" | "prompt" | "result";
  /** For a result that of its operation; empty where that is not known. */
  readonly source: string;
  /** The address of the resource or result, or the name of the prompt, as the source calls it; at most 200 characters of it. */
  readonly name: string;
  /** Nothing for an anonymous caller. */
  readonly subject?: string;
  readonly outcome: "ok" | "call_error";
  readonly code?: string;
  readonly durationMs: number;
}
