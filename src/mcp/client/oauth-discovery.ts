import type { AuthorizationServer } from "oauth4webapi";
import { parseJsonTextOrNone } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { LEGACY_REVISIONS } from "../protocol/revisions.ts";
import { SignInError } from "./http-authorizer.ts";
import { LOOPBACK } from "./http-options.ts";

/** Sends a request. */
export type Fetch = (to: string | URL, init?: RequestInit) => Promise<Response>;

/** Where the tokens of a server are had. */
export interface DiscoveredServer {
  readonly server: AuthorizationServer;
  /** The address that it was found by. */
  readonly address: string;
  /** It has no metadata; its endpoints are those of 2025-03-26. */
  readonly isGuessed: boolean;
  /** What the MCP server says of itself, if it does. */
  readonly resource: ResourceMetadata | undefined;
}

/** What an MCP server says of the tokens it takes (RFC 9728). */
interface ResourceMetadata {
  /** What tokens are asked for, as the server writes it. */
  readonly id: string;
  readonly servers: readonly string[];
  readonly scopes: readonly string[];
}

/** Finds the authorization server of an MCP server: the first that its metadata names, else the server's own origin. */
export async function discoverServer(
  serverUrl: URL,
  named: URL | undefined,
  fetch: Fetch,
): Promise<DiscoveredServer> {
  const resource = await findResource(serverUrl, named, fetch);
  const address = resource?.servers[0] ?? new URL("/", serverUrl).href;
  const found = await findMetadata(address, fetch);
  if (resource !== undefined && !covers(new URL(resource.id), serverUrl)) {
    throw new SignInError("unsafe", "The metadata of the server is that of another server.");
  }
  return { server: found ?? guessServer(address), address, isGuessed: found === undefined, resource };
}

/** Tells whether tokens may be sent to an address: encrypted, or without leaving this machine. */
export function isSafeEndpoint(address: string | undefined): boolean {
  const url = address === undefined ? undefined : parseUrl(address);
  return url !== undefined && (url.protocol === "https:" || LOOPBACK.test(url.hostname));
}

/** Reads the JSON object that a response holds, if it does. */
export async function readObject(response: Response): Promise<Record<string, unknown> | undefined> {
  const value = parseJsonTextOrNone(await response.text());
  return isPlainObject(value) ? value : undefined;
}

async function findResource(
  serverUrl: URL,
  named: URL | undefined,
  fetch: Fetch,
): Promise<ResourceMetadata | undefined> {
  try {
    const wellKnown = new URL(`/.well-known/oauth-protected-resource${pathOf(serverUrl)}`, serverUrl);
    wellKnown.search = serverUrl.search;
    let response = await ask(named ?? wellKnown, fetch);
    if (named === undefined && serverUrl.pathname !== "/" && isElsewhere(response)) {
      await discard(response);
      response = await ask(new URL("/.well-known/oauth-protected-resource", serverUrl), fetch);
    }
    if (response.ok) return toResource(await readObject(response));
    await discard(response);
  } catch (failure) {
    // A server that cannot be reached has metadata that is not known; any other has none that can be used.
    if (failure instanceof TypeError) throw failure;
  }
  return undefined;
}

function toResource(body: Readonly<Record<string, unknown>> | undefined): ResourceMetadata | undefined {
  const { resource: id, authorization_servers: servers = [], scopes_supported: scopes = [] } = body ?? {};
  if (typeof id !== "string" || parseUrl(id) === undefined) return undefined;
  if (!isTexts(servers) || !servers.every(isHttp) || !isTexts(scopes)) return undefined;
  return { id, servers, scopes };
}

/** Looks in the places of RFC 8414, then of OpenID Connect Discovery. */
async function findMetadata(address: string, fetch: Fetch): Promise<AuthorizationServer | undefined> {
  const url = new URL(address);
  const path = pathOf(url);
  const places = [
    `/.well-known/oauth-authorization-server${path}`,
    `/.well-known/openid-configuration${path}`,
    ...(path === "" ? [] : [`${path}/.well-known/openid-configuration`]),
  ];
  for (const place of places) {
    const response = await ask(new URL(place, url.origin), fetch);
    if (response.ok) return toServer(await readObject(response), address);
    await discard(response);
    if (!isElsewhere(response)) {
      throw new SignInError(
        "unavailable",
        `The authorization server answered with HTTP status ${response.status}.`,
      );
    }
  }
  return undefined;
}

/** Takes metadata of the issuer that was asked for alone (RFC 8414, 3.3); a slash at its end may be missing. */
function toServer(body: Readonly<Record<string, unknown>> | undefined, address: string): AuthorizationServer {
  const { issuer } = body ?? {};
  if (body === undefined || typeof issuer !== "string") throw unusable();
  if (issuer !== address && `${issuer}/` !== address) {
    throw new SignInError("wrong_issuer", "The metadata of the authorization server names another issuer.");
  }
  const optional = ["authorization_endpoint", "registration_endpoint"];
  if (!isHttp(body["token_endpoint"])) throw unusable();
  if (!optional.every((name) => body[name] === undefined || isHttp(body[name]))) throw unusable();
  const lists = [
    "response_types_supported",
    "code_challenge_methods_supported",
    "scopes_supported",
    "token_endpoint_auth_methods_supported",
  ];
  if (!lists.every((name) => body[name] === undefined || isTexts(body[name]))) throw unusable();
  const isNamed = body["authorization_response_iss_parameter_supported"] === true;
  return { ...body, issuer, authorization_response_iss_parameter_supported: isNamed };
}

/** The endpoints of an authorization server without metadata, as 2025-03-26 has them. */
function guessServer(address: string): AuthorizationServer {
  const at = (path: string): string => new URL(path, address).href;
  return {
    issuer: address,
    authorization_endpoint: at("/authorize"),
    token_endpoint: at("/token"),
    registration_endpoint: at("/register"),
  };
}

function unusable(): SignInError {
  return new SignInError("unusable", "The metadata of the authorization server cannot be used.");
}

/** Tells whether a token for a resource is one for the server: the same origin, and a path at or above the server's. */
function covers(resource: URL, server: URL): boolean {
  if (resource.origin !== server.origin || server.pathname.length < resource.pathname.length) return false;
  return `${pathOf(server)}/`.startsWith(`${pathOf(resource)}/`);
}

function ask(url: URL, fetch: Fetch): Promise<Response> {
  const [revision = ""] = LEGACY_REVISIONS;
  return fetch(url, { headers: { accept: "application/json", "mcp-protocol-version": revision } });
}

/** A refusal that says nothing of other places. */
function isElsewhere({ ok, status }: Response): boolean {
  return !ok && (status < 500 || status === 502);
}

async function discard(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => {});
}

function pathOf({ pathname }: URL): string {
  return pathname.replace(/\/$/, "");
}

function isHttp(value: unknown): boolean {
  return typeof value === "string" && /^https?:$/.test(parseUrl(value)?.protocol ?? "");
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}
