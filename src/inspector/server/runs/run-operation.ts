import type { ServerResponse } from "node:http";
import type { ResponseEnvelope } from "../../../core/envelope/envelope.ts";
import { CallError, isCallError } from "../../../core/errors/errors.ts";
import { randomId } from "../../../core/execution/call-context.ts";
import type { ElicitAnswer, ElicitRequest } from "../../../core/operation/caller-side.ts";
import type { ExecuteOptions } from "../../../core/registry/executor.ts";
import type { Gateway } from "../../../gateway/gateway.ts";
import { callerKey } from "../../../gateway/serve/gateway-auth.ts";
import { type ServedGateway, withEntry } from "../../../gateway/serve/observe/observer.ts";
import { drained } from "../../../http/node-exchange.ts";
import { checkedAnswer, readElicitAnswer } from "../../../mcp/server/caller-answers.ts";
import type { AnswerRequest, RunEvent, RunQuestion, RunRequest } from "../../protocol.ts";
import { failureOf, LINES_HEADERS, limitTime, noLongerLetIn } from "../answers.ts";
import type { CallLog } from "../calls/call-log.ts";
import { writtenJson, writtenResult } from "../calls/written-json.ts";
import type { InspectorOptions } from "../inspector.ts";
import {
  ACCESS_INTERVAL_MS,
  KEPT_CHARACTERS_EACH,
  MOST_QUESTIONS,
  MOST_RESULT_CHARACTERS,
  MOST_RUNS,
  MOST_RUNS_EACH,
  MOST_WAITING_BYTES,
  RUN_TIMEOUT_MS,
  WRITE_TIMEOUT_MS,
} from "../inspector-limits.ts";
import type { Viewer } from "../viewer.ts";

/** What calls of pages run on. */
interface OperationRunsOptions extends Pick<InspectorOptions, "loaded" | "telemetry" | "writeTimeoutMs"> {
  readonly gateway: Pick<Gateway, "executor">;
  readonly log: CallLog;
  readonly questions: OpenQuestions;
  /** Takes secrets out of JSON. */
  readonly mask: (json: string) => string;
}

/** The caller who waits for a call, and how it is ended. */
interface Waiting {
  readonly viewer: Viewer;
  readonly response: ServerResponse;
  readonly leaving: AbortController;
}

/** One call of a page. */
interface Run {
  readonly ask: RunRequest;
  readonly events: RunEvents;
  readonly waiting: Waiting;
  readonly options: ExecuteOptions & { readonly requestId: string };
}

/** Calls that pages make: each is an answer that goes on until the call has ended, or the page leaves. */
export class OperationRuns {
  readonly #options: OperationRunsOptions;
  readonly #executor: ServedGateway;
  readonly #writeTimeoutMs: number;
  readonly #open = new Set<Waiting>();
  /** Looks at who is still let in, while calls run. */
  #timer: NodeJS.Timeout | undefined;
  #onIdle: () => void = () => {};

  constructor(options: OperationRunsOptions) {
    this.#options = options;
    this.#writeTimeoutMs = options.writeTimeoutMs ?? WRITE_TIMEOUT_MS;
    this.#executor = withEntry(options.gateway.executor, "inspect", options.telemetry);
  }

  /** Runs an operation as the viewer, and tells the page what becomes of it. */
  async run(ask: RunRequest, viewer: Viewer, response: ServerResponse): Promise<void> {
    this.#assertRoom(viewer);
    const leaving = new AbortController();
    const waiting = { viewer, response, leaving };
    this.#enter(waiting);
    const leave = (): void => leaving.abort();
    response.once("close", leave);
    if (response.destroyed) leave();
    response.writeHead(200, LINES_HEADERS);
    response.flushHeaders();
    const events = new RunEvents(response, this.#options.mask);
    try {
      const options = this.#executeOptions(ask, viewer, { events, leaving });
      await this.#follow({ ask, events, waiting, options });
    } finally {
      response.off("close", leave);
      response.end();
      limitTime(response, this.#writeTimeoutMs);
      // Its place is free again when the page has taken the result, or is gone.
      if (response.writableFinished || response.destroyed) this.#leave(waiting);
      else response.once("close", () => this.#leave(waiting));
    }
  }

  /** Lets them end for that time, and then ends them; resolves when that is done. */
  async close(timeoutMs: number): Promise<void> {
    if (this.#open.size > 0 && timeoutMs > 0) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
        timer = setTimeout(resolve, timeoutMs).unref();
      });
      clearTimeout(timer);
    }
    for (const waiting of this.#open) this.#end(waiting, closed());
  }

  #enter(waiting: Waiting): void {
    this.#open.add(waiting);
    this.#timer ??= setInterval(() => {
      for (const one of this.#open) this.#endUnlessLetIn(one);
    }, ACCESS_INTERVAL_MS).unref();
  }

