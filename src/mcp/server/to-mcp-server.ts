import type { Server, ServerCapabilities } from "@modelcontextprotocol/server";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";
import type { Identity } from "../../core/access/identity.ts";
import { PACKAGE_VERSION } from "../../core/package-version.ts";
import type { McpProvider } from "../provider.ts";
import { callTool } from "./call-tool.ts";
import { callCatalogue, listCatalogue } from "./catalogue.ts";
import { ChangeFeed } from "./change-feed.ts";
import { checkExecutor, checkServerOptions } from "./check-server-options.ts";
import { handleRequest } from "./handle-request.ts";
import { listTools } from "./list-tools.ts";
import type { McpPeer, McpServer } from "./mcp-server.ts";
import type { McpServerOptions } from "./mcp-server-options.ts";
import { forRevision } from "./older-blocks.ts";
import { Peer, PeerRequest } from "./peer-request.ts";
import { PromptDirectory } from "./prompt-directory.ts";
import { invalidParams } from "./protocol-errors.ts";
import { ProviderSet } from "./provider-set.ts";
import { RawServer } from "./raw-server.ts";
import { readLogLevel } from "./request-envelope.ts";
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
import { GivenResults, StoredResults } from "./stored-results.ts";
import type { ServedExecutor } from "./tool-table.ts";
import { WaitingCalls } from "./waiting-calls.ts";

/** The SDK would otherwise build one that generates code, for every server. */
const VALIDATOR = new CfWorkerJsonSchemaValidator();

/** Makes the operations of an executor ready to be served to MCP clients, with resources and prompts beside them. */
export function toMcpServer(executor: ServedExecutor, options: McpServerOptions = {}): McpServer {
  checkExecutor(executor);
  checkServerOptions(options);
  return new SharedServer(executor, options);
}

/** All that the servers of the SDK share, one of which is made for each peer. */
class SharedServer implements McpServer {
  readonly #options: McpServerOptions;
  readonly #tools: ServedTools;
  readonly #waiting: WaitingCalls;
  readonly #feed: ChangeFeed;
  readonly #subscriptions: ResourceSubscriptions;
  readonly #capabilities: ServerCapabilities;
  readonly #answers: readonly (readonly [string, Answer])[];
  readonly #warned = new Set<string>();
  /** Those of peers that stay, and those that answer a request. */
  readonly #open = new Set<Server>();
  #isClosed = false;

  constructor(executor: ServedExecutor, options: McpServerOptions) {
    this.#options = options;
    const providers = new ProviderSet(options);
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
    this.#capabilities = providers.capabilities(options);
    this.#answers = Object.entries(this.#allAnswers(served));
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  open(mcpPeer: McpPeer): Server {
    if (this.#isClosed) throw new Error("This MCP server is closed: make another one with toMcpServer.");
    const { name = "waybill", title, version = PACKAGE_VERSION, instructions, identity } = this.#options;
    const info = { name, version, ...(title !== undefined && { title }) };
    const server = new RawServer(info, {
      capabilities: this.#capabilities,
      jsonSchemaValidator: VALIDATOR,
      ...(instructions !== undefined && { instructions }),
    });
    const peer = new Peer(server, mcpPeer, identity);
    const { waitingMs } = this.#tools.limits;
    for (const [method, answer] of this.#answers) {
      handleRequest(
        server,
        method,
        (params, context) =>
          this.#running(server, answer(params, new PeerRequest(peer, context, this.#waiting, waitingMs))),
        (cause) => this.#warn(`Answering ${method} failed unexpectedly.`, cause),
      );
    }
    if (mcpPeer.stays) this.#follow(peer);
    return server;
  }

  onEvent(listener: Parameters<McpServer["onEvent"]>[0]): () => void {
    return this.#feed.listen(listener);
  }

  giveUpCalls(): void {
    this.#tools.running.giveUp();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled([...this.#open].map((server) => server.close()));
    this.#open.clear();
    this.#waiting.close();
    this.#feed.close();
    this.#tools.table.close();
  }

  /** A peer that stays hears of changes until its server closes. */
  #follow(peer: Peer): void {
    this.#feed.add(peer);
    this.#open.add(peer.server);
    peer.server.onclose = () => {
      this.#open.delete(peer.server);
      this.#feed.remove(peer);
      this.#subscriptions.drop(peer).catch(() => {});
    };
  }

  /** A server for one request is open while it answers; nobody says when one that was never used is given up. */
  async #running<T>(server: Server, answer: T | Promise<T>): Promise<T> {
    if (this.#open.has(server)) return await answer;
    this.#open.add(server);
    try {
      return await answer;
    } finally {
      this.#open.delete(server);
    }
  }

  #allAnswers(served: ServedProviders): Readonly<Record<string, Answer>> {
    const { resources, prompts, completions } = this.#capabilities;
    const { catalogue = false } = this.#options;
    return {
      "tools/list": ({ cursor }, request) =>
        (catalogue ? listCatalogue : listTools)(this.#tools, request, cursor),
      "tools/call": async (params, request) =>
        forRevision(
          await (catalogue ? callCatalogue : callTool)(this.#tools, request, params),
          request.revision,
        ),
      "logging/setLevel": ({ level }, { peer }) => this.#setLevel(peer, level),
      ...(resources && resourceAnswers(served)),
      ...(resources?.subscribe && subscriptionAnswers(served)),
      ...(prompts && promptAnswers(served)),
      ...(completions && completionAnswers(served)),
    };
  }

  async #setLevel(peer: Peer, value: unknown): Promise<object> {
    const level = readLogLevel(value);
    if (level === undefined) throw invalidParams("There is no such log level.");
    peer.level = level;
    if (peer.stays) await this.#feed.setLevels();
    return {};
  }

  #warn(message: string, cause: unknown): void {
    const { onWarning } = this.#options;
    if (onWarning !== undefined) onWarning(message, cause);
    else if (!this.#warned.has(message)) console.warn(message, cause);
    this.#warned.add(message);
  }
}
