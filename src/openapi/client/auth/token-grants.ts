import {
  type AuthorizationServer,
  allowInsecureRequests,
  type Client,
  type ClientAuth,
  ClientSecretPost,
  clientCredentialsGrantRequest,
  customFetch,
  discoveryRequest,
  None,
  processClientCredentialsResponse,
  processDiscoveryResponse,
  processRefreshTokenResponse,
  refreshTokenGrantRequest,
  type TokenEndpointResponse,
} from "oauth4webapi";
import { clientSecretBasic } from "../../../http/client-secret-basic.ts";
import { isTokenText } from "./addition.ts";
import { readAddress } from "./credential-forms.ts";
import type { OAuthCredential } from "./credentials.ts";
import { type Send, toOAuthFetch } from "./oauth-fetch.ts";
import type { TokenAddress } from "./token-address.ts";

/** A token as an authorization server gave it. */
export interface IssuedToken {
  readonly value: string;
  /** Milliseconds; nothing where the server does not say. */
  readonly lifetimeMs: number | undefined;
  /** The one that replaces the one before. */
  readonly refreshToken: string | undefined;
}

const WELL_KNOWN = "/.well-known/openid-configuration";

/** Finds the token endpoint: the address itself, or what the discovery document there names. */
export async function findEndpoint(address: TokenAddress, send: Send): Promise<URL> {
  if (address.kind === "endpoint") return address.url;
  const { url } = address;
  const response = await discoveryRequest(toIssuer(url), {
    [customFetch]: toOAuthFetch(send, true),
    [allowInsecureRequests]: url.protocol === "http:",
  });
  const { token_endpoint: declared } = await readDiscovery(toIssuer(url), response);
  const endpoint = typeof declared === "string" ? readAddress(declared) : undefined;
  if (endpoint === undefined) throw new Error("The discovery document names no token endpoint.");
  // Plain http only where the discovery document itself came from: a machine's own.
  if (endpoint.protocol === "https:" || endpoint.origin === url.origin) return endpoint;
  throw new Error("The discovery document names a token endpoint that is not https.");
}

/** Asks for a token: with the refresh token where there is one, else with the client's own credentials. */
export async function requestToken(
  endpoint: URL,
  credential: OAuthCredential,
  asked: {
    readonly refreshToken: string | undefined;
    readonly scopes: readonly string[];
    readonly send: Send;
  },
): Promise<IssuedToken> {
  const { refreshToken, scopes, send } = asked;
  const server: AuthorizationServer = { issuer: endpoint.origin, token_endpoint: endpoint.href };
  const client: Client = { client_id: credential.clientId };
  const parameters = new URLSearchParams(credential.parameters);
  if (scopes.length > 0) parameters.set("scope", scopes.join(" "));
  const auth = clientAuthOf(credential);
  const options = {
    // A refresh token may be good for one use only; sent twice, it may end the whole grant.
    [customFetch]: toOAuthFetch(send, refreshToken === undefined),
    [allowInsecureRequests]: endpoint.protocol === "http:",
  };
  if (refreshToken === undefined) {
    const response = await clientCredentialsGrantRequest(server, client, auth, parameters, options);
    return toIssuedToken(await processClientCredentialsResponse(server, client, response), undefined);
  }
  const response = await refreshTokenGrantRequest(server, client, auth, refreshToken, {
    ...options,
    additionalParameters: parameters,
  });
  return toIssuedToken(await processRefreshTokenResponse(server, client, response), refreshToken);
}

function toIssuedToken(response: TokenEndpointResponse, sent: string | undefined): IssuedToken {
  const { access_token: value, token_type: type, expires_in: seconds, refresh_token: next } = response;
  if (type !== "bearer") throw new Error("The authorization server gave a token that is not a bearer token.");
  if (!isTokenText(value)) throw new Error("The authorization server gave a token that no header can hold.");
  return {
    value,
    lifetimeMs: seconds === undefined ? undefined : seconds * 1_000,
    refreshToken: sent === undefined || next === sent ? undefined : next,
  };
}

function clientAuthOf({ clientSecret, clientAuth }: OAuthCredential): ClientAuth {
  if (clientSecret === undefined) return None();
  if (clientAuth === "post") return ClientSecretPost(clientSecret);
  return (_server, client, _body, headers) => {
    headers.set("authorization", clientSecretBasic(client.client_id, clientSecret));
  };
}

function toIssuer(url: URL): URL {
  const issuer = new URL(url);
  if (issuer.pathname.endsWith(WELL_KNOWN)) issuer.pathname = issuer.pathname.slice(0, -WELL_KNOWN.length);
  return issuer;
}

/** An issuer may end with a slash or not, which its well-known address does not show. */
async function readDiscovery(issuer: URL, response: Response): Promise<AuthorizationServer> {
  const slashed = new URL(issuer);
  if (!slashed.pathname.endsWith("/")) slashed.pathname += "/";
  const again = response.clone();
  try {
    return await processDiscoveryResponse(issuer, response);
  } catch (failure) {
    if (slashed.href === issuer.href) throw failure;
    return await processDiscoveryResponse(slashed, again);
  }
}
