import { createHash, randomUUID } from "node:crypto";
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
}

interface Issued {
  readonly access: Set<string>;
  readonly refresh: Set<string>;
  readonly codes: Map<string, string>;
}

/** Starts both servers on one port. */
export async function serveWithOAuth(): Promise<OAuthServer> {
  const issued: Issued = { access: new Set(), refresh: new Set(), codes: new Map() };
  const grants: string[] = [];
  const clientSecret = randomUUID();
  const listening = await listen(async (request, response) => {
    const base = `http://${request.headers.host}`;
    const url = new URL(request.url ?? "/", base);
    if (url.pathname === "/mcp") return serveMcp(request, response, issued, base);
    if (url.pathname.startsWith("/.well-known/")) return sendMetadata(response, url.pathname, base);
    if (url.pathname === "/register") {
      const metadata = JSON.parse(await readBody(request));
      return sendJson(response, { ...metadata, client_id: randomUUID() }, 201);
    }
    if (url.pathname === "/authorize") return consent(url, response, issued);
    if (url.pathname !== "/token") return refuse(response, 404);
    const params = new URLSearchParams(await readBody(request));
    grants.push(String(params.get("grant_type")));
    if (!isGranted(params, request, issued, clientSecret))
      return sendJson(response, { error: "invalid_grant" }, 400);
    sendJson(response, issue(issued, params.get("grant_type") !== "client_credentials"));
  });
  const expire = () => issued.access.clear();
  const revoke = () => {
    expire();
    issued.refresh.clear();
  };
  return { ...listening, grants, clientSecret, expire, revoke };
}

async function serveMcp(
  request: IncomingMessage,
  response: ServerResponse,
  { access }: Issued,
  base: string,
) {
  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
  if (token === undefined || !access.has(token)) {
    const resource = `${base}/.well-known/oauth-protected-resource/mcp`;
    return refuse(response, 401, { "www-authenticate": `Bearer resource_metadata="${resource}"` });
  }
  if (request.method !== "POST") return refuse(response, 405);
  const { id, method } = JSON.parse(await readBody(request));
  if (id === undefined) return refuse(response, 202);
  const serverInfo = { name: "guarded", version: "1.0.0" };
  const result =
    method === "initialize"
      ? { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo }
      : { ok: true };
  sendJson(response, { jsonrpc: "2.0", id, result });
}

function sendMetadata(response: ServerResponse, path: string, base: string): void {
  if (path.startsWith("/.well-known/oauth-protected-resource")) {
    sendJson(response, { resource: `${base}/mcp`, authorization_servers: [base] });
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
  });
}

function consent(url: URL, response: ServerResponse, { codes }: Issued): void {
  const code = randomUUID();
  codes.set(code, String(url.searchParams.get("code_challenge")));
  const back = new URL(String(url.searchParams.get("redirect_uri")));
  back.searchParams.set("code", code);
  back.searchParams.set("state", String(url.searchParams.get("state")));
  refuse(response, 302, { location: back.href });
}

function isGranted(
  params: URLSearchParams,
  request: IncomingMessage,
  issued: Issued,
  secret: string,
): boolean {
  switch (params.get("grant_type")) {
    case "authorization_code": {
      const code = String(params.get("code"));
      const challenge = issued.codes.get(code);
      issued.codes.delete(code);
      return (
        challenge ===
        createHash("sha256")
          .update(String(params.get("code_verifier")))
          .digest("base64url")
      );
    }
    case "refresh_token":
      return issued.refresh.delete(String(params.get("refresh_token")));
    case "client_credentials":
      return request.headers.authorization === `Basic ${Buffer.from(`robot:${secret}`).toString("base64")}`;
    default:
      return false;
  }
}

function issue({ access, refresh }: Issued, isRenewable: boolean): Record<string, unknown> {
  const tokens = { access_token: randomUUID(), token_type: "Bearer", expires_in: 3_600 };
  access.add(tokens.access_token);
  if (!isRenewable) return tokens;
  const refresh_token = randomUUID();
  refresh.add(refresh_token);
  return { ...tokens, refresh_token };
}
