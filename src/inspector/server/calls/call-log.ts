import type { Identity } from "../../../core/access/identity.ts";
import type { ResponseEnvelope } from "../../../core/envelope/envelope.ts";
import { type CallError, isCallError } from "../../../core/errors/errors.ts";
import type { HookedCall } from "../../../core/execution/dispatch.ts";
import { isPlainObject } from "../../../core/json/json-value.ts";
import { hidePasswords } from "../../../gateway/hide-passwords.ts";
import { forCallers } from "../../../gateway/missing-operation.ts";
import { callerKey } from "../../../gateway/serve/gateway-auth.ts";
import type {
  CallEnd,
  CallHead,
  CallListener,
  CallRecord,
  Observer,
} from "../../../gateway/serve/observe/observer.ts";
import type { CallRow } from "../../protocol.ts";
import {
  KEPT_CALLS,
  KEPT_CHARACTERS,
  KEPT_CHARACTERS_EACH,
  KEPT_NAME_CHARACTERS,
  KEPT_SUBJECT_CHARACTERS,
  KEPT_VALUES,
} from "../inspector-limits.ts";
import {
  type KeptText,
  KeptTexts,
  omitted,
  type WrittenJson,
  writtenJson,
  writtenResult,
} from "./written-json.ts";

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
    const hide = (value: unknown): unknown => {
      const shown = hidePasswords(operation, value);
      logged.row.digest = digestOf(shown);
      return shown;
    };
    const written = writtenJson(input, this.#mostEach, hide);
    logged.row.inputSize = sizeOf(written);
    logged.input = this.#texts.keep(written);
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
    const written = writtenResult(envelope, this.#mostEach);
    logged.row.resultSize = sizeOf(written);
    logged.results.push(this.#texts.keep(written));
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

function sizeOf(written: WrittenJson): number {
  if ("text" in written) return written.text.length;
  return written.omitted === "too-long" ? written.characters : 0;
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

/** A row that gets its outcome later: readers who were not yet told that the call began are told its end. */
type GrowingRow = { -readonly [K in keyof CallRow]: CallRow[K] };

/** One call as it is remembered. */
export interface LoggedCall {
  readonly seq: number;
  /** The key of its caller, which decides who may see the call. Absent where the subject is too long to be kept. */
  readonly caller: string | undefined;
  /** As it is told: first when it begins, then when it has ended. */
  readonly row: GrowingRow;
  input: KeptText;
  results: KeptText[];
  /** Values of a subscription that are not remembered any more. */
  earlier: number;
  /** Values that a subscription gave so far. */
  values: number;
  error: KeptText | undefined;
  /** What its caller was told, where that is less than what is known here. */
  toldMessage: KeptText | undefined;
  /** What the source answered, where that became the error. */
  raw: KeptText | undefined;
}

/** What a call begins with. */
const NO_TEXT: KeptText = omitted("none");

/** Tells whether a call still runs. */
export function isRunning({ row }: LoggedCall): boolean {
  return row.outcome === undefined;
}

/** V8 copies what is shorter in any case; longer parts of a text keep all of it in memory. */
const SHARED_FROM = 13;

/** Copies at most so many characters of a text, so that a short part which is remembered does not hold on to a long whole. */
function ownCopy(text: string, most: number): string {
  if (text.length < SHARED_FROM) return text;
  return Buffer.from(text.slice(0, most), "utf16le").toString("utf16le");
}

/** What a source answered, in its own words. */
interface RawAnswer {
  readonly value: unknown;
}

/**
 * Finds what a source answered where that became an error: the status and body of an HTTP API, the error of a JSON-RPC answer, a
 * result that is none. Errors keep it from callers, for it is between this process and the source; so only operators are shown it.
 */
export function rawAnswerOf(error: CallError): RawAnswer | undefined {
  const { details, cause } = error;
  if (!isPlainObject(details)) return fromHop(error, cause);
  const { status, rpcCode, tool, reason } = details;
  if (typeof status === "number") return fromHttp(error, details);
  if (rpcCode !== undefined) {
    return isPlainObject(cause) && cause["code"] === rpcCode ? { value: { error: cause } } : undefined;
  }
  if (error.code === "OUTPUT_INVALID" && typeof tool === "string" && typeof reason === "string") {
    return cause === undefined ? undefined : { value: { result: cause } };
  }
  return fromHop(error, cause);
}

/** As `openapi` reads it, bounded by the error: the body, or its beginning where it says that it is JSON and is not. */
function fromHttp(
  { code, cause }: CallError,
  { status, contentType, headers, problem, body }: Readonly<Record<string, unknown>>,
): RawAnswer | undefined {
  if (typeof contentType === "string")
    return { value: { status, contentType, headers, body: body ?? problem } };
  const isUnread = code === "OUTPUT_INVALID" && cause instanceof Error && !isCallError(cause);
  return isUnread ? { value: { status, body: cause.message } } : undefined;
}

/** The problem that another Waybill wrote. */
function fromHop({ httpStatus }: CallError, cause: unknown): RawAnswer | undefined {
  if (!isPlainObject(cause) || !isPlainObject(cause["waybill"])) return undefined;
  return { value: { status: httpStatus, body: cause } };
}

const MOST_MEMBERS = 4;
/** Longer texts are left out whole: cut, they might hold the half of a secret, which nothing would mask. */
const MOST_TEXT = 40;

/** Says in a few words what an input holds, so that calls of one operation are told apart: `id: "P-1001", items: [3]`. */
export function digestOf(input: unknown): string {
  if (!isPlainObject(input)) return shortOf(input);
  const parts: string[] = [];
  for (const name in input) {
    if (!Object.hasOwn(input, name)) continue;
    if (parts.length === MOST_MEMBERS) return `${parts.join(", ")}, …`;
    parts.push(`${name.length > MOST_TEXT ? "…" : name}: ${shortOf(input[name])}`);
  }
  return parts.join(", ");
}

function shortOf(value: unknown): string {
  if (typeof value === "string")
    return value.length > MOST_TEXT
      ? `${value.length.toLocaleString("en")} characters`
      : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.length}]`;
  if (typeof value === "object" && value !== null) return "{…}";
  return String(value).slice(0, MOST_TEXT);
}
