import { request } from "node:http";
import { createServer } from "node:net";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, describe, expect, it } from "vitest";
import { freePort } from "../../../test/free-port.ts";
import { query, sleep, until } from "../../../test/make-operation.ts";
import { handGateway, handSource, loadedConfig } from "../../../test/served-gateway.ts";
import { type CallToolResult, decodeToolResult, RESULT_META_KEY } from "../../formats/index.ts";
import { LocalProvider } from "../../mcp/server/resources/provider-set.ts";
import type { GatewayConfig } from "../config/gateway-config.ts";
import { ConfigError } from "../config/loaded-config.ts";
import { Metrics } from "./observe/metrics.ts";
import { createObserver } from "./observe/observer.ts";
import { type GatewayServer, serveGateway, serveRoutedGateway } from "./serve-gateway.ts";

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of open.splice(0).reverse()) await end();
});

const TOKEN = "correct-horse-battery";
const AUTH = { tokens: { ann: { token: TOKEN, scopes: ["read"] } } };

/** Resolves what `office.wait` waits for. */
let finish: (value: unknown) => void = () => {};
/** Calls of it that have begun. */
let begun = 0;

const ROWS = Array.from({ length: 500 }, (_, i) => i);

const NOTHING = { type: "object", properties: {}, additionalProperties: false } as const;

function operations() {
  return [
    query("office.greet", (_, context) => ({ hello: context.identity?.subject ?? "nobody" }), {
      inputSchema: NOTHING,
    }),
    query("office.secret", () => ({ open: true }), {
      inputSchema: NOTHING,
      access: { scopes: { allOf: ["read"] } },
    }),
    query("office.long", () => ({ text: "x".repeat(1_000) })),
    query("office.rows", () => ({ rows: ROWS }), {
      inputSchema: NOTHING,
      outputSchema: { type: "object", properties: { rows: { type: "array" } }, required: ["rows"] },
    }),
    query("office.fixed", () => ({ rows: ROWS }), {
      outputSchema: {
        type: "object",
        properties: { rows: { type: "array", items: { type: "integer" }, minItems: ROWS.length } },
        required: ["rows"],
      },
    }),
    query(
      "office.wait",
      () =>
        new Promise((resolve) => {
          finish = resolve;
          begun += 1;
        }),
    ),
  ];
}

type Options = Parameters<typeof serveRoutedGateway>[2];

async function start(config: GatewayConfig = {}, options: Options = {}) {
  begun = 0;
  const metrics = new Metrics();
  const observer = createObserver({ metrics });
  const gateway = handGateway(operations(), [observer]);
  const server = await serveRoutedGateway(gateway, loadedConfig(config), { metrics, ...options });
  open.push(
    () => server.close({ timeoutMs: 0 }),
    () => metrics.close(),
  );
  return { server, gateway, observer };
}

const bearer = { headers: { authorization: `Bearer ${TOKEN}` } };

async function statusOf(url: string, init?: RequestInit): Promise<number> {
  const response = await fetch(url, init);
  await response.arrayBuffer();
  return response.status;
}

/** The status of a request that says it goes to another host, or to several. */
function statusAs(
  host: string | readonly string[],
  server: GatewayServer,
  path: string,
): Promise<number | undefined> {
  const headers = [host].flat().flatMap((one) => ["Host", one]);
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port: server.port, path, headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.on("error", reject).end();
  });
}

const VALIDATOR = { jsonSchemaValidator: new CfWorkerJsonSchemaValidator() };
const CLIENTS: Record<string, (url: URL, name: string, init: RequestInit) => Promise<Client>> = {
  "SDK 1": async (url, name, requestInit) => {
    const client = new FirstClient({ name, version: "1" }, VALIDATOR);
    await client.connect(new FirstTransport(url, { requestInit }) as never);
    return client as unknown as Client;
  },
  "SDK 2, 2025": async (url, name, requestInit) => {
    const client = new Client({ name, version: "1" }, VALIDATOR);
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
    return client;
  },
  "SDK 2, 2026": async (url, name, requestInit) => {
    const pinned = { versionNegotiation: { mode: { pin: "2026-07-28" } } } as const;
    const client = new Client({ name, version: "1" }, { ...VALIDATOR, ...pinned });
    await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
    return client;
  },
};

