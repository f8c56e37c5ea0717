import { CallError } from "../../core/errors/errors.ts";
import { LONGEST_DELAY } from "../../core/execution/deadline.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import type { SourceSecrets } from "../../core/secrets/source-secrets.ts";
import type { Channel, ChannelListener, Loss } from "../channels/channel.ts";
import { HttpSseChannel } from "../channels/http-sse.ts";
import { StartError } from "../channels/spawn-child.ts";
import { toProcessChannel } from "../channels/stdio-transport.ts";
import { StreamableHttpChannel } from "../channels/streamable-http.ts";
import { toTransportChannel } from "../channels/transport-channel.ts";
import { type Params, type RpcError, toRpcError } from "../protocol/messages.ts";
import { RpcPeer } from "../protocol/peer.ts";
import { type Era, methodNotFound } from "../protocol/revisions.ts";
import { readServerLog } from "../provider.ts";
import { isQuestion, QuestionRefused } from "./caller-questions.ts";
import { fromChannelFailure, isFault } from "./channel-failure.ts";
import type { McpConnectionOptions } from "./connection-options.ts";
import { type KnownServer, shakeHands } from "./handshake.ts";
import { type HttpConnectionOptions, toServerUrl } from "./http-options.ts";
import type { McpLimits } from "./mcp-limits.ts";
import { McpSession } from "./mcp-session.ts";
import type { ClientInfo } from "./outgoing-params.ts";
import { toPlainLine } from "./plain-line.ts";
import { ServerQuestions } from "./server-questions.ts";

/** What opening a session needs. */
export interface SessionPlan {
  readonly options: McpConnectionOptions;
  readonly serverName: string;
  readonly secrets: SourceSecrets;
  readonly limits: McpLimits;
  /** What an earlier connection taught of the server. */
  readonly known: KnownServer | undefined;
  /** Nobody uses the connection yet: whoever makes it may hear what a process said last. */
  readonly isFirst: boolean;
  readonly signal: AbortSignal;
  readonly watcher: SessionWatcher;
}

/** Who hears what a session tells on its own account. */
export interface SessionWatcher {
  onNotification(method: string, params: Params): void;
  onOddity(message: string): void;
  /** The session that was open is lost. */
  onLost(session: McpSession, loss: Loss): void;
  /** The stream for what comes unasked is lost, while requests may still work. */
  onStale(session: McpSession): void;
}

/** The process ended when it was asked for what it does not know: some older servers do. */
class EndedOnDiscover extends Error {}

/** Statuses with which a server of the old HTTP+SSE transport answers a POST to where its events are. */
const OLD_SSE_STATUSES: ReadonlySet<number> = new Set([400, 404, 405]);

/** Opens a session, and leaves nothing behind where that fails; rejects with a `CallError`. */
export async function openSession(plan: SessionPlan): Promise<McpSession> {
  const { options } = plan;
  const endsAt = Date.now() + Math.min(options.connectTimeoutMs ?? 30_000, LONGEST_DELAY);
  try {
    return await new Opening(plan, createChannel(plan)).open(endsAt);
  } catch (error) {
    if (error instanceof EndedOnDiscover) {
      return await new Opening({ ...plan, known: "plain" }, createChannel(plan)).open(endsAt);
    }
    if (!("url" in options) || !mayBeOldSse(options, error)) throw error;
    return await openOldSse(plan, endsAt, error);
  }
}

/** A server that takes no POST may be one of 2024-11-05, which begins with a GET; where it is none, the first failure counts. */
async function openOldSse(plan: SessionPlan, endsAt: number, first: unknown): Promise<McpSession> {
  try {
    return await new Opening(plan, createHttpChannel(plan, "sse")).open(endsAt);
  } catch (error) {
    throw plan.signal.aborted ? error : first;
  }
}

function mayBeOldSse(
  { type, protocol }: McpConnectionOptions & HttpConnectionOptions,
  error: unknown,
): boolean {
  if (type !== undefined || protocol === "2026" || !(error instanceof CallError)) return false;
  return isFault(error.cause, "status") && OLD_SSE_STATUSES.has(error.cause.status ?? 0);
}

/** One attempt to open a session over one channel. */
class Opening implements ChannelListener {
  readonly #plan: SessionPlan;
  readonly #channel: Channel;
  readonly #questions: ServerQuestions;
  readonly #peer: RpcPeer;
  #era: Era | undefined;
  #session: McpSession | undefined;
  #isClosed = false;
  #isDiscovering = false;

