import { CallError } from "../../core/errors/errors.ts";
import { type FailureCause, failureIn } from "../../core/errors/failure.ts";
import { LONGEST_DELAY } from "../../core/execution/cancellation.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import type { SourceSecrets } from "../../core/secrets/secret-mask.ts";
import {
  type Channel,
  ChannelError,
  type ChannelListener,
  type Loss,
  toTransportChannel,
  type WireEvent,
  type WireWatch,
  watchedChannel,
} from "../channels/channel.ts";
import { StartError } from "../channels/child-process.ts";
import { HttpSseChannel } from "../channels/http-sse.ts";
import { toProcessChannel } from "../channels/stdio-transport.ts";
import { StreamableHttpChannel } from "../channels/streamable-http.ts";
import {
  type Params,
  ProtocolError,
  RPC_CODES,
  type RpcError,
  toRpcError,
  writeCall,
} from "../protocol/messages.ts";
import { RpcPeer } from "../protocol/peer.ts";
import {
  type Era,
  isModernRevision,
  LEGACY_REVISIONS,
  META_KEYS,
  MODERN_REVISIONS,
  methodNotFound,
} from "../protocol/revisions.ts";
import { readServerLog } from "../provider.ts";
import { isQuestion, QuestionRefused } from "./caller-questions.ts";
import {
  type HttpConnectionOptions,
  type McpConnectionOptions,
  type McpLimits,
  toServerUrl,
} from "./connection-options.ts";
import { CLIENT_CAPABILITIES, type ClientInfo, McpSession } from "./mcp-session.ts";
import { toPlainLine } from "./plain-line.ts";
import { fromChannelFailure, isFault, networkCodeOf, rpcErrorOf } from "./request-failures.ts";
import { ServerQuestions } from "./server-questions.ts";

interface SessionPlan {
  readonly options: McpConnectionOptions;
  readonly serverName: string;
  readonly secrets: SourceSecrets;
  readonly limits: McpLimits;
  /** What an earlier connection taught of the server. */
  readonly known: KnownServer | undefined;
  /** Nobody uses the connection yet: its creator may hear what a process wrote last. */
  readonly isFirst: boolean;
  readonly signal: AbortSignal;
  readonly watcher: SessionWatcher;
}

interface SessionWatcher {
  onNotification(method: string, params: Params): void;
  onOddity(message: string): void;
  /** The session that was open is lost. */
  onLost(session: McpSession, loss: Loss): void;
  /** The stream for what comes unasked is lost, while requests may still work. */
  onStale(session: McpSession): void;
  /** Hears what passes over the channel. @default nobody does */
  readonly onWire?: (WireWatch & ((event: WireEvent) => void)) | undefined;
}

/** The process ended when it was asked for what it does not know: some older servers do. */
class EndedOnDiscover extends Error {}

/** Statuses with which a server of the old HTTP+SSE transport answers a POST to where its events are. */
const OLD_SSE_STATUSES: ReadonlySet<number> = new Set([400, 404, 405]);

