import { ownerOf } from "../../core/access/identity.ts";
import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { CallError, toCallError } from "../../core/errors/errors.ts";
import { LONGEST_DELAY } from "../../core/execution/deadline.ts";
import type { HookedCall } from "../../core/execution/hooks.ts";
import { isTurnedDown, turnDown } from "../../core/execution/turned-down.ts";
import { decodeEnvelope } from "../../core/wire/wire.ts";
import { digestOf } from "../../http/caller-digest.ts";
import type { HttpAnswer } from "../../http/exchange.ts";
import {
  type Ending,
  type IdempotencyLimits,
  IdempotentAnswers,
  readIdempotencyKey,
} from "../../openapi/server/idempotency.ts";
import { inputText } from "./call-key.ts";
import { writtenOrNone } from "./result-cache.ts";

/** A call that must not run twice. */
export interface KeyedCall {
  readonly operationId: string;
  /** Whose it is. */
  readonly owner: string;
  /** Who calls what under which key. */
  readonly key: string;
  /** What tells it from another call with the same key. */
  readonly fingerprint: string;
}

/** What a call came to, as it is kept: an envelope or an error, as text. */
const OK = 200;
const FAILED = 500;

/** Codes of calls that a registry elsewhere may have turned down: what it says of them does not tell. */
const MAY_NOT_HAVE_RUN = new Set(["NO_RESPONDER", "OPERATION_NOT_FOUND", "UNAUTHENTICATED"]);

/** Reads the key that a caller gave for a mutation, in its metadata; one that is none fails the call. */
export function keyedCall({ operationId, context, input }: HookedCall): KeyedCall | undefined {
  const given = context.metadata["idempotencyKey"];
  if (given === undefined) return undefined;
  try {
    const key = readIdempotencyKey(typeof given === "string" ? given : "");
    const owner = ownerOf(context.identity);
    const text = inputText(input);
    if (text === undefined) {
      throw new CallError(
        "VALIDATION_ERROR",
        "With an Idempotency-Key the input must be one that can be compared.",
      );
    }
    return {
      operationId,
      owner,
      key: JSON.stringify([owner, operationId, key]),
      fingerprint: JSON.stringify([text, digestOf(context.identity)]),
    };
  } catch (thrown) {
    throw turnDown(toCallError(thrown), operationId);
  }
}

/**
 * Runs calls with an idempotency key once. Results, tool errors and errors that would be the same again are repeated; a call that was turned
 * down or may be made again is forgotten; of one that was aborted or too late nobody knows what it did, and its key is used up.
 */
export class IdempotentCalls {
  readonly #answers: IdempotentAnswers;

  /** Where `isShared`, no one caller may take more than a quarter of the room. */
  constructor(limits: IdempotencyLimits, isShared: boolean) {
    this.#answers = new IdempotentAnswers(limits, isShared);
  }

  /** Tells callers apart from now on, or does not. */
  setShared(isShared: boolean): void {
    this.#answers.setShared(isShared);
  }

  /** Runs a call, or gives what it came to before, which `onRepeat` is told; `run` calls back when it comes to the operation. */
  async run(
    call: KeyedCall,
    signal: AbortSignal,
    run: (onStart: () => void) => Promise<ResponseEnvelope>,
    onRepeat: () => void,
  ): Promise<ResponseEnvelope> {
    let hasStarted = false;
    let ran: { readonly envelope: ResponseEnvelope } | { readonly error: CallError } | undefined;
    const repeatable = { ...call, signal, patienceMs: LONGEST_DELAY };
    const answer = await this.#answers
      .run(repeatable, async () => {
        ran = await settled(() =>
          run(() => {
            hasStarted = true;
          }),
        );
        if ("envelope" in ran) return ofEnvelope(ran.envelope);
        return ofError(ran.error, hasStarted ? endingOf(ran.error, call.operationId) : "passing");
      })
      .catch((thrown) => {
        // It never ran: the key was used for something else, or there is no room for it.
        throw turnDown(toCallError(thrown), call.operationId);
      });
    if (ran === undefined) {
      onRepeat();
      return fromAnswer(answer);
    }
    if ("error" in ran) throw ran.error;
    return ran.envelope;
  }
}

async function settled(
  run: () => Promise<ResponseEnvelope>,
): Promise<{ readonly envelope: ResponseEnvelope } | { readonly error: CallError }> {
  try {
    return { envelope: await run() };
  } catch (thrown) {
    return { error: toCallError(thrown) };
  }
}

function ofEnvelope(envelope: ResponseEnvelope): { readonly answer: HttpAnswer; readonly ending: Ending } {
  const body = writtenOrNone(envelope);
  return { answer: { status: OK, headers: {}, body }, ending: body === undefined ? "unknown" : "final" };
}

function ofError(error: CallError, ending: Ending): { readonly answer: HttpAnswer; readonly ending: Ending } {
  const body = JSON.stringify({ ...error.toJSON(), httpStatus: error.httpStatus });
  return { answer: { status: FAILED, headers: {}, body }, ending };
}

function endingOf(error: CallError, operationId: string): Ending {
  if (error.code === "TIMEOUT" || error.code === "ABORTED") return "unknown";
  const isPassing = error.retryable || isTurnedDown(error, operationId) || MAY_NOT_HAVE_RUN.has(error.code);
  return isPassing ? "passing" : "final";
}

function fromAnswer({ status, body }: HttpAnswer): ResponseEnvelope {
  if (status === OK) return decodeEnvelope(body as string);
  const { code, message, retryable, correctable, httpStatus, details } = JSON.parse(body as string);
  throw new CallError(code, message, { retryable, correctable, httpStatus, details, stack: false });
}
