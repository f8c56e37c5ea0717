import { importPKCS8 } from "jose";
import { type AuthorizationServer, type ClientAuth, modifyAssertion, PrivateKeyJwt } from "oauth4webapi";
import { monotonicNow } from "../../core/execution/cancellation.ts";
import { SignInError } from "./oauth-authorizer.ts";
import { discoverIssuer, type Fetch } from "./oauth-discovery.ts";
import { clientAuthBySecret, requestGrant, toSignInFailure } from "./token-request.ts";

/** The grant that exchanges a token for another one (RFC 8693). */
const TOKEN_EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
/** The grant that gives a token for an assertion that somebody else signed (RFC 7523). */
export const ASSERTION_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/** What kinds of tokens are named by when they are exchanged (RFC 8693, 3). */
export const EXCHANGED_TOKENS = {
  access: "urn:ietf:params:oauth:token-type:access_token",
  refresh: "urn:ietf:params:oauth:token-type:refresh_token",
  id: "urn:ietf:params:oauth:token-type:id_token",
  jwt: "urn:ietf:params:oauth:token-type:jwt",
  /** What an identity provider gives for a person, and another authorization server takes for a token. */
  identityAssertion: "urn:ietf:params:oauth:token-type:id-jag",
} as const;

/** A kind of token that is exchanged. */
export type ExchangedToken = keyof typeof EXCHANGED_TOKENS;

/** A client that has an authorization server give it tokens without a person. */
export interface GrantClientOptions {
  /** The authorization server, which no other stands in for. */
  readonly issuer: string;
  /** Where tokens are had. @default as the metadata of the issuer says */
  readonly tokenUrl?: string | undefined;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  /** A private key (PKCS #8, PEM) that the client proves itself with instead of a secret. @default none */
  readonly privateKey?: string | undefined;
  /** What `privateKey` signs with. @default "ES256" */
  readonly signingAlgorithm?: string | undefined;
  /** Sends requests to authorization servers, as far as they may be asked. */
  readonly fetch: Fetch;
}

/** What a token is asked for. */
interface WantedToken {
  /** The address it is to be good for (RFC 8707). @default not said */
  readonly resource?: string | undefined;
  /** @default what the authorization server gives */
  readonly scope?: string | undefined;
}

/** A token that is to be exchanged for another (RFC 8693). */
export interface TokenExchange extends WantedToken {
  readonly token: string;
  /** @default "access" */
  readonly kind?: ExchangedToken | undefined;
  /** What to get. @default what the authorization server gives, which is an access token */
  readonly wanted?: ExchangedToken | undefined;
  /** Who it is to be good for, by a name that the authorization server knows. @default not said */
  readonly audience?: string | undefined;
  /** A token of the party that acts for the person. @default none */
  readonly actor?: { readonly token: string; readonly kind?: ExchangedToken | undefined } | undefined;
}

/** An assertion that is to be exchanged for a token (RFC 7523). */
export interface AssertionGrant extends WantedToken {
  readonly assertion: string;
}

/** A token that an authorization server gave a client for itself. */
export interface IssuedToken {
  readonly token: string;
  readonly kind: ExchangedToken;
  /** Unix epoch milliseconds; nothing where the authorization server does not say. */
  readonly expiresAt?: number | undefined;
  readonly scope?: string | undefined;
}

/** Gets tokens for tokens and assertions; rejects with a `SignInError`. */
export interface GrantClient {
  exchange(exchange: TokenExchange): Promise<IssuedToken>;
  grant(assertion: AssertionGrant): Promise<IssuedToken>;
}

/** Milliseconds for which the metadata of an authorization server is believed. */
const METADATA_MS = 300_000;

