import type { Identity } from "../../core/access/identity.ts";
import { CallError } from "../../core/errors/errors.ts";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import type { McpTransport } from "../channels/transport-channel.ts";
import type { ProtocolError } from "../protocol/messages.ts";
import {
  initializeFault,
  MODERN_REVISIONS,
  methodNotFound,
  methodTraits,
  negotiateRevision,
} from "../protocol/revisions.ts";
import type { McpProvider } from "../provider.ts";
import { callTool } from "./call-tool.ts";
import { callCatalogue, listCatalogue } from "./catalogue.ts";
import { ChangeFeed } from "./change-feed.ts";
import { checkExecutor, checkServerOptions } from "./check-server-options.ts";
import { introduce } from "./introduction.ts";
import { listTools } from "./list-tools.ts";
import type {
  AskingIdentity,
  ConnectOptions,
  McpServer,
  ServedMcp,
  ServerCapabilities,
} from "./mcp-server.ts";
import type { McpServerOptions } from "./mcp-server-options.ts";
import { forRevision } from "./older-blocks.ts";
import type { Peer } from "./peer.ts";
import { type IncomingRequest, PeerRequest, readLogLevel } from "./peer-request.ts";
import { PromptDirectory } from "./prompt-directory.ts";
import { invalidParams, toProtocolError } from "./protocol-errors.ts";
import { ProviderSet } from "./provider-set.ts";
import { ResourceDirectory } from "./resource-directory.ts";
import { ResourceSubscriptions } from "./resource-subscriptions.ts";
import {
  type Answer,
  completionAnswers,
  promptAnswers,
  resourceAnswers,
  type ServedProviders,
  subscriptionAnswers,
} from "./serve-providers.ts";
import { type ServedTools, serveTools } from "./served-tools.ts";
import { ServerConnection } from "./server-connection.ts";
import { GivenResults, StoredResults } from "./stored-results.ts";
import type { ServedExecutor } from "./tool-table.ts";
import { WaitingCalls } from "./waiting-calls.ts";
import { writeAnswer } from "./write-answer.ts";

/** Makes the operations of an executor ready to be served to MCP clients, with resources and prompts beside them. */
export function toMcpServer(executor: ServedExecutor, options: McpServerOptions = {}): McpServer {
  checkExecutor(executor);
  checkServerOptions(options);
  return new OperationServer(executor, options);
}

/** Answers requests of any peer, over any channel. */
class OperationServer implements ServedMcp {
  readonly info: Readonly<Record<string, unknown>>;
  readonly capabilities: ServerCapabilities;
  readonly #options: McpServerOptions;
  readonly #tools: ServedTools;
  readonly #waiting: WaitingCalls;
  readonly #feed: ChangeFeed;
  readonly #subscriptions: ResourceSubscriptions;
  readonly #answers: ReadonlyMap<string, Answer>;
  /** What it says of itself to a caller. */
  readonly #introduce: (identity: Identity | undefined) => object;
  readonly #warned = new Set<string>();
  /** Peers that stay, and requests of those that do not. */
  readonly #peers = new Set<Peer>();
  readonly #requests = new Set<IncomingRequest>();
  readonly #onClose = new Set<() => void>();
  #isClosed = false;

