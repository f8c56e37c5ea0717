import { createHash } from "node:crypto";
import { type Identity, ownerOf } from "../../core/access/identity.ts";
import { isErrorEnvelope } from "../../core/envelope/envelope.ts";
import { type CallError, isCallError } from "../../core/errors/errors.ts";
import { addAbortListener, removeAbortListener } from "../../core/execution/abort-listeners.ts";
import {
  IdempotentCalls,
  type KeyEnding,
  keyEndingOf,
  type RepeatedCall,
} from "../../core/idempotency/idempotent-calls.ts";
import type { CallSlots } from "../../core/limits/call-slots.ts";
import type { Metadata } from "../../core/operation/operation-context.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { Executor } from "../../core/registry/executor.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { type EndedCall, endCall } from "../../core/result/ended-call.ts";
import { digestOf } from "../../http/caller-digest.ts";
import type { AnswerHeaders, AuthenticatedRequest, HttpAnswer } from "../../http/exchange.ts";
import { type Representation, representationName } from "./accept.ts";
import { accessRefusal } from "./access-first.ts";
import type { HttpHandlerBounds } from "./check-handler-options.ts";
import type { CallEnding, ReplayedCall } from "./http-handler-options.ts";
import { problemAnswer, requestError } from "./problem-answer.ts";
import { type Warn, warnOfUnexpected } from "./warnings.ts";
import { writeAnswer } from "./write-answer.ts";

/** A call somebody wants, and how the answer is to look. */
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
  /** Sees the call once it has ended, before it is written. */
  readonly onEnd?: ((call: EndedCall) => void) | undefined;
}

/** What calls run on, and within which bounds. */
export interface CallRunnerOptions {
  readonly bounds: HttpHandlerBounds;
  readonly slots: CallSlots;
  /** How clients are told to authenticate. */
  readonly challenge: string;
  /** Whether callers are told apart. */
  readonly isShared: boolean;
  /** Hears of calls that were not run, because they repeat others. */
  readonly onReplay: ((call: ReplayedCall) => void) | undefined;
  readonly warn: Warn;
}

/** Runs calls, so many at a time, and writes what they come to. */
export class CallRunner {
  readonly #executor: Executor;
  readonly #options: CallRunnerOptions;
  readonly #idempotent: IdempotentCalls;
  readonly #takesAnySignal: boolean;
  /** What ends the calls that go on although their client has left. */
  readonly #detached = new Set<AbortController>();

  constructor(executor: Executor, options: CallRunnerOptions) {
    this.#executor = executor;
    this.#options = options;
    this.#takesAnySignal = executor instanceof OperationRegistry;
    this.#idempotent = new IdempotentCalls(options.bounds, options.isShared);
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
      return problemAnswer(refusal, requestId, this.errorHeaders(refusal.httpStatus));
    }
    const startedAt = performance.now();
    const same = [fingerprint, representationName(representation), nested, digestOf(identity)];
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

  /** Tells of a call that it was not run; whoever hears of it badly changes nothing about the answer. */
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
      warn("Whoever hears of repeated calls failed.", thrown);
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

  #find(operationId: string): AnyOperation | undefined {
    const operation = this.#executor.get(operationId);
    return operation?.visibility === "internal" ? undefined : operation;
  }

  /** Runs a call to its end although its client may leave: whoever comes back with the same key is told what it came to. */
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
  #write(call: EndedCall, { representation, nested = false }: WantedCall): Promise<HttpAnswer> | HttpAnswer {
    const fault = (thrown: unknown): HttpAnswer => {
      if (!isCallError(thrown)) throw thrown;
      return problemAnswer(thrown, call.requestId);
    };
    try {
      const answer = writeAnswer(call, { representation, nested, errorHeaders: this.errorHeaders });
      return answer instanceof Promise ? answer.catch(fault) : answer;
    } catch (thrown) {
      return fault(thrown);
    }
  }

  /** What an answer with this status says beyond its problem. */
  readonly errorHeaders = (status: number): AnswerHeaders | undefined =>
    status === 401 ? { "www-authenticate": this.#options.challenge } : undefined;

  #report(call: EndedCall): void {
    if ("error" in call.outcome) warnOfUnexpected(this.#options.warn, call.outcome.error, call);
  }

  #call(wanted: WantedCall, signal: AbortSignal): Promise<EndedCall> {
    if (this.#takesAnySignal || signal instanceof AbortSignal) return this.#end(wanted, signal);
    return withPlatformSignal(signal, (own) => this.#end(wanted, own));
  }

  #end(wanted: WantedCall, signal: AbortSignal): Promise<EndedCall> {
    const { caller, operationId, input, timeoutMs, idempotencyKey } = wanted;
    return endCall(this.#executor, operationId, input, {
      requestId: caller.requestId,
      identity: caller.identity,
      signal,
      timeoutMs: Math.min(timeoutMs, this.#options.bounds.timeoutMs),
      metadata: this.metadata(caller, idempotencyKey),
    });
  }
}

/** Whoever ended a call from this side says why; a client that left hears nothing anyway. */
function endedByUs(call: EndedCall, signal: AbortSignal): EndedCall {
  const { outcome } = call;
  const wasEnded = signal.aborted && "error" in outcome && outcome.error.code === "ABORTED";
  return wasEnded && isCallError(signal.reason) ? { ...call, outcome: { error: signal.reason } } : call;
}

/** Only a registry of ours knows the light signals of connections, which live longer than a call. */
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
