import { randomBytes, timingSafeEqual } from "node:crypto";
import { importPKCS8 } from "jose";
import { modifyAssertion, PrivateKeyJwt } from "oauth4webapi";
import { isPlainObject } from "../../core/json/json-value.ts";
import { parseUrl } from "../../core/text/parse-url.ts";
import { SignInError } from "./http-authorizer.ts";
import { LOOPBACK } from "./http-options.ts";
import {
  createKeptCredentials,
  createMemoryTokenStore,
  type KeptCredentials,
  type TokenStore,
} from "./token-store.ts";

/** What a person's consent came back with. */
export interface OAuthGrant {
  readonly code: string;
  readonly iss?: string | undefined;
}

/** Tokens as an authorization server gave them. */
export interface OAuthTokens {
  readonly access_token: string;
  readonly token_type: string;
  readonly refresh_token?: string | undefined;
  /** Seconds. */
  readonly expires_in?: number | undefined;
  readonly scope?: string | undefined;
  /** The authorization server that gave them. */
  readonly issuer?: string | undefined;
}

/** What an authorization server knows a client by. */
export interface OAuthClientInformation {
  readonly client_id: string;
  readonly client_secret?: string | undefined;
  readonly token_endpoint_auth_method?: string | undefined;
  /** The authorization server that knows it. */
  readonly issuer?: string | undefined;
}

/** What a client says of itself when it is registered (RFC 7591). */
export interface OAuthClientMetadata {
  readonly redirect_uris: readonly string[];
  readonly client_name?: string | undefined;
  readonly grant_types?: readonly string[] | undefined;
  readonly token_endpoint_auth_method?: string | undefined;
  readonly application_type?: string | undefined;
  readonly scope?: string | undefined;
}

/** The authorization server that credentials belong to. */
export interface OAuthIssuer {
  readonly issuer: string;
}

/** What signing in keeps and asks for; `createOAuthStore` makes one. */
export interface OAuthStore {
  /** Without it the client stands for itself. */
  readonly redirectUrl: string | URL | undefined;
  readonly clientMetadataUrl?: string | undefined;
  readonly clientMetadata: OAuthClientMetadata;
  state?(): string | Promise<string>;
  clientInformation(
    at?: OAuthIssuer,
  ): OAuthClientInformation | undefined | Promise<OAuthClientInformation | undefined>;
  /** Without it no client is registered. */
  saveClientInformation?(client: OAuthClientInformation, at?: OAuthIssuer): void | Promise<void>;
  /** The tokens of an authorization server, by default those in use. */
  tokens(at?: OAuthIssuer): OAuthTokens | undefined | Promise<OAuthTokens | undefined>;
  saveTokens(tokens: OAuthTokens, at?: OAuthIssuer): void | Promise<void>;
  /** Where the metadata of the server was found that needs tokens. */
  discoveryState?(): OAuthDiscovery | undefined | Promise<OAuthDiscovery | undefined>;
  saveDiscoveryState?(discovery: OAuthDiscovery): void | Promise<void>;
  /** Forgets what an authorization server no longer takes, by default of all of them. */
  invalidateCredentials?(
    what: "all" | "client" | "tokens" | "discovery",
    at?: OAuthIssuer,
  ): void | Promise<void>;
  /** Sends the person to an address. */
  redirectToAuthorization(url: URL): void | Promise<void>;
  /** The grant of the last `redirectToAuthorization`, once. */
  takeGrant?(): OAuthGrant | undefined;
  /** The grant of a client that stands for itself. */
  prepareTokenRequest?(scope?: string): URLSearchParams | undefined | Promise<URLSearchParams | undefined>;
  /** A client that stands for itself asks for this scope from now on: less was not enough. */
  widenScope?(scope: string): void;
  /** Proves who the client is, in place of its secret. */
  addClientAuthentication?(
    headers: Headers,
    params: URLSearchParams,
    url: string | URL,
    server?: OAuthIssuer,
  ): void | Promise<void>;
}

/** Where a server's tokens were had. */
export interface OAuthDiscovery {
  readonly authorizationServerUrl: string;
  readonly resourceMetadataUrl?: string | undefined;
}

