import { afterEach, describe, expect, it } from "vitest";
import { until } from "../../../../test/make-operation.ts";
import { legacyClient } from "../../../../test/mcp-server-peers.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import type { McpProvider } from "../../provider.ts";
import type { LiveMcpProviders } from "../mcp-server-options.ts";
import { toMcpServer } from "../to-mcp-server.ts";
import { LocalProvider } from "./provider-set.ts";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

/** Offers one resource and one prompt under a namespace of its own. */
class Elsewhere extends LocalProvider {
  override readonly namespace: string;
  updates = new Set<() => void>();

  constructor(namespace: string) {
    const updates = new Set<() => void>();
    super({
      resources: [
        {
          uri: `${namespace}://note`,
          name: "note",
          read: () => `of ${namespace}`,
          onUpdate: (listener) => {
            updates.add(listener);
            return () => updates.delete(listener);
          },
        },
      ],
      prompts: [{ name: "greet", get: () => `from ${namespace}` }],
    });
    this.updates = updates;
    this.namespace = namespace;
  }
}

class Live implements LiveMcpProviders {
  current: readonly McpProvider[] = [];
  readonly #listeners = new Set<() => void>();

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  set(...providers: readonly McpProvider[]): void {
    this.current = providers;
    for (const listener of this.#listeners) listener();
  }

  get listeners(): number {
    return this.#listeners.size;
  }
}

async function serve(live: Live) {
  const server = toMcpServer(new OperationRegistry(), { providers: live });
  const heard: string[] = [];
  const client = await legacyClient(server, {
    prepare: (one) => {
      one.fallbackNotificationHandler = async ({ method, params }) =>
        void heard.push(`${method} ${params?.["uri"] ?? ""}`.trim());
    },
  });
  open.push(server, client);
  return { server, client, heard };
}

describe("providers that come and go", () => {
  it("RE-30 offers what has come and no longer what has gone, and tells clients of both", async () => {
    const live = new Live();
    const { client, heard } = await serve(live);
    expect(client.getServerCapabilities()).toMatchObject({
      resources: { listChanged: true, subscribe: true },
      prompts: { listChanged: true },
      completions: {},
    });
    expect((await client.listResources()).resources).toEqual([]);
    live.set(new Elsewhere("one"), new Elsewhere("two"));
    await until(() => heard.length === 2);
    expect(heard.sort()).toEqual([
      "notifications/prompts/list_changed",
      "notifications/resources/list_changed",
    ]);
    const uris = async () => (await client.listResources()).resources.map(({ uri }) => uri);
    expect(await uris()).toEqual(["one://note", "two://note"]);
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(["one_greet", "two_greet"]);
    expect((await client.readResource({ uri: "two://note" })).contents).toMatchObject([{ text: "of two" }]);
    live.set(new Elsewhere("two"));
    await until(() => heard.length === 4);
    expect(await uris()).toEqual(["two://note"]);
    await expect(client.readResource({ uri: "one://note" })).rejects.toThrow();
  });

  it("RE-30 hears a provider for as long as it is there, and lets another take its name", async () => {
    const live = new Live();
    const first = new Elsewhere("one");
    live.set(first);
    const { server, client, heard } = await serve(live);
    await client.subscribeResource({ uri: "one://note" });
    for (const tell of first.updates) tell();
    await until(() => heard.includes("notifications/resources/updated one://note"));
    const second = new Elsewhere("one");
    live.set(second);
    expect(first.updates.size).toBe(0);
    await client.subscribeResource({ uri: "one://note" });
    expect(second.updates.size).toBe(1);
    await server.close();
    expect([second.updates.size, live.listeners]).toEqual([0, 0]);
  });

  it("RE-30 refuses two of one name, and what is no provider", () => {
    const live = new Live();
    live.set(new Elsewhere("one"), new Elsewhere("one"));
    const server = () => toMcpServer(new OperationRegistry(), { providers: live });
    expect(server).toThrow("Every provider needs a namespace of its own.");
    live.set({} as McpProvider);
    expect(server).toThrow("providers[0] must be an McpProvider");
  });
});
