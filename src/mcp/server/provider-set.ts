import type { McpProvider } from "../provider.ts";
import { isLive } from "./check-server-options.ts";
import { LocalProvider } from "./local-provider.ts";
import type { ServerCapabilities } from "./mcp-server.ts";
import type { LiveMcpProviders, McpServerOptions } from "./mcp-server-options.ts";

/** All that has resources and prompts: this process, and the providers given, be they fixed or coming and going. */
export class ProviderSet {
  readonly #local: LocalProvider;
  readonly #live: LiveMcpProviders | undefined;
  readonly #fixed: readonly McpProvider[];

  constructor(options: McpServerOptions) {
    const { providers = [] } = options;
    this.#local = new LocalProvider(options);
    this.#live = isLive(providers) ? providers : undefined;
    const given = isLive(providers) ? providers.current : providers;
    const namespaces = new Set(given.map(({ namespace }) => namespace));
    if (namespaces.size < given.length || namespaces.has("")) {
      throw new TypeError("Every provider needs a namespace of its own.");
    }
    this.#fixed = [this.#local, ...given];
  }

  /** Those there are now, this process first. */
  get current(): readonly McpProvider[] {
    return this.#live === undefined ? this.#fixed : [this.#local, ...this.#live.current];
  }

  /** Hears when they have changed; returns how to stop. */
  onChange(listener: () => void): () => void {
    return this.#live?.onChange(listener) ?? (() => {});
  }

  /** Says exactly what is there, or may come: a list is said to change where somebody could change it. */
  capabilities({ store, catalogue = false }: McpServerOptions): ServerCapabilities {
    const mayCome = this.#live !== undefined;
    const some = (what: keyof McpProvider["capabilities"]): readonly McpProvider[] =>
      this.#fixed.filter(({ capabilities }) => capabilities[what]);
    const changes = (owners: readonly McpProvider[]): { listChanged?: true } =>
      mayCome || owners.some(({ namespace }) => namespace !== "") ? { listChanged: true } : {};
    const resources = some("resources");
    const prompts = some("prompts");
    const subscribe = mayCome || some("resourceSubscriptions").length > 0;
    return {
      tools: catalogue ? {} : { listChanged: true },
      logging: {},
      ...((mayCome || resources.length > 0 || store) && {
        resources: { ...changes(resources), ...(subscribe && { subscribe }) },
      }),
      ...((mayCome || prompts.length > 0) && { prompts: changes(prompts) }),
      ...((mayCome || some("completions").length > 0) && { completions: {} }),
    };
  }
}
