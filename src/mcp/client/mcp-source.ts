import type { MCPResponseMeta, ResponseEnvelope } from "../../core/envelope/envelope.ts";
import type { AnyOperation } from "../../core/operation/operation-types.ts";
import type { ChangeListener, RegistryChange } from "../../core/registry/executor.ts";
import type { McpExtensions } from "../extensions.ts";
import { checkRequestOptions } from "../option-checks.ts";
import type {
  McpCompletion,
  McpCompletionRequest,
  McpLogLevel,
  McpPrompt,
  McpPromptMessages,
  McpProvider,
  McpProviderCapabilities,
  McpProviderEvent,
  McpProviderOptions,
  McpResource,
  McpResourceContents,
  McpResourceTemplate,
} from "../provider.ts";
import type { ToolNote, UnusableTool } from "./import-tools.ts";
import type { ImportedProvider } from "./imported-provider.ts";
import { ListingTurns } from "./listing-turns.ts";
import type { DefinitionChange } from "./lock/definition-diff.ts";
import type { ToolDefinition } from "./lock/definition-hash.ts";
import type { ToolLock } from "./lock/tool-lock.ts";
import type { ToolPin } from "./lock/tool-pin.ts";
import type {
  McpConnection,
  McpConnectionEvent,
  McpConnectionState,
  McpServerFacts,
} from "./mcp-connection.ts";
import type { Oddities } from "./oddities.ts";
import type { McpCallOptions, ToolSet } from "./tool-set.ts";

/** What a tool answers is always from MCP. */
type ToolEnvelope = ResponseEnvelope & { readonly meta: MCPResponseMeta };

const STALE = "The tools could not be listed again; they stay as they were.";

/** What a source is made of; `fromMcp` puts it together. */
export interface McpSourceParts {
  readonly connection: McpConnection;
  readonly tools: ToolSet;
  readonly provider: ImportedProvider;
  readonly pin: ToolPin | undefined;
  /** Counts what the server does that nobody understands. */
  readonly oddities: Oddities;
  /** Never throws. */
  warn(message: string, cause?: unknown): void;
}

/**
 * An MCP server as a live source of operations: `registry.registerAll(source)` follows it. Resources, prompts, completions and logs
 * are passed on by `toMcpServer({ providers: [source] })`.
 */
export class McpSource implements McpProvider, Iterable<AnyOperation> {
  readonly #parts: McpSourceParts;
  readonly #listeners = new Set<ChangeListener>();
  readonly #stopListening: () => void;
  readonly #turns: ListingTurns;
  #wasDown = false;
  #closed = false;

