import { describe, expect, it } from "vitest";
import type { Hooks } from "../src/core/execution/dispatch.ts";
import { createGateway, type GatewayConfig, serveGateway } from "../src/gateway/index.ts";
import { type CallRecord, createObserver } from "../src/gateway/serve/observe/observer.ts";
import { createClient, OperationRegistry, toolError } from "../src/index.ts";
import { fromMcp } from "../src/mcp/index.ts";
import { atEnd } from "./gateway-sources.ts";
import { collect, query, rejection, stream } from "./make-operation.ts";
import { APP_SERVERS, clientOf } from "./pass-through.ts";
import { loadedConfig } from "./served-gateway.ts";

const TOKEN = `ghp_${"aB3dE5gH7jK9".repeat(3)}`;
const CARD = "4111 1111 1111 1111";
const FINDING = { kind: "credentials", rule: "github-token", pointer: "/data/text", count: 1 };

/** A gateway with one module whose results hold what guards look for. */
async function served(
  guard: NonNullable<NonNullable<GatewayConfig["policies"]>[string]["guard"]>,
  ...observers: Hooks[]
) {
  const operations = [
    query("shop.read", () => ({ text: `a ${TOKEN}`, card: CARD })),
    query("shop.fail", () => toolError({ text: TOKEN }, { message: "no" })),
    stream("shop.watch", async function* () {
      yield { text: "plain" };
      yield { text: TOKEN };
    }),
    query("other.read", () => ({ text: TOKEN })),
  ];
  const policies = { "shop.*": { guard, cacheMs: 60_000 }, "pages.*": { guard } };
  const { url } = await APP_SERVERS["SDK 2"]({ label: TOKEN });
  const config = { policies, mcpServers: { pages: { url } } };
  const loaded = { ...loadedConfig(config), localOperations: operations };
  const gateway = await createGateway(loaded, { observers });
  atEnd(() => gateway.close());
  await gateway.ready;
  const server = await serveGateway(gateway, loaded);
  atEnd(() => server.close({ timeoutMs: 0 }));
  return { gateway, server };
}

describe("the record of a guarded call", () => {
  it("says where and what was marked or withheld, and never the text", async () => {
    for (const credentials of ["mark", "withhold"] as const) {
      const observer = createObserver();
      const { gateway } = await served({ credentials }, observer);
      const records: CallRecord[] = [];
      observer.listen({ end: (record) => void records.push(record) });
      await gateway.executor.execute("shop.read", {}).catch(() => {});
      await collect(gateway.executor.subscribe("shop.watch", {})).catch(() => {});
      expect(records[0]).toMatchObject({ operation: "shop.read", findings: 1, marked: [FINDING] });
      expect(records[1]).toMatchObject({ operation: "shop.watch", findings: 1, marked: [FINDING] });
      expect(JSON.stringify(records)).not.toContain("ghp_");
    }
  });
});

async function post(url: string): Promise<Response> {
  return await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" });
}

describe("a guard of a policy", () => {
  it("marks results on every surface, those of the cache too, and leaves other operations alone", async () => {
    const { gateway, server } = await served({ credentials: "mark" });
    for (const _ of [1, 2]) {
      const { data, meta } = await gateway.executor.execute("shop.read", {});
      expect(data).toEqual({ text: `a ${TOKEN}`, card: CARD });
      expect(meta.waybill?.findings).toEqual([FINDING]);
    }
    expect((await gateway.executor.execute("other.read", {})).meta.waybill?.findings).toBeUndefined();

    const response = await post(`${server.url}/api/shop/read`);
    expect(response.headers.get("waybill-findings")).toBe("1");
    expect(JSON.parse(response.headers.get("waybill-facts") ?? "{}")).toMatchObject({ findings: [FINDING] });

    for (const era of [2025, 2026] as const) {
      const client = await clientOf(`${server.url}/mcp`, era);
      const result = await client.callTool({ name: "shop_read", arguments: {} });
      expect(result._meta?.["dev.waybill/result"]).toMatchObject({ findings: [FINDING] });
      const { resources } = await client.listResources();
      const page = await client.readResource({ uri: resources[0]?.uri ?? "" });
      const findings = [{ ...FINDING, pointer: "/contents/0/text" }];
      expect(page._meta?.["dev.waybill/result"]).toMatchObject({
        findings: expect.arrayContaining(findings),
      });
    }

    const imported = await fromMcp(`${server.url}/mcp`, { namespace: "far" });
    atEnd(() => imported.close());
    const registry = new OperationRegistry();
    registry.registerAll(imported);
    const far = await registry.execute(
      imported.operations.find(({ id }) => id.endsWith("shop_read"))?.id ?? "",
      {},
    );
    expect(far.meta.waybill?.findings).toEqual([FINDING]);
  });

  it("masks results, tool errors and each value of a stream", async () => {
    const { gateway, server } = await served({ credentials: "mask", cards: "mask" });
    expect((await gateway.executor.execute("shop.read", {})).data).toEqual({ text: "a ***", card: "***" });
    expect(await (await post(`${server.url}/api/shop/fail`)).text()).not.toContain("ghp_");
    const values = await collect(gateway.executor.subscribe("shop.watch", {}));
    expect(values.map(({ data }) => data)).toEqual([{ text: "plain" }, { text: "***" }]);
    expect(values[1]?.meta.waybill?.findings).toHaveLength(1);
    const client = await clientOf(`${server.url}/mcp`, 2025);
    const { resources } = await client.listResources();
    const page = await client.readResource({ uri: resources[0]?.uri ?? "" });
    expect(JSON.stringify(page.contents)).toContain("<p>***</p>");
  });

  it("withholds with an error that every surface tells", async () => {
    const { gateway, server } = await served({ credentials: "withhold" });
    const error = await rejection(createClient(gateway.executor).call("shop.read", {}));
    expect(error).toMatchObject({ code: "WITHHELD", details: { findings: [FINDING] } });
    const response = await post(`${server.url}/api/shop/read`);
    expect(response.status).toBe(502);
    const problem = await response.text();
    expect(problem).toContain("WITHHELD");
    expect(problem).not.toContain("ghp_");
    expect(await rejection(collect(gateway.executor.subscribe("shop.watch", {})))).toMatchObject({
      code: "WITHHELD",
    });
  });
});
