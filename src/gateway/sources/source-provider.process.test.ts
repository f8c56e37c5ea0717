import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { loadedConfig, makeSource } from "../../../test/gateway-sources.ts";
import { rejection } from "../../../test/make-operation.ts";
import type { McpProviderEvent } from "../../mcp/index.ts";

const SECOND = resolve("test/mcp-servers/second-stdio.js");

describe("what an MCP server offers besides tools", () => {
  it("RE-30 is there while the server is up, and empty while it is down", async () => {
    const server = { command: process.execPath, args: [SECOND] };
    const { source } = makeSource(loadedConfig({ mcpServers: { up: server } }));
    const provider = source.provider;
    if (provider === undefined) throw new Error("There is none.");
    expect(provider.namespace).toBe("up");
    expect(provider.capabilities).toMatchObject({ resources: false, prompts: false, logging: false });
    expect(await provider.listResources()).toEqual([]);
    expect(await provider.listPrompts()).toEqual([]);
    expect(await rejection(provider.readResource("memo://one"))).toMatchObject({ code: "UNAVAILABLE" });
    await provider.setLogLevel("warning");
    const events: McpProviderEvent[] = [];
    provider.onEvent((event) => events.push(event));
    await source.start();
    expect(events).toEqual([{ type: "resources-changed" }]);
    expect(provider.capabilities).toMatchObject({ resources: true, resourceSubscriptions: true });
    expect(await provider.readResource("memo://one")).toMatchObject({ contents: [{ text: "one" }] });
    await provider.subscribeResource("memo://one");
    await source.close();
    expect(provider.capabilities.resources).toBe(false);
    expect(await rejection(provider.readResource("memo://one"))).toMatchObject({ code: "UNAVAILABLE" });
  });
});