/** Settings of `createOAuthStore`: a person who consents, or a client that stands for itself. */
export interface OAuthStoreOptions {
  /** @default in memory */
  readonly tokens?: TokenStore | undefined;
  /** @default registered with the authorization server */
  readonly clientId?: string | undefined;
  /** Goes with the `issuer` that gave it. @default none */
  readonly clientSecret?: string | undefined;
  /** A private key (PKCS #8, PEM) that the client proves itself with instead of a secret. @default none */
  readonly privateKey?: string | undefined;
  /** What `privateKey` signs with. @default "ES256" */
  readonly signingAlgorithm?: string | undefined;
  /** The authorization server that gave `clientId`; no other is shown it. @default the first that is met */
  readonly issuer?: string | undefined;
  /** An https address that describes this client: its id where the authorization server reads such. @default none */
  readonly clientMetadataUrl?: string | undefined;
  /** @default what the server asks for */
  readonly scope?: string | undefined;
  /** @default "Waybill" */
  readonly clientName?: string | undefined;
  /** Where the authorization server sends the person back to; without it the client stands for itself (client credentials). */
  readonly redirectUrl?: string | undefined;
  /**
   * Sends the person to the address. Resolves with the address they came back on, so that the connection goes on at once, or
   * with nothing: the connection then fails with `UNAUTHENTICATED`.
   */
  readonly onAuthorize?: ((url: URL) => Promise<string | URL | undefined>) | undefined;
}

/**
 * Creates the OAuth side of a connection, with tokens that outlive it where the store does. Clients and tokens are kept apart by
 * authorization server; a client of one's own belongs to one of them, and is shown to no other.
 */
export function createOAuthStore(options: OAuthStoreOptions): OAuthStore {
  checkOptions(options);
  const { redirectUrl, clientMetadataUrl, clientId, clientSecret, privateKey } = options;
  const kept = createKeptCredentials(options.tokens ?? createMemoryTokenStore());
  const consent = createConsent(options.onAuthorize);
  let own = options.scope;
  return {
    redirectUrl,
    clientMetadataUrl,
    clientMetadata: toClientMetadata(options),
    clientInformation: async (at) => {
      if (clientId !== undefined && (await isHome(options, kept, at))) {
        return {
          client_id: clientId,
          ...(clientSecret !== undefined && { client_secret: clientSecret }),
          ...at,
        };
      }
      // Nobody is there to consent to another client in its place.
      if (redirectUrl === undefined) throw notHome();
      return (await kept.of(at?.issuer))?.client as OAuthClientInformation | undefined;
    },
    saveClientInformation: (client, at) => kept.keep({ issuer: at?.issuer ?? "", client: { ...client } }),
    tokens: async (at) => (await kept.of(at?.issuer))?.tokens as OAuthTokens | undefined,
    saveTokens: (tokens, at) => kept.keep({ issuer: at?.issuer ?? "", tokens: { ...tokens } }),
    discoveryState: async () => (await kept.get("discovery")) as OAuthDiscovery | undefined,
    saveDiscoveryState: (discovery) => kept.set("discovery", discovery),
    invalidateCredentials: async (what, at) => {
      if (what === "client" || what === "tokens") return await kept.forget([what], at?.issuer);
      await kept.set("discovery", undefined);
      if (what === "discovery") return;
      await kept.forget(["client", "tokens"], undefined);
      await kept.set("home", undefined);
    },
    state: consent.state,
    redirectToAuthorization: consent.ask,
    takeGrant: consent.take,
    ...(redirectUrl === undefined && {
      prepareTokenRequest: (asked?: string) => {
        const scope = own ?? asked;
        return new URLSearchParams({ grant_type: "client_credentials", ...(scope && { scope }) });
      },
      widenScope: (scope: string) => {
        own = scope;
      },
    }),
    ...(privateKey !== undefined && {
      addClientAuthentication: async (
        headers: Headers,
        params: URLSearchParams,
        url: string | URL,
        at?: OAuthIssuer,
      ) => {
        if (!(await isHome(options, kept, at))) throw notHome();
        await proveByKey(options, { headers, params, issuer: at?.issuer ?? String(url) });
      },
    }),
  };
}

function checkOptions(options: OAuthStoreOptions): void {
  const { redirectUrl, clientId, clientSecret, privateKey, clientMetadataUrl } = options;
  const proof = clientSecret ?? privateKey;
  if (redirectUrl === undefined && (clientId === undefined || proof === undefined)) {
    throw new TypeError("Without a redirectUrl, OAuth needs a clientId, and a clientSecret or privateKey.");
  }
  if (clientSecret !== undefined && options.issuer === undefined) {
    throw new TypeError(
      "A clientSecret needs the issuer it belongs to, so that no server can have it sent elsewhere.",
    );
  }
  if (privateKey !== undefined && (clientId === undefined || clientSecret !== undefined)) {
    throw new TypeError("A privateKey goes with a clientId, and takes the place of a clientSecret.");
  }
  if (clientMetadataUrl === undefined) return;
  const url = parseUrl(clientMetadataUrl);
  if (url?.protocol !== "https:" || url.pathname === "/") {
    throw new TypeError("The clientMetadataUrl must be an https URL with a path.");
  }
}

