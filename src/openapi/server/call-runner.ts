import { createHash } from "node:crypto";
import { type Identity, ownerOf } from "../../core/access/identity.ts";
import { isErrorEnvelope } from "../../core/envelope/envelope.ts";
import { CallError, isCallError, toCallError } from "../../core/errors/errors.ts";
import { isRequestId, randomId } from "../../core/execution/call-context.ts";
import { addAbortListener, LONGEST_DELAY, removeAbortListener } from "../../core/execution/cancellation.ts";
import type { IdempotencyStore } from "../../core/idempotency/idempotency-store.ts";
import {
  IdempotentCalls,
  type KeyEnding,
  keyEndingOf,
  type RepeatedCall,
} from "../../core/idempotency/idempotent-calls.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { CallSlots } from "../../core/limits/call-slots.ts";
import type { Metadata } from "../../core/operation/operation-context.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ExecuteOptions, Executor } from "../../core/registry/executor.ts";
import { takesLightSignals } from "../../core/registry/registry.ts";
import { type EndedCall, endCall, warnOfUnexpected } from "../../core/result/ended-call.ts";
import type { TaskRun } from "../../core/tasks/running-task.ts";
import { toWire } from "../../core/wire/wire.ts";
import type { StepUp } from "../../http/authentication.ts";
import { callerDigest } from "../../http/caller.ts";
import type { AnswerHeaders, AuthenticatedRequest, HttpAnswer } from "../../http/exchange.ts";
import type { CallEnding, HttpHandlerBounds, ReplayedCall } from "./http-handler-options.ts";
import { problemAnswer, requestError, type Warn } from "./problem-answer.ts";
import { type Representation, representationName, writeAnswer } from "./write-answer.ts";

/** A call that a client asks for, and how the answer is written. */
export interface WantedCall {
  readonly caller: AuthenticatedRequest;
  readonly operationId: string;
  readonly input: unknown;
  readonly representation: Representation;
  /** Milliseconds the caller will wait. */
  readonly timeoutMs: number;
  /** Whether the answer goes into a larger JSON document. */
  readonly nested?: boolean | undefined;
  readonly idempotencyKey?: string | undefined;
  /** Tells the input from others; only with a key. */
  readonly fingerprint?: string | undefined;
  /** Hears what the handler says while it runs. */
  readonly hears?: Pick<ExecuteOptions, "onProgress" | "onLog"> | undefined;
  /** Sees the call once it has ended, before it is written. */
  readonly onEnd?: ((call: EndedCall) => void) | undefined;
}

/** What calls run on, and within which bounds. */
interface CallRunnerOptions {
  readonly bounds: HttpHandlerBounds;
  readonly slots: CallSlots;
  /** How clients are told to authenticate. */
  readonly challenge: string;
  /** Writes what a 403 for lack of scopes says. */
  readonly stepUp: StepUp | undefined;
  /** Whether callers are told apart. */
  readonly isShared: boolean;
  /** Where idempotency keys are kept. @default in this process */
  readonly keys: IdempotencyStore | undefined;
  /** Hears of calls that were not run, because they repeat others. */
  readonly onReplay: ((call: ReplayedCall) => void) | undefined;
  readonly warn: Warn;
}

/** Runs calls, so many at a time, and writes what they come to. */
export class CallRunner {
  readonly #executor: Executor;
  readonly #options: CallRunnerOptions;
  readonly #idempotent: IdempotentCalls;
  readonly #takesLightSignals: boolean;
  /** What ends the calls that go on although their client has left. */
  readonly #detached = new Set<AbortController>();

  constructor(executor: Executor, options: CallRunnerOptions) {
    this.#executor = executor;
    this.#options = options;
    this.#takesLightSignals = takesLightSignals(executor);
    this.#idempotent = new IdempotentCalls(options.bounds, options.isShared, options.keys);
  }

  /** Runs a call, or repeats what it came to before; a call that failed is an answer too. */
  run(wanted: WantedCall): Promise<HttpAnswer> {
    if (wanted.idempotencyKey === undefined) return this.#run(wanted, wanted.caller.request.signal);
    const operation = this.#find(wanted.operationId);
    // The call will say that there is none.
    if (operation === undefined) return this.#run(wanted, wanted.caller.request.signal);
    return this.#runOnce(wanted, operation);
  }

