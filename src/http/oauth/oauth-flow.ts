import {
  type AuthorizationServer,
  authorizationCodeGrantRequest,
  type ClientAuth,
  calculatePKCECodeChallenge,
  expectNoState,
  generateRandomCodeVerifier,
  type TokenEndpointResponse,
  validateAuthResponse,
} from "oauth4webapi";
import { parseUrl } from "../../core/text/parse-url.ts";
import { consentOnDevice } from "./device-consent.ts";
import { mayAsk, SignInError } from "./oauth-authorizer.ts";
import { type DiscoveredServer, discoverServer, type Fetch, readObject } from "./oauth-discovery.ts";
import {
  loginIn,
  type OAuthClientInformation,
  type OAuthIssuer,
  type OAuthStore,
  type OAuthTokens,
} from "./oauth-store.ts";
import { askForTokens, clientAuthBySecret, requestGrant, toSignInFailure } from "./token-request.ts";

/** What a sign-in works with. */
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
  /** Finds the authorization server. @default as MCP says */
  readonly discover?: (() => Promise<DiscoveredServer>) | undefined;
  /** Has a person consent on another device, shown where and with which code; @default they are sent to the authorization server */
  readonly onDevice?: ((prompt: DevicePrompt) => void) | undefined;
  /** Stops waiting for a person on another device. */
  readonly signal?: AbortSignal | undefined;
}

/** Where a person consents on another device (RFC 8628). */
export interface DevicePrompt {
  readonly url: string;
  readonly code: string;
  /** The address with the code in it. */
  readonly wholeUrl?: string | undefined;
}

/** A sign-in that knows where to go, and as which client. */
export interface Flow extends DiscoveredServer {
  readonly at: OAuthIssuer;
  readonly client: OAuthClientInformation;
  /** What is asked for; a client that stands for itself may ask for something else. */
  readonly scope: string | undefined;
  readonly fetch: Fetch;
  readonly serverUrl: URL;
}

/** What is forgotten when an authorization server answers with these errors; the sign-in then starts over, once. */
const FORGOTTEN: ReadonlyMap<string, readonly ("client" | "tokens")[]> = new Map([
  ["invalid_client", ["client", "tokens"]],
  ["unauthorized_client", ["client", "tokens"]],
  ["invalid_grant", ["tokens"]],
]);

/**
 * Gets tokens for a server as MCP's authorization says: with the refresh token or the client's own credentials ("renewed"), else with
 * a person's consent ("consented"), unless nobody gave it.
 */
export async function signIn(
  store: OAuthStore,
  options: SignInOptions,
): Promise<"renewed" | "consented" | "nobody"> {
  if (loginIn(store) !== undefined) return (await renewLogin(store, options)) ? "renewed" : "nobody";
  const begin = async (): Promise<Flow | undefined> => {
    const flow = await prepare(store, options);
    return (await renew(store, flow, options.isWider)) ? undefined : flow;
  };
  const flow = await begin().catch((failure: unknown) => {
    // A client that stands for itself has nothing else to try, and would be refused again.
    if (forgottenBy(failure).length === 0 || store.redirectUrl === undefined) throw failure;
    return begin();
  });
  if (flow === undefined) return "renewed";
  if (options.onDevice !== undefined) {
    await consentOnDevice(store, flow, options);
    return "consented";
  }
  return (await askForConsent(store, flow)) ? "consented" : "nobody";
}

/** Renews the tokens of a login where they were given; false where only another login helps. */
async function renewLogin(store: OAuthStore, { serverUrl, fetch, isWider }: SignInOptions): Promise<boolean> {
  const found = await loginIn(store)?.found();
  if (found === undefined || isWider) return false;
  const at = { issuer: found.server.issuer };
  const [client, tokens] = [await store.clientInformation(at), await store.tokens(at)];
  if (client === undefined || tokens?.refresh_token === undefined) return false;
  const { refresh_token, scope } = tokens;
  const params = new URLSearchParams({ grant_type: "refresh_token", refresh_token });
  const flow = { ...found, at, client, scope, fetch, serverUrl };
  try {
    await requestTokens(store, flow, { params, scope, refresh_token });
    return true;
  } catch (failure) {
    if (forgottenBy(failure).length > 0) return false;
    throw failure;
  }
}

function forgottenBy(failure: unknown): readonly ("client" | "tokens")[] {
  return (failure instanceof SignInError && FORGOTTEN.get(failure.oauthError ?? "")) || [];
}

