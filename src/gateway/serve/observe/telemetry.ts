import { AsyncLocalStorage } from "node:async_hooks";
import type { Context, Counter, Histogram, Span, Tracer } from "@opentelemetry/api";
import type { CallObservation } from "../../../call/call-observer.ts";
import { isErrorCode } from "../../../core/errors/error-codes.ts";
import type { HookedCall } from "../../../core/execution/hooks.ts";
import type { Metadata } from "../../../core/operation/operation-context.ts";
import type { CallRecord } from "./call-record.ts";
import type { CallTelemetry } from "./call-telemetry.ts";
import { isRegistered, type LoadedSdk, type LoadSdk, loadSdk, wantsTelemetry } from "./telemetry-sdk.ts";

type Api = typeof import("@opentelemetry/api");

/** What telemetry is made from. */
export interface TelemetryOptions {
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Hears what is missing. @default nobody does */
  readonly onWarning?: ((message: string, cause?: unknown) => void) | undefined;
  /** Loads the SDK. @default `@opentelemetry/sdk-node`, where that is installed */
  readonly load?: LoadSdk | undefined;
}

/** The span of a call under way. */
export interface CallSpan {
  /** Runs something as a part of the call. */
  within<T>(run: () => T): T;
  end(record: CallRecord): void;
}

/** Not a text, so that it goes on to nobody. */
const SPAN = Symbol("waybill.span");
/** How long what is left to send may take, in milliseconds. */
const FLUSH_MS = 2_000;

/**
 * Starts telemetry where an exporter is configured in the environment, or where the process has registered a provider of its own; nothing
 * otherwise.
 */
export async function createTelemetry(options: TelemetryOptions = {}): Promise<Telemetry | undefined> {
  const { env = process.env, load = loadSdk, onWarning = () => {} } = options;
  if (isRegistered()) return new Telemetry(await import("@opentelemetry/api"));
  if (!wantsTelemetry(env)) return undefined;
  let loaded: LoadedSdk;
  try {
    loaded = await load(env);
  } catch (cause) {
    const install = "npm install @opentelemetry/api @opentelemetry/sdk-node";
    onWarning(
      `Telemetry is configured, but OpenTelemetry could not be loaded; to have it: ${install}`,
      cause,
    );
    return undefined;
  }
  return new Telemetry(loaded.api, loaded.shutdown);
}

/** Traces and metrics of calls, by OpenTelemetry; what goes in and comes out is in neither. */
export class Telemetry implements CallTelemetry {
  readonly #api: Api;
  readonly #shutdown: () => Promise<void>;
  readonly #tracer: Tracer;
  readonly #calls: Counter;
  readonly #durations: Histogram;
  readonly #busCalls: Counter;
  readonly #busDurations: Histogram;
  readonly #busBytes: Counter;
  /** What the request that is being answered says about the trace it belongs to. */
  readonly #remote = new AsyncLocalStorage<Metadata>();

