import { CallError, isCallError } from "../../core/errors/errors.ts";
import {
  type AbortListener,
  addAbortListener,
  type Expiring,
  monotonicNow,
  removeAbortListener,
  startTimer,
  toDeadline,
} from "../../core/execution/cancellation.ts";
import { isPlainObject, isValueTooDeep } from "../../core/json/json-value.ts";
import type { CallerSide } from "../../core/operation/caller-side.ts";
import type { SourceSecrets } from "../../core/secrets/secret-mask.ts";
import type { Channel, Loss } from "../channels/channel.ts";
import { metaOf, type Params, ProtocolError, writeCall } from "../protocol/messages.ts";
import type { RequestEnd, RequestWaiter, RpcPeer } from "../protocol/peer.ts";
import { isModernRevision, META_KEYS, TASKS_EXTENSION } from "../protocol/revisions.ts";
import { type McpLogLevel, PASSED_EXTENSIONS, type ServerLog } from "../provider.ts";
import { answerRound, type InputSide, wantsInput } from "./caller-questions.ts";
import type { McpLimits } from "./connection-options.ts";
import type { McpRequestOptions, McpServerFacts } from "./mcp-connection.ts";
import type { Handshake, KnownServer } from "./open-session.ts";
import { type AskedOfServer, fromChannelFailure, fromRpcError, isSessionGone } from "./request-failures.ts";
import {
  CallersInFlight,
  type ServerQuestions,
  type TaskQuestions,
  type TaskWatch,
} from "./server-questions.ts";

/** The server no longer knows the session: what was sent has not run, and a new session can be made. */
export class SessionGone extends Error {
  override readonly name = "SessionGone";
}

interface SessionParts {
  readonly peer: RpcPeer;
  readonly channel: Channel;
  readonly handshake: Handshake;
  readonly questions: ServerQuestions;
  readonly limits: McpLimits;
  readonly roots: readonly { readonly uri: string; readonly name?: string }[];
  readonly serverName: string;
  readonly secrets: SourceSecrets;
  readonly clientInfo: ClientInfo;
}

/** One request, complete but for the connection. */
export interface SessionRequest extends McpRequestOptions {
  readonly method: string;
  readonly params: Params | undefined;
  readonly timeoutMs: number;
  readonly logLevel: McpLogLevel | undefined;
}

/** Who hears what the server logs about a request. */
interface Logged extends Pick<SessionRequest, "party"> {
  onServerLog: SessionRequest["onServerLog"];
}

/** Milliseconds for which a line of the log may still be about a request that was answered. */
const LOG_LINGER_MS = 2_000;

/** Calls answered with tasks whose progress is followed; those that are over make room. */
const MOST_FOLLOWED = 1_000;

/** What is asked for everybody, and says nothing of anybody. */
const OF_NOBODY = /\/list$|^ping$|^logging\//;

/** A request under way: its id, and how it is given up, which tells whether it had no answer yet. */
interface Exchange {
  readonly id: number;
  giveUp(): boolean;
}

/** What is asked of a server, and until when. */
interface Asking {
  readonly asked: AskedOfServer;
  readonly stop: RequestStop;
}

/** A request whose server asked for input in place of a result. */
interface AskedBack {
  readonly asking: Asking;
  /** What was sent first, and is sent again with every answer. */
  readonly first: Params;
  readonly result: Params;
}

/** A stream of changes of a 2026-07-28 server. */
export interface Subscription {
  /** Resolves when it has ended, from either side. */
  readonly closed: Promise<void>;
  close(): void;
}

