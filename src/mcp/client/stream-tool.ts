import { mcpEnvelope, type ResponseEnvelope, type ResultFacts } from "../../core/envelope/envelope.ts";
import { CallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { type CursoredValue, withCursor } from "../../core/operation/with-cursor.ts";
import { decodeEnvelope } from "../../core/wire/wire.ts";
import { YIELD_META_KEY } from "../meta-keys.ts";

type Value = ResponseEnvelope | CursoredValue<ResponseEnvelope>;

/** How the values of a subscription behind a tool are fetched. */
export interface StreamRun {
  /** Values that wait for a slow reader. */
  readonly limit: number;
  /** Ends it from outside. @default it ends by itself or by leaving the loop */
  readonly signal?: AbortSignal | undefined;
  /** Masks what is secret in a value. @default values are given as they come */
  mask?(envelope: ResponseEnvelope): ResponseEnvelope;
  /** Runs the call until it is over; rejects with a `CallError`. */
  run(
    onProgress: (progress: Readonly<Record<string, unknown>>) => void,
    signal: AbortSignal,
  ): Promise<unknown>;
}

/**
 * The values of a subscription that Waybill serves as a tool: each comes in a progress notification, the call ends with the last.
 * Nothing is sent before the first value is asked for; leaving the loop cancels the call.
 */
export class ToolStream implements AsyncIterableIterator<Value, undefined> {
  readonly #stream: StreamRun;
  readonly #leaving = new AbortController();
  readonly #waiting: Value[] = [];
  #started = false;
  #over = false;
  #failure: { readonly error: unknown } | undefined;
  readonly #abort = () => this.#leaving.abort(this.#stream.signal?.reason);
  #wake: (() => void) | undefined;

  constructor(stream: StreamRun) {
    this.#stream = stream;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Value, undefined>> {
    if (!this.#started) this.#start();
    while (this.#waiting.length === 0 && !this.#over) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const value = this.#waiting.shift();
    if (value !== undefined) return { done: false, value };
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure.error;
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#started = true;
    this.#waiting.length = 0;
    this.#end();
    this.#leaving.abort();
    return { done: true, value: undefined };
  }

  #start(): void {
    this.#started = true;
    const { signal } = this.#stream;
    if (signal?.aborted) this.#abort();
    else signal?.addEventListener("abort", this.#abort, { once: true });
    const onProgress = (progress: Readonly<Record<string, unknown>>) => this.#hear(progress);
    this.#stream.run(onProgress, this.#leaving.signal).then(
      () => this.#end(),
      (error: unknown) => this.#end({ error }),
    );
  }

  #hear(progress: Readonly<Record<string, unknown>>): void {
    if (this.#over) return;
    try {
      const value = readYield(progress, (envelope) => this.#stream.mask?.(envelope) ?? envelope);
      if (value === undefined) return;
      if (this.#waiting.length >= this.#stream.limit) throw tooSlow(this.#stream.limit);
      this.#waiting.push(value);
      this.#wake?.();
    } catch (error) {
      this.#end({ error });
      this.#leaving.abort();
    }
  }

  #end(failure?: { readonly error: unknown }): void {
    if (!this.#over) this.#failure = failure;
    this.#over = true;
    this.#stream.signal?.removeEventListener("abort", this.#abort);
    this.#wake?.();
  }
}

function tooSlow(limit: number): CallError {
  return new CallError(
    "RESOURCE_EXHAUSTED",
    `More than ${limit} values of the subscription wait to be read.`,
  );
}

/** The value in a progress notification; nothing in one that is about something else. */
function readYield(
  progress: Readonly<Record<string, unknown>>,
  mask: (envelope: ResponseEnvelope) => ResponseEnvelope,
): Value | undefined {
  const meta = progress["_meta"];
  if (!isPlainObject(meta) || !Object.hasOwn(meta, YIELD_META_KEY)) return undefined;
  const text = meta[YIELD_META_KEY];
  if (typeof text !== "string")
    throw new CallError("OUTPUT_INVALID", "A value of the subscription is no text.");
  const { data, meta: told } = decodeEnvelope(text);
  const { cursor, sequence: _counted, ...facts }: ResultFacts = told.waybill ?? {};
  const isMcp = told.source === "mcp";
  // What it says of itself is not taken over: it came from an MCP server, whoever made it there.
  const given = mcpEnvelope(data, {
    isError: told.isError === true,
    content: isMcp ? told.content : [],
    ...(isMcp && Object.hasOwn(told, "structuredContent") && { structuredContent: told.structuredContent }),
    waybill: facts,
  });
  const envelope = mask(given);
  if (typeof cursor !== "string") return envelope;
  const { data: shown } = mask(mcpEnvelope(cursor, { isError: false, content: [] }));
  return withCursor(envelope, String(shown));
}
