import {
  type AuthorizationServer,
  allowInsecureRequests,
  authorizationCodeGrantRequest,
  type ClientAuth,
  ClientSecretPost,
  calculatePKCECodeChallenge,
  customFetch,
  expectNoState,
  generateRandomCodeVerifier,
  genericTokenEndpointRequest,
  None,
  OperationProcessingError,
  processGenericTokenEndpointResponse,
  ResponseBodyError,
  UnsupportedOperationError,
  validateAuthResponse,
} from "oauth4webapi";
import { parseJsonTextOrNone } from "../../core/json/json-text.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import { clientSecretBasic } from "../../http/client-secret-basic.ts";
import { SignInError } from "./http-authorizer.ts";
import {
  type DiscoveredServer,
  discoverServer,
  type Fetch,
  isSafeEndpoint,
  readObject,
} from "./oauth-discovery.ts";
import type { OAuthClientInformation, OAuthIssuer, OAuthStore, OAuthTokens } from "./oauth-store.ts";

/** What one sign-in is for. */
export interface SignInOptions {
  readonly serverUrl: URL;
  /** Sends requests to authorization servers, as far as they may be asked. */
  readonly fetch: Fetch;
  /** Where the server says its metadata is. */
  readonly resourceMetadataUrl: URL | undefined;
  /** The scope that the server asks for, or that was worked out from it. */
  readonly scope: string | undefined;
  /** More scopes are wanted, which no refresh token brings. */
  readonly isWider: boolean;
}

/** Signing in to one authorization server. */
interface Flow extends DiscoveredServer {
  readonly at: OAuthIssuer;
  readonly client: OAuthClientInformation;
  /** What is asked for; a client that stands for itself may ask for something else. */
  readonly scope: string | undefined;
  readonly fetch: Fetch;
}

/** What is forgotten when an authorization server answers with these errors; the sign-in then starts over, once. */
const FORGOTTEN: ReadonlyMap<string, readonly ("client" | "tokens")[]> = new Map([
  ["invalid_client", ["client", "tokens"]],
  ["unauthorized_client", ["client", "tokens"]],
  ["invalid_grant", ["tokens"]],
]);

/** The errors of OAuth that are named; anything else a server says is foreign text. */
const KNOWN_ERRORS: ReadonlySet<string> = new Set([
  ...FORGOTTEN.keys(),
  "invalid_request",
  "invalid_scope",
  "invalid_target",
  "unsupported_grant_type",
  "server_error",
  "temporarily_unavailable",
]);

/**
 * Gets tokens for a server as MCP's authorization says: with the refresh token or the client's own credentials ("renewed"), else with
 * a person's consent ("consented"), unless nobody gave it.
 */
export async function signIn(
  store: OAuthStore,
  options: SignInOptions,
): Promise<"renewed" | "consented" | "nobody"> {
  const begin = async (): Promise<Flow | undefined> => {
    const flow = await prepare(store, options);
    return (await renew(store, flow, options.isWider)) ? undefined : flow;
  };
  const flow = await begin().catch((failure: unknown) => {
    if (forgottenBy(failure).length === 0) throw failure;
    return begin();
  });
  if (flow === undefined) return "renewed";
  return (await askForConsent(store, flow)) ? "consented" : "nobody";
}

function forgottenBy(failure: unknown): readonly ("client" | "tokens")[] {
  return (failure instanceof SignInError && FORGOTTEN.get(failure.oauthError ?? "")) || [];
}

async function prepare(store: OAuthStore, options: SignInOptions): Promise<Flow> {
  const { serverUrl, fetch, resourceMetadataUrl } = options;
  const found = await discoverServer(serverUrl, resourceMetadataUrl, fetch);
  const { server, address } = found;
  const at = { issuer: server.issuer };
  await store.saveDiscoveryState?.({
    authorizationServerUrl: address,
    ...(resourceMetadataUrl !== undefined && { resourceMetadataUrl: resourceMetadataUrl.href }),
  });
  const scope = selectScope(store, found, options.scope);
  const known = await store.clientInformation(at);
  const client = ofIssuer(known, at) ?? (await introduce(store, { ...found, at, scope, fetch }));
  return { ...found, at, client, scope, fetch };
}

/** Credentials that another authorization server gave are as good as none. */
function ofIssuer<T extends { readonly issuer?: string | undefined }>(
  stored: T | undefined,
  { issuer }: OAuthIssuer,
): T | undefined {
  const from = stored?.issuer;
  return typeof from !== "string" || from.replace(/\/$/, "") === issuer.replace(/\/$/, "")
    ? stored
    : undefined;
}

/** The scope of the challenge, else all that the server knows, else the client's own; with a refresh token where that is a scope. */
function selectScope(
  { clientMetadata }: OAuthStore,
  { server, resource }: DiscoveredServer,
  asked: string | undefined,
): string | undefined {
  const scope = asked || resource?.scopes.join(" ") || clientMetadata.scope;
  if (!scope || !server.scopes_supported?.includes("offline_access")) return scope || undefined;
  const isWanted = clientMetadata.grant_types?.includes("refresh_token") === true;
  return isWanted && !scope.split(" ").includes("offline_access") ? `${scope} offline_access` : scope;
}