/** One connection from handshake to loss. */
export class McpSession {
  readonly facts: McpServerFacts;
  /** Whether the 2026-07-28 revision or a later one is spoken. */
  readonly isModern: boolean;
  /** Whether calls may be answered with tasks (2026-07-28), because both sides said that they know them. */
  readonly #hasTasks: boolean;
  /** What it taught of the server, for the next connection. */
  readonly known: KnownServer | undefined;
  readonly startedAt = Date.now();
  readonly #parts: SessionParts;
  /** Whose requests the server may be logging about: all there are, as it does not say which one it means. */
  readonly #logged = new CallersInFlight<Logged>({
    counts: (method) => !OF_NOBODY.test(method),
    lingerMs: LOG_LINGER_MS,
  });
  /** Streams of changes that wait to be acknowledged or are open, by the id of their request. */
  readonly #subscriptions = new Map<number, { acknowledge(): void; end(failure: unknown): void }>();
  /** The subscription that was acknowledged last. */
  #acknowledged: number | undefined;
  /** Tasks that calls were answered with, by the id of the call: its progress goes on under that. */
  readonly #tasks = new Map<number, TaskWatch>();
  #lost: Loss | undefined;
  #closed: Promise<void> | undefined;
  #running = 0;
  #tellIdle: (() => void) | undefined;
  #lastMeta: WrittenMeta | undefined;

  constructor(parts: SessionParts) {
    this.#parts = parts;
    this.isModern = parts.handshake.era === "modern";
    this.known = parts.handshake.known;
    this.facts = toFacts(parts.handshake);
    this.#hasTasks = offersTasks(this.facts);
  }

  /** An answer came to a request that was given up. */
  noteLateAnswer(id: number): void {
    this.#parts.questions.answered(id);
    this.#logged.answered(id);
  }

  /** A request that was given up goes on, or one that was answered with a task. */
  noteLateProgress(id: number, progress: Params): void {
    this.#parts.questions.progressed(id);
    this.#logged.progressed(id);
    this.#tasks.get(id)?.onProgress(progress);
  }

  /** Rejects with a `CallError`, or with `SessionGone` when the request may be sent again over a new session. */
  async request(request: SessionRequest): Promise<Params> {
    const { method, params, caller, task } = request;
    const { serverName: server, secrets } = this.#parts;
    const asked: AskedOfServer = { method, params, server, secrets };
    const stop = new RequestStop(asked, request.timeoutMs, request.signal);
    const asking: Asking = { asked, stop };
    const leave = this.isModern
      ? undefined
      : this.#parts.questions.enter(method, caller, toTaskQuestions(params, task));
    const hears: Logged = { party: request.party, onServerLog: request.onServerLog };
    const leaveLog = this.#logged.enter(method, hears);
    this.#running += 1;
    try {
      const first = this.#writesMeta(params)
        ? (params ?? {})
        : toOutgoingParams(params, this.isModern ? this.#requestFacts(request) : undefined);
      const result = await this.#send(request, first, asking);
      if (!this.isModern || this.#isTask(result, method) || !wantsInput(result, asked)) return result;
      return await this.#answerRounds(request, { asking, first, result });
    } finally {
      stop.end();
      leave?.(stop.givenUpAs);
      leaveLog(stop.givenUpAs);
      // An old table of a Map must not hold the listener, and with it the call (see `LinkedSet`).
      hears.onServerLog = undefined;
      this.#running -= 1;
      if (this.#running === 0) this.#tellIdle?.();
    }
  }

  /** Hands a line of the server's log to the only caller it can be for, if there is one. */
  hear(log: ServerLog): void {
    const found = this.#logged.find();
    if (found.kind === "one") found.caller?.onServerLog?.(log);
  }

  /** `meta` are members of `_meta` as JSON text, besides those that the params have of it. */
  async notify(method: string, params: Params | undefined, meta?: string): Promise<void> {
    await this.#parts.channel.send(writeCall(method, params, undefined, meta));
  }

  /** Asks a 2026-07-28 server for its changes; resolves when it has said that it will tell them. */
  subscribe(notifications: object, timeoutMs: number, signal: AbortSignal): Promise<Subscription> {
    let tellClosed = (): void => {};
    const closed = new Promise<void>((resolve) => {
      tellClosed = resolve;
    });
    return new Promise((resolve, reject) => {
      let exchange: Exchange | undefined;
      const end = (failure: unknown): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        if (exchange !== undefined) this.#subscriptions.delete(exchange.id);
        reject(failure ?? new CallError("UNAVAILABLE", "The server ended the subscription."));
        tellClosed();
      };
      const close = (failure?: unknown): void => {
        exchange?.giveUp();
        end(failure);
      };
      const onAbort = (): void => close(signal.reason);
      const late = (): void =>
        close(new CallError("TIMEOUT", "The subscription was not acknowledged in time."));
      const timer = setTimeout(late, timeoutMs);
      const acknowledge = (): void => {
        clearTimeout(timer);
        resolve({ closed, close });
      };
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        const params = toOutgoingParams({ notifications }, this.#requestFacts({}));
        exchange = this.#start("subscriptions/listen", params, { onEnd: (ended) => end(failureIn(ended)) });
      } catch (failure) {
        end(failure);
        return;
      }
      // A server in this process may have answered already.
      if (this.#acknowledged === exchange.id) acknowledge();
      this.#subscriptions.set(exchange.id, { acknowledge, end });
    });
  }

  /** Hears what the server says of a stream of changes; false where it is about something else. */
  hearSubscription(method: string, params: Params): boolean {
    if (method === "notifications/cancelled") {
      this.#subscriptions.get(Number(params["requestId"]))?.end(undefined);
      return true;
    }
    if (method !== "notifications/subscriptions/acknowledged") return false;
    this.#acknowledged = Number(metaOf(params)?.[META_KEYS.subscriptionId]);
    this.#subscriptions.get(this.#acknowledged)?.acknowledge();
    return true;
  }

  /** Resolves once no request is under way; for a session that gets no more of them. */
  idle(): Promise<void> {
    if (this.#running === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#tellIdle = resolve;
    });
  }

  /** The channel is gone; those who wait are told why. */
  lose(loss: Loss): void {
    this.#lost ??= loss;
    this.#parts.peer.close();
  }

  /** Resolves when all of it is gone, however often it is asked to. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.lose({ reason: "the connection was closed" });
    await this.#parts.channel.close().catch(() => {});
  }

  /** Answers what a 2026-07-28 server asks for in place of a result, until it gives one. */
  async #answerRounds(request: SessionRequest, { asking, first, ...given }: AskedBack): Promise<Params> {
    const { asked, stop } = asking;
    const { caller } = request;
    const { limits, roots } = this.#parts;
    let { result } = given;
    for (let round = 0; !this.#isTask(result, asked.method) && wantsInput(result, asked); round++) {
      if (round >= limits.rounds) {
        const what = `${asked.server} asks for input for more than ${limits.rounds} rounds of ${asked.method}.`;
        throw new CallError("EXECUTION_ERROR", what);
      }
      const side: InputSide = { asked, caller, roots, limits, signal: stop.signal };
      const inputRequests = asked.secrets.maskResult(result["inputRequests"]);
      const answers = await answerRound({ ...result, inputRequests }, side).catch((error: unknown) => {
        stop.throwIfStopped();
        throw error;
      });
      result = await this.#send(request, { ...first, ...answers }, asking);
    }
    return result;
  }

  /** Nothing but calls of tools may be answered with a task. */
  #isTask(result: Params, method: string): boolean {
    return this.#hasTasks && method === "tools/call" && result["resultType"] === "task";
  }

  #requestFacts({ caller, logLevel }: Partial<Pick<SessionRequest, "caller" | "logLevel">>) {
    const { clientInfo } = this.#parts;
    const { protocolVersion } = this.facts;
    return { protocolVersion, clientInfo, caller, logLevel, hasTasks: this.#hasTasks };
  }

  /** Tells whether what a request adds to its params is written as text: over HTTP, headers are made of it. */
  #writesMeta(params: Params | undefined): boolean {
    if (!this.isModern || !this.#parts.channel.isShared) return false;
    const meta = params?.["_meta"];
    return meta === undefined || (isPlainObject(meta) && isUnreserved(meta));
  }

  /** What `modernMeta` adds, as text; the requests of one caller all add the same, which is more than most of them hold. */
  #metaText(request: SessionRequest): string {
    const { caller, logLevel } = request;
    const { elicit, sample, extensions } = caller ?? {};
    const wanted = { elicits: elicit !== undefined, samples: sample !== undefined, extensions, logLevel };
    const last = this.#lastMeta;
    if (last !== undefined && isSameMeta(last, wanted)) return last.text;
    const text = JSON.stringify(modernMeta(this.#requestFacts(request))).slice(1, -1);
    this.#lastMeta = { ...wanted, text };
    return text;
  }

  #send(request: SessionRequest, params: Params, { asked, stop }: Asking): Promise<Params> {
    const { method, onProgress, inputSchema, call, task } = request;
    stop.throwIfStopped();
    const meta = this.#writesMeta(params) ? this.#metaText(request) : undefined;
    return new Promise((resolve, reject) => {
      const onEnd = (end: RequestEnd): void => {
        const outcome = this.#toResult(end, asked);
        if (outcome instanceof Error) reject(outcome);
        else {
          if (task !== undefined && exchange !== undefined) this.#followProgress(exchange.id, task);
          resolve(outcome);
        }
      };
      let exchange: Exchange | undefined;
      try {
        const started = this.#start(method, params, { onEnd, onProgress, inputSchema, call, meta });
        exchange = started;
        stop.watch((failure) => {
          if (started.giveUp()) stop.givenUpAs = started.id;
          reject(failure);
        });
      } catch (error) {
        reject(this.#toFailure(error, asked));
      }
    });
  }

  #followProgress(id: number, task: TaskWatch): void {
    if (this.#tasks.size >= MOST_FOLLOWED) {
      for (const [known, { isOver }] of this.#tasks) if (isOver) this.#tasks.delete(known);
    }
    if (this.#tasks.size < MOST_FOLLOWED) this.#tasks.set(id, task);
  }

  /** Sends a request; where each has an exchange of its own, that ends with the request. */
  #start(method: string, given: Params, waiter: RequestWaiter): Exchange {
    const { peer, channel } = this.#parts;
    const stop = channel.isShared ? undefined : new AbortController();
    const params = Object.keys(given).length === 0 ? undefined : given;
    const id = peer.request(method, params, stop === undefined ? waiter : { ...waiter, signal: stop.signal });
    return {
      id,
      giveUp: () => {
        const isUnanswered = peer.drop(id);
        if (isUnanswered && (channel.isShared || !this.isModern)) this.#cancel(id, given, waiter.meta);
        stop?.abort();
        return isUnanswered;
      },
    };
  }

  /** What the request said in its `_meta`, its cancellation says too. */
  #cancel(requestId: number, given: Params, written: string | undefined): void {
    const meta = metaOf(given);
    const params = {
      requestId,
      reason: "Nobody waits for it any more.",
      ...(meta !== undefined && { _meta: meta }),
    };
    this.notify("notifications/cancelled", params, written).catch(() => {});
  }

  #toResult(end: RequestEnd, asked: AskedOfServer): Params | Error {
    switch (end.kind) {
      case "error":
        return fromRpcError(end.error, asked);
      case "failure":
        return this.#toFailure(end.failure, asked);
      case "result": {
        const { result } = end;
        // A pipe has looked at the depth already; what the platform's own reader took may be of any. Tools are looked at one by one.
        const isLooked = this.#parts.channel.isShared || asked.method === "tools/list";
        const isDeep = !isLooked && isValueTooDeep(result, Number.MAX_VALUE);
        if (isPlainObject(result) && !isDeep) return result;
        const what = isDeep ? "a result that is nested too deeply" : "a result that is no object";
        return new CallError("EXECUTION_ERROR", `The MCP server answered ${asked.method} with ${what}.`);
      }
    }
  }

  #toFailure(error: unknown, asked: AskedOfServer): Error {
    if (this.#lost !== undefined) return toUnavailable(this.#lost, asked);
    if (this.#parts.channel.hasSession && !this.isModern && isSessionGone(error)) {
      return new SessionGone("The server does not know the session.", { cause: error });
    }
    return fromChannelFailure(error, asked);
  }
}

