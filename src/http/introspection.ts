import { createHash } from "node:crypto";
import {
  type AuthorizationServer,
  allowInsecureRequests,
  customFetch,
  introspectionRequest,
} from "oauth4webapi";
import { monotonicNow } from "../core/execution/cancellation.ts";
import { isPlainObject, parseJsonTextOrNone } from "../core/json/json-value.ts";
import { createGuardedFetch } from "./oauth/guarded-fetch.ts";
import { discoverIssuer, type Fetch, isSafeEndpoint } from "./oauth/oauth-discovery.ts";
import { clientAuthOfOptions } from "./oauth/token-exchange.ts";

/** How an authorization server is asked about tokens that say nothing by themselves (RFC 7662). */
export interface TokenIntrospection {
  /** Where it is asked. @default as the metadata of the issuer says */
  readonly url?: string | undefined;
  /** What this endpoint is known by at the authorization server. */
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  /** A private key (PKCS #8, PEM) that proves this endpoint instead of a secret. @default none */
  readonly privateKey?: string | undefined;
  /** What `privateKey` signs with. @default "ES256" */
  readonly signingAlgorithm?: string | undefined;
  /** How long an answer is believed, and never past the end of its token. @default 30_000 */
  readonly cacheMs?: number | undefined;
}

/** What is known of a token: its claims, that it is not valid, or that nobody could say. */
export type TokenFacts = Readonly<Record<string, unknown>> | "invalid" | "unavailable";

/** Tokens that are asked about at once, and whose answers are kept; the one asked about longest ago goes first. */
export const INTROSPECTION_LIMITS = { asked: 32, kept: 10_000 } as const;
const MOST_CACHE_MS = 300_000;
/** How long a token that is not valid is not asked about again. */
const INVALID_MS = 10_000;
/** After a failure nobody is asked for so long. */
const FAILURE_MS = 2_000;
const ANSWER_MS = 5_000;
/** Characters of an answer about a token: so many are kept of each. */
const MOST_ANSWER_CHARACTERS = 16_384;

/** Creates what asks one issuer about tokens; options that make no sense are a `TypeError`. */
export function createIntrospection(
  issuer: string,
  options: TokenIntrospection,
): (token: string) => Promise<TokenFacts> {
  const { url, clientId, clientSecret, privateKey, cacheMs = 30_000 } = options;
  if (typeof clientId !== "string" || (clientSecret === undefined) === (privateKey === undefined))
    throw new TypeError("introspection needs a clientId, and a clientSecret or a privateKey.");
  if (!Number.isFinite(cacheMs) || cacheMs < 0 || cacheMs > MOST_CACHE_MS)
    throw new TypeError(`introspection.cacheMs must be from 0 to ${MOST_CACHE_MS} milliseconds.`);
  if (!isSafeEndpoint(issuer)) throw new TypeError("An issuer that is asked must be an https address.");
  if (url !== undefined && !isSafeEndpoint(url))
    throw new TypeError("introspection.url must be an https address.");
  const fetch = issuerFetch(issuer, [url]);
  const known = new Map<string, { readonly facts: TokenFacts; readonly until: number }>();
  const asking = new Map<string, Promise<TokenFacts>>();
  let failedUntil = 0;
  let server: AuthorizationServer | undefined;
  const findServer = async (): Promise<AuthorizationServer> => {
    server ??=
      url === undefined ? await discoverIssuer(issuer, fetch) : { issuer, introspection_endpoint: url };
    return server;
  };
  const ask = async (token: string): Promise<TokenFacts> => {
    try {
      const asked = await findServer();
      if (!isSafeEndpoint(asked.introspection_endpoint)) return "unavailable";
      const response = await introspectionRequest(
        asked,
        { client_id: clientId },
        clientAuthOfOptions(options, asked),
        token,
        {
          [allowInsecureRequests]: true,
          [customFetch]: (
            to: string,
            {
              method,
              headers,
              body,
            }: { method: string; headers: Record<string, string>; body: URLSearchParams },
          ) => fetch(to, { method, headers, body }),
        },
      );
      // A caller that makes up tokens must not keep the issuer from being asked about others.
      if (response.status === 400) return "invalid";
      const text = await response.text();
      const body = text.length <= MOST_ANSWER_CHARACTERS ? parseJsonTextOrNone(text) : undefined;
      if (response.status !== 200 || !isPlainObject(body) || typeof body["active"] !== "boolean")
        throw new TypeError("The authorization server did not say whether the token is valid.");
      return body["active"] ? { ...body, iss: body["iss"] ?? issuer } : "invalid";
    } catch {
      failedUntil = monotonicNow() + FAILURE_MS;
      return "unavailable";
    }
  };
  const keep = (key: string, facts: TokenFacts): void => {
    if (facts === "unavailable") return;
    const leftMs =
      facts === "invalid" || typeof facts["exp"] !== "number"
        ? MOST_CACHE_MS
        : facts["exp"] * 1_000 - Date.now();
    const until = monotonicNow() + Math.min(facts === "invalid" ? INVALID_MS : cacheMs, leftMs);
    known.set(key, { facts, until });
    if (known.size > INTROSPECTION_LIMITS.kept) known.delete(known.keys().next().value ?? "");
  };
  return async (token) => {
    const key = createHash("sha256").update(token).digest("base64");
    const found = known.get(key);
    if (found !== undefined && monotonicNow() < found.until) return found.facts;
    known.delete(key);
    const now = asking.get(key);
    if (now !== undefined) return await now;
    if (asking.size >= INTROSPECTION_LIMITS.asked || monotonicNow() < failedUntil) return "unavailable";
    const mine = ask(token).finally(() => asking.delete(key));
    asking.set(key, mine);
    const facts = await mine;
    keep(key, facts);
    return facts;
  };
}

/** Sends requests to an issuer that the user named: bounded, and past what it names within private networks. */
export function issuerFetch(issuer: string, named: readonly (string | undefined)[] = []): Fetch {
  const fetch = createGuardedFetch(new URL(issuer), [issuer, ...named]);
  return (to, init) => fetch(to, { ...init, redirect: "error", signal: AbortSignal.timeout(ANSWER_MS) });
}
