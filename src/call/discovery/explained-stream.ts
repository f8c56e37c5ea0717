import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";

type Step = IteratorResult<ResponseEnvelope, undefined>;
type Envelopes = AsyncIterableIterator<ResponseEnvelope, undefined>;

const DONE: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/**
 * Passes a subscription on, with its errors put in other words.
 *
 * Not a generator: leaving one waits for its pending step, and what it reads may be waiting for exactly that.
 */
export class ExplainedStream implements Envelopes {
  readonly #values: Envelopes;
  readonly #explain: (thrown: unknown) => unknown;

  constructor(values: Envelopes, explain: (thrown: unknown) => unknown) {
    this.#values = values;
    this.#explain = explain;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<Step> {
    try {
      return await this.#values.next();
    } catch (thrown) {
      throw this.#explain(thrown);
    }
  }

  async return(): Promise<Step> {
    return (await this.#values.return?.()) ?? DONE;
  }
}

/** A subscription that fails when it is first asked for a value, as those of a local registry do. */
export class FailedStream implements Envelopes {
  readonly #error: unknown;
  #over = false;

  constructor(error: unknown) {
    this.#error = error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<Step> {
    if (this.#over) return DONE;
    this.#over = true;
    throw this.#error;
  }

  async return(): Promise<Step> {
    this.#over = true;
    return DONE;
  }
}