/** Sends a person to the authorization server, and holds what they came back with until it is taken. */
function createConsent(onAuthorize: OAuthStoreOptions["onAuthorize"]) {
  let state: string | undefined;
  let grant: OAuthGrant | undefined;
  return {
    state: () => {
      state = randomBytes(24).toString("base64url");
      return state;
    },
    ask: async (url: URL): Promise<void> => {
      grant = undefined;
      if (!isWebAddress(url)) {
        throw new SignInError(
          "unsafe",
          "The authorization server names an address that is neither https nor on this machine.",
        );
      }
      const back = await onAuthorize?.(url);
      grant = back === undefined ? undefined : readGrant(String(back), state);
    },
    take: (): OAuthGrant | undefined => {
      const taken = grant;
      grant = undefined;
      return taken;
    },
  };
}

/** What a browser may be sent to: anything else could start a program or read a file. */
function isWebAddress({ protocol, hostname, username }: URL): boolean {
  return username === "" && (protocol === "https:" || (protocol === "http:" && LOOPBACK.test(hostname)));
}

function toClientMetadata(options: OAuthStoreOptions): OAuthClientMetadata {
  const { redirectUrl, clientName, scope } = options;
  return {
    client_name: clientName ?? "Waybill",
    redirect_uris: redirectUrl === undefined ? [] : [redirectUrl],
    grant_types: redirectUrl === undefined ? ["client_credentials"] : ["authorization_code", "refresh_token"],
    token_endpoint_auth_method: toAuthMethod(options),
    application_type: isNative(redirectUrl) ? "native" : "web",
    ...(scope === undefined ? {} : { scope }),
  };
}

function toAuthMethod({ clientSecret, privateKey }: OAuthStoreOptions): string {
  if (privateKey !== undefined) return "private_key_jwt";
  return clientSecret === undefined ? "none" : "client_secret_basic";
}

/** A program on the person's own machine is sent back to by a loopback address or a scheme of its own (RFC 8252). */
function isNative(redirectUrl: string | undefined): boolean {
  const url = redirectUrl === undefined ? undefined : parseUrl(redirectUrl);
  if (url === undefined) return false;
  return !/^https?:$/.test(url.protocol) || LOOPBACK.test(url.hostname);
}

/** Seconds for which a signed proof is good, for clocks that do not agree. */
const PROOF_SECONDS = 300;

async function proveByKey(
  { clientId = "", privateKey = "", signingAlgorithm = "ES256" }: OAuthStoreOptions,
  to: { readonly headers: Headers; readonly params: URLSearchParams; readonly issuer: string },
): Promise<void> {
  const key = await importPKCS8(privateKey, signingAlgorithm);
  const prove = PrivateKeyJwt(key, {
    [modifyAssertion]: (_header, payload) => {
      // Where the other clock is behind, what is not good yet would be refused.
      delete payload["nbf"];
      payload["exp"] = Number(payload["iat"]) + PROOF_SECONDS;
    },
  });
  await prove({ issuer: to.issuer }, { client_id: clientId }, to.params, to.headers);
}

function notHome(): SignInError {
  return new SignInError("wrong_issuer", "The clientId belongs to another authorization server.");
}

/** The first that a client is shown to is its own, where nobody says which. */
async function isHome(
  { issuer, clientId }: OAuthStoreOptions,
  kept: KeptCredentials,
  at: OAuthIssuer | undefined,
): Promise<boolean> {
  const known = await kept.get("home");
  const met = isPlainObject(known) && known["clientId"] === clientId ? known["issuer"] : undefined;
  const home = issuer ?? met;
  if (home !== undefined) return withoutSlash(home) === withoutSlash(at?.issuer);
  if (at !== undefined) await kept.set("home", { clientId, issuer: at.issuer });
  return true;
}

function withoutSlash(issuer: unknown): string {
  return String(issuer).replace(/\/$/, "");
}

/** Reads the address a person came back on; one with another state was not asked for by this client. */
function readGrant(back: string, state: string | undefined): OAuthGrant {
  const params = new URL(back, "http://localhost").searchParams;
  const code = params.get("code");
  if (!isSame(params.get("state") ?? "", state ?? "")) {
    throw new SignInError(
      "consent_needed",
      "The authorization came back with another state than it was asked with.",
    );
  }
  if (code === null) throw new SignInError("consent_needed", "The authorization came back without a code.");
  return { code, iss: params.get("iss") ?? undefined };
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && left.length > 0 && timingSafeEqual(left, right);
}