async function connect(kind: string, server: GatewayServer, name = "peer", init: RequestInit = {}) {
  const client = await CLIENTS[kind]?.(new URL(`${server.url}/mcp`), name, init);
  if (client === undefined) throw new Error(kind);
  open.push(() => client.close());
  return client;
}

type Answered = {
  content: { type: string; text?: string }[];
  isError?: boolean;
  structuredContent?: unknown;
};

async function callTool(client: Client, name: string, _meta?: Record<string, unknown>): Promise<Answered> {
  return (await client.callTool({ name, arguments: {}, ...(_meta && { _meta }) })) as Answered;
}

describe("serveGateway", () => {
  it("RE-30 serves MCP, the HTTP API, its document and page, probes and metrics on one port", async () => {
    const { server } = await start({ name: "desk" });
    const index = await (await fetch(server.url)).json();
    expect(index).toEqual({
      name: "desk",
      mcp: "/mcp",
      api: "/api",
      document: "/openapi.json",
      docs: "/docs",
      health: "/health",
      ready: "/ready",
      metrics: "/metrics",
    });
    expect(await (await fetch(`${server.url}/api/office/greet`)).json()).toEqual({ hello: "nobody" });
    const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as {
      info: { title: string };
    };
    expect(document.info.title).toBe("desk");
    const metrics = await fetch(`${server.url}/metrics`);
    expect(metrics.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await metrics.text()).toContain('waybill_calls_total{operation="office.greet",');
    for (const path of ["/docs", "/health", "/ready"]) expect(await statusOf(server.url + path)).toBe(200);
    expect(await statusOf(`${server.url}/nothing`)).toBe(404);
    expect(await statusOf(`${server.url}/metrics`, { method: "POST" })).toBe(405);
    expect(await statusOf(`${server.url}/.well-known/oauth-protected-resource`)).toBe(404);
  });

  it.each([
    ["https://tools.example/", "https://tools.example"],
    ["https://tools.example/gate/way", "https://tools.example/gate/way"],
  ])(
    "RE-30 says in its document that clients reach it at %s, whatever a request claims",
    async (publicUrl, url) => {
      const { server } = await start({ serve: { publicUrl } });
      const headers = {
        "x-forwarded-host": "evil.example",
        "x-forwarded-proto": "ftp",
        forwarded: "host=evil",
      };
      const read = async (base: string) =>
        (await (await fetch(base, { headers })).json()) as { servers: unknown };
      expect((await read(`${server.url}/openapi.json`)).servers).toEqual([{ url }]);
      const { server: plain } = await start({});
      expect((await read(`${plain.url}/openapi.json`)).servers).toEqual([{ url: plain.url }]);
    },
  );

  it("RE-30 answers 404 for what is switched off, and probes always", async () => {
    const { server } = await start({ serve: { mcp: false, http: false, metrics: false } });
    const post = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
    expect(await statusOf(`${server.url}/mcp`, post)).toBe(404);
    for (const path of ["/api/office/greet", "/openapi.json", "/docs", "/metrics"]) {
      expect(await statusOf(server.url + path)).toBe(404);
    }
    for (const path of ["/health", "/ready"]) expect(await statusOf(server.url + path)).toBe(200);
    expect(await statusOf(`${server.url}/health`, post)).toBe(405);
    expect(await (await fetch(server.url)).json()).toEqual({
      name: "waybill",
      health: "/health",
      ready: "/ready",
    });
  });

  it("RE-30 hears nobody who says twice who they are", async () => {
    const { server } = await start({ serve: { auth: AUTH } });
    const statusWith = (path: string, authorization: string[]): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const { port } = server;
        const headers = ["host", "127.0.0.1", ...authorization.flatMap((one) => ["authorization", one])];
        const asked = request({ host: "127.0.0.1", port, path, headers }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        });
        asked.on("error", reject).end();
      });
    const good = `Bearer ${TOKEN}`;
    for (const path of ["/", "/metrics", "/openapi.json", "/api/office/greet", "/mcp", "/call"]) {
      for (const both of [
        [good, "Bearer wrong-wrong-wrong"],
        [good, good],
      ]) {
        expect([path, await statusWith(path, both)]).toEqual([path, 401]);
      }
    }
    expect(await statusWith("/openapi.json", [good])).toBe(200);
  });

  it("RE-30 shows metrics to the scope for them alone, where there are tokens", async () => {
    const tokens = {
      ada: { token: TOKEN, scopes: ["office"] },
      prometheus: { token: "the-token-of-prometheus", scopes: ["waybill:metrics"] },
    };
    const { server } = await start({ serve: { auth: { tokens } } });
    const refused = await fetch(`${server.url}/metrics`, bearer);
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([
      403,
      'Bearer error="insufficient_scope", scope="waybill:metrics"',
    ]);
    expect(await refused.text()).not.toContain("office.greet");
    for (const method of ["POST", "DELETE", "OPTIONS", "PROPFIND"]) {
      const other = await fetch(`${server.url}/metrics`, { ...bearer, method });
      expect([method, other.status, other.headers.get("allow")]).toEqual([method, 403, null]);
    }
    const asked = { headers: { authorization: "Bearer the-token-of-prometheus" } };
    expect(await statusOf(`${server.url}/metrics`, asked)).toBe(200);
    expect(await statusOf(`${server.url}/metrics`)).toBe(401);
  });

  it.each([true, false])(
    "RE-30 is ready once its sources were tried, and not any more when it says so (http: %s)",
    async (http) => {
      const gateway = handGateway(operations());
      let mounted = (): void => {};
      const ready = new Promise<void>((resolve) => {
        mounted = resolve;
      });
      const server = await serveRoutedGateway({ ...gateway, ready }, loadedConfig({ serve: { http } }), {});
      open.push(() => server.close({ timeoutMs: 0 }));
      const probe = async (path: string) => {
        const response = await fetch(server.url + path);
        return [response.status, ((await response.json()) as { status: string }).status];
      };
      expect(await probe("/ready")).toEqual([503, "starting"]);
      expect(await probe("/health")).toEqual([200, "ok"]);
      mounted();
      await ready;
      expect(await probe("/ready")).toEqual([200, "ok"]);
      server.announceClose();
      expect(await probe("/ready")).toEqual([503, "closing"]);
      expect(await probe("/health")).toEqual([200, "ok"]);
      const served = await fetch(`${server.url}/`);
      expect([served.status, served.headers.get("connection")]).toEqual([200, "close"]);
      if (http) expect(await statusOf(`${server.url}/openapi.json`)).toBe(200);
    },
  );

  it("RE-30 lets pages of allowed origins read what the gateway says of itself", async () => {
    const { server } = await start({ serve: { origins: ["https://app.example"] } });
    for (const path of ["/", "/metrics", "/nothing-here"]) {
      const headers = { origin: "https://app.example" };
      const answer = await fetch(server.url + path, { headers });
      expect(answer.headers.get("access-control-allow-origin")).toBe("https://app.example");
    }
    const preflight = { origin: "https://app.example", "access-control-request-method": "GET" };
    const asked = await fetch(`${server.url}/metrics`, { method: "OPTIONS", headers: preflight });
    expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([
      204,
      "https://app.example",
    ]);
  });

  it("RE-30 asks for a token everywhere but at probes and the page", async () => {
    const { server } = await start({ serve: { auth: AUTH } });
    for (const path of [
      "/",
      "/metrics",
      "/api/office/greet",
      "/openapi.json",
      "/mcp",
      "/call",
      "/batch",
      "/nothing",
    ]) {
      const response = await fetch(server.url + path);
      expect([path, response.status]).toEqual([path, 401]);
      expect(response.headers.get("www-authenticate")).toMatch(/^Bearer/);
      await response.arrayBuffer();
      const wrong = { headers: { authorization: `Bearer ${TOKEN}x` } };
      expect([path, await statusOf(server.url + path, wrong)]).toEqual([path, 401]);
    }
    for (const path of ["/health", "/ready", "/docs"]) expect(await statusOf(server.url + path)).toBe(200);
    for (const path of ["/", "/openapi.json"]) {
      expect(await statusOf(server.url + path, bearer)).toBe(200);
    }
    const greet = `${server.url}/api/office/greet`;
    expect(await (await fetch(greet, bearer)).json()).toEqual({ hello: "ann" });
    expect(await (await fetch(greet, { headers: { "x-api-key": TOKEN } })).json()).toEqual({ hello: "ann" });
    expect(await statusOf(`${server.url}/api/office/secret`, bearer)).toBe(200);
    const document = (await (await fetch(`${server.url}/openapi.json`, bearer)).json()) as {
      components: { securitySchemes: object };
    };
    expect(Object.keys(document.components.securitySchemes)).toEqual(["bearer", "apiKey"]);
  });

  it("RE-30 hears only who asks for it by a name it has, on every path", async () => {
    const { server } = await start({ serve: { hosts: ["desk.example"], auth: AUTH } });
    for (const path of ["/", "/metrics", "/mcp", "/api/office/greet", "/nothing"]) {
      expect([path, await statusAs("evil.example", server, path)]).toEqual([path, 403]);
      expect([path, await statusAs("desk.example", server, path)]).toEqual([path, 401]);
      const foreign = { headers: { ...bearer.headers, origin: "https://evil.example" } };
      expect([path, await statusOf(server.url + path, foreign)]).toEqual([path, 403]);
    }
    expect(await statusAs("evil.example", server, "/health")).toBe(200);
  });

  it("refuses requests that name two hosts, whatever they ask for", async () => {
    const { server } = await start();
    const own = `127.0.0.1:${server.port}`;
    for (const path of ["/", "/health", "/metrics", "/mcp", "/api/office.greet", "/nothing"]) {
      for (const hosts of [
        [own, own],
        [own, "evil.example"],
        ["evil.example", own],
      ]) {
        expect([path, await statusAs(hosts, server, path)]).toEqual([path, 400]);
      }
    }
    expect(await statusAs([own], server, "/health")).toBe(200);
  });

  it("RE-30 needs authentication to be reached by others, and warns that nothing is encrypted", async () => {
    const gateway = handGateway(operations());
    const warnings: string[] = [];
    const bare = serveGateway(gateway, loadedConfig({ serve: { host: "0.0.0.0" } }));
    await expect(bare).rejects.toThrow(ConfigError);
    await expect(bare).rejects.toThrow("serve.auth.tokens");
    const server = await serveGateway(gateway, loadedConfig({ serve: { host: "0.0.0.0", auth: AUTH } }), {
      onWarning: (message) => warnings.push(message),
    });
    open.push(() => server.close({ timeoutMs: 0 }));
    expect(warnings).toEqual([expect.stringContaining("without encryption")]);
    await expect(server.reload(loadedConfig({ serve: { host: "0.0.0.0" } }))).rejects.toThrow(ConfigError);
    expect(await statusOf(`http://127.0.0.1:${server.port}/`)).toBe(401);
  });

  it("RE-30 says which part of a config makes no sense", async () => {
    const serving = (serve: GatewayConfig["serve"]) =>
      serveGateway(handGateway([]), loadedConfig({ serve: { ...serve } }));
    await expect(serving({ hosts: ["no host"] })).rejects.toThrow(ConfigError);
    await expect(serving({ auth: { tokens: { ann: { token: "short" } } } })).rejects.toThrow(
      "serve.auth.tokens.ann.token",
    );
  });

  it("RE-30 serves other routes to those who may use the gateway", async () => {
    const seen: unknown[] = [];
    const routes: Options["routes"] = [
      {
        prefix: "/inspect",
        handle({ message, response }, { identity }) {
          seen.push([message.url, identity?.subject]);
          response.end("here");
        },
      },
    ];
    const { server } = await start({ serve: { auth: AUTH } }, { routes });
    expect(await statusOf(`${server.url}/inspect`)).toBe(401);
    expect(await statusOf(`${server.url}/inspect/a?b`, bearer)).toBe(200);
    expect(await statusOf(`${server.url}/inspector`, bearer)).toBe(404);
    expect(seen).toEqual([["/inspect/a?b", "ann"]]);
  });

  it("serves open paths of a route to everybody, but only under its own names and for its own pages", async () => {
    const seen: unknown[] = [];
    const routes: Options["routes"] = [
      {
        prefix: "/inspect",
        isOpen: (path) => path === "/inspect/page.js",
        handle({ message, response }, { identity }) {
          seen.push([message.url, identity]);
          response.end("here");
        },
      },
    ];
    const { server } = await start({ serve: { auth: AUTH } }, { routes });
    const page = `${server.url}/inspect/page.js`;
    expect(await statusOf(page)).toBe(200);
    expect(await statusOf(page, bearer)).toBe(200);
    expect(await statusOf(page, { headers: { origin: "https://evil.example" } })).toBe(403);
    expect(await statusAs("evil.example", server, "/inspect/page.js")).toBe(403);
    expect(await statusOf(`${server.url}/inspect/page.js/more`)).toBe(401);
    expect(await statusOf(`${server.url}/inspect/api`)).toBe(401);
    expect(seen).toEqual([
      ["/inspect/page.js", undefined],
      ["/inspect/page.js", undefined],
    ]);
  });

  it("tells routes whether callers were asked who they are, also where a reload got no further than that", async () => {
    const callers: { readonly isAuthOn: boolean; readonly isCurrent: () => boolean }[] = [];
    const routes: Options["routes"] = [
      {
        prefix: "/inspect",
        handle({ response }, caller) {
          callers.push(caller);
          response.end();
        },
      },
    ];
    const { server } = await start({}, { routes });
    await fetch(`${server.url}/inspect`);
    expect(callers.map(({ isAuthOn, isCurrent }) => [isAuthOn, isCurrent()])).toEqual([[false, true]]);
    const taken = createServer();
    open.push(() => taken.close());
    await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
    const { port } = taken.address() as { readonly port: number };
    await expect(server.reload(loadedConfig({ serve: { auth: AUTH, port } }))).rejects.toThrow();
    await fetch(`${server.url}/inspect`, bearer);
    expect(callers.map(({ isAuthOn, isCurrent }) => [isAuthOn, isCurrent()])).toEqual([
      [false, false],
      [true, true],
    ]);
  });

  it("names routes in its index for as long as they are there", async () => {
    const routes: NonNullable<Options["routes"]>[number][] = [];
    const { server } = await start({}, { routes });
    const index = async () => (await fetch(server.url)).json();
    expect(await index()).not.toHaveProperty("inspect");
    routes.push({ prefix: "/inspect", handle: ({ response }) => void response.end("here") });
    expect(await index()).toMatchObject({ inspect: "/inspect", mcp: "/mcp" });
    expect(await statusOf(`${server.url}/inspect`)).toBe(200);
    routes.pop();
    expect(await statusOf(`${server.url}/inspect`)).toBe(404);
  });

  it("believes of the holder of a token what a config cannot say, for as long as it changes", async () => {
    const scopes: string[] = [];
    const holder = {
      subject: "owner",
      get scopes() {
        return [...scopes];
      },
    };
    const seen: unknown[] = [];
    const routes: Options["routes"] = [
      {
        prefix: "/inspect",
        handle({ response }, { identity }) {
          seen.push([identity?.subject, identity?.scopes]);
          response.end();
        },
      },
    ];
    const holders = new Map([["ann", holder]]);
    const { server } = await start({ serve: { auth: AUTH } }, { routes, holders });
    await fetch(`${server.url}/inspect`, bearer);
    scopes.push("more");
    await fetch(`${server.url}/inspect`, bearer);
    expect(seen).toEqual([
      ["owner", []],
      ["owner", ["more"]],
    ]);
  });

  it("says that the inspector belongs to the command", async () => {
    const told: string[] = [];
    const loaded = loadedConfig({ serve: { inspect: true, port: 0 } });
    const server = await serveGateway(handGateway([]), loaded, { onWarning: (text) => told.push(text) });
    await server.close();
    expect(told.join()).toContain("serve.inspect is for the command");
  });

  describe.each(Object.keys(CLIENTS))("to a client of %s", (kind) => {
    it("RE-30 calls operations as tools, as whoever holds the token", async () => {
      const { server, observer } = await start({ serve: { auth: AUTH } });
      const records: unknown[] = [];
      observer.listen({
        end: ({ operation, entry, subject }) => void records.push([operation, entry, subject]),
      });
      await expect(connect(kind, server)).rejects.toThrow();
      const client = await connect(kind, server, "peer", bearer);
      expect((await callTool(client, "office_greet")).structuredContent).toEqual({ hello: "ann" });
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain("office_secret");
      expect(records).toEqual([["office.greet", "mcp", "ann"]]);
    });

    it("RE-30 writes in the format of the client's name, else of its token, else the usual one", async () => {
      const auth = { tokens: { ann: { token: TOKEN, format: "status-envelope" } } } as const;
      const serve = { auth, clients: { "desk-*": { format: "tool-envelope" } }, format: "mcp" } as const;
      const { server } = await start({ serve });
      const formatOf = async (name: string, meta?: Record<string, unknown>) => {
        const { content, structuredContent } = await callTool(
          await connect(kind, server, name, bearer),
          "office_greet",
          meta,
        );
        if (content.some(({ text = "" }) => text.startsWith("__ENVELOPE_V1__"))) return "tool-envelope";
        return "meta" in (structuredContent as object) ? "status-envelope" : "mcp";
      };
      expect(await formatOf("desk-7")).toBe("tool-envelope");
      expect(await formatOf("other")).toBe("status-envelope");
      expect(await formatOf("desk-7", { "dev.waybill/format": "mcp" })).toBe("mcp");
      await server.reload(loadedConfig({ serve: { auth: AUTH, format: "tool-envelope" } }));
      expect(await formatOf("desk-7")).toBe("tool-envelope");
      await server.reload(loadedConfig({ serve: { auth: AUTH } }));
      expect(await formatOf("desk-7")).toBe("mcp");
    });

    it("RE-30 sends a preview and a link beyond the budget of an operation", async () => {
      const { server, gateway } = await start();
      const client = await connect(kind, server);
      const links = async (meta?: Record<string, unknown>) => {
        const { content } = await callTool(client, "office_long", meta);
        return content.filter(({ type }) => type === "resource_link") as { uri?: string }[];
      };
      expect(await links()).toHaveLength(0);
      gateway.budgets.set("office.long", 100);
      const [link] = await links();
      const whole = await client.readResource({ uri: link?.uri ?? "" });
      expect(JSON.stringify(whole)).toContain("x".repeat(1_000));
      expect(await links({ "dev.waybill/format": "status-envelope" })).toHaveLength(1);
    });

    it.each(["mcp", "tool-envelope", "tiered-envelope", "status-envelope"] as const)(
      "X-10 holds the budget of an operation in the format %s over MCP, and sends all over HTTP",
      async (format) => {
        const { server, gateway } = await start();
        const client = await connect(kind, server);
        await client.listTools({ _meta: { "dev.waybill/format": format } });
        const rowsOf = (result: unknown) => (decodeToolResult(result).data as { rows: number[] }).rows;
        const call = async (name: string) =>
          (await callTool(client, name, { "dev.waybill/format": format })) as CallToolResult;
        gateway.budgets.set("office.rows", 100).set("office.fixed", 100);
        const cut = await call("office_rows");
        const kept = rowsOf(cut).length;
        expect(kept).toBeGreaterThan(20);
        expect(JSON.stringify({ rows: rowsOf(cut) }).length).toBeLessThanOrEqual(100);
        expect(cut._meta?.[RESULT_META_KEY]).toMatchObject({
          cuts: [{ pointer: "/rows", kind: "items", kept, total: 500 }],
        });
        const whole = await call("office_fixed");
        expect(rowsOf(whole)).toEqual(ROWS);
        expect(whole._meta?.[RESULT_META_KEY]).toMatchObject({ uncut: { budget: 100 } });
        const accept = `application/vnd.waybill.${format}+json`;
        const response = await fetch(`${server.url}/api/office/rows`, { headers: { accept } });
        expect(rowsOf(await response.json())).toEqual(ROWS);
        expect(await (await fetch(`${server.url}/api/office/rows`)).json()).toEqual({ rows: ROWS });
      },
    );

    it("RE-30 says that a source is down to whoever calls a tool of it that nobody knows yet", async () => {
      const { server, gateway } = await start();
      const reason = "It exited with code 3; it last said: at /home/me/x.js.";
      const down = { status: "down", since: 0, reason, cause: "its process exited with code 3." } as const;
      gateway.setSources(handSource("files", down), handSource("files_2", { status: "up", since: 0 }));
      const client = await connect(kind, server);
      const answer = await callTool(client, "files_read");
      expect(answer.isError).toBe(true);
      expect(answer.content[0]?.text).toContain(
        'The source "files" is down: its process exited with code 3.',
      );
      expect(answer.content[0]?.text).not.toContain("/home/me");
      await expect(callTool(client, "files_2_read")).rejects.toThrow("Unknown tool");
      await expect(callTool(client, "mail_read")).rejects.toThrow("Unknown tool");
    });
  });

  it("RE-30 offers what sources offer besides tools, as they come and go", async () => {
    const { server, gateway } = await start();
    let isFollowing = false;
    const watchedFetch: typeof fetch = async (url, init) => {
      const response = await fetch(url, init);
      if (init?.method === "GET" && response.ok) isFollowing = true;
      return response;
    };
    const client = new Client({ name: "peer", version: "1" }, VALIDATOR);
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { fetch: watchedFetch }),
    );
    open.push(() => client.close());
    const heard: string[] = [];
    client.fallbackNotificationHandler = async ({ method }) => void heard.push(method);
    await until(() => isFollowing);
    class Elsewhere extends LocalProvider {
      override readonly namespace = "notes";
    }
    const provider = new Elsewhere({ resources: [{ uri: "note://1", name: "one", read: () => "text" }] });
    gateway.setSources(handSource("notes", { status: "up", since: 0 }, provider));
    await until(() => heard.includes("notifications/resources/list_changed"));
    expect((await client.listResources()).resources).toMatchObject([{ uri: "note://1" }]);
    const told = heard.length;
    // Something else about a source.
    gateway.setSources(...gateway.sources);
    await sleep(100);
    expect(heard.length).toBe(told);
  });

  it("RE-30 gives callers of the HTTP API the usual format, and data where they ask for JSON", async () => {
    const { server } = await start({ serve: { format: "response-envelope" } });
    const url = `${server.url}/api/office/greet`;
    expect(await (await fetch(url)).json()).toMatchObject({ data: { hello: "nobody" }, meta: {} });
    const json = { headers: { accept: "application/json" } };
    expect(await (await fetch(url, json)).json()).toEqual({ hello: "nobody" });
  });
});

