import { type IncomingHttpHeaders, request } from "node:http";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { AnyOperation } from "../src/index.ts";
import { CallError, OperationRegistry, Type } from "../src/index.ts";
import { createMcpHandler, serveMcpHttp, toMcpServer } from "../src/mcp/index.ts";
import { createHttpHandler, serveHttp } from "../src/openapi/index.ts";
import { as, inspectGateway, TOKENS } from "./inspected-gateway.ts";
import { query, stream } from "./make-operation.ts";

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

let ran: string[] = [];
beforeEach(() => {
  ran = [];
});

const inputSchema = Type.Object({});

function operations(): AnyOperation[] {
  const note = (id: string) => (): string => {
    ran.push(id);
    return id;
  };
  return [
    query("open.read", note("open.read"), { inputSchema }),
    query("shut.read", note("shut.read"), { inputSchema, access: { scopes: { allOf: ["admin"] } } }),
    stream("open.watch", async function* () {
      ran.push("open.watch");
      yield 1;
    }),
  ];
}

interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
}

/** Sends what a browser would, and reads no more than the head of the answer. */
function send(
  url: string,
  headers: Record<string, string> = {},
  { method = "GET", body }: { method?: string; body?: string } = {},
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent: false }, (response) => {
      resolve({ status: response.statusCode ?? 0, headers: response.headers });
      response.destroy();
    });
    sent.on("error", reject).end(body);
  });
}

const JSON_BODY = { "content-type": "application/json" };

async function startGateway(config = {}): Promise<string> {
  const gateway = await inspectGateway(operations(), config);
  open.push(() => gateway.close());
  return gateway.url;
}

async function startApi(): Promise<string> {
  const server = await serveHttp(new OperationRegistry(operations()));
  open.push(() => server.close({ timeoutMs: 0 }));
  return server.url;
}

async function startMcp(): Promise<string> {
  const server = await serveMcpHttp(toMcpServer(new OperationRegistry(operations())));
  open.push(() => server.close({ timeoutMs: 0 }));
  return new URL(server.url).origin;
}

/** Every path that runs or tells something. */
const PATHS = [
  "/api/open/read",
  "/api/open/watch",
  "/api/shut/read",
  "/api/no/where",
  "/openapi.json",
  "/docs/init.js",
  "/metrics",
  "/mcp",
  "/inspect/api/hello",
  "/inspect/api/operations",
  "/nowhere",
];
const PAGES = ["/", "/docs", "/inspect/"];

describe("a page of another site", () => {
  const blind = { "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" };
  const visit = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };

  it.each(["cross-site", "same-site", "something-new"])("RE-30 runs and learns nothing: %s", async (site) => {
    const url = await startGateway();
    for (const path of [...PATHS, ...PAGES]) {
      expect([path, (await send(url + path, { "sec-fetch-site": site, ...blind })).status]).toEqual([
        path,
        403,
      ]);
    }
    for (const path of PATHS) {
      expect([path, (await send(url + path, { "sec-fetch-site": site, ...visit })).status]).toEqual([
        path,
        403,
      ]);
    }
    for (const frame of ["iframe", "frame", "embed", "object"]) {
      const headers = { "sec-fetch-site": site, ...visit, "sec-fetch-dest": frame };
      for (const path of PAGES) expect((await send(url + path, headers)).status).toBe(403);
    }
    // A page on another port of this machine says so in `Origin` where it wants to read the answer.
    const near = { "sec-fetch-site": site, "sec-fetch-mode": "cors", origin: "http://localhost:5173" };
    expect((await send(`${url}/api/open/read`, near)).status).toBe(403);
    const posted = { method: "POST", body: "{}" };
    expect((await send(`${url}/call`, { ...near, ...JSON_BODY }, posted)).status).toBe(403);
    expect((await send(`${url}/docs`, { "sec-fetch-site": site, ...visit }, posted)).status).toBe(403);
    expect(ran).toEqual([]);
  });

  it("RE-30 may lead people to pages, and to nothing else", async () => {
    const url = await startGateway();
    for (const path of ["/", "/docs", "/docs/", "/inspect"]) {
      const { status } = await send(url + path, { "sec-fetch-site": "cross-site", ...visit });
      expect([path, status < 400]).toEqual([path, true]);
    }
  });

  it("RE-30 may use what it is allowed to by its origin", async () => {
    const url = await startGateway({ serve: { origins: ["https://app.example"] } });
    const headers = {
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "cors",
      origin: "https://app.example",
    };
    const got = await send(`${url}/api/open/read`, headers);
    expect([got.status, got.headers["access-control-allow-origin"]]).toEqual([200, "https://app.example"]);
    const asked = { ...headers, "access-control-request-method": "POST" };
    for (const path of ["/call", "/mcp", "/"]) {
      expect((await send(url + path, asked, { method: "OPTIONS" })).status).toBe(204);
    }
    expect((await send(`${url}/api/open/read`, { ...headers, origin: "https://evil.example" })).status).toBe(
      403,
    );
  });

  it("RE-30 is told from the API's own pages, from what is typed and from programs, and may ask the probes", async () => {
    const url = await startGateway();
    for (const headers of [{}, { "sec-fetch-site": "same-origin" }, { "sec-fetch-site": "none" }]) {
      expect((await send(`${url}/api/open/read`, headers as Record<string, string>)).status).toBe(200);
    }
    expect(ran).toHaveLength(3);
    for (const path of ["/health", "/ready"]) {
      expect((await send(url + path, { "sec-fetch-site": "cross-site", ...blind })).status).toBe(200);
    }
  });

  it("RE-30 is refused by every server, whatever it is mounted in", async () => {
    const headers = { "sec-fetch-site": "cross-site" };
    expect((await send(`${await startApi()}/api/open/read`, headers)).status).toBe(403);
    const mcp = await startMcp();
    expect((await send(`${mcp}/mcp`, headers)).status).toBe(403);
    // Another path is no way around it.
    for (const path of ["/", "/nowhere", "/.well-known/oauth-protected-resource"]) {
      expect((await send(mcp + path, headers)).status).toBe(403);
      expect((await send(mcp + path, { host: "evil.example" })).status).toBe(403);
      expect((await send(mcp + path)).status).toBe(404);
    }
    const registry = new OperationRegistry(operations());
    const asked = (path: string) => new Request(`http://localhost${path}`, { headers });
    expect((await createHttpHandler(registry).fetch(asked("/api/open/read"))).status).toBe(403);
    expect((await createMcpHandler(toMcpServer(registry)).fetch(asked("/mcp"))).status).toBe(403);
    expect(ran).toEqual([]);
  });
});

