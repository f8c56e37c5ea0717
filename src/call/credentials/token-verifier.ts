import { type JWTPayload, jwtVerify } from "jose";
import { HeldIdentity, type Identity } from "../../core/access/identity.ts";
import { CallError, isCallError } from "../../core/errors/errors.ts";
import { isPlainObject } from "../../core/json/json-value.ts";
import type { Delivery } from "../bus.ts";
import { EVENT_LIMITS } from "../call-events.ts";
import { isBound, isBoundTo } from "./bound-call.ts";
import { audienceOf } from "./token-audience.ts";
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
  /**
   * Believes tokens that do not say which call they are for, as callers of version 0.1.0 send them: whoever sees such a token can make
   * other calls with it until it expires. @default false
   */
  readonly acceptUnbound?: boolean;
}

/** Reads who is asking from the token of a request; `at` is the time to judge it by, now unless said. */
export type TokenVerifier = (delivery: Delivery, at?: Date) => Promise<Identity | undefined>;

/** What a token says, once its signature has been checked; times are Unix epoch milliseconds. */
interface Verified {
  readonly identity: Identity;
  readonly claims: JWTPayload;
  readonly notBefore: number;
  readonly expiresAt: number;
}

/** Three parts, as text that needs no escaping anywhere. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * Creates what reads signed tokens. A request without one is anonymous; one with a token that is not valid, or not for this very
 * call, is refused as `UNAUTHENTICATED`.
 */
export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier {
  const verify = createVerification(options);
  const tolerance = readMs("clockToleranceMs", options.clockToleranceMs ?? 5_000);
  const { acceptUnbound = false } = options;
  return async ({ request }, at) => {
    const { credential, operationId } = request;
    if (credential === undefined) return undefined;
    const now = at?.getTime() ?? Date.now();
    if (Number.isNaN(now)) throw new TypeError("at must be a valid date.");
    if (credential.length > EVENT_LIMITS.credential || !COMPACT.test(credential)) throw refused();
    const { identity, claims, notBefore, expiresAt } = await verify(credential, audienceOf(operationId));
    if (now >= expiresAt + tolerance) throw refused("The token has expired.");
    if (now < notBefore - tolerance) throw refused("The token is not valid yet.");
    if (isBound(claims)) {
      if (!(await isBoundTo(claims, operationId, request))) throw refused("The token is for another call.");
    } else if (!acceptUnbound) throw unbound();
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
  return { identity: readIdentity(payload), claims: payload, notBefore, expiresAt };
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

/** Its signature is right, so that the caller may know what to do. */
function unbound(): CallError {
  const message =
    "The credential of the call does not say which call it is for; update the caller, or let the service accept it (acceptUnbound).";
  return new CallError("UNAUTHENTICATED", message, { stack: false });
}
