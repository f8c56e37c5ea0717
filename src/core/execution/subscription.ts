import type { ResponseEnvelope } from "../envelope/envelope.ts";
import { type CallError, toCallError } from "../errors/errors.ts";
import type { ExecuteOptions } from "../registry/executor.ts";
import type { RegistryHost } from "../registry/registry-host.ts";
import { CallContext } from "./call-context.ts";
import { type CancellableScope, openScope, withSignal } from "./call-scope.ts";
import type { Cancellation } from "./cancellation.ts";
import { monotonicNow } from "./deadline.ts";
import { DONE, EnvelopeStream } from "./envelope-stream.ts";
import { fromHook, type HookFrame, nestHooks } from "./hooks.ts";
import { findEntry, idOf, missing, refusalOf } from "./lookup.ts";

const STEPS_PER_TURN = 100;
const LONGEST_TURN_MS = 20;

type Step = IteratorResult<ResponseEnvelope, undefined>;

/**
 * Prepares a subscription. The options are read now, so that neither identity nor deadline can be changed later; looking
 * up, access, validation and the handler follow when the first value is asked for, on the path that calls take too.
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

/** One run of a subscription, from the side of who reads it. */
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

  /** A step asked for before the last one is done waits for it, as with a generator. */
  next(): Promise<Step> {
    const step = this.#lastStep.then(() => this.#advance());
    this.#lastStep = step.catch(ignore);
    return step;
  }

  /** Leaves: the handler's signal aborts and its `finally` runs, which is waited for unless the handler is busy. */
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
      // Whoever has left does not hear of it.
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

  /** A handler that never waits would keep timers and aborts from being heard; now and then they get their turn. */
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

/** Opens a stream when it is read; it is closed by itself when the call ends, for a hook may be busy then. */
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

/** Reads what hooks make of a stream; a refusal stands whatever they answer. */
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
