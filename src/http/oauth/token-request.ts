import {
  type AuthorizationServer,
  allowInsecureRequests,
  type ClientAuth,
  ClientSecretPost,
  customFetch,
  genericTokenEndpointRequest,
  None,
  OperationProcessingError,
  processGenericTokenEndpointResponse,
  ResponseBodyError,
  type TokenEndpointResponse,
  UnsupportedOperationError,
} from "oauth4webapi";
import { isPlainObject, parseJsonTextOrNone } from "../../core/json/json-value.ts";
import { clientSecretBasic } from "../client-secret-basic.ts";
import { DPOP_ALGORITHM, type DpopKey } from "./dpop-key.ts";
import { SignInError } from "./oauth-authorizer.ts";
import { type Fetch, isSafeEndpoint } from "./oauth-discovery.ts";

/** What a token endpoint is asked with. */
export interface TokenRequest {
  readonly server: AuthorizationServer;
  readonly clientId: string;
  readonly auth: ClientAuth;
  /** Sends requests to authorization servers, as far as they may be asked. */
  readonly fetch: Fetch;
  /** The key that tokens are to be bound to. @default none */
  readonly dpop?: DpopKey | undefined;
}

/** The client and the options that the OAuth library sends a request to a token endpoint with. */
type Prepared = readonly [
  client: { readonly client_id: string },
  options: {
    readonly [customFetch]: ReturnType<typeof toTokenFetch>;
    readonly [allowInsecureRequests]: true;
  },
];

/** Sends a request to a token endpoint and reads its answer; once more where a proof needs the nonce that it names. */
export async function askForTokens(
  { server, clientId, fetch, dpop }: Omit<TokenRequest, "auth">,
  send: (...prepared: Prepared) => Promise<Response>,
): Promise<TokenEndpointResponse> {
  if (!isSafeEndpoint(server.token_endpoint)) {
    throw new SignInError("unsafe", "The token endpoint is neither https nor on this machine.");
  }
  if (server["dpop_signing_alg_values_supported"] !== undefined && dpop !== undefined) {
    const taken: unknown = server["dpop_signing_alg_values_supported"];
    if (!Array.isArray(taken) || !taken.includes(DPOP_ALGORITHM))
      throw new SignInError(
        "unusable",
        `The authorization server takes no proofs that ${DPOP_ALGORITHM} signs.`,
      );
  }
  const client = { client_id: clientId };
  const options = { [customFetch]: toTokenFetch(fetch, dpop), [allowInsecureRequests]: true } as const;
  const ask = async () =>
    await processGenericTokenEndpointResponse(server, client, await send(client, options), {
      // An assertion that is exchanged for a token is no access token (RFC 8693, 2.2.1).
      recognizedTokenTypes: { n_a: () => {} },
    });
  try {
    return await ask();
  } catch (thrown) {
    const isNonce = thrown instanceof ResponseBodyError && thrown.error === "use_dpop_nonce";
    if (!isNonce || dpop === undefined) throw thrown;
    return await ask();
  }
}

/** Asks a token endpoint with a grant of any type. */
export async function requestGrant(
  request: TokenRequest,
  params: URLSearchParams,
): Promise<TokenEndpointResponse> {
  const type = params.get("grant_type") ?? "";
  return await askForTokens(request, (client, options) =>
    genericTokenEndpointRequest(request.server, client, request.auth, type, params, options),
  );
}

/** Prefers what the client was registered with, then the header, then the form, as far as the authorization server takes them. */
export function clientAuthBySecret(
  server: AuthorizationServer,
  client: {
    readonly client_id: string;
    readonly client_secret?: string | undefined;
    readonly token_endpoint_auth_method?: string | undefined;
  },
): ClientAuth {
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

/** Options of the OAuth library for requests that are sent as they are, without its user agent. */
export function plainOptions(fetch: Fetch) {
  return {
    [allowInsecureRequests]: true,
    [customFetch]: async (
      url: string,
      {
        method,
        headers: given,
        body,
      }: { method: string; headers: Record<string, string>; body: URLSearchParams },
    ) => {
      const { "user-agent": _unused, ...headers } = given;
      return await fetch(url, { method, headers, body });
    },
  } as const;
}

/** Makes a `fetch` for the OAuth library, which is stricter about answers than authorization servers are. */
function toTokenFetch(fetch: Fetch, dpop: DpopKey | undefined) {
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
    const proof = dpop && { dpop: await dpop.prove({ method, url }) };
    const response = await fetch(url, { method, headers: { ...headers, ...proof }, body });
    dpop?.noteNonce(url, response);
    const answer = parseJsonTextOrNone(await response.text());
    if (!isPlainObject(answer)) return new Response(null, { status: 502 });
    const isToken = response.ok && typeof answer["access_token"] === "string";
    if (!isToken && typeof answer["error"] === "string") return Response.json(answer, { status: 400 });
    return Response.json(pickTokens(answer), { status: response.ok ? 200 : 502 });
  };
}

/** An id token is of no use here, and what is null or empty is not there. */
function pickTokens(answer: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const names = ["access_token", "token_type", "expires_in", "refresh_token", "scope", "issued_token_type"];
  const given = names.map((name) => [name, answer[name]]);
  return Object.fromEntries(given.filter(([, value]) => value !== null && value !== ""));
}

/** The errors of OAuth that are named; anything else a server says is foreign text. */
const KNOWN_ERRORS: ReadonlySet<string> = new Set([
  "invalid_client",
  "unauthorized_client",
  "invalid_grant",
  "invalid_request",
  "invalid_scope",
  "invalid_target",
  "invalid_dpop_proof",
  "use_dpop_nonce",
  "unsupported_grant_type",
  "server_error",
  "temporarily_unavailable",
  "access_denied",
  "authorization_pending",
  "slow_down",
  "expired_token",
]);

/** The library keeps whole answers in its errors, tokens included; only what says what is wrong is taken over. */
export function toSignInFailure(thrown: unknown): unknown {
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
