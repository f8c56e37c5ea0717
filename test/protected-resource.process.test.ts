import { once } from "node:events";
import { createServer } from "node:net";
import {
  Client,
  StreamableHTTPClientTransport,
  UnauthorizedError as Unauthorized,
} from "@modelcontextprotocol/client";
import { UnauthorizedError as FirstUnauthorized } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client as FirstClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as FirstTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { GatewayConfig } from "../src/gateway/index.ts";
import { Metrics } from "../src/gateway/serve/observe/metrics.ts";
import { type GatewayServer, serveRoutedGateway } from "../src/gateway/serve/serve-gateway.ts";
import { createOAuthStore, fromMcp } from "../src/mcp/index.ts";
import { type LoginWorld, startLoginWorld, walkLogin } from "./login-world.ts";
import { query } from "./make-operation.ts";
import { handGateway, loadedConfig } from "./served-gateway.ts";

const NOTHING = { type: "object", properties: {}, additionalProperties: false } as const;
const REDIRECT = "http://127.0.0.1:9/callback";

let world: LoginWorld;
let url: string;
let server: GatewayServer;
const ends: (() => unknown)[] = [];

beforeAll(async () => {
  world = await startLoginWorld();
});
afterAll(() => world.close());
beforeEach(async () => {
  await world.set({ audience: "", metadata: null, format: "jwt" });
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** Serves a gateway whose tokens the authorization server gives. */
async function serve(jwt: Partial<NonNullable<NonNullable<GatewayConfig["serve"]>["auth"]>["jwt"]> = {}) {
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  const gateway = handGateway([
    query("office.whoami", (_, { identity }) => ({ who: identity?.subject, scopes: identity?.scopes }), {
      inputSchema: NOTHING,
    }),
    query("office.write", (_, { identity }) => ({ who: identity?.subject, scopes: identity?.scopes }), {
      inputSchema: NOTHING,
      access: { scopes: { allOf: ["write"] } },
    }),
  ]);
  const auth = { jwt: { audience: `${url}/mcp`, issuer: world.issuer, requiredScopes: ["read"], ...jwt } };
  const metrics = new Metrics();
  server = await serveRoutedGateway(gateway, loadedConfig({ serve: { port, publicUrl: url, auth } }), {
    metrics,
  });
  ends.push(
    () => server.close({ timeoutMs: 0 }),
    () => metrics.close(),
  );
}

/** A port of this machine that was free a moment ago: the gateway has to know its own address before it listens. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, "close");
  return port;
}

/** The OAuth side of a client of the SDK, with a person who agrees to everything. */
function createPerson(who: string, client?: object) {
  let known = client;
  let tokens: object | undefined;
  let verifier = "";
  let asked: URL | undefined;
  const scopes: (string | null)[] = [];
  return {
    scopes,
    redirectUrl: REDIRECT,
    clientMetadata: {
      client_name: "a client of the SDK",
      redirect_uris: [REDIRECT],
      grant_types: ["authorization_code"],
      token_endpoint_auth_method: "none",
      application_type: "native",
    },
    state: () => "the-state",
    clientInformation: () => known as never,
    saveClientInformation: (given: object) => {
      known = given;
    },
    tokens: () => tokens as never,
    // With a refresh token, the SDK 1.32 would renew where only a person can give more scopes.
    saveTokens: ({ refresh_token: _, ...given }: { readonly refresh_token?: string | undefined }) => {
      tokens = given;
    },
    redirectToAuthorization: (to: URL) => {
      asked = to;
      scopes.push(to.searchParams.get("scope"));
    },
    saveCodeVerifier: (given: string) => {
      verifier = given;
    },
    codeVerifier: () => verifier,
    /** Logs in where the client was sent to. */
    comeBack: async () => new URL(await walkLogin(String(asked), who)).searchParams,
  };
}

type Person = ReturnType<typeof createPerson>;

/** One attempt of a client to call a tool; where it has to log in first, how it goes on. */
type Attempt = (person: Person, tool: string) => Promise<unknown>;

const first: Attempt = async (person, tool) => {
  const transport = new FirstTransport(new URL(`${url}/mcp`), { authProvider: person });
  const client = new FirstClient({ name: "first", version: "1.0.0" });
  try {
    await client.connect(transport);
    return (await client.callTool({ name: tool, arguments: {} })).structuredContent;
  } catch (thrown) {
    if (!(thrown instanceof FirstUnauthorized)) throw thrown;
    await transport.finishAuth((await person.comeBack()).get("code") ?? "");
    return "logged in";
  } finally {
    await client.close();
  }
};

const second =
  (mode: "legacy" | { readonly pin: string }): Attempt =>
  async (person, tool) => {
    const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { authProvider: person });
    const client = new Client({ name: "second", version: "1.0.0" }, { versionNegotiation: { mode } });
    try {
      await client.connect(transport);
      return (await client.callTool({ name: tool, arguments: {} })).structuredContent;
    } catch (thrown) {
      if (!(thrown instanceof Unauthorized)) throw thrown;
      await transport.finishAuth(await person.comeBack());
      return "logged in";
    } finally {
      await client.close();
    }
  };

describe.each<[string, Attempt]>([
  ["SDK 1.32, 2025", first],
  ["SDK 2.4, 2025", second("legacy")],
  ["SDK 2.4, 2026-07-28", second({ pin: "2026-07-28" })],
])("a client of the %s", (_name, attempt) => {
  it("logs in to a gateway by itself, as a client that it registers", async () => {
    await serve();
    const { registered } = await world.counts();
    const person = createPerson("eve");
    expect(await attempt(person, "office_whoami")).toBe("logged in");
    expect(await attempt(person, "office_whoami")).toEqual({ who: "eve", scopes: ["read"] });
    expect((await world.counts()).registered).toBe(registered + 1);
  });

  it("logs in again for the scopes that a call lacks", async () => {
    await serve();
    // A client that registers itself does so for the scopes of its first login.
    const person = createPerson("ann", { client_id: "public-client" });
    expect(await attempt(person, "office_whoami")).toBe("logged in");
    expect(await attempt(person, "office_whoami")).toEqual({ who: "ann", scopes: ["read"] });
    expect(await attempt(person, "office_write")).toBe("logged in");
    expect(await attempt(person, "office_write")).toEqual({ who: "ann", scopes: ["read", "write"] });
    expect(person.scopes).toEqual(["read", "read write"]);
  });
});

describe("the client of this package", () => {
  const connect = async (dpop: boolean, scope?: string) => {
    const logins: URL[] = [];
    const oauth2 = createOAuthStore({
      redirectUrl: REDIRECT,
      dpop,
      scope,
      onAuthorize: async (address) => {
        logins.push(address);
        return await walkLogin(address.href, "bob");
      },
    });
    const source = await fromMcp(`${url}/mcp`, { namespace: "gw", auth: { oauth2 } });
    ends.push(() => source.close());
    return { source, logins, oauth2 };
  };

  it.each([
    ["plain", false, {}],
    ["bound to a key", true, {}],
    ["bound to a key, as nothing else is taken", true, { dpop: { required: true } }],
    ["bound to a key, with nonces", true, { dpop: { required: true, nonce: true } }],
  ])("logs in with a token that is %s", async (_what, dpop, jwt) => {
    await serve(jwt);
    const { source, logins, oauth2 } = await connect(dpop);
    for (let call = 0; call < 3; call++) {
      expect((await source.call("office_whoami", {})).data).toEqual({ who: "bob", scopes: ["read"] });
    }
    const { access_token: token } = (await oauth2.tokens()) ?? {};
    // What was stolen on the way is good where it is not bound.
    const stolen = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: "{}",
    });
    expect(stolen.status === 401).toBe(dpop);
    expect(logins).toHaveLength(1);
  });

  it("logs in with a token that says nothing by itself, which the gateway asks about", async () => {
    await world.set({ format: "opaque" });
    const introspection = { clientId: "known-client", clientSecret: "canary-client-secret-of-known-client" };
    await serve({ introspection });
    const { source, oauth2 } = await connect(false);
    expect((await source.call("office_whoami", {})).data).toMatchObject({ who: "bob" });
    expect(((await oauth2.tokens())?.access_token ?? "").split(".")).toHaveLength(1);
  });
});

