import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { StoredAuthorization } from "../src/mcp/index.ts";
import { listen } from "./mcp-servers/http-servers.ts";

/** An authorization server, an API and an MCP server with sessions, which say whose token they were shown. */
export interface EchoingUpstream {
  readonly origin: string;
  /** Requests that came over the session of one account with the token of another. */
  readonly mixed: string[];
  /** How often tokens were renewed, by account. */
  readonly renewed: Map<string, number>;
  /** Gives an account a login: what is kept of it after a person has been there. */
  logIn(account: string): StoredAuthorization;
  /** Makes the access tokens of an account invalid; they can be renewed. */
  expire(account: string): void;
  /** Makes all tokens of an account invalid. */
  revoke(account: string): void;
  /** Forgets all sessions. */
  forget(): void;
  close(): Promise<void>;
}

/** Starts one; nobody needs a token to list its tools. */
export async function startEchoingUpstream(): Promise<EchoingUpstream> {
  const access = new Map<string, string>();
  const refresh = new Map<string, string>();
  const sessions = new Map<string, string>();
  const mixed: string[] = [];
  const renewed = new Map<string, number>();
  let count = 0;
  const issue = (account: string) => {
    count += 1;
    access.set(`access-${count}`, account);
    refresh.set(`refresh-${count}`, account);
    return { access_token: `access-${count}`, refresh_token: `refresh-${count}`, token_type: "Bearer" };
  };
  const send = (
    response: ServerResponse,
    status: number,
    body: unknown,
    headers: Record<string, string> = {},
  ) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    return response.end(JSON.stringify(body));
  };
  const tokenIn = ({ headers }: IncomingMessage) => /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1];
  const refuse = (response: ServerResponse) =>
    send(response, 401, { error: "invalid_token" }, { "www-authenticate": 'Bearer error="invalid_token"' });

  const answerToken = (body: string, response: ServerResponse): unknown => {
    const form = new URLSearchParams(body);
    const code = /^code-of-(.+)$/.exec(form.get("code") ?? "")?.[1];
    if (code !== undefined) return send(response, 200, issue(code));
    const token = form.get("refresh_token") ?? "";
    const account = refresh.get(token);
    refresh.delete(token);
    if (account === undefined) return send(response, 400, { error: "invalid_grant" });
    renewed.set(account, (renewed.get(account) ?? 0) + 1);
    return send(response, 200, issue(account));
  };
  const answerMcp = (request: IncomingMessage, body: string, response: ServerResponse): unknown => {
    const session = String(request.headers["mcp-session-id"] ?? "");
    if (request.method !== "POST") {
      if (request.method === "DELETE") sessions.delete(session);
      return send(response, request.method === "DELETE" ? 200 : 405, {});
    }
    const token = tokenIn(request);
    const account = token === undefined ? "nobody" : access.get(token);
    if (account === undefined) return refuse(response);
    const { id, method } = JSON.parse(body) as { readonly id?: number; readonly method: string };
    const answer = (result: object, headers: Record<string, string> = {}) =>
      send(response, 200, { jsonrpc: "2.0", id, result }, headers);
    if (method === "initialize") {
      const fresh = randomUUID();
      sessions.set(fresh, account);
      const serverInfo = { name: "echo", version: "1.0.0" };
      const made = { protocolVersion: "2025-11-25", capabilities: { tools: {}, resources: {} }, serverInfo };
      return answer(made, { "mcp-session-id": fresh });
    }
    const owner = sessions.get(session);
    if (owner === undefined) return send(response, 404, {});
    if (owner !== account) mixed.push(`${account} over the session of ${owner}`);
    if (id === undefined) return send(response, 202, {});
    if (method === "tools/list") {
      const annotations = { readOnlyHint: true };
      return answer({ tools: [{ name: "whoami", inputSchema: { type: "object" }, annotations }] });
    }
    if (account === "nobody") return refuse(response);
    if (method === "resources/list")
      return answer({ resources: [{ uri: "notes:own", name: `notes of ${account}` }] });
    return answer({ content: [{ type: "text", text: account }] });
  };
  const listening = await listen(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    switch (request.url) {
      case "/openapi.json":
        return send(response, 200, documentOf(origin));
      case "/.well-known/oauth-authorization-server":
        return send(response, 200, {
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
        });
      case "/token":
        return answerToken(body, response);
      case "/mcp":
        return answerMcp(request, body, response);
      default: {
        const account = access.get(tokenIn(request) ?? "");
        return account === undefined ? refuse(response) : send(response, 200, { account });
      }
    }
  });
  const { origin } = new URL(listening.url);
  const drop = (tokens: Map<string, string>, account: string): void => {
    for (const [token, owner] of tokens) if (owner === account) tokens.delete(token);
  };
  return {
    origin,
    mixed,
    renewed,
    logIn: (account) => {
      const client = { client_id: "waybill", issuer: origin };
      const tokens = { ...issue(account), issuer: origin };
      const server = { issuer: origin, token_endpoint: `${origin}/token` };
      return {
        issuers: [{ issuer: origin, client, tokens }],
        current: origin,
        server: `${origin}/api`,
        found: { server, address: origin, isGuessed: false },
      };
    },
    expire: (account) => drop(access, account),
    revoke: (account) => {
      drop(access, account);
      drop(refresh, account);
    },
    forget: () => sessions.clear(),
    close: () => listening.close(),
  };
}

function documentOf(origin: string): object {
  return {
    openapi: "3.1.0",
    info: { title: "Echo", version: "1.0.0" },
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