async function prepare(store: OAuthStore, options: SignInOptions): Promise<Flow> {
  const { serverUrl, fetch, resourceMetadataUrl } = options;
  const found = await (options.discover?.() ?? discoverServer(serverUrl, resourceMetadataUrl, fetch));
  const { server, address } = found;
  const at = { issuer: server.issuer };
  await store.saveDiscoveryState?.({
    authorizationServerUrl: address,
    ...(resourceMetadataUrl !== undefined && { resourceMetadataUrl: resourceMetadataUrl.href }),
  });
  const scope = selectScope(store, found, options.scope);
  const known = await store.clientInformation(at);
  const client = ofIssuer(known, at) ?? (await introduce(store, { ...found, at, scope, fetch, serverUrl }));
  return { ...found, at, client, scope, fetch, serverUrl };
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
    const params = await store.prepareTokenRequest?.(flow.scope, {
      ...flow.at,
      resource: flow.resource?.id,
      fetch: flow.fetch,
    });
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
  const url = authorizationEndpoint(flow);
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
    dpop_jkt: (await store.dpopKey?.())?.thumbprint,
  };
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  await store.redirectToAuthorization(url);
  const grant = store.takeGrant?.();
  if (grant === undefined) return false;
  const isNamed = server.authorization_response_iss_parameter_supported === true;
  const { iss = isNamed ? "" : at.issuer } = grant;
  if (iss !== at.issuer && !(flow.isGuessed && isAtEndpoints(iss, server))) throw wrongIssuer();
  const back = new URLSearchParams({
    code: grant.code,
    ...(grant.iss !== undefined && !flow.isGuessed && { iss: grant.iss }),
  });
  await requestTokens(store, flow, { back, redirectUri, verifier, scope: scope ?? "" });
  return true;
}

function authorizationEndpoint({ server, serverUrl, isGuessed }: Flow): URL {
  const { authorization_endpoint: endpoint, response_types_supported: types } = server;
  const methods = server.code_challenge_methods_supported;
  if (
    endpoint === undefined ||
    types?.includes("code") === false ||
    (methods ?? (isGuessed ? ["S256"] : [])).includes("S256") === false
  ) {
    throw new SignInError(
      "unusable",
      "The authorization server gives no codes that are bound to a client (PKCE, S256).",
    );
  }
  const url = new URL(endpoint);
  if (mayAsk(url, serverUrl)) return url;
  throw new SignInError("unsafe", "The authorization server is at an address that the server may not name.");
}

/** The issuer of endpoints without metadata is not known; it is believed to be where one of them is (RFC 9207 asks for the same issuer). */
function isAtEndpoints(
  iss: string,
  { authorization_endpoint, token_endpoint }: AuthorizationServer,
): boolean {
  const origin = parseUrl(iss)?.origin;
  const origins = [authorization_endpoint, token_endpoint].map((at) => at && parseUrl(at)?.origin);
  return origin !== undefined && origins.includes(origin);
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
export async function requestTokens(store: OAuthStore, flow: Flow, grant: TokenGrant): Promise<void> {
  const { at } = flow;
  let tokens: OAuthTokens;
  try {
    tokens = await sendGrant(store, flow, grant);
  } catch (thrown) {
    const failure = toSignInFailure(thrown);
    for (const what of forgottenBy(failure)) await store.invalidateCredentials?.(what, at);
    throw failure;
  }
  const scope = tokens.scope ?? grant.scope;
  await store.saveTokens(
    {
      ...("refresh_token" in grant && { refresh_token: grant.refresh_token }),
      ...tokens,
      ...(tokens.expires_in !== undefined && { expires_at: Date.now() + tokens.expires_in * 1_000 }),
      ...(scope ? { scope } : {}),
      ...at,
    },
    at,
  );
}

async function sendGrant(store: OAuthStore, flow: Flow, grant: TokenGrant): Promise<OAuthTokens> {
  const { server, resource, fetch, client } = flow;
  const auth = clientAuthOf(store, flow);
  const dpop = await store.dpopKey?.();
  const request = { server, clientId: client.client_id, auth, fetch, dpop };
  const more = resource === undefined ? {} : { resource: resource.id };
  let tokens: TokenEndpointResponse;
  if ("params" in grant) {
    const params = new URLSearchParams(grant.params);
    for (const [name, value] of Object.entries(more)) params.set(name, value);
    tokens = await requestGrant(request, params);
  } else {
    const { back, redirectUri, verifier } = grant;
    const validated = validateAuthResponse(server, { client_id: request.clientId }, back, expectNoState);
    tokens = await askForTokens(request, (client, options) =>
      authorizationCodeGrantRequest(server, client, auth, validated, redirectUri, verifier, {
        ...options,
        additionalParameters: more,
      }),
    );
  }
  if (!/^[\x21-\x7e]+$/.test(tokens.access_token)) throw notOurs("no bearer token");
  if (dpop !== undefined && tokens.token_type !== "dpop")
    throw notOurs("not bound to the key of this client");
  if (dpop === undefined && tokens.token_type !== "bearer") throw notOurs("no bearer token");
  return { ...tokens };
}

function notOurs(what: string): SignInError {
  return new SignInError("unusable", `The authorization server gave a token that is ${what}.`);
}

/** Proves who the client is by what the store says, else by its secret. */
export function clientAuthOf(
  store: OAuthStore,
  { server, client, at }: Pick<Flow, "server" | "client" | "at">,
): ClientAuth {
  if (store.addClientAuthentication === undefined) return clientAuthBySecret(server, client);
  return (_server, _client, body, headers) =>
    store.addClientAuthentication?.(headers, body, String(server.token_endpoint), at);
}
