import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { Hono } from "hono";
import { SignJWT } from "jose";
import { afterEach, describe, expect, it } from "vitest";
import { CallError, OperationRegistry, Type } from "../src/index.ts";
import { createHttpHandler, type HttpHandlerOptions, serveHttp } from "../src/openapi/index.ts";
import { nodeClient, type OpenApi, WAYS } from "./http-requests.ts";
import { endsInTime } from "./lateness.ts";
import { query, rejection } from "./make-operation.ts";

const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((api) => api.close()));
});

const KEY = new TextEncoder().encode("a key of thirty-two bytes, no more");
const BEARER = { audience: "https://api.example", keys: KEY } as const;
const inputSchema = Type.Object({});

function registry(): OperationRegistry {
  return new OperationRegistry([
    query("who.am", (_, { identity }) => identity?.subject ?? "nobody", { inputSchema }),
    query("only.admin", () => "secret", { inputSchema, access: { scopes: { allOf: ["admin"] } } }),
  ]);
}

function token(payload: Record<string, unknown> = {}, key = KEY): Promise<string> {
  return new SignJWT({ sub: "ann", aud: BEARER.audience, ...payload })
    .setProtectedHeader({ alg: "HS256" })
    .setExpirationTime("1m")
    .sign(key);
}

describe.each(WAYS)("who is heard over %s", (_, openWay) => {
  const start = async (options?: HttpHandlerOptions): Promise<OpenApi> => {
    const api = await openWay(registry(), options);
    open.push(api);
    return api;
  };

  it("RE-30 believes API keys, and no others", async () => {
    const api = await start({
      auth: {
        apiKeys: { keys: { "key-1": { subject: "ann" }, "key-2": { subject: "bob", scopes: ["admin"] } } },
      },
    });
    const as = (key: string, path = "/api/who/am") => api.send(path, { headers: { "x-api-key": key } });
    expect([(await as("key-1")).json, (await as("key-2")).json]).toEqual(["ann", "bob"]);
    expect([
      (await as("key-1", "/api/only/admin")).status,
      (await as("key-2", "/api/only/admin")).status,
    ]).toEqual([403, 200]);
    for (const key of ["key-3", "key", "", "constructor", "__proto__", "x".repeat(5_000)]) {
      const got = await as(key);
      expect([got.status, got.headers["www-authenticate"]]).toEqual([401, "ApiKey"]);
    }
    for (const path of ["/api/who/am", "/openapi.json", "/docs/other", "/call", "/nowhere"]) {
      const got = await api.send(path);
      expect([got.status, got.headers["content-type"]]).toEqual([401, "application/problem+json"]);
    }
    expect([(await api.send("/health")).json, (await api.send("/ready")).status]).toEqual([
      { status: "ok" },
      200,
    ]);
  });

  it("RE-30 asks for keys in a header of one's own choice, from a function too", async () => {
    const keys = async (key: string) => (key === "k" ? { subject: "ann" } : undefined);
    const api = await start({ auth: { apiKeys: { header: "X-Key", keys } } });
    expect((await api.send("/api/who/am", { headers: { "x-key": "k" } })).json).toBe("ann");
    expect((await api.send("/api/who/am", { headers: { "x-key": "j" } })).status).toBe(401);
  });

  it("RE-30 believes signed tokens, and takes either where both are believed", async () => {
    const apiKeys = { keys: { k: { subject: "bob" } } };
    const api = await start({ auth: { bearer: BEARER, apiKeys } });
    const as = async (headers: Record<string, string>, path = "/api/who/am") => api.send(path, { headers });
    const bearer = (text: string) => ({ authorization: `Bearer ${text}` });
    expect((await as(bearer(await token()))).json).toBe("ann");
    expect((await as({ "x-api-key": "k" })).json).toBe("bob");
    expect((await as(bearer(await token({ scope: "admin" })), "/api/only/admin")).json).toBe("secret");
    expect((await as(bearer(await token()), "/api/only/admin")).status).toBe(403);
    const wrong = [await token({ aud: "other" }), await token({}, new Uint8Array(32)), "x.y.z"];
    for (const text of wrong) {
      const got = await as(bearer(text));
      expect([got.status, got.headers["www-authenticate"]]).toEqual([
        401,
        expect.stringContaining("invalid_token"),
      ]);
      expect(got.json).toMatchObject({ code: "UNAUTHENTICATED" });
    }
    expect((await as({})).headers["www-authenticate"]).toBe("Bearer");
  });

  it("RE-30 tells clients where to get a token", async () => {
    const resourceMetadata = { authorizationServers: ["https://login.example"] };
    const api = await start({ auth: { bearer: { ...BEARER, resourceMetadata } } });
    const got = await api.send("/.well-known/oauth-protected-resource");
    expect(got.json).toMatchObject({ authorization_servers: ["https://login.example"] });
    expect((await api.send("/.well-known/oauth-protected-resource/x")).status).toBe(404);
  });

  it("RE-30 lets its host say who is asking, and refuse", async () => {
    const warnings: string[] = [];
    const api = await start({
      onWarning: (message) => warnings.push(message),
      authenticate: (request) => {
        const who = request.headers.get("x-who");
        if (who === "mallory") throw new CallError("ACCESS_DENIED", "Not you.");
        if (who === "broken") throw new Error("SECRET");
        return who === null ? undefined : { subject: who };
      },
    });
    const as = (who?: string) =>
      api.send("/api/who/am", who === undefined ? {} : { headers: { "x-who": who } });
    expect([(await as()).json, (await as("ann")).json]).toEqual(["nobody", "ann"]);
    expect([(await as("mallory")).status, (await as("mallory")).json]).toMatchObject([
      403,
      { detail: "Not you." },
    ]);
    const broken = await as("broken");
    expect([broken.status, broken.text.includes("SECRET"), warnings.length]).toEqual([500, false, 1]);
    expect((await api.send("/api/only/admin")).status).toBe(401);
  });

  it("RE-30 hears pages of other origins only where they are named, and then says so", async () => {
    const origin = "https://app.example";
    const preflight = { origin, "access-control-request-method": "POST" };
    const closed = await start();
    expect((await closed.send("/api/who/am", { headers: { origin } })).status).toBe(403);
    expect((await closed.send("/api/who/am", { method: "OPTIONS", headers: preflight })).status).toBe(403);
    const api = await start({ origins: [origin], auth: { apiKeys: { keys: { k: { subject: "ann" } } } } });
    const asked = await api.send("/api/who/am", { method: "OPTIONS", headers: preflight });
    expect(asked.status).toBe(204);
    expect(asked.headers["access-control-allow-headers"]).toContain("x-api-key");
    const got = await api.send("/api/who/am", { headers: { origin, "x-api-key": "k" } });
    expect(got.headers).toMatchObject({ "access-control-allow-origin": origin, vary: "accept, origin" });
    expect(got.headers["access-control-expose-headers"]).toContain("waybill-facts");
    const refused = await api.send("/api/who/am", { headers: { origin } });
    expect([refused.status, refused.headers["access-control-allow-origin"]]).toEqual([401, origin]);
    const plain = await api.send("/api/who/am", { headers: { "x-api-key": "k" } });
    expect(plain.headers).not.toHaveProperty("access-control-allow-origin");
  });
});