/** Opens a session, and leaves nothing behind where that fails; rejects with a `CallError`. */
export async function openMcpSession(plan: SessionPlan): Promise<McpSession> {
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

  constructor(plan: SessionPlan, bare: Channel) {
    const { onWire } = plan.watcher;
    const channel = onWire === undefined ? bare : watchedChannel(bare, onWire);
    this.#plan = plan;
    this.#channel = channel;
    this.#questions = new ServerQuestions({ roots: plan.options.roots ?? [], limits: plan.limits });
    this.#peer = new RpcPeer({
      answer: (request, signal) => this.#answer(request.method, request.params, signal),
      toError: toRefusalError,
      onNotification: ({ method, params = {} }) => this.#hear(method, params),
      send: (text, { asks }) => {
        channel.send(text, asks).catch((failure: unknown) => asks && this.#peer.fail(asks.id, failure));
      },
      onFault: (message, said) => this.onOddity(withWords(message, said)),
      onLateAnswer: (id) => this.#session?.noteLateAnswer(id),
      onLateProgress: (id, progress) => this.#session?.noteLateProgress(id, progress),
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

function toRefusalError(thrown: unknown): RpcError {
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
    const late = () => {
      const advice = "did not finish the handshake in time";
      const failure: FailureCause = { reason: "handshake-time", advice };
      end(new CallError("TIMEOUT", `${server} ${advice}.`, { failure }));
    };
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
    return new CallError("UNAVAILABLE", message, { cause: loss.cause ?? error, failure: loss.failure });
  }
  const cause = loss?.cause === undefined ? error : new AggregateError([error, loss.cause], loss.reason);
  const known = isTooOld
    ? 'it does not speak 2026-07-28; leave protocol out, or set it to "2025"'
    : (startFailureIn(error, options) ?? loss?.reason);
  const answered = known === undefined ? fromChannelFailure(error, asked) : undefined;
  const why = known ?? whyOf(answered);
  const lastWords = secrets.mask(loss?.lastWords ?? "").replace(/[.:,;]+$/, "");
  const last = isFirst && lastWords !== "" ? `; it last said: ${lastWords}` : "";
  return new CallError("UNAVAILABLE", `${server} could not be connected to: ${why}${last}.`, {
    cause,
    failure: answered?.failure ?? failureIn(error) ?? loss?.failure,
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

/** What a client and a server agreed on. */
export interface Handshake {
  readonly era: Era;
  readonly revision: string;
  /** What the server said of itself, as it came. */
  readonly result: Params;
  /** How to begin the next time. */
  readonly known: KnownServer | undefined;
}

/**
 * What an earlier connection taught of a server: the era it speaks; that it takes nothing but a plain `initialize`; or that it passed over
 * the claim of 2026-07-28 in an `initialize` and speaks the revision before, so that it may offer both and is asked the next time.
 */
export type KnownServer = "modern" | "plain" | "latest-legacy";

interface HandshakeOptions {
  readonly peer: RpcPeer;
  readonly channel: Channel;
  readonly protocol: "auto" | "2025" | "2026";
  readonly clientInfo: ClientInfo;
  readonly known: KnownServer | undefined;
  /** Hears that `server/discover` is asked: some older servers end when they are. */
  onDiscover(isAsked: boolean): void;
  /** Hears which era was agreed on, before the server hears that it was. */
  onAgreed(era: Era): void;
}

/** How long a server of 2025-11-25 has to say whether it offers more, in milliseconds. */
const MOST_ASKING_MS = 1_000;

/** Agrees with a server on a revision; rejects with a `ProtocolError`, a `ChannelError` or what the channel threw. */
async function shakeHands(options: HandshakeOptions): Promise<Handshake> {
  const { protocol, known, channel } = options;
  if (protocol === "2025") return await initialize(options);
  if (protocol === "2026") {
    const found = await discover(options);
    if (found === undefined) throw new ChannelError("too-old");
    return found;
  }
  if (known === "plain") return await initialize(options);
  // Over HTTP a request that is not understood costs a round trip and nothing else.
  if (known === "latest-legacy")
    return (await discover(options, MOST_ASKING_MS)) ?? (await initialize(options));
  if (known === "modern" || !channel.isShared)
    return (await discover(options)) ?? (await initialize(options));
  return await initializeOrDiscover(options);
}

/**
 * Opens with an `initialize` that also claims 2026-07-28 in its `_meta`, which older revisions let every request have. A server of theirs
 * answers it: one process, one round trip, and nothing sent that it does not know. A server of 2026-07-28 takes it for a request of that
 * revision, which has no such method, and says so; then it is asked what it offers.
 */
async function initializeOrDiscover(options: HandshakeOptions): Promise<Handshake> {
  try {
    return await initialize(options, { _meta: toClaim(options.clientInfo, MODERN_REVISIONS[0] ?? "") });
  } catch (refusal) {
    if (!(refusal instanceof ProtocolError)) throw refusal;
    // What knows the revision knows that there is no such method in it; anything else may dislike the claim alone.
    const isModern =
      refusal.code === RPC_CODES.methodNotFound || refusal.code === RPC_CODES.unsupportedVersion;
    const plain = isModern ? undefined : await initialize(options).catch(onlyOtherThanRefusals);
    const agreed = plain ?? (await discover(options));
    if (agreed !== undefined) return agreed;
    throw refusal;
  }
}

/** The handshake up to 2025-11-25. */
async function initialize(
  { peer, channel, clientInfo, onAgreed }: HandshakeOptions,
  claim?: Params,
): Promise<Handshake> {
  const [protocolVersion] = LEGACY_REVISIONS;
  const params = { protocolVersion, capabilities: CLIENT_CAPABILITIES, clientInfo, ...claim };
  const result = await ask(peer, { method: "initialize", params });
  const revision = isPlainObject(result) ? result["protocolVersion"] : undefined;
  if (!isPlainObject(result) || typeof revision !== "string" || !LEGACY_REVISIONS.includes(revision)) {
    throw new ChannelError("handshake");
  }
  onAgreed("legacy");
  channel.agree(revision);
  await channel.send(writeCall("notifications/initialized", undefined));
  channel.listen();
  const mayOfferMore = claim !== undefined && revision === protocolVersion;
  return { era: "legacy", revision, result, known: mayOfferMore ? "latest-legacy" : "plain" };
}

/** Asks what the server offers since 2026-07-28; nothing where it does not know what that means, or offers nothing that is known here. */
async function discover(options: HandshakeOptions, mostMs?: number): Promise<Handshake | undefined> {
  const { peer, channel, clientInfo } = options;
  options.onDiscover(true);
  try {
    const [newest = ""] = MODERN_REVISIONS;
    const params = { _meta: toClaim(clientInfo, newest) };
    const result = await ask(peer, { method: "server/discover", params, mostMs });
    const offered = isPlainObject(result) ? toTexts(result["supportedVersions"]) : [];
    const revision = MODERN_REVISIONS.find((known) => offered.includes(known));
    if (!isPlainObject(result) || revision === undefined) return undefined;
    options.onAgreed("modern");
    channel.agree(revision);
    return { era: "modern", revision, result, known: "modern" };
  } catch (failure) {
    const refusal = refusalIn(failure);
    if (refusal === undefined) throw failure;
    // A server of later revisions alone says so; what it says is more than that it does not know the method.
    const isLater =
      refusal.code === RPC_CODES.unsupportedVersion &&
      toTexts(isPlainObject(refusal.data) ? refusal.data["supported"] : undefined).some(isModernRevision);
    if (isLater) throw failure;
    return undefined;
  } finally {
    options.onDiscover(false);
  }
}

/** The error with which a server refuses a request that it does not understand; nothing where the request did not get that far. */
function refusalIn(failure: unknown): Pick<ProtocolError, "code" | "data"> | undefined {
  if (failure instanceof ProtocolError) return failure;
  if (!isFault(failure, "status") || failure.status === undefined) return undefined;
  const { status, body } = failure;
  if (status === 401 || status === 403 || status >= 500) return undefined;
  const error = rpcErrorOf(body) ?? { code: RPC_CODES.methodNotFound };
  return { data: undefined, ...error };
}

function onlyOtherThanRefusals(failure: unknown): undefined {
  if (failure instanceof ProtocolError) return undefined;
  throw failure;
}

function toClaim(clientInfo: ClientInfo, revision: string): Params {
  return {
    [META_KEYS.revision]: revision,
    [META_KEYS.clientInfo]: clientInfo,
    [META_KEYS.clientCapabilities]: CLIENT_CAPABILITIES,
  };
}

function toTexts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/** What a connection fails with that was kept open from before and that the server has closed meanwhile. */
const STALE: ReadonlySet<string | undefined> = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

interface HandshakeRequest {
  readonly method: string;
  readonly params: Params;
  /** A request that is not answered within so many milliseconds counts as one that is not known. */
  readonly mostMs?: number | undefined;
}

/** Asks, and once more over a new connection where one from before was closed just then: nothing of a handshake is harmed by that. */
async function ask(peer: RpcPeer, request: HandshakeRequest): Promise<unknown> {
  try {
    return await askOnce(peer, request);
  } catch (failure) {
    if (!STALE.has(networkCodeOf(failure))) throw failure;
    return await askOnce(peer, request);
  }
}

function askOnce(peer: RpcPeer, { method, params, mostMs }: HandshakeRequest): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const late = (): void => {
      peer.drop(id);
      reject(methodNotFound());
    };
    const timer = mostMs === undefined ? undefined : setTimeout(late, mostMs);
    const id = peer.request(method, params, {
      onEnd: (end) => {
        clearTimeout(timer);
        if (end.kind === "result") resolve(end.result);
        else if (end.kind === "failure") reject(end.failure);
        else reject(new ProtocolError(end.error.code, end.error.message, end.error.data));
      },
    });
  });
}
