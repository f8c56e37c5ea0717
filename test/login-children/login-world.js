/**
 * An authorization server (oidc-provider) on loopback, and what stands behind it on the same port: an HTTP API, and an MCP server of the
 * SDK. Asked by messages of its parent. A process of its own, without hardening flags: see openapi-children/authorization-server.js.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { createServer } from "node:http";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { createRemoteJWKSet, jwtVerify } from "jose";
import Provider from "oidc-provider";
import { z } from "zod";

const server = createServer();
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;
const SCOPES = ["read", "write"];

/** What tests may change: whether the API sends people elsewhere, and what it asks for. */
const settings = { audience: "", metadata: undefined, accessSeconds: 600, format: "jwt", revocation: "on" };
const native = { application_type: "native", token_endpoint_auth_method: "none" };
const grants = ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"];

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "known-client",
      client_secret: "canary-client-secret-of-known-client",
      application_type: "native",
      token_endpoint_auth_method: "client_secret_basic",
      grant_types: grants,
      redirect_uris: ["http://127.0.0.1/callback"],
    },
    {
      client_id: "public-client",
      ...native,
      grant_types: grants,
      redirect_uris: ["http://127.0.0.1/callback"],
    },
  ],
  scopes: ["openid", "offline_access", ...SCOPES],
  clientDefaults: native,
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: "draft-02" },
    introspection: { enabled: true },
    dPoP: { enabled: true },
    deviceFlow: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => `${issuer}/api`,
      useGrantedResource: () => true,
      getResourceServerInfo: (_context, resource) => ({
        scope: SCOPES.join(" "),
        audience: settings.audience || resource,
        accessTokenTTL: settings.accessSeconds,
        accessTokenFormat: settings.format,
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
  // Documents of clients stand under https, and nothing here has a certificate.
  fetch: (url, { method, headers, redirect }) => {
    const at = String(url).replace(/^https:\/\/clients\.example\//, `${issuer}/clients/`);
    return fetch(at, { method, headers, redirect });
  },
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  issueRefreshToken: () => true,
  rotateRefreshToken: true,
  ttl: { RefreshToken: 3600, Grant: 3600, IdToken: 600, Session: 3600, Interaction: 600, DeviceCode: 600 },
});

const counts = {
  authorization_code: 0,
  refresh_token: 0,
  device: 0,
  refused: 0,
  revoked: 0,
  registered: 0,
  documents: 0,
};
provider.on("grant.success", ({ oidc }) => {
  const type = oidc.params.grant_type;
  if (type.endsWith("device_code")) counts.device += 1;
  else counts[type] += 1;
});
provider.on("grant.error", ({ oidc }) => {
  if (oidc.params?.grant_type !== grants[2]) counts.refused += 1;
});
provider.on("grant.revoked", () => {
  counts.revoked += 1;
});
provider.on("registration_create.success", () => {
  counts.registered += 1;
});
/** People by the token that they were given. */
const issued = new Map();
const refused = new Set();
const grantsOf = new Map();
provider.on("access_token.issued", (token) => {
  issued.set(token.jti, token.accountId);
  grantsOf.set(token.accountId, [...(grantsOf.get(token.accountId) ?? []), token.grantId]);
});

const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));

/** The claims of a token that is good here; nothing for any other. */
async function claimsOf(request, audience) {
  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
  try {
    const { payload } = await jwtVerify(token ?? "", keys, { issuer, audience });
    return refused.has(payload.jti) ? undefined : payload;
  } catch {
    return undefined;
  }
}