describe("reloading what is served", () => {
  const CALL = { method: "POST", headers: { "content-type": "application/json" } };
  const wait = (server: GatewayServer) =>
    fetch(`${server.url}/call`, { ...CALL, body: JSON.stringify({ operation: "office.wait" }) });
  const running = async (started: Promise<unknown>) => {
    started.catch(() => {});
    await until(() => begun > 0);
  };

  it("RE-30 keeps the sessions of MCP clients where nothing about them has changed", async () => {
    const { server } = await start();
    const client = await connect("SDK 1", server);
    const { port } = server;
    await server.reload(loadedConfig({ serve: { format: "tool-envelope", metrics: false } }));
    expect(server.port).toBe(port);
    expect((await callTool(client, "office_greet")).content.length).toBeGreaterThan(1);
    expect(await statusOf(`${server.url}/metrics`)).toBe(404);
  });

  it("RE-30 lets calls under way end when parts are replaced, and serves new ones by the new settings", async () => {
    const { server } = await start();
    const answer = wait(server);
    await running(answer);
    await server.reload(loadedConfig({ name: "new", serve: { auth: AUTH } }));
    expect(await statusOf(`${server.url}/api/office/greet`)).toBe(401);
    expect(await statusOf(`${server.url}/api/office/greet`, bearer)).toBe(200);
    finish({ late: true });
    expect(await (await answer).json()).toEqual({ late: true });
    expect(await (await fetch(server.url, bearer)).json()).toMatchObject({ name: "new" });
  });

  it("RE-30 listens on another port first, and leaves the old one when its calls are done", async () => {
    const { server } = await start();
    const old = server.url;
    const answer = wait(server);
    await running(answer);
    const free = await freePort();
    await server.reload(loadedConfig({ serve: { port: free } }));
    expect(server.port).toBe(free);
    expect(await statusOf(`${server.url}/health`)).toBe(200);
    finish({ late: true });
    expect(await (await answer).json()).toEqual({ late: true });
    const answers = () =>
      fetch(old).then(
        () => true,
        () => false,
      );
    while (await answers()) await sleep(5);
  });

  it("refuses a changed config that mounts the gateway itself, and stays as it was", async () => {
    const port = await freePort();
    const { server } = await start({ serve: { port } });
    const mounting = (address: object) =>
      server.reload(loadedConfig({ name: "new", serve: { port }, ...address }));
    for (const host of ["127.0.0.1", "localhost", "[::1]"]) {
      const me = { url: `http://${host}:${port}/mcp` };
      await expect(mounting({ mcpServers: { me } })).rejects.toThrow("mcpServers.me.url is the address at");
      const api = { document: `http://${host}:${port}/openapi.json` };
      await expect(mounting({ openapi: { api } })).rejects.toThrow("openapi.api.document is the address at");
    }
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
    // Neither a source that is off nor one at another port is the gateway itself.
    const off = { url: `http://127.0.0.1:${port}/mcp`, disabled: true };
    await mounting({ mcpServers: { off, other: { url: `http://127.0.0.1:${port - 1}/mcp` } } });
  });

  it("RE-30 stays where it is when another port is taken, and says so; who may call changes all the same", async () => {
    const { server } = await start();
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(0, "127.0.0.1", resolve));
    open.push(() => new Promise((resolve) => blocker.close(resolve)));
    const { port } = blocker.address() as { port: number };
    const moved = server.reload(loadedConfig({ name: "new", serve: { port, auth: AUTH } }));
    await expect(moved).rejects.toThrow(`The gateway still listens on ${server.url}: 127.0.0.1 port ${port}`);
    expect((await fetch(server.url)).status).toBe(401);
    await server.reload(loadedConfig({ serve: { port: 0 } }));
    expect(await (await fetch(server.url)).json()).toMatchObject({ name: "waybill" });
  });

  it("RE-30 waits for calls under way when it closes, says that it does, and ends them in time", async () => {
    const { server } = await start();
    const answer = wait(server);
    await running(answer);
    const closing = server.close({ timeoutMs: 60_000 });
    await sleep(50);
    finish({ late: true });
    expect(await (await answer).json()).toEqual({ late: true });
    await closing;
    await expect(fetch(server.url)).rejects.toThrow();
    const second = await start({ serve: { drainMs: 3_600_000 } });
    const never = wait(second.server);
    await running(never);
    await second.server.close({ timeoutMs: 200 });
    expect((await never).status).toBe(503);
  });
});
