import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type OAuthServer, serveWithOAuth } from "../../../test/mcp-servers/oauth-server.ts";
import { type McpConnection, openMcpConnection } from "../../mcp/client/mcp-connection.ts";
import { createOAuthStore, type OAuthStore, type OAuthStoreOptions } from "./oauth-store.ts";

let server: OAuthServer;
const opened: { close(): Promise<void> }[] = [];

beforeEach(async () => {
  server = await serveWithOAuth();
  opened.push(server);
});

afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each.close();
});

async function connect(auth: OAuthStore): Promise<McpConnection> {
  const connection = await openMcpConnection({ url: server.url, auth: { oauth2: auth }, protocol: "2025" });
  opened.push(connection);
  return connection;
}

const call = (connection: McpConnection) => connection.request("tools/call", { name: "x", arguments: {} });

async function consent(url: URL): Promise<string> {
  const response = await fetch(url, { redirect: "manual" });
  return String(response.headers.get("location"));
}

function personal(options: Partial<OAuthStoreOptions> = {}): OAuthStore {
  return createOAuthStore({ redirectUrl: "http://127.0.0.1:9/callback", onAuthorize: consent, ...options });
}

const scopes = () => server.consents.map(({ scope }) => scope);

describe("a token whose scope is not enough", () => {
  it.each([false, true])(
    "Mcp: is widened by what is missing, beside what it has (scope hidden: %s)",
    async (hides) => {
      server.settings.hidesScope = hides;
      const connection = await connect(personal({ scope: "read" }));
      server.settings.needs = () => "write";
      expect(await call(connection)).toEqual({ ok: true });
      server.settings.needs = () => "admin write";
      expect(await call(connection)).toEqual({ ok: true });
      expect(scopes()).toEqual(["read", "read write", "read write admin"]);
    },
  );

  it("Mcp: is widened once for many calls at a time", async () => {
    const connection = await connect(personal());
    server.settings.needs = () => "write";
    const results = await Promise.all(Array.from({ length: 20 }, () => call(connection)));
    expect(results).toHaveLength(20);
    expect(scopes()).toEqual([null, "write"]);
  });

  it("Mcp: keeps its scope when it is renewed, and is widened again where that was lost", async () => {
    const connection = await connect(personal());
    server.settings.needs = () => "write";
    await call(connection);
    server.expire();
    await call(connection);
    expect(scopes()).toEqual([null, "write"]);
    server.revoke();
    await call(connection);
    expect(scopes()).toEqual([null, "write", null, "write"]);
  });

  it("Mcp: is not asked for again when it did not help", async () => {
    const connection = await connect(
      personal({ onAuthorize: async (url) => consent(without(url, "scope")) }),
    );
    server.settings.hidesScope = true;
    server.settings.needs = () => "write";
    for (let n = 0; n < 3; n++) {
      await expect(call(connection)).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    }
    expect(scopes()).toEqual([null, null]);
  });

  it("Mcp: is widened twice in vain, and not a third time, by a server that wants ever more", async () => {
    const connection = await connect(personal());
    let n = 0;
    server.settings.needs = () => `scope-${n++}`;
    for (let calls = 0; calls < 3; calls++) {
      await expect(call(connection)).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    }
    const [, second, third, ...others] = scopes();
    expect(second).toMatch(/^scope-\d+$/);
    expect(third).toMatch(new RegExp(`^${second} scope-\\d+$`));
    expect(others).toEqual([]);
  });

  it("Mcp: stays as it is when nobody consents to more", async () => {
    let isThere = true;
    const connection = await connect(
      personal({ onAuthorize: async (url) => (isThere ? await consent(url) : undefined) }),
    );
    isThere = false;
    server.settings.needs = () => "write";
    await expect(call(connection)).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    server.settings.needs = () => "";
    expect(await call(connection)).toEqual({ ok: true });
    isThere = true;
    server.settings.needs = () => "write";
    expect(await call(connection)).toEqual({ ok: true });
  });

  it("Mcp: of a client that stands for itself is widened, and stays so when it expires", async () => {
    const { clientSecret, issuer } = server;
    const connection = await connect(
      createOAuthStore({ clientId: "robot", clientSecret, issuer, scope: "read" }),
    );
    server.settings.needs = () => "read write";
    expect(await call(connection)).toEqual({ ok: true });
    server.expire();
    expect(await call(connection)).toEqual({ ok: true });
    expect(server.grants).toEqual(Array(3).fill("client_credentials"));
  });
});

