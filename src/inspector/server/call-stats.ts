import type { Observer } from "../../gateway/serve/observe/observer.ts";
import type { BusTraffic, CallStats } from "../protocol.ts";
import type { CallLog } from "./call-log.ts";
import { maySee, type Viewer } from "./viewer.ts";

/** How no calls went. */
export const NO_CALLS: CallStats = { count: 0, errors: 0 };

interface Tally {
  count: number;
  errors: number;
  /** Of what is no subscription: how long somebody listened says nothing about a source. */
  readonly durations: number[];
}

/** Says how the calls of each source went, as far as they are remembered and for this viewer. */
export function statsBySource(log: CallLog, viewer: Viewer): ReadonlyMap<string, CallStats> {
  const tallies = new Map<string, Tally>();
  for (const { row, caller } of log.calls()) {
    const { source, outcome, code, durationMs, type } = row;
    if (source === undefined || outcome === undefined || !maySee(viewer, caller)) continue;
    const tally = tallies.get(source) ?? { count: 0, errors: 0, durations: [] };
    tallies.set(source, tally);
    tally.count += 1;
    if (isFailure(outcome, code)) tally.errors += 1;
    if (type !== "subscription") tally.durations.push(durationMs ?? 0);
  }
  return new Map(Array.from(tallies, ([source, tally]) => [source, toStats(tally)] as const));
}

/** What crossed the bus since it was created, by the end that the gateway had of each call. */
export class BusTally {
  readonly #ends = new Map<string, { -readonly [Field in keyof BusTraffic]: BusTraffic[Field] }>();

  take(call: Parameters<Observer["busCall"]>[0]): void {
    const { end, type, outcome, code, sentBytes = 0, receivedBytes = 0 } = call;
    const none = { end, calls: 0, errors: 0, values: 0, sentBytes: 0, receivedBytes: 0 };
    const tally = this.#ends.get(end) ?? none;
    this.#ends.set(end, tally);
    tally.sentBytes += sentBytes;
    tally.receivedBytes += receivedBytes;
    if (type === "responded" && outcome === undefined) tally.values += 1;
    if (outcome === undefined) return;
    tally.calls += 1;
    if (isFailure(outcome, code)) tally.errors += 1;
  }

  /** Copies of what is counted, of the ends that there were calls at. */
  traffic(): readonly BusTraffic[] {
    return Array.from(this.#ends.values(), (tally) => ({ ...tally }));
  }
}

/** One that its caller gave up did not fail; a tool may call its own errors so. */
function isFailure(outcome: string, code: string | undefined): boolean {
  return outcome === "tool_error" || (outcome === "call_error" && code !== "ABORTED");
}

function toStats({ count, errors, durations }: Tally): CallStats {
  if (durations.length === 0) return { count, errors };
  const sorted = Float64Array.from(durations).sort();
  return { count, errors, p50: rankOf(sorted, 0.5), p95: rankOf(sorted, 0.95), p99: rankOf(sorted, 0.99) };
}

/** The smallest value that at least this share of all is not above. */
function rankOf(sorted: Float64Array, share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] as number;
}
