import { afterEach, describe, expect, it } from "vitest";
import { closeImported, imported, OBJECT } from "../../../test/import-raw-server.ts";
import { CLIENTS } from "../../../test/mcp-server-peers.ts";
import { createRawMcpServer } from "../../../test/raw-mcp-server.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import type { CallToolResult, ContentBlock } from "../../core/result/call-tool-result.ts";
import { LocalProvider } from "./local-provider.ts";
import { ResourceDirectory } from "./resource-directory.ts";
import { toMcpServer } from "./to-mcp-server.ts";

/** Providers that stay as they are. */
const fixed = (...providers: LocalProvider[]) => {
  return () => providers;
};

interface Upstream {
  readonly listed?: readonly string[];
  readonly templates?: readonly string[];
  readonly links: readonly string[];
}

/** A server that lists some resources, and whose one tool links to some. */
async function upstream(namespace: string, { listed = [], templates = [], links }: Upstream) {
  const server = createRawMcpServer({
    "tools/list": () => ({ tools: [{ name: "link", inputSchema: OBJECT }] }),
    "tools/call": () => ({
      content: links.flatMap((uri) => [
        { type: "resource_link", uri, name: "link" },
        { type: "resource", resource: { uri, text: namespace } },
      ]),
    }),
    "resources/list": () => ({ resources: listed.map((uri) => ({ uri, name: uri })) }),
    "resources/templates/list": () => ({
      resourceTemplates: templates.map((uriTemplate) => ({ uriTemplate, name: uriTemplate })),
    }),
    "prompts/list": () => ({ prompts: [{ name: "p" }] }),
    "prompts/get": () => ({
      messages: links.map((uri) => ({ role: "user", content: { type: "resource_link", uri, name: "link" } })),
    }),
    "resources/read": ({ uri }) => ({ contents: [{ uri, text: `${namespace} has ${uri}` }] }),
  });
  return (await imported(server, { namespace })).source;
}

async function gateway(one: Upstream, two: Upstream) {
  const providers = [await upstream("one", one), await upstream("two", two)];
  const registry = new OperationRegistry([], { onWarning: () => {} });
  for (const source of providers) registry.registerAll(source);
  return toMcpServer(registry, { providers });
}

const urisOf = ({ content }: CallToolResult): string[] =>
  content.flatMap((block: ContentBlock) => {
    if (block.type === "resource_link") return [block.uri];
    return block.type === "resource" ? [block.resource.uri] : [];
  });

afterEach(closeImported);

describe.each(Object.entries(CLIENTS))("links in results of a gateway, seen by %s", (_, connect) => {
  it("leave a result without any alone: nobody is asked who has what", async () => {
    const sources = [await upstream("one", { links: [] }), await upstream("two", { links: ["x://1"] })];
    const registry = new OperationRegistry([], { onWarning: () => {} });
    for (const source of sources) registry.registerAll(source);
    let asked = 0;
    const providers = {
      get current() {
        asked += 1;
        return sources;
      },
      onChange: () => () => {},
    };
    const client = await connect(toMcpServer(registry, { providers }));
    const before = asked;
    await client.callTool({ name: "one_link", arguments: {} });
    expect(asked).toBe(before);
    await client.callTool({ name: "two_link", arguments: {} });
    expect(asked).toBeGreaterThan(before);
  });

  it.each<[string, Upstream, Upstream, string]>([
    [
      "two servers list",
      { listed: ["x://a"], links: ["x://a"] },
      { listed: ["x://a"], links: ["x://a"] },
      "both",
    ],
    ["only another server lists", { links: ["x://a"] }, { listed: ["x://a"], links: ["x://a"] }, "one"],
    [
      "another server has a template for",
      { links: ["x://a"] },
      { templates: ["x://{id}"], links: ["x://a"] },
      "one",
    ],
    ["both link to, and neither lists", { links: ["x://a"] }, { links: ["x://a"] }, "two"],
    ["one alone has", { listed: ["x://a"], links: ["x://a"] }, { links: ["y://b"] }, "none"],
    ["names a provider of another gateway", { links: ["waybill+two:x://a"] }, { links: [] }, "one"],
  ])("Mcp: are readable where they lead to what %s", async (_, one, two, qualified) => {
    const server = await gateway(one, two);
    const client = await connect(server);
    for (const [name, { links }] of Object.entries({ one, two })) {
      const result = (await client.callTool({ name: `${name}_link` })) as CallToolResult;
      const uris = urisOf(result);
      for (const uri of links) {
        const isQualified = qualified === "both" || qualified === name;
        const sent = isQualified ? `waybill+${name}:${uri}` : uri;
        expect(uris).toEqual([sent, sent]);
        const { contents } = await client.readResource({ uri: sent });
        expect(contents).toEqual([{ uri: sent, text: `${name} has ${uri}` }]);
      }
    }
    await client.close();
    await server.close();
  });

  it("Mcp: are readable in the messages of prompts too", async () => {
    const both = { listed: ["x://a"], links: ["x://a"] };
    const server = await gateway(both, both);
    const client = await connect(server);
    const { messages } = await client.getPrompt({ name: "two_p" });
    expect(messages).toEqual([
      { role: "user", content: { type: "resource_link", uri: "waybill+two:x://a", name: "link" } },
    ]);
    await client.close();
    await server.close();
  });

  it("Mcp: lists what another gateway has qualified under a name of its own", async () => {
    const server = await gateway({ listed: ["waybill+two:x://a"], links: [] }, { links: [] });
    const client = await connect(server);
    const { resources } = await client.listResources();
    const [uri = ""] = resources.map((resource) => resource.uri);
    expect(uri).toBe("waybill+one:waybill+two:x://a");
    const { contents } = await client.readResource({ uri });
    expect(contents).toEqual([{ uri, text: "one has waybill+two:x://a" }]);
    await client.close();
    await server.close();
  });
});

describe("ResourceDirectory", () => {
  class Other extends LocalProvider {
    override readonly namespace: string;
    constructor(namespace: string, templates: number) {
      const resourceTemplates = Array.from({ length: templates }, (_, i) => ({
        uriTemplate: `t${i}://{id}`,
        name: "t",
        read: () => "t",
      }));
      super({
        resourceTemplates,
        resources: [{ uri: `own://${namespace}`, name: "own", read: () => "own" }],
      });
      this.namespace = namespace;
    }
  }

  it("Mcp: qualifies all links of a result that are too many to compare, at N + 1", async () => {
    const directory = new ResourceDirectory(fixed(new Other("one", 0), new Other("two", 100)), () => {});
    const links = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ type: "resource_link", uri: `z://${i}`, name: "z" }));
    const few = links(1_000);
    expect(await directory.ownLinks("one", few, {})).toBe(few);
    const many = await directory.ownLinks("one", links(1_001), {});
    expect(many.every(({ uri }) => uri.startsWith("waybill+one:z://"))).toBe(true);
  });

  it("Mcp: leaves blocks alone that are no links, of nobody it knows, or of the only one", async () => {
    const two = new ResourceDirectory(fixed(new Other("one", 0), new Other("two", 0)), () => {});
    const odd = [
      null,
      7,
      { type: "resource" },
      { type: "resource_link", uri: 7 },
      { type: "text", text: "" },
    ];
    expect(await two.ownLinks("one", odd, {})).toBe(odd);
    const link = [{ type: "resource_link", uri: "own://two", name: "own" }];
    expect(await two.ownLinks("local", link, {})).toBe(link);
    const one = new ResourceDirectory(fixed(new Other("one", 0)), () => {});
    expect(await one.ownLinks("one", link, {})).toBe(link);
  });
});