/** Says of a request that it could not be made, or that its answer will not come. */
export function toUnavailable(
  { reason, said, cause, failure }: Loss,
  { method, server }: AskedOfServer,
): CallError {
  return new CallError("UNAVAILABLE", `${server} cannot answer ${method}: ${reason}.`, {
    cause,
    failure,
    ...(said !== undefined && { details: { said } }),
    stack: false,
  });
}

function toFacts({ era, revision, result }: Handshake): McpServerFacts {
  const info = era === "modern" ? metaOf(result)?.[META_KEYS.serverInfo] : result["serverInfo"];
  const { capabilities, instructions } = result;
  return {
    protocolVersion: revision,
    capabilities: isPlainObject(capabilities) ? capabilities : {},
    serverInfo: isPlainObject(info) ? info : undefined,
    instructions: typeof instructions === "string" ? instructions : undefined,
  };
}

/** Tells whether a server may answer a call with a task, in the form of the extension of 2026-07-28. */
export function offersTasks({ protocolVersion, capabilities }: McpServerFacts): boolean {
  const { extensions } = capabilities;
  return (
    isModernRevision(protocolVersion) &&
    isPlainObject(extensions) &&
    isPlainObject(extensions[TASKS_EXTENSION])
  );
}

function failureIn(end: RequestEnd): unknown {
  if (end.kind === "failure") return end.failure;
  return end.kind === "error" ? new ProtocolError(end.error.code, end.error.message) : undefined;
}

