import { randomBytes } from "node:crypto";
import { lackingScopes } from "../../core/access/access.ts";
import type { Identity } from "../../core/access/identity.ts";
import { Linked, LinkedSet } from "../../core/collections/linked-set.ts";
import { Listeners } from "../../core/collections/listeners.ts";
import { CallError } from "../../core/errors/errors.ts";
import { LightSignal } from "../../core/execution/cancellation.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import { cleanText } from "../../core/text/clean-text.ts";
import { shortText, truncateText } from "../../core/text/truncate-text.ts";
import type { McpTransport } from "../channels/channel.ts";
import { invalidParams, type ProtocolError, toProtocolError } from "../protocol/messages.ts";
import {
  initializeFault,
  knowsAllBlocks,
  MODERN_REVISIONS,
  methodNotFound,
  methodTraits,
  negotiateRevision,
  TASKS_EXTENSION,
} from "../protocol/revisions.ts";
import { MCP_LOG_LEVELS, type McpLogLevel, type McpProvider, type McpProviderEvent } from "../provider.ts";
import type {
  AskingIdentity,
  ChannelServer,
  ConnectOptions,
  FollowedTask,
  ListKind,
  McpServer,
  ServerCapabilities,
  ServerShare,
} from "./mcp-server.ts";
import {
  checkServedExecutor,
  checkServerOptions,
  type McpServerOptions,
  readServeArguments,
  type ServeFunction,
} from "./mcp-server-options.ts";
import { type IncomingRequest, type Peer, PeerRequest, readLogLevel } from "./peer-request.ts";
import { ProviderSet, providersFor } from "./resources/provider-set.ts";
import { ResourceDirectory } from "./resources/resource-directory.ts";
import { ResourceSubscriptions } from "./resources/resource-subscriptions.ts";
import {
  completionAnswers,
  PromptDirectory,
  promptAnswers,
  type RequestAnswer,
  resourceAnswers,
  type ServedProviders,
  subscriptionAnswers,
} from "./resources/serve-providers.ts";
import { forOlderRevision } from "./results/plain-format.ts";
import { GivenResults, StoredResults } from "./results/stored-results.ts";
import { writeResultJson } from "./results/to-result.ts";
import { SealingKeys } from "./sealing-keys.ts";
import { ServerConnection } from "./server-connection.ts";
import { SuspendedCalls } from "./suspended-calls.ts";
import { listenToTask, taskAnswers } from "./tasks/task-methods.ts";
import { TASKS_REVISION } from "./tasks/task-wire.ts";
import { callCatalogue, listCatalogue } from "./tools/catalogue.ts";
import { importedFrom } from "./tools/describe-tool.ts";
import { type ServedExecutor, type ServedTools, serveTools } from "./tools/served-tools.ts";
import { answerToolCall, listTools } from "./tools/tool-calls.ts";

/** Makes the operations of an executor ready to be served to MCP clients, with resources and prompts beside them. */
export function toMcpServer(executor: ServedExecutor, options: McpServerOptions = {}): McpServer {
  checkServedExecutor(executor);
  checkServerOptions(options);
  return new OperationServer(executor, options);
}

/** The same as one of several replicas; then `sessionKey` of the options is not looked at. */
export function toSharedMcpServer(
  executor: ServedExecutor,
  options: McpServerOptions,
  share: ServerShare | undefined,
): McpServer {
  checkServedExecutor(executor);
  checkServerOptions(options);
  return new OperationServer(executor, options, share);
}

/** What a server shares with others by its options alone. */
function shareOf({ sessionKey }: McpServerOptions): ServerShare | undefined {
  if (sessionKey === undefined) return undefined;
  return { keys: new SealingKeys(sessionKey), replica: randomBytes(4).toString("hex"), leads: false };
}

/** The server to serve: the one that was given, or one made of the executor that was given, which closes with what serves it. */
export function toServed<Own extends { readonly limits?: object | undefined }>(
  served: McpServer | ServedExecutor,
  given: Own,
  by: ServeFunction<Own>,
): { readonly server: ChannelServer; readonly own: Own; readonly closeServer: () => Promise<void> } {
  const read = readServeArguments(served, given, by);
  if ("server" in read) return { ...read, closeServer: async () => {} };
  checkServerOptions(read.options);
  const server = new OperationServer(read.executor, read.options);
  return { server, own: read.own, closeServer: () => server.close() };
}

