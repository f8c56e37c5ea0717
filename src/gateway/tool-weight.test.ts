import { describe, expect, it } from "vitest";
import { modernClient } from "../../test/mcp-server-peers.ts";
import { estimateTokens } from "../formats/preview/token-budget.ts";
import { defineOperation, OperationRegistry, Type } from "../index.ts";
import { toMcpServer } from "../mcp/index.ts";
import type { GatewayConfig } from "./config/gateway-config.ts";
import { roundTokens, toolWeight } from "./tool-weight.ts";

function operation(namespace: string, name: string, more: object = {}) {
  return defineOperation({
    namespace,
    name,
    version: "1.0.0",
    type: "query",
    description: `Does ${name}.`,
    inputSchema: Type.Object({ text: Type.String({ description: "What to do it with." }) }),
    outputSchema: Type.Object({ done: Type.Boolean() }),
    handler: () => ({ done: true }),
    ...more,
  });
}

function weigh(registry: OperationRegistry, serve: GatewayConfig["serve"] = {}) {
  const gateway = { executor: registry, sourceOf: (id: string) => id.split(".")[0] };
  return toolWeight(gateway, { config: { serve } });
}

describe("toolWeight", () => {
  it("counts what tools/list has, by source, heaviest first", async () => {
    const registry = new OperationRegistry([
      operation("small", "one"),
      operation("large", "one"),
      operation("large", "two", { description: "Does two. ".repeat(200) }),
      operation("large", "hidden", { visibility: "internal" }),
    ]);
    const { tools, tokens, listTokens, isCatalogue, sources } = await weigh(registry);
    expect([tools, isCatalogue]).toEqual([3, false]);
    expect(sources.map(({ name, tools }) => [name, tools])).toEqual([
      ["large", 2],
      ["small", 1],
    ]);
    expect(tokens).toBe(sources.reduce((sum, source) => sum + source.tokens, 0));
    expect(listTokens).toBeGreaterThan(tokens);
    expect(sources[0]?.tokens).toBeGreaterThan(400);
  });

  it("is what the list is estimated at", async () => {
    const registry = new OperationRegistry([operation("a", "one"), operation("a", "two")]);
    const server = toMcpServer(registry);
    const client = await modernClient(server);
    const { tools } = await client.listTools();
    await client.close();
    const { listTokens } = await weigh(registry);
    const whole = estimateTokens(JSON.stringify(tools));
    expect(Math.abs(listTokens - whole)).toBeLessThan(whole * 0.1);
    await server.close();
  });

  it("is that of the catalogue where the catalogue is served, whatever stands behind it", async () => {
    const few = await weigh(new OperationRegistry([operation("a", "one")]), { mcp: { catalogue: true } });
    const many = await weigh(
      new OperationRegistry(Array.from({ length: 50 }, (_, i) => operation("a", `n${i}`))),
      { mcp: { catalogue: true } },
    );
    expect(few.isCatalogue).toBe(true);
    expect([few.tools, few.tokens]).toEqual([many.tools, many.tokens]);
    expect(many.sources[0]?.tools).toBe(50);
  });

  it("lets other work go on while it measures many tools", async () => {
    const registry = new OperationRegistry(
      Array.from({ length: 400 }, (_, i) => operation("a", `n${i}`, { description: "Word. ".repeat(2_000) })),
    );
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await weigh(registry);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(1);
  });
});

describe("roundTokens", () => {
  it.each([
    [0, "0"],
    [7, "7"],
    [873, "870"],
    [12_345, "12,000"],
    [415_543, "420,000"],
    [2_123_343, "2.1 million"],
  ])("writes %d as %s", (tokens, words) => {
    expect(roundTokens(tokens)).toBe(words);
  });
});
