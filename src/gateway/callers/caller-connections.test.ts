import { afterEach, describe, expect, it, vi } from "vitest";
import { atEnd } from "../../../test/gateway-sources.ts";
import { listen, sendJson } from "../../../test/mcp-servers/http-servers.ts";
import { McpConnection, openMcpConnection } from "../../mcp/client/mcp-connection.ts";
import { CallerConnections, type CallerConnectionsOptions } from "./caller-connections.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** A server of the 2025 revisions that counts sessions, and answers some calls when it is told to. */
async function start(given: Partial<CallerConnectionsOptions> = {}) {
  const open = new Set<string>();
  const held: (() => void)[] = [];
  let sessions = 0;
  const server = await listen(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    if (request.method === "DELETE") open.delete(String(request.headers["mcp-session-id"]));
    if (request.method !== "POST") {
      response.writeHead(request.method === "DELETE" ? 200 : 405).end();
      return;
    }
    const { id, method, params } = JSON.parse(body) as {
      readonly id?: number;
      readonly method: string;
      readonly params?: { readonly name?: string };
    };
    if (id === undefined) {
      response.writeHead(202).end();
      return;
    }
    if (method === "initialize") {
      const session = `session-${++sessions}`;
      open.add(session);
      response.setHeader("mcp-session-id", session);
      const serverInfo = { name: "s", version: "1" };
      sendJson(response, {
        jsonrpc: "2.0",
        id,
        result: { protocolVersion: "2025-11-25", capabilities: {}, serverInfo },
      });
      return;
    }
    if (params?.name === "wait") await new Promise<void>((resolve) => held.push(resolve));
    sendJson(response, { jsonrpc: "2.0", id, result: { content: [], who: request.headers.authorization } });
  });
  atEnd(() => server.close());
  const options = { url: server.url, protocol: "2025" } as const;
  const grants = new Map<string, string>();
  const actAs: CallerConnectionsOptions["actAs"] = async (identity) => {
    const key = identity?.subject ?? "nobody";
    const create = () => new McpConnection({ ...options, auth: { bearer: key } });
    return { owner: { key, subject: key }, grant: grants.get(key) ?? "1", create };
  };
  const connections = new CallerConnections({
    own: await openMcpConnection(options),
    actAs,
    known: async (identity) => (identity === undefined ? undefined : await actAs(identity, {}, undefined)),
    isLost: async () => false,
    ...given,
  });
  atEnd(() => connections.close());
  const call = (subject: string, name = "now") =>
    connections.request("tools/call", { name }, { call: { identity: { subject } } });
  return { connections, call, open, held, grants };
}

describe("connections of callers", () => {
  it("are one for each, made once, and used for that caller alone", async () => {
    const { connections, call, open } = await start();
    const answers = await Promise.all(["ann", "bob", "ann", "bob", "ann"].map((who) => call(who)));
    expect(answers.map(({ who }) => who)).toEqual(
      ["ann", "bob", "ann", "bob", "ann"].map((who) => `Bearer ${who}`),
    );
    expect(connections.size).toBe(2);
    // The gateway has one of its own.
    expect(open.size).toBe(3);
    await connections.close();
    await expect.poll(() => open.size).toBe(0);
    await expect(call("ann")).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it("are so many and no more: whoever has done nothing for longest gives way, and nobody who is busy", async () => {
    const { connections, call, held, open } = await start({ connections: 2 });
    await call("ann");
    await call("bob");
    await call("ann");
    await call("cyd");
    expect(connections.size).toBeLessThanOrEqual(3);
    await expect.poll(() => open.size).toBe(3);
    const waiting = [call("ann", "wait"), call("cyd", "wait")];
    await expect.poll(() => held.length).toBe(2);
    await expect(call("bob")).rejects.toMatchObject({ code: "RESOURCE_EXHAUSTED", retryable: true });
    for (const go of held) go();
    await Promise.all(waiting);
    expect(await call("bob")).toMatchObject({ who: "Bearer bob" });
  });

  it("are closed when they were idle for long, and made again", async () => {
    const { connections, call, open } = await start({ idleMs: 50 });
    await call("ann");
    await expect.poll(() => connections.size).toBe(0);
    await expect.poll(() => open.size).toBe(1);
    expect(await call("ann")).toMatchObject({ who: "Bearer ann" });
  });

  it("are made anew for another grant, while what runs over the one before ends", async () => {
    const { call, held, grants, connections } = await start();
    const waiting = call("ann", "wait");
    await expect.poll(() => held.length).toBe(1);
    grants.set("ann", "2");
    await call("ann");
    expect(connections.size).toBe(2);
    held[0]?.();
    expect(await waiting).toMatchObject({ who: "Bearer ann" });
    await expect.poll(() => connections.size).toBe(1);
  });

  it("list nothing for nobody, and follow no resource for anybody", async () => {
    const { connections } = await start();
    expect(await connections.request("resources/list", {})).toEqual({ resources: [] });
    expect(await connections.request("prompts/list", undefined)).toEqual({ prompts: [] });
    await expect(
      connections.request("resources/subscribe", { uri: "a:b" }, { call: { identity: { subject: "ann" } } }),
    ).rejects.toMatchObject({ code: "NOT_IMPLEMENTED" });
  });
});