  async #runOnce(wanted: WantedCall, operation: AnyOperation): Promise<HttpAnswer> {
    const { idempotencyKey, fingerprint, caller, operationId, representation, nested = false } = wanted;
    const { identity, requestId, request } = caller;
    // What a call came to is told to nobody who could not make it now.
    const refusal = accessRefusal(this.#executor, operation, identity);
    if (refusal !== undefined) {
      return problemAnswer(refusal, requestId, this.errorHeaders(refusal, caller));
    }
    const startedAt = performance.now();
    const same = [fingerprint, representationName(representation), nested, callerDigest(identity)];
    const call = {
      owner: ownerOf(identity),
      key: JSON.stringify([operationId, nested, idempotencyKey]),
      fingerprint: JSON.stringify(same),
      signal: request.signal,
      patienceMs: wanted.timeoutMs,
    };
    return this.#idempotent.run<HttpAnswer>(call, {
      run: () => this.#runDetached(wanted),
      repeat: async (repeated) => {
        this.#tellOfReplay(wanted, { ...endingOfCall(repeated), operation, startedAt });
        const answer = await this.#write({ operationId, operation, identity, ...repeated }, wanted);
        return { ...answer, headers: { ...answer.headers, "idempotency-replayed": "true" } };
      },
    });
  }

  /** Tells of a call that it was not run; a listener that throws changes nothing about the answer. */
  #tellOfReplay(
    { input, caller, idempotencyKey }: WantedCall,
    { startedAt, ...ended }: CallEnding & { readonly operation: AnyOperation; readonly startedAt: number },
  ): void {
    const { onReplay, warn } = this.#options;
    if (onReplay === undefined) return;
    const { requestId, identity } = caller;
    const metadata = this.metadata(caller, idempotencyKey);
    const durationMs = performance.now() - startedAt;
    try {
      onReplay({ input, requestId, identity, metadata, durationMs, ...ended });
    } catch (thrown) {
      warn("The listener for repeated calls failed.", thrown);
    }
  }

  /** Ends the calls whose clients may have left. */
  abort(error: CallError): void {
    for (const controller of this.#detached) controller.abort(error);
  }

  /** The error for a subscription that is called like anything else. */
  subscriptionError(operationId: string, identity: Identity | undefined): CallError | undefined {
    const operation = this.#find(operationId);
    if (operation?.type !== "subscription") return undefined;
    if (accessRefusal(this.#executor, operation, identity) !== undefined) return undefined;
    const message = `"${operationId}" is a subscription, which a batch cannot hold: use its own address, or /call.`;
    return requestError("VALIDATION_ERROR", message);
  }

  /** What handlers see of a request. */
  metadata({ traceparent, tracestate }: AuthenticatedRequest, idempotencyKey?: string): Metadata {
    const metadata: Record<string, string> = { traceparent };
    if (tracestate !== undefined) metadata["tracestate"] = tracestate;
    if (idempotencyKey !== undefined) metadata["idempotencyKey"] = idempotencyKey;
    return metadata;
  }

  /** Runs a call that is a task, for as long as that may run; with a key, or repeats what its first call came to. */
  async runAsTask(wanted: WantedCall, run: TaskRun): Promise<EndedCall> {
    const operation = this.#find(wanted.operationId);
    const { caller, operationId, idempotencyKey, fingerprint } = wanted;
    const { identity } = caller;
    const call = (): Promise<EndedCall> =>
      endCall(this.#executor, operationId, wanted.input, {
        requestId: caller.requestId,
        identity,
        signal: run.signal,
        onProgress: run.onProgress,
        metadata: this.metadata(caller, idempotencyKey),
        caller: { task: run.link },
      });
    if (idempotencyKey === undefined || operation === undefined) return await call();
    const same = [fingerprint, "task", false, callerDigest(identity)];
    const keyed = {
      owner: ownerOf(identity),
      key: JSON.stringify([operationId, false, idempotencyKey]),
      fingerprint: JSON.stringify(same),
      signal: run.signal,
      patienceMs: LONGEST_DELAY,
    };
    return await this.#idempotent.run<EndedCall>(keyed, {
      run: async () => {
        const answer = await call();
        return { answer, end: keyEndingOf(operationId, answer) };
      },
      repeat: (repeated) => ({ operationId, operation, identity, ...repeated }),
    });
  }

  #find(operationId: string): AnyOperation | undefined {
    const operation = this.#executor.get(operationId);
    return operation?.visibility === "internal" ? undefined : operation;
  }

  /** Runs a call to its end although its client may leave: a client that comes back with the same key is told what it came to. */
  async #runDetached(wanted: WantedCall): Promise<{ readonly answer: HttpAnswer; readonly end: KeyEnding }> {
    const controller = new AbortController();
    this.#detached.add(controller);
    let ran: EndedCall | undefined;
    try {
      const answer = await this.#run(wanted, controller.signal, (call) => {
        ran = call;
      });
      return {
        answer,
        end: ran === undefined ? { ending: "passing" } : keyEndingOf(wanted.operationId, ran),
      };
    } finally {
      this.#detached.delete(controller);
    }
  }

  async #run(
    wanted: WantedCall,
    signal: AbortSignal,
    onRan?: (call: EndedCall) => void,
  ): Promise<HttpAnswer> {
    const { caller } = wanted;
    const { slots } = this.#options;
    const owner = ownerOf(caller.identity);
    try {
      slots.take(owner);
    } catch (thrown) {
      if (!isCallError(thrown)) throw thrown;
      return problemAnswer(thrown, caller.requestId);
    }
    try {
      const ran = await this.#call(wanted, signal);
      onRan?.(ran);
      this.#report(ran);
      const call = endedByUs(ran, signal);
      wanted.onEnd?.(call);
      const answer = this.#write(call, wanted);
      return answer instanceof Promise ? await answer : answer;
    } finally {
      // What was answered takes as much room as the call until the client has it.
      const { request } = caller;
      if (request.onSent === undefined) slots.giveBack(owner);
      else request.onSent(() => slots.giveBack(owner));
    }
  }

  /** Writes an ended call; that its result cannot be written changes nothing about that it ran. */
  #write(
    call: EndedCall,
    { representation, nested = false, caller }: WantedCall,
  ): Promise<HttpAnswer> | HttpAnswer {
    const fault = (thrown: unknown): HttpAnswer => {
      if (!isCallError(thrown)) throw thrown;
      return problemAnswer(thrown, call.requestId);
    };
    try {
      const answer = writeAnswer(call, { representation, nested, caller, errorHeaders: this.errorHeaders });
      return answer instanceof Promise ? answer.catch(fault) : answer;
    } catch (thrown) {
      return fault(thrown);
    }
  }

  /** What an answer with this error says beyond its problem. */
  readonly errorHeaders = (
    { httpStatus: status, failure }: CallError,
    { request, identity }: AuthenticatedRequest,
  ): AnswerHeaders | undefined => {
    if (status === 401) return { "www-authenticate": this.#options.challenge };
    if (status !== 403 || failure?.reason !== "caller-scope" || identity === undefined) return undefined;
    const challenge = this.#options.stepUp?.(request, identity, failure.scopes ?? []);
    return challenge === undefined ? undefined : { "www-authenticate": challenge };
  };

  #report(call: EndedCall): void {
    if ("error" in call.outcome) warnOfUnexpected(this.#options.warn, call.outcome.error, call);
  }

  #call(wanted: WantedCall, signal: AbortSignal): Promise<EndedCall> {
    if (this.#takesLightSignals || signal instanceof AbortSignal) return this.#end(wanted, signal);
    return withPlatformSignal(signal, (own) => this.#end(wanted, own));
  }

  #end(wanted: WantedCall, signal: AbortSignal): Promise<EndedCall> {
    const { caller, operationId, input, timeoutMs, idempotencyKey, hears } = wanted;
    return endCall(this.#executor, operationId, input, {
      ...hears,
      requestId: caller.requestId,
      identity: caller.identity,
      signal,
      timeoutMs: Math.min(timeoutMs, this.#options.bounds.timeoutMs),
      metadata: this.metadata(caller, idempotencyKey),
    });
  }
}