/** Creates a client that gets tokens without a person, at one authorization server. */
export function createGrantClient(options: GrantClientOptions): GrantClient {
  const { issuer, tokenUrl, clientId, fetch } = options;
  let found: { readonly server: Promise<AuthorizationServer>; readonly until: number } | undefined;
  const findServer = async (): Promise<AuthorizationServer> => {
    if (tokenUrl !== undefined) return { issuer, token_endpoint: tokenUrl };
    if (found === undefined || monotonicNow() >= found.until) {
      const mine = { server: discoverIssuer(issuer, fetch), until: monotonicNow() + METADATA_MS };
      found = mine;
      mine.server.catch(() => {
        if (found === mine) found = undefined;
      });
    }
    return await found.server;
  };
  const ask = async (fields: Readonly<Record<string, string | undefined>>): Promise<IssuedToken> => {
    const given = Object.entries(fields).filter((field): field is [string, string] => Boolean(field[1]));
    try {
      const server = await findServer();
      const auth = clientAuthOfOptions(options, server);
      const answer = await requestGrant({ server, clientId, auth, fetch }, new URLSearchParams(given));
      return readIssued(answer, fields["requested_token_type"]);
    } catch (thrown) {
      throw toSignInFailure(thrown);
    }
  };
  return {
    exchange: ({ token, kind = "access", wanted, actor, audience, resource, scope }) =>
      ask({
        grant_type: TOKEN_EXCHANGE_GRANT,
        subject_token: token,
        subject_token_type: EXCHANGED_TOKENS[kind],
        requested_token_type: wanted && EXCHANGED_TOKENS[wanted],
        ...(actor && {
          actor_token: actor.token,
          actor_token_type: EXCHANGED_TOKENS[actor.kind ?? "access"],
        }),
        audience,
        resource,
        scope,
      }),
    grant: ({ assertion, resource, scope }) =>
      ask({ grant_type: ASSERTION_GRANT, assertion, resource, scope }),
  };
}

/** How a client proves itself to an authorization server: by its private key where it has one, else by its secret. */
export function clientAuthOfOptions(
  options: Pick<GrantClientOptions, "clientId" | "clientSecret" | "privateKey" | "signingAlgorithm">,
  server: AuthorizationServer,
): ClientAuth {
  const { clientId, clientSecret, privateKey, signingAlgorithm } = options;
  if (privateKey === undefined)
    return clientAuthBySecret(server, { client_id: clientId, client_secret: clientSecret });
  return (_server, _client, params, headers) =>
    proveByKey({ clientId, privateKey, signingAlgorithm }, { headers, params, issuer: server.issuer });
}

/** What is given for another kind of token than was asked for would be sent where it must not go. */
function readIssued(
  answer: {
    readonly access_token: string;
    readonly token_type: string;
    readonly expires_in?: number;
    readonly scope?: string;
    readonly issued_token_type?: unknown;
  },
  wanted: string | undefined,
): IssuedToken {
  const { access_token: token, token_type, expires_in, scope, issued_token_type: issued } = answer;
  const type = issued ?? wanted ?? EXCHANGED_TOKENS.access;
  const kind = (Object.keys(EXCHANGED_TOKENS) as ExchangedToken[]).find(
    (each) => EXCHANGED_TOKENS[each] === type,
  );
  const isWanted = wanted === undefined || type === wanted;
  const isAccess = kind === "access" || kind === "jwt";
  const isUsable = !isAccess || token_type === "bearer" || (kind === "jwt" && token_type === "n_a");
  if (kind === undefined || !isWanted || !isUsable || !/^[\x21-\x7e]+$/.test(token)) {
    throw new SignInError(
      "unusable",
      "The authorization server gave another kind of token than it was asked for.",
    );
  }
  return {
    token,
    kind,
    ...(expires_in !== undefined && { expiresAt: Date.now() + expires_in * 1_000 }),
    ...(scope !== undefined && { scope }),
  };
}

/** Seconds for which a signed proof is good, for clocks that do not agree. */
const PROOF_SECONDS = 300;

/** Adds what proves a client by its private key (RFC 7523, 2.2). */
export async function proveByKey(
  {
    clientId,
    privateKey,
    signingAlgorithm = "ES256",
  }: {
    readonly clientId: string;
    readonly privateKey: string;
    readonly signingAlgorithm?: string | undefined;
  },
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
