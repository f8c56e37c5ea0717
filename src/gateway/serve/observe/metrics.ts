import { hostname } from "node:os";
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { CallCounters, CallObservation } from "../../../call/call-observer.ts";
import { isErrorCode } from "../../../core/errors/error-codes.ts";
import { PACKAGE_VERSION } from "../../../core/package-version.ts";
import type { AuditStatus } from "../../audit/audit-trail.ts";
import type { BusReport, SourceReport } from "../../sources/source.ts";
import type { StateReport } from "../../state/gateway-state.ts";
import type { CallRecord } from "./observer.ts";

/** What metrics are read from besides calls. */
export interface MetricsOptions {
  /** The sources there are, asked at every look. @default none */
  readonly sources?:
    | (() => readonly Pick<SourceReport, "name" | "kind" | "state" | "operations" | "bus">[])
    | undefined;
  /** How the audit file is doing, asked at every look. @default there is none */
  readonly audit?: (() => AuditStatus | undefined) | undefined;
  /** What a bus that the gateway is served on has dropped or refused, asked likewise. @default there is none */
  readonly served?: (() => CallCounters | undefined) | undefined;
  /** How the state is doing that replicas share, asked at every look. @default there is none */
  readonly state?: (() => StateReport | undefined) | undefined;
  /** How many replicas there are, asked likewise. @default it is not known */
  readonly replicas?: (() => number | undefined) | undefined;
  /** Series of calls; further ones are counted under the operation and source `other`. @default 10_000 */
  readonly series?: number | undefined;
}

/** Bounds of the buckets, in seconds. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Sources that durations are told apart by. */
const MOST_SOURCES = 1_000;
const OTHER = "other";
const NANOSECONDS = 1e9;

interface Counted {
  readonly labels: Readonly<Record<string, string>>;
  value: number;
}

interface Durations {
  readonly labels: Readonly<Record<string, string>>;
  readonly buckets: number[];
  sum: number;
  count: number;
}

interface LastCall extends Pick<CallRecord, "outcome"> {
  readonly source: string | undefined;
  readonly code: string;
  readonly calls: Counted;
  readonly durations: Durations;
}

/** Counts calls and looks at sources and the process, for Prometheus. */
export class Metrics {
  readonly #options: MetricsOptions;
  readonly #calls = new Map<string, Counted>();
  readonly #durations = new Map<string, Durations>();
  readonly #sources = new Set<string>();
  /** What the last call of each operation was counted in: nearly all calls of one end alike. No more than there are series. */
  readonly #last = new Map<string, LastCall>();
  readonly #bus = new BusCounts();
  readonly #lag: IntervalHistogram = monitorEventLoopDelay({ resolution: 20 });
  #running = 0;
  #cacheHits = 0;

  constructor(options: MetricsOptions = {}) {
    this.#options = options;
    this.#lag.enable();
  }

  /** A call has begun. */
  begin(): void {
    this.#running += 1;
  }

  /** A call has ended. */
  end(record: CallRecord): void {
    this.#running -= 1;
    if (record.cached === true) this.#cacheHits += 1;
    this.#count(record);
  }

  /** A step of a call on the bus. */
  busCall(call: CallObservation): void {
    this.#bus.take(call);
  }

