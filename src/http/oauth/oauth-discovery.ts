import type { AuthorizationServer } from "oauth4webapi";
import { isPlainObject, isStringList, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { LOOPBACK } from "../address-guard.ts";
import { SignInError } from "./oauth-authorizer.ts";

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
  // Before 2025-06-18 servers had no metadata of their own, and their authorization server was at their origin, whatever its issuer.
  const isLegacy = resource === undefined && named === undefined;
  const found = await findMetadata(address, fetch, isLegacy);
  if (resource !== undefined && !covers(new URL(resource.id), serverUrl)) {
    throw new SignInError("unsafe", "The metadata of the server is that of another server.");
  }
  return { server: found ?? guessServer(address), address, isGuessed: found === undefined, resource };
}

/** Where tokens are had, as somebody else than the server says: an authorization server, or its endpoints. */
export type AuthorizationPlace =
  | { readonly issuer: string }
  | { readonly authorizationUrl: string; readonly tokenUrl: string };

/**
 * Finds the authorization server that the user named, or else the one that the server itself names: only then the one that is named by
 * somebody who describes the server, and who could send people anywhere.
 */
export async function discoverAt(
  named: AuthorizationPlace,
  {
    serverUrl,
    fetch,
    isUsers,
  }: { readonly serverUrl: URL; readonly fetch: Fetch; readonly isUsers: boolean },
): Promise<DiscoveredServer> {
  const resource = await findResource(serverUrl, undefined, fetch).catch(() => undefined);
  const own = resource !== undefined && covers(new URL(resource.id), serverUrl) ? resource : undefined;
  const { servers: [said] = [], servers = [] } = own ?? {};
  const isSaid = said === undefined || ("issuer" in named && servers.includes(named.issuer));
  const place = isUsers || isSaid ? named : { issuer: said };
  if ("issuer" in place) {
    const server = await discoverIssuer(place.issuer, fetch);
    return { server, address: place.issuer, isGuessed: false, resource: own };
  }
  const { authorizationUrl, tokenUrl } = place;
  const issuer = new URL(tokenUrl).origin;
  const server = { issuer, authorization_endpoint: authorizationUrl, token_endpoint: tokenUrl };
  return { server, address: issuer, isGuessed: true, resource: own };
}

/** Finds what an authorization server says of itself; rejects with a `SignInError` where it says nothing that can be used. */
export async function discoverIssuer(issuer: string, fetch: Fetch): Promise<AuthorizationServer> {
  const server = await findMetadata(issuer, fetch);
  if (server !== undefined) return server;
  throw new SignInError("unusable", "The authorization server has no metadata where it should be.");
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
  if (!isStringList(servers) || !servers.every(isHttp) || !isStringList(scopes)) return undefined;
  return { id, servers, scopes };
}

/** Looks in the places of RFC 8414, then of OpenID Connect Discovery. */
async function findMetadata(
  address: string,
  fetch: Fetch,
  isLegacy = false,
): Promise<AuthorizationServer | undefined> {
  const url = new URL(address);
  const path = pathOf(url);
  const places = [
    `/.well-known/oauth-authorization-server${path}`,
    `/.well-known/openid-configuration${path}`,
    ...(path === "" ? [] : [`${path}/.well-known/openid-configuration`]),
  ];
  for (const place of places) {
    const response = await ask(new URL(place, url.origin), fetch);
    if (response.ok) return toServer(await readObject(response), address, isLegacy);
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

/**
 * Takes metadata of the issuer that was asked for alone (RFC 8414, 3.3); a slash at its end may be missing. As 2025-03-26 has it, the
 * issuer may be anywhere at the origin.
 */
function toServer(
  body: Readonly<Record<string, unknown>> | undefined,
  address: string,
  isLegacy: boolean,
): AuthorizationServer {
  const { issuer } = body ?? {};
  if (body === undefined || typeof issuer !== "string") throw unusable();
  const isNear = isLegacy && parseUrl(issuer)?.origin === new URL(address).origin;
  if (issuer !== address && `${issuer}/` !== address && !isNear) {
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
  if (!lists.every((name) => body[name] === undefined || isStringList(body[name]))) throw unusable();
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
  return fetch(url, { headers: { accept: "application/json" } });
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
