import { generateKeyPairSync } from "node:crypto";
import { mkdtemp, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type OAuthServer, serveWithOAuth } from "../../../test/mcp-servers/oauth-server.ts";
import { type McpConnection, openMcpConnection } from "../../mcp/client/mcp-connection.ts";
import {
  createFileTokenStore,
  createKeptCredentials,
  createMemoryTokenStore,
  createOAuthStore,
  type OAuthStore,
  type OAuthStoreOptions,
} from "./oauth-store.ts";

let server: OAuthServer;
const connections: McpConnection[] = [];

beforeEach(async () => {
  server = await serveWithOAuth();
});

afterEach(async () => {
  for (const connection of connections.splice(0)) await connection.close();
  await server.close();
});

async function connect(auth: OAuthStore): Promise<McpConnection> {
  const connection = await openMcpConnection({ url: server.url, auth: { oauth2: auth }, protocol: "2025" });
  connections.push(connection);
  return connection;
}

const call = (connection: McpConnection) => connection.request("tools/call", { name: "x", arguments: {} });

/** A person who consents at once. */
async function consent(url: URL): Promise<string> {
  const response = await fetch(url, { redirect: "manual" });
  return String(response.headers.get("location"));
}

function personal(options: Partial<OAuthStoreOptions> = {}): OAuthStore {
  return createOAuthStore({ redirectUrl: "http://127.0.0.1:9/callback", onAuthorize: consent, ...options });
}

async function newFile(): Promise<string> {
  return join(await mkdtemp(join(tmpdir(), "waybill-oauth-")), "deep", "tokens.json");
}

describe("OAuth with a person who consents", () => {
  it("Mcp: goes on with the connection once the person is back", async () => {
    const connection = await connect(personal());
    expect(await call(connection)).toEqual({ ok: true });
    expect(server.grants).toEqual(["authorization_code"]);
  });

  it("Mcp: renews a token that has expired without the person, once for many calls at a time", async () => {
    const connection = await connect(personal());
    server.expire();
    const results = await Promise.all(Array.from({ length: 20 }, () => call(connection)));
    expect(results).toHaveLength(20);
    expect(server.grants).toEqual(["authorization_code", "refresh_token"]);
  });

  it("Mcp: uses stored tokens in the next run, and renews them there", async () => {
    const tokens = createFileTokenStore(await newFile());
    await (await connect(personal({ tokens }))).close();
    const unattended = personal({ tokens, onAuthorize: async () => undefined });
    await call(await connect(unattended));
    server.expire();
    await call(await connect(unattended));
    expect(server.grants).toEqual(["authorization_code", "refresh_token"]);
  });

  it("Mcp: is UNAUTHENTICATED while nobody has consented, and for a consent with another state", async () => {
    const absent = connect(personal({ onAuthorize: async () => undefined }));
    await expect(absent).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    const forged = personal({
      onAuthorize: async (url) => (await consent(url)).replace(/state=[^&]+/, "state=other"),
    });
    await expect(connect(forged)).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    expect(server.grants).toEqual([]);
  });

  it("Mcp: asks the person again when the tokens were revoked", async () => {
    const connection = await connect(personal());
    server.revoke();
    expect(await call(connection)).toEqual({ ok: true });
    expect(server.grants).toEqual(["authorization_code", "refresh_token", "authorization_code"]);
  });
});

describe("OAuth of a client that an address describes", () => {
  const clientMetadataUrl = "https://client.example/metadata.json";

  it("Mcp: is known by the address where the authorization server reads it, and registered elsewhere", async () => {
    await connect(personal({ clientMetadataUrl }));
    expect(server.registered).toHaveLength(1);
    server.settings.readsClientMetadata = true;
    await connect(personal({ clientMetadataUrl }));
    expect(server.registered).toHaveLength(1);
    expect(server.consents.map(({ client }) => client)).toEqual([server.registered[0], clientMetadataUrl]);
  });

  it.each(["http://client.example/metadata.json", "https://client.example/", "https://client.example", "x"])(
    "Mcp: is refused with %s",
    (url) => {
      expect(() => personal({ clientMetadataUrl: url })).toThrow(TypeError);
    },
  );
});

