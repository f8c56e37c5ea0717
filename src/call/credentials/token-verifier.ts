import { type JWTPayload, jwtVerify } from "jose";
import { HeldIdentity, type Identity } from "../../core/access/identity.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { Delivery } from "../bus.ts";
import { EVENT_LIMITS } from "../call-events.ts";
import { audienceOf } from "./token-audience.ts";
import { TokenCache } from "./token-cache.ts";
import type { TokenAlgorithm } from "./token-key.ts";
import { readKeyRing, type VerificationKeys } from "./verification-keys.ts";

/** Which tokens are believed. */
export interface TokenVerifierOptions {
  /** One key, several by id, or a function that finds one, such as jose's `createRemoteJWKSet` makes. */
  readonly keys: VerificationKeys;
  /** Whose tokens they must be. */
  readonly issuer: string;
  /** Needed where the keys leave a choice. @default what the keys allow, where that is one thing only for each */
  readonly algorithms?: readonly TokenAlgorithm[];
  /** How far clocks may differ. @default 5_000 */
  readonly clockToleranceMs?: number;
  /** A token made to live longer is refused, for nobody can take it back. @default 3_600_000 */
  readonly maxLifetimeMs?: number;
}

/** Reads who is asking from the token of a request; `at` is the time to judge it by, now unless said. */
export type TokenVerifier = (delivery: Delivery, at?: Date) => Promise<Identity | undefined>;

/** What a token says, once its signature has been checked; times are Unix epoch milliseconds. */
interface Verified {
  readonly identity: Identity;
  readonly notBefore: number;
  readonly expiresAt: number;
}

/** Three parts, as text that needs no escaping anywhere. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * Creates what reads signed tokens. A request without one is anonymous; one with a token that is not valid, for whatever
 * reason, is refused as `UNAUTHENTICATED`. A verified token is remembered until it expires, even if its key is withdrawn.
 */
export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  const verify = createVerification(options);
  const tolerance = readMs("clockToleranceMs", options.clockToleranceMs ?? 5_000);
  const cache = new TokenCache<Verified>(({ expiresAt }) => Date.now() < expiresAt + tolerance);
  return async (delivery, at) => {
    const { credential, operationId } = delivery.request;
    if (credential === undefined) return undefined;
    const now = at?.getTime() ?? Date.now();
    if (Number.isNaN(now)) throw new TypeError("at must be a valid date.");
    if (credential.length > EVENT_LIMITS.credential || !COMPACT.test(credential)) throw refused();
    const audience = audienceOf(operationId);
    const make = () => verify(credential, audience);
    const { identity, notBefore, expiresAt } = await cache.get(`${credential} ${audience}`, make);
    if (now >= expiresAt + tolerance) throw refused("The token has expired.");
    if (now < notBefore - tolerance) throw refused("The token is not valid yet.");
    return identity;
  };
}

type Verification = (token: string, audience: string) => Promise<Verified>;

function createVerification(options: TokenVerifierOptions): Verification {
  const { issuer, keys, maxLifetimeMs = 3_600_000 } = options;
  if (typeof issuer !== "string" || issuer === "")
    throw new TypeError("issuer must be a string, not an empty one.");
  const { algorithms, find } = readKeyRing(keys, options.algorithms);
  const maxLifetime = readMs("maxLifetimeMs", maxLifetimeMs);
  return async (token, audience) => {
    try {
      const rules = { algorithms: [...algorithms], issuer, audience, ...ANY_TIME };
      const { payload } = await jwtVerify(token, find, rules);
      return readPayload(payload, maxLifetime);
    } catch (thrown) {
      if (isCallError(thrown)) throw thrown;
      throw refused(thrown);
    }
  };
}

/** Times are judged apart from the rest, so that what is remembered is judged alike, and to the millisecond. */
const ANY_TIME = {
  requiredClaims: ["sub", "exp", "iat"],
  clockTolerance: Number.MAX_SAFE_INTEGER,
};

function readPayload(payload: JWTPayload, maxLifetime: number): Verified {
  const { exp, iat, nbf = iat } = payload;
  if (!Number.isFinite(exp) || !Number.isFinite(iat) || !Number.isFinite(nbf)) {
    throw new TypeError("The token lacks a time.");
  }
  const [expiresAt, issuedAt] = [(exp as number) * 1_000, (iat as number) * 1_000];
  if (expiresAt - issuedAt > maxLifetime) throw new TypeError("The token is made to live too long.");
  const notBefore = Math.max(issuedAt, (nbf as number) * 1_000);
  return { identity: readIdentity(payload), notBefore, expiresAt };
}

function readIdentity({ sub, ...rest }: JWTPayload): Identity {
  const { scopes, resources, tier, claims } = rest as Partial<Identity>;
  if (resources !== undefined && !isPlainObject(resources))
    throw new TypeError("The resources are malformed.");
  if (claims !== undefined && !isPlainObject(claims)) throw new TypeError("The claims are malformed.");
  return HeldIdentity.of({
    subject: sub as string,
    ...(scopes === undefined ? {} : { scopes }),
    ...(resources === undefined ? {} : { resources }),
    ...(tier === undefined ? {} : { tier }),
    ...(claims === undefined ? {} : { claims }),
  });
}

function readMs(name: string, value: number): number {
  if (Number.isFinite(value) && value >= 0) return value;
  throw new TypeError(`${name} must be a number of milliseconds, 0 or more.`);
}

/** One sentence for every reason: whoever tries tokens out learns nothing from it. */
function refused(cause?: unknown): CallError {
  return new CallError("UNAUTHENTICATED", "The credential of the call is not valid.", {
    cause,
    stack: false,
  });
}
