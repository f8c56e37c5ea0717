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

  constructor(token?: string) {
    this.#token = token;
  }

  hello(signal?: AbortSignal): Promise<Hello> {
    return this.#get("hello", signal);
  }

  live(signal: AbortSignal): AsyncGenerator<LiveEvent> {
    return this.#stream("live", undefined, signal);
  }

  sources(signal?: AbortSignal): Promise<SourcesAnswer> {
    return this.#get("sources", signal);
  }

  retry(source: string): Promise<RetryAnswer> {
    return this.#post("sources/retry", { source });
  }

  operations(signal?: AbortSignal): Promise<OperationsAnswer> {
    return this.#get("operations", signal);
  }

  operation(id: string, signal?: AbortSignal): Promise<OperationView> {
    return this.#get(`operation?id=${encodeURIComponent(id)}`, signal);
  }

  validate(ask: RunAsk, signal?: AbortSignal): Promise<ValidateAnswer> {
    return this.#post("validate", ask, signal);
  }

  /** Runs an operation; aborting cancels it. */
  run(ask: RunAsk, signal: AbortSignal): AsyncGenerator<RunEvent> {
    return this.#stream("run", ask, signal);
  }

  answer(ask: AnswerAsk): Promise<unknown> {
    return this.#post("answer", ask);
  }

  call(seq: number, signal?: AbortSignal): Promise<CallView> {
    return this.#get(`call?seq=${seq}`, signal);
  }

  formats(envelope: EnvelopeView, operation?: string, signal?: AbortSignal): Promise<FormatsAnswer> {
    return this.#post("formats", { envelope, ...(operation !== undefined && { operation }) }, signal);
  }

  decode(text: string, signal?: AbortSignal): Promise<DecodeAnswer> {
    return this.#post("decode", { text }, signal);
  }

  async #get<T>(path: string, signal?: AbortSignal): Promise<T> {
    const response = await this.#fetch(path, { signal: signal ?? null });
    return (await response.json()) as T;
  }

  async #post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    const response = await this.#fetch(path, { ...posted(body), signal: signal ?? null });
    return (await response.json()) as T;
  }

  async *#stream<T>(path: string, body: unknown, signal: AbortSignal): AsyncGenerator<T> {
    const response = await this.#fetch(path, { ...(body !== undefined && posted(body)), signal });
    if (response.body !== null) yield* readLines<T>(response.body);
  }

  async #fetch(path: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    if (this.#token !== undefined) headers.set("authorization", `Bearer ${this.#token}`);
    const response = await fetch(`./api/${path}`, { ...init, headers, cache: "no-store" }).catch(unreachable);
    if (!response.ok) throw new ApiError(response.status, await failureOf(response));
    return response;
  }
}

function posted(body: unknown): RequestInit {
  return { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

function unreachable(thrown: unknown): never {
  if (thrown instanceof DOMException && thrown.name === "AbortError") throw thrown;
  throw new ApiError(0, {
    code: "UNREACHABLE",
    message: "The gateway does not answer. Is it still running?",
  });
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
