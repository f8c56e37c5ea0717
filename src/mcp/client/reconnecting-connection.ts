import { CallError, isCallError } from "../../core/errors/errors.ts";
import { saidIn } from "../../core/errors/source-words.ts";
import { LONGEST_DELAY, monotonicNow } from "../../core/execution/deadline.ts";
import type { SourceSecrets } from "../../core/secrets/source-secrets.ts";
import { checkRequestOptions } from "../option-checks.ts";
import type { McpLogLevel } from "../provider.ts";
import { tellAll } from "../tell-all.ts";
import { Backoff } from "./backoff.ts";
import { ChangeListener } from "./change-listener.ts";
import { type McpConnectionOptions, nameServer, secretsOf } from "./connection-options.ts";
import type { KnownServer } from "./handshake.ts";
import type {
  McpConnection,
  McpConnectionEvent,
  McpConnectionState,
  McpRequestOptions,
  McpServerFacts,
} from "./mcp-connection.ts";
import { type McpLimits, toMcpLimits } from "./mcp-limits.ts";
import { type McpSession, SessionGone, type SessionRequest, toUnavailable } from "./mcp-session.ts";
import { openSession } from "./open-session.ts";
import { toPlainLine } from "./plain-line.ts";
import { RequestStop } from "./request-stop.ts";

type Params = Readonly<Record<string, unknown>>;

const CLOSED: McpConnectionState = { status: "closed" };

/** A connection that is made again when it is lost; see `McpConnection`. */
export class ReconnectingConnection implements McpConnection {
  readonly secrets: SourceSecrets;
  readonly #options: McpConnectionOptions;
  readonly #serverName: string;
  readonly #limits: McpLimits;
  readonly #backoff: Backoff;
  readonly #listeners = new Set<(event: McpConnectionEvent) => void>();
  readonly #closing = new AbortController();
  readonly #subscriptions: Subscriptions;
  readonly #retired = new RetiredSessions();
  /** Decides how soon a session that the server has forgotten is replaced again. */
  readonly #renewals: Backoff;
  #renewAfter = Number.NEGATIVE_INFINITY;
  #state: McpConnectionState = { status: "connecting" };
  #facts: McpServerFacts | undefined;
  #session: McpSession | undefined;
  #changes: ChangeListener | undefined;
  #attempt: Promise<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** What the server said when the connection could not be made again. */
  #said: string | undefined;
  /** What the connections so far taught of the server. */
  #known: KnownServer | undefined;
  #ended: Promise<void> | undefined;

  constructor(options: McpConnectionOptions) {
    this.#options = options;
    this.secrets = secretsOf(options);
    this.#serverName = nameServer(options);
    this.#limits = toMcpLimits(options.limits);
    this.#backoff = new Backoff(options.reconnect || {});
    this.#renewals = new Backoff(options.reconnect || {});
    this.#subscriptions = new Subscriptions(options.logLevel);
  }

