import type { Identity } from "../../core/access/identity.ts";
import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import type { CallError } from "../../core/errors/errors.ts";
import type { HookedCall } from "../../core/execution/hooks.ts";
import { callerKey } from "../../gateway/serve/caller-key.ts";
import type { CallHead, CallRecord } from "../../gateway/serve/observe/call-record.ts";
import type { CallEnd, CallListener, Observer } from "../../gateway/serve/observe/observer.ts";
import { forCallers } from "../../gateway/source-error.ts";
import type { CallRow } from "../protocol.ts";
import { hidePasswords } from "./hide-passwords.ts";
import {
  KEPT_CALLS,
  KEPT_CHARACTERS,
  KEPT_CHARACTERS_EACH,
  KEPT_NAME_CHARACTERS,
  KEPT_SUBJECT_CHARACTERS,
  KEPT_VALUES,
} from "./inspector-limits.ts";
import { KeptTexts } from "./kept-text.ts";
import { type GrowingRow, isRunning, type LoggedCall, NO_TEXT } from "./logged-call.ts";
import { ownCopy } from "./own-copy.ts";
import { rawAnswerOf } from "./raw-answer.ts";
import { writtenJson } from "./written-json.ts";
import { writtenResult } from "./written-result.ts";

/** How much is remembered, and who hears of it. */
export interface CallLogOptions {
  /** Calls. @default 5_000 */
  readonly calls?: number | undefined;
  /** Characters of inputs, results and errors. @default 33_554_432 */
  readonly characters?: number | undefined;
  /** Characters of each. @default 262_144 */
  readonly charactersEach?: number | undefined;
  /** Hears of each call that began, gave a value or ended. @default nobody does */
  readonly onChange?: ((call: LoggedCall) => void) | undefined;
}

/** A call that may turn out to be above another one. */
interface Above {
  /** As the caller asked for it, whole: held only while the call runs. */
  readonly operationId: string;
  readonly logged: LoggedCall;
}

/** The last calls of a gateway, with what went in and what came out as far as there is room. */
export class CallLog implements CallListener {
  readonly #most: number;
  readonly #mostEach: number;
  readonly #texts: KeptTexts;
  /** By `seq`, over and over: each call has its place until a later one needs it. */
  readonly #ring: (LoggedCall | undefined)[] = [];
  readonly #running = new Map<HookedCall, LoggedCall>();
  /** Running calls by request id, latest last. */
  readonly #byRequest = new Map<string, Above[]>();
  readonly #runningOf = new Map<string, number>();
  readonly #awaited = new Map<string, (seq: number) => void>();
  readonly #stop: () => void;
  readonly #tell: (call: LoggedCall) => void;
  #seq = 0;

  constructor(observer: Pick<Observer, "listen">, options: CallLogOptions = {}) {
    const {
      calls = KEPT_CALLS,
      characters = KEPT_CHARACTERS,
      charactersEach = KEPT_CHARACTERS_EACH,
      onChange = () => {},
    } = options;
    this.#most = calls;
    this.#mostEach = charactersEach;
    this.#texts = new KeptTexts(characters);
    this.#tell = onChange;
    this.#stop = observer.listen(this);
  }

  /** The number of the last call that began; the first one is 1. */
  get lastSeq(): number {
    return this.#seq;
  }