  #leave(waiting: Waiting): void {
    this.#open.delete(waiting);
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#onIdle();
  }

  #endUnlessLetIn(waiting: Waiting): void {
    if (!waiting.viewer.isCurrent()) this.#end(waiting, noLongerLetIn());
  }

  /** A page that does not read is not waited for. */
  #end({ leaving, response }: Waiting, why: CallError): void {
    if (leaving.signal.aborted) return;
    leaving.abort(why);
    limitTime(response, this.#writeTimeoutMs);
  }

  /** Where callers say who they are, none takes the places of all others. */
  #assertRoom({ isAuthOn, identity }: Viewer): void {
    if (this.#open.size >= MOST_RUNS) throw tooMany(`${MOST_RUNS} calls of pages run already`);
    if (!isAuthOn) return;
    const caller = callerKey(identity);
    const own = [...this.#open].filter(({ viewer }) => callerKey(viewer.identity) === caller);
    if (own.length >= MOST_RUNS_EACH) throw tooMany(`${MOST_RUNS_EACH} of your calls run already`);
  }

  async #follow(run: Run): Promise<void> {
    const { events } = run;
    const { requestId } = run.options;
    const { log, questions } = this.#options;
    const forget = log.awaitCall(requestId, (seq) => events.send({ type: "started", requestId, seq }));
    const startedAt = performance.now();
    const took = (): number => Math.round((performance.now() - startedAt) * 1_000) / 1_000;
    try {
      const values = await this.#execute(run);
      events.send({ type: "end", durationMs: took(), values });
    } catch (thrown) {
      const why: unknown = run.waiting.leaving.signal.reason;
      events.send({
        type: "error",
        error: failureOf(isCallError(why) ? why : thrown),
        durationMs: took(),
      });
    } finally {
      forget();
      questions.leave(requestId);
    }
  }

  async #execute({ ask, events, waiting, options }: Run): Promise<number> {
    const { operation, input } = ask;
    if (!this.#isStream(operation)) {
      const envelope = await this.#executor.execute(operation, input, options);
      this.#tellResult(envelope, events, waiting);
      limitTime(waiting.response, this.#writeTimeoutMs);
      await events.taken();
      return 1;
    }
    let values = 0;
    for await (const envelope of this.#executor.subscribe(operation, input, options)) {
      values += 1;
      this.#tellResult(envelope, events, waiting);
      await events.taken();
    }
    return values;
  }

  /** Tells a result, unless the caller may not have it any more. */
  #tellResult(envelope: ResponseEnvelope, events: RunEvents, waiting: Waiting): void {
    this.#endUnlessLetIn(waiting);
    waiting.leaving.signal.throwIfAborted();
    tellResult(envelope, events);
  }

  #isStream(operation: string): boolean {
    return this.#executor.get(operation)?.type === "subscription";
  }

  #executeOptions(
    ask: RunRequest,
    { identity }: Viewer,
    { events, leaving }: { readonly events: RunEvents; readonly leaving: AbortController },
  ): Run["options"] {
    const requestId = randomId();
    const { questions } = this.#options;
    const caller = callerKey(identity);
    return {
      requestId,
      ...(identity !== undefined && { identity }),
      signal: leaving.signal,
      ...this.#patience(ask),
      onProgress: (value) => events.sendIfHeard({ type: "progress", value }),
      onLog: ({ level, message, data }) =>
        events.sendIfHeard({ type: "log", level, message, ...(data !== undefined && { data }) }),
      caller: {
        party: ask.page === undefined ? undefined : JSON.stringify(["page", ask.page, caller]),
        elicit: (request, signal) =>
          questions.ask(request, {
            requestId,
            caller,
            signal,
            tell: (key, question) => events.send({ type: "ask", key, question }),
          }),
      },
    };
  }

  #patience({ operation, timeoutMs }: RunRequest): { readonly timeoutMs?: number } {
    if (this.#isStream(operation)) return timeoutMs === undefined ? {} : { timeoutMs };
    const most = this.#options.loaded().config.limits?.timeoutMs ?? RUN_TIMEOUT_MS;
    return { timeoutMs: Math.min(timeoutMs ?? most, most) };
  }
}

function tellResult(envelope: ResponseEnvelope, events: RunEvents): void {
  const written = writtenResult(envelope, MOST_RESULT_CHARACTERS);
  if ("text" in written) events.sendText(`{"type":"result","result":${written.text}}`);
  else {
    const { omitted: reason, ...length } = written;
    events.send({ type: "result-omitted", reason, ...length });
  }
}

