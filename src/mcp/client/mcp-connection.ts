import { Listeners } from "../../core/collections/listeners.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { saidIn } from "../../core/errors/source-words.ts";
import { isAbortSignal, LONGEST_DELAY, monotonicNow } from "../../core/execution/cancellation.ts";
import { Backoff } from "../../core/limits/backoff.ts";
import { checkDelay, checkOption } from "../../core/options/check-options.ts";
import type { SourceSecrets } from "../../core/secrets/secret-mask.ts";
import type { OnWire, WireEvent, WireWatch } from "../channels/channel.ts";
import type { CallOfRequest } from "../protocol/peer.ts";
import type { McpLogLevel, McpProviderOptions } from "../provider.ts";
import { ChangeSubscription } from "./change-subscription.ts";
import {
  checkConnectionOptions,
  type McpConnectionOptions,
  type McpLimits,
  nameServer,
  secretsOf,
  toMcpLimits,
} from "./connection-options.ts";
import {
  type McpSession,
  RequestStop,
  SessionGone,
  type SessionRequest,
  toUnavailable,
} from "./mcp-session.ts";
import { type KnownServer, openMcpSession } from "./open-session.ts";
import { toPlainLine } from "./plain-line.ts";
import type { AskedOfServer } from "./request-failures.ts";
import type { TaskWatch } from "./server-questions.ts";

type Params = Readonly<Record<string, unknown>>;

const CLOSED: McpConnectionState = { status: "closed" };

/** Requests whose effect outlasts the session. */
const LASTING: ReadonlySet<string> = new Set([
  "logging/setLevel",
  "resources/subscribe",
  "resources/unsubscribe",
]);

/** What is needed of a connection, or of several that look like one, to import a server. */
export interface McpLink
  extends Pick<
    McpConnection,
    "secrets" | "limits" | "roots" | "server" | "state" | "asked" | "onEvent" | "request" | "close"
  > {
  /** Whether lists may be others for other callers. @default false */
  readonly listsByCaller?: boolean | undefined;
}

/** A live connection to one MCP server, which is made again when it is lost. */
export class McpConnection {
  /** What of the server's words is passed on, and what is masked in its answers. */
  readonly secrets: SourceSecrets;
  readonly #options: McpConnectionOptions;
  readonly #serverName: string;
  /** Those in force. */
  readonly limits: McpLimits;
  readonly #backoff: Backoff;
  readonly #listeners = new Listeners<McpConnectionEvent>();
  readonly #closing = new AbortController();
  readonly #subscriptions: Subscriptions;
  readonly #retired = new RetiredSessions();
  /** Decides how soon a session that the server has forgotten is replaced again. */
  readonly #renewals: Backoff;
  #renewAfter = Number.NEGATIVE_INFINITY;
  #state: McpConnectionState = { status: "connecting" };
  #facts: McpServerFacts | undefined;
  #session: McpSession | undefined;
  #changes: ChangeSubscription | undefined;
  #attempt: Promise<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** What the server said when the connection could not be made again. */
  #said: string | undefined;
  /** What the connections so far taught of the server. */
  #known: KnownServer | undefined;
  #ended: Promise<void> | undefined;
  readonly #onWire?: WireWatch & ((event: WireEvent) => void);

  /** `onWire` hears what passes over each connection, with what takes secrets of the server out of texts; it must not throw. */
  constructor(options: McpConnectionOptions, onWire?: OnWire) {
    this.#options = options;
    const mask = (text: string): string => this.secrets.mask(text);
    if (onWire !== undefined) {
      const tell = (event: WireEvent): void => onWire(event, mask);
      this.#onWire = Object.assign(tell, { watch: onWire.watch });
    }
    this.secrets = secretsOf(options);
    this.#serverName = nameServer(options);
    this.limits = toMcpLimits(options.limits);
    this.#backoff = new Backoff(options.reconnect || {});
    this.#renewals = new Backoff(options.reconnect || {});
    this.#subscriptions = new Subscriptions(options.logLevel);
  }