describe("an address to send a person to", () => {
  it.each(["file:///etc/passwd", "ms-msdt:/id?x=1", "http://evil.example/a", "https://me@evil.example/"])(
    "Mcp: is shown to nobody: %s",
    async (address) => {
      const shown: URL[] = [];
      const store = createOAuthStore({
        redirectUrl: "http://localhost/cb",
        onAuthorize: async (url) => {
          shown.push(url);
          return undefined;
        },
      });
      await expect(store.redirectToAuthorization(new URL(address))).rejects.toThrow(/neither https/);
      expect(shown).toEqual([]);
      await store.redirectToAuthorization(new URL("https://login.example/authorize"));
      expect(shown).toHaveLength(1);
    },
  );
});

describe("OAuth of a client that stands for itself", () => {
  it("Mcp: proves itself with a key, and shows no secret", async () => {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    server.settings.publicKey = publicKey;
    const pem = String(privateKey.export({ type: "pkcs8", format: "pem" }));
    const connection = await connect(createOAuthStore({ clientId: "robot", privateKey: pem }));
    server.expire();
    expect(await call(connection)).toEqual({ ok: true });
    expect(server.grants).toEqual(["client_credentials", "client_credentials"]);
  });

  it("Mcp: is UNAUTHENTICATED with another key, and proves nothing to another authorization server", async () => {
    server.settings.publicKey = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey;
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const pem = String(privateKey.export({ type: "pkcs8", format: "pem" }));
    const wrong = connect(createOAuthStore({ clientId: "robot", privateKey: pem }));
    await expect(wrong).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    const { length } = server.grants;
    const issuer = "https://other.example";
    const elsewhere = connect(createOAuthStore({ clientId: "robot", privateKey: pem, issuer }));
    await expect(elsewhere).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    expect(server.grants).toHaveLength(length);
    expect(() => createOAuthStore({ clientId: "r", clientSecret: "s", privateKey: pem })).toThrow(TypeError);
  });

  it("Mcp: gets a token with its secret, and another when that has expired", async () => {
    const connection = await connect(
      createOAuthStore({ clientId: "robot", clientSecret: server.clientSecret, issuer: server.issuer }),
    );
    server.expire();
    expect(await call(connection)).toEqual({ ok: true });
    expect(server.grants).toEqual(["client_credentials", "client_credentials"]);
  });

  it("Mcp: does not write its secret down", async () => {
    const path = await newFile();
    const { clientSecret, issuer } = server;
    await connect(
      createOAuthStore({ clientId: "robot", clientSecret, issuer, tokens: createFileTokenStore(path) }),
    );
    const text = await readFile(path, "utf8");
    expect(text).toContain("access_token");
    expect(text).not.toContain(clientSecret);
  });

  it("Mcp: is UNAUTHENTICATED with a wrong secret, and needs both id and secret", async () => {
    const wrong = connect(
      createOAuthStore({ clientId: "robot", clientSecret: "wrong", issuer: server.issuer }),
    );
    await expect(wrong).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    expect(() => createOAuthStore({ clientId: "robot" })).toThrow(TypeError);
    const homeless = { clientId: "robot", clientSecret: "secret" };
    expect(() => createOAuthStore(homeless)).toThrow(/needs the issuer/);
  });
});