  get server(): McpServerFacts {
    if (this.#facts === undefined) throw new Error("The connection was never made.");
    return this.#facts;
  }

  get state(): McpConnectionState {
    return this.#state;
  }

  /** Makes the first connection; rejects with a `CallError`, and is not tried again. */
  async open(): Promise<void> {
    await this.#connect().catch((thrown: unknown) => {
      throw this.secrets.maskError(thrown);
    });
  }

  onEvent(listener: (event: McpConnectionEvent) => void): () => void {
    const own = (event: McpConnectionEvent) => listener(event);
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  async request(
    method: string,
    params: Params | undefined,
    options: McpRequestOptions = {},
  ): Promise<Params> {
    checkRequestOptions(options);
    try {
      return await this.#request(method, params, options);
    } catch (thrown) {
      throw this.secrets.maskError(thrown);
    }
  }

  async #request(method: string, params: Params | undefined, options: McpRequestOptions): Promise<Params> {
    const timeoutMs = options.timeoutMs ?? this.#options.timeoutMs ?? 60_000;
    const startedAt = monotonicNow();
    if (this.#session === undefined && this.#attempt !== undefined) {
      const stop = new RequestStop(this.#asked(method), timeoutMs, options.signal);
      await stop.waitFor(this.#attempt);
    }
    const session = await this.#ready(method);
    const request: SessionRequest = {
      ...options,
      method,
      params,
      timeoutMs: Math.max(0, timeoutMs - (monotonicNow() - startedAt)),
      logLevel: this.#subscriptions.logLevel,
    };
    const local = await this.#answerLocally(session, method, params);
    if (local !== undefined) return local;
    const result = await this.#requestOver(session, request);
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
        : toUnavailable({ reason: "it could not be told", cause }, this.#asked(method));
    }
  }

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
  async #requestOver(session: McpSession, request: SessionRequest): Promise<Params> {
    try {
      return await session.request(request);
    } catch (error) {
      if (!(error instanceof SessionGone)) throw error;
      if (this.#session === session && monotonicNow() < this.#renewAfter)
        throw this.#forgetful(error, request);
    }
    if (this.#session === session) await this.#renew(session).catch(() => {});
    const next = await this.#ready(request.method);
    try {
      return await next.request(request);
    } catch (error) {
      if (!(error instanceof SessionGone)) throw error;
      const isOver = monotonicNow() >= this.#renewAfter;
      if (isOver) this.#renewAfter = monotonicNow() + this.#renewals.next(Date.now() - session.startedAt);
      throw this.#forgetful(error, request);
    }
  }

  #forgetful(cause: SessionGone, { method }: SessionRequest): CallError {
    return toUnavailable({ reason: "it forgets its sessions", cause }, this.#asked(method));
  }

  /** What the 2026-07-28 revision does otherwise than with a request of its own. */
  async #answerLocally(
    session: McpSession,
    method: string,
    params: Params | undefined,
  ): Promise<Params | undefined> {
    if (!session.isModern) return undefined;
    if (method !== "logging/setLevel" && !/^resources\/(?:un)?subscribe$/.test(method)) return undefined;
    const forget = this.#subscriptions.note(method, params);
    try {
      if (method !== "logging/setLevel") await this.#changes?.listen(this.#subscriptions.uris);
    } catch (cause) {
      forget();
      throw toUnavailable({ reason: "it takes no subscription", cause }, this.#asked(method));
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
    throw toUnavailable({ reason, said: this.#said }, this.#asked(method));
  }

  #connect(): Promise<void> {
    this.#attempt ??= this.#openSession().finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  async #openSession(): Promise<void> {
    this.#setState({ status: "connecting" });
    const session = await openSession({
      options: this.#options,
      serverName: this.#serverName,
      secrets: this.secrets,
      limits: this.#limits,
      known: this.#known,
      isFirst: this.#facts === undefined,
      signal: this.#closing.signal,
      watcher: {
        onNotification: (method, params) => this.#emit({ type: "notification", method, params }),
        onOddity: (message) => this.#emit({ type: "oddity", message: this.secrets.mask(message) }),
        onLost: (lost, { reason, cause }) => this.#lose(lost, reason, cause),
        onStale: (stale) => void this.#renew(stale).catch(() => {}),
      },
    });
    if (this.#closing.signal.aborted) {
      await session.close();
      throw toUnavailable({ reason: "the connection is closed" }, this.#asked("anything"));
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
      const onGap = (method: string) => this.#emit({ type: "notification", method, params: {} });
      this.#changes = new ChangeListener(session, onGap);
      const mostMs = this.#options.connectTimeoutMs ?? 30_000;
      await this.#changes.start(this.#subscriptions.uris, mostMs, (error) => this.#noteFailure(error));
      return;
    }
    const failures = await this.#subscriptions.restore(session, this.#options.connectTimeoutMs ?? 30_000);
    for (const failure of failures) this.#noteFailure(failure);
  }

  #noteFailure(error: unknown): void {
    const said = toPlainLine(this.secrets.mask(error instanceof Error ? error.message : String(error)), 300);
    this.#emit({
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
      this.#setState({ status: "down", reason, retryAt: Number.POSITIVE_INFINITY });
      return;
    }
    const delay = Math.min(this.#backoff.next(livedMs), LONGEST_DELAY);
    this.#timer = setTimeout(() => this.#startAttempt(), delay);
    this.#setState({ status: "down", reason, retryAt: Date.now() + delay });
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

  #asked(method: string) {
    return { method, server: this.#serverName, secrets: this.secrets };
  }

  #setState(state: McpConnectionState): void {
    if (this.#state.status === "closed") return;
    this.#state = state;
    this.#emit({ type: "state", state });
  }

  #emit(event: McpConnectionEvent): void {
    tellAll(this.#listeners, event);
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
