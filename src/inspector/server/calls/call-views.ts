import { setImmediate } from "node:timers/promises";
import type { Observer } from "../../../gateway/serve/observe/observer.ts";
import type {
  BusTraffic,
  CallFailure,
  CallRow,
  CallStats,
  CallView,
  LogLineView,
  ResultView,
} from "../../protocol.ts";
import { noLongerLetIn } from "../answers.ts";
import { maySee, type Viewer } from "../viewer.ts";
import { type CallLog, type LoggedCall, rowOf } from "./call-log.ts";
import type { SourceLogs } from "./source-logs.ts";
import { readKept } from "./written-json.ts";

/** Characters that are looked through before others get their turn. */
const SLICE = 256 * 1_024;

/** What is looked through. */
interface FindCallsOptions {
  readonly log: Pick<CallLog, "calls">;
  readonly viewer: Viewer;
  /** Takes secrets out of a text: what is not shown is not found, so that nobody learns a secret by looking for it. */
  readonly mask: (text: string) => string;
}

/** Finds the calls of which the input or a result that is remembered holds a text, in letters of either case; oldest first. */
export async function findCalls(
  wanted: string,
  { log, viewer, mask }: FindCallsOptions,
): Promise<readonly number[]> {
  // Remembered as JSON.
  const needle = JSON.stringify(wanted).slice(1, -1).toLowerCase();
  const found: number[] = [];
  let read = 0;
  for (const { seq, caller, input, results, error, raw } of log.calls()) {
    if (!maySee(viewer, caller)) continue;
    // What is said of an error differs with who asks.
    const kept = [input, ...results, ...(viewer.isOperator ? [error, raw] : [])];
    const isFound = kept.some((one) => {
      const text = one?.text ?? "";
      read += text.length;
      return text !== "" && mask(text).toLowerCase().includes(needle);
    });
    if (isFound) found.push(seq);
    if (read < SLICE) continue;
    read = 0;
    await setImmediate();
    if (!viewer.isCurrent()) throw noLongerLetIn();
  }
  return found;
}

/** Tells all that is remembered of a call; nothing where it is not there for this viewer. */
export function viewOfCall(
  { log, logs }: { readonly log: CallLog; readonly logs: Pick<SourceLogs, "messagesOf"> },
  seq: number,
  viewer: Viewer,
): CallView | undefined {
  const call = log.get(seq);
  if (call === undefined || !maySee(viewer, call.caller)) return undefined;
  const error = errorOf(call, viewer);
  const { raw } = call;
  const messages = viewer.isOperator ? messagesOf(call, logs) : [];
  return {
    row: rowOf(call),
    input: readKept(call.input, (value) => ({ value })),
    results: call.results.map((kept) => readKept(kept, (value) => value as ResultView)),
    earlier: call.earlier,
    ...(error !== undefined && { error }),
    ...(raw !== undefined && viewer.isOperator && { raw: readKept(raw, (value) => ({ value })) }),
    ...(messages.length > 0 && { messages }),
    family: familyOf(log, call, viewer),
  };
}

/** Milliseconds by which a message may come before the call it belongs to was written down, or after its end. */
const AROUND_MS = 50;

/** Callers choose request ids, so what passed at another time is of another call. */
function messagesOf({ row }: LoggedCall, logs: Pick<SourceLogs, "messagesOf">): readonly LogLineView[] {
  const { source, requestId, startedAt, durationMs = Number.POSITIVE_INFINITY } = row;
  if (source === undefined) return [];
  const isMeanwhile = ({ at }: LogLineView): boolean =>
    at >= startedAt - AROUND_MS && at <= startedAt + durationMs + AROUND_MS;
  return logs.messagesOf(source, requestId).filter(isMeanwhile);
}

const FORGOTTEN_MESSAGE = "What was said about the error is not remembered.";

function errorOf({ error, row, toldMessage }: LoggedCall, { isOperator }: Viewer): CallFailure | undefined {
  if (error === undefined) return undefined;
  if (error.text === undefined) return { code: row.code ?? "UNKNOWN_ERROR", message: FORGOTTEN_MESSAGE };
  const failure = JSON.parse(error.text) as CallFailure;
  if (isOperator || toldMessage === undefined) return failure;
  const { text } = toldMessage;
  return { ...failure, message: text === undefined ? FORGOTTEN_MESSAGE : (JSON.parse(text) as string) };
}

/** The call nobody here made, and all below it, as far as they are remembered. */
function familyOf(log: CallLog, call: LoggedCall, viewer: Viewer): readonly CallRow[] {
  const below = new Map<number, LoggedCall[]>();
  for (const one of log.calls()) {
    const { parent } = one.row;
    if (parent === undefined) continue;
    const known = below.get(parent);
    if (known === undefined) below.set(parent, [one]);
    else known.push(one);
  }
  const family: LoggedCall[] = [];
  const left = [eldestOf(log, call)];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    family.push(next);
    for (const child of below.get(next.seq) ?? []) left.push(child);
  }
  return family
    .filter(({ caller }) => maySee(viewer, caller))
    .sort((a, b) => a.seq - b.seq)
    .map(rowOf);
}

/** A call is always above those with a higher number, so this ends. */
function eldestOf(log: CallLog, call: LoggedCall): LoggedCall {
  let eldest = call;
  for (;;) {
    const { parent } = eldest.row;
    const above = parent === undefined ? undefined : log.get(parent);
    if (above === undefined) return eldest;
    eldest = above;
  }
}

/** How no calls went. */
export const NO_CALLS: CallStats = { count: 0, errors: 0 };

interface Tally {
  count: number;
  errors: number;
  /** Of what is no subscription: how long somebody listened says nothing about a source. */
  readonly durations: number[];
  lastError?: CallStats["lastError"];
}

/** Says how the calls of each source went, as far as they are remembered and for this viewer. */
export function statsBySource(log: CallLog, viewer: Viewer): ReadonlyMap<string, CallStats> {
  const tallies = new Map<string, Tally>();
  for (const { row, caller } of log.calls()) {
    const { seq, startedAt, source, outcome, code, durationMs, type } = row;
    if (source === undefined || outcome === undefined || !maySee(viewer, caller)) continue;
    const tally = tallies.get(source) ?? { count: 0, errors: 0, durations: [] };
    tallies.set(source, tally);
    tally.count += 1;
    if (isFailure(outcome, code)) {
      tally.errors += 1;
      tally.lastError = { seq, code: code ?? outcome, at: startedAt };
    }
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

function toStats({ count, errors, durations, lastError }: Tally): CallStats {
  const counts = { count, errors, ...(lastError !== undefined && { lastError }) };
  if (durations.length === 0) return counts;
  const sorted = Float64Array.from(durations).sort();
  return { ...counts, p50: rankOf(sorted, 0.5), p95: rankOf(sorted, 0.95), p99: rankOf(sorted, 0.99) };
}

/** The smallest value that at least this share of all is not above. */
function rankOf(sorted: Float64Array, share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] as number;
}
