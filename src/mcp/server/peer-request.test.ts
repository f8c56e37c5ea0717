import { describe, expect, it } from "vitest";
import { query } from "../../../test/make-operation.ts";
import { call, errorOf, initialize, modern, post } from "../../../test/mcp-requests.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import { createMcpHandler, type McpHandler, type McpRequestInfo } from "./http-handler.ts";
import type { McpHandlerOptions } from "./http-handler-options.ts";
import { toMcpServer } from "./to-mcp-server.ts";

const whoami = query("a.whoami", (_, { identity }) => ({ who: identity?.subject ?? "nobody" }));
const server = toMcpServer(new OperationRegistry([whoami]), { identity: { subject: "process" } });

const said = async (response: Response): Promise<string | undefined> =>
  /"who":"(\w+)"/.exec(await response.text())?.[1];

async function askModern(handler: McpHandler, info?: McpRequestInfo): Promise<string | undefined> {
  return await said(await handler.fetch(modern("tools/call", { name: "a_whoami", arguments: {} }), info));
}

async function askLegacy(handler: McpHandler): Promise<string | undefined> {
  const session = { "mcp-session-id": await initialize(handler) };
  return await said(await handler.fetch(post(call(2, "a_whoami"), session)));
}

async function askBoth(options: McpHandlerOptions): Promise<readonly (string | undefined)[]> {
  const handler = createMcpHandler(server, options);
  const answers = [await askModern(handler), await askLegacy(handler)];
  await handler.close();
  return answers;
}

describe("a session", () => {
  it("X-6 says what is missing in an initialize, whether it is the first or not", async () => {
    const handler = createMcpHandler(server);
    const session = { "mcp-session-id": await initialize(handler) };
    for (const headers of [{}, session]) {
      for (const params of [undefined, {}, { protocolVersion: "2025-06-18" }]) {
        const bad = post({ jsonrpc: "2.0", id: 9, method: "initialize", params }, headers);
        expect(await errorOf(await handler.fetch(bad))).toEqual({ status: 400, code: -32_602, id: 9 });
      }
    }
    await handler.close();
  });
});

describe("the identity of the server's options", () => {
  it("X-4 is never that of a caller whom `authenticate` found to be anonymous", async () => {
    expect(await askBoth({ authenticate: () => undefined })).toEqual(["nobody", "nobody"]);
    expect(await askBoth({ authenticate: () => ({ subject: "ann" }) })).toEqual(["ann", "ann"]);
  });

  it("X-4 is never that of a caller about whom the host says that there is no identity", async () => {
    const handler = createMcpHandler(server);
    expect(await askModern(handler, { identity: undefined })).toBe("nobody");
    const authenticated = createMcpHandler(server, { authenticate: () => ({ subject: "ann" }) });
    expect(await askModern(authenticated, { identity: undefined })).toBe("ann");
  });

  it("X-4 is that of a caller over a transport that does not say, as HTTP without authentication", async () => {
    expect(await askBoth({})).toEqual(["process", "process"]);
  });
});
