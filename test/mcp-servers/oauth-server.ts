import { createHash, type KeyObject, randomUUID, verify } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Listening, listen, readBody, refuse, sendJson } from "./http-servers.ts";

/** An MCP server that wants tokens, with the authorization server that gives them. */
export interface OAuthServer extends Listening {
  /** What was asked for at the token endpoint, by grant type. */
  readonly grants: string[];
  /** Makes every access token invalid; those to renew them with stay good, each once. */
  expire(): void;
  /** Makes every token invalid. */
  revoke(): void;
  /** The secret of the client that stands for itself. */
  readonly clientSecret: string;
  /** The address of the authorization server. */
  readonly issuer: string;
  /** What people were asked to consent to. */
  readonly consents: { readonly client: string; readonly scope: string | null }[];
  /** Clients that were registered here. */
  readonly registered: string[];
  /** Every client that the token endpoint was shown, as it came. */
  readonly shown: string[];
  readonly settings: OAuthSettings;
  /** Has the MCP server take the tokens of another authorization server, and no others. */
  moveTo(other: OAuthServer): void;
  isGood(token: string): boolean;
}

/** What a test may change while the servers run. */
export interface OAuthSettings {
  /** The scopes that a call needs at the time. */
  needs: () => string;
  /** Whether tokens come without their scope. */
  hidesScope: boolean;
  /** Whether a client may be an address that describes it. */
  readsClientMetadata: boolean;
  /** Has the client that stands for itself prove it with a key instead of its secret. */
  publicKey: KeyObject | undefined;
}

interface Issued {
  /** Access tokens and their scopes. */
  readonly access: Map<string, string>;
  readonly refresh: Map<string, string>;
  /** Challenges and scopes. */
  readonly codes: Map<string, { readonly challenge: string; readonly scope: string }>;
}

/** Starts both servers on one port. */
export async function serveWithOAuth(): Promise<OAuthServer> {
  const issued: Issued = { access: new Map(), refresh: new Map(), codes: new Map() };
  const settings: OAuthSettings = {
    needs: () => "",
    hidesScope: false,
    readsClientMetadata: false,
    publicKey: undefined,
  };
  const heard = { grants: [], consents: [], registered: [], shown: [] } as Pick<
    OAuthServer,
    "grants" | "consents" | "registered" | "shown"
  >;
  const clientSecret = randomUUID();
  let other: OAuthServer | undefined;
  const isGood = (token: string) => issued.access.has(token);
  const listening = await listen(async (request, response) => {
    const base = `http://${request.headers.host}`;
    const url = new URL(request.url ?? "/", base);
    if (url.pathname === "/mcp") {
      const scopeOf = (token: string) =>
        other?.isGood(token) ? "" : other ? undefined : issued.access.get(token);
      return serveMcp(request, response, { scopeOf, needs: settings.needs(), base });
    }
    if (url.pathname.startsWith("/.well-known/")) {
      return sendMetadata(response, url.pathname, { base, issuer: other?.issuer ?? base, settings });
    }
    if (url.pathname === "/register") {
      const client_id = randomUUID();
      heard.registered.push(client_id);
      const metadata = JSON.parse(await readBody(request));
      const secret = metadata.token_endpoint_auth_method === "none" ? {} : { client_secret: randomUUID() };
      return sendJson(response, { ...metadata, ...secret, client_id }, 201);
    }
    if (url.pathname === "/authorize") {
      heard.consents.push({
        client: String(url.searchParams.get("client_id")),
        scope: url.searchParams.get("scope"),
      });
      return consent(url, response, issued);
    }
    if (url.pathname !== "/token") return refuse(response, 404);
    const params = new URLSearchParams(await readBody(request));
    heard.grants.push(String(params.get("grant_type")));
    heard.shown.push(`${request.headers.authorization ?? ""} ${params.get("client_id") ?? ""}`);
    const scope = grantedScope(params, request, issued, { secret: clientSecret, settings, base });
    if (scope === undefined) return sendJson(response, { error: "invalid_grant" }, 400);
    sendJson(response, issue(issued, scope, params.get("grant_type") !== "client_credentials", settings));
  });
  const expire = () => issued.access.clear();
  const revoke = () => {
    expire();
    issued.refresh.clear();
  };
  const moveTo = (next: OAuthServer) => {
    other = next;
  };
  const issuer = new URL(listening.url).origin;
  return { ...listening, ...heard, clientSecret, expire, revoke, issuer, settings, moveTo, isGood };
}

interface Guard {
  /** The scope of a token that is good. */
  scopeOf(token: string): string | undefined;
  readonly needs: string;
  readonly base: string;
}