describe("the type of an answer", () => {
  const SERVERS = [
    ["a gateway", () => startGateway(), [...PATHS, ...PAGES, "/health", "/ready"]],
    [
      "a gateway with tokens",
      () => startGateway({ serve: { auth: { tokens: TOKENS } } }),
      [...PATHS, ...PAGES, "/health"],
    ],
    [
      "an API",
      startApi,
      ["/api/open/read", "/api/open/watch", "/openapi.json", "/docs", "/health", "/nowhere"],
    ],
    ["an MCP endpoint", startMcp, ["/mcp", "/nowhere"]],
  ] as const;

  it.each(SERVERS)("RE-30 is never guessed: %s", async (_, start, paths) => {
    const url = await start();
    const requests = [
      ["GET", {}],
      ["HEAD", {}],
      ["OPTIONS", {}],
      ["DELETE", {}],
      ["PROPFIND", {}],
      ["POST", {}],
      ["POST", { ...JSON_BODY, accept: "application/json, text/event-stream" }],
      ["POST", { "content-type": "text/html" }],
      ["GET", { host: "evil.example" }],
      ["GET", { origin: "https://evil.example" }],
      ["GET", { "sec-fetch-site": "cross-site" }],
      ["GET", { accept: "text/html" }],
      ["GET", { expect: "the-moon" }],
    ] as const;
    for (const path of paths) {
      for (const [method, headers] of requests) {
        const got = await send(url + path, headers, { method, ...(method === "POST" && { body: "{" }) });
        const told = [method, path, got.status, got.headers["x-content-type-options"]];
        expect(told).toEqual([method, path, got.status, "nosniff"]);
      }
    }
  });

  it.each(SERVERS)(
    "RE-30 is never guessed of what answers bytes that are no request: %s",
    async (_, start) => {
      const { port } = new URL(await start());
      const texts = [
        ["nonsense\r\n\r\n", 400],
        ["GET / HTTP/1.1\r\n\r\n", 400],
        ["GET / HTTP/1.1\r\nhost: localhost\r\na b: c\r\n\r\n", 400],
        [`GET / HTTP/1.1\r\nhost: localhost\r\na: ${"x".repeat(20_000)}\r\n\r\n`, 431],
        ["GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n", undefined],
      ] as const;
      for (const [text, status] of texts) {
        const answer = await exchange(Number(port), text);
        expect(answer).toMatch(/^HTTP\/1\.1 \d{3} [\s\S]*x-content-type-options: nosniff\r\n/i);
        if (status !== undefined) expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
      }
    },
  );

  it("RE-30 is never guessed of the answers of handlers", async () => {
    const registry = new OperationRegistry(operations());
    for (const handler of [createHttpHandler(registry), createMcpHandler(toMcpServer(registry))]) {
      for (const path of ["/mcp", "/api/open/read", "/docs", "/nowhere"]) {
        for (const method of ["GET", "POST", "OPTIONS", "PROPFIND"]) {
          const response = await handler.fetch(new Request(`http://localhost${path}`, { method }));
          expect(response.headers.get("x-content-type-options")).toBe("nosniff");
          await response.body?.cancel();
        }
      }
    }
  });
});