/** What ends a request early, over all its rounds: its deadline, or the caller. */
export class RequestStop implements AbortListener, Expiring {
  readonly deadline: number;
  timer: ReturnType<typeof setTimeout> | undefined;
  /** The id of the request that was given up before it was answered, and which may still run. */
  givenUpAs: number | undefined;
  readonly #asked: AskedOfServer;
  readonly #timeoutMs: number;
  readonly #given: AbortSignal | undefined;
  #failure: CallError | undefined;
  #giveUp: ((failure: CallError) => void) | undefined;
  #questions: AbortController | undefined;

  constructor(asked: AskedOfServer, timeoutMs: number, signal: AbortSignal | undefined) {
    const now = monotonicNow();
    this.#asked = asked;
    this.#timeoutMs = timeoutMs;
    this.#given = signal;
    this.deadline = toDeadline(timeoutMs, now);
    if (signal?.aborted === true) this.onAbort();
    else if (timeoutMs <= 0) this.expire();
    else {
      if (this.deadline !== Number.POSITIVE_INFINITY) startTimer(this, timeoutMs);
      if (signal !== undefined) addAbortListener(signal, this);
    }
  }

  /** Aborted with the request; for those who are asked something on the way. */
  get signal(): AbortSignal {
    this.#questions ??= new AbortController();
    if (this.#failure !== undefined) this.#questions.abort(this.#failure);
    return this.#questions.signal;
  }

  /** Why the request was ended; nothing where it was not. */
  get failure(): CallError | undefined {
    return this.#failure;
  }

  /** Says how the round under way is ended early. */
  watch(giveUp: (failure: CallError) => void): void {
    this.#giveUp = giveUp;
  }

  /** Throws where the request has been ended. */
  throwIfStopped(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Waits until something has ended, well or not, but no longer than the request itself; throws where it was stopped. */
  async waitFor(work: Promise<unknown>): Promise<void> {
    this.throwIfStopped();
    const stopped = new Promise<void>((resolve) => {
      this.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([work.catch(() => {}), stopped]);
    this.end();
    this.throwIfStopped();
  }

  expire(): void {
    const { method, server } = this.#asked;
    this.#stop(
      new CallError(
        "TIMEOUT",
        `${server} did not answer ${method} within ${Math.ceil(this.#timeoutMs)} ms.`,
        {
          stack: false,
        },
      ),
    );
  }

  /** Leaves no timer and no listener behind. */
  end(): void {
    clearTimeout(this.timer);
    if (this.#given !== undefined) removeAbortListener(this.#given, this);
  }

  onAbort(): void {
    const reason: unknown = this.#given?.reason;
    const { method } = this.#asked;
    const failure = isCallError(reason)
      ? reason
      : new CallError("ABORTED", `The request ${method} was aborted.`, { cause: reason, stack: false });
    this.#stop(failure);
  }

  #stop(failure: CallError): void {
    if (this.#failure !== undefined) return;
    this.#failure = failure;
    this.end();
    this.#giveUp?.(failure);
    this.#questions?.abort(failure);
  }
}

/** Keys of `_meta` that speak for the connection, and not for the caller. */
const RESERVED: ReadonlySet<string> = new Set([
  "progressToken",
  META_KEYS.revision,
  META_KEYS.clientInfo,
  META_KEYS.clientCapabilities,
  META_KEYS.logLevel,
]);

/** What this client can do on behalf of those who can be asked everything, and whose clients know all that passes through. */
export const CLIENT_CAPABILITIES = {
  elicitation: { form: {}, url: {} },
  sampling: {},
  roots: { listChanged: true },
  extensions: PASSED_EXTENSIONS as Record<string, Record<string, never>>,
} as const;

/** What this client calls itself. */
export interface ClientInfo {
  readonly name: string;
  readonly version: string;
}

/** The members of `_meta` that were written last, and what they were made of. */
interface WrittenMeta extends Pick<SessionRequest, "logLevel"> {
  readonly elicits: boolean;
  readonly samples: boolean;
  readonly extensions: CallerSide["extensions"];
  readonly text: string;
}

function isSameMeta(one: WrittenMeta, other: Omit<WrittenMeta, "text">): boolean {
  return (
    one.elicits === other.elicits &&
    one.samples === other.samples &&
    one.extensions === other.extensions &&
    one.logLevel === other.logLevel
  );
}

/** What a modern request says about itself. */
interface RequestFacts {
  readonly protocolVersion: string;
  readonly clientInfo: ClientInfo;
  readonly caller: CallerSide | undefined;
  readonly logLevel: McpLogLevel | undefined;
  readonly hasTasks: boolean;
}

/**
 * Copies params for the wire: reserved keys that came along are left out, and where the 2026-07-28 revision is spoken, the
 * capabilities are those of this request's caller, so that a server does not ask what nobody can answer.
 */
function toOutgoingParams(params: Params | undefined, modern: RequestFacts | undefined): Params {
  const given = isPlainObject(params?.["_meta"]) ? params["_meta"] : undefined;
  if (given === undefined && params?.["_meta"] === undefined)
    return modern === undefined ? (params ?? {}) : { ...params, _meta: modernMeta(modern) };
  if (modern === undefined && given !== undefined && Object.keys(given).length > 0 && isUnreserved(given))
    return params as Params;
  const kept = given === undefined ? [] : Object.entries(given).filter(([key]) => !RESERVED.has(key));
  const meta = { ...Object.fromEntries(kept), ...(modern === undefined ? {} : modernMeta(modern)) };
  if (Object.keys(meta).length > 0) return { ...params, _meta: meta };
  if (given === undefined) return params ?? {};
  const { _meta, ...rest } = params as Params & { _meta: unknown };
  return rest;
}

/** Whether nothing in it is reserved: then it goes out as it is. */
function isUnreserved(meta: Params): boolean {
  for (const key in meta) if (RESERVED.has(key)) return false;
  return true;
}

/** The tasks of a call are waited for here, whatever the caller's client knows. */
const OWN_EXTENSIONS = { [TASKS_EXTENSION]: {} };

/** Questions for a task of 2025-11-25 name it: they go to the caller that waits for its result. */
function toTaskQuestions(params: Params | undefined, task: TaskWatch | undefined): TaskQuestions | undefined {
  const taskId = task === undefined ? undefined : params?.["taskId"];
  return task !== undefined && typeof taskId === "string" ? { taskId, task } : undefined;
}

function modernMeta({ protocolVersion, clientInfo, caller, logLevel, hasTasks }: RequestFacts): Params {
  const { elicitation, sampling, roots } = CLIENT_CAPABILITIES;
  const passed = caller?.extensions ?? PASSED_EXTENSIONS;
  const extensions = hasTasks ? { ...passed, ...OWN_EXTENSIONS } : passed;
  return {
    [META_KEYS.revision]: protocolVersion,
    [META_KEYS.clientInfo]: clientInfo,
    [META_KEYS.clientCapabilities]: {
      ...(caller?.elicit === undefined ? {} : { elicitation }),
      ...(caller?.sample === undefined ? {} : { sampling }),
      roots,
      ...(Object.keys(extensions).length > 0 && { extensions }),
    },
    ...(logLevel === undefined ? {} : { [META_KEYS.logLevel]: logLevel }),
  };
}
