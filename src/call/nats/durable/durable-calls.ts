import type { NatsConnection } from "@nats-io/transport-node";
import type { ResponseEnvelope } from "../../../core/envelope/response-meta.ts";
import { CallError } from "../../../core/errors/errors.ts";
import { monotonicNow, toDeadline } from "../../../core/execution/deadline.ts";
import { idOf } from "../../../core/execution/lookup.ts";
import type { AnyOperation, CallArguments } from "../../../core/operation/operation-types.ts";
import type { ExecuteOptions } from "../../../core/registry/executor.ts";
import type { CallCounters } from "../../call-counters.ts";
import { abortedError, overLimit } from "../../call-errors.ts";
import { assertSignal, type CredentialSource } from "../../call-options.ts";
import { isOperationId, operationNotFound } from "../../discovery/operation-id.ts";
import type { DurableCaller } from "../../durable-caller.ts";
import { NOBODY } from "../../wire/subjects.ts";
import { awaitResult } from "./await-result.ts";
import { assertToken, type DurableCallsOptions, readDurableOptions } from "./durable-options.ts";
import { DurableStore } from "./durable-store.ts";
import { settleWithin } from "./settle-within.ts";
import { type SubmitOptions, type SubmittedCall, submitCall } from "./submit-call.ts";

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
}

/** Milliseconds the broker has to acknowledge a call. */
const SUBMIT_MS = 5_000;

/** The asking side of durable calls: stores requests, and finds how they ended. */
export class DurableCalls implements DurableCaller {
  readonly #store: DurableStore;
  readonly #user: string;
  readonly #credentials: CredentialSource | undefined;
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
      settleWithin(patience, () => submitCall(by, operationId, input, options, until)),
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
    const { signal, timeoutMs = this.#store.settings.limits.deadlineMs } = options;
    const until = toDeadline(timeoutMs, monotonicNow());
    const submit = { ...options, timeoutMs: Math.min(timeoutMs, SUBMIT_MS) };
    const { requestId } = await this.submit(operationId, input, submit);
    return this.result(requestId, { signal, timeoutMs: Math.max(0, until - monotonicNow()) });
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
