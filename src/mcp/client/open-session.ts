import { Client, type JSONRPCMessage, SdkError, SdkErrorCode } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { CallError } from "../../core/errors/errors.ts";
import { LONGEST_DELAY } from "../../core/execution/deadline.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import type { SourceSecrets } from "../../core/secrets/source-secrets.ts";
import { readServerLog } from "../provider.ts";
import type { McpConnectionOptions } from "./connection-options.ts";
import type { McpLimits } from "./mcp-limits.ts";
import { McpSession } from "./mcp-session.ts";
import { type Channel, createChannel, type Loss } from "./open-channel.ts";
import type { ClientInfo } from "./outgoing-params.ts";
import { CLIENT_CAPABILITIES } from "./outgoing-params.ts";
import { toPlainLine } from "./plain-line.ts";
import { RawTransport } from "./raw-transport.ts";
import { fromSdkError } from "./sdk-error.ts";
import { ServerQuestions } from "./server-questions.ts";

/** What opening a session needs. */
export interface SessionPlan {
  readonly options: McpConnectionOptions;
  readonly serverName: string;
  readonly secrets: SourceSecrets;
  readonly limits: McpLimits;
  /** Asks for the 2025 revisions at once, as the server is known not to speak a later one. */
  readonly legacy: boolean;
  /** Nobody uses the connection yet: whoever makes it may hear what a process said last. */
  readonly isFirst: boolean;
  readonly signal: AbortSignal;
  readonly watcher: SessionWatcher;
}

/** Who hears what a session tells on its own account. */
export interface SessionWatcher {
  onNotification(method: string, params: Readonly<Record<string, unknown>>): void;
  onOddity(message: string): void;
  /** The session that was open is lost. */
  onLost(session: McpSession, loss: Loss): void;
  /** The stream for what comes unasked is lost, while requests may still work. */
  onStale(session: McpSession): void;
}

/** How long a process may leave the probe for a newer revision unanswered before it is taken for an older one. */
const PROBE_MS = 5_000;

/** The process ended when it was probed: some older servers do. */
class EndedOnProbe extends Error {}

/** Opens a session, and leaves nothing behind where that fails; rejects with a `CallError`. */
export async function openSession(plan: SessionPlan): Promise<McpSession> {
  const endsAt = Date.now() + Math.min(plan.options.connectTimeoutMs ?? 30_000, LONGEST_DELAY);
  try {
    return await openOnce(plan, plan.legacy, endsAt);
  } catch (error) {
    if (!(error instanceof EndedOnProbe)) throw error;
    return await openOnce(plan, true, endsAt);
  }
}

interface Opening {
  session: McpSession | undefined;
  raw: RawTransport | undefined;
}

async function openOnce(plan: SessionPlan, legacy: boolean, endsAt: number): Promise<McpSession> {
  const { options, limits, serverName } = plan;
  const opening: Opening = { session: undefined, raw: undefined };
  const channel = createChannel(options, limits, {
    onCredential: (name, value) => plan.secrets.obtainedHeader(name, value),
    onOddity: (message) => plan.watcher.onOddity(message),
    onTooLarge: (id, failure) => {
      if (id === undefined || opening.raw?.fail(id, failure) !== true) plan.watcher.onOddity(failure.message);
    },
  });
  const questions = new ServerQuestions({
    roots: options.roots ?? [],
    limits,
    send: async (message) => opening.raw?.send(message as unknown as JSONRPCMessage),
  });
  const raw = createRawTransport(plan, channel, questions, opening);
  opening.raw = raw;
  const client = createClient(plan, channel, legacy);
  client.onerror = (error) => noteError(plan, opening, error);
  await connect(client, raw, channel, plan, endsAt);
  if (raw.isClosed) throw toConnectError(new Error("it closed at once"), true, channel.loss(), plan);
  const roots = options.roots ?? [];
  opening.session = new McpSession({
    client,
    raw,
    channel,
    questions,
    limits,
    roots,
    serverName,
    secrets: plan.secrets,
    clientInfo: clientInfoOf(options),
  });
  return opening.session;
}

function createRawTransport(
  { watcher, secrets }: SessionPlan,
  channel: Channel,
  questions: ServerQuestions,
  opening: Opening,
): RawTransport {
  const raw: RawTransport = new RawTransport(channel.transport, {
    onNotification: (method, given) => {
      const isLog = method === "notifications/message";
      const params = isLog ? secrets.maskAll(given) : given;
      const log = isLog ? readServerLog(params) : undefined;
      if (log !== undefined) opening.session?.hear(log);
      watcher.onNotification(method, params);
    },
    onOddity: (message) => watcher.onOddity(message),
    onServerRequest: (id, method, params) =>
      raw.handshake?.method === "initialize" && questions.take(id, method, secrets.maskResult(params)),
    onServerCancelled: (id) => questions.cancel(id),
    onClose: () => {
      const { session } = opening;
      const loss = channel.loss();
      session?.lose(loss);
      if (session !== undefined) watcher.onLost(session, loss);
    },
  });
  return raw;
}

