import { createHash, randomUUID } from "node:crypto";
import type { StoredMsg } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type {
  StartedTask,
  StartOptions,
  TaskState,
  TaskWaitOptions,
} from "../../../core/client/started-task.ts";
import { isErrorEnvelope } from "../../../core/envelope/envelope.ts";
import type { ResponseEnvelope } from "../../../core/envelope/response-meta.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { isRequestId, randomId } from "../../../core/execution/call-context.ts";
import {
  type AbortListener,
  addAbortListener,
  type Expiring,
  monotonicNow,
  removeAbortListener,
  startTimer,
  toDeadline,
} from "../../../core/execution/cancellation.ts";
import { idOf } from "../../../core/execution/dispatch.ts";
import { isPlainObject, setOwn } from "../../../core/json/json-value.ts";
import type { CallerTask } from "../../../core/operation/caller-side.ts";
import type { AnyOperation, CallArguments } from "../../../core/operation/operation-types.ts";
import type { ExecuteOptions } from "../../../core/registry/executor.ts";
import { toWire } from "../../../core/wire/wire.ts";
import { abortedError, overLimit, unproven } from "../../call-errors.ts";
import type { CallCounters } from "../../call-observer.ts";
import {
  assertSignal,
  type CredentialSource,
  createRequest,
  type FailedCallsOptions,
  type FailedCallsPage,
} from "../../call-options.ts";
import { isOperationId, operationNotFound } from "../../discovery/operation-id.ts";
import type { DurableCaller } from "../../remote-registry.ts";
import { NOBODY, namedUser } from "../../wire/subjects.ts";
import { PubHeaders } from "../nats-packages.ts";
import {
  consumerName,
  decodeEnding,
  type Ending,
  encodeRequest,
  hashOf,
  type RequestAddress,
  readRecord,
  requestToken,
  writeRecord,
} from "./durable-codec.ts";
import {
  type AuthenticateStored,
  assertToken,
  type DurableCallsOptions,
  DurableStore,
  NONCE_HEADER,
  REQUEST_ID_HEADER,
  readDurableOptions,
} from "./durable-store.ts";
import { listFailed, readFailedRequest } from "./failed-calls.ts";

/** How long a result is waited for. */
export interface ResultOptions {
  /** Milliseconds; the call goes on afterwards. @default limits.deadlineMs */
  readonly timeoutMs?: number | undefined;
  /** Ends the wait; the call goes on. */
  readonly signal?: AbortSignal | undefined;
}

/** What a durable call that is waited for may be told. */
export interface DurableExecuteOptions extends ExecuteOptions {
  /** As for `submit`. */
  readonly idempotencyKey?: string | undefined;
  /** The task that the call is: it is waited for as long as that may run. @default it is none */
  readonly task?: CallerTask | undefined;
}

/** How a call that has failed is submitted anew. */
export interface ResendOptions {
  /** Tells whose it was, by what was signed then. @default only calls of nobody are submitted */
  readonly authenticate?: AuthenticateStored | undefined;
}

/** Operations that are known to have a worker. */
const MOST_SERVED = 10_000;

/** Milliseconds the broker has to acknowledge a call. */
const SUBMIT_MS = 5_000;

/** What a durable call that is a task is told. */
type FollowOptions = DurableExecuteOptions & { readonly task: CallerTask };

/** The asking side of durable calls: stores requests, and finds how they ended. */
export class DurableCalls implements DurableCaller {
  readonly #store: DurableStore;
  readonly #user: string;
  readonly #credentials: CredentialSource | undefined;
  readonly #served = new Set<string>();
  #pending = 0;

  /** Made by `openDurableCalls`, which sees to the streams. */
  constructor(store: DurableStore, user: string, credentials: CredentialSource | undefined) {
    this.#store = store;
    this.#user = user;
    this.#credentials = credentials;
  }