function closed(): CallError {
  return new CallError("ABORTED", "The inspector was closed before the call had ended.", { stack: false });
}

function tooMany(what: string): CallError {
  return new CallError("RESOURCE_EXHAUSTED", `${what}; wait for one to end, or cancel it.`, {
    httpStatus: 429,
    stack: false,
  });
}

/** The events of one call on their way to the page. */
export class RunEvents {
  readonly #response: ServerResponse;
  readonly #mask: (json: string) => string;

  constructor(response: ServerResponse, mask: (json: string) => string) {
    this.#response = response;
    this.#mask = mask;
  }

  send(event: RunEvent): void {
    this.sendText(JSON.stringify(event));
  }

  /** Sends what a handler said meanwhile, unless the page does not keep up or it is no JSON of a sensible length. */
  sendIfHeard(event: RunEvent): void {
    if (this.#response.writableLength > MOST_WAITING_BYTES) return;
    const written = writtenJson(event, KEPT_CHARACTERS_EACH);
    if ("text" in written) this.sendText(written.text);
  }

  /** Sends an event that is JSON already. */
  sendText(json: string): void {
    if (this.#response.destroyed || this.#response.writableEnded) return;
    this.#response.write(`${this.#mask(json)}\n`);
  }

  /** Resolves when the page has taken what was sent, or is gone. */
  taken(): Promise<void> {
    const response = this.#response;
    return response.destroyed || !response.writableNeedDrain ? Promise.resolve() : drained(response);
  }
}

/** Whose question it is, and how it is put. */
interface Asking {
  readonly requestId: string;
  /** The key of the caller: nobody else may answer. */
  readonly caller: string | undefined;
  /** Aborts when the call is over. */
  readonly signal: AbortSignal;
  /** Puts the question to the page. */
  readonly tell: (key: string, question: RunQuestion) => void;
}

interface OpenQuestion {
  readonly asking: Asking;
  readonly request: ElicitRequest;
  readonly settle: (answer: ElicitAnswer) => void;
}

/** Questions of handlers that a person has not answered yet. */
export class OpenQuestions {
  readonly #open = new Map<string, OpenQuestion>();
  #isClosed = false;

  /** Asks, and waits for the answer; it is declined where the page leaves or too much is asked at a time. */
  ask(request: ElicitRequest, asking: Asking): Promise<ElicitAnswer> {
    const { requestId, signal, tell } = asking;
    const open = [...this.#open.values()].filter((one) => one.asking.requestId === requestId);
    if (this.#isClosed || signal.aborted || open.length >= MOST_QUESTIONS)
      return Promise.resolve({ action: "decline" });
    const key = randomId();
    return new Promise((resolve) => {
      const leave = (): void => settle({ action: "decline" });
      const settle = (answer: ElicitAnswer): void => {
        this.#open.delete(key);
        signal.removeEventListener("abort", leave);
        resolve(answer);
      };
      this.#open.set(key, { asking, request, settle });
      signal.addEventListener("abort", leave, { once: true });
      tell(key, toQuestion(request));
    });
  }

  /** Takes an answer; one that does not fit its form is a `VALIDATION_ERROR`, and the question stays open. */
  answer({ requestId, key, action, content }: AnswerRequest, caller: string | undefined): void {
    const found = this.#open.get(key);
    if (found === undefined || found.asking.requestId !== requestId || found.asking.caller !== caller) {
      throw new CallError("NOT_FOUND", "There is no such question; the call may have ended.", {
        stack: false,
      });
    }
    const answer = readElicitAnswer({ action, content });
    if (answer === undefined) {
      throw new CallError(
        "VALIDATION_ERROR",
        'An answer is "accept", "decline" or "cancel", with an object for what was filled in.',
        {
          stack: false,
        },
      );
    }
    found.settle(checkedAnswer(answer, found.request));
  }

  /** Declines what is asked now and later: no page can answer any more. */
  close(): void {
    this.#isClosed = true;
    for (const { settle } of [...this.#open.values()]) settle({ action: "decline" });
  }

  /** Declines what a call still asks. */
  leave(requestId: string): void {
    for (const { asking, settle } of [...this.#open.values()]) {
      if (asking.requestId === requestId) settle({ action: "decline" });
    }
  }
}

function toQuestion(request: ElicitRequest): RunQuestion {
  const { message } = request;
  return request.mode === "url"
    ? { mode: "url", message, url: request.url }
    : { mode: "form", message, schema: request.requestedSchema };
}