function send(response, status, body, headers = {}) {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

/** Lets a request with a good token pass; says what is missing of any other. */
async function guard(request, response, path, scope) {
  const claims = await claimsOf(request, `${issuer}${path}`);
  const metadata = `resource_metadata="${issuer}/.well-known/oauth-protected-resource${path}"`;
  if (claims === undefined) {
    send(
      response,
      401,
      { error: "invalid_token" },
      { "www-authenticate": `Bearer ${metadata}, scope="read"` },
    );
    return undefined;
  }
  if (scope !== undefined && !String(claims.scope).split(" ").includes(scope)) {
    const challenge = `Bearer error="insufficient_scope", scope="${scope}", ${metadata}`;
    send(response, 403, { error: "insufficient_scope" }, { "www-authenticate": challenge });
    return undefined;
  }
  return claims;
}

const operation = (operationId) => ({
  get: {
    operationId,
    responses: { 200: { description: "ok", content: { "application/json": { schema: {} } } } },
  },
});
const document = {
  openapi: "3.1.0",
  info: { title: "People", version: "1.0.0" },
  servers: [{ url: `${issuer}/api` }],
  security: [{ person: [] }],
  components: {
    securitySchemes: {
      person: { type: "openIdConnect", openIdConnectUrl: `${issuer}/.well-known/openid-configuration` },
    },
  },
  paths: { "/whoami": operation("whoami"), "/write": operation("write") },
};

/** Whose request is served. */
const people = new AsyncLocalStorage();

function createSdkServer() {
  const made = new McpServer({ name: "sdk", version: "1.0.0" });
  made.registerTool("hello", { description: "Says hello.", inputSchema: z.object({}) }, () => ({
    content: [{ type: "text", text: "hello" }],
  }));
  made.registerTool("whoami", { description: "Says who calls.", inputSchema: z.object({}) }, () => ({
    content: [{ type: "text", text: people.getStore()?.sub ?? "nobody" }],
  }));
  return made;
}
const sdk = toNodeHandler(createMcpHandler(createSdkServer, {}));
const oidc = provider.callback();

server.on("request", async (request, response) => {
  const { pathname } = new URL(request.url, issuer);
  const guarded = /^\/\.well-known\/oauth-protected-resource(\/.*)$/.exec(pathname)?.[1];
  if (guarded !== undefined) {
    const own = {
      resource: `${issuer}${guarded}`,
      authorization_servers: [issuer],
      scopes_supported: ["read"],
    };
    return send(response, 200, settings.metadata ?? own);
  }
  if (pathname === "/.well-known/oauth-authorization-server/elsewhere") {
    return send(response, 200, { issuer, token_endpoint: `${issuer}/token` });
  }
  if (pathname === "/clients/waybill.json") {
    counts.documents += 1;
    return send(response, 200, {
      client_id: "https://clients.example/waybill.json",
      client_name: "Waybill",
      redirect_uris: ["http://127.0.0.1/callback"],
      grant_types: grants.slice(0, 2),
      ...native,
    });
  }
  if (pathname === "/token/revocation" && settings.revocation === "failing") {
    return send(response, 503, { error: "temporarily_unavailable" });
  }
  // What oidc-provider itself has at the place of OpenID Connect.
  if (pathname === "/.well-known/oauth-authorization-server" && settings.revocation === "none") {
    return send(response, 200, {
      issuer,
      authorization_endpoint: `${issuer}/auth`,
      token_endpoint: `${issuer}/token`,
      registration_endpoint: `${issuer}/reg`,
      code_challenge_methods_supported: ["S256"],
      authorization_response_iss_parameter_supported: true,
    });
  }
  if (pathname === "/openapi.json") return send(response, 200, document);
  if (pathname === "/api/whoami" || pathname === "/api/write") {
    const claims = await guard(request, response, "/api", pathname === "/api/write" ? "write" : undefined);
    if (claims !== undefined) send(response, 200, { who: claims.sub, scope: claims.scope });
    return;
  }
  if (pathname === "/sdk") {
    const claims = await guard(request, response, "/sdk");
    if (claims !== undefined) await people.run(claims, () => sdk(request, response));
    return;
  }
  return oidc(request, response);
});

const answers = {
  counts: () => counts,
  /** Makes every access token invalid that was given so far. */
  expire: () => {
    for (const jti of issued.keys()) refused.add(jti);
  },
  /** The same for one person, and nothing of theirs is renewed any more. */
  end: async (person) => {
    for (const [jti, who] of issued) if (who === person) refused.add(jti);
    for (const grant of grantsOf.get(person) ?? []) {
      await provider.RefreshToken.revokeByGrantId(grant);
      await (await provider.Grant.find(grant))?.destroy();
    }
  },
  set: (value) => {
    Object.assign(settings, value);
  },
};

process.on("message", async ({ id, ask, value }) => {
  process.send({ id, answer: (await answers[ask](value)) ?? null });
});
process.on("disconnect", () => process.exit(0));
process.send({ issuer });
