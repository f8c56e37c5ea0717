import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { createGateway, type GatewayConfig, loadConfigObject, serveGateway } from "../src/gateway/index.ts";
import { atEnd } from "./gateway-sources.ts";
import { codeIn } from "./login-browser.ts";
import { askServer } from "./mcp-requests.ts";

const GATEWAY = "https://gateway.example";

/** An identity provider, an authorization server and what stands behind it, on one port: each says what it was sent. */
async function startProvider() {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const jwk = { ...(await exportJWK(publicKey)), kid: "1", alg: "ES256" };
  const grants: Record<string, string>[] = [];
  const seen: (string | undefined)[] = [];
  const refused = new Set<string>();
  const settings = { error: undefined as string | undefined, mute: new Set<string>() };
  let issued = 0;
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    const send = (status: number, value: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(value));
    };
    const { url = "", headers } = request;
    if (url === "/jwks") return send(200, { keys: [jwk] });
    if (url.startsWith("/.well-known/")) {
      const endpoints = { token_endpoint: `${origin}/token`, authorization_endpoint: `${origin}/authorize` };
      return send(200, { issuer: origin, ...endpoints, response_types_supported: ["code"] });
    }
    if (url === "/token") {
      const form = Object.fromEntries(new URLSearchParams(body));
      grants.push({ ...form, authorization: headers.authorization ?? "" });
      if (settings.error !== undefined) return send(400, { error: settings.error });
      const wanted = form["requested_token_type"] ?? "urn:ietf:params:oauth:token-type:access_token";
      const isAssertion = wanted.endsWith("id-jag");
      const subject = subjectIn(form["subject_token"] ?? form["assertion"] ?? "");
      const token = `${isAssertion ? "jag" : "for"}.${Buffer.from(JSON.stringify({ sub: subject })).toString("base64url")}.${++issued}`;
      return send(200, {
        access_token: token,
        token_type: isAssertion ? "N_A" : "Bearer",
        issued_token_type: wanted,
        expires_in: 600,
      });
    }
    if (url === "/openapi.json") return send(200, documentOf(origin));
    const token = /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1];
    if (url === "/api/whoami") {
      seen.push(token);
      if (token === undefined || refused.has(token)) return send(401, { error: "invalid_token" });
      return send(200, { who: subjectIn(token) });
    }
    const { id, method } = JSON.parse(body || "{}") as { readonly id?: number; readonly method?: string };
    if (id === undefined) return send(202, {});
    const tools = [{ name: "whoami", inputSchema: { type: "object" } }];
    const made = {
      protocolVersion: "2025-11-25",
      capabilities: { tools: {}, resources: {} },
      serverInfo: { name: "a", version: "1" },
    };
    const who = token === undefined ? "nobody" : subjectIn(token);
    if (method === "resources/list" && settings.mute.has(who))
      return send(200, { jsonrpc: "2.0", id, error: { code: -32603, message: "not now" } });
    const results: Readonly<Record<string, unknown>> = {
      initialize: made,
      "tools/list": { tools },
      "resources/list": { resources: [{ uri: "notes:own", name: `notes of ${who}` }] },
    };
    send(200, {
      jsonrpc: "2.0",
      id,
      result: results[method ?? ""] ?? { content: [{ type: "text", text: who }] },
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => server.closeAllConnections());
  atEnd(() => new Promise((resolve) => server.close(resolve)));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const sign = (sub: string, claims: JWTPayload = {}) =>
    new SignJWT({ aud: GATEWAY, ...claims })
      .setProtectedHeader({ alg: "ES256", kid: "1" })
      .setIssuer(origin)
      .setSubject(sub)
      .setExpirationTime("10m")
      .sign(privateKey);
  return { origin, sign, grants, seen, refused, settings };
}

/** Whose a token is: the second part of each says it. */
function subjectIn(token: string): string {
  try {
    return (JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as { sub: string })
      .sub;
  } catch {
    return "?";
  }
}