/** Makes a client known: by the address that describes it where the authorization server reads such, else by registering it. */
async function introduce(store: OAuthStore, flow: Omit<Flow, "client">): Promise<OAuthClientInformation> {
  const { server, at } = flow;
  const { clientMetadataUrl } = store;
  const isRead = server["client_id_metadata_document_supported"] === true;
  const client =
    isRead && clientMetadataUrl !== undefined
      ? { client_id: clientMetadataUrl, ...at }
      : { ...(await register(store, flow)), ...at };
  await store.saveClientInformation?.(client, at);
  return client;
}

async function register(
  store: OAuthStore,
  { server, scope, fetch }: Omit<Flow, "client">,
): Promise<OAuthClientInformation> {
  if (store.saveClientInformation === undefined) {
    throw new SignInError("wrong_issuer", "The client belongs to another authorization server.");
  }
  if (server.registration_endpoint === undefined) {
    throw new SignInError("unusable", "The authorization server registers no clients; give a clientId.");
  }
  const response = await fetch(server.registration_endpoint, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({ ...store.clientMetadata, ...(scope !== undefined && { scope }) }),
  });
  const body = await readObject(response);
  if (!response.ok)
    throw new SignInError("refused", "The authorization server does not register this client.");
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: method } = body ?? {};
  if (typeof id !== "string" || id === "") {
    throw new SignInError("unusable", "The authorization server registered the client without an id.");
  }
  return {
    client_id: id,
    ...(typeof secret === "string" && secret !== "" && { client_secret: secret }),
    ...(typeof method === "string" && { token_endpoint_auth_method: method }),
  };
}

/** Gets tokens that need no consent, if there is a way. */
async function renew(store: OAuthStore, flow: Flow, isWider: boolean): Promise<boolean> {
  if (store.redirectUrl === undefined) {
    const params = await store.prepareTokenRequest?.(flow.scope);
    if (params === undefined) throw new SignInError("unusable", "The client has no grant of its own.");
    await requestTokens(store, flow, { params, scope: params.get("scope") ?? "" });
    return true;
  }
  const tokens = ofIssuer(await store.tokens(flow.at), flow.at);
  if (tokens?.refresh_token === undefined || isWider) return false;
  const { refresh_token, scope } = tokens;
  const params = new URLSearchParams({ grant_type: "refresh_token", refresh_token });
  try {
    await requestTokens(store, flow, { params, scope, refresh_token });
    return true;
  } catch (failure) {
    const isFinal =
      failure instanceof SignInError &&
      (failure.reason === "unsafe" ||
        (failure.reason === "refused" && failure.oauthError !== "server_error"));
    if (isFinal) throw failure;
    return false;
  }
}

/** Sends a person to the authorization server, and exchanges what they come back with. */
async function askForConsent(store: OAuthStore, flow: Flow): Promise<boolean> {
  const { server, client, scope, resource, at } = flow;
  const redirectUri = String(store.redirectUrl);
  const verifier = generateRandomCodeVerifier();
  const url = authorizationEndpoint(server);
  const params = {
    response_type: "code",
    client_id: client.client_id,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    redirect_uri: redirectUri,
    state: await store.state?.(),
    scope,
    // Without a consent of its own, no refresh token is given (OpenID Connect Core, 11).
    prompt: scope?.split(" ").includes("offline_access") ? "consent" : undefined,
    resource: resource?.id,
  };
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  await store.redirectToAuthorization(url);
  const grant = store.takeGrant?.();
  if (grant === undefined) return false;
  if (!flow.isGuessed && grant.iss !== undefined && grant.iss !== at.issuer) throw wrongIssuer();
  const back = new URLSearchParams({
    code: grant.code,
    ...(grant.iss !== undefined && !flow.isGuessed && { iss: grant.iss }),
  });
  await requestTokens(store, flow, { back, redirectUri, verifier, scope: scope ?? "" });
  return true;
}

function authorizationEndpoint(server: AuthorizationServer): URL {
  const { authorization_endpoint: endpoint, response_types_supported: types } = server;
  const methods = server.code_challenge_methods_supported;
  if (endpoint === undefined || types?.includes("code") === false || methods?.includes("S256") === false) {
    throw new SignInError(
      "unusable",
      "The authorization server gives no codes that are bound to a client (PKCE, S256).",
    );
  }
  return new URL(endpoint);
}

function wrongIssuer(): SignInError {
  return new SignInError("wrong_issuer", "The authorization came back from another authorization server.");
}

/** What is sent to the token endpoint. */
type TokenGrant = {
  /** What was asked for: a server that names no scope gave that. */
  readonly scope: string | undefined;
} & (
  | { readonly params: URLSearchParams; readonly refresh_token?: string }
  | { readonly back: URLSearchParams; readonly redirectUri: string; readonly verifier: string }
);

