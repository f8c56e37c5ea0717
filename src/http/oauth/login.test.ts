import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type OAuthServer, serveWithOAuth } from "../../../test/mcp-servers/oauth-server.ts";
import { type McpConnection, openMcpConnection } from "../../mcp/client/mcp-connection.ts";
import { createEncryptedStore, type EncryptedStore } from "./encrypted-store.ts";
import { createGuardedFetch } from "./guarded-fetch.ts";
import { createLoginStore, type LoginOptions, logIn, loginFacts } from "./login.ts";

let server: OAuthServer;
let folder: string;
let kept: EncryptedStore;
const connections: McpConnection[] = [];

beforeEach(async () => {
  server = await serveWithOAuth();
  folder = mkdtempSync(join(tmpdir(), "waybill-login-"));
  kept = open();
});
afterEach(async () => {
  for (const connection of connections.splice(0)) await connection.close();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

function open(): EncryptedStore {
  return createEncryptedStore({ folder: join(folder, "logins"), id: ["a"], env: { WAYBILL_KEYRING: "off" } });
}

/** A person who consents at once. */
async function login(options: Pick<LoginOptions, "place"> = {}): Promise<void> {
  const serverUrl = new URL(server.url);
  const send = async (url: URL): Promise<string> => {
    const response = await fetch(url, { redirect: "manual" });
    return String(response.headers.get("location"));
  };
  const stored = await logIn({
    serverUrl,
    fetch: createGuardedFetch(serverUrl),
    client: {},
    way: { redirectUrl: "http://127.0.0.1:5000/callback", send },
    before: await kept.load(),
    ...options,
  });
  await kept.save(stored);
}

async function connect(store = kept): Promise<McpConnection> {
  const auth = { oauth2: createLoginStore(store, {}) };
  const connection = await openMcpConnection({ url: server.url, auth, protocol: "2025" });
  connections.push(connection);
  return connection;
}

const call = (connection: McpConnection) => connection.request("tools/call", { name: "x", arguments: {} });

describe("a login at what describes itself", () => {
  it.each<readonly [string, LoginOptions["place"]]>([
    ["an issuer", { issuer: "http://127.0.0.1:1/" }],
    ["endpoints", { authorizationUrl: "http://127.0.0.1:1/authorize", tokenUrl: "http://127.0.0.1:1/token" }],
  ])("goes where that says, and not to %s that somebody else wrote about it", async (_, place) => {
    await login({ place });
    expect(server.consents).toHaveLength(1);
    expect(server.grants).toEqual(["authorization_code"]);
  });
});

describe("a login that is kept", () => {
  it("serves connections, and is renewed once for all that share it", async () => {
    await login();
    const all = await Promise.all([connect(), connect(open()), connect(open())]);
    for (const connection of all) expect(await call(connection)).toEqual({ ok: true });
    server.expire();
    await Promise.all(all.flatMap((connection) => [call(connection), call(connection)]));
    expect(server.grants).toEqual(["authorization_code", "refresh_token"]);
  });

  it("asks nobody, and registers nothing, where there is none", async () => {
    await expect(connect()).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    expect([server.grants, server.registered, server.consents]).toEqual([[], [], []]);
  });

  it("is forgotten when it cannot be renewed for good, and taken up again after the next one", async () => {
    await login();
    const connection = await connect();
    server.revoke();
    await expect(call(connection)).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    expect(kept.isThere).toBe(false);
    await login();
    expect(await call(connection)).toEqual({ ok: true });
  });

  it("notes the scope that a call lacked, and the next login asks for it", async () => {
    await login();
    const connection = await connect();
    server.settings.needs = () => "more";
    await expect(call(connection)).rejects.toMatchObject({ code: "ACCESS_DENIED" });
    expect(await loginFacts(kept)).toMatchObject({ wanted: "more" });
    await login();
    expect(server.consents.at(-1)?.scope).toBe("more");
    expect(await loginFacts(kept)).toEqual(expect.not.objectContaining({ wanted: "more" }));
    expect(await call(connection)).toEqual({ ok: true });
  });
});