  constructor(plan: SessionPlan, channel: Channel) {
    this.#plan = plan;
    this.#channel = channel;
    this.#questions = new ServerQuestions({ roots: plan.options.roots ?? [], limits: plan.limits });
    this.#peer = new RpcPeer({
      answer: (request, signal) => this.#answer(request.method, request.params, signal),
      toError: toRefusal,
      onNotification: ({ method, params = {} }) => this.#hear(method, params),
      send: (text, { asks }) => {
        channel.send(text, asks).catch((failure: unknown) => asks && this.#peer.fail(asks.id, failure));
      },
      onFault: (message, said) => this.onOddity(withWords(message, said)),
      onLateAnswer: (id) => this.#session?.noteLateAnswer(id),
      onLateProgress: (id) => this.#session?.noteLateProgress(id),
    });
  }

  async open(endsAt: number): Promise<McpSession> {
    const { options, limits, serverName, secrets, signal } = this.#plan;
    const roots = options.roots ?? [];
    const clientInfo = clientInfoOf(options);
    const [peer, channel, questions] = [this.#peer, this.#channel, this.#questions];
    const ended = whenEnded(signal, endsAt, serverName);
    try {
      const opening = this.#shakeHands(clientInfo);
      opening.catch(() => {});
      const handshake = await Promise.race([opening, ended.promise]);
      if (this.#isClosed) throw new Error("It closed at once.");
      this.#session = new McpSession({
        peer,
        channel,
        handshake,
        questions,
        limits,
        roots,
        serverName,
        secrets,
        clientInfo,
      });
      return this.#session;
    } catch (error) {
      const isOnDiscover = this.#isDiscovering && this.#isClosed && options.protocol !== "2026";
      const loss = this.#isClosed ? channel.loss() : undefined;
      peer.close();
      await channel.close().catch(() => {});
      if (ended.failure === undefined && isOnDiscover) throw new EndedOnDiscover();
      throw ended.failure ?? toConnectError(error, loss, this.#plan);
    } finally {
      ended.stop();
    }
  }

  onMessage(message: unknown): void {
    this.#peer.receive(message);
  }

  onOddity(message: string): void {
    this.#plan.watcher.onOddity(message);
  }

  onStale(): void {
    if (this.#session !== undefined) this.#plan.watcher.onStale(this.#session);
  }

  onClose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const loss = this.#channel.loss();
    this.#session?.lose(loss);
    this.#peer.close();
    if (this.#session !== undefined) this.#plan.watcher.onLost(this.#session, loss);
  }

  async #shakeHands(clientInfo: ClientInfo) {
    const { options, known } = this.#plan;
    await this.#channel.start(this);
    const handshake = await shakeHands({
      peer: this.#peer,
      channel: this.#channel,
      // The old transport is older than any revision that could be asked for.
      protocol: this.#channel instanceof HttpSseChannel ? "2025" : (options.protocol ?? "auto"),
      clientInfo,
      known,
      onDiscover: (isAsked) => {
        this.#isDiscovering = isAsked || this.#isClosed;
      },
      onAgreed: (era) => {
        this.#era = era;
      },
    });
    return handshake;
  }

  async #answer(method: string, params: Params | undefined, signal: AbortSignal): Promise<string> {
    if (this.#era === "legacy" && isQuestion(method)) {
      const { secrets } = this.#plan;
      return JSON.stringify(await this.#questions.answer(method, secrets.maskResult(params), signal));
    }
    if (method === "ping" && this.#era !== "modern") return "{}";
    throw methodNotFound();
  }

  #hear(method: string, given: Params): void {
    const { secrets, watcher } = this.#plan;
    if (this.#session?.hearSubscription(method, given) === true || method === "notifications/cancelled")
      return;
    const isLog = method === "notifications/message";
    const params = isLog ? secrets.maskAll(given) : given;
    const log = isLog ? readServerLog(params) : undefined;
    if (log !== undefined) this.#session?.hear(log);
    watcher.onNotification(method, params);
  }
}

/** Makes the channel that the options ask for; nothing is started yet. */
function createChannel(plan: SessionPlan): Channel {
  const { options, limits } = plan;
  if ("command" in options) {
    const { command, args, env, cwd, inheritEnv } = options;
    const lineBytes = limits.messageBytes;
    return toProcessChannel({ command, args, env, cwd, inheritEnv, limits: { lineBytes } });
  }
  if ("url" in options) return createHttpChannel(plan, options.type);
  return toTransportChannel(options.transport());
}

function createHttpChannel(plan: SessionPlan, type: HttpConnectionOptions["type"]): Channel {
  const options = plan.options as McpConnectionOptions & HttpConnectionOptions;
  const url = toServerUrl(options);
  const { secrets, limits } = plan;
  const onCredential = (name: string, value: string): void => secrets.obtainedHeader(name, value);
  const given = { options, url, maxBytes: limits.messageBytes, onCredential };
  return type === "sse" ? new HttpSseChannel(given) : new StreamableHttpChannel(given);
}

function withWords(message: string, said: unknown): string {
  const words = toPlainLine(said, 200);
  return words === "" ? message : `${message.slice(0, -1)}: ${words}`;
}

function toRefusal(thrown: unknown): RpcError {
  if (thrown instanceof QuestionRefused) return { code: thrown.code, message: thrown.message };
  return toRpcError(thrown);
}

/** Rejects when the time is up, or when nobody wants the connection any more. */
function whenEnded(signal: AbortSignal, endsAt: number, server: string) {
  const ended: { failure: CallError | undefined; promise: Promise<never>; stop: () => void } = {
    failure: undefined,
    promise: Promise.resolve() as Promise<never>,
    stop: () => {},
  };
  ended.promise = new Promise<never>((_, reject) => {
    const end = (failure: CallError) => {
      ended.failure = failure;
      reject(failure);
    };
    const late = () => end(new CallError("TIMEOUT", `${server} did not finish the handshake in time.`));
    const unwanted = () => end(new CallError("UNAVAILABLE", `The connection to ${server} was closed.`));
    const timer = setTimeout(late, Math.max(1, endsAt - Date.now()));
    signal.addEventListener("abort", unwanted, { once: true });
    if (signal.aborted) unwanted();
    ended.stop = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", unwanted);
    };
  });
  ended.promise.catch(() => {});
  return ended;
}

