import { type ResponseEnvelope, withFacts } from "../envelope/envelope.ts";
import { CallError } from "../errors/errors.ts";
import { CursoredValue } from "../operation/with-cursor.ts";
import type { OperationEntry } from "../registry/operation-entry.ts";
import { type CallContext, closeContext } from "./call-context.ts";
import { conclude } from "./execution.ts";
import { toHandlerError } from "./handler-error.ts";
import { checkedInput, parsedInput } from "./input.ts";

/** The end of an iteration. */
export const DONE: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/**
 * What the handler of a subscription yields, each value wrapped and checked like the result of a call.
 *
 * Not a generator: leaving one waits for its pending step, and the handler's own iterator may wait for exactly that.
 */
export class EnvelopeStream implements AsyncIterableIterator<ResponseEnvelope, undefined> {
  readonly #entry: OperationEntry;
  readonly #input: unknown;
  readonly #context: CallContext;
  #values: AsyncIterator<unknown> | undefined;
  #sequence = 0;
  #left = false;
  #closing: Promise<IteratorReturnResult<undefined>> | undefined;

  constructor(entry: OperationEntry, input: unknown, context: CallContext) {
    this.#entry = entry;
    this.#input = input;
    this.#context = context;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<ResponseEnvelope, undefined>> {
    if (this.#left) return DONE;
    const input = this.#values === undefined ? await this.#checkedInput() : undefined;
    try {
      this.#values ??= await this.#open(input);
      const step = await this.#values.next();
      if (step.done !== true) return { done: false, value: await this.#wrap(step.value) };
    } catch (thrown) {
      throw toHandlerError(this.#entry, thrown);
    }
    closeContext(this.#context);
    return DONE;
  }

  /** May be called by a hook and by the end of the call; the handler's iterator hears of it once. */
  return(): Promise<IteratorReturnResult<undefined>> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<IteratorReturnResult<undefined>> {
    this.#left = true;
    closeContext(this.#context);
    try {
      await this.#values?.return?.();
    } catch (thrown) {
      throw toHandlerError(this.#entry, thrown);
    }
    return DONE;
  }

  #checkedInput(): unknown {
    const { validate } = this.#entry.input;
    if (validate === undefined) return checkedInput(this.#entry, this.#input, this.#context);
    return parsedInput(this.#entry, this.#input, validate, this.#context);
  }

  async #open(input: unknown): Promise<AsyncIterator<unknown>> {
    const entry = this.#entry;
    if (this.#left) throw new CallError("ABORTED");
    const stream: unknown = await entry.handler.call(entry.operation, input as never, this.#context);
    const values = iteratorOf(stream);
    if (this.#left) await values.return?.();
    return values;
  }

  async #wrap(yielded: unknown): Promise<ResponseEnvelope> {
    const sequence = this.#sequence++;
    if (!(yielded instanceof CursoredValue))
      return withFacts(await conclude(this.#entry, yielded), { sequence });
    const { value, cursor } = yielded;
    return withFacts(await conclude(this.#entry, value), { sequence, cursor });
  }
}

function iteratorOf(stream: unknown): AsyncIterator<unknown> {
  const iterate = (stream as AsyncIterable<unknown> | null | undefined)?.[Symbol.asyncIterator];
  if (typeof iterate === "function") return iterate.call(stream);
  throw new TypeError(
    "The handler of a subscription must return an async iterable, such as an async generator.",
  );
}