  /** What came from the broker and was dropped, and why. */
  get counters(): CallCounters {
    return { ...this.#store.counters };
  }

  /**
   * Resolves once the broker has stored the call: it will then end in a stored result. After a rejection it may or may not be
   * stored; submitting again with the same idempotency key is safe.
   */
  submit<const T extends AnyOperation | string>(
    target: T,
    ...rest: CallArguments<T, SubmitOptions>
  ): Promise<SubmittedCall>;
  async submit(target: unknown, input?: unknown, options: SubmitOptions = {}): Promise<SubmittedCall> {
    const operationId = idOf(target);
    const { signal, timeoutMs = SUBMIT_MS } = options;
    assertSignal(signal);
    if (!isOperationId(operationId)) throw operationNotFound(operationId);
    const until = toDeadline(timeoutMs, monotonicNow());
    const by = { store: this.#store, user: this.#user, credentials: this.#credentials };
    const patience = {
      until,
      signal,
      expired: () => notAcknowledged(operationId, timeoutMs),
      aborted: (reason: unknown) => abortedError(operationId, reason),
    };
    return this.#admit(() =>
      settleWithin(patience, () => submitCall(by, { operationId, input, options }, until)),
    );
  }

  /** Gives the envelope that a call ended in, or throws the error it ended in; waits for it if need be. */
  async result(requestId: string, options: ResultOptions = {}): Promise<ResponseEnvelope> {
    const { signal, timeoutMs = this.#store.settings.limits.deadlineMs } = options;
    assertSignal(signal);
    const until = toDeadline(timeoutMs, monotonicNow());
    const leaving = new AbortController();
    const patience = {
      until,
      signal,
      expired: () => stillRunning(requestId),
      aborted: (cause: unknown) =>
        new CallError("ABORTED", "Nobody waits for the result any more; the call goes on.", { cause }),
    };
    const query = { user: this.#user, requestId, until, left: leaving.signal };
    try {
      return await this.#admit(() => settleWithin(patience, () => awaitResult(this.#store, query)));
    } finally {
      leaving.abort();
    }
  }

  /** Submits a call and waits for its result; `timeoutMs` and `signal` end the wait, never the call. */
  async execute(
    operationId: string,
    input?: unknown,
    options: DurableExecuteOptions = {},
  ): Promise<ResponseEnvelope> {
    const { task } = options;
    if (task !== undefined) return this.#follow(operationId, input, { ...options, task });
    const { signal, timeoutMs = this.#store.settings.limits.deadlineMs } = options;
    const until = toDeadline(timeoutMs, monotonicNow());
    const submit = { ...options, timeoutMs: Math.min(timeoutMs, SUBMIT_MS) };
    const { requestId } = await this.submit(operationId, input, submit);
    return this.result(requestId, { signal, timeoutMs: Math.max(0, until - monotonicNow()) });
  }

  /** Whether a worker has ever taken calls of an operation: they are stored for it from then on. */
  async serves(operationId: string): Promise<boolean> {
    if (this.#served.has(operationId)) return true;
    const isServed = await this.#store.hasConsumer(consumerName(operationId));
    if (isServed && this.#served.size < MOST_SERVED) this.#served.add(operationId);
    return isServed;
  }

  /** Follows a call that is a task: from where another process left it, where there was one. */
  async #follow(operationId: string, input: unknown, options: FollowOptions): Promise<ResponseEnvelope> {
    const { handle, isCancelled } = options.task;
    const noted = isPlainObject(handle) ? handle["durable"] : undefined;
    if (isCancelled === true)
      throw new CallError("ABORTED", "A durable call runs to its end.", { stack: false });
    const requestId = typeof noted === "string" ? noted : await this.#submitAs(operationId, input, options);
    return this.result(requestId, { signal: options.signal, timeoutMs: this.#store.settings.keepMs });
  }

  async #submitAs(
    operationId: string,
    input: unknown,
    { task, identity, metadata, origin, signal, idempotencyKey }: FollowOptions,
  ): Promise<string> {
    // The same task submits one call, also where it could not be noted that it did.
    const key = idempotencyKey ?? `task ${task.id}`;
    const submit = { identity, metadata, origin, signal, idempotencyKey: key };
    const { requestId } = await this.submit(operationId, input, submit);
    await task.hold({ durable: requestId }).catch(() => {});
    return requestId;
  }

  /** Lists calls that have failed and will not be tried again by themselves. */
  failed(options: FailedCallsOptions = {}): Promise<FailedCallsPage> {
    return this.#admit(() => listFailed(this.#store, this.#user, options));
  }

  /**
   * Submits a call that has failed anew, with the input it had, for whom it was of; again within the duplicate window gives the same call.
   * Without `authenticate`, calls of somebody are refused.
   */
  async resend(requestId: string, options: ResendOptions = {}): Promise<SubmittedCall> {
    if (!isRequestId(requestId)) throw unknownRequest();
    const { authenticate } = options;
    const user = this.#user;
    const address = { user, token: requestToken(user, requestId) };
    const stored = await readFailedRequest(this.#store, address, async (request, at) => {
      if (request.credential === undefined) return undefined;
      if (authenticate === undefined) throw unproven(request.operationId);
      return await authenticate({ request, user: namedUser(user) }, at);
    });
    const { identity, operationId, request } = stored;
    const idempotencyKey = `resend ${requestId}`;
    return await this.submit(operationId, request.input, { identity, idempotencyKey });
  }

  /** Submits a call, and gives a handle on it. */
  async start(operationId: string, input: unknown, options: StartOptions): Promise<StartedTask> {
    const { identity, metadata, origin, requestId } = options;
    const submitted = await this.submit(operationId, input, { identity, metadata, origin, requestId });
    const id = submitted.requestId;
    const { keepMs } = this.#store.settings;
    const left = new AbortController().signal;
    return new DurableTask({
      id,
      operationId,
      look: () => {
        const until = toDeadline(SUBMIT_MS, monotonicNow());
        return lookFor(this.#store, { user: this.#user, requestId: id, until, left });
      },
      result: (wait) => this.result(id, { ...wait, timeoutMs: wait.timeoutMs ?? keepMs }),
    });
  }

  async #admit<T>(work: () => Promise<T>): Promise<T> {
    const allowed = this.#store.settings.limits.pendingCalls;
    if (this.#pending >= allowed) {
      this.#store.counters.overLimit += 1;
      throw overLimit(`${allowed} durable calls are waited for already.`, { limit: "pendingCalls", allowed });
    }
    this.#pending += 1;
    try {
      return await work();
    } finally {
      this.#pending -= 1;
    }
  }
}

/** Opens the asking side of durable calls on a connection; its streams are made where they are missing. */
export async function openDurableCalls(
  connection: NatsConnection,
  options: DurableCallsOptions = {},
): Promise<DurableCalls> {
  const { user = NOBODY, credentials } = options;
  assertToken("user", user);
  const store = await DurableStore.open(connection, readDurableOptions(options));
  return new DurableCalls(store, user, credentials);
}

function notAcknowledged(operationId: string, timeoutMs: number): CallError {
  const message = `The broker did not acknowledge the call of "${operationId}" within ${timeoutMs} ms; it may be stored or not.`;
  return new CallError("UNAVAILABLE", message, { stack: false });
}

function stillRunning(requestId: string): CallError {
  const message =
    "The call has not ended yet; it goes on, and its result can be fetched later by its request id.";
  return new CallError("TIMEOUT", message, { details: { requestId }, stack: false });
}

/** Milliseconds between looks when nobody says that there is something to see. */
const POLL_MS = 2_000;

/** Whose result is waited for, until when; `left` ends the wait early. */
export interface ResultQuery {
  readonly user: string;
  readonly requestId: string;
  readonly until: number;
  readonly left: AbortSignal;
}

/** Waits for the stored ending of a call: what arrives live only says that it is time to look. */
async function awaitResult(store: DurableStore, query: ResultQuery): Promise<ResponseEnvelope> {
  const { user, requestId, left } = query;
  if (!isRequestId(requestId)) throw unknownRequest();
  const token = requestToken(user, requestId);
  const bell = new Bell(left);
  // Before the first look, so that no ending falls between the two.
  const subscription = store.connection.subscribe(store.names.end(user, token), { callback: bell.ring });
  try {
    while (!left.aborted) {
      bell.reset();
      const ending = await lookFor(store, query);
      if (ending !== undefined && "error" in ending) throw ending.error;
      if (ending !== undefined) return ending.envelope;
      await bell.heard(POLL_MS);
    }
    throw new CallError("ABORTED");
  } finally {
    if (!store.connection.isClosed()) subscription.unsubscribe();
  }
}

async function lookFor(
  store: DurableStore,
  { user, requestId, until }: ResultQuery,
): Promise<Ending | undefined> {
  const { names } = store;
  const token = requestToken(user, requestId);
  const head = await store.last(names.results, names.end(user, token), until);
  if (head === undefined) {
    const request = await store.last(names.calls, names.anyRequest(user, token), until);
    if (request === undefined) throw unknownRequest();
    return undefined;
  }
  const record = { stream: names.results, headers: head.header, data: head.data };
  const body = await readRecord(store, { ...record, partSubject: names.resultParts(user, token) }, until);
  if (typeof body !== "string") return decodeEnding(body);
  store.counters[body] += 1;
  if (body === "gaps") throw unknownRequest();
  return decodeEnding(new Uint8Array(0));
}

function unknownRequest(): CallError {
  const message = "There is no durable call with this request id: it was never submitted, or is too old.";
  return new CallError("NOT_FOUND", message, { stack: false });
}

/** Rings when something may be there to be seen. */
class Bell {
  readonly #left: AbortSignal;
  #rung = false;
  #wake: (() => void) | undefined;

  constructor(left: AbortSignal) {
    this.#left = left;
    left.addEventListener("abort", this.ring, { once: true });
  }

  readonly ring = (): void => {
    this.#rung = true;
    this.#wake?.();
  };

  reset(): void {
    this.#rung = false;
  }

  /** Waits for the next ring since `reset`, but not for ever. */
  heard(withinMs: number): Promise<void> {
    if (this.#rung || this.#left.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(this.ring, withinMs);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
    });
  }
}

/** How long somebody waits for work that goes on without them. */
export interface Patience {
  /** On the monotonic clock. */
  readonly until: number;
  readonly signal?: AbortSignal | undefined;
  /** The error for time that is over. */
  readonly expired: () => Error;
  /** The error for a signal that has aborted. */
  readonly aborted: (reason: unknown) => Error;
}

/** Settles as the work does, or with an error once nobody waits for it any more; nothing is left behind. */
export function settleWithin<T>(patience: Patience, work: () => Promise<T>): Promise<T> {
  const { signal, until } = patience;
  if (signal?.aborted === true) return Promise.reject(patience.aborted(signal.reason));
  // The broker is asked until the same time, and may be found silent a moment before the timer fires.
  const ranOut = (thrown: unknown): boolean =>
    monotonicNow() >= until && thrown instanceof CallError && thrown.code === "UNAVAILABLE";
  return new Promise((resolve, reject) => {
    const waiting: Expiring & AbortListener = {
      deadline: until,
      timer: undefined,
      expire: () => finish(() => reject(patience.expired())),
      onAbort: (source) => finish(() => reject(patience.aborted(source.reason))),
    };
    const finish = (settle: () => void): void => {
      clearTimeout(waiting.timer);
      if (signal !== undefined) removeAbortListener(signal, waiting);
      settle();
    };
    startTimer(waiting, until - monotonicNow());
    if (signal !== undefined) addAbortListener(signal, waiting);
    work().then(
      (value) => finish(() => resolve(value)),
      (thrown: unknown) => finish(() => reject(ranOut(thrown) ? patience.expired() : thrown)),
    );
  });
}

/** What a durable call may be told. */
export interface SubmitOptions
  extends Pick<ExecuteOptions, "identity" | "metadata" | "origin" | "requestId" | "signal"> {
  /**
   * Submitting again with the same key gives the call that is there already, per user, identity and operation, within the
   * duplicate window. At most 1,000 characters. @default every submit is a call of its own
   */
  readonly idempotencyKey?: string | undefined;
  /** Milliseconds to wait for the broker's acknowledgement. @default 5,000 */
  readonly timeoutMs?: number | undefined;
}

/** A call that is stored and will be run. */
export interface SubmittedCall {
  /** Fetches the result; everybody who has the handle can. */
  readonly requestId: string;
  /** True when the idempotency key stood for this call already. */
  readonly duplicate: boolean;
}

interface Submitter {
  readonly store: DurableStore;
  readonly user: string;
  readonly credentials: CredentialSource | undefined;
}

const INPUT_HEADER = "Waybill-Input-Hash";
const MAX_KEY = 1_000;

interface Draft {
  readonly address: RequestAddress;
  readonly requestId: string;
  readonly body: Uint8Array;
  readonly inputHash: string;
  readonly nonce: string;
  readonly msgId: string;
  readonly keyed: boolean;
}

/** A call as it is given to be stored. */
interface GivenCall {
  readonly operationId: string;
  readonly input: unknown;
  readonly options: SubmitOptions;
}

/** Stores a call; what comes of an earlier one under the same key or id is decided by what is stored of it. */
async function submitCall(by: Submitter, call: GivenCall, until: number): Promise<SubmittedCall> {
  const { store } = by;
  const { names } = store;
  const draft = await draftCall(by, call);
  const { address, nonce, requestId, msgId } = draft;
  if (call.options.requestId !== undefined) {
    const earlier = await claimId(store, draft, until);
    if (earlier !== undefined) return earlier;
  }
  const headers = { [REQUEST_ID_HEADER]: requestId, [INPUT_HEADER]: draft.inputHash };
  const subject = names.request(address);
  const partSubject = names.requestParts(address.user, address.token);
  const head = { stream: names.calls, subject, data: draft.body, nonce, headers, msgId, partSubject };
  const put = await writeRecord(store, head, until);
  if (put.kind === "stored") return { requestId, duplicate: false };
  const original = put.kind === "taken" ? put.by : await store.at(names.calls, put.sequence, until);
  if (original !== undefined) return settleWith(store, draft, original);
  throw new CallError(
    "UNAVAILABLE",
    `The call that the idempotency key stood for has just expired; submit it again.`,
  );
}

async function draftCall(
  { store, user, credentials }: Submitter,
  { operationId, input, options }: GivenCall,
): Promise<Draft> {
  const { identity, idempotencyKey: key } = options;
  assertKey(key);
  if (options.requestId !== undefined && !isRequestId(options.requestId)) {
    throw new TypeError("requestId must be 1 to 200 printable ASCII characters without spaces.");
  }
  const requestId = options.requestId ?? randomId();
  if (identity !== undefined && credentials === undefined) throw unproven(operationId);
  const credential = identity && (await credentials?.(identity, operationId, { requestId, input }));
  const request = createRequest({ requestId }, operationId, input, options, { credential });
  const keyed = key !== undefined;
  return {
    address: { user, operationId, token: requestToken(user, requestId) },
    requestId,
    body: encodeRequest(request, store.settings.limits.messageBytes),
    inputHash: hashInput(input),
    nonce: randomUUID(),
    msgId: keyed
      ? hashOf("key", user, identity?.subject ?? null, operationId, key)
      : hashOf("request", user, requestId),
    keyed,
  };
}

function assertKey(key: unknown): void {
  if (key === undefined || (typeof key === "string" && key !== "" && key.length <= MAX_KEY)) return;
  throw new TypeError(`idempotencyKey must be a string of 1 to ${MAX_KEY} characters.`);
}

/** Makes sure that an id chosen by the caller is used once, whatever the operation; gives the call that has it by the same key. */
async function claimId(store: DurableStore, draft: Draft, until: number): Promise<SubmittedCall | undefined> {
  const { names } = store;
  const { user, token } = draft.address;
  const owner = draft.keyed ? draft.msgId : draft.nonce;
  const data = new TextEncoder().encode(owner);
  const claim = { stream: names.calls, subject: names.claim(user, token), data, nonce: draft.nonce };
  const put = await store.put(claim, until);
  if (put.kind === "taken" && put.by.string() !== owner) throw idInUse();
  // Random ids claim nothing, and one may have been passed on.
  const earlier = await store.last(names.calls, names.anyRequest(user, token), until);
  return earlier === undefined ? undefined : settleWith(store, draft, earlier);
}

/** Answers with a call that was stored before, if it is the same one. */
function settleWith(store: DurableStore, draft: Draft, original: StoredMsg): SubmittedCall {
  const { header, subject } = original;
  const requestId = header.get(REQUEST_ID_HEADER);
  if (header.get(NONCE_HEADER) === draft.nonce) return { requestId: draft.requestId, duplicate: false };
  if (!draft.keyed || header.get(PubHeaders.MsgIdHdr) !== draft.msgId) throw idInUse();
  const { user, operationId } = draft.address;
  const expected = { user, operationId, token: requestToken(user, requestId) };
  if (subject !== store.names.request(expected)) {
    store.counters.forged += 1;
    throw new CallError("CONFLICT", "The idempotency key stands for a call that somebody else has stored.");
  }
  if (header.get(INPUT_HEADER) !== draft.inputHash) {
    throw new CallError(
      "CONFLICT",
      "The idempotency key stands for a call with another input; take a new key.",
    );
  }
  return { requestId, duplicate: true };
}

function idInUse(): CallError {
  return new CallError("CONFLICT", "The request id is in use already; leave it out to be given one.");
}

/** Hashes an input so that equal ones hash alike, whatever the order of their keys. */
export function hashInput(input: unknown): string {
  const text = JSON.stringify(toWire(input), sortKeys);
  return createHash("sha256").update(text).digest("base64url");
}

function sortKeys(_key: string, value: unknown): unknown {
  if (!isPlainObject(value)) return value;
  const sorted: Record<string, unknown> = {};
  for (const key of Object.keys(value).sort()) setOwn(sorted, key, value[key]);
  return sorted;
}

/** What a durable call that was submitted is asked. */
interface DurableQuery {
  readonly id: string;
  readonly operationId: string;
  /** How it ended; nothing while it has not. */
  look(): Promise<Ending | undefined>;
  result(options: TaskWaitOptions): Promise<ResponseEnvelope>;
}

/** A durable call as a task: it survives workers, callers and brokers, and nobody can end it. */
class DurableTask implements StartedTask {
  readonly id: string;
  readonly #query: DurableQuery;

  constructor(query: DurableQuery) {
    this.id = query.id;
    this.#query = query;
  }

  async status(): Promise<TaskState> {
    return this.#toState(await this.#query.look());
  }

  result(options: TaskWaitOptions = {}): Promise<ResponseEnvelope> {
    return this.#query.result(options);
  }

  /** Rejects with `NOT_IMPLEMENTED`: what is stored at the broker runs to its end. */
  async cancel(): Promise<void> {
    throw new CallError("NOT_IMPLEMENTED", "A durable call cannot be cancelled.", { stack: false });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TaskState> {
    const first = await this.status();
    yield first;
    if (first.status !== "working") return;
    await this.#query.result({}).catch(() => {});
    yield await this.status();
  }

  #toState(ending: Ending | undefined): TaskState {
    const { id, operationId } = this.#query;
    if (ending === undefined) return { id, operationId, status: "working" };
    if ("error" in ending) return { id, operationId, status: "failed", message: ending.error.message };
    return { id, operationId, status: isErrorEnvelope(ending.envelope) ? "failed" : "completed" };
  }
}