/** The error of a call that this side ended is the reason it was ended for; a client that left hears nothing anyway. */
function endedByUs(call: EndedCall, signal: AbortSignal): EndedCall {
  const { outcome } = call;
  const wasEnded = signal.aborted && "error" in outcome && outcome.error.code === "ABORTED";
  return wasEnded && isCallError(signal.reason) ? { ...call, outcome: { error: signal.reason } } : call;
}

/** Only a registry of ours knows light signals, which may live longer than a call. */
async function withPlatformSignal<T>(signal: AbortSignal, run: (own: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const listener = { onAbort: (from: AbortSignal): void => controller.abort(from.reason) };
  if (signal.aborted) listener.onAbort(signal);
  else addAbortListener(signal, listener);
  try {
    return await run(controller.signal);
  } finally {
    removeAbortListener(signal, listener);
  }
}

/** Says how a call ended, without what it came to. */
function endingOfCall({ outcome }: RepeatedCall): CallEnding {
  if ("error" in outcome) return { outcome: "call_error", code: outcome.error.code };
  const { envelope } = outcome;
  if (!isErrorEnvelope(envelope)) return { outcome: "ok" };
  const { code } = envelope.meta.waybill ?? {};
  return { outcome: "tool_error", ...(code !== undefined && { code: String(code).slice(0, 64) }) };
}

/** Tells one input from another, however long they are. */
export function fingerprint(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("base64");
}

/** The reason a caller may not call an operation at all, whatever the input; it comes before anything that is wrong with a request. */
export function accessRefusal(
  executor: Executor,
  { id, access }: AnyOperation,
  identity: Identity | undefined,
): CallError | undefined {
  if (access === undefined || executor.list({ identity }).some((operation) => operation.id === id)) {
    return undefined;
  }
  const code = identity === undefined ? "UNAUTHENTICATED" : "ACCESS_DENIED";
  return new CallError(code, undefined, { stack: false });
}

/** A call by the id of its operation. */
export interface GenericCall {
  readonly operationId: string;
  readonly input: unknown;
  readonly timeoutMs?: number | undefined;
}

const MEMBERS = ["operation", "input", "timeoutMs"];

/** Reads a generic call; anything else is a `CallError`. */
export function readGenericCall(value: unknown): GenericCall {
  if (!isPlainObject(value) || typeof value["operation"] !== "string") {
    throw requestError(
      "VALIDATION_ERROR",
      'A call is an object such as { "operation": "namespace.name", "input": … }.',
    );
  }
  const unknown = Object.keys(value).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) {
    const shown = JSON.stringify(unknown.slice(0, 80));
    throw requestError("VALIDATION_ERROR", `A call has no member ${shown}, only ${MEMBERS.join(", ")}.`);
  }
  const { operation, input, timeoutMs } = value;
  const isTime = typeof timeoutMs === "number" && timeoutMs >= 0;
  if (timeoutMs !== undefined && !isTime) {
    throw requestError("VALIDATION_ERROR", "timeoutMs must be a number of milliseconds, 0 or more.");
  }
  return { operationId: operation, input, timeoutMs: isTime ? timeoutMs : undefined };
}

