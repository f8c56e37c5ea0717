import type {
  McpLogLevel,
  McpProviderEvent,
  McpResourceContents,
  McpServerOptions,
} from "../src/mcp/index.ts";
import { LocalProvider } from "../src/mcp/server/resources/provider-set.ts";

/** Another server, in this process: it has a namespace, says when it changes, and knows what it was asked. */
export class OtherServer extends LocalProvider {
  override readonly namespace: string;
  readonly asked: string[] = [];
  readonly #listeners = new Set<(event: McpProviderEvent) => void>();

  constructor(namespace: string, offered: McpServerOptions) {
    super(offered);
    this.namespace = namespace;
    Object.assign(this.capabilities, { logging: true });
  }

  override async readResource(uri: string): Promise<McpResourceContents> {
    this.asked.push(uri);
    return await super.readResource(uri);
  }

  override async subscribeResource(uri: string): Promise<void> {
    this.asked.push(`+${uri}`);
  }

  override async unsubscribeResource(uri: string): Promise<void> {
    this.asked.push(`-${uri}`);
  }

  override async setLogLevel(level: McpLogLevel): Promise<void> {
    this.asked.push(`level ${level}`);
  }

  override onEvent(listener: (event: McpProviderEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  say(event: McpProviderEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

/** Makes one with two resources, a template and a prompt. */
export function other(namespace: string): OtherServer {
  return new OtherServer(namespace, {
    resources: [
      { uri: "x://shared", name: "shared", read: () => `shared of ${namespace}` },
      { uri: `x://${namespace}`, name: namespace, read: () => `own of ${namespace}` },
    ],
    resourceTemplates: [
      {
        uriTemplate: `${namespace}://{id}/data`,
        name: "data",
        read: (_, { id }) => (id === "none" ? undefined : `data ${id}`),
        complete: { id: (value) => [`${value}1`, `${value}2`] },
      },
    ],
    prompts: [
      {
        name: "greet",
        arguments: [
          { name: "who", required: true, complete: () => Array.from({ length: 101 }, (_, i) => `${i}`) },
        ],
        get: ({ who }) => `${namespace} greets ${who}`,
      },
    ],
  });
}