describe("a gateway", () => {
  it("says on every surface where tokens are had, and what one lacks", async () => {
    await serve();
    const metadata = `resource_metadata="${url}/.well-known/oauth-protected-resource/mcp"`;
    const ask = async (path: string, init: RequestInit = {}) => {
      const response = await fetch(url + path, init);
      await response.body?.cancel();
      return [response.status, response.headers.get("www-authenticate")];
    };
    for (const path of ["/mcp", "/api/office/whoami", "/openapi.json", "/operations", "/metrics", "/"]) {
      expect([path, ...(await ask(path))]).toEqual([path, 401, `Bearer scope="read", ${metadata}`]);
    }
    const known = createPerson("ann");
    await first(known, "office_whoami");
    const { access_token: token } = known.tokens() as { access_token: string };
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const lacks = (scope: string) => `Bearer error="insufficient_scope", scope="read ${scope}", ${metadata}`;
    expect(await ask("/api/office/write", { headers })).toEqual([403, lacks("write")]);
    expect(await ask("/api/office/whoami", { headers })).toEqual([200, null]);
    expect(await ask("/metrics", { headers })).toEqual([403, lacks("waybill:metrics")]);
    const described = await fetch(`${url}/.well-known/oauth-protected-resource/mcp`);
    expect(await described.json()).toMatchObject({
      resource: `${url}/mcp`,
      authorization_servers: [world.issuer],
      scopes_supported: ["read"],
    });
  });
});
