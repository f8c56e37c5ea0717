import type { ServerResponse } from "node:http";
import type { ResponseEnvelope } from "../../core/envelope/envelope.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { randomId } from "../../core/execution/request-id.ts";
import type { ExecuteOptions } from "../../core/registry/executor.ts";
import type { LoadedConfig } from "../../gateway/config/loaded-config.ts";
import type { Gateway } from "../../gateway/gateway.ts";
import { callerKey } from "../../gateway/serve/caller-key.ts";
import type { CallTelemetry } from "../../gateway/serve/observe/call-telemetry.ts";
import { type ServedGateway, withEntry } from "../../gateway/serve/observe/entry.ts";
import type { RunAsk } from "../protocol.ts";
import { LINES_HEADERS } from "./answer-headers.ts";
import type { CallLog } from "./call-log.ts";
import { failureOf, noLongerLetIn } from "./failure-of.ts";
import {
  ACCESS_INTERVAL_MS,
  MOST_RESULT_CHARACTERS,
  MOST_RUNS,
  MOST_RUNS_EACH,
  RUN_TIMEOUT_MS,
  WRITE_TIMEOUT_MS,
} from "./inspector-limits.ts";
import { limitTime } from "./limit-time.ts";
import type { OpenQuestions } from "./open-questions.ts";
import { RunEvents } from "./run-events.ts";
import type { Viewer } from "./viewer.ts";
import { writtenResult } from "./written-result.ts";

/** What calls of pages run on. */
export interface OperationRunsOptions {
  readonly gateway: Pick<Gateway, "executor">;
  readonly log: CallLog;
  readonly questions: OpenQuestions;
  readonly loaded: () => LoadedConfig;
  readonly telemetry?: CallTelemetry | undefined;
  /** Takes secrets out of JSON. */
  readonly mask: (json: string) => string;
  /** Milliseconds that a page may take to read the rest of an answer. @default 30_000 */
  readonly writeTimeoutMs?: number | undefined;
}

/** Whoever waits for a call, and how it is ended. */
interface Waiting {
  readonly viewer: Viewer;
  readonly response: ServerResponse;
  readonly leaving: AbortController;
}

/** One call of a page. */
interface Run {
  readonly ask: RunAsk;
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
  async run(ask: RunAsk, viewer: Viewer, response: ServerResponse): Promise<void> {
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

  /** Tells a result, unless whoever asked for it may not have it any more. */
  #tellResult(envelope: ResponseEnvelope, events: RunEvents, waiting: Waiting): void {
    this.#endUnlessLetIn(waiting);
    waiting.leaving.signal.throwIfAborted();
    tellResult(envelope, events);
  }

  #isStream(operation: string): boolean {
    return this.#executor.get(operation)?.type === "subscription";
  }

  #executeOptions(
    ask: RunAsk,
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

  #patience({ operation, timeoutMs }: RunAsk): { readonly timeoutMs?: number } {
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
