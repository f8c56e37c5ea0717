import { CallError } from "../../core/errors/errors.ts";
import { addAbortListener, removeAbortListener } from "../../core/execution/abort-listeners.ts";
import { monotonicNow } from "../../core/execution/deadline.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import type { McpExtensions } from "../extensions.ts";
import {
  type AskableCapabilities,
  assertAskable,
  checkedAnswer,
  readElicitAnswer,
  readRoots,
  readSampleAnswer,
} from "./caller-answers.ts";
import type { Exchange } from "./exchange.ts";
import type { PeerRequest } from "./peer-request.ts";

/** A question as an `input_required` result embeds it. */
interface EmbeddedRequest {
  readonly method: "elicitation/create" | "sampling/createMessage" | "roots/list";
  readonly params?: object;
}

interface Question {
  readonly request: EmbeddedRequest;
  /** Tells whether the answer was one. */
  take(answer: unknown): boolean;
  reject(error: CallError): void;
}

/** A handler that may ask questions its client answers in a later request; see `WaitingCalls`. */
export class SuspendableCall<T> {
  readonly #exchange: Exchange;
  readonly #can: AskableCapabilities;
  readonly #extensions: McpExtensions;
  readonly #assertRoom: () => void;
  readonly #controller = new AbortController();
  readonly #questions = new Map<string, Question>();
  /** Answers that came with the very first request, before anything was asked. */
  readonly #given: Map<string, unknown>;
  #result: Promise<T> | undefined;
  #asked = 0;
  #wake: (() => void) | undefined;
  #deadline: number | undefined;

  constructor(exchange: Exchange, request: PeerRequest, assertRoom: () => void) {
    this.#exchange = exchange;
    this.#can = request.capabilities;
    this.#extensions = request.extensions;
    this.#assertRoom = assertRoom;
    this.#given = new Map(Object.entries(request.inputResponses));
  }

  /** What the handler came to. */
  get result(): Promise<T> {
    if (this.#result === undefined) throw new Error("The call has not been started.");
    return this.#result;
  }

  /** Runs the handler; it begins once the first request is attached. */
  start(
    run: (
      run: { readonly signal: AbortSignal; readonly caller: CallerSide },
      exchange: Exchange,
    ) => Promise<T>,
  ): void {
    const { signal } = this.#controller;
    this.#result = Promise.resolve().then(() => run({ signal, caller: this.#caller() }, this.#exchange));
    // Nobody may be waiting for it when it fails.
    this.#result.catch(() => {});
  }

  /** Ends the handler and whatever it waits for. */
  abort(error: CallError): void {
    for (const question of this.#questions.values()) question.reject(error);
    this.#questions.clear();
    this.#controller.abort(error);
  }

  /** Hands over what a client answered; what is missing or no answer is asked again. */
  answer(responses: Readonly<Record<string, unknown>>): void {
    for (const [key, question] of this.#questions) {
      const response = Object.hasOwn(responses, key) ? responses[key] : undefined;
      if (!question.take(response)) continue;
      this.#questions.delete(key);
      this.#deadline = undefined;
    }
  }

  /** Serves one request: until the handler is done, which gives nothing, or until it has questions. */
  async turn(request: PeerRequest): Promise<Readonly<Record<string, EmbeddedRequest>> | undefined> {
    const { signal } = request;
    const listener = { onAbort: () => this.abort(new CallError("ABORTED", "The caller left.")) };
    if (signal.aborted) listener.onAbort();
    else addAbortListener(signal, listener);
    this.#exchange.attach(request);
    try {
      const isDone = await Promise.race([this.result.then(yes, yes), this.#hasQuestions()]);
      return isDone ? undefined : this.#embedded();
    } finally {
      removeAbortListener(signal, listener);
      this.#exchange.attach(undefined);
      this.#wake = undefined;
    }
  }

  /** How long it may still wait: the whole time after every answer, not after every request. */
  waitsUntil(ms: number): number {
    const now = monotonicNow();
    this.#deadline ??= now + ms;
    return Math.max(0, this.#deadline - now);
  }

  #embedded(): Readonly<Record<string, EmbeddedRequest>> {
    return Object.fromEntries([...this.#questions].map(([key, { request }]) => [key, request]));
  }

  /** Resolves a moment after the first question, so that those asked at once go out together. */
  #hasQuestions(): Promise<false> {
    return new Promise((resolve) => {
      this.#wake = () => setImmediate(() => this.#questions.size > 0 && resolve(false));
      if (this.#questions.size > 0) this.#wake();
    });
  }

  #caller(): CallerSide {
    return {
      extensions: this.#extensions,
      elicit: async (request, signal, key) => {
        assertAskable(request.mode ?? "form", this.#can);
        const params = { ...request, mode: request.mode ?? "form" };
        const answer = await this.#ask(
          { method: "elicitation/create", params },
          readElicitAnswer,
          signal,
          key,
        );
        return checkedAnswer(answer, request);
      },
      sample: async (request, signal, key) => {
        assertAskable("sampling", this.#can);
        return await this.#ask(
          { method: "sampling/createMessage", params: request },
          readSampleAnswer,
          signal,
          key,
        );
      },
      roots: async (signal, key) => {
        assertAskable("roots", this.#can);
        return await this.#ask({ method: "roots/list" }, readRoots, signal, key);
      },
    };
  }

  /** A name for a question that no other question of this round has. */
  #keyFor(wanted: string | undefined): string {
    this.#asked += 1;
    const key = wanted ?? `question-${this.#asked}`;
    return this.#questions.has(key) ? `${key}-${this.#asked}` : key;
  }

  async #ask<A>(
    request: EmbeddedRequest,
    read: (answer: unknown) => A | undefined,
    signal: AbortSignal,
    wanted: string | undefined,
  ): Promise<A> {
    const key = this.#keyFor(wanted);
    const given = read(this.#given.get(key));
    // An answer is good for one question, whether it was any good or not.
    this.#given.delete(key);
    if (given !== undefined) return given;
    this.#assertRoom();
    return await new Promise<A>((resolve, reject) => {
      const leave = (): void => {
        this.#questions.delete(key);
        reject(new CallError("ABORTED"));
      };
      if (signal.aborted) return leave();
      signal.addEventListener("abort", leave, { once: true });
      const settle = (): void => signal.removeEventListener("abort", leave);
      const take = (response: unknown): boolean => {
        const answer = read(response);
        if (answer === undefined) return false;
        settle();
        resolve(answer);
        return true;
      };
      const refuse = (error: CallError): void => {
        settle();
        reject(error);
      };
      this.#questions.set(key, { request, take, reject: refuse });
      this.#wake?.();
    });
  }
}

function yes(): true {
  return true;
}