/** A request of a client of which nothing else is known: it is ended by itself. */
class RequestAlone extends Linked {
  readonly request: IncomingRequest;

  constructor(request: IncomingRequest) {
    super();
    this.request = request;
  }
}

/** Answers requests of any peer, over any channel. */
class OperationServer implements ChannelServer {
  readonly info: Readonly<Record<string, unknown>>;
  readonly capabilities: ServerCapabilities;
  readonly share: ServerShare | undefined;
  readonly #options: McpServerOptions;
  readonly #tools: ServedTools;
  readonly #waiting: SuspendedCalls;
  readonly #feed: ChangeFeed;
  readonly #subscriptions: ResourceSubscriptions;
  readonly #answers: ReadonlyMap<string, RequestAnswer>;
  /** What it says of itself to a caller. */
  readonly #introduce: (identity: Identity | undefined, revision?: string) => object;
  readonly #warned = new Set<string>();
  /** Peers that stay, and requests of those that do not. */
  readonly #peers = new Set<Peer>();
  readonly #requests = new LinkedSet<RequestAlone>();
  readonly #closeListeners = new Listeners();
  #isClosed = false;

  constructor(executor: ServedExecutor, options: McpServerOptions, share = shareOf(options)) {
    this.#options = options;
    const { name = "waybill", title, version = PACKAGE_VERSION } = options;
    this.share = share;
    this.info = { name, version, ...(title !== undefined && { title }) };
    const providers = new ProviderSet(options);
    this.#introduce = (identity, revision) =>
      introduce({
        executor,
        providers: providers.current,
        capabilities: withTasks(this.capabilities, options.tasks !== undefined, revision),
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
      onUnexpected: (message, cause) => {
        try {
          (options.onWarning ?? console.warn)(message, cause);
        } catch {
          // The call is answered all the same.
        }
      },
      warn,
    });
    const { pageSize, waitingCalls, waitingMs } = this.#tools.limits;
    this.#waiting = new SuspendedCalls({ calls: waitingCalls, ms: waitingMs }, share);
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

  lackingScopes(body: unknown, identity: Identity): readonly string[] | undefined {
    if (!isPlainObject(body) || body["method"] !== "tools/call") return undefined;
    const { name } = isPlainObject(body["params"]) ? body["params"] : {};
    const found = typeof name === "string" ? this.#tools.table.find(name, identity) : undefined;
    if (found?.access?.scopes === undefined || found.visibility === "internal") return undefined;
    const lacking = lackingScopes(found.access.scopes, identity.scopes);
    return lacking.length === 0 ? undefined : lacking;
  }

  async answer(peer: Peer, incoming: IncomingRequest): Promise<string> {
    const { method, params } = incoming;
    const answer = this.#answers.get(method);
    if (answer === undefined || methodTraits(method)?.eras.includes(peer.era) !== true)
      throw methodNotFound();
    const alone = this.#peers.has(peer) ? undefined : new RequestAlone(incoming);
    if (alone !== undefined) this.#requests.add(alone);
    try {
      const request = new PeerRequest(peer, incoming, this.#waiting);
      const result = await answer(params, request);
      const isOlder = method === "tools/call" && !knowsAllBlocks(request.revision);
      const shown = isOlder ? forOlderRevision(result, request.revision) : result;
      return writeResultJson(shown, { method, era: peer.era, serverInfo: this.info });
    } catch (thrown) {
      throw this.#toError(thrown, method);
    } finally {
      if (alone !== undefined) this.#requests.delete(alone);
    }
  }

  onClose(listener: () => void): () => void {
    return this.#closeListeners.add(listener);
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

  tellAll(peer: Peer): void {
    const { tools, resources, prompts } = this.capabilities;
    const lists = { tools, resources, prompts };
    for (const [kind, list] of Object.entries(lists)) {
      if (list?.listChanged === true) peer.notify(`notifications/${kind}/list_changed`);
    }
    for (const uri of peer.subscriptions) peer.notify("notifications/resources/updated", { uri });
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

  followTask(
    peer: Peer,
    { id, params }: FollowedTask,
    tell: (params: object) => void,
  ): Promise<(() => void) | undefined> {
    const { identity } = peer;
    const incoming = { ...NO_REQUEST, params, identity };
    const request = new PeerRequest(peer, incoming, this.#waiting);
    return listenToTask(this.#tools, request, id, tell);
  }

  giveUpCalls(): void {
    this.#tools.running.giveUp();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#closeListeners.tell();
    for (const peer of [...this.#peers]) peer.end();
    const closing = new CallError("UNAVAILABLE", "The server is closing.", { stack: false });
    for (const { request } of this.#requests.toArray()) request.abort(closing);
    this.#waiting.close();
    this.#feed.close();
    this.#tools.table.close();
  }

  #allAnswers(served: ServedProviders): Readonly<Record<string, RequestAnswer>> {
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
      "tools/call": (params, request) =>
        (catalogue ? callCatalogue : answerToolCall)(this.#tools, request, params),
      "logging/setLevel": ({ level }, { peer }) => this.#setLevel(peer, level),
      ...(resources && resourceAnswers(served)),
      ...(resources?.subscribe && subscriptionAnswers(served)),
      ...(prompts && promptAnswers(served)),
      ...(completions && completionAnswers(served)),
      ...(this.#tools.tasks && taskAnswers(this.#tools, this.#tools.tasks)),
    };
  }

  #initialize(peer: Peer, params: Readonly<Record<string, unknown>>): object {
    const fault = initializeFault(params);
    if (fault !== undefined) throw fault;
    peer.client = params;
    peer.revision = negotiateRevision(params["protocolVersion"]);
    return {
      protocolVersion: peer.revision,
      serverInfo: this.info,
      ...this.#introduce(peer.identity, peer.revision),
    };
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

/** What a request that nobody sent is made of. */
const NO_REQUEST = {
  id: 0,
  method: "tasks/get",
  signal: new LightSignal() as unknown as AbortSignal,
  abort: () => {},
  notify: () => {},
};

/** Adds tasks to what a server offers, in the words of a revision of `initialize`, or of those without. */
function withTasks(
  capabilities: ServerCapabilities,
  hasTasks: boolean,
  revision: string | undefined,
): ServerCapabilities {
  if (!hasTasks) return capabilities;
  if (revision === undefined) return { ...capabilities, extensions: { [TASKS_EXTENSION]: {} } };
  if (revision !== TASKS_REVISION) return capabilities;
  return { ...capabilities, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };
}

/** Characters of what sources tell models that are passed on; the server's own words are not counted. */
export const INSTRUCTION_LIMITS = {
  /** Of one source, without its heading. */
  source: 8_192,
  /** Of all of them together, without their headings. */
  all: 32_768,
} as const;

interface IntroductionOptions {
  readonly executor: ServedExecutor;
  /** Those that may have something to say, besides this process. */
  readonly providers: readonly McpProvider[];
  readonly capabilities: ServerCapabilities;
  readonly instructions: string | undefined;
  /** Who is asking. */
  readonly identity: Identity | undefined;
}

/** The capabilities and instructions of a server as one caller gets them: with those of the sources that are there for the caller. */
function introduce({
  executor,
  providers,
  capabilities,
  instructions,
  identity,
}: IntroductionOptions): object {
  const speaking = providers.filter(
    (provider) => provider.instructions !== undefined || Object.keys(provider.extensions ?? {}).length > 0,
  );
  const visible = speaking.length === 0 ? [] : visibleOf(speaking, executor, identity);
  const names = new Set(visible.flatMap(({ extensions = {} }) => Object.keys(extensions)));
  const extensions = Object.fromEntries(Array.from(names, (name) => [name, {}]));
  const told = [instructions, ...sectionsOf(visible)].filter((text) => text !== undefined);
  return {
    capabilities:
      names.size === 0
        ? capabilities
        : { ...capabilities, extensions: { ...capabilities.extensions, ...extensions } },
    ...(told.length > 0 && { instructions: told.join("\n\n") }),
  };
}

/** Those that are there for the caller, and of whose operations, where any are known, the caller may call one. */
function visibleOf(
  providers: readonly McpProvider[],
  executor: ServedExecutor,
  identity: Identity | undefined,
): readonly McpProvider[] {
  const listed = executor.list({ identity });
  const callable = new Set(listed.map(importedFrom));
  const known = new Set(Array.from(executor.operations ?? listed, importedFrom));
  return providersFor(providers, { identity }).filter(
    ({ namespace }) => callable.has(namespace) || !known.has(namespace),
  );
}

function sectionsOf(providers: readonly McpProvider[]): readonly string[] {
  const sections: string[] = [];
  let left: number = INSTRUCTION_LIMITS.all;
  for (const { namespace, instructions = "" } of providers) {
    const { source, all } = INSTRUCTION_LIMITS;
    const clean = cleanText(truncateText(instructions, all)).text.trim();
    const below = belowHeading(clean);
    const room = Math.min(source, left);
    const text = below.length <= room || room === 0 ? truncateText(below, room) : shortText(below, room - 1);
    if (text === "") continue;
    left -= text.length;
    sections.push(`## ${namespace}\n\n${text}`);
  }
  return sections;
}

/** Headings of a source stand two levels deeper, so that none looks like that of another source. */
function belowHeading(text: string): string {
  return text.replace(/^( {0,3})(#{1,6})(?=\s|$)/gm, "$1##$2");
}

/** Changes within this time are told as one. */
const COALESCE_MS = 50;

interface FeedListeners {
  onListChange(provider: McpProvider): void;
  /** It is there no more. */
  onGone(provider: McpProvider): void;
  onUpdate(provider: McpProvider, uri: string): void;
}

/** Tells peers what has changed. */
class ChangeFeed {
  readonly #peers = new Set<Peer>();
  readonly #providers: Pick<ProviderSet, "current" | "onChange">;
  readonly #listening: FeedListeners;
  /** How to stop hearing each provider. */
  readonly #heard = new Map<McpProvider, () => void>();
  readonly #stops: (() => void)[];
  readonly #due = new Set<ListKind>();
  #timer: NodeJS.Timeout | undefined;

  constructor(
    executor: ServedExecutor,
    providers: Pick<ProviderSet, "current" | "onChange">,
    listeners: FeedListeners,
  ) {
    this.#providers = providers;
    this.#listening = listeners;
    this.#follow();
    this.#stops = [
      executor.onChange(() => this.#later("tools")),
      providers.onChange(() => {
        this.#follow();
        this.#later("resources");
        this.#later("prompts");
      }),
    ];
  }

  /** Tells a peer from now on, until it is gone. */
  add(peer: Peer): void {
    this.#peers.add(peer);
  }

  remove(peer: Peer): void {
    this.#peers.delete(peer);
  }

  /** Asks providers for as much as the most curious peer wants to hear. */
  async setLevels(): Promise<void> {
    const wanted = [...this.#peers].map(({ level }) => MCP_LOG_LEVELS.indexOf(level ?? "debug"));
    const least: McpLogLevel = MCP_LOG_LEVELS[Math.min(...wanted, MCP_LOG_LEVELS.length - 1)] ?? "debug";
    const logging = this.#providers.current.filter(({ capabilities }) => capabilities.logging);
    await Promise.allSettled(logging.map((provider) => provider.setLogLevel(least)));
  }

  close(): void {
    for (const stop of [...this.#stops, ...this.#heard.values()]) stop();
    this.#heard.clear();
    clearTimeout(this.#timer);
    this.#peers.clear();
  }

  /** Hears those there are now and nobody else. */
  #follow(): void {
    const current = new Set(this.#providers.current);
    for (const [provider, stop] of this.#heard) {
      this.#listening.onListChange(provider);
      if (current.has(provider)) continue;
      stop();
      this.#heard.delete(provider);
      this.#listening.onGone(provider);
    }
    for (const provider of current) {
      if (this.#heard.has(provider)) continue;
      this.#heard.set(
        provider,
        provider.onEvent((event) => this.#hear(provider, event)),
      );
    }
  }

  #hear(provider: McpProvider, event: McpProviderEvent): void {
    const listeners = this.#listening;
    switch (event.type) {
      case "resources-changed":
        listeners.onListChange(provider);
        this.#later("resources");
        return;
      case "prompts-changed":
        listeners.onListChange(provider);
        this.#later("prompts");
        return;
      case "resource-updated":
        listeners.onUpdate(provider, event.uri);
        return;
      case "log":
        // It may be about anybody's request: a caller hears what can only be about their own.
        return;
    }
  }

  #later(kind: ListKind): void {
    this.#due.add(kind);
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => this.#flush(), COALESCE_MS);
    this.#timer.unref();
  }

  #flush(): void {
    this.#timer = undefined;
    const due = [...this.#due];
    this.#due.clear();
    for (const kind of due) {
      for (const peer of this.#peers) if (peer.hears(kind)) peer.notify(`notifications/${kind}/list_changed`);
    }
  }
}
