import type {
  AnswerAsk,
  CallFailure,
  CallView,
  DecodeAnswer,
  EnvelopeView,
  FormatsAnswer,
  Hello,
  LiveEvent,
  OperationsAnswer,
  OperationView,
  RetryAnswer,
  RunAsk,
  RunEvent,
  SourcesAnswer,
  ValidateAnswer,
} from "../../protocol.ts";
import { readLines } from "./read-lines.ts";

/** A request that was refused or failed. */
export class ApiError extends Error {
  readonly status: number;
  readonly failure: CallFailure;

  constructor(status: number, failure: CallFailure) {
    super(failure.message);
    this.status = status;
    this.failure = failure;
  }
}

/** Asks the gateway, as the holder of a token. */
export class Api {
  readonly #token: string | undefined;
  readonly #page = crypto.getRandomValues(new Uint32Array(4)).join();

  constructor(token?: string) {
    this.#token = token;
  }

  hello(signal?: AbortSignal): Promise<Hello> {
    return this.#json("hello", signal);
  }

  live(signal: AbortSignal): AsyncGenerator<LiveEvent> {
    return this.#stream("live", signal);
  }

  sources(signal?: AbortSignal): Promise<SourcesAnswer> {
    return this.#json("sources", signal);
  }

  retry(source: string): Promise<RetryAnswer> {
    return this.#json("sources/retry", undefined, { source });
  }

  operations(signal?: AbortSignal): Promise<OperationsAnswer> {
    return this.#json("operations", signal);
  }

  operation(id: string, signal?: AbortSignal): Promise<OperationView> {
    return this.#json(`operation?id=${encodeURIComponent(id)}`, signal);
  }

  validate(ask: RunAsk, signal?: AbortSignal): Promise<ValidateAnswer> {
    return this.#json("validate", signal, ask);
  }

  /** Runs an operation; aborting cancels it. */
  run(ask: RunAsk, signal: AbortSignal): AsyncGenerator<RunEvent> {
    return this.#stream("run", signal, { ...ask, page: this.#page });
  }

  answer(ask: AnswerAsk): Promise<unknown> {
    return this.#json("answer", undefined, ask);
  }

  call(seq: number, signal?: AbortSignal): Promise<CallView> {
    return this.#json(`call?seq=${seq}`, signal);
  }

  formats(envelope: EnvelopeView, operation?: string, signal?: AbortSignal): Promise<FormatsAnswer> {
    return this.#json("formats", signal, { envelope, operation });
  }

  decode(text: string, signal?: AbortSignal): Promise<DecodeAnswer> {
    return this.#json("decode", signal, { text });
  }

  async #json<T>(path: string, signal?: AbortSignal, body?: unknown): Promise<T> {
    return (await this.#fetch(path, signal, body)).json() as T;
  }

  async *#stream<T>(path: string, signal: AbortSignal, body?: unknown): AsyncGenerator<T> {
    const response = await this.#fetch(path, signal, body);
    if (response.body !== null) yield* readLines<T>(response.body);
  }

  async #fetch(path: string, signal?: AbortSignal, body?: unknown): Promise<Response> {
    const headers = new Headers();
    if (this.#token !== undefined) headers.set("authorization", `Bearer ${this.#token}`);
    const init: RequestInit = { headers, cache: "no-store", signal: signal ?? null };
    if (body !== undefined) {
      headers.set("content-type", "application/json");
      Object.assign(init, { method: "POST", body: JSON.stringify(body) });
    }
    const response = await fetch(`./api/${path}`, init).catch(unreachable);
    if (!response.ok) throw new ApiError(response.status, await failureOf(response));
    return response;
  }
}

/** Nobody answers, or stopped doing so. */
export const UNREACHABLE: CallFailure = {
  code: "UNREACHABLE",
  message: "The gateway does not answer. Is it still running?",
};

function unreachable(thrown: unknown): never {
  if (thrown instanceof DOMException && thrown.name === "AbortError") throw thrown;
  throw new ApiError(0, UNREACHABLE);
}

async function failureOf(response: Response): Promise<CallFailure> {
  const fallback = { code: String(response.status), message: `The gateway answered ${response.status}.` };
  try {
    const body = await response.json();
    const error = body?.error;
    return typeof error?.message === "string" ? error : fallback;
  } catch {
    return fallback;
  }
}
