import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { cpuMs } from "../../../../test/cpu-ms.ts";
import { closeImported, imported, OBJECT } from "../../../../test/import-raw-server.ts";
import { CLIENTS } from "../../../../test/mcp-server-peers.ts";
import { createRawMcpServer } from "../../../../test/raw-mcp-server.ts";
import { runs } from "../../../../test/runs.ts";
import { OperationRegistry } from "../../../core/registry/registry.ts";
import type { CallToolResult, ContentBlock } from "../../../core/result/tool-result.ts";
import type { McpProvider } from "../../provider.ts";
import { toMcpServer } from "../to-mcp-server.ts";
import { LocalProvider } from "./provider-set.ts";
import {
  compareKeys,
  mayMatch,
  pageOf,
  parseUriTemplate,
  ResourceDirectory,
  readProviderUri,
  toProviderUri,
  withProviderUi,
} from "./resource-directory.ts";

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

const namespace = fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_-]{0,20}$/);
const uri = fc.oneof(
  fc.string().map((rest) => `ui://${rest}`),
  fc.webUrl(),
  fc.string(),
);
const provider = (name: string) => ({ namespace: name }) as McpProvider;

describe("addresses that name their provider", () => {
  it("Mcp: lead back through any number of hops, and no two meet", () => {
    fc.assert(
      fc.property(
        uri,
        uri,
        fc.array(namespace, { minLength: 1, maxLength: 4 }),
        namespace,
        (one, two, hops, last) => {
          const through = (address: string): string =>
            hops.reduce((at, hop) => toProviderUri(provider(hop), at), address);
          let at = through(one);
          expect(at.startsWith("ui://")).toBe(one.startsWith("ui://"));
          if (one !== two) expect(through(two)).not.toBe(at);
          const other = toProviderUri(provider(last), one);
          if (hops[0] !== last) expect(toProviderUri(provider(hops[0] as string), one)).not.toBe(other);
          for (const hop of [...hops].reverse())
            at = readProviderUri(at, [provider(last), provider(hop)])?.uri ?? "";
          expect(at).toBe(one);
        },
      ),
      runs(500),
    );
  });

  it("Mcp: are found in a _meta up to 8 levels deep, and the rest stays the same object", () => {
    const nested = (depth: number): object => (depth === 1 ? { at: "ui://x" } : { in: nested(depth - 1) });
    const a = provider("a");
    expect(withProviderUi(nested(8), a)).toEqual(
      JSON.parse(JSON.stringify(nested(8)).replace("ui://", "ui://waybill+a/")),
    );
    expect(withProviderUi(nested(9), a)).toEqual(nested(9));
    const plain = { ui: { visibility: ["app"] }, text: "see ui://x", none: null };
    expect(withProviderUi(plain, a)).toBe(plain);
    const odd = JSON.parse('{"__proto__":"ui://x"}');
    expect(JSON.stringify(withProviderUi(odd, a))).toBe('{"__proto__":"ui://waybill+a/x"}');
  });
});

describe("parseUriTemplate", () => {
  it.each([
    ["test://template/{id}/data", "test://template/7/data", { id: "7" }],
    ["file:///{+path}", "file:///a/b.txt", { path: "a/b.txt" }],
    ["x://{a}-{b}.txt", "x://1-2-3.txt", { a: "1", b: "2-3" }],
    ["x://{name}", "x://a%20b", { name: "a b" }],
    ["x://{__proto__}", "x://a", JSON.parse('{"__proto__":"a"}')],
  ])("Mcp: %s finds the variables of %s", (template, uri, expected) => {
    expect(JSON.stringify(parseUriTemplate(template).match(uri))).toBe(JSON.stringify(expected));
  });

  it.each([
    ["test://template/{id}/data", "test://template//data"],
    ["test://template/{id}/data", "test://template/a/b/data"],
    ["x://{a}", "x://%E0%A4%A"],
    ["x://{a}", `x://${"a".repeat(70_000)}`],
    ["x://{a}y", "x://a"],
  ])("Mcp: %s does not match %s", (template, uri) => {
    expect(parseUriTemplate(template).match(uri)).toBeUndefined();
  });

  it("Mcp: refuses templates of higher levels", () => {
    expect(() => parseUriTemplate("x://{?q}")).toThrow(TypeError);
  });

  it("Mcp: takes one pass, whatever the template", () => {
    const matcher = parseUriTemplate(`x:${Array.from({ length: 200 }, (_, i) => `{+a${i}}-`).join("")}!`);
    const started = cpuMs();
    for (let i = 0; i < 4; i++) expect(matcher.match(`x:${"-a".repeat(30_000)}`)).toBeUndefined();
    expect(cpuMs() - started).toBeLessThan(2_000);
  });

  it("Mcp: guesses by the beginning where a template is of a higher level", () => {
    expect(mayMatch("x://a{?q}", "x://a?q=1")).toBe(true);
    expect(mayMatch("x://a{?q}", "y://a?q=1")).toBe(false);
    expect(mayMatch("{?q}", "y://a")).toBe(false);
  });
});

const same = (key: string): string => key;

describe("pageOf", () => {
  it("RE-30 walks any list in pages without loss or repetition", () => {
    const lists = fc.uniqueArray(fc.string(), { maxLength: 50 });
    fc.assert(
      fc.property(lists, fc.integer({ min: 1, max: 7 }), (keys, size) => {
        const sorted = keys.toSorted(compareKeys);
        const walked: string[] = [];
        let cursor: string | undefined;
        do {
          const page = pageOf(sorted, same, { cursor, pageSize: size });
          expect(page.items.length).toBeLessThanOrEqual(size);
          walked.push(...page.items);
          cursor = page.nextCursor;
        } while (cursor !== undefined);
        expect(walked).toEqual(sorted);
      }),
    );
  });

  it("RE-30 ends at exactly one page and goes on at one more", () => {
    expect(pageOf(["a", "b"], same, { pageSize: 2 }).nextCursor).toBeUndefined();
    expect(pageOf(["a", "b", "c"], same, { pageSize: 2 }).nextCursor).toBeDefined();
  });

  it("RE-30 keeps its place when what it stands at is gone", () => {
    const { nextCursor } = pageOf(["a", "b", "c", "d"], same, { pageSize: 2 });
    expect(pageOf(["a", "c", "d"], same, { cursor: nextCursor, pageSize: 2 }).items).toEqual(["c", "d"]);
  });

  it.each([7, null, "", "x", "dzE6YQ", "A".repeat(30_000)])("RE-30 refuses the cursor %j", (cursor) => {
    expect(() => pageOf(["a"], same, { cursor, pageSize: 2 })).toThrow("cursor");
  });
});
