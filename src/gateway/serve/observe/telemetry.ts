import { AsyncLocalStorage } from "node:async_hooks";
import type { Context, Counter, Histogram, Span, Tracer } from "@opentelemetry/api";
import type { CallObservation } from "../../../call/call-observer.ts";
import { isErrorCode } from "../../../core/errors/error-codes.ts";
import type { HookedCall } from "../../../core/execution/dispatch.ts";
import type { Metadata } from "../../../core/operation/operation-context.ts";
import type { CallEntry, CallRecord, CallTelemetry } from "./observer.ts";

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
  /** By the conventions for MCP and RPC; the latter are milliseconds. */
  readonly #conventional: Readonly<Record<Way, Histogram>>;
  /** Spans of calls that came in and run by now. */
  readonly #opened = new WeakSet<Span>();
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
    const durationOf = (name: string, unit: string) => meter.createHistogram(name, { unit });
    this.#conventional = {
      "mcp server": durationOf("mcp.server.operation.duration", "s"),
      "mcp client": durationOf("mcp.client.operation.duration", "s"),
      "rpc server": durationOf("rpc.server.duration", "ms"),
      "rpc client": durationOf("rpc.client.duration", "ms"),
    };
  }

  /** Gives the metadata of a call that goes to another process, which names the span that is active. */
  readonly propagate = (metadata: Metadata): Metadata => {
    const { context, propagation, trace } = this.#api;
    const active = context.active();
    if (trace.getSpan(active) === undefined) return metadata;
    const carrier: Record<string, unknown> = { ...metadata };
    delete carrier["tracestate"];
    propagation.inject(active, carrier);
    return carrier;
  };

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

  /** Begins the span of a call that comes in; the metadata that comes back holds it, and names it to the server that the call is sent on to. */
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
    const begun = spanOf(call.context.metadata);
    // Calls that it makes have its metadata; one that came over the bus may have a parent in another process.
    const isFirst = begun !== undefined && !this.#opened.has(begun);
    if (isFirst) this.#opened.add(begun);
    const span = isFirst ? begun : this.#nested(call);
    span.updateName(call.operation === undefined ? "call" : name);
    const active = trace.setSpan(context.active(), span);
    const onward = this.#onward(call, active);
    const inner = onward === undefined ? active : trace.setSpan(active, onward.span);
    return {
      within: (run) => context.with(inner, run),
      end: (record) => {
        if (onward !== undefined) this.#endOnward(onward, inner, record);
        this.#end({ span, active, isFirst }, record);
      },
    };
  }

  /** Opens the span of what goes on to an MCP server or over the bus, whose own span is within it. */
  #onward({ operation, refusal }: HookedCall, active: Context): Onward | undefined {
    if (operation === undefined || refusal !== undefined) return undefined;
    const { source } = operation;
    if (source !== "mcp" && source !== "call") return undefined;
    const kind = this.#api.SpanKind.CLIENT;
    // Named when it ends, with secrets masked.
    const span = this.#tracer.startSpan("call", { kind }, active);
    return { way: source === "mcp" ? "mcp client" : "rpc client", span };
  }

  #endOnward({ way, span }: Onward, within: Context, record: CallRecord): void {
    const labels = conventionalLabels(way, record);
    span.updateName(spanNameOf(way, labels));
    span.setAttributes(labels);
    if (record.outcome !== "ok") span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
    span.end();
    this.#conventional[way].record(durationIn(way, record), labels, within);
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

  #end({ span, active, isFirst }: OpenSpan, record: CallRecord): void {
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
    const way = entry && WAYS_IN[entry];
    if (way !== undefined && isFirst) {
      const conventional = conventionalLabels(way, record);
      span.setAttributes(conventional);
      this.#conventional[way].record(durationIn(way, record), conventional, active);
    }
    if (outcome === "call_error")
      span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message: code ?? "" });
    span.end();
    this.#calls.add(1, labels, active);
    this.#durations.record(durationMs / 1_000, labels, active);
  }
}

/** Which convention is about a call, and at which end of it this process is. */
type Way = "mcp server" | "mcp client" | "rpc server" | "rpc client";

type Labels = Readonly<Record<string, string>>;

/** The span of a call, and where it is the active one. */
interface OpenSpan {
  readonly span: Span;
  readonly active: Context;
  /** Whether it is of the call that came in. */
  readonly isFirst: boolean;
}

/** In the unit that conventions want: milliseconds for RPC, seconds for MCP. */
function durationIn(way: Way, { durationMs }: CallRecord): number {
  return way === "rpc client" || way === "rpc server" ? durationMs : durationMs / 1_000;
}

