import type { CallError } from "../../core/errors/errors.ts";
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
} from "../../mcp/provider.ts";

const NOTHING: McpProviderCapabilities = Object.freeze({
  resources: false,
  resourceSubscriptions: false,
  prompts: false,
  completions: false,
  logging: false,
});

/**
 * What an MCP server offers besides tools, under one object however often the server is made anew. While it is away there is nothing
 * in it; what was subscribed to, and the log level, hold for the next one too.
 */
export class SwitchedProvider implements McpProvider {
  readonly namespace: string;
  readonly #error: () => CallError;
  readonly #listeners = new Set<(event: McpProviderEvent) => void>();
  readonly #subscribed = new Set<string>();
  #level: McpLogLevel | undefined;
  #present: McpProvider | undefined;
  #stop: () => void = () => {};
  #isUp = false;

  /** `error` says why there is nothing. */
  constructor(namespace: string, error: () => CallError) {
    this.namespace = namespace;
    this.#error = error;
  }

  /** Puts a provider in the place of the one before, or none. */
  put(provider: McpProvider | undefined): void {
    this.#stop();
    this.#stop = provider?.onEvent((event) => this.#tell(event)) ?? (() => {});
    this.#present = provider;
    if (provider === undefined) return;
    // A server that will not is no reason to do without it.
    const { resourceSubscriptions, logging } = provider.capabilities;
    if (this.#isUp) this.#tellChanged(provider.capabilities);
    if (this.#level !== undefined && logging) provider.setLogLevel(this.#level).catch(() => {});
    if (!resourceSubscriptions) return;
    for (const uri of this.#subscribed) provider.subscribeResource(uri).catch(() => {});
  }

  /** Takes a provider out, unless another one has taken its place. */
  remove(provider: McpProvider): void {
    if (this.#present === provider) this.put(undefined);
  }

  /** Says whether the present one can be reached. */
  setUp(isUp: boolean): void {
    if (isUp === this.#isUp) return;
    const lost = this.capabilities;
    this.#isUp = isUp;
    this.#tellChanged(isUp ? this.capabilities : lost);
  }

  get capabilities(): McpProviderCapabilities {
    return this.#now?.capabilities ?? NOTHING;
  }

  async listResources(options?: McpProviderOptions): Promise<readonly McpResource[]> {
    return this.capabilities.resources ? await this.#needed.listResources(options) : [];
  }

  async listResourceTemplates(options?: McpProviderOptions): Promise<readonly McpResourceTemplate[]> {
    return this.capabilities.resources ? await this.#needed.listResourceTemplates(options) : [];
  }

  async readResource(uri: string, options?: McpProviderOptions): Promise<McpResourceContents> {
    return await this.#needed.readResource(uri, options);
  }

  async subscribeResource(uri: string, options?: McpProviderOptions): Promise<void> {
    const asked = this.#needed;
    await asked.subscribeResource(uri, options);
    this.#subscribed.add(uri);
    // Another one may have taken its place meanwhile, before this was known.
    if (this.#now !== undefined && this.#now !== asked) await this.#now.subscribeResource(uri, options);
  }

  async unsubscribeResource(uri: string, options?: McpProviderOptions): Promise<void> {
    this.#subscribed.delete(uri);
    await this.#now?.unsubscribeResource(uri, options);
  }

  async listPrompts(options?: McpProviderOptions): Promise<readonly McpPrompt[]> {
    return this.capabilities.prompts ? await this.#needed.listPrompts(options) : [];
  }

  async getPrompt(
    name: string,
    args: Readonly<Record<string, string>> | undefined,
    options?: McpProviderOptions,
  ): Promise<McpPromptMessages> {
    return await this.#needed.getPrompt(name, args, options);
  }

  async complete(request: McpCompletionRequest, options?: McpProviderOptions): Promise<McpCompletion> {
    return await this.#needed.complete(request, options);
  }

  async setLogLevel(level: McpLogLevel): Promise<void> {
    this.#level = level;
    await this.#now?.setLogLevel(level);
  }

  onEvent(listener: (event: McpProviderEvent) => void): () => void {
    const own = (event: McpProviderEvent): void => listener(event);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  get #now(): McpProvider | undefined {
    return this.#isUp ? this.#present : undefined;
  }

  get #needed(): McpProvider {
    if (this.#now !== undefined) return this.#now;
    throw this.#error();
  }

  #tellChanged({ resources, prompts }: McpProviderCapabilities): void {
    if (resources) this.#tell({ type: "resources-changed" });
    if (prompts) this.#tell({ type: "prompts-changed" });
  }

  #tell(event: McpProviderEvent): void {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event);
      } catch {
        // Whoever listens sees to its own mistakes; others shall hear.
      }
    }
  }
}
