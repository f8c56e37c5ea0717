import { afterEach, describe, expect, it, vi } from "vitest";
import {
  type Answer,
  type Listening,
  listen,
  refuse,
  sendJson,
  serveByHand,
  serveFirstHttp,
  serveSecondHttp,
} from "../../../test/mcp-servers/http-servers.ts";
import { until } from "../../../test/mcp-servers/scripted-connection.ts";
import { OperationRegistry } from "../../core/registry/registry.ts";
import type { McpConnectionOptions, McpCredentialRequest } from "./connection-options.ts";
import { fromMcp } from "./from-mcp.ts";
import { type McpConnection, openMcpConnection } from "./mcp-connection.ts";

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  vi.useRealTimers();
  for (const each of opened.splice(0).reverse()) await each.close();
});

function keep<T extends { close(): Promise<void> }>(thing: T): T {
  opened.push(thing);
  return thing;
}

async function connect(
  { url }: Listening,
  settings: Partial<McpConnectionOptions> = {},
): Promise<McpConnection> {
  return keep(await openMcpConnection({ url, ...settings } as McpConnectionOptions));
}

const echo = (connection: McpConnection, args: Record<string, unknown> = {}) =>
  connection.request("tools/call", { name: "echo", arguments: args });

async function byHand(answer: Answer, settings: Partial<McpConnectionOptions> = {}): Promise<McpConnection> {
  return connect(keep(await serveByHand(answer)), settings);
}

describe("HTTP with a server of SDK 1", () => {
  it("RE-23 calls tools, and tells the server of an abort and of the end of its session", async () => {
    const server = keep(await serveFirstHttp());
    const connection = await connect(server);
    expect(connection.server.protocolVersion).toBe("2025-11-25");
    expect(await echo(connection, { a: 1 })).toEqual({
      content: [{ type: "text", text: '{"a":1}' }],
      extra: 1,
    });
    // No time passes until the server has the call.
    vi.useFakeTimers({ toFake: ["performance"] });
    const sleep = connection.request("tools/call", { name: "sleep", arguments: {} }, { timeoutMs: 50 });
    await until(() => server.calls.length === 2);
    vi.advanceTimersByTime(50);
    await expect(sleep).rejects.toMatchObject({ code: "TIMEOUT" });
    await until(() => server.cancelled.length === 1);
    await connection.close();
    expect(server.ended).toHaveLength(1);
  });

  it("Mcp: makes a new session when the server has forgotten it, and sends the call again once", async () => {
    const server = keep(await serveFirstHttp());
    const connection = await connect(server);
    server.forget();
    expect(await Promise.all([echo(connection, { n: 1 }), echo(connection, { n: 2 })])).toHaveLength(2);
    expect(server.calls).toHaveLength(2);
    expect(connection.state.status).toBe("ready");
  });
});

describe("HTTP with a server of SDK 2", () => {
  it("RE-23 speaks the 2026-07-28 revision, and closes the stream of a call that is aborted", async () => {
    const server = keep(await serveSecondHttp());
    const connection = await connect(server);
    expect(connection.server.protocolVersion).toBe("2026-07-28");
    expect(await echo(connection, { a: 1 })).toMatchObject({ content: [{ text: '{"a":1}' }] });
    const stop = new AbortController();
    const call = connection.request("tools/call", { name: "sleep", arguments: {} }, { signal: stop.signal });
    await until(() => server.calls.length === 2);
    stop.abort();
    await expect(call).rejects.toMatchObject({ code: "ABORTED" });
    await until(() => server.cancelled.length === 1);
  });

  it("Mcp: speaks the 2025 revisions with the same server when it is told to", async () => {
    const connection = await connect(keep(await serveSecondHttp()), { protocol: "2025" });
    expect(connection.server.protocolVersion).toBe("2025-11-25");
    expect(await echo(connection)).toMatchObject({ content: [{ text: "{}" }] });
  });

  it("Mcp: mirrors arguments in headers as the input schema says", async () => {
    const server = keep(await serveSecondHttp());
    const connection = await connect(server);
    const inputSchema = {
      type: "object",
      properties: { region: { type: "string", "x-mcp-header": "Region" } },
    };
    const params = { name: "echo", arguments: { region: "eu" } };
    expect(await connection.request("tools/call", params, { inputSchema })).toMatchObject({
      content: [{ text: '{"region":"eu"}' }],
    });
    expect(server.requests.at(-1)?.headers).toMatchObject({ "mcp-param-region": "eu", "mcp-name": "echo" });
  });

  it("Mcp: hears of changed lists over subscriptions/listen", async () => {
    const server = keep(await serveSecondHttp());
    const connection = await connect(server);
    const heard: string[] = [];
    connection.onEvent((event) => {
      if (event.type === "notification") heard.push(event.method);
    });
    server.changeTools();
    await until(() => heard.includes("notifications/tools/list_changed"));
  });
});