  /** Those of the present or the last connection. */
  get server(): McpServerFacts {
    if (this.#facts === undefined) throw new Error("The connection was never made.");
    return this.#facts;
  }

  get state(): McpConnectionState {
    return this.#state;
  }

  /** The folders that the server may be interested in. */
  get roots(): NonNullable<McpConnectionOptions["roots"]> {
    return this.#options.roots ?? [];
  }

  /** What an error about a request names. */
  asked(method: string, params?: Params): AskedOfServer {
    return { method, params, server: this.#serverName, secrets: this.secrets };
  }

  /** Makes the first connection; rejects with a `CallError`, and is not tried again. */
  async open(): Promise<void> {
    await this.#connect().catch((thrown: unknown) => {
      throw this.secrets.maskError(thrown);
    });
  }

  /** Returns how to stop listening. */
  onEvent(listener: (event: McpConnectionEvent) => void): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * Sends a request and resolves with the `result` exactly as the server sent it, unchecked. Questions the server asks on the way
   * (`input_required`, `elicitation/create`, `sampling/createMessage`) go to the `caller` of the request. Rejects with a
   * `CallError`: `UNAVAILABLE` (no connection, or it was lost), `TIMEOUT`, `ABORTED`, `TOO_LARGE`, `UNAUTHENTICATED`,
   * `ACCESS_DENIED`, or for a JSON-RPC error what `src/mcp/client/request-failures.ts` makes of its code.
   */
  async request(
    method: string,
    params: Params | undefined,
    options: McpRequestOptions = {},
  ): Promise<Params> {
    checkRequestOptions(options);
    const { logLevel } = this.#subscriptions;
    const timeoutMs = options.timeoutMs ?? this.#options.timeoutMs ?? 60_000;
    let session = this.#session;
    let request = toSessionRequest(options, { method, params, timeoutMs, logLevel });
    try {
      if (session === undefined) {
        const startedAt = monotonicNow();
        session = await this.#awaitSession(request);
        request = { ...request, timeoutMs: Math.max(0, timeoutMs - (monotonicNow() - startedAt)) };
      }
      if (LASTING.has(method)) return await this.#requestLasting(session, request);
      return await session.request(request);
    } catch (thrown) {
      if (session === undefined || !(thrown instanceof SessionGone)) throw this.secrets.maskError(thrown);
      return await this.#requestAgain(session, request, thrown).catch((failure: unknown) => {
        throw this.secrets.maskError(failure);
      });
    }
  }

  /** Waits for the session that is being made, but no longer than the request itself. */
  async #awaitSession({ method, timeoutMs, signal }: SessionRequest): Promise<McpSession> {
    if (this.#attempt !== undefined) {
      const stop = new RequestStop(this.asked(method), timeoutMs, signal);
      await stop.waitFor(this.#attempt);
    }
    return await this.#ready(method);
  }

  /** Makes a request whose effect outlasts the session: what it asked for is asked for again over the next one. */
  async #requestLasting(session: McpSession, request: SessionRequest): Promise<Params> {
    const { method, params } = request;
    const local = await this.#answerLocally(session, method, params);
    if (local !== undefined) return local;
    const result = await session.request(request);
    this.#subscriptions.note(method, params);
    return result;
  }

  async notify(method: string, params?: Params): Promise<void> {
    const session = await this.#ready(method);
    try {
      await session.notify(method, params);
    } catch (cause) {
      throw isCallError(cause)
        ? cause
        : toUnavailable({ reason: "it could not be told", cause }, this.asked(method));
    }
  }

  /** Ends it for good; every process of a stdio server is gone when it resolves. */
  close(): Promise<void> {
    this.#ended ??= this.#close();
    return this.#ended;
  }

  async #close(): Promise<void> {
    clearTimeout(this.#timer);
    this.#closing.abort();
    this.#changes?.stop();
    if (this.#session !== undefined) this.#retired.end(this.#session);
    this.#session = undefined;
    await Promise.all([this.#retired.closeAll(), this.#attempt?.catch(() => {})]);
    this.#setState(CLOSED);
  }

  /** A session that is gone ran nothing: the request goes out once more over a new one. */
  async #requestAgain(session: McpSession, request: SessionRequest, gone: SessionGone): Promise<Params> {
    if (this.#session === session && monotonicNow() < this.#renewAfter) throw this.#forgetful(gone, request);
    if (this.#session === session) await this.#renew(session).catch(() => {});
    const next = await this.#ready(request.method);
    try {
      const result = await next.request(request);
      if (LASTING.has(request.method)) this.#subscriptions.note(request.method, request.params);
      return result;
    } catch (error) {
      if (!(error instanceof SessionGone)) throw error;
      const isOver = monotonicNow() >= this.#renewAfter;
      if (isOver) this.#renewAfter = monotonicNow() + this.#renewals.next(Date.now() - session.startedAt);
      throw this.#forgetful(error, request);
    }
  }

  #forgetful(cause: SessionGone, { method }: SessionRequest): CallError {
    return toUnavailable({ reason: "it forgets its sessions", cause }, this.asked(method));
  }

  /** What the 2026-07-28 revision does otherwise than with a request of its own. */
  async #answerLocally(
    session: McpSession,
    method: string,
    params: Params | undefined,
  ): Promise<Params | undefined> {
    if (!session.isModern) return undefined;
    const forget = this.#subscriptions.note(method, params);
    try {
      if (method !== "logging/setLevel") await this.#changes?.listen(this.#subscriptions.uris);
    } catch (cause) {
      forget();
      throw toUnavailable({ reason: "it takes no subscription", cause }, this.asked(method));
    }
    return {};
  }

  async #ready(method: string): Promise<McpSession> {
    if (this.#session === undefined && this.#attempt !== undefined) await this.#attempt.catch(() => {});
    if (this.#session !== undefined) return this.#session;
    const state = this.#state;
    const reason = state.status === "down" ? state.reason : "the connection is closed";
    // The first loss after good health is worth an attempt at once; those after it wait their turn.
    if (state.status === "down" && this.#backoff.failures === 1 && this.#options.reconnect !== false) {
      this.#startAttempt();
    }
    throw toUnavailable({ reason, said: this.#said }, this.asked(method));
  }

  #connect(): Promise<void> {
    this.#attempt ??= this.#openSession().finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  async #openSession(): Promise<void> {
    this.#setState({ status: "connecting" });
    const session = await openMcpSession({
      options: this.#options,
      serverName: this.#serverName,
      secrets: this.secrets,
      limits: this.limits,
      known: this.#known,
      isFirst: this.#facts === undefined,
      signal: this.#closing.signal,
      watcher: {
        onNotification: (method, params) => this.#listeners.tell({ type: "notification", method, params }),
        onOddity: (message) => this.#listeners.tell({ type: "oddity", message: this.secrets.mask(message) }),
        onLost: (lost, { reason, cause }) => this.#lose(lost, reason, cause),
        onStale: (stale) => void this.#renew(stale).catch(() => {}),
        onWire: this.#onWire,
      },
    });
    if (this.#closing.signal.aborted) {
      await session.close();
      throw toUnavailable({ reason: "the connection is closed" }, this.asked("anything"));
    }
    // What is started again is the same program; a server behind a URL may be another one next time.
    if (!("url" in this.#options)) this.#known = session.known;
    this.#facts = this.secrets.maskResult(session.facts);
    this.#session = session;
    this.#said = undefined;
    await this.#restore(session);
    if (this.#session === session) this.#setState({ status: "ready" });
  }

  /** Takes up again what was asked for earlier; a server that will not is no reason to have no connection. */
  async #restore(session: McpSession): Promise<void> {
    if (session.isModern) {
      this.#changes?.stop();
      const onGap = (method: string) => this.#listeners.tell({ type: "notification", method, params: {} });
      this.#changes = new ChangeSubscription(session, onGap);
      const mostMs = this.#options.connectTimeoutMs ?? 30_000;
      await this.#changes.start(this.#subscriptions.uris, mostMs, (error) => this.#noteFailure(error));
      return;
    }
    const failures = await this.#subscriptions.restore(session, this.#options.connectTimeoutMs ?? 30_000);
    for (const failure of failures) this.#noteFailure(failure);
  }

  #noteFailure(error: unknown): void {
    const said = toPlainLine(this.secrets.mask(error instanceof Error ? error.message : String(error)), 300);
    this.#listeners.tell({
      type: "oddity",
      message: `Something asked for earlier could not be taken up again: ${said}`,
    });
  }

  /** Puts a new session in the place of one that no longer serves; what still runs over the old one may end. */
  async #renew(stale: McpSession): Promise<void> {
    if (this.#session !== stale || this.#closing.signal.aborted) return;
    this.#session = undefined;
    this.#changes?.stop();
    this.#retired.retire(stale, Math.min(this.#options.timeoutMs ?? 60_000, LONGEST_DELAY));
    try {
      await this.#connect();
    } catch (error) {
      this.#wait(error, Date.now() - stale.startedAt);
    }
  }

  #lose(session: McpSession, reason: string, cause: unknown): void {
    if (this.#session !== session || this.#closing.signal.aborted) return;
    this.#session = undefined;
    this.#changes?.stop();
    this.#retired.end(session);
    this.#wait(new CallError("UNAVAILABLE", reason, { cause }), Date.now() - session.startedAt);
  }

  #wait(error: unknown, livedMs: number): void {
    if (this.#closing.signal.aborted) return;
    clearTimeout(this.#timer);
    const reason = this.#reasonOf(error);
    this.#said = isCallError(error) ? saidIn(error.details) : undefined;
    if (this.#options.reconnect === false) {
      this.#setState({ status: "down", reason, retryAt: Number.POSITIVE_INFINITY, cause: error });
      return;
    }
    const delay = Math.min(this.#backoff.next(livedMs), LONGEST_DELAY);
    this.#timer = setTimeout(() => this.#startAttempt(), delay);
    this.#setState({ status: "down", reason, retryAt: Date.now() + delay, cause: error });
  }

  /** Sentences of ours alone; whatever else it is stays in the cause. */
  #reasonOf(error: unknown): string {
    if (!isCallError(error)) return "the connection could not be made again";
    const message = error.message.startsWith(`${this.#serverName} `)
      ? `it ${error.message.slice(this.#serverName.length + 1)}`
      : error.message;
    return toPlainLine(message, 500).replace(/\.$/, "");
  }

  #startAttempt(): void {
    clearTimeout(this.#timer);
    if (this.#session !== undefined || this.#attempt !== undefined || this.#closing.signal.aborted) return;
    this.#connect().catch((error: unknown) => this.#wait(error, 0));
  }

  #setState(state: McpConnectionState): void {
    if (this.#state.status === "closed") return;
    this.#state = state;
    this.#listeners.tell({ type: "state", state });
  }
}

/** What was asked for over one session and holds for the next ones too. */
class Subscriptions {
  readonly #subscribed = new Set<string>();
  #logLevel: McpLogLevel | undefined;

  constructor(logLevel: McpLogLevel | undefined) {
    this.#logLevel = logLevel;
  }

  get logLevel(): McpLogLevel | undefined {
    return this.#logLevel;
  }

  /** The resources that are watched. */
  get uris(): string[] {
    return [...this.#subscribed];
  }

  /** Remembers what a request asked for, if it holds beyond the session; returns how to forget it again. */
  note(method: string, params: Params | undefined): () => void {
    const [uris, level] = [this.uris, this.#logLevel];
    const uri = params?.["uri"];
    if (method === "logging/setLevel") this.#logLevel = params?.["level"] as McpLogLevel;
    if (method === "resources/subscribe" && typeof uri === "string") this.#subscribed.add(uri);
    if (method === "resources/unsubscribe" && typeof uri === "string") this.#subscribed.delete(uri);
    return () => {
      this.#logLevel = level;
      this.#subscribed.clear();
      for (const each of uris) this.#subscribed.add(each);
    };
  }

  /** Asks a server of the 2025 revisions for everything again; gives the failures, which are no reason to have no connection. */
  async restore(session: McpSession, timeoutMs: number): Promise<unknown[]> {
    const requests: [string, Params][] = this.uris.map((uri) => ["resources/subscribe", { uri }]);
    if (this.#logLevel !== undefined && Object.hasOwn(session.facts.capabilities, "logging")) {
      requests.push(["logging/setLevel", { level: this.#logLevel }]);
    }
    const sent = requests.map(([method, params]) =>
      session.request({ method, params, timeoutMs, logLevel: undefined }),
    );
    const ends = await Promise.allSettled(sent);
    return ends.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
  }
}

/** Sessions that were lost or replaced, until they are closed. */
class RetiredSessions {
  readonly #open = new Set<McpSession>();

  /** Closes a session now. */
  end(session: McpSession): void {
    this.#open.add(session);
    void session.close().finally(() => this.#open.delete(session));
  }

  /** Closes a session once nothing runs over it any more, or after so many milliseconds. */
  retire(session: McpSession, patienceMs: number): void {
    this.#open.add(session);
    const timer = setTimeout(() => this.end(session), patienceMs);
    timer.unref();
    void session.idle().then(() => {
      clearTimeout(timer);
      this.end(session);
    });
  }

  /** Closes all that are left; resolves when they are closed. */
  async closeAll(): Promise<void> {
    await Promise.all([...this.#open].map((session) => session.close()));
  }
}

/** What one request over a connection may be told. */
export interface McpRequestOptions extends Pick<McpProviderOptions, "signal" | "caller" | "onServerLog"> {
  /** @default 60_000 */
  readonly timeoutMs?: number | undefined;
  /** Hears the params of each `notifications/progress` of this request, without the token. */
  readonly onProgress?: ((progress: Readonly<Record<string, unknown>>) => void) | undefined;
  /** Who makes the request, compared by `===`: of several with the same one it need not be known which one is meant. @default nobody else */
  readonly party?: object | string | undefined;
  /** For `tools/call`: the input schema as listed, whose `x-mcp-header` members the 2026-07-28 revision mirrors in headers. */
  readonly inputSchema?: Readonly<Record<string, unknown>> | undefined;
  /** The call that it is part of: for those who watch what passes, and for functions that give credentials. @default not known */
  readonly call?: CallOfRequest | undefined;
  /** The task that the request makes or is about, as the caller that waits for it sees it. @default none */
  readonly task?: TaskWatch | undefined;
}

/** What the server said about itself when it was last connected to. */
export interface McpServerFacts {
  /** The revision in use, such as "2025-11-25" or "2026-07-28". */
  readonly protocolVersion: string;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly serverInfo: Readonly<Record<string, unknown>> | undefined;
  readonly instructions: string | undefined;
}

/** How a connection is doing. */
export type McpConnectionState =
  | { readonly status: "connecting" | "ready" | "closed" }
  /** Lost; it is tried again at `retryAt` (Unix epoch milliseconds). */
  | {
      readonly status: "down";
      readonly reason: string;
      readonly retryAt: number;
      /** What it failed with: for programs, since it may hold what others said. */
      readonly cause?: unknown;
    };

/** What a connection tells on its own account. */
export type McpConnectionEvent =
  | {
      readonly type: "notification";
      readonly method: string;
      readonly params: Readonly<Record<string, unknown>>;
    }
  | { readonly type: "state"; readonly state: McpConnectionState }
  /** Something odd that nobody is waiting for: noise on stdout, a message that is none. */
  | { readonly type: "oddity"; readonly message: string };

type Given = "method" | "params" | "timeoutMs" | "logLevel";

/** Member by member: a copy by `...` that is added to costs as much as the rest of making a request. */
function toSessionRequest(
  { signal, onProgress, caller, onServerLog, party, inputSchema, call, task }: McpRequestOptions,
  { method, params, timeoutMs, logLevel }: Pick<SessionRequest, Given>,
): SessionRequest {
  const all: { [Name in keyof Required<SessionRequest>]: SessionRequest[Name] } = {
    method,
    params,
    timeoutMs,
    logLevel,
    signal,
    onProgress,
    caller,
    onServerLog,
    party,
    inputSchema,
    call,
    task,
  };
  return all;
}

/** Throws a `TypeError` for options of a request that cannot work, before anything waits for them. */
export function checkRequestOptions(options: McpRequestOptions | undefined): void {
  if (options === undefined) return;
  if (typeof options !== "object" || options === null || isAbortSignal(options)) {
    throw new TypeError("The options of a request must be an object, such as { signal, timeoutMs }.");
  }
  const { signal, timeoutMs, onProgress } = options;
  if (signal !== undefined && !isAbortSignal(signal)) {
    const hint = (signal as unknown) instanceof AbortController ? " (the signal of the controller)" : "";
    checkOption("signal", signal, `an AbortSignal${hint}`, false);
  }
  const isDelay = timeoutMs === undefined || (typeof timeoutMs === "number" && timeoutMs >= 0);
  if (!isDelay) checkDelay("timeoutMs", timeoutMs);
  if (onProgress !== undefined && typeof onProgress !== "function") {
    checkOption("onProgress", onProgress, "a function", false);
  }
}

/**
 * Connects to an MCP server. Rejects with a `CallError` that names the command or host (`UNAVAILABLE`, `UNAUTHENTICATED`,
 * `ACCESS_DENIED`, `TIMEOUT`) when the first attempt fails, and leaves no process behind; with a `TypeError` for options that
 * cannot work.
 */
export async function openMcpConnection(options: McpConnectionOptions): Promise<McpConnection> {
  checkConnectionOptions(options);
  const connection = new McpConnection(options);
  await connection.open();
  return connection;
}
