import { InMemoryTransport } from "@modelcontextprotocol/client";
import { InMemoryTransport as FirstTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server as FirstServer } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, it } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { openMcpConnection } from "../client/mcp-connection.ts";
import { toMcpServer } from "../server/to-mcp-server.ts";
import type { McpTransport } from "./channel.ts";

const PAIRS: Readonly<Record<string, () => readonly [McpTransport, McpTransport]>> = {
  "SDK 1": () => FirstTransport.createLinkedPair(),
  "SDK 2": () => InMemoryTransport.createLinkedPair(),
};

it.each(Object.keys(PAIRS))("Mcp: a transport in memory of %s carries both ends, as it is", async (name) => {
  const [here, there] = PAIRS[name]?.() ?? [];
  if (here === undefined || there === undefined) throw new Error("There is no such pair.");
  const server = toMcpServer(new OperationRegistry([query("near.one", () => 1)]), { name: "near" });
  await server.connect(there);
  const connection = await openMcpConnection({ transport: () => here, reconnect: false });
  expect(connection.server).toMatchObject({ protocolVersion: "2026-07-28", serverInfo: { name: "near" } });
  const { tools } = await connection.request("tools/list", undefined);
  expect(tools).toHaveLength(1);
  await connection.close();
  await server.close();
});

it("Mcp: a transport in memory of SDK 1 carries a server of SDK 1, with one request to open it", async () => {
  const [here, there] = FirstTransport.createLinkedPair();
  const server = new FirstServer({ name: "first", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(CallToolRequestSchema, () => ({ content: [] }));
  const methods: unknown[] = [];
  await server.connect(there);
  const receive = there.onmessage;
  there.onmessage = (message, extra) => {
    methods.push((message as { method?: unknown }).method);
    receive?.(message, extra);
  };
  const connection = await openMcpConnection({ transport: () => here, reconnect: false });
  expect(connection.server.protocolVersion).toBe("2025-11-25");
  expect(await connection.request("tools/call", { name: "t" })).toEqual({ content: [] });
  expect(methods).toEqual(["initialize", "notifications/initialized", "tools/call"]);
  await connection.close();
});