/** What all calls of a batch have in common. */
interface BatchOptions {
  readonly caller: AuthenticatedRequest;
  readonly representation: Representation;
  readonly timeoutMs: number;
  readonly idempotencyKey: string | undefined;
  /** Calls in one batch. */
  readonly limit: number;
}

/** Characters of all answers of a batch together, as JSON: they are held until the last call has ended. */
const BATCH_CHARACTERS = 67_108_864;

/** What the answers of a batch may still hold. */
interface BatchRoom {
  characters: number;
}

/** Runs the calls of a batch at the same time and answers them in their order; one that fails changes nothing for the others. */
export async function runBatch(
  runner: CallRunner,
  value: unknown,
  options: BatchOptions,
): Promise<HttpAnswer> {
  if (!Array.isArray(value)) throw requestError("VALIDATION_ERROR", "A batch is a list of calls.");
  if (value.length > options.limit) {
    const message = `A batch holds at most ${options.limit} calls; split it.`;
    throw requestError("TOO_LARGE", message, { details: { limit: options.limit } });
  }
  const room: BatchRoom = { characters: BATCH_CHARACTERS };
  const answers = await Promise.all(
    value.map((item, index) => runItem(runner, item, { ...options, index, room })),
  );
  const headers = { "content-type": "application/json", "cache-control": "no-store" };
  return { status: 200, headers, body: `[${answers.map(writeItem).join(",")}]` };
}

async function runItem(
  runner: CallRunner,
  item: unknown,
  {
    caller,
    representation,
    timeoutMs,
    idempotencyKey,
    index,
    room,
  }: BatchOptions & { readonly index: number; readonly room: BatchRoom },
): Promise<HttpAnswer> {
  const numbered = `${caller.requestId}.${index}`;
  const requestId = isRequestId(numbered) ? numbered : randomId();
  try {
    const { operationId, input, timeoutMs: own = timeoutMs } = readGenericCall(item);
    const wrongWay = runner.subscriptionError(operationId, caller.identity);
    if (wrongWay !== undefined) throw wrongWay;
    const answer = await runner.run({
      caller: { ...caller, requestId },
      operationId,
      input,
      representation,
      timeoutMs: Math.min(own, timeoutMs),
      nested: true,
      ...(idempotencyKey !== undefined && {
        // No caller can come to the same key by chance.
        idempotencyKey: fingerprint(`${idempotencyKey} ${index}`),
        fingerprint: fingerprint(JSON.stringify(toWire(item))),
      }),
    });
    const characters = typeof answer.body === "string" ? answer.body.length : 0;
    if (characters > room.characters) throw noRoom();
    room.characters -= characters;
    return { ...answer, headers: { ...answer.headers, "x-request-id": requestId } };
  } catch (thrown) {
    return problemAnswer(toCallError(thrown), requestId, { "x-request-id": requestId });
  }
}

function noRoom(): CallError {
  const message = `The call has run, but the answers of a batch have at most ${BATCH_CHARACTERS} characters: make it alone.`;
  return requestError("TOO_LARGE", message, { details: { limit: BATCH_CHARACTERS } });
}

/** Every body is JSON text here, or nothing. */
function writeItem({ status, headers, body }: HttpAnswer): string {
  const shown = `"status":${status},"headers":${JSON.stringify(headers)}`;
  return typeof body === "string" ? `{${shown},"body":${body}}` : `{${shown}}`;
}