function documentOf(origin: string): object {
  return {
    openapi: "3.1.0",
    info: { title: "A", version: "1.0.0" },
    servers: [{ url: `${origin}/api` }],
    security: [{ person: [] }],
    components: { securitySchemes: { person: { type: "http", scheme: "bearer" } } },
    paths: {
      "/whoami": {
        get: {
          operationId: "whoami",
          responses: { 200: { description: "ok", content: { "application/json": { schema: {} } } } },
        },
      },
    },
  };
}

type Identity = NonNullable<NonNullable<GatewayConfig["mcpServers"]>[string]["identity"]>;

async function served(identity: (origin: string) => Identity) {
  const provider = await startProvider();
  const { origin } = provider;
  const policy = { singleFlight: true };
  const state = mkdtempSync(join(tmpdir(), "waybill-tokens-"));
  atEnd(() => rmSync(state, { recursive: true, force: true }));
  const loaded = await loadConfigObject(
    {
      mcpServers: { mcp: { url: `${origin}/mcp`, identity: identity(origin) } },
      openapi: { api: { document: `${origin}/openapi.json`, identity: identity(origin), policy } },
      serve: {
        port: 0,
        auth: {
          tokens: { machine: { token: "the-token-of-a-machine" } },
          jwt: { audience: GATEWAY, jwksUrl: `${origin}/jwks`, issuer: origin },
        },
      },
    },
    { baseDir: state, env: { WAYBILL_STATE_DIR: state, WAYBILL_KEYRING: "off" } },
  );
  const gateway = await createGateway(loaded);
  atEnd(() => gateway.close());
  await gateway.ready;
  const server = await serveGateway(gateway, loaded);
  atEnd(() => server.close({ timeoutMs: 0 }));
  const overHttp = async (token: string) => {
    const response = await fetch(`${server.url}/api/api/whoami`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const body = (await response.json()) as Readonly<Record<string, unknown>>;
    return response.ok ? body["who"] : `${body["code"]}: ${body["detail"]}`;
  };
  const overMcp = async (token: string) => {
    const called = { name: "mcp_whoami", arguments: {} };
    const { content } = await askServer({ url: `${server.url}/mcp`, token }, "tools/call", called);
    return (content as readonly { readonly text: string }[])[0]?.text;
  };
  const listed = async (token: string) =>
    JSON.stringify(await askServer({ url: `${server.url}/mcp`, token }, "resources/list"));
  return { ...provider, overHttp, overMcp, listed };
}

describe("tokens that are exchanged for those of callers", () => {
  it("are had once for each, are for the source alone, and are renewed where they are refused", async () => {
    const { origin, sign, overHttp, overMcp, grants, seen, refused } = await served((issuer) => ({
      mode: "exchange",
      issuer,
      clientId: "gateway",
      clientSecret: "canary-secret-of-the-gateway",
      scope: "read",
    }));
    const [ann, bob] = [await sign("ann"), await sign("bob")];
    expect(await Promise.all([ann, bob, ann].map(overHttp))).toEqual(["ann", "bob", "ann"]);
    expect(grants).toHaveLength(2);
    expect(grants[0]).toMatchObject({
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token_type: "urn:ietf:params:oauth:token-type:access_token",
      resource: `${origin}/openapi.json`,
      scope: "read",
      authorization: expect.stringMatching(/^Basic /),
    });
    expect(seen).not.toContain(ann);
    expect(await Promise.all([ann, bob].map(overMcp))).toEqual(["ann", "bob"]);
    expect(grants.slice(2).map(({ resource }) => resource)).toEqual([`${origin}/mcp`, `${origin}/mcp`]);
    const cyd = await sign("cyd");
    expect(await overHttp(cyd)).toBe("cyd");
    const before = grants.length;
    expect(await overHttp(cyd)).toBe("cyd");
    expect(grants).toHaveLength(before);
    refused.add(seen.at(-1) ?? "");
    expect(await overHttp(cyd)).toBe("cyd");
    expect(grants).toHaveLength(before + 1);
  });

  it("are not had for callers who show none, and not where the authorization server will not; others are not touched", async () => {
    const { sign, overHttp, settings } = await served((issuer) => ({
      mode: "exchange",
      issuer,
      clientId: "gateway",
      audience: "api",
    }));
    expect(await overHttp("the-token-of-a-machine")).toMatch(
      /^UNAUTHENTICATED: .*you showed the gateway none that can be exchanged/,
    );
    const ann = await sign("ann");
    expect(await overHttp(ann)).toBe("ann");
    settings.error = "access_denied";
    expect(await overHttp(await sign("bob"))).toMatch(/^UNAUTHENTICATED: .*refused with access_denied/);
    expect(await overHttp(ann)).toBe("ann");
  });

  it("list what each caller may read, and nothing for one who shows none", async () => {
    const { sign, listed, settings } = await served((issuer) => ({
      mode: "exchange",
      issuer,
      clientId: "gateway",
    }));
    expect(await listed(await sign("ann"))).toContain("notes of ann");
    expect(await listed(await sign("bob"))).toContain("notes of bob");
    // What one caller was listed stands in for nothing that another cannot be.
    settings.mute.add("cyd");
    expect(await listed(await sign("cyd"))).not.toContain("notes of");
    expect(await listed("the-token-of-a-machine")).not.toContain("notes of");
  });

  it("come from the authorization server of the source, by an assertion of who the caller is", async () => {
    const { origin, sign, overMcp, grants } = await served((issuer) => ({
      mode: "exchange",
      issuer,
      clientId: "gateway",
      assertion: { issuer, clientId: "gateway-there" },
    }));
    expect(await overMcp(await sign("ann"))).toBe("ann");
    expect(grants).toHaveLength(2);
    expect(grants[0]).toMatchObject({
      requested_token_type: "urn:ietf:params:oauth:token-type:id-jag",
      audience: origin,
      resource: `${origin}/mcp`,
    });
    expect(grants[1]).toMatchObject({
      grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
      assertion: expect.stringMatching(/^jag\./),
    });
  });
});

describe("tokens of callers that are passed on", () => {
  it("are those that are made out for the source as well, and not bound to a key", async () => {
    const { sign, overHttp, overMcp, seen } = await served(() => ({
      mode: "forward",
      audience: "https://api.example",
    }));
    const both = await sign("ann", { aud: [GATEWAY, "https://api.example"] });
    expect(await overHttp(both)).toBe("ann");
    expect(await overMcp(both)).toBe("ann");
    expect(seen).toEqual([both]);
    const bound = await sign("bob", { aud: [GATEWAY, "https://api.example"], cnf: { jkt: "x" } });
    for (const token of [
      await sign("bob"),
      await sign("bob", { aud: [GATEWAY, "https://api.example/"] }),
      bound,
      "the-token-of-a-machine",
    ]) {
      expect(await overHttp(token)).toMatch(/^UNAUTHENTICATED/);
    }
    expect(seen).toEqual([both]);
  });
});

describe("the holder of a token and a signed token of one name", () => {
  it("are two callers: neither is asked as the other", async () => {
    const { sign, overHttp } = await served(() => "key");
    const [holder, signed] = ["the-token-of-a-machine", await sign("machine")];
    const told = [await overHttp(holder), await overHttp(signed)].map(String);
    const links = told.map((text) => /http:\S+\/login\/[\w-]+/.exec(text)?.[0] ?? "");
    expect(new Set(links).size).toBe(2);
    const keyOf = (who: string) => `k.${Buffer.from(JSON.stringify({ sub: who })).toString("base64url")}.1`;
    const post = async (url: string, form: Record<string, string>) =>
      await (await fetch(url, { method: "POST", body: new URLSearchParams(form) })).text();
    const give = async (at: 0 | 1, who: string): Promise<void> => {
      const page = await post(links[at] ?? "", { code: codeIn(told[at] ?? "") });
      const handle = /name="handle" value="([^"]+)"/.exec(page)?.[1] ?? "";
      await post(new URL("key", links[at]).href, { handle, source: "api", key: keyOf(who) });
    };
    await give(1, "by-signature");
    expect([await overHttp(holder), await overHttp(signed)]).toEqual([
      expect.stringMatching(/^UNAUTHENTICATED/),
      "by-signature",
    ]);
    await give(0, "by-token");
    expect(await Promise.all([holder, signed, holder].map(overHttp))).toEqual([
      "by-token",
      "by-signature",
      "by-token",
    ]);
  });
});
