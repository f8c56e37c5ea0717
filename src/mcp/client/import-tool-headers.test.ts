import { InMemoryTransport, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";
import { afterEach, describe, expect, it } from "vitest";
import { serveSecondOf } from "../../../test/mcp-servers/http-servers.ts";
import { fromMcp } from "./from-mcp.ts";

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

const tool = (name: string, a: Record<string, string>) => ({
  name,
  inputSchema: { type: "object" as const, properties: { a } },
});
const TOOLS = [
  tool("plain", { type: "string" }),
  tool("right", { type: "string", "x-mcp-header": "Region" }),
  tool("wrong", { type: "string", "x-mcp-header": "Two Words" }),
];

function createServer(): Server {
  const jsonSchemaValidator = new CfWorkerJsonSchemaValidator();
  const server = new Server(
    { name: "s", version: "1.0.0" },
    { capabilities: { tools: {} }, jsonSchemaValidator },
  );
  server.setRequestHandler("tools/list", () => ({ tools: TOOLS }));
  server.setRequestHandler("tools/call", () => ({ content: [{ type: "text", text: "done" }] }));
  return server;
}

async function importOverHttp(protocol: "2025" | "2026") {
  const { url, close } = await serveSecondOf(createServer);
  opened.push({ close });
  const warnings: string[] = [];
  const onWarning = (message: string) => void warnings.push(message);
  const source = await fromMcp({ url, protocol, namespace: "s", onWarning });
  opened.push(source);
  return { source, warnings };
}

const names = (operations: Iterable<{ readonly name: string }>) => Array.from(operations, ({ name }) => name);

describe("tools whose arguments go along in headers", () => {
  it("RE-22 over HTTP with the 2026-07-28 revision one with a wrong header is unusable, and the others stay", async () => {
    const { source, warnings } = await importOverHttp("2026");
    expect(names(source.operations)).toEqual(["plain", "right"]);
    expect(source.unusable).toEqual([
      { tool: "wrong", reason: 'The x-mcp-header of its property "a" is no name that a header can have.' },
    ]);
    expect(warnings).toHaveLength(1);
    expect((await source.call("right", { a: "é" })).data).toEqual(expect.anything());
  });

  it("RE-22 over HTTP with the 2025 revisions all are usable", async () => {
    const { source } = await importOverHttp("2025");
    expect(names(source.operations)).toEqual(["plain", "right", "wrong"]);
    expect(source.unusable).toEqual([]);
  });

  it("RE-22 over a transport without headers, and with the same revision, all are usable", async () => {
    const transport = () => {
      const [near, far] = InMemoryTransport.createLinkedPair();
      serveStdio(createServer, { transport: far });
      return near as never;
    };
    const source = await fromMcp({ transport, namespace: "s", protocol: "2026" });
    opened.push(source);
    expect(names(source.operations)).toEqual(["plain", "right", "wrong"]);
  });
});
