import type { CallError } from "../../core/errors/errors.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";

type Handler = AnyOperation["handler"];

/** Counts the calls of a source's operations that are under way; a subscription counts until it ends. */
export class CallsInFlight {
  readonly #refusal: () => CallError | undefined;
  readonly #reword: (thrown: unknown) => unknown;
  /** The same operation is always given the same copy. */
  readonly #counted = new WeakMap<AnyOperation, AnyOperation>();
  readonly #waiting = new Set<() => void>();
  #running = 0;
  #heir: ((id: string) => AnyOperation | undefined) | undefined;

  /** `refusal` says why nothing can be called right now; `reword` gives what a call failed with as it is told. */
  constructor(
    refusal: () => CallError | undefined,
    reword: (thrown: unknown) => unknown = (thrown) => thrown,
  ) {
    this.#refusal = refusal;
    this.#reword = reword;
  }

  get running(): number {
    return this.#running;
  }

  /** A copy whose calls are counted; schemas that are worked out when first asked for stay so. */
  count(operation: AnyOperation): AnyOperation {
    const known = this.#counted.get(operation);
    if (known !== undefined) return known;
    const handler = operation.type === "subscription" ? this.#streaming(operation) : this.#calling(operation);
    const counted = Object.defineProperties(
      {},
      { ...Object.getOwnPropertyDescriptors(operation), handler: { value: handler, enumerable: true } },
    );
    Object.freeze(counted);
    this.#counted.set(operation, counted as AnyOperation);
    return counted as AnyOperation;
  }

  /** Sends calls that begin from now on, such as those that waited for their turn, to what has taken the place of their operation. */
  handOver(find: (id: string) => AnyOperation | undefined): void {
    this.#heir = find;
  }

  /** Resolves once nothing runs, or when the time is up. */
  idle(timeoutMs: number): Promise<void> {
    if (this.#running === 0 || timeoutMs <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(timeoutMs, 2 ** 31 - 1));
      this.#waiting.add(done);
    });
  }

  /** Lets go whoever waits, though calls may still run. */
  release(): void {
    for (const done of [...this.#waiting]) done();
  }

  #calling(operation: AnyOperation): Handler {
    return async (input, context) => {
      const heir = this.#heirOf(operation);
      if (heir !== undefined) return await heir.handler(input, context);
      const leave = this.#enter();
      try {
        return await operation.handler(input, context);
      } catch (thrown) {
        throw this.#reword(thrown);
      } finally {
        leave();
      }
    };
  }

  #streaming(operation: AnyOperation): Handler {
    return async (input, context) => {
      const heir = this.#heirOf(operation);
      if (heir !== undefined) return await heir.handler(input, context);
      const leave = this.#enter();
      try {
        const values: unknown = await operation.handler(input, context);
        const stream = new CountedStream(values as AsyncIterable<unknown>, leave, this.#reword);
        // Whoever has left already may never begin to read.
        context.signal.addEventListener("abort", () => stream.abandon(), { once: true });
        if (context.signal.aborted) stream.abandon();
        return stream;
      } catch (thrown) {
        leave();
        throw this.#reword(thrown);
      }
    };
  }

  /** One of another type would give what nobody asked for. */
  #heirOf({ id, type }: AnyOperation): AnyOperation | undefined {
    const heir = this.#heir?.(id);
    return heir?.type === type ? heir : undefined;
  }

  #enter(): () => void {
    const refusal = this.#refusal();
    if (refusal !== undefined) throw refusal;
    this.#running += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      this.#running -= 1;
      if (this.#running === 0) this.release();
    };
  }
}

/** A stream that tells once when it is over. */
class CountedStream implements AsyncIterable<unknown> {
  readonly #values: AsyncIterable<unknown>;
  readonly #leave: () => void;
  readonly #reword: (thrown: unknown) => unknown;
  #isRead = false;

  constructor(values: AsyncIterable<unknown>, leave: () => void, reword: (thrown: unknown) => unknown) {
    this.#values = values;
    this.#leave = leave;
    this.#reword = reword;
  }

  /** Ends what nobody has begun to read. */
  abandon(): void {
    if (!this.#isRead) this.#leave();
  }

  [Symbol.asyncIterator](): AsyncIterator<unknown> {
    this.#isRead = true;
    const [leave, reword] = [this.#leave, this.#reword];
    const iterator = this.#values[Symbol.asyncIterator]();
    const step = async (take: () => Promise<IteratorResult<unknown>>): Promise<IteratorResult<unknown>> => {
      try {
        const taken = await take();
        if (taken.done === true) leave();
        return taken;
      } catch (thrown) {
        leave();
        throw reword(thrown);
      }
    };
    return {
      next: () => step(() => iterator.next()),
      return: async (value?: unknown) => {
        try {
          return (await iterator.return?.(value)) ?? { done: true, value };
        } finally {
          leave();
        }
      },
    };
  }
}