/** Asks for tokens and keeps them; what a refusal makes worthless is forgotten. */
async function requestTokens(store: OAuthStore, flow: Flow, grant: TokenGrant): Promise<void> {
  const { at } = flow;
  let tokens: OAuthTokens;
  try {
    tokens = await sendGrant(store, flow, grant);
  } catch (thrown) {
    const failure = toFailure(thrown);
    for (const what of forgottenBy(failure)) await store.invalidateCredentials?.(what, at);
    throw failure;
  }
  const scope = tokens.scope ?? grant.scope;
  await store.saveTokens(
    {
      ...("refresh_token" in grant && { refresh_token: grant.refresh_token }),
      ...tokens,
      ...(scope ? { scope } : {}),
      ...at,
    },
    at,
  );
}

async function sendGrant(store: OAuthStore, flow: Flow, grant: TokenGrant): Promise<OAuthTokens> {
  const { server, resource } = flow;
  const client = { client_id: flow.client.client_id };
  if (!isSafeEndpoint(server.token_endpoint)) {
    throw new SignInError("unsafe", "The token endpoint is neither https nor on this machine.");
  }
  const auth = clientAuthOf(store, flow);
  const options = { [customFetch]: toTokenFetch(flow.fetch), [allowInsecureRequests]: true };
  const more = resource === undefined ? {} : { resource: resource.id };
  let response: Response;
  if ("params" in grant) {
    const params = new URLSearchParams(grant.params);
    for (const [name, value] of Object.entries(more)) params.set(name, value);
    const type = params.get("grant_type") ?? "";
    response = await genericTokenEndpointRequest(server, client, auth, type, params, options);
  } else {
    const { back, redirectUri, verifier } = grant;
    const validated = validateAuthResponse(server, client, back, expectNoState);
    const given = { ...options, additionalParameters: more };
    response = await authorizationCodeGrantRequest(
      server,
      client,
      auth,
      validated,
      redirectUri,
      verifier,
      given,
    );
  }
  const tokens = await processGenericTokenEndpointResponse(server, client, response);
  if (tokens.token_type === "bearer" && /^[\x21-\x7e]+$/.test(tokens.access_token)) return { ...tokens };
  throw new SignInError("unusable", "The authorization server gave a token that is no bearer token.");
}

/** Prefers what the client was registered with, then the header, then the form, as far as the authorization server takes them. */
function clientAuthOf(store: OAuthStore, { server, client, at }: Flow): ClientAuth {
  if (store.addClientAuthentication !== undefined) {
    return (_server, _client, body, headers) =>
      store.addClientAuthentication?.(headers, body, String(server.token_endpoint), at);
  }
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: own = "" } = client;
  if (secret === undefined) return None();
  const taken = server.token_endpoint_auth_methods_supported ?? [];
  const isTaken = (method: string): boolean => taken.length === 0 || taken.includes(method);
  const methods = [own, "client_secret_basic", "client_secret_post", "none"].filter(isTaken);
  switch (methods.find((method) => AUTH_METHODS.has(method)) ?? "client_secret_post") {
    case "client_secret_basic":
      return (_server, _client, _body, headers) =>
        headers.set("authorization", clientSecretBasic(id, secret));
    case "none":
      return None();
    default:
      return ClientSecretPost(secret);
  }
}

const AUTH_METHODS: ReadonlySet<string> = new Set(["client_secret_basic", "client_secret_post", "none"]);

/** Makes a `fetch` for the OAuth library, which is stricter about answers than authorization servers are. */
function toTokenFetch(fetch: Fetch) {
  return async (
    url: string,
    request: {
      readonly method: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: URLSearchParams;
    },
  ): Promise<Response> => {
    const { method, body } = request;
    const { "user-agent": _unused, ...headers } = request.headers;
    const response = await fetch(url, { method, headers, body });
    const answer = parseJsonTextOrNone(await response.text());
    if (!isPlainObject(answer)) return new Response(null, { status: 502 });
    const isToken = response.ok && typeof answer["access_token"] === "string";
    if (!isToken && typeof answer["error"] === "string") return Response.json(answer, { status: 400 });
    return Response.json(pickTokens(answer), { status: response.ok ? 200 : 502 });
  };
}

/** An id token is of no use here, and what is null or empty is not there. */
function pickTokens(answer: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const names = ["access_token", "token_type", "expires_in", "refresh_token", "scope"];
  const given = names.map((name) => [name, answer[name]]);
  return Object.fromEntries(given.filter(([, value]) => value !== null && value !== ""));
}

/** The library keeps whole answers in its errors, tokens included; only what says what is wrong is taken over. */
function toFailure(thrown: unknown): unknown {
  if (thrown instanceof ResponseBodyError) {
    const { error } = thrown;
    if (!KNOWN_ERRORS.has(error)) return new SignInError("refused", "The authorization server refused.");
    return new SignInError("refused", `The authorization server refused with ${error}.`, error);
  }
  if (thrown instanceof OperationProcessingError || thrown instanceof UnsupportedOperationError) {
    return new SignInError("unusable", "The authorization server gave an answer that is no token.");
  }
  return thrown;
}
