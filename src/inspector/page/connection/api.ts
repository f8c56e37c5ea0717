import type {
  AnswerRequest,
  ApprovalsAnswer,
  CallFailure,
  CallView,
  CompleteAnswer,
  CompleteRequest,
  DecideRequest,
  DecodeAnswer,
  EnvelopeView,
  FindAnswer,
  FollowEvent,
  FormatsAnswer,
  Hello,
  LiveEvent,
  OffersAnswer,
  OperationsAnswer,
  OperationView,
  PromptRequest,
  ReplicasAnswer,
  ResourceRequest,
  RetryAnswer,
  RunEvent,
  RunRequest,
  SearchAnswer,
  SourceLogAnswer,
  SourcesAnswer,
  StartAnswer,
  ValidateAnswer,
} from "../../protocol.ts";

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

  start(origin: string, signal?: AbortSignal): Promise<StartAnswer> {
    return this.#json(`start?origin=${encodeURIComponent(origin)}`, signal);
  }

  /** What is remembered of the log of a source, behind a line. */
  log(source: string, after: number, signal?: AbortSignal): Promise<SourceLogAnswer> {
    return this.#json(`log?source=${encodeURIComponent(source)}&after=${after}`, signal);
  }

  approvals(signal?: AbortSignal): Promise<ApprovalsAnswer> {
    return this.#json("approvals", signal);
  }

  decide(ask: DecideRequest, signal?: AbortSignal): Promise<unknown> {
    return this.#json("approvals/decide", signal, ask);
  }

  replicas(signal?: AbortSignal): Promise<ReplicasAnswer> {
    return this.#json("replicas", signal);
  }

  offers(signal?: AbortSignal): Promise<OffersAnswer> {
    return this.#json("offers", signal);
  }

  readResource(ask: ResourceRequest, signal?: AbortSignal): Promise<unknown> {
    return this.#json("offers/read", signal, ask);
  }

  prompt(ask: PromptRequest, signal?: AbortSignal): Promise<unknown> {
    return this.#json("offers/prompt", signal, ask);
  }

  complete(ask: CompleteRequest, signal?: AbortSignal): Promise<CompleteAnswer> {
    return this.#json("offers/complete", signal, ask);
  }

  /** Follows a resource; aborting unsubscribes. */
  follow(ask: ResourceRequest, signal: AbortSignal): AsyncGenerator<FollowEvent> {
    return this.#stream("offers/follow", signal, ask);
  }

  /** Finds calls by a text in their inputs and results. */
  findCalls(text: string, signal?: AbortSignal): Promise<FindAnswer> {
    return this.#json("calls/find", signal, { text });
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

  search(query: string, signal: AbortSignal): Promise<SearchAnswer> {
    return this.#json(`search?query=${encodeURIComponent(query)}`, signal);
  }

  operation(id: string, signal?: AbortSignal): Promise<OperationView> {
    return this.#json(`operation?id=${encodeURIComponent(id)}`, signal);
  }

  validate(ask: RunRequest, signal?: AbortSignal): Promise<ValidateAnswer> {
    return this.#json("validate", signal, ask);
  }

  /** Runs an operation; aborting cancels it. */
  run(ask: RunRequest, signal: AbortSignal): AsyncGenerator<RunEvent> {
    return this.#stream("run", signal, { ...ask, page: this.#page });
  }

  answer(ask: AnswerRequest): Promise<unknown> {
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

/** Reads a body as one JSON value in each line; a last line without an end is one too. */
export async function* readLines<T>(body: ReadableStream<Uint8Array>): AsyncGenerator<T> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line !== "") yield JSON.parse(line) as T;
    }
    if (rest !== "") yield JSON.parse(rest) as T;
  } finally {
    await reader.cancel().catch(() => {});
  }
}