/** A call that goes on to another process. */
interface Onward {
  readonly way: Way;
  readonly span: Span;
}

/** Conventions about calls by where they came in. */
const WAYS_IN: Partial<Record<CallEntry, Way>> = {
  mcp: "mcp server",
  stdio: "mcp server",
  bus: "rpc server",
};

/** What the conventions of OpenTelemetry for MCP, and those for RPC of version 1.37, say of a call; names that callers make up are left out. */
function conventionalLabels(way: Way, { operation, isKnown, outcome, code }: CallRecord): Labels {
  const dot = operation.indexOf(".");
  const said = code !== undefined && isErrorCode(code) ? code : outcome;
  const error = outcome === "ok" ? {} : { "error.type": said };
  if (way === "rpc client" || way === "rpc server") {
    const place = { "rpc.service": operation.slice(0, dot), "rpc.method": operation.slice(dot + 1) };
    return { "rpc.system": "waybill", ...(isKnown && place), ...error };
  }
  const tool = way === "mcp client" ? operation.slice(dot + 1) : operation;
  return {
    "mcp.method.name": "tools/call",
    "gen_ai.operation.name": "execute_tool",
    ...(isKnown && { "gen_ai.tool.name": tool }),
    ...error,
  };
}

/** As the conventions name spans: the method and what it is about. */
function spanNameOf(way: Way, labels: Labels): string {
  return way === "mcp client"
    ? `tools/call ${labels["gen_ai.tool.name"] ?? ""}`.trim()
    : `${labels["rpc.service"] ?? ""}/${labels["rpc.method"] ?? ""}`;
}

function spanOf(metadata: Metadata): Span | undefined {
  return (metadata as { readonly [SPAN]?: Span })[SPAN];
}

/** What was loaded: the API, and how to end the SDK once what is left has been sent. */
export interface LoadedSdk {
  readonly api: typeof import("@opentelemetry/api");
  shutdown(): Promise<void>;
}

/** Loads and starts an SDK. */
export type LoadSdk = (env: NodeJS.ProcessEnv) => Promise<LoadedSdk>;

const ENDPOINT = /^OTEL_EXPORTER_OTLP_(?:(?:TRACES|METRICS)_)?ENDPOINT$/;

/** Tells whether an exporter is configured, by the variables that OpenTelemetry reads. */
export function wantsTelemetry(env: NodeJS.ProcessEnv): boolean {
  if (/^true$/i.test(env["OTEL_SDK_DISABLED"] ?? "")) return false;
  return wantsTraces(env) || wantsMetrics(env);
}

function wantsTraces(env: NodeJS.ProcessEnv): boolean {
  return wants(env, "TRACES");
}

function wantsMetrics(env: NodeJS.ProcessEnv): boolean {
  return wants(env, "METRICS");
}

function wants(env: NodeJS.ProcessEnv, what: "TRACES" | "METRICS"): boolean {
  const exporter = env[`OTEL_${what}_EXPORTER`]?.trim() ?? "";
  if (exporter !== "") return !/\bnone\b/.test(exporter);
  return Object.keys(env).some(
    (name) =>
      ENDPOINT.test(name) &&
      (env[name] ?? "") !== "" &&
      !name.includes(what === "TRACES" ? "METRICS" : "TRACES"),
  );
}

/** Where the API keeps what is registered with it; looked at without loading it. */
const GLOBAL = Symbol.for("opentelemetry.js.api.1");

/** Tells whether this process has registered a provider of traces or metrics, by `--import` for instance. */
function isRegistered(): boolean {
  const registered = (globalThis as Record<symbol, unknown>)[GLOBAL];
  if (typeof registered !== "object" || registered === null) return false;
  return "trace" in registered || "metrics" in registered;
}

/**
 * Loads `@opentelemetry/sdk-node` and starts it as the environment says, without instrumentations. What it says of the process leaves out the
 * command line, which may hold secrets.
 */
const loadSdk: LoadSdk = async (env) => {
  const api = await import("@opentelemetry/api");
  const { NodeSDK, resources } = await import("@opentelemetry/sdk-node");
  const sdk = new NodeSDK({
    serviceName: env["OTEL_SERVICE_NAME"] || "waybill",
    instrumentations: [],
    resourceDetectors: [resources.envDetector, resources.hostDetector],
    logRecordProcessors: [],
    ...(!wantsTraces(env) && { spanProcessors: [] }),
    ...(!wantsMetrics(env) && { metricReaders: [] }),
  });
  sdk.start();
  return { api, shutdown: () => sdk.shutdown() };
};