describe("a server that moves to another authorization server", () => {
  let next: OAuthServer;

  beforeEach(async () => {
    next = await serveWithOAuth();
    opened.push(next);
  });

  it("Mcp: has the client registered there, under another name, and keeps both apart", async () => {
    const connection = await connect(personal());
    server.moveTo(next);
    expect(await call(connection)).toEqual({ ok: true });
    next.expire();
    expect(await call(connection)).toEqual({ ok: true });
    expect(next.grants).toEqual(["authorization_code", "refresh_token"]);
    expect(next.registered).toHaveLength(1);
    expect(next.consents.map(({ client }) => client)).toEqual(next.registered);
    expect(server.grants).toEqual(["authorization_code"]);
  });

  it("Mcp: is never shown the client that belongs to the first, nor its secret", async () => {
    const connection = await connect(
      personal({ clientId: "robot", clientSecret: server.clientSecret, issuer: server.issuer }),
    );
    expect(server.registered).toEqual([]);
    server.moveTo(next);
    await call(connection);
    next.revoke();
    await call(connection);
    const seen = JSON.stringify([next.consents, next.shown]);
    expect(seen).not.toContain("robot");
    expect(seen).not.toContain(Buffer.from("robot:").toString("base64").slice(0, 7));
  });

  it("Mcp: gets nothing of a client whose authorization server is given, not even at first", async () => {
    server.moveTo(next);
    const { clientSecret, issuer } = server;
    const store = createOAuthStore({ clientId: "robot", clientSecret, issuer });
    await expect(connect(store)).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    expect([next.shown, next.registered]).toEqual([[], []]);
  });
});

describe("a server of another machine that names where its tokens are had", () => {
  const HOST = "https://mcp.example";
  const METADATA = `${HOST}/.well-known/oauth-protected-resource/mcp`;

  /** A server that names this authorization server, and sends those who look for it on to `redirect`. */
  async function askedBy(authorizationServer: string, redirect?: string): Promise<readonly string[]> {
    const asked: string[] = [];
    const answer = async (to: string | URL | Request): Promise<Response> => {
      const url = new URL(String(to));
      asked.push(url.origin);
      const headers = { "www-authenticate": `Bearer resource_metadata="${METADATA}"` };
      if (url.href === `${HOST}/mcp`) return new Response(null, { status: 401, headers });
      if (url.href !== METADATA) return new Response(null, { status: 404 });
      if (redirect !== undefined) return new Response(null, { status: 302, headers: { location: redirect } });
      return Response.json({ resource: `${HOST}/mcp`, authorization_servers: [authorizationServer] });
    };
    const connecting = openMcpConnection({ url: `${HOST}/mcp`, auth: { oauth2: personal() }, fetch: answer });
    await expect(connecting).rejects.toMatchObject({ name: "CallError" });
    return [...new Set(asked)];
  }

  it.each([
    "http://127.0.0.1:6379",
    "http://localhost",
    "https://[::1]:8443",
    "http://169.254.169.254",
    "http://intranet.example",
  ])("Mcp: has nothing asked at %s", async (address) => {
    expect(await askedBy(address)).toEqual([HOST]);
    expect(await askedBy("https://login.example", `${address}/x`)).toEqual([HOST]);
  });

  it("Mcp: has an authorization server asked that it names over https", async () => {
    expect(await askedBy("https://login.example")).toEqual([HOST, "https://login.example"]);
    expect(await askedBy("", "https://www.mcp.example/x")).toEqual([HOST, "https://www.mcp.example"]);
  });
});

function without(url: URL, param: string): URL {
  const changed = new URL(url);
  changed.searchParams.delete(param);
  return changed;
}