/** A first failure names what it is about: a command that is missing, a process that ended, a host that does not answer. */
function toConnectError(error: unknown, loss: Loss | undefined, plan: SessionPlan): CallError {
  const { serverName: server, secrets, isFirst, options } = plan;
  const isTooOld = isFault(error, "too-old");
  const asked = { method: "for a connection", server, secrets };
  if ("url" in options && !isTooOld) {
    if (loss === undefined) return fromChannelFailure(error, asked);
    const message = `${server} could not be asked for a connection: ${loss.reason}.`;
    return new CallError("UNAVAILABLE", message, { cause: loss.cause ?? error });
  }
  const cause = loss?.cause === undefined ? error : new AggregateError([error, loss.cause], loss.reason);
  const known = isTooOld
    ? 'it does not speak 2026-07-28; leave protocol out, or set it to "2025"'
    : (startFailureIn(error, options) ?? loss?.reason);
  const answered = known === undefined ? fromChannelFailure(error, asked) : undefined;
  const why = known ?? whyOf(answered);
  const lastWords = secrets.mask(loss?.lastWords ?? "").replace(/\.$/, "");
  const last = isFirst && lastWords !== "" ? `; it last said: ${lastWords}` : "";
  return new CallError("UNAVAILABLE", `${server} could not be connected to: ${why}${last}.`, {
    cause,
    ...(answered?.details !== undefined && { details: answered.details }),
  });
}

/** What is said of a program that cannot be run. */
function startFailureIn(error: unknown, options: McpConnectionOptions): string | undefined {
  if (!(error instanceof StartError)) return undefined;
  const said = toPlainLine(error.message, 300).replace(/\.$/, "");
  const isLine = "command" in options && /\s/.test(options.command) && error.isMissing;
  return isLine ? `${said}; command is the program alone, what follows it goes into args` : said;
}

/** Says in our own words what a server answered to the handshake. */
function whyOf(error: CallError | undefined): string {
  const rpcCode = isPlainObject(error?.details) ? error.details["rpcCode"] : undefined;
  if (typeof rpcCode === "number") return `it answered the handshake with an error (${rpcCode})`;
  return error?.code === "TIMEOUT" ? "it did not answer in time" : "the connection failed";
}

function clientInfoOf({ clientInfo }: McpConnectionOptions): ClientInfo {
  return clientInfo ?? { name: "waybill", version: PACKAGE_VERSION };
}