describe("a file of tokens", () => {
  it("Mcp: can be read by its owner alone, is replaced whole, and leaves no drafts", async () => {
    const path = await newFile();
    const store = createFileTokenStore(path);
    await Promise.all(Array.from({ length: 20 }, (_, n) => store.save({ n })));
    expect(await store.load()).toEqual({ n: 19 });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(path))).mode & 0o777).toBe(0o700);
    expect(await readdir(dirname(path))).toEqual(["tokens.json"]);
  });

  it("Mcp: counts as empty when it is missing or holds something else", async () => {
    const path = await newFile();
    const store = createFileTokenStore(path);
    expect(await store.load()).toBeUndefined();
    await store.save({});
    for (const text of ["", "[1]", "{", "null"]) {
      await writeFile(path, text);
      expect(await store.load()).toBeUndefined();
    }
    expect(await readFile(path, "utf8")).toBe("null");
  });

  it("Mcp: keeps what memory keeps", async () => {
    const store = createMemoryTokenStore();
    expect(await store.load()).toBeUndefined();
    await store.save({ tokens: 1 });
    expect(await store.load()).toEqual({ tokens: 1 });
  });
});

const tokens = (name: string) => ({ access_token: name });

describe("credentials of authorization servers", () => {
  it("Mcp: are kept apart, and those whose tokens came last are in use", async () => {
    const kept = createKeptCredentials(createMemoryTokenStore());
    await kept.keep({ issuer: "a", client: { client_id: "at a" } });
    await kept.keep({ issuer: "a", tokens: tokens("a") });
    await kept.keep({ issuer: "b", client: { client_id: "at b" } });
    expect(await kept.of(undefined)).toMatchObject({ issuer: "a", client: { client_id: "at a" } });
    await kept.keep({ issuer: "b", tokens: tokens("b") });
    expect(await kept.of(undefined)).toMatchObject({ issuer: "b", tokens: tokens("b") });
    expect(await kept.of("a")).toMatchObject({ tokens: tokens("a") });
    expect(await kept.of("c")).toBeUndefined();
  });

  it("Mcp: are forgotten for one of them alone, or for all", async () => {
    const kept = createKeptCredentials(createMemoryTokenStore());
    for (const issuer of ["a", "b"]) await kept.keep({ issuer, client: {}, tokens: tokens(issuer) });
    await kept.forget(["tokens"], "b");
    expect(await kept.of("b")).toEqual({ issuer: "b", client: {} });
    expect(await kept.of("a")).toMatchObject({ tokens: tokens("a") });
    await kept.forget(["tokens", "client"], undefined);
    expect(await kept.of("a")).toEqual({ issuer: "a" });
  });

  it("Mcp: are kept for eight of them; a ninth takes the place of the one not used for longest", async () => {
    const kept = createKeptCredentials(createMemoryTokenStore());
    for (let n = 1; n <= 8; n++) await kept.keep({ issuer: String(n), tokens: tokens(String(n)) });
    await kept.keep({ issuer: "1", tokens: tokens("again") });
    expect(await kept.of("2")).toBeDefined();
    await kept.keep({ issuer: "9", tokens: tokens("9") });
    expect(await kept.of("2")).toBeUndefined();
    expect(await kept.of("1")).toMatchObject({ tokens: tokens("again") });
  });

  it("Mcp: may belong to any name, and what is no credentials in a store is left out", async () => {
    const store = createMemoryTokenStore();
    const kept = createKeptCredentials(store);
    await kept.keep({ issuer: "__proto__", tokens: tokens("p") });
    expect(await kept.of(undefined)).toMatchObject({ tokens: tokens("p") });
    expect(({} as Record<string, unknown>)["tokens"]).toBeUndefined();
    for (const issuers of ["x", [1, null, {}, { issuer: "a", tokens: "t" }, { issuer: "a", client: [] }]]) {
      await store.save({ issuers, current: "a" });
      expect(await kept.of(undefined)).toBeUndefined();
    }
  });

  it("Mcp: stand beside fields that belong to none of them", async () => {
    const kept = createKeptCredentials(createMemoryTokenStore());
    await Promise.all([kept.set("home", "h"), kept.set("discovery", { d: 1 }), kept.keep({ issuer: "a" })]);
    await kept.set("discovery", undefined);
    expect(await kept.get("discovery")).toBeUndefined();
    expect(await kept.get("home")).toBe("h");
    expect(await kept.of("a")).toEqual({ issuer: "a" });
  });
});