  /** All of it in the text format of Prometheus, version 0.0.4. */
  text(): string {
    return [
      writeMetric(
        { name: "waybill_calls_total", type: "counter", help: "Calls that have ended." },
        this.#calls.values(),
      ),
      writeMetric(
        {
          name: "waybill_call_duration_seconds",
          type: "histogram",
          help: "How long calls took, waiting included.",
        },
        samplesOf(this.#durations.values()),
      ),
      writeMetric({ name: "waybill_calls_in_flight", type: "gauge", help: "Calls that run now." }, [
        { value: this.#running },
      ]),
      writeMetric(
        { name: "waybill_cache_hits_total", type: "counter", help: "Calls answered from the cache." },
        [{ value: this.#cacheHits }],
      ),
      ...this.#bus.metrics(),
      ...this.#auditMetrics(),
      ...this.#busHealth(),
      ...this.#sourceMetrics(),
      ...this.#stateMetrics(),
      ...this.#processMetrics(),
    ].join("");
  }

  /** Stops looking at the event loop. */
  close(): void {
    this.#lag.disable();
  }

  #count(record: CallRecord): void {
    const { operation, source, isKnown, outcome, code: said = "", durationMs } = record;
    const code = countedCode(said);
    const last = isKnown ? this.#last.get(operation) : undefined;
    if (last !== undefined && last.source === source && last.outcome === outcome && last.code === code) {
      last.calls.value += 1;
      addDuration(last.durations, durationMs);
      return;
    }
    const { series = 10_000 } = this.#options;
    const own = { operation, source: source ?? "", outcome, code };
    const isCounted = isKnown && (this.#calls.has(keyOf(own)) || this.#calls.size < series);
    const calls = counterOf(
      this.#calls,
      isCounted ? own : { operation: OTHER, source: OTHER, outcome, code },
    );
    const durations = durationsOf(this.#durations, { source: this.#sourceLabel(source ?? OTHER), outcome });
    calls.value += 1;
    addDuration(durations, durationMs);
    if (isCounted) this.#last.set(operation, { source, outcome, code, calls, durations });
  }

  #sourceLabel(source: string): string {
    if (this.#sources.has(source)) return source;
    if (this.#sources.size >= MOST_SOURCES) return OTHER;
    this.#sources.add(source);
    return source;
  }

  /** Nothing without a bus. */
  #busHealth(): readonly string[] {
    const { sources, served } = this.#options;
    const mounted = (sources?.() ?? []).flatMap(({ name, bus }) =>
      bus === undefined ? [] : [{ name, bus }],
    );
    const counters = [
      ...mounted.map(({ bus }) => ["caller", bus.counters] as const),
      ...[served?.() ?? []].flat().map((counted) => ["handler", counted] as const),
    ];
    if (counters.length === 0) return [];
    const events = counters.flatMap(([end, counted]) =>
      Object.entries(counted).map(([event, value]) => ({ labels: { end, event }, value })),
    );
    const samples = (read: (bus: BusReport) => number) =>
      mounted.map(({ name, bus }) => ({ labels: { source: name }, value: read(bus) }));
    return [
      writeMetric(
        {
          name: "waybill_bus_events_total",
          type: "counter",
          help: "What was dropped, refused, retried or left out.",
        },
        events,
      ),
      writeMetric(
        {
          name: "waybill_bus_members_left_out",
          type: "gauge",
          help: "Members that get no calls since they failed.",
        },
        samples(({ membersLeftOut }) => membersLeftOut),
      ),
      writeMetric(
        {
          name: "waybill_bus_circuits_open",
          type: "gauge",
          help: "Operations whose calls are refused since they failed.",
        },
        samples(({ openCircuits }) => openCircuits),
      ),
    ];
  }

  #sourceMetrics(): readonly string[] {
    const sources = this.#options.sources?.() ?? [];
    const samples = (read: (source: (typeof sources)[number]) => number): Sample[] =>
      sources.map((source) => ({
        labels: { source: source.name, kind: source.kind },
        value: read(source),
      }));
    return [
      writeMetric(
        { name: "waybill_source_up", type: "gauge", help: "Whether a source is up." },
        samples(({ state }) => (state.status === "up" ? 1 : 0)),
      ),
      writeMetric(
        { name: "waybill_source_operations", type: "gauge", help: "Operations of a source." },
        samples(({ operations }) => operations),
      ),
    ];
  }

  #auditMetrics(): readonly string[] {
    const status = this.#options.audit?.();
    if (status === undefined) return [];
    const { head, dropped, isFailing } = status;
    const labels = { seq: String(head.seq), head: head.hash };
    return [
      writeMetric(
        { name: "waybill_audit_head_info", type: "gauge", help: "The audit record that was told last." },
        [{ labels, value: 1 }],
      ),
      writeMetric(
        { name: "waybill_audit_dropped_total", type: "counter", help: "Audit records that were dropped." },
        [{ value: dropped }],
      ),
      writeMetric(
        { name: "waybill_audit_failing", type: "gauge", help: "Whether audit records cannot be written." },
        [{ value: isFailing ? 1 : 0 }],
      ),
    ];
  }

  /** Nothing where state is kept in this process alone. */
  #stateMetrics(): readonly string[] {
    const report = this.#options.state?.();
    if (report === undefined || report.store === "memory") return [];
    const { store, status, replica, lost, counts } = report;
    const up = { labels: { store, replica }, value: status === "up" ? 1 : 0 };
    const events = Object.entries(counts).map(([event, value]) => ({ labels: { event }, value }));
    const replicas = this.#options.replicas?.();
    const named = { replica, host: hostname(), version: PACKAGE_VERSION };
    return [
      writeMetric({ name: "waybill_replica_info", type: "gauge", help: "Names this replica." }, [
        { labels: named, value: 1 },
      ]),
      ...(replicas === undefined
        ? []
        : [
            writeMetric({ name: "waybill_replicas", type: "gauge", help: "Replicas that share the state." }, [
              { value: replicas },
            ]),
          ]),
      writeMetric({ name: "waybill_state_up", type: "gauge", help: "Whether the state can be reached." }, [
        up,
      ]),
      writeMetric(
        {
          name: "waybill_state_lost_info",
          type: "gauge",
          help: "What becomes of each thing that replicas share while the state cannot be reached.",
        },
        Object.entries(lost).map(([setting, choice]) => ({ labels: { setting, lost: choice }, value: 1 })),
      ),
      writeMetric(
        { name: "waybill_state_events_total", type: "counter", help: "What went wrong with the state." },
        events,
      ),
    ];
  }

  #processMetrics(): readonly string[] {
    const { rss, heapUsed } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    const gauge = (name: string, help: string, value: number): string =>
      writeMetric({ name, type: "gauge", help }, [{ value }]);
    const lag = { mean: this.#lag.mean / NANOSECONDS, max: this.#lag.max / NANOSECONDS };
    this.#lag.reset();
    return [
      gauge("process_resident_memory_bytes", "Memory of the process.", rss),
      gauge("nodejs_heap_size_used_bytes", "Memory that objects take.", heapUsed),
      gauge("process_uptime_seconds", "How long the process runs.", process.uptime()),
      writeMetric({ name: "process_cpu_seconds_total", type: "counter", help: "Time on the processor." }, [
        { value: (user + system) / 1e6 },
      ]),
      gauge("nodejs_eventloop_lag_mean_seconds", "Delay of timers since the last look.", lag.mean || 0),
      gauge("nodejs_eventloop_lag_max_seconds", "The longest of those delays.", lag.max || 0),
    ];
  }
}

/** What is counted of calls on the bus, by the end of the gateway: few series, whatever is called. */
class BusCounts {
  readonly #calls = new Map<string, Counted>();
  readonly #durations = new Map<string, Durations>();
  readonly #running = new Map<string, Counted>();
  readonly #values = new Map<string, Counted>();
  readonly #bytes = new Map<string, Counted>();

  take(call: CallObservation): void {
    const { end, type, sentBytes, receivedBytes } = call;
    if (sentBytes !== undefined) addTo(this.#bytes, { end, direction: "sent" }, sentBytes);
    if (receivedBytes !== undefined) addTo(this.#bytes, { end, direction: "received" }, receivedBytes);
    if (type === "requested") addTo(this.#running, { end }, 1);
    else if (call.outcome === undefined) addTo(this.#values, { end }, 1);
    else this.#end(call);
  }

  /** Nothing before the first call: most gateways have no bus. */
  metrics(): readonly string[] {
    if (this.#running.size === 0) return [];
    const durations = samplesOf(this.#durations.values());
    return [
      writeMetric(
        { name: "waybill_bus_calls_total", type: "counter", help: "Bus calls that have ended." },
        this.#calls.values(),
      ),
      writeMetric(
        { name: "waybill_bus_call_duration_seconds", type: "histogram", help: "How long bus calls took." },
        durations,
      ),
      writeMetric(
        { name: "waybill_bus_calls_in_flight", type: "gauge", help: "Bus calls that run now." },
        this.#running.values(),
      ),
      writeMetric(
        { name: "waybill_bus_values_total", type: "counter", help: "Values of subscriptions." },
        this.#values.values(),
      ),
      writeMetric(
        { name: "waybill_bus_bytes_total", type: "counter", help: "Requests and answers." },
        this.#bytes.values(),
      ),
    ];
  }

  #end(call: Extract<CallObservation, { readonly outcome: string }>): void {
    const { end, outcome, code = "", durationMs } = call;
    addTo(this.#running, { end }, -1);
    addTo(this.#calls, { end, outcome, code: countedCode(code) }, 1);
    addDuration(durationsOf(this.#durations, { end, outcome }), durationMs);
  }
}

/** Tools make up codes of their own. */
function countedCode(code: string): string {
  return code === "" || isErrorCode(code) ? code : OTHER;
}

function addTo(counts: Map<string, Counted>, labels: Counted["labels"], amount: number): void {
  counterOf(counts, labels).value += amount;
}

function counterOf(counts: Map<string, Counted>, labels: Counted["labels"]): Counted {
  const key = keyOf(labels);
  const found = counts.get(key) ?? { labels, value: 0 };
  counts.set(key, found);
  return found;
}

function durationsOf(all: Map<string, Durations>, labels: Durations["labels"]): Durations {
  const key = keyOf(labels);
  const found = all.get(key) ?? { labels, buckets: BUCKETS.map(() => 0), sum: 0, count: 0 };
  all.set(key, found);
  return found;
}

function addDuration(durations: Durations, durationMs: number): void {
  const seconds = durationMs / 1_000;
  durations.sum += seconds;
  durations.count += 1;
  const at = BUCKETS.findIndex((bound) => seconds <= bound);
  if (at !== -1) durations.buckets[at] = (durations.buckets[at] as number) + 1;
}

function* samplesOf(all: Iterable<Durations>): Generator<Sample> {
  for (const { labels, buckets, sum, count } of all) {
    let below = 0;
    for (const [i, bound] of BUCKETS.entries()) {
      below += buckets[i] as number;
      yield { suffix: "_bucket", labels: { ...labels, le: String(bound) }, value: below };
    }
    yield { suffix: "_bucket", labels: { ...labels, le: "+Inf" }, value: count };
    yield { suffix: "_sum", labels, value: sum };
    yield { suffix: "_count", labels, value: count };
  }
}

function keyOf(labels: Readonly<Record<string, string>>): string {
  return Object.values(labels).join("\u0000");
}

/** The media type of the text format of Prometheus. */
export const PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** One number with the labels that tell it from others of the same name. */
export interface Sample {
  /** Put behind the name of the metric. @default nothing */
  readonly suffix?: "_bucket" | "_sum" | "_count" | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly value: number;
}

/** What a metric is. */
interface MetricFacts {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
}

/** Writes one metric in the text format of Prometheus: what it is, then its samples. */
export function writeMetric({ name, type, help }: MetricFacts, samples: Iterable<Sample>): string {
  const lines = [
    `# HELP ${name} ${help.replace(/\\/g, "\\\\").replace(/\n/g, "\\n")}`,
    `# TYPE ${name} ${type}`,
  ];
  for (const { suffix = "", labels, value } of samples) {
    lines.push(`${name}${suffix}${writeLabels(labels)} ${writeNumber(value)}`);
  }
  return `${lines.join("\n")}\n`;
}

function writeLabels(labels: Sample["labels"]): string {
  const written = Object.entries(labels ?? {}).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return written.length === 0 ? "" : `{${written.join(",")}}`;
}

/** A lone surrogate cannot be written as UTF-8, and a reader may stumble over other line breaks than the one that is escaped. */
function escapeLabel(value: string): string {
  return value
    .replace(/\\/g, "\\\\")
    .replace(/"/g, '\\"')
    .replace(/\n/g, "\\n")
    .replace(/[\p{Cc}\p{Cs}\u2028\u2029]/gu, "\ufffd");
}

function writeNumber(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}