  constructor(executor: ServedExecutor, options: McpServerOptions) {
    this.#options = options;
    const { name = "waybill", title, version = PACKAGE_VERSION } = options;
    this.info = { name, version, ...(title !== undefined && { title }) };
    const providers = new ProviderSet(options);
    this.#introduce = (identity) =>
      introduce({
        executor,
        providers: providers.current,
        capabilities: this.capabilities,
        instructions: options.instructions,
        identity,
      });
    const current = (): readonly McpProvider[] => providers.current;
    const warn = (message: string, cause?: unknown): void => this.#warn(message, cause);
    const resources = new ResourceDirectory(current, warn);
    const prompts = new PromptDirectory(current, options.names ?? {}, warn);
    const { store, onStoredRead: onRead } = options;
    const mayCall = (operationId: string, identity: Identity | undefined): boolean =>
      executor.list({ identity }).some(({ id }) => id === operationId);
    const stored = store && new StoredResults({ store, mayCall, onRead });
    const given = new GivenResults();
    this.#tools = serveTools(executor, options, {
      stored,
      given,
      ownLinks: (namespace, content, asked) => resources.ownLinks(namespace, content, asked),
      ownMeta: (namespace, meta) => resources.ownMeta(namespace, meta),
      isProvided: (namespace) => resources.has(namespace),
      warn,
    });
    const { pageSize, waitingCalls, waitingMs } = this.#tools.limits;
    this.#waiting = new WaitingCalls({ calls: waitingCalls, ms: waitingMs });
    this.#subscriptions = new ResourceSubscriptions(resources);
    this.#feed = new ChangeFeed(executor, providers, {
      onListChange: (provider) => {
        resources.forget(provider);
        prompts.forget(provider);
      },
      onGone: (provider) => this.#subscriptions.forget(provider),
      onUpdate: (provider, uri) => this.#subscriptions.announce(provider, uri),
    });
    const served = { resources, prompts, subscriptions: this.#subscriptions, stored, given, pageSize };
    this.capabilities = providers.capabilities(options);
    this.#answers = new Map(Object.entries(this.#allAnswers(served)));
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  identify(asking: AskingIdentity): Identity | undefined {
    return asking === "anonymous" ? undefined : (asking ?? this.#options.identity);
  }

  async answer(peer: Peer, incoming: IncomingRequest): Promise<string> {
    const { method, params } = incoming;
    const answer = this.#answers.get(method);
    if (answer === undefined || methodTraits(method)?.eras.includes(peer.era) !== true)
      throw methodNotFound();
    const isAlone = !this.#peers.has(peer);
    if (isAlone) this.#requests.add(incoming);
    try {
      const request = new PeerRequest(peer, incoming, this.#waiting, this.#tools.limits.waitingMs);
      const result = await answer(params, request);
      const shown = method === "tools/call" ? forRevision(result, request.revision) : result;
      return writeAnswer(shown, { method, era: peer.era, serverInfo: this.info });
    } catch (thrown) {
      throw this.#toError(thrown, method);
    } finally {
      if (isAlone) this.#requests.delete(incoming);
    }
  }

  onClose(listener: () => void): () => void {
    this.#onClose.add(listener);
    return () => void this.#onClose.delete(listener);
  }

  follow(peer: Peer): () => void {
    if (this.#isClosed) throw new Error("This MCP server is closed: make another one with toMcpServer.");
    this.#feed.add(peer);
    this.#peers.add(peer);
    return () => {
      this.#peers.delete(peer);
      this.#feed.remove(peer);
      this.#subscriptions.drop(peer).catch(() => {});
    };
  }

  async subscribe(peer: Peer, uris: readonly string[]): Promise<void> {
    const { identity } = peer;
    await Promise.allSettled(uris.map((uri) => this.#subscriptions.add(peer, uri, { identity })));
  }

  async connect(transport: McpTransport, { identity }: ConnectOptions = {}): Promise<void> {
    if (this.#isClosed) throw new Error("This MCP server is closed: make another one with toMcpServer.");
    const connection = new ServerConnection(this, {
      identity: this.identify(identity),
      send: (text) => void transport.send(JSON.parse(text) as never).catch(() => {}),
      onEnd: () => void transport.close().catch(() => {}),
    });
    transport.onmessage = (message) => connection.receive(message);
    transport.onclose = () => connection.close();
    await transport.start();
  }

  giveUpCalls(): void {
    this.#tools.running.giveUp();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const tell of [...this.#onClose]) tell();
    for (const peer of [...this.#peers]) peer.end();
    const closing = new CallError("UNAVAILABLE", "The server is closing.", { stack: false });
    for (const request of [...this.#requests]) request.abort(closing);
    this.#waiting.close();
    this.#feed.close();
    this.#tools.table.close();
  }

  #allAnswers(served: ServedProviders): Readonly<Record<string, Answer>> {
    const { resources, prompts, completions } = this.capabilities;
    const { catalogue = false } = this.#options;
    return {
      initialize: (params, { peer }) => this.#initialize(peer, params),
      "server/discover": (_, { identity }) => ({
        supportedVersions: MODERN_REVISIONS,
        ...this.#introduce(identity),
      }),
      ping: () => ({}),
      "tools/list": ({ cursor }, request) =>
        (catalogue ? listCatalogue : listTools)(this.#tools, request, cursor),
      "tools/call": (params, request) => (catalogue ? callCatalogue : callTool)(this.#tools, request, params),
      "logging/setLevel": ({ level }, { peer }) => this.#setLevel(peer, level),
      ...(resources && resourceAnswers(served)),
      ...(resources?.subscribe && subscriptionAnswers(served)),
      ...(prompts && promptAnswers(served)),
      ...(completions && completionAnswers(served)),
    };
  }

  #initialize(peer: Peer, params: Readonly<Record<string, unknown>>): object {
    const fault = initializeFault(params);
    if (fault !== undefined) throw fault;
    peer.client = params;
    peer.revision = negotiateRevision(params["protocolVersion"]);
    return { protocolVersion: peer.revision, serverInfo: this.info, ...this.#introduce(peer.identity) };
  }

  async #setLevel(peer: Peer, value: unknown): Promise<object> {
    const level = readLogLevel(value);
    if (level === undefined) throw invalidParams("There is no such log level.");
    peer.level = level;
    if (this.#peers.has(peer)) await this.#feed.setLevels();
    return {};
  }

  #toError(thrown: unknown, method: string): ProtocolError {
    return toProtocolError(thrown, (cause) => this.#warn(`Answering ${method} failed unexpectedly.`, cause));
  }

  #warn(message: string, cause: unknown): void {
    const { onWarning } = this.#options;
    if (onWarning !== undefined) onWarning(message, cause);
    else if (!this.#warned.has(message)) console.warn(message, cause);
    this.#warned.add(message);
  }
}
