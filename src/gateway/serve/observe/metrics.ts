import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { CallObservation } from "../../../call/call-observer.ts";
import { isErrorCode } from "../../../core/errors/error-codes.ts";
import type { SourceReport } from "../../sources/source.ts";
import type { CallRecord } from "./call-record.ts";
import { type Sample, writeMetric } from "./prometheus-text.ts";

/** What metrics are read from besides calls. */
export interface MetricsOptions {
  /** The sources there are, asked at every look. @default none */
  readonly sources?:
    | (() => readonly Pick<SourceReport, "name" | "kind" | "state" | "operations">[])
    | undefined;
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

/** Counts calls and looks at sources and the process, for Prometheus. */
export class Metrics {
  readonly #options: MetricsOptions;
  readonly #calls = new Map<string, Counted>();
  readonly #durations = new Map<string, Durations>();
  readonly #sources = new Set<string>();
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
    this.#time(record);
  }

  /** A step of a call on the bus. */
  busCall(call: CallObservation): void {
    this.#bus.take(call);
  }

  /** All of it in the text format of Prometheus, version 0.0.4. */
  text(): string {
    return [
      writeMetric("waybill_calls_total", "counter", "Calls that have ended.", this.#calls.values()),
      writeMetric(
        "waybill_call_duration_seconds",
        "histogram",
        "How long calls took, waiting included.",
        samplesOf(this.#durations.values()),
      ),
      writeMetric("waybill_calls_in_flight", "gauge", "Calls that run now.", [{ value: this.#running }]),
      writeMetric("waybill_cache_hits_total", "counter", "Calls answered from the cache.", [
        { value: this.#cacheHits },
      ]),
      ...this.#bus.metrics(),
      ...this.#sourceMetrics(),
      ...this.#processMetrics(),
    ].join("");
  }

  /** Stops looking at the event loop. */
  close(): void {
    this.#lag.disable();
  }

  #count({ operation, source = "", isKnown, outcome, code: said = "" }: CallRecord): void {
    const code = countedCode(said);
    // The key that `keyOf` would give: labels are made once for each series.
    const counted = isKnown
      ? this.#calls.get(`${operation}\u0000${source}\u0000${outcome}\u0000${code}`)
      : undefined;
    if (counted !== undefined) {
      counted.value += 1;
      return;
    }
    const { series = 10_000 } = this.#options;
    const others = { operation: OTHER, source: OTHER, outcome, code };
    const isFull = this.#calls.size >= series || !isKnown;
    addTo(this.#calls, isFull ? others : { operation, source, outcome, code }, 1);
  }

  #time({ source = OTHER, outcome, durationMs }: CallRecord): void {
    if (!this.#sources.has(source) && this.#sources.size < MOST_SOURCES) this.#sources.add(source);
    timeInto(this.#durations, { source: this.#sources.has(source) ? source : OTHER, outcome }, durationMs);
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
        "waybill_source_up",
        "gauge",
        "Whether a source is up.",
        samples(({ state }) => (state.status === "up" ? 1 : 0)),
      ),
      writeMetric(
        "waybill_source_operations",
        "gauge",
        "Operations of a source.",
        samples(({ operations }) => operations),
      ),
    ];
  }

  #processMetrics(): readonly string[] {
    const { rss, heapUsed } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    const gauge = (name: string, help: string, value: number): string =>
      writeMetric(name, "gauge", help, [{ value }]);
    const lag = { mean: this.#lag.mean / NANOSECONDS, max: this.#lag.max / NANOSECONDS };
    this.#lag.reset();
    return [
      gauge("process_resident_memory_bytes", "Memory of the process.", rss),
      gauge("nodejs_heap_size_used_bytes", "Memory that objects take.", heapUsed),
      gauge("process_uptime_seconds", "How long the process runs.", process.uptime()),
      writeMetric("process_cpu_seconds_total", "counter", "Time on the processor.", [
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
      writeMetric("waybill_bus_calls_total", "counter", "Bus calls that have ended.", this.#calls.values()),
      writeMetric("waybill_bus_call_duration_seconds", "histogram", "How long bus calls took.", durations),
      writeMetric("waybill_bus_calls_in_flight", "gauge", "Bus calls that run now.", this.#running.values()),
      writeMetric("waybill_bus_values_total", "counter", "Values of subscriptions.", this.#values.values()),
      writeMetric("waybill_bus_bytes_total", "counter", "Requests and answers.", this.#bytes.values()),
    ];
  }

  #end(call: Extract<CallObservation, { readonly outcome: string }>): void {
    const { end, outcome, code = "", durationMs } = call;
    addTo(this.#running, { end }, -1);
    addTo(this.#calls, { end, outcome, code: countedCode(code) }, 1);
    timeInto(this.#durations, { end, outcome }, durationMs);
  }
}

/** Tools make up codes of their own. */
function countedCode(code: string): string {
  return code === "" || isErrorCode(code) ? code : OTHER;
}

function addTo(counts: Map<string, Counted>, labels: Counted["labels"], amount: number): void {
  const key = keyOf(labels);
  const found = counts.get(key);
  if (found === undefined) counts.set(key, { labels, value: amount });
  else found.value += amount;
}

function timeInto(all: Map<string, Durations>, labels: Durations["labels"], durationMs: number): void {
  const key = keyOf(labels);
  let durations = all.get(key);
  if (durations === undefined) {
    durations = { labels, buckets: BUCKETS.map(() => 0), sum: 0, count: 0 };
    all.set(key, durations);
  }
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