describe("HTTP errors", () => {
  it.each([
    [401, "UNAUTHENTICATED"],
    [403, "ACCESS_DENIED"],
    [413, "TOO_LARGE"],
    [429, "RATE_LIMITED"],
    [404, "UNAVAILABLE"],
    [500, "UNAVAILABLE"],
    [503, "UNAVAILABLE"],
    [418, "EXECUTION_ERROR"],
  ])("RE-23 turns status %i of a call into %s", async (status, code) => {
    const connection = await byHand((_message, response) => refuse(response, status));
    await expect(echo(connection)).rejects.toMatchObject({ code, details: { status } });
  });

  it.each([
    [401, "UNAUTHENTICATED"],
    [403, "ACCESS_DENIED"],
    [500, "UNAVAILABLE"],
  ])("RE-23 names the host when a connection is refused with status %i", async (status, code) => {
    const server = keep(await listen((_request, response) => refuse(response, status)));
    const refused = openMcpConnection({ url: `${server.url}?key=secret` });
    const error = await refused.catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code, message: expect.stringContaining(new URL(server.url).host) });
    expect(JSON.stringify(error)).not.toContain("secret");
  });

  it("RE-23 calls a host that does not answer unavailable", async () => {
    const server = await listen(() => {});
    await server.close();
    await expect(openMcpConnection({ url: server.url })).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it("RE-23 gives up on a host that never answers when the time is up", async () => {
    const server = keep(await listen(() => {}));
    const late = openMcpConnection({ url: server.url, connectTimeoutMs: 100 });
    await expect(late).rejects.toMatchObject({ code: "TIMEOUT" });
  });

  it("RE-23 ends the requests under way when it is closed, those too whose stream has begun, and sends no header of its own", async () => {
    const arrived: string[] = [];
    const ended: string[] = [];
    const names = new Set<string>();
    const connection = await byHand(({ params }, response) => {
      const name = String((params as { name: string }).name);
      for (const header of Object.keys(response.req.headers)) names.add(header);
      arrived.push(name);
      response.on("close", () => ended.push(name));
      if (name === "begun") response.writeHead(200, { "content-type": "text/event-stream" }).write(": \n\n");
    });
    const calls = ["silent", "begun"].map((name) =>
      connection.request("tools/call", { name, arguments: {} }),
    );
    await until(() => arrived.length === 2);
    expect(ended).toEqual([]);
    const settled = Promise.allSettled(calls);
    await connection.close();
    expect(await settled).toMatchObject(calls.map(() => ({ reason: { code: "UNAVAILABLE" } })));
    await until(() => ended.length === 2);
    expect([...names].filter((name) => name.includes("waybill"))).toEqual([]);
  });

  it("RE-23 rejects at once when a stream ends without an answer, and when the answer is no message", async () => {
    const ends = await byHand((_message, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(": nothing\n\n");
    });
    await expect(echo(ends)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    const noise = await byHand((_message, response) => sendJson(response, { hello: 1 }));
    await expect(echo(noise)).rejects.toMatchObject({ code: "EXECUTION_ERROR" });
    const html = await byHand((_message, response) => {
      response.writeHead(200, { "content-type": "text/html" }).end("<p>");
    });
    await expect(echo(html)).rejects.toMatchObject({ code: "EXECUTION_ERROR" });
  });
});

describe("HTTP limits", () => {
  const LIMIT = 2_000;
  const padded = (id: number, bytes: number) => {
    const start = `{"jsonrpc":"2.0","id":${id},"result":{"pad":"`;
    return `${start}${"x".repeat(bytes - start.length - 3)}"}}`;
  };

  it.each(["application/json", "text/event-stream"])(
    "RE-23 takes an answer of as many bytes as allowed as %s, and refuses one more",
    async (type) => {
      const frame = (text: string) => (type === "application/json" ? text : `data: ${text}\n\n`);
      // The line end that belongs to the event counts too.
      const around = type === "application/json" ? 0 : "data: ".length + 1;
      const connection = await byHand(
        ({ id, params }, response) => {
          const { bytes } = params["arguments"] as { bytes: number };
          response.writeHead(200, { "content-type": type }).end(frame(padded(id, bytes)));
        },
        { limits: { messageBytes: LIMIT } },
      );
      expect(await echo(connection, { bytes: LIMIT - around })).toHaveProperty("pad");
      await expect(echo(connection, { bytes: LIMIT - around + 1 })).rejects.toMatchObject({
        code: "TOO_LARGE",
      });
    },
  );

  it("RE-23 counts each event of a stream for itself", async () => {
    const connection = await byHand(
      ({ id }, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (let i = 0; i < 50; i++) response.write(`: ${"x".repeat(100)}\n\n`);
        response.end(`data: ${padded(id, 500)}\n\n`);
      },
      { limits: { messageBytes: LIMIT } },
    );
    expect(await echo(connection)).toHaveProperty("pad");
  });

  it("RE-23 refuses a result that is nested too deeply", async () => {
    const connection = await byHand(({ id }, response) => {
      const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
      response.writeHead(200, { "content-type": "application/json" });
      response.end(`{"jsonrpc":"2.0","id":${id},"result":{"deep":${deep}}}`);
    });
    await expect(echo(connection)).rejects.toMatchObject({ code: "EXECUTION_ERROR" });
  });
});

describe("credentials over HTTP", () => {
  it("Mcp: go with every request to the server, from functions too, and to no other origin", async () => {
    const stolen: unknown[] = [];
    const thief = keep(
      await listen((request, response) => {
        stolen.push(request.headers);
        refuse(response, 200);
      }),
    );
    const seen: unknown[] = [];
    let redirects = false;
    const server = keep(
      await serveByHand(
        ({ id }, response) => sendJson(response, { jsonrpc: "2.0", id, result: {} }),
        (request, response) => {
          seen.push([request.headers.authorization, request.headers["x-api-key"]]);
          if (redirects) refuse(response, 307, { location: thief.url });
          return redirects;
        },
      ),
    );
    let count = 0;
    const connection = await connect(server, {
      auth: { bearer: async () => `t${++count}` },
      headers: async () => ({ "x-api-key": "k" }),
    });
    await echo(connection);
    expect(new Set(seen.map((pair) => (pair as string[])[1]))).toEqual(new Set(["k"]));
    expect(seen.every((pair) => /^Bearer t\d+$/.test(String((pair as string[])[0])))).toBe(true);
    redirects = true;
    await expect(echo(connection)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    expect(stolen).toEqual([]);
  });

  it("Mcp: functions are given whose request it is, and nobody for what the connection does by itself", async () => {
    const seen: unknown[] = [];
    const server = keep(
      await serveByHand(
        ({ id, method }, response) => {
          const tools = [{ name: "echo", inputSchema: { type: "object" } }];
          const result = method === "tools/list" ? { tools } : { content: [], contents: [] };
          sendJson(response, { jsonrpc: "2.0", id, result });
        },
        ({ headers }) => {
          seen.push([headers.authorization, headers["x-who"]]);
          return false;
        },
      ),
    );
    const who = ({ identity }: McpCredentialRequest) => identity?.subject ?? "nobody";
    const source = await fromMcp(server.url, {
      namespace: "s",
      auth: { bearer: who },
      headers: async (request) => ({ "x-who": who(request) }),
    });
    keep(source);
    expect(new Set(seen.map(String))).toEqual(new Set(["Bearer nobody,nobody"]));
    seen.length = 0;
    const registry = new OperationRegistry([...source]);
    const callers = ["ann", "bob", "ann"];
    await Promise.all(callers.map((subject) => registry.execute("s.echo", {}, { identity: { subject } })));
    expect(seen.map(String).sort()).toEqual(callers.map((one) => `Bearer ${one},${one}`).sort());
    seen.length = 0;
    await source.readResource("file:///a", { identity: { subject: "cyd" } });
    expect(seen.map(String)).toEqual(["Bearer cyd,cyd"]);
  });

  it.each([
    { url: "http://example.com/mcp" },
    { url: "ftp://127.0.0.1/" },
    { url: "https://user:pass@example.com/" },
    { url: "nonsense" },
    { url: "https://example.com", headers: { "x-a": "1\r\nx-b: 2" } },
    { url: "https://example.com", headers: { "Mcp-Session-Id": "1" } },
    { url: "https://example.com", auth: { bearer: "a\nb" } },
  ])("Mcp: a connection is refused with %j", async (options) => {
    await expect(openMcpConnection(options)).rejects.toThrow(TypeError);
  });
});