async function serveMcp(request: IncomingMessage, response: ServerResponse, guard: Guard) {
  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
  const scope = token === undefined ? undefined : guard.scopeOf(token);
  const metadata = `resource_metadata="${guard.base}/.well-known/oauth-protected-resource/mcp"`;
  if (scope === undefined) return refuse(response, 401, { "www-authenticate": `Bearer ${metadata}` });
  if (request.method !== "POST") return refuse(response, 405);
  const { id, method } = JSON.parse(await readBody(request));
  if (id === undefined) return refuse(response, 202);
  const { needs } = guard;
  const isEnough = needs.split(" ").every((each) => each === "" || scope.split(" ").includes(each));
  if (method === "tools/call" && !isEnough) {
    const challenge = `Bearer error="insufficient_scope", scope="${needs}", ${metadata}`;
    return refuse(response, 403, { "www-authenticate": challenge });
  }
  const serverInfo = { name: "guarded", version: "1.0.0" };
  const result =
    method === "initialize"
      ? { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo }
      : { ok: true };
  sendJson(response, { jsonrpc: "2.0", id, result });
}

function sendMetadata(
  response: ServerResponse,
  path: string,
  { base, issuer, settings }: { base: string; issuer: string; settings: OAuthSettings },
): void {
  if (path.startsWith("/.well-known/oauth-protected-resource")) {
    sendJson(response, { resource: `${base}/mcp`, authorization_servers: [issuer] });
    return;
  }
  sendJson(response, {
    issuer: base,
    authorization_endpoint: `${base}/authorize`,
    token_endpoint: `${base}/token`,
    registration_endpoint: `${base}/register`,
    response_types_supported: ["code"],
    grant_types_supported: ["authorization_code", "refresh_token", "client_credentials"],
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: ["none", "client_secret_basic"],
    client_id_metadata_document_supported: settings.readsClientMetadata,
  });
}

function consent(url: URL, response: ServerResponse, { codes }: Issued): void {
  const code = randomUUID();
  const { searchParams } = url;
  codes.set(code, {
    challenge: String(searchParams.get("code_challenge")),
    scope: searchParams.get("scope") ?? "",
  });
  const back = new URL(String(searchParams.get("redirect_uri")));
  back.searchParams.set("code", code);
  back.searchParams.set("state", String(searchParams.get("state")));
  refuse(response, 302, { location: back.href });
}

interface Robot {
  readonly secret: string;
  readonly settings: OAuthSettings;
  readonly base: string;
}

/** The scope of what is granted, if anything is. */
function grantedScope(
  params: URLSearchParams,
  request: IncomingMessage,
  issued: Issued,
  robot: Robot,
): string | undefined {
  switch (params.get("grant_type")) {
    case "authorization_code": {
      const code = String(params.get("code"));
      const asked = issued.codes.get(code);
      issued.codes.delete(code);
      const hash = createHash("sha256").update(String(params.get("code_verifier")));
      return asked?.challenge === hash.digest("base64url") ? asked.scope : undefined;
    }
    case "refresh_token": {
      const token = String(params.get("refresh_token"));
      const scope = issued.refresh.get(token);
      issued.refresh.delete(token);
      return scope;
    }
    case "client_credentials":
      return isRobot(params, request, robot) ? (params.get("scope") ?? "") : undefined;
    default:
      return undefined;
  }
}

function isRobot(
  params: URLSearchParams,
  request: IncomingMessage,
  { secret, settings, base }: Robot,
): boolean {
  const { publicKey } = settings;
  if (publicKey === undefined) {
    return request.headers.authorization === `Basic ${Buffer.from(`robot:${secret}`).toString("base64")}`;
  }
  const [head = "", body = "", signature = ""] = String(params.get("client_assertion")).split(".");
  const claims = JSON.parse(Buffer.from(body, "base64url").toString());
  const key = { key: publicKey, dsaEncoding: "ieee-p1363" } as const;
  const isSigned = verify("sha256", Buffer.from(`${head}.${body}`), key, Buffer.from(signature, "base64url"));
  return isSigned && claims.sub === "robot" && claims.iss === "robot" && claims.aud === base;
}

function issue(
  { access, refresh }: Issued,
  scope: string,
  isRenewable: boolean,
  { hidesScope }: OAuthSettings,
): Record<string, unknown> {
  const tokens = {
    access_token: randomUUID(),
    token_type: "Bearer",
    expires_in: 3_600,
    ...(hidesScope || scope === "" ? {} : { scope }),
  };
  access.set(tokens.access_token, scope);
  if (!isRenewable) return tokens;
  const refresh_token = randomUUID();
  refresh.set(refresh_token, scope);
  return { ...tokens, refresh_token };
}
