import { type ResponseEnvelope, withFacts } from "../envelope/envelope.ts";
import { CallError, toCallError } from "../errors/errors.ts";
import { CursoredValue } from "../operation/with-cursor.ts";
import type { ExecuteOptions } from "../registry/executor.ts";
import type { OperationEntry } from "../registry/operation-entry.ts";
import type { RegistryHost } from "../registry/registry-host.ts";
import { CallContext, type CancellableScope, closeContext, openScope, withSignal } from "./call-context.ts";
import { type Cancellation, monotonicNow } from "./cancellation.ts";
import { findEntry, fromHook, type HookFrame, idOf, missing, nestHooks, refusalOf } from "./dispatch.ts";
import { checkedInput, conclude, parsedInput, toHandlerError } from "./execution.ts";

const STEPS_PER_TURN = 100;
const LONGEST_TURN_MS = 20;

type Step = IteratorResult<ResponseEnvelope, undefined>;

/**
 * Prepares a subscription. The options are read now, so that neither identity nor deadline can change later. Look-up,
 * access, validation and the handler follow when the first value is requested, on the same path as calls.
 */
export function subscribe(
  host: RegistryHost,
  target: unknown,
  input: unknown,
  options: ExecuteOptions | undefined,
  parent: CallContext | undefined,
): AsyncIterableIterator<ResponseEnvelope, undefined> {
  const id = idOf(target);
  const leaving = new AbortController();
  const scope = withSignal(openScope(host, id, options, parent), id, leaving.signal);
  return new Subscription(leaving, scope.cancellation, () => openStream(host, id, input, scope));
}

/** One run of a subscription, as its reader sees it. */
class Subscription implements AsyncIterableIterator<ResponseEnvelope, undefined> {
  readonly #leaving: AbortController;
  readonly #cancellation: Cancellation;
  readonly #open: () => AsyncIterator<ResponseEnvelope>;
  #stream: AsyncIterator<ResponseEnvelope> | undefined;
  #closing: Promise<unknown> | undefined;
  #lastStep: Promise<unknown> = Promise.resolve();
  #steps = 0;
  #lastTurn = monotonicNow();
  #stepping = false;
  #over = false;

  constructor(
    leaving: AbortController,
    cancellation: Cancellation,
    open: () => AsyncIterator<ResponseEnvelope>,
  ) {
    this.#leaving = leaving;
    this.#cancellation = cancellation;
    this.#open = open;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** A step that is requested before the previous one has ended waits for it, as in a generator. */
  next(): Promise<Step> {
    const step = this.#lastStep.then(() => this.#advance());
    this.#lastStep = step.catch(ignore);
    return step;
  }

  /** Ends the run: the handler's signal aborts and its `finally` runs, which is awaited unless the handler is busy. */
  async return(): Promise<IteratorReturnResult<undefined>> {
    if (this.#over) return DONE;
    this.#over = true;
    this.#leaving.abort();
    try {
      if (!this.#stepping) await this.#closing;
    } catch (thrown) {
      throw toCallError(thrown);
    }
    return DONE;
  }

  async #advance(): Promise<Step> {
    if (this.#over) return DONE;
    this.#stepping = true;
    try {
      if (++this.#steps % STEPS_PER_TURN === 0) await this.#giveWay();
      this.#stream ??= this.#start();
      const step = await this.#cancellation.race(this.#stream.next());
      const late = this.#cancellation.check();
      if (late !== undefined) throw late;
      if (step.done !== true) return step;
      this.#over = true;
      this.#cancellation.release();
    } catch (thrown) {
      // The reader has left; drop the error.
      if (this.#over) return DONE;
      this.#over = true;
      const error = toCallError(thrown);
      this.#cancellation.end(error);
      throw error;
    } finally {
      this.#stepping = false;
    }
    return DONE;
  }

  /** Yields to the event loop now and then, so that timers and aborts run even if the handler never waits. */
  async #giveWay(): Promise<void> {
    if (monotonicNow() - this.#lastTurn < LONGEST_TURN_MS) return;
    await new Promise((resolve) => setTimeout(resolve));
    this.#lastTurn = monotonicNow();
  }

  #start(): AsyncIterator<ResponseEnvelope> {
    const stream = this.#open();
    this.#cancellation.whenEnded(() => {
      this.#closing = close(stream);
      this.#closing.catch(ignore);
    });
    return stream;
  }
}

function openStream(
  host: RegistryHost,
  id: string,
  input: unknown,
  scope: CancellableScope,
): AsyncIterator<ResponseEnvelope> {
  const entry = findEntry(host, id, scope.parent !== undefined);
  const context = new CallContext(host, entry, id, scope);
  const open = (given: unknown): EnvelopeStream => {
    if (entry === undefined) throw missing(host, id, scope);
    const refusal = refusalOf(entry, id, scope, given, "subscribe") ?? scope.cancellation.check();
    if (refusal !== undefined) throw refusal;
    return new EnvelopeStream(entry, given, context);
  };
  if (host.subscribeHooks.length === 0) return open(input);
  const refusal =
    entry === undefined ? missing(host, id, scope) : refusalOf(entry, id, scope, input, "subscribe");
  const shown = refusal === undefined ? context : new CallContext(host, undefined, id, scope);
  const call = Object.freeze({
    operationId: id,
    operation: entry?.operation,
    input,
    context: shown,
    refusal,
  });
  const hooked = () =>
    nestHooks<AsyncIterable<ResponseEnvelope>, HookFrame>(
      host.subscribeHooks,
      { call },
      {
        last: (given) => openedLater(() => open(given), scope.cancellation),
        within: (frame, _, run) => run(frame),
      },
    );
  return throughHooks(hooked, refusal);
}

/** Opens a stream when it is first read, and closes it when the call ends, because a hook may be busy then. */
function openedLater(
  open: () => AsyncIterableIterator<ResponseEnvelope, undefined>,
  cancellation: Cancellation,
): AsyncIterable<ResponseEnvelope> {
  return {
    [Symbol.asyncIterator]() {
      let stream: AsyncIterator<ResponseEnvelope> | undefined;
      let forget = ignore;
      const start = () => {
        const opened = open();
        forget = cancellation.whenEnded(() => close(opened).catch(ignore));
        return opened;
      };
      return {
        async next() {
          stream ??= start();
          const step = await stream.next();
          if (step.done === true) forget();
          return step;
        },
        async return() {
          forget();
          return stream === undefined ? DONE : ((await close(stream)) ?? DONE);
        },
      };
    },
  };
}

/** Reads the stream that hooks return; a refused call stays refused, whatever they return. */
async function* throughHooks(
  hooked: () => AsyncIterable<ResponseEnvelope>,
  refusal: CallError | undefined,
): AsyncGenerator<ResponseEnvelope, undefined> {
  try {
    for await (const envelope of hooked()) {
      if (refusal !== undefined) break;
      yield fromHook(envelope);
    }
  } catch (thrown) {
    throw refusal ?? toCallError(thrown);
  }
  if (refusal !== undefined) throw refusal;
}

async function close(
  stream: AsyncIterator<ResponseEnvelope>,
): Promise<IteratorResult<ResponseEnvelope> | undefined> {
  return stream.return?.();
}

function ignore(): void {}

/** The end of an iteration. */
const DONE: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/**
 * What the handler of a subscription yields, each value wrapped and checked like the result of a call.
 *
 * Not a generator: leaving one waits for its pending step, and the handler's own iterator may wait for exactly that.
 */
class EnvelopeStream implements AsyncIterableIterator<ResponseEnvelope, undefined> {
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

  /** Can be called by a hook and by the end of the call; the handler's iterator is closed once. */
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