  /** The number of the oldest call that may be remembered. */
  get oldestSeq(): number {
    return Math.max(1, this.#seq - this.#most + 1);
  }

  /** Characters that are remembered now. */
  get characters(): number {
    return this.#texts.characters;
  }

  /** Counts calls that run now: all of them, or those of one caller, by its key. */
  runningOf(caller?: string): number {
    return caller === undefined ? this.#running.size : (this.#runningOf.get(caller) ?? 0);
  }

  /** Finds a call; nothing once it is forgotten. */
  get(seq: number): LoggedCall | undefined {
    const call = this.#ring[seq % this.#most];
    return call?.seq === seq ? call : undefined;
  }

  /** The calls that are remembered, oldest first. */
  *calls(): Generator<LoggedCall> {
    for (let { oldestSeq: seq } = this; seq <= this.#seq; seq++) {
      const call = this.get(seq);
      if (call !== undefined) yield call;
    }
  }

  /** Tells the number of the next call under a request id that nobody else knows; returns how to stop waiting. */
  awaitCall(requestId: string, tell: (seq: number) => void): () => void {
    this.#awaited.set(requestId, tell);
    return () => void this.#awaited.delete(requestId);
  }

  begin(head: CallHead, call: HookedCall): void {
    const { requestId, identity } = call.context;
    const seq = ++this.#seq;
    const parent = this.#parentOf(call);
    const logged: LoggedCall = {
      seq,
      caller: keptCaller(identity),
      row: toRow(head, call, { seq, startedAt: Date.now(), parent }),
      input: NO_TEXT,
      results: [],
      earlier: 0,
      values: 0,
      error: undefined,
      toldMessage: undefined,
      raw: undefined,
    };
    this.#place(logged);
    this.#run(call, logged);
    this.#keepInput(logged, call);
    this.#tell(logged);
    const tell = this.#awaited.get(requestId);
    if (tell === undefined) return;
    this.#awaited.delete(requestId);
    tell(seq);
  }

  value(envelope: ResponseEnvelope, call: HookedCall): void {
    const logged = this.#running.get(call);
    if (logged === undefined) return;
    logged.values += 1;
    if (this.#isKept(logged)) this.#keepResult(logged, envelope);
    this.#tell(logged);
  }

  end(record: CallRecord, call: HookedCall, { envelope, error }: CallEnd): void {
    const logged = this.#running.get(call);
    if (logged === undefined) return;
    this.#leave(call, logged);
    endRow(logged.row, record);
    // Of what was pushed out of the list while it ran nothing is remembered; that it ended is still told.
    if (this.#isKept(logged)) {
      if (envelope !== undefined) this.#keepResult(logged, envelope);
      if (error !== undefined) this.#keepError(logged, error);
    }
    this.#tell(logged);
  }

  /** Stops listening, and forgets all. */
  close(): void {
    this.#stop();
    for (const call of this.calls()) this.#forget(call);
    this.#ring.length = 0;
    this.#running.clear();
    this.#byRequest.clear();
    this.#runningOf.clear();
    this.#awaited.clear();
  }

  #isKept(logged: LoggedCall): boolean {
    return this.get(logged.seq) === logged;
  }

  #place(logged: LoggedCall): void {
    const at = logged.seq % this.#most;
    const oldest = this.#ring[at];
    if (oldest !== undefined) this.#forget(oldest);
    this.#ring[at] = logged;
  }

