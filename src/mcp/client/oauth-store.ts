import { randomBytes, timingSafeEqual } from "node:crypto";
import {
  createPrivateKeyJwtAuth,
  type OAuthClientProvider,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import { parseUrl } from "../../core/text/parse-url.ts";
import { LOOPBACK } from "./http-options.ts";
import { createKeptCredentials } from "./kept-credentials.ts";
import { createOAuthCredentials, notHome, type OAuthCredentials } from "./oauth-credentials.ts";
import { createMemoryTokenStore, type TokenStore } from "./token-store.ts";

/** What a person's consent came back with. */
export interface OAuthGrant {
  readonly code: string;
  readonly iss?: string | undefined;
}

/** An OAuth provider of the SDK that also hands over a consent given while it waited. */
export interface OAuthStore extends OAuthClientProvider {
  /** The grant of the last `onAuthorize`, once. */
  takeGrant?(): OAuthGrant | undefined;
  /** A client that stands for itself asks for this scope from now on: less was not enough. */
  widenScope?(scope: string): void;
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

/** Creates the OAuth side of a connection, with tokens that outlive it where the store does. */
export function createOAuthStore(options: OAuthStoreOptions): OAuthStore {
  checkOptions(options);
  const { redirectUrl, clientMetadataUrl } = options;
  const kept = createKeptCredentials(options.tokens ?? createMemoryTokenStore());
  const consent = createConsent(options.onAuthorize);
  let own = options.scope;
  let wanted: string | undefined;
  const credentials = createOAuthCredentials(options, kept, () => {
    const asked = wanted;
    wanted = undefined;
    return asked;
  });
  return {
    redirectUrl,
    ...(clientMetadataUrl === undefined ? {} : { clientMetadataUrl }),
    clientMetadata: toClientMetadata(options),
    ...credentials.provider,
    state: consent.state,
    saveCodeVerifier: (verifier) => kept.set("verifier", verifier),
    codeVerifier: async () => String(await kept.get("verifier")),
    discoveryState: async () => (await kept.get("discovery")) as never,
    saveDiscoveryState: (discovery) => kept.set("discovery", discovery),
    redirectToAuthorization: async (url) => {
      wanted = url.searchParams.get("scope") ?? "";
      await consent.ask(url);
    },
    takeGrant: consent.take,
    ...(redirectUrl === undefined && {
      prepareTokenRequest: (asked?: string) => {
        wanted = own ?? asked ?? "";
        return toClientCredentials(wanted);
      },
      widenScope: (scope: string) => {
        own = scope;
      },
    }),
    ...toClientAuthentication(options, credentials),
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
        throw new UnauthorizedError(
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

function toClientMetadata(options: OAuthStoreOptions) {
  const { redirectUrl, clientName, scope } = options;
  return {
    client_name: clientName ?? "Waybill",
    redirect_uris: redirectUrl === undefined ? [] : [redirectUrl],
    grant_types: redirectUrl === undefined ? ["client_credentials"] : ["authorization_code", "refresh_token"],
    token_endpoint_auth_method: toAuthMethod(options),
    ...(scope === undefined ? {} : { scope }),
  };
}

function toAuthMethod({ clientSecret, privateKey }: OAuthStoreOptions): string {
  if (privateKey !== undefined) return "private_key_jwt";
  return clientSecret === undefined ? "none" : "client_secret_basic";
}

function toClientCredentials(scope: string): URLSearchParams {
  const params = new URLSearchParams({ grant_type: "client_credentials" });
  if (scope !== "") params.set("scope", scope);
  return params;
}

function toClientAuthentication(
  options: OAuthStoreOptions,
  credentials: OAuthCredentials,
): Pick<OAuthClientProvider, "addClientAuthentication"> {
  const { clientId, privateKey, signingAlgorithm: alg = "ES256" } = options;
  if (clientId === undefined || privateKey === undefined) return {};
  const prove = createPrivateKeyJwtAuth({ issuer: clientId, subject: clientId, privateKey, alg });
  return {
    addClientAuthentication: async (headers, params, url, metadata) => {
      if (!(await credentials.isHome(metadata?.issuer))) throw notHome();
      await prove(headers, params, url, metadata);
    },
  };
}

/** Reads the address a person came back on; one with another state was not asked for by this client. */
function readGrant(back: string, state: string | undefined): OAuthGrant {
  const params = new URL(back, "http://localhost").searchParams;
  const code = params.get("code");
  if (!isSame(params.get("state") ?? "", state ?? "")) {
    throw new UnauthorizedError("The authorization came back with another state than it was asked with.");
  }
  if (code === null) throw new UnauthorizedError("The authorization came back without a code.");
  return { code, iss: params.get("iss") ?? undefined };
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && left.length > 0 && timingSafeEqual(left, right);
}