  constructor(api: Api, shutdown: () => Promise<void> = async () => {}) {
    this.#api = api;
    this.#shutdown = shutdown;
    this.#tracer = api.trace.getTracer("waybill");
    const meter = api.metrics.getMeter("waybill");
    this.#calls = meter.createCounter("waybill.calls", { description: "Calls that have ended." });
    this.#durations = meter.createHistogram("waybill.call.duration", {
      unit: "s",
      description: "How long calls took, waiting included.",
    });
    this.#busCalls = meter.createCounter("waybill.bus.calls", {
      description: "Calls on the bus that have ended.",
    });
    this.#busDurations = meter.createHistogram("waybill.bus.call.duration", {
      unit: "s",
      description: "How long calls on the bus took.",
    });
    this.#busBytes = meter.createCounter("waybill.bus.bytes", {
      unit: "By",
      description: "Bytes of requests and answers on the bus.",
    });
  }

  /** Answers a request of the HTTP API, whose headers say what trace it belongs to: metadata of its calls names a span of nobody's. */
  answering<T>(headers: Readonly<Record<string, unknown>>, run: () => T): T {
    const { traceparent, tracestate } = headers;
    return this.#remote.run(
      {
        ...(typeof traceparent === "string" && { traceparent }),
        ...(typeof tracestate === "string" && { tracestate }),
      },
      run,
    );
  }

  /** Begins the span of a call that comes in; the metadata that comes back holds it, and says so to whoever it is sent on to. */
  begin(metadata: Metadata): Metadata {
    const { SpanKind, propagation, trace, ROOT_CONTEXT } = this.#api;
    const parent = propagation.extract(ROOT_CONTEXT, this.#remote.getStore() ?? metadata);
    const span = this.#tracer.startSpan("call", { kind: SpanKind.SERVER }, parent);
    const carrier: Record<string, unknown> = { ...metadata };
    if (trace.isSpanContextValid(span.spanContext())) {
      delete carrier["tracestate"];
      propagation.inject(trace.setSpan(parent, span), carrier);
    }
    return { ...carrier, [SPAN]: span };
  }

  /** Opens the span of a call: that which began when it came in, or one of its own within the call that made it. */
  open(call: HookedCall, name: string = call.operationId): CallSpan {
    const { context, trace } = this.#api;
    const begun = call.context.parent === undefined ? spanOf(call.context.metadata) : undefined;
    const span = begun ?? this.#nested(call);
    span.updateName(call.operation === undefined ? "call" : name);
    const active = trace.setSpan(context.active(), span);
    return {
      within: (run) => context.with(active, run),
      end: (record) => this.#end(span, active, record),
    };
  }

  /** Counts and measures a step of a call on the bus; calls have their spans where they run. */
  busCall(call: CallObservation): void {
    const { end, sentBytes, receivedBytes } = call;
    const ofEnd = { "waybill.bus.end": end };
    if (sentBytes !== undefined) this.#busBytes.add(sentBytes, { ...ofEnd, "waybill.bus.direction": "sent" });
    if (receivedBytes !== undefined)
      this.#busBytes.add(receivedBytes, { ...ofEnd, "waybill.bus.direction": "received" });
    if (call.outcome === undefined) return;
    const { outcome, code, durationMs } = call;
    const labels = {
      ...ofEnd,
      "waybill.outcome": outcome,
      ...(code !== undefined && { "error.type": isErrorCode(code) ? code : "other" }),
    };
    this.#busCalls.add(1, labels);
    this.#busDurations.record(durationMs / 1_000, labels);
  }

  /** Sends what is left, for two seconds at most. */
  async close(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, FLUSH_MS);
    });
    await Promise.race([this.#shutdown().catch(() => {}), late]);
    clearTimeout(timer);
  }

  #nested({ context: { metadata } }: HookedCall): Span {
    const { SpanKind, context, trace } = this.#api;
    const active = context.active();
    if (trace.getSpan(active) !== undefined) {
      return this.#tracer.startSpan("call", { kind: SpanKind.INTERNAL }, active);
    }
    const outer = spanOf(metadata);
    const parent: Context = outer === undefined ? active : trace.setSpan(active, outer);
    return this.#tracer.startSpan("call", { kind: SpanKind.INTERNAL }, parent);
  }

  #end(span: Span, active: Context, record: CallRecord): void {
    const { operation, isKnown, source, outcome, durationMs, entry, attempts, values } = record;
    // Tools make up codes of their own, without end.
    const code = record.code === undefined || isErrorCode(record.code) ? record.code : "other";
    const labels = {
      "waybill.operation": isKnown ? operation : "other",
      "waybill.source": source ?? "other",
      "waybill.outcome": outcome,
      ...(code !== undefined && { "error.type": code }),
    };
    span.setAttributes({
      ...labels,
      "waybill.request_id": record.requestId,
      ...(entry !== undefined && { "waybill.entry": entry }),
      ...(attempts !== undefined && { "waybill.attempts": attempts }),
      ...(values !== undefined && { "waybill.values": values }),
      ...(record.cached === true && { "waybill.cached": true }),
    });
    if (outcome === "call_error")
      span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message: code ?? "" });
    span.end();
    this.#calls.add(1, labels, active);
    this.#durations.record(durationMs / 1_000, labels, active);
  }
}

function spanOf(metadata: Metadata): Span | undefined {
  return (metadata as { readonly [SPAN]?: Span })[SPAN];
}