function createClient({ options }: SessionPlan, { isPipe }: Channel, legacy: boolean): Client {
  const { protocol = "auto", connectTimeoutMs = 30_000 } = options;
  const probe = { timeoutMs: isPipe ? PROBE_MS : Math.min(connectTimeoutMs, LONGEST_DELAY) };
  const mode =
    protocol === "2026" ? { pin: "2026-07-28" } : legacy || protocol === "2025" ? "legacy" : "auto";
  return new Client(clientInfoOf(options), {
    capabilities: CLIENT_CAPABILITIES,
    versionNegotiation: { mode, probe },
    // Never asked to check anything; the default one would be built on code made from strings.
    jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
  });
}

function noteError({ watcher }: SessionPlan, { session }: Opening, error: Error): void {
  if (session !== undefined && error.message.startsWith("Maximum reconnection attempts"))
    watcher.onStale(session);
  watcher.onOddity(toPlainLine(error.message, 300));
}

async function connect(
  client: Client,
  raw: RawTransport,
  channel: Channel,
  plan: SessionPlan,
  endsAt: number,
): Promise<void> {
  const { options, serverName, signal } = plan;
  const ended = whenEnded(signal, endsAt, serverName);
  try {
    const connected = client.connect(raw, { timeout: Math.max(1, endsAt - Date.now()) });
    connected.catch(() => {});
    await Promise.race([connected, ended.promise]);
  } catch (error) {
    const loss = raw.isClosed ? channel.loss() : undefined;
    await channel.close().catch(() => {});
    if (raw.closedOnProbe && ended.failure === undefined && (options.protocol ?? "auto") === "auto") {
      throw new EndedOnProbe();
    }
    throw ended.failure ?? toConnectError(error, channel.isPipe, loss, plan);
  } finally {
    ended.stop();
  }
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
function toConnectError(
  error: unknown,
  isPipe: boolean,
  loss: Loss | undefined,
  plan: SessionPlan,
): CallError {
  const { serverName: server, secrets, isFirst } = plan;
  const isTooOld = isOlderServer(error, plan);
  const asked = { method: "for a connection", server, secrets };
  if (!isPipe && !isTooOld) return fromSdkError(error, asked);
  const cause = loss?.cause === undefined ? error : new AggregateError([error, loss.cause], loss.reason);
  const known = isTooOld
    ? 'it does not speak 2026-07-28; leave protocol out, or set it to "2025"'
    : (startFailureIn(error, plan) ?? loss?.reason);
  const answered = known === undefined ? fromSdkError(error, asked) : undefined;
  const why = known ?? whyOf(answered);
  const lastWords = secrets.mask(loss?.lastWords ?? "").replace(/\.$/, "");
  const last = isFirst && lastWords !== "" ? `; it last said: ${lastWords}` : "";
  return new CallError("UNAVAILABLE", `${server} could not be connected to: ${why}${last}.`, {
    cause,
    ...(answered?.details !== undefined && { details: answered.details }),
  });
}

/** The server answered, but not that it speaks the one revision that was asked for. */
function isOlderServer(error: unknown, { options }: SessionPlan): boolean {
  if (options.protocol !== "2026" || !(error instanceof SdkError)) return false;
  return error.code === SdkErrorCode.EraNegotiationFailed && error.message.includes("did not offer pinned");
}

/** What `spawnChild` says of a program that cannot be run; the SDK may have wrapped it. */
function startFailureIn(error: unknown, { options }: SessionPlan): string | undefined {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (!at.message.startsWith("Cannot start ")) continue;
    const said = reasonIn(at);
    const isLine = "command" in options && /\s/.test(options.command) && said.endsWith("(ENOENT)");
    return isLine ? `${said}; command is the program alone, what follows it goes into args` : said;
  }
  return undefined;
}

/** Says in our own words what a server answered to the handshake. */
function whyOf(error: CallError | undefined): string {
  const rpcCode = isPlainObject(error?.details) ? error.details["rpcCode"] : undefined;
  if (typeof rpcCode === "number") return `it answered the handshake with an error (${rpcCode})`;
  return error?.code === "TIMEOUT" ? "it did not answer in time" : "the connection failed";
}

function reasonIn(error: unknown): string {
  return toPlainLine(error instanceof Error ? error.message : String(error), 300).replace(/\.$/, "");
}

function clientInfoOf({ clientInfo }: McpConnectionOptions): ClientInfo {
  return clientInfo ?? { name: "waybill", version: PACKAGE_VERSION };
}