describe("a server that listens", () => {
  const listen = async (options?: Parameters<typeof serveHttp>[1]) => {
    const server = await serveHttp(registry(), options);
    open.push(server);
    return server;
  };

  it("RE-30 answers to names of this machine, and to others that are given", async () => {
    const server = await listen({ hosts: ["api.example"] });
    const { send } = nodeClient(server.url);
    const as = async (host: string) => (await send("/api/who/am", { headers: { host } })).status;
    expect([await as("localhost"), await as("api.example:8080"), await as("evil.example")]).toEqual([
      200, 200, 403,
    ]);
    expect((await send("/health", { headers: { host: "10.0.0.1" } })).status).toBe(200);
  });

  it("RE-30 listens beyond this machine only when callers are known, or everybody is meant", async () => {
    expect(await rejection(serveHttp(registry(), { host: "0.0.0.0" }))).toBeInstanceOf(TypeError);
    await listen({ host: "0.0.0.0", unsafeOpen: true });
    await listen({ host: "0.0.0.0", authenticate: () => undefined });
  });

  it.each([
    [
      "absolute form",
      "GET http://evil.example/api/who/am HTTP/1.1\r\nHost: localhost\r\n\r\n",
      /^HTTP\/1.1 400/,
    ],
    ["asterisk form", "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", /^HTTP\/1.1 400/],
    ["a dot segment", "GET /api/../api/who/am HTTP/1.1\r\nHost: localhost\r\n\r\n", /^HTTP\/1.1 404/],
    ["an escaped one", "GET /docs/%2e%2e/package.json HTTP/1.1\r\nHost: localhost\r\n\r\n", /^HTTP\/1.1 404/],
    ["a fragment", "GET /api/who/am#x HTTP/1.1\r\nHost: localhost\r\n\r\n", /^HTTP\/1.1 404/],
    ["no host", "GET /api/who/am HTTP/1.1\r\n\r\n", /^HTTP\/1.1 400/],
    ["TRACE", "TRACE /api/who/am HTTP/1.1\r\nHost: localhost\r\n\r\n", /^HTTP\/1.1 405/],
    ["an unknown method", "BREW /api/who/am HTTP/1.1\r\nHost: localhost\r\n\r\n", /^HTTP\/1.1 400/],
    [
      "another method in a header",
      "POST /api/who/am HTTP/1.1\r\nHost: localhost\r\nX-HTTP-Method-Override: GET\r\nContent-Length: 0\r\n\r\n",
      /^HTTP\/1.1 405/,
    ],
    [
      "two lengths",
      "POST /call HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      /^HTTP\/1.1 400/,
    ],
    [
      "a long address",
      `GET /${"a".repeat(10_000_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
      /^HTTP\/1.1 4\d\d|^$/,
    ],
    ["a raw NUL", "GET /api/who/am\0 HTTP/1.1\r\nHost: localhost\r\n\r\n", /^HTTP\/1.1 400/],
  ])("RE-30 refuses %s cleanly", async (__, text, expected) => {
    const server = await listen();
    expect(await exchange(server.port, text, expected)).toMatch(expected);
    expect((await nodeClient(server.url).send("/api/who/am")).json).toBe("nobody");
  });

  it("RE-30 answers and lets go of whoever sends more than is read", async () => {
    const server = await listen({ limits: { bodyBytes: 100 } });
    const head = "POST /call HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    const declared = await exchange(
      server.port,
      `${head}Content-Length: 1000000000\r\n\r\n${"x".repeat(1_000)}`,
    );
    expect(declared).toMatch(/^HTTP\/1.1 413[\s\S]*connection: close/i);
    const chunk = `3e8\r\n${"x".repeat(1_000)}\r\n`;
    expect(await exchange(server.port, `${head}Transfer-Encoding: chunked\r\n\r\n${chunk}`)).toMatch(
      /^HTTP\/1.1 413/,
    );
  });

  it("RE-30 serves many requests over one connection, one after the other", async () => {
    const server = await listen();
    const get = "GET /api/who/am HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const last = "GET /api/who/am HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const text = await exchange(server.port, get.repeat(9) + last);
    expect(text.match(/HTTP\/1.1 200/g)).toHaveLength(10);
  });

  it("RE-30 closes within its time although connections stay open", async () => {
    const server = await serveHttp(registry());
    const socket = connect(server.port, "127.0.0.1");
    await new Promise((resolve) => socket.once("connect", resolve));
    // It would be dropped for its headers after ten seconds.
    expect(await endsInTime(0, () => server.close(), 5_000)).toBe(true);
    await server.close();
    socket.destroy();
  });
});

describe("a handler inside of something else", () => {
  it("RE-30 mounts into hono, and into a server of Node", async () => {
    const handler = createHttpHandler(registry());
    open.push(handler);
    const app = new Hono();
    app.mount("/v1", handler.fetch.bind(handler));
    const http = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    const { send } = nodeClient(`http://127.0.0.1:${(http.address() as AddressInfo).port}`);
    expect((await send("/v1/api/who/am")).json).toBe("nobody");
    expect((await send("/v1/call", { body: { operation: "who.am", input: {} } })).json).toBe("nobody");
    expect((await send("/v1/docs")).status).toBe(200);
    expect((await send("/api/who/am")).status).toBe(404);
    await new Promise((resolve) => http.close(resolve));
  });
});

/** Sends bytes as they are, and gives all that comes back until the connection ends, or until it is enough. */
function exchange(port: number, text: string, enough?: RegExp): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let got = "";
    const done = (): void => {
      socket.destroy();
      resolve(got);
    };
    socket.on("data", (chunk) => {
      got += chunk.toString("latin1");
      if (enough?.test(got) === true) done();
    });
    socket.on("error", done);
    socket.on("close", done);
    socket.write(text);
  });
}
