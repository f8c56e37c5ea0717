import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { InMemoryTransport } from "@modelcontextprotocol/client";
import { Server as FirstServer } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it } from "vitest";
import { until } from "../../../test/mcp-servers/scripted-connection.ts";
import type { McpConnectionOptions } from "./connection-options.ts";
import { type McpConnection, type McpConnectionEvent, openMcpConnection } from "./mcp-connection.ts";

const child = (path: string) => fileURLToPath(new URL(`../../../test/${path}`, import.meta.url));
const EVERYTHING = createRequire(import.meta.url).resolve(
  "@modelcontextprotocol/server-everything/package.json",
);

async function withServer(
  options: McpConnectionOptions,
  use: (connection: McpConnection, events: McpConnectionEvent[]) => Promise<void>,
): Promise<void> {
  const connection = await openMcpConnection(options);
  const events: McpConnectionEvent[] = [];
  connection.onEvent((event) => events.push(event));
  try {
    await use(connection, events);
  } finally {
    await connection.close();
  }
}

const run = (...args: string[]) => ({ command: process.execPath, args });
const second = run(child("mcp-servers/second-stdio.js"));

describe("servers of both SDKs on standard input and output", () => {
  it("RE-22 works with a server of SDK 1 that also writes noise", async () => {
    await withServer(run(child("mcp-children/sdk-server.js")), async (connection) => {
      expect(connection.server).toMatchObject({
        protocolVersion: "2025-11-25",
        serverInfo: { name: "greeter" },
      });
      expect(await connection.request("tools/list", undefined)).toMatchObject({ tools: [{ name: "greet" }] });
      const result = await connection.request("tools/call", { name: "greet", arguments: {} });
      expect(result).toEqual({ content: [{ type: "text", text: "Hello." }] });
    });
  });

  it("RE-22 works with server-everything", async () => {
    await withServer(run(EVERYTHING.replace(/package\.json$/, "dist/index.js")), async (connection) => {
      const { tools } = await connection.request("tools/list", {});
      expect((tools as unknown[]).length).toBeGreaterThan(5);
      const echo = { name: "echo", arguments: { message: "hi" } };
      expect(JSON.stringify(await connection.request("tools/call", echo))).toContain("hi");
      const none = connection.request("resources/read", { uri: "nope://x" });
      await expect(none).rejects.toMatchObject({
        code: expect.stringMatching(/^(NOT_FOUND|VALIDATION_ERROR)$/),
      });
    });
  });

  it.each([
    ["2026", "2026-07-28"],
    ["auto", "2026-07-28"],
    ["2025", "2025-11-25"],
  ] as const)("RE-22 works with a server of SDK 2 when told %s", async (protocol, version) => {
    await withServer({ ...second, protocol }, async (connection) => {
      expect(connection.server.protocolVersion).toBe(version);
      expect(connection.server.serverInfo).toMatchObject({ name: "second" });
      const result = await connection.request("tools/call", { name: "greet", arguments: {} });
      expect(result).toMatchObject({ content: [{ type: "text", text: "Hello." }] });
    });
  });

  it.each(["2025", "2026"] as const)("Mcp: watches a resource in the %s revision", async (protocol) => {
    await withServer({ ...second, protocol }, async (connection, events) => {
      await connection.request("resources/subscribe", { uri: "memo://one" });
      await connection.request("tools/call", { name: "change", arguments: {} });
      await until(() =>
        events.some(
          (event) => event.type === "notification" && event.method === "notifications/resources/updated",
        ),
      );
      await connection.request("resources/unsubscribe", { uri: "memo://one" });
    });
  });

  it("Mcp: answers logging/setLevel itself where the revision has no such method", async () => {
    await withServer({ ...second, protocol: "2026" }, async (connection) => {
      expect(await connection.request("logging/setLevel", { level: "debug" })).toEqual({});
      await expect(connection.request("ping", undefined)).rejects.toMatchObject({
        code: "OPERATION_NOT_FOUND",
      });
    });
  });

  it("Mcp: refuses a server that speaks only an older revision than asked for, and leaves nothing behind", async () => {
    const options = { ...run(child("mcp-children/sdk-server.js")), protocol: "2026" as const };
    await expect(openMcpConnection(options)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });
});

describe("a transport of the caller's own", () => {
  it("Mcp: is made anew for each connection, and made again when it closes", async () => {
    const servers: FirstServer[] = [];
    const transport = () => {
      const [here, there] = InMemoryTransport.createLinkedPair();
      const server = new FirstServer({ name: "near", version: "1" }, { capabilities: { tools: {} } });
      server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({ content: [], name: params.name }));
      servers.push(server);
      void server.connect(there as never);
      return here;
    };
    await withServer({ transport, protocol: "2025", reconnect: { delayMs: 10 } }, async (connection) => {
      expect(await connection.request("tools/call", { name: "a" })).toEqual({ content: [], name: "a" });
      await servers[0]?.close();
      await until(() => servers.length === 2 && connection.state.status === "ready");
      expect(await connection.request("tools/call", { name: "b" })).toEqual({ content: [], name: "b" });
    });
  });
});