describe("a request that says something twice", () => {
  const ask = async (url: string, path: string, ...headers: readonly string[]): Promise<string> => {
    const lines = [`GET ${path} HTTP/1.1`, ...headers, "accept: */*", "connection: close", "", ""];
    return (await exchange(Number(new URL(url).port), lines.join("\r\n"))).slice(9, 12);
  };

  it("RE-30 is refused where a proxy in front may have looked at the other host", async () => {
    const hosts = ["host: localhost", "host: evil.example"];
    const gateway = await startGateway();
    expect(await ask(gateway, "/api/open/read", ...hosts)).toBe("400");
    expect(await ask(gateway, "/health", ...hosts)).toBe("400");
    for (const order of [hosts, hosts.toReversed()]) {
      expect(await ask(await startApi(), "/api/open/read", ...order)).toBe("403");
      expect(await ask(await startMcp(), "/mcp", ...order)).toBe("403");
    }
    expect(ran).toEqual([]);
  });

  it("RE-30 is refused where a proxy in front may have looked at the other token", async () => {
    const authenticate = ({ headers }: Request) => {
      if (headers.get("authorization") === "Bearer good") return { subject: "ann" };
      throw new CallError("UNAUTHENTICATED");
    };
    const server = await serveHttp(new OperationRegistry(operations()), { authenticate });
    open.push(() => server.close({ timeoutMs: 0 }));
    const tokens = ["authorization: Bearer good", "authorization: Bearer other"];
    expect(await ask(server.url, "/api/open/read", "host: localhost", tokens[0] as string)).toBe("200");
    for (const order of [tokens, tokens.toReversed()])
      expect(await ask(server.url, "/api/open/read", "host: localhost", ...order)).toBe("401");
    expect(ran).toEqual(["open.read"]);
  });
});

describe("a caller who may not", () => {
  const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PROPFIND", "TRACE"];

  it("RE-30 hears that they are not known before anything else, whatever the method and the path", async () => {
    const url = await startGateway({ serve: { auth: { tokens: TOKENS } } });
    for (const path of [...PATHS, "/"]) {
      // A page's own script is as open as the page.
      const methods = path === "/docs/init.js" ? METHODS.slice(2) : METHODS;
      for (const method of methods) {
        const got = await send(url + path, {}, { method });
        expect([method, path, got.status, got.headers["allow"]]).toEqual([method, path, 401, undefined]);
      }
    }
    expect((await send(`${url}/docs`, {}, { method: "DELETE" })).status).toBe(401);
  });

  it("RE-30 hears so too of an MCP endpoint and an API that ask by themselves", async () => {
    const authenticate = () => {
      throw new (class extends Error {})("down");
    };
    const registry = new OperationRegistry(operations());
    const options = { authenticate, onWarning() {} };
    const handlers = [createHttpHandler(registry, options), createMcpHandler(toMcpServer(registry), options)];
    for (const handler of handlers) {
      for (const method of METHODS.filter((name) => name !== "TRACE")) {
        const asked = new Request("http://localhost/mcp", { method });
        expect([method, (await handler.fetch(asked)).status]).toEqual([method, 500]);
      }
    }
  });

  it("RE-30 learns nothing of an operation but that it is not theirs", async () => {
    const url = await startGateway({ serve: { auth: { tokens: TOKENS } } });
    const wrong = [
      ...METHODS.map((method) => [method, {}, undefined] as const),
      ["POST", { "content-type": "text/plain" }, "x"],
      ["POST", JSON_BODY, "{"],
      ["GET", { accept: "image/png" }, undefined],
      ["GET", { "request-timeout": "x" }, undefined],
    ] as const;
    for (const [method, headers, body] of wrong) {
      const sent = { method, ...(body !== undefined && { body }) };
      const got = await send(`${url}/api/shut/read?unknown=1`, { ...headers, ...as("ann") }, sent);
      const isUnknown = method === "PROPFIND" || method === "TRACE";
      expect([method, got.status, got.headers["allow"]]).toEqual(
        isUnknown ? [method, 405, "GET, HEAD, POST, OPTIONS"] : [method, 403, undefined],
      );
    }
  });
});

function exchange(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let got = "";
    socket.on("data", (chunk) => {
      got += chunk.toString("latin1");
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(got));
    socket.write(text);
  });
}