  #run(call: HookedCall, logged: LoggedCall): void {
    const { requestId } = call.context;
    this.#running.set(call, logged);
    const above = { operationId: call.operationId, logged };
    const alike = this.#byRequest.get(requestId);
    if (alike === undefined) this.#byRequest.set(requestId, [above]);
    else alike.push(above);
    const { caller } = logged;
    if (caller !== undefined) this.#runningOf.set(caller, this.runningOf(caller) + 1);
  }

  #leave(call: HookedCall, logged: LoggedCall): void {
    const { requestId } = call.context;
    this.#running.delete(call);
    const alike = this.#byRequest.get(requestId)?.filter((one) => one.logged !== logged) ?? [];
    if (alike.length === 0) this.#byRequest.delete(requestId);
    else this.#byRequest.set(requestId, alike);
    const { caller } = logged;
    if (caller === undefined) return;
    const left = this.runningOf(caller) - 1;
    if (left > 0) this.#runningOf.set(caller, left);
    else this.#runningOf.delete(caller);
  }

  /** Of those that run under the request id of the call above, the one of its operation that began last. */
  #parentOf({ context: { parent } }: HookedCall): number | undefined {
    if (parent === undefined) return undefined;
    const { requestId, operationId } = parent;
    return this.#byRequest.get(requestId)?.findLast((call) => call.operationId === operationId)?.logged.seq;
  }

  /** What nobody knows the schema of may hold anything, and is not kept. */
  #keepInput(logged: LoggedCall, { operation, input }: HookedCall): void {
    if (operation === undefined || input === undefined) return;
    const hide = (value: unknown): unknown => hidePasswords(operation, value);
    logged.input = this.#texts.keep(writtenJson(input, this.#mostEach, hide));
  }

  #keepError(logged: LoggedCall, error: CallError): void {
    logged.error = this.#texts.keep(writtenJson(error.toJSON(), this.#mostEach));
    const { message } = forCallers(error);
    if (message !== error.message)
      logged.toldMessage = this.#texts.keep(writtenJson(message, this.#mostEach));
    const raw = rawAnswerOf(error);
    if (raw !== undefined) logged.raw = this.#texts.keep(writtenJson(raw.value, this.#mostEach));
  }

  #keepResult(logged: LoggedCall, envelope: ResponseEnvelope): void {
    logged.results.push(this.#texts.keep(writtenResult(envelope, this.#mostEach)));
    if (logged.results.length <= KEPT_VALUES) return;
    const oldest = logged.results.shift();
    if (oldest !== undefined) this.#texts.forget(oldest);
    logged.earlier += 1;
  }

  #forget(logged: LoggedCall): void {
    const { input, results, error, toldMessage, raw } = logged;
    for (const kept of [input, ...results, error, toldMessage, raw])
      if (kept !== undefined) this.#texts.forget(kept);
  }
}

interface Begun {
  readonly seq: number;
  readonly startedAt: number;
  readonly parent: number | undefined;
}

/** Cut short, two could not be told from each other: one that is too long is nobody's. */
function keptCaller(identity: Identity | undefined): string | undefined {
  const key = callerKey(identity);
  if (identity === undefined || key === undefined) return undefined;
  return identity.subject.length > KEPT_SUBJECT_CHARACTERS ? undefined : ownCopy(key, key.length);
}

function toRow(head: CallHead, call: HookedCall, { seq, startedAt, parent }: Begun): GrowingRow {
  const { source, type, subject, entry } = head;
  const known = call.operation?.id;
  const operation = head.operation === known ? known : ownCopy(head.operation, KEPT_NAME_CHARACTERS);
  const row: GrowingRow = {
    seq,
    requestId: ownCopy(head.requestId, KEPT_NAME_CHARACTERS),
    operation,
    startedAt,
  };
  // One by one: to spread what may be absent takes as long as all the rest.
  if (source !== undefined) row.source = source;
  if (type !== undefined) row.type = type;
  if (subject !== undefined) row.subject = ownCopy(subject, KEPT_NAME_CHARACTERS);
  if (entry !== undefined) row.entry = entry;
  if (parent !== undefined) row.parent = parent;
  return row;
}

function endRow(row: GrowingRow, record: CallRecord): void {
  const { outcome, durationMs, code, attempts, cached, shared, repeated, waitedMs, values } = record;
  row.outcome = outcome;
  row.durationMs = durationMs;
  if (code !== undefined) row.code = ownCopy(code, KEPT_NAME_CHARACTERS);
  if (attempts !== undefined) row.attempts = attempts;
  if (cached) row.cached = cached;
  if (shared) row.shared = shared;
  if (repeated) row.repeated = repeated;
  if (waitedMs !== undefined) row.waitedMs = waitedMs;
  if (values !== undefined) row.values = values;
}

/** A call of the list as it is now; one that runs says how many values it gave so far. */
export function rowOf(call: LoggedCall): CallRow {
  return isRunning(call) && call.values > 0 ? { ...call.row, values: call.values } : call.row;
}