  constructor(parts: McpSourceParts) {
    this.#parts = parts;
    this.#turns = new ListingTurns(
      () => this.#refresh(),
      (cause) => parts.warn(STALE, cause),
    );
    this.#stopListening = parts.connection.onEvent((event) => this.#hear(event));
  }

  /** Every tool that can be called, as listed last, sorted by id; with a pin, those that were approved, as they were approved. */
  get operations(): readonly AnyOperation[] {
    const operations = Array.from(this.#parts.tools.now.tools.values(), ({ operation }) => operation);
    return operations.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  [Symbol.iterator](): Iterator<AnyOperation> {
    return this.operations[Symbol.iterator]();
  }

  /** Tools that cannot be called, and why. */
  get unusable(): readonly UnusableTool[] {
    return this.#parts.tools.now.unusable;
  }

  /** What was taken over less than whole of tools that can be called, and what hides in prompts, resources and instructions. */
  get notes(): readonly ToolNote[] {
    return [...this.#parts.tools.now.notes, ...this.#parts.provider.notes];
  }

  /** Tools as listed last that the pin refuses, and why; nothing without a pin. */
  get refused(): readonly DefinitionChange[] | undefined {
    const { pin, tools } = this.#parts;
    return pin && tools.refused.flatMap(({ change }) => change ?? []);
  }

  /** How often the server did what nobody understands: noise, answers nobody asked for, results of no known shape. Each kind is a warning once. */
  get oddities(): number {
    return this.#parts.oddities.count;
  }

  /** What the server said about itself. */
  get server(): McpServerFacts {
    return this.#parts.connection.server;
  }

  get state(): McpConnectionState {
    return this.#parts.connection.state;
  }

  get namespace(): string {
    return this.#parts.provider.namespace;
  }

  get capabilities(): McpProviderCapabilities {
    return this.#parts.provider.capabilities;
  }

  /** What the server tells models about itself, as it is passed on; nothing where that is turned off. */
  get instructions(): string | undefined {
    return this.#parts.provider.instructions;
  }

  get extensions(): McpExtensions {
    return this.#parts.provider.extensions;
  }

  /** Hears of changes of `operations`, and, with no change, that `refused` is other than before; returns how to stop. */
  onChange(listener: ChangeListener): () => void {
    const added: ChangeListener = (changes) => listener(changes);
    this.#listeners.add(added);
    return () => void this.#listeners.delete(added);
  }

  /** Calls a tool by its exact name, listed or not; the result is not checked against any schema. */
  async call(toolName: string, input?: unknown, options?: McpCallOptions): Promise<ToolEnvelope> {
    checkRequestOptions(options);
    return (await this.#parts.tools.call(toolName, input, options)) as ToolEnvelope;
  }

  /** Lists the tools again now, or right after the listing under way, as a server that tells of no changes needs it; reads the lock file again. */
  refresh(): Promise<void> {
    const { pin } = this.#parts;
    return pin === undefined ? this.#turns.now() : pin.reread().then(() => this.#turns.now());
  }

  /** Approves tools as they are listed now, all or those named, and lists again; see `approveTools`. */
  async approve(toolNames?: Iterable<string>): Promise<ToolLock> {
    const { pin, tools } = this.#parts;
    if (pin === undefined) throw new TypeError("There is no lock to approve tools in; give fromMcp a pin.");
    const definitions: ToolDefinition[] = [];
    if (typeof toolNames === "string" || typeof (toolNames ?? [])[Symbol.iterator] !== "function") {
      throw new TypeError(`The tools to approve must be a list of names, such as ["read_file"].`);
    }
    const listed = new Map([...tools.now.tools, ...tools.now.unapproved]);
    for (const name of toolNames ?? listed.keys()) {
      const tool = listed.get(name);
      if (tool === undefined) throw new TypeError(`There is no tool "${name}" to approve.`);
      definitions.push(tool.definition);
    }
    const lock = await pin.approve(definitions);
    await this.#turns.now().catch((cause: unknown) => this.#parts.warn(STALE, cause));
    return lock;
  }

  listResources(options?: McpProviderOptions): Promise<readonly McpResource[]> {
    return this.#parts.provider.listResources(options);
  }

  listResourceTemplates(options?: McpProviderOptions): Promise<readonly McpResourceTemplate[]> {
    return this.#parts.provider.listResourceTemplates(options);
  }

  readResource(uri: string, options?: McpProviderOptions): Promise<McpResourceContents> {
    return this.#parts.provider.readResource(uri, options);
  }

  subscribeResource(uri: string, options?: McpProviderOptions): Promise<void> {
    return this.#parts.provider.subscribeResource(uri, options);
  }

  unsubscribeResource(uri: string, options?: McpProviderOptions): Promise<void> {
    return this.#parts.provider.unsubscribeResource(uri, options);
  }

  listPrompts(options?: McpProviderOptions): Promise<readonly McpPrompt[]> {
    return this.#parts.provider.listPrompts(options);
  }

  getPrompt(
    name: string,
    args: Readonly<Record<string, string>> | undefined,
    options?: McpProviderOptions,
  ): Promise<McpPromptMessages> {
    return this.#parts.provider.getPrompt(name, args, options);
  }

  complete(request: McpCompletionRequest, options?: McpProviderOptions): Promise<McpCompletion> {
    return this.#parts.provider.complete(request, options);
  }

  setLogLevel(level: McpLogLevel): Promise<void> {
    return this.#parts.provider.setLogLevel(level);
  }

  onEvent(listener: (event: McpProviderEvent) => void): () => void {
    return this.#parts.provider.onEvent(listener);
  }

  /** Ends the connection and stops following; every process of a stdio server is gone when it resolves. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#turns.stop();
    this.#parts.tools.stop();
    this.#stopListening();
    await this.#parts.connection.close();
    this.#listeners.clear();
  }

  #hear(event: McpConnectionEvent): void {
    if (event.type === "notification" && event.method === "notifications/tools/list_changed")
      this.#turns.soon();
    if (event.type === "oddity") this.#parts.oddities.add(event.message);
    if (event.type !== "state") return;
    if (event.state.status === "down") this.#wasDown = true;
    if (event.state.status !== "ready" || !this.#wasDown) return;
    this.#wasDown = false;
    // It may be another version of the server that came back.
    this.#turns.soon();
    this.#parts.provider.restore().catch(() => {});
  }

  async #refresh(): Promise<void> {
    const changes = await this.#parts.tools.refresh();
    if (changes !== undefined && !this.#closed) this.#tell(changes);
  }

  #tell(changes: readonly RegistryChange[]): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(changes);
      } catch (cause) {
        this.#parts.warn("A listener of changes threw.", cause);
      }
    }
  }
}
